"""Figures of a series: one quantity of all matrices against the step."""

from __future__ import annotations

from collections.abc import Iterator
from operator import methodcaller
from typing import NamedTuple

import numpy as np

from solvable.diagnose.checkpoints.history import DiagnosedCheckpoints, History
from solvable.diagnose.figures import Line, Quantity, line_figure
from solvable.plots.figure import Figure
from solvable.plots.layout import Scale
from solvable.plots.palette import COLOURS

QUANTITIES = (
    Quantity(
        "directions", "Directions above random signs", "at least",
        methodcaller("values", "directions"), caption="A lower bound.",
    ),
    Quantity("norm", "Norm", "Frobenius norm", methodcaller("values", "norm"), "log"),
    Quantity(
        "stable_rank", "Stable rank", "squared norm / largest square",
        methodcaller("values", "stable_rank"), "log",
    ),
    Quantity(
        "last", "Distance to the last weights", "share of the norm", methodcaller("values", "last"),
        "log", "A matrix stopped where its line stays below 0.01.",
    ),
    Quantity(
        "overlap", "Leading directions", "squared overlap with the last ones",
        methodcaller("values", "overlap"),
        caption="1: the directions are those of the last checkpoint.",
    ),
)  # fmt: skip


class Colours(NamedTuple):
    """Colour index of each matrix, and the meaning of the colours."""

    indices: dict[str, int]
    labels: dict[str, str]  # legend entry of each matrix
    meaning: str  # sentence about the colours; empty if the legend names every matrix


def colours_of(rows: tuple[History, ...]) -> Colours:
    """Colour few matrices by name, many by kind, and many kinds by their place in the network."""
    names = [row.name for row in rows]
    if len(names) <= len(COLOURS):
        return Colours({name: i for i, name in enumerate(names)}, {n: n for n in names}, "")
    kinds = list(dict.fromkeys(row.kind for row in rows))
    if len(kinds) <= len(COLOURS):
        indices = {row.name: kinds.index(row.kind) for row in rows}
        return Colours(indices, {row.name: row.kind for row in rows}, "Colour: kind of matrix.")
    return Colours(
        {name: i for i, name in enumerate(names)},
        dict.fromkeys(names, ""),
        "Colour: place in the network, from the first matrix (dark) to the last (light).",
    )


def x_axis(found: DiagnosedCheckpoints) -> tuple[np.ndarray, Scale, str]:
    """Return positions, scale and label of the horizontal axis; step 0 fits on a logarithmic one."""
    steps = np.array(found.steps)
    positive = steps[steps > 0]
    label = found.axis
    # On a linear axis, steps in geometric progression would leave half of them in the first tenth.
    skewed = len(positive) > 3 and np.median(positive) < 0.2 * positive[-1]
    if not skewed or (steps < 0).any():
        return steps, "linear", label
    if (steps == 0).any():
        steps = np.where(steps == 0, positive[0] / 2, steps)
        label += " (leftmost: 0)"
    return steps, "log", label


def figures(found: DiagnosedCheckpoints, *, named: bool = False) -> Iterator[Figure]:
    """Yield the figure of each quantity that any matrix has; ``named`` labels each line by its matrix."""
    x, x_scale, x_label = x_axis(found)
    colours = colours_of(found.histories)
    labels = {row.name: row.name for row in found.histories} if named else colours.labels
    for quantity in QUANTITIES:
        lines = [
            Line(labels[row.name], colours.indices[row.name], x, quantity.value(row))
            for row in found.histories
        ]
        if figure := line_figure(quantity, lines, x_label, colours.meaning, x_scale):
            yield figure
