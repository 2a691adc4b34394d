"""Figures of filters on images."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from solvable.frame.points import Point
from solvable.models.lofi_images.checks import USUAL, at, by_width
from solvable.plots.figure import Figure, Series

WORDS = {
    "auto": "filters, directions chosen",
    "rbf": "Gaussian kernel, tuned",
    "shallow": "one lift, no filter",
}
"""Methods of a figure against samples, in the order of their colours."""


def draw_figures(points: Sequence[Point]) -> list[Figure]:
    """Figures of every setting that differs in more than samples and width."""
    groups: dict[tuple[object, ...], list[Point]] = {}
    for point in points:
        key = tuple(v for k, v in point.parameters.items() if k not in ("samples", "width"))
        groups.setdefault(key, []).append(point)
    names = _names([group[0] for group in groups.values()])
    figures: list[Figure] = []
    for group, name in zip(groups.values(), names, strict=True):
        wide = sorted(
            (one for one in group if not one.parameters["width"]),
            key=lambda one: one.parameters["samples"],
        )
        if wide:
            figures += [*_directions(wide, name), _nulls(wide, name), _dimensions(wide, name)]
            figures += _methods(wide, name)
        figures += _widths(group, name)
    return figures


def _names(firsts: Sequence[Point]) -> list[str]:
    settings = [one.parameters for one in firsts]
    varying = [
        name
        for name in (settings[0] if settings else ())
        if name not in ("samples", "width") and len({str(one[name]) for one in settings}) > 1
    ]
    return [", ".join(_word(name, one[name]) for name in varying) for one in settings]


def _word(name: str, value: object) -> str:
    if name in ("data", "task", "activation"):
        return str(value)
    return f"{value} {name}"


def _suffix(name: str) -> str:
    return "".join(f"-{word}" for word in name.replace(",", "").split())


def _titled(text: str, name: str) -> str:
    return f"{text} ({name})" if name else text


def _subject(point: Point) -> str:
    setting = point.parameters
    data = "Digits" if setting["data"] == "digits" else "MNIST"
    return f"{data}, {'even or odd' if setting['task'] == 'even-odd' else 'ten classes'}"


def _kept(point: Point) -> np.ndarray:
    return np.array(point.metrics[0]["directions"], dtype=float)


def _directions(points: Sequence[Point], name: str) -> list[Figure]:
    """Squared error and error against kept directions, a curve per sample size."""
    if _kept(points[-1]).size < 2:
        return []
    figures = []
    titles = {
        "squared_error": "Too few directions miss the label, too many bring noise",
        "error": "The error is least at some tens of directions",
    }
    for metric, title in titles.items():
        series = []
        for colour, point in enumerate(points):
            x = _kept(point)
            label = f"n = {point.parameters['samples']}"
            y, error = point.mean(metric), point.standard_error(metric)
            series.append(Series(label, x, y, "points", error, colour))
            level = float(point.mean(f"deep_{metric}"))
            flat = np.full(2, level)
            series.append(Series(f"{label}, no filter", x[[0, -1]], flat, "dashed", colour=colour))
        figures.append(
            Figure(
                f"{metric.replace('_', '-')}-by-directions{_suffix(name)}",
                _titled(title, name),
                "directions kept by each filter",
                f"test {metric.replace('_', ' ')}",
                series,
                f"{_subject(points[0])}, infinitely wide networks with filters (points) and of "
                f"{points[0].parameters['depth']} lifts without (dashed), each at its own "
                "leave-one-out penalty. The least over directions is chosen on the test images.",
                x_scale="log",
                y_scale="log",
            )
        )
    return figures


def _methods(points: Sequence[Point], name: str) -> list[Figure]:
    """Squared error over that of the deep network without filters, against samples."""
    points = [one for one in points if at(one, "squared_error") is not None]
    if len(points) < 2:
        return []
    x = np.array([one.parameters["samples"] for one in points], dtype=float)
    series = []
    labels = {f"filters, {USUAL:.0f} directions": "", **{WORDS[key]: key for key in WORDS}}
    for colour, (label, method) in enumerate(labels.items()):
        found = [_over_deep(one, method) for one in points]
        y, error = (np.array(column) for column in zip(*found, strict=True))
        series.append(Series(label, x, y, "points", error, colour))
    ends = x[[0, -1]]
    series.append(Series("deep, no filter", ends, np.ones(2), "dashed", colour=len(series)))
    linear = float(points[-1].mean("linear_squared_error") / points[-1].mean("deep_squared_error"))
    return [
        Figure(
            f"methods{_suffix(name)}",
            _titled("Filters against what has none, on the same splits", name),
            "training images",
            "squared error over that of deep, no filter",
            series,
            f"{_subject(points[0])}. All are infinitely wide, with penalties (and the length of the "
            "Gaussian kernel) by leave-one-out on the training images. Ridge on pixels is at "
            f"{linear:.1f} for the most images.",
        )
    ]


def _over_deep(point: Point, method: str) -> tuple[float, float]:
    """Ratio of mean squared errors, and its standard error from paired replicates."""
    values = point.values(f"{method}_squared_error") if method else at(point, "squared_error")
    deep = point.values("deep_squared_error")
    assert values is not None
    ratio, count = float(values.mean() / deep.mean()), values.size
    if count < 2:
        return ratio, float("nan")
    left = (values - ratio * deep).std(ddof=1)
    return ratio, float(left / np.sqrt(count) / deep.mean())


def _nulls(points: Sequence[Point], name: str) -> Figure:
    series = []
    for colour, point in enumerate(points):
        counts, mean, error = _mean_ratios(point)
        label = f"n = {point.parameters['samples']}"
        series.append(Series(label, counts + 1, mean, "points", error, colour))
    last = max(float(np.max(one.x)) for one in series)
    ends = np.array([1.0, last])
    series.append(Series("as meaningless labels", ends, np.ones(2), "dashed", colour=len(points)))
    return Figure(
        f"null-ratios{_suffix(name)}",
        _titled("Each direction against meaningless labels", name),
        "number of the direction",
        "strength over that of meaningless labels",
        series,
        f"{_subject(points[0])}, first filter. The stronger directions are removed before the labels "
        "are drawn anew; a direction counts while the ratio is above 1.1.",
        x_scale="log",
    )


def _mean_ratios(point: Point) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Ratios at the counts that every replicate tested."""
    rows = [
        dict(zip(one["null_counts"], one["null_ratios"], strict=True))  # type: ignore[arg-type]
        for one in point.metrics
    ]
    counts = [count for count in rows[0] if all(count in row for row in rows)]
    values = np.array([[row[count] for count in counts] for row in rows], dtype=float)
    spread = values.std(axis=0, ddof=1) if len(rows) > 1 else np.full(len(counts), np.nan)
    return np.array(counts, dtype=float), values.mean(axis=0), spread / np.sqrt(len(rows))


