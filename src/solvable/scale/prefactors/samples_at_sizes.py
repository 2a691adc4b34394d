"""Energy, numbers of neurons and samples of every pattern at given sizes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

from solvable.errors import InvalidParameter, unknown_choice
from solvable.models.two_layer_posterior.overlap import Target, kernel_diagonal
from solvable.scale.exponents.energies import candidates
from solvable.scale.exponents.network import Attention, Description, Network, OwnMonomials
from solvable.scale.exponents.numerical_sizes import (
    check_network,
    power_of,
    read_sizes,
    width_names,
    without_coefficients,
)
from solvable.scale.exponents.patterns import Candidate
from solvable.scale.exponents.sample_exponent import Scaling, scaling_of
from solvable.scale.exponents.tropical import minimise
from solvable.scale.prefactors.attention_sums import AttentionBlock
from solvable.scale.prefactors.deep_sums import Pattern, deep_optimum
from solvable.scale.prefactors.exact_energy import Exact, exact_energy
from solvable.scale.prefactors.pattern_sums import (
    FirstLayer,
    LayerNumbers,
    Optimum,
    Sizes,
    two_layer,
)
from solvable.scale.prefactors.random_energy import cross_entropy_samples


@dataclass(frozen=True)
class PatternNumbers:
    """Energy and samples of one pattern at given sizes."""

    name: str  # name of the pattern, such as "Sp(1)-GP"
    energy: float  # least energy of the pattern
    samples: float  # P* = 2 kappa E / k   (scale 1; arXiv:2512.04165, Equation 40), or (scale 2)
    factor: float  # energy divided by the winner's energy
    layers: tuple[LayerNumbers, ...]
    parts: tuple[tuple[str, float], ...]  # cost of each layer, and the alignment term


@dataclass(frozen=True)
class Numbers:
    r"""Energies and samples of all patterns of a network at given sizes, the cheapest pattern first.

    Parameters
    ----------
    network : Network or Attention
        Network or attention block whose patterns are listed.
    sizes : dict of str to float
        Values of d, widths, kappa, alpha and sigma_a, including defaults.
    k : float
        1 + K(x, x): the mean loss of the prior per sample is k / (2 kappa).
    patterns : tuple of PatternNumbers
        Patterns in ascending order of energy.
    exact : Exact or None
        Large-deviation energy, for networks with one hidden layer and integer sizes up to d = 2000.
    warnings : tuple of str
        Conditions under which the energies are not valid.
    classes : int or None
        Number of classes of a classifier trained with cross-entropy; None for regression.
    """

    network: Description
    sizes: dict[str, float]
    k: float
    patterns: tuple[PatternNumbers, ...]
    exact: Exact | None
    warnings: tuple[str, ...]
    classes: int | None = None

    @property
    def winner(self) -> PatternNumbers:
        """The pattern of least energy."""
        return self.patterns[0]

    def to_dict(self) -> dict[str, Any]:
        """Return the entry "numbers" of ``solvable scale --numbers ... --json``."""
        return {
            "sizes": self.sizes,
            "k": self.k,
            **({} if self.classes is None else {"classes": self.classes}),
            "winner": self.winner.name,
            "patterns": [
                {**asdict(row), "parts": dict(row.parts)}
                | {"layers": [asdict(layer) for layer in row.layers]}
                for row in self.patterns
            ],
            "exact": None if self.exact is None else asdict(self.exact),
            "warnings": list(self.warnings),
        }


def numbers_of(
    network: Description,
    sizes: Mapping[str, float],
    *,
    only: Iterable[str] | None = None,
    frozen: bool = False,
    one_route: bool = False,
    classes: int | None = None,
) -> Numbers:
    r"""Minimise the energy of each pattern with its prefactors.

    .. math:: E = \sum_l \tfrac12\sum_i\Delta_{l,i}
        + \frac{\alpha^2\chi}{2\sigma_a^2\langle y, K, y\rangle},\qquad P^* = \frac{2\kappa E}{k}

    with :math:`\Delta = d\,u^2 + (d-1)(r-1-\ln r)` for a specialised neuron of the first layer,
    :math:`\mu^2/\langle\Phi, K_1, \Phi\rangle + d\,(r-1-\ln r)` for a neuron of the second layer, and
    :math:`D - 1 - \ln D` for amplified fluctuations.

    Parameters
    ----------
    network : Network or Attention
        Network with one or two hidden layers on isotropic inputs, or an attention block.
    sizes : mapping of str to float
        d, and optionally N (or N1, N2), S (inputs of a patch), W (patches), H (heads), L (tokens),
        kappa, alpha and sigma_a. Sizes left out, and kappa, are the network's powers of d; alpha and
        sigma_a are 1.
    only : iterable of str, optional
        Names of patterns; default all.
    frozen : bool
        True: irrelevant weights of specialised neurons keep their prior norm, as in the paper.
    one_route : bool
        True: leave out the alignment of prior neurons in patterns with specialised or magnetised neurons.
    classes : int, optional
        Number of classes C of a classifier trained with cross-entropy. Then
        :math:`P^* = \kappa E/E\log\sum_c e^{f_c}`, to leading order :math:`\kappa E/\log C`.

    Returns
    -------
    Numbers
        Energies, numbers of neurons, strengths, gains and samples of all patterns.

    Raises
    ------
    InvalidParameter
        If a size is missing, unknown or out of range, or no prefactors are derived for the network.

    Notes
    -----
    docs/derivations/scale (scale 3), from arXiv:2512.04165, Equations 9 and 10. For one hidden layer the
    distribution of a neuron is the prior, moved by u along the target, with other weights shrunk by
    :math:`\sqrt r`. The energy is an upper bound of the exact one up to the entropy of choosing neurons,
    of order log N each. For two layers :math:`\langle y, K_2, y\rangle` sums both routes. Time:
    0.1 s for one layer, 3 s for two with He3, 10 s with He5. Backed by
    ``tests/scale/prefactors/test_samples_at_sizes.py``.

    Examples
    --------
    >>> from solvable.scale import network_of_flags
    >>> found = numbers_of(network_of_flags("erf:1", "he3"), {"d": 100, "N": 500})
    >>> found.winner.name, round(found.winner.energy), round(found.winner.layers[0].neurons, 2)
    ('Sp(1)', 1792, 6.55)
    >>> round(found.exact.energy), round(found.winner.samples)
    (1750, 2447)
    """
    if isinstance(network, Network):
        check_network(network)
    rows = candidates(network)
    held = read_sizes(network, sizes)
    wanted = _wanted(rows, only)
    scale = (held["alpha"] / held["sigma_a"]) ** 2
    if isinstance(network, Attention):
        block = AttentionBlock(held["d"], held["H"], held["L"])
        optima = [
            block.optimum(
                row.layers[0].kind, held["alpha"] ** 2, frozen=frozen, one_route=one_route
            )
            for row in wanted
        ]
        return _numbers(network, held, 1 + block.kernel, wanted, optima, None, classes)
    if not isinstance(network, Network):
        raise InvalidParameter(
            "own terms have no prefactors; allowed: networks and attention blocks. Leave out the "
            "numbers to get exponents."
        )
    names = width_names(network)
    widths = tuple(held[name] for name in names)
    chi = widths[-1]
    if not network.mean_field:
        chi = power_of("chi of the readout", held["d"], network.readout.constant)
    patches = held.get("W", 1.0)
    shape = Sizes(held.get("S", held["d"]), widths, scale * chi * patches, frozen, one_route)
    acts = tuple(layer.activation.name for layer in network.layers)
    if len(acts) == 1:
        target: Target = "parity" if network.parity else "hermite"
        first = FirstLayer.of(acts[0], network.degree, shape.dimension, target)
        optima = [two_layer(first, shape, row.layers[0].kind) for row in wanted]
        kernel = kernel_diagonal(acts[0])
        exact = exact_energy(first.overlap, shape, held["alpha"])
    else:
        optima = [
            deep_optimum((acts[0], acts[1]), network.degree, shape, _pair(row)) for row in wanted
        ]
        kernel = kernel_diagonal(acts[1], kernel_diagonal(acts[0]))
        exact = None
    k = 1 + kernel * held["sigma_a"] ** 2 / chi
    return _numbers(network, held, k, wanted, optima, exact, classes)


def is_quick(network: Network) -> bool:
    """Return True if computing the energies of all patterns takes only seconds."""
    return len(network.layers) == 1 or network.degree <= 5


@dataclass(frozen=True)
class Tie:
    """Patterns whose exponents tie, ordered by their energies at a large dimension."""

    dimension: float  # input dimension d; the widths are the network's powers of d
    exponent: Fraction  # common exponent of the energies
    patterns: tuple[PatternNumbers, ...]  # tied patterns, the cheapest first

    @property
    def coefficients(self) -> dict[str, float]:
        """Energies of the patterns, divided by d to the power of the common exponent."""
        unit = self.dimension ** float(self.exponent)
        return {row.name: row.energy / unit for row in self.patterns}

    def to_dict(self) -> dict[str, Any]:
        """Return the entry "tie_break" of ``solvable scale --json``."""
        return {
            "dimension": self.dimension,
            "winner": self.patterns[0].name,
            "energy_exponent": str(self.exponent),
            "coefficients": self.coefficients,
        }


def break_tie(
    network: Description,
    names: Iterable[str] | None = None,
    *,
    dimension: float = 1e6,
    at: Mapping[str, Fraction] | None = None,
) -> Tie:
    """Compare the prefactors of patterns with the same exponent.

    Parameters
    ----------
    network : Network or Attention
        A network with values for all exponents.
    names : iterable of str, optional
        Patterns to compare; default all patterns of the least exponent, including patterns with a
        gain of order one, which have the same exponents as other patterns.
    dimension : float
        Input dimension d; the widths are powers of it.
    at : mapping of str to Fraction, optional
        Values of symbols.

    Returns
    -------
    Tie
        Patterns with their energies, the cheapest first.

    Examples
    --------
    >>> from solvable.scale import network_of_flags
    >>> tie = break_tie(network_of_flags("erf:1,erf:1", "he3"), ["GP-Sp(1)", "Sp(1)-GP", "Sp(1)-Mag(3)"])
    >>> {name: round(value, 2) for name, value in tie.coefficients.items()}
    {'Sp(1)-Mag(3)': 6.41, 'Sp(1)-GP': 9.88, 'GP-Sp(1)': 10.71}
    """
    found = scaling_of(network, at)
    given = found.network
    if found.exponent is None or isinstance(given, OwnMonomials) or given.kappa.number is None:
        raise InvalidParameter(
            "break_tie needs a network or an attention block without symbols; give the symbols "
            "values, as in at={'n1': 1}."
        )
    least = found.exponent - given.kappa.number
    if names is None:
        names = _of_exponent(given, least)
    rows = numbers_of(given, {"d": dimension}, only=names)
    return Tie(dimension, least, rows.patterns)


def _of_exponent(network: Network | Attention, least: Fraction) -> list[str]:
    """Return all patterns with a given exponent, including patterns with a gain of order one."""
    model, point = network.symbolic()
    return [
        row.name
        for row in candidates(model)
        for found in [minimise(program, point, faces=False) for program in row.programs]
        if found is not None and found.value == least
    ]


def tie_of(found: Scaling) -> Tie | None:
    """Compare the patterns that tie in an answer; None without ties or without prefactors."""
    if not found.ties or isinstance(found.network, OwnMonomials):
        return None
    if isinstance(found.network, Network) and without_coefficients(found.network):
        return None
    try:
        return break_tie(found.network)
    except InvalidParameter:  # at d = 10⁶ a size is too large
        return None


def _numbers(
    network: Description,
    sizes: dict[str, float],
    k: float,
    rows: list[Candidate],
    optima: list[Optimum],
    exact: Exact | None,
    classes: int | None,
) -> Numbers:
    order = sorted(zip(rows, optima, strict=True), key=lambda pair: pair[1].energy)
    least = order[0][1].energy
    if classes is None:
        per_energy = 2 * sizes["kappa"] / k
    else:
        per_energy = cross_entropy_samples(1.0, classes, kernel=k - 1, kappa=sizes["kappa"])
    patterns = tuple(
        PatternNumbers(
            row.name,
            found.energy,
            per_energy * found.energy,
            found.energy / least,
            found.layers,
            found.parts,
        )
        for row, found in order
    )
    warnings = tuple(_warnings(sizes, patterns[0], exact))
    return Numbers(network, sizes, k, patterns, exact, warnings, classes)


def _warnings(
    sizes: dict[str, float], winner: PatternNumbers, exact: Exact | None
) -> Iterable[str]:
    reach = sizes.get("S", sizes["d"])
    for name in ("N", "N1", "N2"):
        if sizes.get(name, reach) < reach:
            yield (
                f"{name} = {sizes[name]:g} is below {reach:g}: the layer's kernel fluctuates, which the "
                "patterns neglect."
            )
    for number, layer in enumerate(winner.layers, 1):
        if layer.kind == "Sp" and layer.neurons is not None and layer.neurons < 1.001:
            yield f"Layer {number} needs only one neuron, the smallest number allowed."
    if exact is not None and exact.condensed:
        yield (
            "The exact large-deviation energy has less than one large neuron and is a lower bound. The "
            "energy of the pattern has one neuron."
        )
    elif exact is not None and not 0.8 < winner.energy / exact.energy < 1.25:
        ratio = winner.energy / exact.energy
        yield (
            f"The energy of the winner is {ratio:.2f} times the exact energy: at these sizes no single "
            "pattern describes the network. Use the exact energy."
        )


def _pair(row: Candidate) -> tuple[Pattern, Pattern]:
    one, two = row.layers
    return (one.kind, one.feature), (two.kind, two.feature)


def _wanted(rows: tuple[Candidate, ...], only: Iterable[str] | None) -> list[Candidate]:
    """Return candidates by name, without duplicates."""
    named = {row.name: row for row in rows}
    if only is None:
        return list(named.values())
    chosen = list(only)
    for name in chosen:
        if name not in named:
            raise InvalidParameter(unknown_choice("pattern", name, list(named)))
    return [named[name] for name in dict.fromkeys(chosen)]
