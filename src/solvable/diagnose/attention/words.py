"""Sentences and a table about the attention heads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from solvable.diagnose.diagnosed import Diagnosed
from solvable.diagnose.diagnosis import (
    LOW_RANK,
    NO_LAW,
    RANDOM,
    SPIKES,
    SPREAD,
    THRESHOLDED,
    HeadDiagnosis,
)
from solvable.diagnose.tables import Column, estimate_text, fitted_table, probability_text
from solvable.plots import tables
from solvable.plots.numbers import MISSING, format_number
from solvable.plots.tables import Table
from solvable.plots.words import counted, listed

QUESTION = "What did the attention heads learn?"

SINGLE = 24  # largest number of heads that a terminal shows one by one; above it, one row per layer


@dataclass(frozen=True)
class HeadPhase:
    """Phase of a query-key product."""

    name: str
    means: str  # meaning for the head


PHASES = (
    HeadPhase(
        RANDOM,
        "query and key are independent, as before training: no learned direction is visible",
    ),
    HeadPhase(
        SPIKES,
        "learned directions exceed a product of independent factors, which is the noise of the initial "
        "weights; the strengths include some of this noise",
    ),
    HeadPhase(
        THRESHOLDED,
        "a penalty has lowered all values by a threshold and cut the weakest to zero; the values "
        "beyond the remaining bulk of noise were learned",
    ),
    HeadPhase(
        LOW_RANK,
        "most dimensions of the head are unused, and the other values are too few to separate noise "
        "from learned directions",
    ),
    HeadPhase(
        SPREAD,
        "query and key are not independent, so they were trained, but no direction is above the "
        "controls: no law separates learned directions from noise, and no strengths are given",
    ),
    HeadPhase(
        NO_LAW,
        "some directions exceed the controls, but the other values follow no fitted law: the number of "
        "directions is a lower bound, and neither noise nor strengths are given",
    ),
)


def counts(heads: Sequence[HeadDiagnosis]) -> list[tuple[HeadPhase, tuple[HeadDiagnosis, ...]]]:
    """Phases that occur, each with its heads."""
    pairs = [(phase, tuple(row for row in heads if row.phase == phase.name)) for phase in PHASES]
    return [(phase, rows) for phase, rows in pairs if rows]


def sentences(found: Diagnosed) -> list[str]:
    """Sentences about the heads' learned directions."""
    heads = found.heads
    if not heads:
        return list(found.attention)
    fitted = [row for row in heads if row.fitted]
    parts = [f"{len(rows)} {phase.name}" for phase, rows in counts(heads)]
    if len(fitted) < len(heads):
        parts.append(f"{len(heads) - len(fitted)} not fitted")
    lines = [f"Of {counted(len(heads), 'head')}: {', '.join(parts)}."]
    lines += [f"{phase.name} ({_which(rows)}): {phase.means}." for phase, rows in counts(heads)]
    full = [row for row in fitted if row.rank == row.width]
    if full and all(row.phase in (SPREAD, NO_LAW) for row in full):
        lines.append(
            f"{'All' if len(full) == len(heads) else len(full)} of them use every dimension of the "
            "head. A penalty would leave some dimensions unused, so no threshold is fitted."
        )
    lines += _largest(fitted)
    reasons: dict[str, list[str]] = {}
    for row in heads:
        if not row.fitted:
            reasons.setdefault(row.reason, []).append(row.name)
    lines += [f"{listed(names)}: {reason}" for reason, names in reasons.items()]
    return lines + list(found.attention)


def _which(rows: Sequence[HeadDiagnosis]) -> str:
    if len(rows) <= 3:
        return listed([row.name for row in rows])
    layers = len({row.pair for row in rows})
    return f"in {counted(layers, 'layer')}"


def _largest(heads: Sequence[HeadDiagnosis]) -> list[str]:
    parts = [
        f"{row.name} ({learned_text(row)} of {row.width} directions, the largest {_beyond(row):.1f} "
        f"times the largest value of noise; symmetry {symmetry_text(row)})"
        for row in outstanding(heads)[:3]
    ]
    return [f"Largest learned directions: {'; '.join(parts)}."] if parts else []


def outstanding(heads: Sequence[HeadDiagnosis]) -> list[HeadDiagnosis]:
    """Heads with learned directions; the head with the largest excess over noise is first."""
    rows = [row for row in heads if row.learned and _beyond(row)]
    return sorted(rows, key=_beyond, reverse=True)


def _beyond(row: HeadDiagnosis) -> float:
    """Largest singular value divided by the largest value expected without learned directions."""
    if row.values is None or row.expected is None or not len(row.expected):
        return 0.0
    return float(row.values[0] / row.expected[0])


def learned_text(row: HeadDiagnosis) -> str:
    """Number of learned directions as text; a lower bound ("≥") if no law fits the other values."""
    if row.learned is None:
        return MISSING
    return f"≥{row.learned}" if row.phase in (SPREAD, NO_LAW) else str(row.learned)


def symmetry_text(row: HeadDiagnosis) -> str:
    """Symmetry of the product."""
    return MISSING if row.symmetry is None else f"{row.symmetry:.2f}"


def largest_text(row: HeadDiagnosis) -> str:
    """Largest singular value in the file."""
    return MISSING if row.values is None else format_number(float(row.values[0]), 3)


def head_table(heads: Sequence[HeadDiagnosis], *, single: bool = False) -> Table:
    """Table with one row per head; one row per layer if there are many heads and not `single`."""
    if len(heads) > SINGLE and not single:
        return _by_layer(heads)
    dim = {row.name for row in heads if not row.fitted}
    return fitted_table(heads, HEADS, None, dim, first="head")[0]


HEADS = (
    Column("phase", lambda row: row.phase, left=True),
    Column("rank", lambda row: f"{row.rank} of {row.width}" if row.fitted else MISSING),
    Column("learned", learned_text),
    Column("largest", largest_text),
    Column("noise", lambda row: estimate_text(row.noise, interval=False)),
    Column("threshold", lambda row: estimate_text(row.threshold, interval=False)),
    Column(
        "strongest", lambda row: estimate_text(row.features[0].strength if row.features else None)
    ),
    Column("symmetry", symmetry_text),
    Column("p", lambda row: probability_text(row.p_value)),
)
"""Columns of the table of heads."""


def _by_layer(heads: Sequence[HeadDiagnosis]) -> Table:
    table = Table(
        tables.Column("layer", wrap=False),
        tables.Column("phases"),
        tables.Column("learned in each head"),
        tables.Column("largest in each head"),
        tables.Column("symmetry", wrap=False),
    )
    layers: dict[str, list[HeadDiagnosis]] = {}
    for row in heads:
        layers.setdefault(row.pair, []).append(row)
    for name, rows in layers.items():
        phases = Counter(row.phase for row in rows)
        symmetries = [row.symmetry for row in rows if row.symmetry is not None]
        ends = f"{min(symmetries):.2f} to {max(symmetries):.2f}" if symmetries else MISSING
        table.add(
            name,
            ", ".join(f"{number} {phase}" for phase, number in phases.most_common()),
            " ".join(learned_text(row) for row in rows),
            " ".join(largest_text(row) for row in rows),
            ends,
        )
    return table


def legend() -> str:
    """Meaning of the columns in the tables of heads and of layers."""
    return (
        "rank: singular values of query^T key that are not zero; learned: directions above the noise, "
        "≥ if no law fits the other values; largest: largest value in the file; strongest: largest "
        "strength without noise and threshold; symmetry: 1 for symmetric products, -1 for antisymmetric "
        "products; p: goodness of fit of the values that are not learned. --details and the report have "
        "every head."
    )
