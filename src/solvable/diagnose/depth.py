"""Figures against depth: bound, stable rank and change of each kind of matrix by its number."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from solvable.diagnose.diagnosed import Diagnosed
from solvable.diagnose.diagnosis import MatrixDiagnosis
from solvable.plots.figure import Figure, Series
from solvable.plots.layout import Scale
from solvable.plots.palette import COLOURS
from solvable.plots.words import counted


class Quantity(NamedTuple):
    """Number of a matrix that is drawn against depth."""

    name: str
    title: str
    label: str  # of the vertical axis
    value: Callable[[MatrixDiagnosis], float | None]
    scale: Scale = "linear"


QUANTITIES = (
    Quantity("depth-directions", "Directions above random signs", "at least", lambda row: row.directions),
    Quantity(
        "depth-stable-rank", "Stable rank", "squared norm / largest square",
        lambda row: row.stable_rank, "log",
    ),
    Quantity(
        "depth-change", "Change since the initial weights", "share of the initial norm",
        lambda row: None if row.initial is None else row.initial.relative_change, "log",
    ),
    Quantity(
        "depth-rank-of-change", "Rank of the change", "directions that hold 95 %",
        lambda row: None if row.initial is None else row.initial.rank, "log",
    ),
)  # fmt: skip


def kinds_by_depth(found: Diagnosed) -> dict[str, list[tuple[int, MatrixDiagnosis]]]:
    """Return matrices by their name without its first number, each with this number."""
    kinds: dict[str, list[tuple[int, MatrixDiagnosis]]] = {}
    for row in found.matrices:
        number = re.search(r"\d+", row.name)
        if number is not None:
            kind = f"{row.name[: number.start()]}*{row.name[number.end() :]}"
            kinds.setdefault(kind, []).append((int(number.group()), row))
    least = 3  # two points are no line against depth
    return {kind: rows for kind, rows in kinds.items() if len(rows) >= least}


def depth_figures(found: Diagnosed) -> Iterator[Figure]:
    """Yield a figure of each quantity that kinds of matrices have in at least three layers."""
    kinds = kinds_by_depth(found)
    drawn = list(kinds)[: len(COLOURS)]
    left = len(kinds) - len(drawn)
    for quantity in QUANTITIES:
        series = []
        for index, kind in enumerate(drawn):
            pairs = [
                (n, quantity.value(row)) for n, row in sorted(kinds[kind], key=lambda one: one[0])
            ]
            x = np.array([number for number, _ in pairs], dtype=float)
            y = np.array([np.nan if value is None else value for _, value in pairs], dtype=float)
            y = np.where(y > 0, y, np.nan) if quantity.scale == "log" else y
            if np.isfinite(y).sum() > 1:
                series.append(Series(kind, x, y, kind="line", colour=index))
        if series:
            yield Figure(
                quantity.name,
                quantity.title,
                "number in the name",
                quantity.label,
                series,
                f"{counted(left, 'other kind')} not drawn." if left else "",
                y_scale=quantity.scale,
            )
