"""Figures of filters on images: against kept directions, samples and widths."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from solvable.frame.curves import Curve
from solvable.frame.panels import PanelFunction, grouped
from solvable.frame.points import Point
from solvable.models.lofi_images.claims import (
    Values,
    by_directions,
    by_width,
    kept,
    null_ratio,
    ratio_of,
    tested_counts,
    whole,
)
from solvable.models.lofi_images.parameters import USUAL_DIRECTIONS
from solvable.plots.figure import Figure, Series


def of_each(draw: Callable[[list[Point]], list[Figure]], *, wide: bool = True) -> PanelFunction:
    """Panel of the points of each curve, the infinitely wide ones alone or all."""

    def panel(curves: Sequence[Curve]) -> list[Figure]:
        figures = []
        for group in grouped(curves):
            points = [p for p in group.curves[0].points if not (wide and p.setting.width)]
            for figure in draw(points) if points else []:
                words = f" ({group.words})" if group.words else ""
                name, title = figure.name + group.suffix, figure.title + words
                figures.append(replace(figure, name=name, title=title))
        return figures

    panel.__name__ = draw.__name__.replace("_", "-")
    return panel


def subject(point: Point) -> str:
    """Images and task in words."""
    data = "Digits" if point.setting.data == "digits" else "MNIST"
    return f"{data}, {'even or odd' if point.setting.task == 'even-odd' else 'ten classes'}"


def label_of(point: Point) -> str:
    """The sample size, which tells the series of a figure apart."""
    return f"n = {point.setting.samples}"


def flat(label: str, x: np.ndarray, level: float, colour: int) -> Series:
    """A level that depends on nothing, dashed."""
    return Series(label, x[[0, -1]], np.full(2, level), "dashed", colour=colour)


def along(label: str, points: Sequence[Point], metric: str, colour: int) -> Series:
    """A metric (the first entry of a list) against the width."""
    x = [point.setting.width for point in points]
    means = [float(np.ravel(point.mean(metric))[0]) for point in points]
    errors = [float(np.ravel(point.standard_error(metric))[0]) for point in points]
    return Series(label, x, means, "points", errors, colour)


def measured(point: Point, metric: str, colour: int) -> Series:
    """A metric against the numbers of kept directions."""
    x, values = np.array(point.setting.kept, dtype=float), by_directions(point, metric)
    error = values.std(axis=0, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else None
    return Series(label_of(point), x, values.mean(axis=0), "points", error, colour)


def directions(points: list[Point]) -> list[Figure]:
    """Squared error and error against kept directions, a curve per sample size."""
    if len(points[-1].setting.kept) < 2:
        return []
    figures = []
    for metric, title in (
        ("squared_error", "Too few directions miss the label, too many bring noise"),
        ("error", "The error is least at some tens of directions"),
    ):
        series = []
        for colour, point in enumerate(points):
            x, label = np.array(point.setting.kept, dtype=float), label_of(point)
            series.append(measured(point, metric, colour))
            level = float(point.mean(f"deep_{metric}"))
            series.append(flat(f"{label}, no filter", x, level, colour))
        name = metric.replace("_", "-")
        caption = (
            f"{subject(points[0])}, infinitely wide networks with filters (points) and of "
            f"{points[0].setting.depth} lifts without (dashed), each at its own leave-one-out "
            "penalty. The least over directions is chosen on the test images."
        )
        labels = ("directions kept by each filter", f"test {metric.replace('_', ' ')}")
        scales = {"x_scale": "log", "y_scale": "log"}
        figures.append(Figure(f"{name}-by-directions", title, *labels, series, caption, **scales))  # type: ignore[arg-type]
    return figures


def null_ratios(points: list[Point]) -> list[Figure]:
    """Strengths over those of meaningless labels at the counts that every replicate tested."""
    series = []
    for colour, point in enumerate(points):
        counts = tested_counts(point)
        if not counts:
            continue
        rows = np.array([null_ratio(point, count) for count in counts])
        error = rows.std(axis=1, ddof=1) / np.sqrt(point.replicates) if rows.shape[1] > 1 else None
        x = np.array(counts, dtype=float) + 1
        series.append(Series(label_of(point), x, rows.mean(axis=1), "points", error, colour))
    if not series:
        return []
    ends = np.array([1.0, max(float(np.max(curve.x)) for curve in series)])
    series.append(flat("as meaningless labels", ends, 1.0, len(points)))
    figure = Figure(
        "null-ratios", "Each direction against meaningless labels",
        "number of the direction", "strength over that of meaningless labels", series,
        f"{subject(points[0])}, first filter. The stronger directions are removed before the labels "
        "are drawn anew; a direction counts while the ratio is above 1.1.",
        x_scale="log",
    )  # fmt: skip
    return [figure]


def dimensions(points: list[Point]) -> list[Figure]:
    """Residual effective dimension against removed directions, beside that of other images."""
    series, name = [], "residual_dimensions"
    for colour, point in enumerate(points):
        x, label = np.array(point.setting.kept, dtype=float), label_of(point)
        y = np.broadcast_to(point.predicted(name), x.shape)
        series.append(Series(f"{label}, other images", x, y, "line", colour=colour))
        series.append(measured(point, name, colour))
    figure = Figure(
        "residual-dimension", "What is left is of higher dimension",
        "directions removed", "residual effective dimension", series,
        f"{subject(points[0])}: variance of the lifted images outside the leading directions, over "
        "the largest along one direction there. A weak feature needs samples in proportion. Lines: "
        "predicted from other images.",
        x_scale="log", y_scale="log",
    )  # fmt: skip
    return [figure]


def methods(points: list[Point]) -> list[Figure]:
    """Squared errors over that of the deep network without filters, against samples."""
    values: dict[str, Values] = {f"filters, {USUAL_DIRECTIONS} directions": kept("squared_error")}
    values |= {
        "filters, directions chosen": whole("auto_squared_error"),
        "Gaussian kernel, tuned": whole("rbf_squared_error"),
        "one lift, no filter": whole("shallow_squared_error"),
    }
    points = [point for point in points if np.isfinite(kept("squared_error")(point)).all()]
    if len(points) < 2:
        return []
    x, deep = np.array([float(p.setting.samples) for p in points]), whole("deep_squared_error")
    series = []
    for colour, (label, method) in enumerate(values.items()):
        pairs = [ratio_of(method(point), deep(point)) for point in points]
        y, error = (np.array(column) for column in zip(*pairs, strict=True))
        series.append(Series(label, x, y, "points", error, colour))
    series.append(flat("deep, no filter", x, 1.0, len(values)))
    linear, _ = ratio_of(points[-1].values("linear_squared_error"), deep(points[-1]))
    figure = Figure(
        "methods", "Filters against what has none, on the same splits",
        "training images", "squared error over that of deep, no filter", series,
        f"{subject(points[0])}. All are infinitely wide, with penalties (and the length of the "
        "Gaussian kernel) by leave-one-out on the training images. Ridge on pixels is at "
        f"{linear:.1f} for the most images.",
    )  # fmt: skip
    return [figure]


def widths(points: list[Point]) -> list[Figure]:
    """Errors and Gram matrices of networks of finite width against their limits."""
    groups = [group for group in by_width(points) if len(group) > 1]
    if not groups:
        return []
    errors = []
    for colour, group in enumerate(groups):
        label = label_of(group[0])
        errors.append(along(label, group, "squared_error", colour))
        limit = along(f"{label}, infinite", group, "limit_squared_error", colour)
        errors.append(replace(limit, kind="dashed", error=None))
    # Without filters, and kernels of two hundred images, which are compared at any n: the largest n.
    errors.append(along(f"{label}, no filter", group, "lazy_squared_error", len(groups)))
    line = [float(point.predicted("gram_deviation")) for point in group]
    measured = along("measured", group, "gram_deviation", 0)
    x_label = "random features P"
    return [
        Figure(
            "width", "Wider networks approach their kernel", x_label, "test squared error", errors,
            f"{subject(group[0])}, {USUAL_DIRECTIONS} directions. Dashed: infinitely wide, same splits. "
            "Without filter: ridge on random features of the same width.",
            x_scale="log", y_scale="log",
        ),
        Figure(
            "gram", "Random features approach their kernel at rate one over root P",
            x_label, "relative distance of Gram matrices",
            [Series("theory", measured.x, line, "line", colour=0), measured],
            f"{subject(group[0])}: root mean square over 16 lifts of 200 images. Lines: predicted from "
            "the fourth moment of the activation on other images.",
            x_scale="log", y_scale="log",
        ),
    ]  # fmt: skip


PANELS = (
    of_each(directions),
    of_each(null_ratios),
    of_each(dimensions),
    of_each(methods),
    of_each(widths, wide=False),
)
