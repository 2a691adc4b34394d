"""Tables and figure of a forecast over two variables."""

from __future__ import annotations

from typing import Any

import numpy as np

from solvable.forecast.two_variables import SurfaceForecast
from solvable.plots.figure import Figure, Map, Series
from solvable.plots.numbers import format_number
from solvable.plots.tables import Cell, Column, Table


def line(found: SurfaceForecast) -> str:
    """Return one line with the exponents, and the split of the budget."""
    x, y = found.runs.names
    text = f"loss over {x} and {y}: exponents {_interval(found, 'alpha')} and {_interval(found, 'beta')}"
    if found.split is None:
        return text
    first, second = (format_number(size.value, 3) for size in found.split.sizes)
    return f"{text}; best split {x} {first}, {y} {second}"


def _interval(found: SurfaceForecast, name: str, digits: int = 3) -> str:
    held = found.parameters[name]
    low, high = (format_number(end, digits) for end in (held.lower, held.upper))
    return f"{format_number(held.value, digits)} ({low} to {high})"


def tables(found: SurfaceForecast) -> list[Table]:
    """Return the tables of parameters, of predictions and of the split."""
    parameters = Table("parameter", Column("value", right=True), Column("interval", right=True))
    for name, held in found.parameters.items():
        ends = f"{format_number(held.lower, 3)} to {format_number(held.upper, 3)}"
        parameters.add(name, format_number(held.value, 3), ends)
    more = [parameters]
    if found.predictions:
        table = Table(*(Column(name, right=True) for name in found.runs.names),
                      Column("loss", right=True), Column("interval", right=True))  # fmt: skip
        for row in found.predictions:
            sizes = (format_number(size, 3) for size in row.sizes)
            ends = f"{format_number(row.lower, 3)} to {format_number(row.upper, 3)}"
            table.add(*sizes, format_number(row.loss, 3), ends)
        more.append(table)
    if found.split is not None:
        table = Table("best split", Column("value", right=True), Column("interval", right=True))
        named = zip(
            (*found.runs.names, "loss"), (*found.split.sizes, found.split.loss), strict=True
        )
        for name, held in named:
            ends = f"{format_number(held.lower, 3)} to {format_number(held.upper, 3)}"
            table.add(name, format_number(held.value, 3), ends)
        more.append(table)
    return more


def rows(found: SurfaceForecast) -> list[dict[str, Any]]:
    """Return one row for each prediction, for a data frame."""
    names = found.runs.names
    return [
        {names[0]: row.sizes[0], names[1]: row.sizes[1],
         "loss": row.loss, "lower": row.lower, "upper": row.upper}
        for row in found.predictions
    ]  # fmt: skip


def figures(found: SurfaceForecast) -> list[Figure]:
    """Draw the surface with the runs on it."""
    return [surface_figure(found)]


def summary(found: SurfaceForecast, name: str) -> list[str | Cell | Table]:
    """Return the text that the command prints; ``name`` names the runs."""
    level = f"{100 * found.confidence:g} % intervals"
    parts: list[str | Cell | Table] = [Cell(f"{name}: {line(found)}.", "bold")]
    for table in tables(found):
        parts += ["", table]
    x, y = found.runs.names
    form = {
        "sum": f"E + A {x}^-alpha + B {y}^-beta",
        "joint": f"E + (A {x}^(-alpha/beta) + B {y}^-1)^beta",
    }[found.surface.family]
    sentences = [
        f"Fitted: loss = {form}, to {len(found.runs.losses)} runs with a deviation of "
        f"{100 * found.spread:.2g} % of single runs; {level}.",
        f"The best {x} grows as the budget to the power {_interval(found, 'split exponent')}.",
        *found.notes,
    ]
    if found.inflation > 1:
        sentences.append(
            f"Intervals are {found.inflation:.2g} times as wide as the bootstrap gives, as these runs "
            "deviated more than it predicts."
        )
    return [*parts, "", *map(Cell, sentences)]


def surface_figure(found: SurfaceForecast) -> Figure:
    """Map of the fitted loss, the runs as points, and the best split of each budget as a line."""
    x, y = found.runs.names
    sizes = found.runs.sizes
    best: list[float] = []
    if found.split is not None:
        best = [size.value for size in found.split.sizes]
        sizes = np.vstack([sizes, best])
    low, high = sizes.min(axis=0) / 1.5, sizes.max(axis=0) * 1.5
    first, second = (np.geomspace(low[k], high[k], 60) for k in (0, 1))
    pairs = np.stack(np.meshgrid(first, second), axis=-1).reshape(-1, 2)
    values = found.surface.losses(pairs).reshape(60, 60)
    budgets = np.geomspace((low * 1.01).prod(), (high / 1.01).prod(), 200)
    path = np.array([found.surface.best_split(float(budget)) for budget in budgets])
    path = path[((path >= low) & (path <= high)).all(axis=1)]
    series = [Series("runs", found.runs.sizes[:, 0], found.runs.sizes[:, 1], "points", colour=1)]
    if len(path):
        series.append(Series("best split of a budget", path[:, 0], path[:, 1], "line", colour=2))
    if best:
        series.append(Series("split of the budget", [best[0]], [best[1]], "points", colour=3))
    return Figure(
        "surface",
        f"Loss over {x} and {y}",
        x,
        y,
        series,
        "Colours: fitted loss. Points: measured runs.",
        x_scale="log",
        y_scale="log",
        map=Map(first, second, values, "loss", "log"),
    )