def _dimensions(points: Sequence[Point], name: str) -> Figure:
    series = []
    for colour, point in enumerate(points):
        x, label = _kept(point), f"n = {point.parameters['samples']}"
        predicted = point.predicted("residual_dimensions")
        series.append(Series(f"{label}, other images", x, predicted, "line", colour=colour))
        y, error = point.mean("residual_dimensions"), point.standard_error("residual_dimensions")
        series.append(Series(label, x, y, "points", error, colour))
    return Figure(
        f"residual-dimension{_suffix(name)}",
        _titled("What is left is of higher dimension", name),
        "directions removed",
        "residual effective dimension",
        series,
        f"{_subject(points[0])}: variance of the lifted images outside the leading directions, over "
        "the largest along one direction there. A weak feature needs samples in proportion. Lines: "
        "predicted from other images.",
        x_scale="log",
        y_scale="log",
    )


def _widths(points: Iterable[Point], name: str) -> list[Figure]:
    groups = [group for group in by_width(points) if len(group) > 1]
    if not groups:
        return []
    groups.sort(key=lambda group: group[0].parameters["samples"])
    errors = []
    for colour, group in enumerate(groups):
        x = np.array([one.parameters["width"] for one in group], dtype=float)
        label = f"n = {group[0].parameters['samples']}"
        for metric, words, kind in (
            ("squared_error", label, "points"),
            ("limit_squared_error", f"{label}, infinite", "dashed"),
        ):
            y = np.array([float(one.mean(metric)[0]) for one in group])
            error = np.array([float(one.standard_error(metric)[0]) for one in group])
            shown = error if kind == "points" else None
            errors.append(Series(words, x, y, kind, shown, colour))  # type: ignore[arg-type]
        if colour == len(groups) - 1:
            lazy = np.array([float(one.mean("lazy_squared_error")) for one in group])
            error = np.array([float(one.standard_error("lazy_squared_error")) for one in group])
            errors.append(Series(f"{label}, no filter", x, lazy, "points", error, colour + 1))
    # Two hundred images are compared at any n.
    found = np.array([float(one.mean("gram_deviation")) for one in group])
    error = np.array([float(one.standard_error("gram_deviation")) for one in group])
    predicted = np.array([float(one.predicted("gram_deviation")) for one in group])
    grams = [
        Series("theory", x, predicted, "line", colour=0),
        Series("measured", x, found, "points", error, 0),
    ]
    subject = _subject(groups[0][0])
    return [
        Figure(
            f"width{_suffix(name)}",
            _titled("Wider networks approach their kernel", name),
            "random features P",
            "test squared error",
            errors,
            f"{subject}, {USUAL:.0f} directions. Dashed: infinitely wide, same splits. Without "
            "filter: ridge on random features of the same width.",
            x_scale="log",
            y_scale="log",
        ),
        Figure(
            f"gram{_suffix(name)}",
            _titled("Random features approach their kernel at rate one over root P", name),
            "random features P",
            "relative distance of Gram matrices",
            grams,
            f"{subject}: root mean square over 16 lifts of 200 images. Lines: predicted from the "
            "fourth moment of the activation on other images.",
            x_scale="log",
            y_scale="log",
        ),
    ]
