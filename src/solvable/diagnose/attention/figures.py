"""Figures of attention heads: measured singular values, and singular values expected from noise."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from solvable.diagnose.diagnosis import HeadDiagnosis
from solvable.plots.figure import Figure, Series


def head_figure(row: HeadDiagnosis) -> Figure:
    """Draw the ordered singular values of query^T key and the singular values expected from noise."""
    values = np.zeros(0) if row.values is None else np.asarray(row.values)
    learned = row.learned or 0
    order = np.arange(1, values.size + 1, dtype=float)
    series = []
    if row.expected is not None and row.expected.size:
        # The values expected from noise start after the learned directions.
        expected = np.asarray(row.expected)[: max(values.size - learned, 1)]
        places = learned + 1.0 + np.arange(expected.size)
        series.append(Series("rest, by the fitted law", places, expected, colour=1))
    if learned < values.size:
        rest = slice(learned, None)
        series.append(Series("the rest", order[rest], values[rest], kind="points", colour=0))
    if learned:
        series.append(
            Series("learned directions", order[:learned], values[:learned], kind="points", colour=2)
        )
    return Figure(
        name=row.name,
        title=f"{row.name}: {row.phase}",
        x_label="index of the singular value (largest first)",
        y_label="singular value",
        series=series,
        caption=row.reason,
    )


def overview(heads: Sequence[HeadDiagnosis]) -> Figure:
    """Draw the number of learned directions of every head against the layer."""
    layers = list(dict.fromkeys(row.pair for row in heads))
    numbers = {name: number for number, name in enumerate(layers)}
    sizes = {name: sum(row.pair == name for row in heads) for name in layers}
    rows = [row for row in heads if row.learned is not None]
    # Heads of a layer are drawn next to each other.
    places = [
        numbers[row.pair] + 0.7 * (((row.head or 0) + 0.5) / sizes[row.pair] - 0.5) for row in rows
    ]
    counts = [float(row.learned or 0) for row in rows]
    return Figure(
        name="attention heads",
        title="Learned directions of every attention head",
        x_label="layer (heads next to each other)",
        y_label="number of learned directions",
        series=[Series("heads", np.array(places), np.array(counts), kind="points", colour=2)],
        caption=(
            f"Learned directions per head, from {min(counts, default=0):.0f} to "
            f"{max(counts, default=0):.0f}. Each point is a head."
        ),
    )
