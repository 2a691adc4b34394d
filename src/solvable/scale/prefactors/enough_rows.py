"""Samples that a real model needs for targets of several degrees, and whether given rows are enough."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import Any

from solvable.errors import InvalidParameter
from solvable.models.two_layer_posterior.overlap import kernel_diagonal
from solvable.plots.tables import Column, Table
from solvable.plots.words import listed
from solvable.scale.exponents.linear_forms import LinearForm, about, power
from solvable.scale.exponents.network import Network
from solvable.scale.exponents.sample_exponent import Scaling, scaling_of
from solvable.scale.prefactors.lazy_kernels import lazy_alignment
from solvable.scale.prefactors.samples_at_sizes import Numbers, numbers_of
from solvable.scale.prefactors.words import size

DEGREES = (1, 2, 3)
"""Degrees of the targets that an overview lists if no target is given."""

# Half alignment took 2.5 to 5 times the lower bound for four directions of the digits, the only measured
# cases (docs/scale.md); prefactors of one or two learning layers are 1 to 13.
MEASURED = (2.5, 5.0)

_FORMULAS = {"leaky-relu": "max(z, 0.01*z)", "linear": "identity"}


@dataclass(frozen=True)
class DegreeRow:
    """Samples that a target of one degree needs, as a power of d and at the sizes of the model."""

    degree: int
    exponent: Fraction | None  # exponent of the samples; None if the target cannot be represented
    power: float | None  # kappa times d to the exponent of the energy, without a prefactor
    samples: float | None  # number of samples with its prefactor; None if no prefactor is derived
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
            Column("lazy kernel", right=True),
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
            return ["not represented", "", ""]
        text = power("d", row.exponent)
        number = f"c * {_short(row.power)}" if row.samples is None else _short(row.samples)
        lazy = "" if row.lazy_samples is None else _short(row.lazy_samples)
        return [about(text) if self.rounded else text, number, lazy]

    def sentences(self) -> list[str]:
        """Write the meaning of the columns."""
        found = [
            f"Numbers of samples are rounded, hold for kappa = {self.kappa:g}, and are lower bounds "
            f"for alignment with the target: half alignment took {MEASURED[0]} to {MEASURED[1]:g} "
            "times as many in the four cases that were measured."
        ]
        if any(row.power is not None and row.samples is None for row in self.rows):
            found.append(
                f"c is the unknown prefactor of learning layers: none is derived for {self.underived}."
            )
        if any(row.lazy_samples is not None for row in self.rows):
            found.append(
                "The lazy kernel is the same network without feature learning, at infinite width; its "
                "numbers contain its prefactor."
            )
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return all fields for JSON, with exponents as text."""
        rows = []
        for row in self.rows:
            judged = {} if self.have is None else {"enough": row.enough(self.have)}
            exponent = None if row.exponent is None else str(row.exponent)
            rows.append(asdict(row) | {"exponent": exponent} | judged)
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
    underived: str,
    degrees: Sequence[int] = DEGREES,
    sizes: Mapping[str, float] | None = None,
    kappa: float | None = None,
    sums: Numbers | None = None,
    have: float | None = None,
) -> Overview:
    """Compute the samples that targets of several degrees need."""
    ridge = float(dimension ** float(network.kappa.constant)) if kappa is None else kappa
    held = {"d": float(dimension)} | dict(sizes or {}) | {"kappa": ridge}
    white = replace(network, inputs=LinearForm.of(-1))
    rows = []
    for degree in degrees:
        variant = replace(network, degree=degree, parity=False)
        known = sums if degree == network.degree else None
        same = None if underived else replace(white, degree=degree)
        rows.append(_row(variant, same, dimension, held, known))
    return Overview(tuple(rows), dimension, ridge, network.rounded, underived, have)


def _row(
    network: Network,
    white: Network | None,
    dimension: int,
    sizes: dict[str, float],
    sums: Numbers | None,
) -> DegreeRow:
    """Compute one row; `white` is the network on white inputs if prefactors are derived for it."""
    try:
        found = scaling_of(network)
    except InvalidParameter:
        return DegreeRow(network.degree, None, None, None, None, "")
    assert found.exponent is not None  # all sizes have values
    if sums is None and white is not None:
        with suppress(InvalidParameter):
            sums = numbers_of(white, sizes)
    return DegreeRow(
        network.degree,
        found.exponent,
        sizes["kappa"] * dimension ** float(found.exponent - network.kappa.constant),
        None if sums is None else sums.winner.samples,
        lazy_samples(network, dimension, sizes["d"], sizes["kappa"]),
        learning_layers(found),
    )


def lazy_samples(network: Network, dimension: int, white: float, kappa: float) -> float | None:
    """Compute how many samples the prior's kernel needs at infinite width; None if not derived."""
    names = [layer.activation.name for layer in network.layers]
    patches = any(layer.patch is not None for layer in network.layers)
    if patches or network.parity or any(name.startswith("poly") for name in names):
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
        {layer.kind for layer in held}
        for held in zip(*(row.layers for row in found.winners), strict=True)
    ]
    always = [str(i) for i, held in enumerate(kinds, 1) if "lazy" not in held]
    sometimes = [str(i) for i, held in enumerate(kinds, 1) if "lazy" in held and len(held) > 1]
    said = [
        f"{word}layer{'s' * (len(layers) > 1)} {listed(layers)}"
        for word, layers in (("", always), ("perhaps ", sometimes))
        if layers
    ]
    return "; ".join(said) or "nothing: the lazy kernel is enough"


def _short(value: float) -> str:
    """Write a number with two significant digits."""
    return size(float(f"{value:.2g}"))
