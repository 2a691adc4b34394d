"""Orders of magnitude of the samples that a real model needs, with or without derived prefactors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import Any

from solvable.errors import InvalidParameter
from solvable.models.two_layer_posterior.overlap import kernel_diagonal
from solvable.plots.tables import Column, Table
from solvable.scale.exponents.least_energy import Forward
from solvable.scale.exponents.linear_forms import LinearForm, about, power
from solvable.scale.exponents.network import Network
from solvable.scale.exponents.numerical_sizes import without_coefficients
from solvable.scale.exponents.patterns import LayerPattern, check_reachable
from solvable.scale.exponents.sample_exponent import Scaling, scaling_of
from solvable.scale.prefactors.lazy_kernels import lazy_alignment
from solvable.scale.prefactors.samples_at_sizes import Numbers, is_quick, numbers_of
from solvable.scale.prefactors.words import size

DEGREES = (1, 2, 3)
"""Degrees of the targets that an overview lists if no target is given."""

# Half alignment took 2.5 to 5 times the lower bound for four directions of the digits, the only measured
# cases (docs/scale.md); prefactors of one or two learning layers are 1 to 13.
MEASURED = (2.5, 5.0)

LEAST_SAVING = Fraction(1, 10)
"""Smallest exponent of a listed saving; the exponents of sizes are rounded within 0.01."""

_FORMULAS = {"leaky-relu": "max(z, 0.01*z)", "linear": "identity"}


@dataclass(frozen=True)
class DegreeRow:
    """Samples that a target of one degree needs, as a power of d and at the sizes of the model."""

    degree: int
    exponent: Fraction | None  # exponent of the samples; None if the target cannot be represented
    power: float | None  # kappa times d to the exponent of the energy, without a prefactor
    samples: float | None  # number of samples with its prefactor; None if no prefactor is derived
    lazy_exponent: Fraction | None
    lazy_samples: float | None  # samples for the kernel at infinite width, with prefactor
    learns: str  # description of the layers that learn

    def enough(self, have: float) -> str:
        """Judge a number of rows: "enough", "not enough" or "undecided", with the factor."""
        if self.power is None:
            return "not represented"
        if self.lazy_samples is not None and have >= MEASURED[1] * self.lazy_samples:
            return f"enough: {_short(have / self.lazy_samples)} times the bound of the lazy kernel"
        bound = self.samples if self.samples is not None else self.power
        return judged(have / bound, known=self.samples is not None)


@dataclass(frozen=True)
class Overview:
    """Overview of the samples that a real model needs, with one row per degree of the target."""

    rows: tuple[DegreeRow, ...]
    dimension: int
    kappa: float
    rounded: bool
    underived: str  # property without derived prefactors; empty if prefactors are derived
    have: float | None = None  # number of rows that is judged

    def table(self) -> Table:
        """Build the table with one row per target."""
        table = Table(
            "target",
            "power of d",
            Column(f"at d = {self.dimension}", right=True),
            "lazy kernel alone",
            Column(f"at d = {self.dimension}", right=True),
            "learning layers",
            *([] if self.have is None else [f"with {self.have:,.0f} rows"]),
            title="Samples needed for a target of one direction",
        )
        for row in self.rows:
            judged = [] if self.have is None else [row.enough(self.have)]
            table.add(f"He{row.degree}", *self._cells(row), row.learns, *judged)
        return table

    def _cells(self, row: DegreeRow) -> list[str]:
        if row.exponent is None or row.power is None:
            return ["not represented", "", "", ""]
        number = f"c * {_short(row.power)}" if row.samples is None else _short(row.samples)
        lazy = "" if row.lazy_samples is None else _short(row.lazy_samples)
        powers = [
            power("d", value) if value is not None else ""
            for value in (row.exponent, row.lazy_exponent)
        ]
        if self.rounded:
            powers = [about(text) for text in powers]
        return [powers[0], number, powers[1], lazy]

    def sentences(self) -> list[str]:
        """Write how many samples feature learning saves, and the meaning of the columns."""
        found = self._saved()
        found += [
            f"Numbers of samples are rounded, hold for kappa = {self.kappa:g}, and are lower bounds "
            f"for alignment with the target: half alignment took {MEASURED[0]} to {MEASURED[1]:g} "
            "times as many in the four cases that were measured."
        ]
        rows = [row for row in self.rows if row.power is not None]
        if any(row.samples is None for row in rows):
            text = "c is the unknown prefactor of learning layers"
            text += (
                f": none is derived for {self.underived}"
                if self.underived
                else (f"; --numbers kappa={self.kappa:g} computes it in minutes")
            )
            lazy = [
                row.lazy_samples / (self.kappa * self.dimension ** float(row.lazy_exponent))
                for row in rows
                if row.lazy_samples is not None and row.lazy_exponent is not None
            ]
            if lazy:
                low, high = (_short(end) for end in (min(lazy), max(lazy)))
                text += (
                    ". Numbers of the lazy kernel contain its own prefactor, "
                    f"{low if low == high else f'{low} to {high}'}"
                )
            found.append(f"{text}.")
        if any(row.lazy_samples is not None for row in rows):
            found.append(
                "The lazy kernel is the same network without feature learning, at infinite width."
            )
        return found

    def _saved(self) -> list[str]:
        """Write the factor by which feature learning reduces the samples of the lazy kernel."""
        pairs = [
            (row, row.lazy_exponent - row.exponent)
            for row in self.rows
            if row.exponent is not None and row.lazy_exponent is not None
        ]
        more = [(row, saved) for row, saved in pairs if saved > LEAST_SAVING]
        if not more:
            return ["Learning features saves no power of d here."] if pairs else []
        unknown = any(row.samples is None for row, _ in more)
        parts = ", ".join(
            f"d^{float(saved):.2g} (about {_short(self.dimension ** float(saved))} times fewer "
            f"samples) for He{row.degree}"
            for row, saved in more
        )
        equal = ", if c equals the prefactor of the lazy kernel" if unknown else ""
        return [f"Learning features saves a factor of the order of {parts}{equal}."]

    def to_dict(self) -> dict[str, Any]:
        """Return all fields for JSON, with exponents as text."""
        rows = []
        for row in self.rows:
            texts = {
                name: None if value is None else str(value)
                for name, value in (
                    ("exponent", row.exponent),
                    ("lazy_exponent", row.lazy_exponent),
                )
            }
            judged = {} if self.have is None else {"enough": row.enough(self.have)}
            rows.append(asdict(row) | texts | judged)
        return {"dimension": self.dimension, "kappa": self.kappa, "targets": rows}


def judged(ratio: float, *, known: bool = True) -> str:
    """Judge rows by their ratio to a lower bound, whose prefactor is known or at least 1."""
    if ratio < 1:
        return f"not enough: below the lower bound by a factor of {_short(1 / ratio)}"
    if known and ratio >= MEASURED[1]:
        return f"enough, if the measured distance holds: {_short(ratio)} times the lower bound"
    return f"undecided: {_short(ratio)}{'' if known else ' / c'} times the lower bound"


def overview_of(
    network: Network,
    dimension: int,
    *,
    degrees: Sequence[int] = DEGREES,
    sizes: Mapping[str, float] | None = None,
    kappa: float | None = None,
    sums: Numbers | None = None,
    have: float | None = None,
) -> Overview:
    """Compute orders of magnitude of the samples that targets of several degrees need."""
    ridge = float(dimension ** float(network.kappa.constant)) if kappa is None else kappa
    held = {"d": float(dimension)} | dict(sizes or {}) | {"kappa": ridge}
    white = replace(network, inputs=((1, LinearForm.of(-1)),))
    rows = []
    for degree in degrees:
        variant = replace(network, degree=degree, parity=False)
        known = sums if degree == network.degree else None
        rows.append(_row(variant, replace(white, degree=degree), dimension, held, known))
    underived = without_coefficients(white)
    return Overview(tuple(rows), dimension, ridge, network.rounded, underived, have)


def _row(
    network: Network, white: Network, dimension: int, sizes: dict[str, float], sums: Numbers | None
) -> DegreeRow:
    try:
        found = scaling_of(network)
    except InvalidParameter:
        return DegreeRow(network.degree, None, None, None, None, None, "")
    assert found.exponent is not None  # all sizes have values
    if sums is None and is_quick(white) and not without_coefficients(white):
        with suppress(InvalidParameter):
            sums = numbers_of(white, sizes)
    energy = float(found.exponent - network.kappa.constant)
    return DegreeRow(
        network.degree,
        found.exponent,
        sizes["kappa"] * dimension**energy,
        None if sums is None else sums.winner.samples,
        lazy_exponent(network),
        lazy_samples(network, dimension, sizes["d"], sizes["kappa"]),
        learning_layers(found),
    )


def lazy_exponent(network: Network) -> Fraction:
    """Compute the exponent of the number of samples that the prior's kernel needs."""
    check_reachable(network)
    forward = Forward(network)
    levels = forward.first
    for number in range(1, len(network.layers) + 1):
        levels = forward.after(number, LayerPattern("GP"), levels, Fraction(0)) or ()
    energy = forward.alignment(levels)
    assert energy is not None  # the target can be represented
    return energy + network.kappa.constant


