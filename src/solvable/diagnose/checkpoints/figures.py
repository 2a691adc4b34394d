"""Figures of a series: one quantity of all matrices against the step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from solvable.diagnose.checkpoints.history import DiagnosedCheckpoints, History
from solvable.plots.figure import Figure, Series
from solvable.plots.layout import Scale
from solvable.plots.palette import COLOURS


class Quantity(NamedTuple):
    """Quantity that is drawn along training."""

    name: str  # as in History.values, and the name of the figure
    title: str
    label: str  # of the vertical axis
    scale: Scale = "linear"
    caption: str = ""


QUANTITIES = (
    Quantity(
        "directions", "Directions above random signs", "at least",
        caption="A lower bound.",
    ),
    Quantity("norm", "Norm", "Frobenius norm", "log"),
    Quantity("stable_rank", "Stable rank", "squared norm / largest square", "log"),
    Quantity(
        "last", "Distance to the last weights", "share of the norm", "log",
        caption="A matrix stopped where its line stays below 0.01.",
    ),
    Quantity(
        "overlap", "Leading directions", "squared overlap with the last ones",
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
    for quantity in QUANTITIES:
        series = []
        for row in found.histories:
            y = np.array(
                [np.nan if value is None else value for value in row.values(quantity.name)]
            )
            y = np.where(y > 0, y, np.nan) if quantity.scale == "log" else y
            if np.isfinite(y).sum() == 0:
                continue
            label = row.name if named else colours.labels[row.name]
            index = colours.indices[row.name]
            # A line and points of one name would be read as theory and measurement.
            single = np.isfinite(y).sum() == 1
            series.append(Series(label, x, y, kind="points" if single else "line", colour=index))
        if series:
            yield Figure(
                quantity.name,
                quantity.title,
                x_label,
                quantity.label,
                series,
                " ".join(part for part in (quantity.caption, colours.meaning) if part),
                x_scale=x_scale,
                y_scale=quantity.scale,
            )
