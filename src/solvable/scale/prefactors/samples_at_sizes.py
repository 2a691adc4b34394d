"""Energy, numbers of neurons and samples of every pattern at given sizes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from solvable.errors import InvalidParameter, NotConverged
from solvable.models.two_layer_posterior.large_deviation import large_deviation
from solvable.models.two_layer_posterior.overlap import Target, kernel_diagonal
from solvable.scale.exponents.energies import candidates
from solvable.scale.exponents.network import Description
from solvable.scale.exponents.numerical_sizes import check_network, power_of, read_sizes
from solvable.scale.prefactors.pattern_sums import FirstLayer, LayerNumbers, optimum
from solvable.scale.prefactors.random_energy import cross_entropy_samples

LARGEST_DIMENSION = 2_000
"""Largest dimension at which the exact energy is computed."""


@dataclass(frozen=True)
class PatternNumbers:
    """Energy and samples of one pattern at given sizes."""

    name: str  # name of the pattern, such as "Sp(1)-GP"
    energy: float  # least energy of the pattern
    samples: float  # P* = 2 kappa E / k   (scale 1; arXiv:2512.04165, Equation 40), or (scale 2)
    factor: float  # energy divided by the winner's energy
    layer: LayerNumbers
    cost: float  # part of the energy that the layer takes; the alignment takes the rest


@dataclass(frozen=True)
class Exact:
    """Chernoff energy over the whole prior, and the neurons that contribute to it."""

    energy: float
    neurons: float
    strength: float
    rest: float
    condensed: bool


@dataclass(frozen=True)
class Numbers:
    r"""Energies and samples of all patterns of a network at given sizes, the cheapest pattern first.

    Parameters
    ----------
    network : Network
        Network whose patterns are listed.
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
            "patterns": [asdict(row) for row in self.patterns],
            "exact": None if self.exact is None else asdict(self.exact),
            "warnings": list(self.warnings),
        }


def numbers_of(
    network: Description, sizes: Mapping[str, float], *, classes: int | None = None
) -> Numbers:
    r"""Minimise the energy of each pattern with its prefactors.

    .. math:: E = \sum_l \tfrac12\sum_i\Delta_{l,i}
        + \frac{\alpha^2\chi}{2\sigma_a^2\langle y, K, y\rangle},\qquad P^* = \frac{2\kappa E}{k}

    with :math:`\Delta = d\,u^2 + (d-1)(r-1-\ln r)` for a specialised neuron, and
    :math:`D - 1 - \ln D` for amplified fluctuations.

    Parameters
    ----------
    network : Network
        Network with one hidden layer of erf, tanh or relu on isotropic inputs or patches.
    sizes : mapping of str to float
        d, and optionally N, S (inputs of a patch), W (patches), kappa, alpha and sigma_a. Sizes left
        out, and kappa, are the network's powers of d; alpha and sigma_a are 1.
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
    docs/derivations/scale (scale 3), from arXiv:2512.04165, Equations 9 and 10. The distribution of a
    neuron is the prior, moved by u along the target, with other weights shrunk by :math:`\sqrt r`. The
    energy is an upper bound of the exact one up to the entropy of choosing neurons, of order log N each.
    Time: 0.1 s. Backed by
    ``tests/scale/prefactors/test_samples_at_sizes.py``.

    Examples
    --------
    >>> from solvable.scale import network_of_flags
    >>> found = numbers_of(network_of_flags("erf:1", "he3"), {"d": 100, "N": 500})
    >>> found.winner.name, round(found.winner.energy), round(found.winner.layer.neurons, 2)
    ('Sp(1)', 1792, 6.55)
    >>> round(found.exact.energy), round(found.winner.samples)
    (1750, 2447)
    """
    known = check_network(network)
    held = read_sizes(known, sizes)
    layer = known.layers[0]
    chi = held["N"]
    if not known.mean_field:
        chi = power_of("chi of the readout", held["d"], known.readout.constant)
    scale = (held["alpha"] / held["sigma_a"]) ** 2 * chi * held.get("W", 1.0)
    target: Target = "parity" if known.parity else "hermite"
    act, dimension = layer.activation.name, held.get("S", held["d"])
    first = FirstLayer.of(act, known.degree, dimension, target)
    names = {row.name: row.layers[0].kind for row in candidates(known)}
    optima = {name: optimum(first, held["N"], scale, kind) for name, kind in names.items()}
    k = 1 + kernel_diagonal(act) * held["sigma_a"] ** 2 / chi
    order = sorted(optima.items(), key=lambda pair: pair[1].energy)
    least = order[0][1].energy
    if classes is None:
        per_energy = 2 * held["kappa"] / k
    else:
        per_energy = cross_entropy_samples(1.0, classes, kernel=k - 1, kappa=held["kappa"])
    patterns = tuple(
        PatternNumbers(
            name, found.energy, per_energy * found.energy, found.energy / least, found.layer,
            found.cost,
        )
        for name, found in order
    )  # fmt: skip
    exact = _exact_energy(first, held["N"], scale, held["alpha"])
    warnings = tuple(_warnings(held, patterns[0], exact))
    return Numbers(known, held, k, patterns, exact, warnings, classes)


def _exact_energy(first: FirstLayer, width: float, scale: float, alpha: float) -> Exact | None:
    """Compute the exact energy; None for fractional or too large sizes."""
    d = first.dimension
    if d != round(d) or width != round(width) or d > LARGEST_DIMENSION:
        return None
    try:
        found = large_deviation(
            dimension=round(d),
            width=round(width),
            degree=first.overlap.degree,
            activation=first.overlap.activation,
            target=first.overlap.target,
            alignment=alpha,
            readout_variance=alpha**2 / scale,
        )
    except (NotConverged, InvalidParameter):
        return None
    return Exact(found.energy, found.neurons, found.u, found.r, found.condensed)


def _warnings(
    sizes: dict[str, float], winner: PatternNumbers, exact: Exact | None
) -> Iterable[str]:
    reach = sizes.get("S", sizes["d"])
    if sizes["N"] < reach:
        yield (
            f"N = {sizes['N']:g} is below {reach:g}: the layer's kernel fluctuates, which the patterns "
            "neglect."
        )
    layer = winner.layer
    if layer.kind == "Sp" and layer.neurons is not None and layer.neurons < 1.001:
        yield "Layer 1 needs only one neuron, the smallest number allowed."
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
