"""Figures of a diagnosis: a spectrum with its fitted law, numbers against depth, attention heads."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from solvable.diagnose.diagnosed import Diagnosed
from solvable.diagnose.diagnosis import HeadDiagnosis, MatrixDiagnosis
from solvable.plots.figure import Figure, Marker, Series
from solvable.plots.layout import Scale
from solvable.plots.palette import COLOURS
from solvable.plots.words import counted

TRIMMED = 0.1  # a logarithmic axis leaves out at most this share of the values, the smallest values


def spectrum_figure(row: MatrixDiagnosis) -> Figure:
    """Draw the histogram of the values of a matrix with the fitted law, edge and features."""
    values = np.empty(0) if row.values is None else np.sort(np.asarray(row.values, dtype=float))
    shown = values[values != 0] if row.symmetric else values[values > 0]
    logarithmic = shown.size > 0 and _is_logarithmic(row, shown)
    if logarithmic:
        # Without this cut the few smallest values would take half of a logarithmic axis.
        shown = shown[shown >= max(float(np.quantile(shown, TRIMMED)), shown[-1] * 1e-12)]
    name = "eigenvalue" if row.symmetric else "singular value"
    series = []
    if shown.size:
        edges = _bins(row, shown, logarithmic=logarithmic)
        heights = np.histogram(shown, edges)[0] / (values.size * np.diff(edges))
        series.append(Series(f"{name}s", edges, heights, kind="histogram"))
        series += _law(row, edges, logarithmic=logarithmic)
        series += _features(row, edges, heights, logarithmic=logarithmic)
    markers: tuple[Marker, ...] = ()
    if row.edges is not None and shown.size and row.edges[1] > 0:
        markers = (Marker(float(row.edges[1]), "edge"),)
    scale: Scale = "log" if logarithmic else "linear"
    return Figure(
        name="spectrum",
        title=f"{row.name}: {row.phase}",
        x_label=name,
        y_label="density",
        series=series,
        caption=caption(row, left_out=values.size - row.zeros - shown.size),
        markers=markers,
        x_scale=scale,
        y_scale=scale,
    )


def caption(row: MatrixDiagnosis, *, left_out: int = 0) -> str:
    """Caption of the figure: one or two sentences."""
    parts = ["Bars: density of the values."]
    if row.law is not None:
        parts.append("Line: the fitted law.")
    if row.features:
        parts.append("Points: learned features.")
    if row.zeros:
        parts.append(f"{row.zeros} values are zero and not shown.")
    if left_out > 0:
        parts.append(f"The {left_out} smallest are not shown.")
    return " ".join(parts)


def _is_logarithmic(row: MatrixDiagnosis, values: np.ndarray) -> bool:
    if row.symmetric and values[0] < 0:
        return False
    if row.edges is not None:
        # If a feature is far from the edge, the bulk would be only a few pixels wide on a linear axis.
        return float(values[-1]) > 6.0 * row.edges[1] > 0
    # A logarithmic axis over less than a decade has few ticks and cannot show a power law.
    low = float(np.quantile(values[values > 0], TRIMMED)) if values[-1] > 0 else 0.0
    return bool(values[-1] > 8.0 * low > 0)


def _bins(row: MatrixDiagnosis, values: np.ndarray, *, logarithmic: bool) -> np.ndarray:
    low, high = float(values[0]), float(values[-1])
    bulk = values if row.edges is None else values[values <= row.edges[1]]
    if bulk.size == 0:
        bulk = values
    # number of bars: twice the square root of the number of values, within bounds
    fewest, most = 12, 60
    count = int(np.clip((1.4 if logarithmic else 2.0) * np.sqrt(bulk.size), fewest, most))
    if high <= low:
        air = abs(high) * 1e-3 or 1.0
        return np.array([low - air, high + air])
    if logarithmic:
        return np.geomspace(low * (1 - 1e-9), high * (1 + 1e-9), count + 1)
    width = (float(bulk[-1]) - low) / count if bulk[-1] > low else (high - low) / count
    bars = min(max(int(np.ceil((high - low) / width * (1 - 1e-12))), 1), 8 * most)
    return np.linspace(low, high, bars + 1)


def _law(row: MatrixDiagnosis, edges: np.ndarray, *, logarithmic: bool) -> list[Series]:
    if row.law is None or len(row.law.x) == 0:
        return []
    x, density = np.asarray(row.law.x, dtype=float), np.asarray(row.law.density, dtype=float)
    if logarithmic:
        # The curve leaves out the values that have no bars.
        inside = (x >= edges[0]) & (density > 0)
        x, density = x[inside], density[inside]
    # At most 240 points, because a page may contain a hundred curves. The density has square-root
    # edges; the points near the edges stay dense.
    step = max(1, -(-len(x) // 240))
    picked = np.unique(np.append(np.arange(0, len(x), step), len(x) - 1))
    x, density = x[picked], density[picked]
    return [Series("fitted law", x, density, colour=1)]


def _features(
    row: MatrixDiagnosis, edges: np.ndarray, heights: np.ndarray, *, logarithmic: bool
) -> list[Series]:
    places = np.array([feature.observed for feature in row.features], dtype=float)
    if places.size == 0:
        return []
    bars = np.clip(np.searchsorted(edges, places, side="right") - 1, 0, len(heights) - 1)
    level = heights[bars]
    if not logarithmic:
        # Outliers are drawn as points above the axis.
        level = np.maximum(level, 0.03 * heights.max())
    return [Series("learned features", places, level, kind="points", colour=2)]


class Quantity(NamedTuple):
    """Number of a matrix that is drawn as a line."""

    name: str
    title: str
    label: str  # of the vertical axis
    value: Callable[..., Any]  # number, or numbers, of a row; None where it is missing
    scale: Scale = "linear"
    caption: str = ""


class Line(NamedTuple):
    """Values of one line, None where they are missing."""

    label: str
    colour: int
    x: Sequence[float] | np.ndarray
    y: Sequence[float | None]


def line_figure(
    quantity: Quantity,
    lines: Iterable[Line],
    x_label: str,
    caption: str = "",
    x_scale: Scale = "linear",
) -> Figure | None:
    """Draw one quantity as lines; None if no line has a value that can be drawn."""
    series = []
    for line in lines:
        y = np.array([np.nan if value is None else value for value in line.y], dtype=float)
        y = np.where(y > 0, y, np.nan) if quantity.scale == "log" else y
        if known := int(np.isfinite(y).sum()):
            # A line and points of one name would be read as theory and measurement.
            kind: Literal["points", "line"] = "points" if known == 1 else "line"
            x = np.asarray(line.x, dtype=float)
            series.append(Series(line.label, x, y, kind=kind, colour=line.colour))
    text = " ".join(part for part in (quantity.caption, caption) if part)
    if not series:
        return None
    labels = (quantity.name, quantity.title, x_label, quantity.label)
    return Figure(*labels, series, text, x_scale=x_scale, y_scale=quantity.scale)


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
    caption = f"{counted(left, 'other kind')} not drawn." if left else ""
    for quantity in QUANTITIES:
        lines = []
        for colour, kind in enumerate(drawn):
            rows = sorted(kinds[kind], key=lambda pair: pair[0])
            values = [quantity.value(row) for _, row in rows]
            if sum(value is not None for value in values) > 1:
                lines.append(Line(kind, colour, [number for number, _ in rows], values))
        if figure := line_figure(quantity, lines, "number in the name", caption):
            yield figure


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