def lazy_samples(network: Network, dimension: int, white: float, kappa: float) -> float | None:
    """Compute how many samples the prior's kernel needs at infinite width; None if not derived."""
    if any(layer.patch is not None for layer in network.layers) or network.parity:
        return None
    names = [layer.activation.name for layer in network.layers]
    if any(name.startswith("poly") for name in names):
        return None
    acts = tuple(_FORMULAS.get(name, name) for name in names)
    chi = dimension ** float(network.chi.constant)
    alignment = lazy_alignment(acts, network.degree, max(2.0, white))
    diagonal = 1.0
    for act in acts:
        diagonal = kernel_diagonal(act, diagonal)
    # P* = 2 kappa E / k with E = chi / (2 <y, K, y>) and k = 1 + K(x, x) / chi
    return float(kappa * chi / alignment / (1 + diagonal / chi))


def learning_layers(found: Scaling) -> str:
    """Name the layers that learn in all winning patterns, or else in some winning patterns."""
    kinds = [
        {winner.layers[i].kind for winner in found.winners}
        for i in range(len(found.winners[0].layers))
    ]
    always = [i for i, held in enumerate(kinds, 1) if "lazy" not in held]
    sometimes = [i for i, held in enumerate(kinds, 1) if "lazy" in held and len(held) > 1]
    said = [f"{_layers(always)}"] if always else []
    said += [f"perhaps {_layers(sometimes)}"] if sometimes else []
    return "; ".join(said) or "nothing: the lazy kernel is enough"


def _layers(numbers: list[int]) -> str:
    if len(numbers) == 1:
        return f"layer {numbers[0]}"
    return f"layers {', '.join(map(str, numbers[:-1]))} and {numbers[-1]}"


def _short(value: float) -> str:
    """Write a number with two significant digits."""
    return size(float(f"{value:.2g}"))
