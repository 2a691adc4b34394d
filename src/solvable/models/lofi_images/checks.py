"""Checks of filters on images; differences are paired by the split of the images."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Literal, TypeAlias

import numpy as np

from solvable.frame.checking import spread, worst
from solvable.frame.claims import Finding, NotTestable
from solvable.frame.points import Point

USUAL = 40.0
"""Kept directions at which methods are compared."""

Kind: TypeAlias = Literal["at least", "at most"]

LEAST_SAMPLES = 400
"""Samples from which filters are claimed to help."""


def where(point: Point) -> str:
    """Words for a place in the study."""
    setting = point.parameters
    text = f"{setting['data']}, {setting['task']}, n = {setting['samples']}"
    filters = f"{setting['filters']} filter" + ("s" if setting["filters"] > 1 else "")
    return f"{text}, {filters}" + (f", width {setting['width']}" if setting["width"] else "")


def at(point: Point, name: str, k: float = USUAL) -> np.ndarray | None:
    """Values of a metric at a number of directions, one a replicate; None where not tried."""
    directions = list(point.metrics[0]["directions"])  # type: ignore[arg-type]
    if k not in directions:
        return None
    return np.asarray(point.values(name)[:, directions.index(k)])


def _infinite(points: Iterable[Point], task: str = "even-odd") -> list[Point]:
    return [one for one in points if one.parameters["task"] == task and not one.parameters["width"]]


def _ratio(
    values: np.ndarray, reference: np.ndarray, limit: float, kind: Kind, point: Point, words: str
) -> Finding:
    """Finding that the ratio of two means of the same replicates is above or below a limit."""
    ratio, count = float(values.mean() / reference.mean()), values.size
    left = values - ratio * reference
    error = float(left.std(ddof=1) / np.sqrt(count) / reference.mean()) if count > 1 else 0.0
    detail = f"{words} {where(point)}."
    return Finding(ratio, limit, 2 * error, error, count, kind, detail)


def _worst_of(
    points: Iterable[Point], judge: Callable[[Point], Finding | None], missing: str
) -> Finding | NotTestable:
    findings = [found for found in map(judge, points) if found is not None]
    return worst(findings) if findings else NotTestable(missing)


def few_directions(points: Sequence[Point]) -> Finding | NotTestable:
    """Smallest ratio of the error at 5 directions to that at 40."""

    def judge(point: Point) -> Finding | None:
        few, usual = at(point, "error", 5.0), at(point, "error")
        if few is None or usual is None or point.parameters["samples"] < LEAST_SAMPLES:
            return None
        words = f"Error {few.mean():.4f} against {usual.mean():.4f};"
        return _ratio(few, usual, 2.0, "at least", point, words)

    return _worst_of(
        _infinite(points),
        judge,
        "no point of task even-odd has 5 and 40 directions and 400 samples; set directions=0",
    )


def many_directions(points: Sequence[Point]) -> Finding | NotTestable:
    """Smallest ratio of the squared error at the most directions to the least."""

    def judge(point: Point) -> Finding | None:
        directions = np.array(point.metrics[0]["directions"], dtype=float)
        if directions[-1] < 160 or directions.size < 3:
            return None
        values = point.values("squared_error")
        best = int(np.argmin(values.mean(axis=0)))
        words = (
            f"Squared error {values[:, -1].mean():.4f} at {directions[-1]:.0f} directions, "
            f"{values[:, best].mean():.4f} at {directions[best]:.0f};"
        )
        return _ratio(values[:, -1], values[:, best], 1.03, "at least", point, words)

    return _worst_of(
        _infinite(points),
        judge,
        "no point of task even-odd tries 160 directions; set directions=0 and samples=400 or more",
    )


def below_unfiltered(points: Sequence[Point]) -> Finding | NotTestable:
    """Largest ratio of the squared error at 40 directions to that without filters."""

    def judge(point: Point) -> Finding | None:
        filtered = at(point, "squared_error")
        if filtered is None or point.parameters["samples"] < LEAST_SAMPLES:
            return None
        deep = point.values("deep_squared_error")
        words = f"Squared error {filtered.mean():.4f} against {deep.mean():.4f};"
        return _ratio(filtered, deep, 0.95, "at most", point, words)

    return _worst_of(
        _infinite(points),
        judge,
        f"no point of task even-odd has 40 directions and {LEAST_SAMPLES} samples",
    )


def mnist_headline(points: Sequence[Point]) -> Finding | NotTestable:
    """The ratio of errors or of squared errors at 1,000 images of MNIST that is closer to failing."""

    def judge(point: Point) -> Finding | None:
        setting = point.parameters
        if (setting["data"], setting["samples"], setting["depth"]) != ("mnist-5k", 1000, 3):
            return None
        errors, squares = at(point, "error"), at(point, "squared_error")
        if errors is None or squares is None:
            return None
        deep, deep_square = point.values("deep_error"), point.values("deep_squared_error")
        words = (
            f"Error {errors.mean():.4f} against {deep.mean():.4f}, squared error "
            f"{squares.mean():.4f} against {deep_square.mean():.4f};"
        )
        found = [
            _ratio(errors, deep, 1 - 0.003 / float(deep.mean()), "at most", point, words),
            _ratio(squares, deep_square, 0.9, "at most", point, words),
        ]
        return worst(found)

    return _worst_of(
        _infinite(points), judge, "no point has MNIST at 1,000 samples; run with --preset paper"
    )


def digits_squared_error(points: Sequence[Point]) -> Finding | NotTestable:
    """Squared error of two filters of 40 on digits at 600 samples."""

    def judge(point: Point) -> Finding | None:
        setting = point.parameters
        if (setting["data"], setting["samples"], setting["filters"]) != ("digits", 600, 2):
            return None
        values = at(point, "squared_error")
        if values is None or setting["activation"] != "relu":
            return None
        error = float(values.std(ddof=1) / np.sqrt(values.size)) if values.size > 1 else 0.0
        return Finding(float(values.mean()), 0.073, 0.006, error, values.size)

    return _worst_of(
        _infinite(points), judge, "no point has digits, 600 samples and 2 filters of 40"
    )


def ten_digits(points: Sequence[Point]) -> Finding | NotTestable:
    """Error of the best number of directions on ten digits at 800 samples."""

    def judge(point: Point) -> Finding | None:
        setting = point.parameters
        if (setting["data"], setting["samples"]) != ("digits", 800):
            return None
        values = point.values("error")
        best = int(np.argmin(values.mean(axis=0)))
        error = float(spread(point, "error")[best])
        return Finding(
            float(values[:, best].mean()), 0.011, 2 * error, error, len(values), "at most"
        )

    return _worst_of(
        _infinite(points, "ten-class"),
        judge,
        "no point has ten classes of digits at 800 samples; run with --preset classes",
    )


def lazy_is_worse(points: Sequence[Point]) -> Finding | NotTestable:
    """Largest ratio of the squared error of a filtered network to that of lazy features."""

    def judge(point: Point) -> Finding | None:
        values = at(point, "squared_error")
        if values is None or point.parameters["task"] != "even-odd":
            return None
        lazy = point.values("lazy_squared_error")
        words = f"Squared error {values.mean():.4f} against {lazy.mean():.4f};"
        return _ratio(values, lazy, 1.0, "at most", point, words)

    finite = [one for one in points if one.parameters["width"]]
    return _worst_of(finite, judge, "no point has a finite width and 40 directions; set width")


def by_width(points: Iterable[Point]) -> list[list[Point]]:
    """Points of finite width that differ in the width alone, each group sorted by it."""
    found: dict[tuple[object, ...], list[Point]] = {}
    for point in points:
        if point.parameters["width"]:
            key = tuple(v for name, v in point.parameters.items() if name != "width")
            found.setdefault(key, []).append(point)
    return [sorted(group, key=lambda one: one.parameters["width"]) for group in found.values()]


def gap_to_limit(point: Point) -> np.ndarray:
    """Squared error less that of the infinitely wide network, one a replicate."""
    return np.asarray((point.values("squared_error") - point.values("limit_squared_error"))[:, 0])


def _squared_error_of_mean(values: np.ndarray) -> float:
    return float(values.var(ddof=1) / values.size) if values.size > 1 else 0.0


def width_converges(points: Sequence[Point]) -> Finding | NotTestable:
    """Largest growth of the gap to the limit from a width to the next."""
    findings = []
    for group in by_width(points):
        for narrow, wide in pairwise(group):
            gaps = [np.abs(gap_to_limit(one)) for one in (narrow, wide)]
            if not all(np.isfinite(one).all() for one in gaps):
                continue
            error = float(np.sqrt(sum(_squared_error_of_mean(one) for one in gaps)))
            findings.append(
                Finding(
                    float(gaps[1].mean() - gaps[0].mean()),
                    0.0,
                    3 * error,
                    error,
                    gaps[1].size,
                    "at most",
                    f"Gaps {gaps[0].mean():.4f} and {gaps[1].mean():.4f}; {where(wide)}.",
                )
            )
    return worst(findings) if findings else NotTestable("fewer than two finite widths; set width")


def gram_rate(points: Sequence[Point]) -> Finding | NotTestable:
    """Worst relative deviation of the distance of Gram matrices from the predicted one."""

    def judge(point: Point) -> Finding | None:
        ratios = point.values("gram_deviation") / float(point.predicted("gram_deviation"))
        # Sixteen lifts whose distance is that of one Gaussian mode: .18 of it at least.
        error = max(0.18, float(ratios.std())) / np.sqrt(ratios.size)
        return Finding(
            float(ratios.mean()),
            1.0,
            0.1 + 3 * error,
            error,
            ratios.size,
            detail=f"Relative to the prediction; {where(point)}.",
        )

    finite = [one for one in points if one.parameters["width"]]
    return _worst_of(finite, judge, "no point has a finite width; set width")


def permuted(points: Sequence[Point]) -> Finding | NotTestable:
    """Mean ratio of permuted labels, over all infinitely wide points."""
    values = [one.values("permuted_ratio") for one in points if not one.parameters["width"]]
    if not values:
        return NotTestable("no point is infinitely wide; set width=0")
    ratios = np.concatenate(values)
    error = max(0.2, float(ratios.std())) / np.sqrt(ratios.size)
    return Finding(float(ratios.mean()), 1.0, 0.1 + 3 * error, error, ratios.size)


def null_ratio(point: Point, count: float) -> np.ndarray:
    """Ratio to meaningless labels with so many directions removed; NaN where not tested."""
    found = []
    for metrics in point.metrics:
        counts = list(metrics["null_counts"])  # type: ignore[arg-type]
        ratios = list(metrics["null_ratios"])  # type: ignore[arg-type]
        found.append(ratios[counts.index(count)] if count in counts else np.nan)
    return np.array(found, dtype=float)


def stands_out(points: Sequence[Point]) -> Finding | NotTestable:
    """Smallest ratio of the second direction to meaningless labels."""

    def judge(point: Point) -> Finding | None:
        if point.parameters["samples"] < 300:
            return None
        ratios = null_ratio(point, 1.0)
        words = (
            f"With {point.metrics[0]['significant']:.0f} directions kept in the first replicate;"
        )
        return _ratio(ratios, np.ones_like(ratios), 3.0, "at least", point, words)

    return _worst_of(
        _infinite(points), judge, "no point of task even-odd has 300 samples and width=0"
    )


def auto_near_best(points: Sequence[Point]) -> Finding | NotTestable:
    """Largest ratio of the squared error at chosen directions to the least."""

    def judge(point: Point) -> Finding | None:
        if len(list(point.metrics[0]["directions"])) < 3:  # type: ignore[arg-type]
            return None
        values = point.values("squared_error")
        best = values[:, int(np.argmin(values.mean(axis=0)))]
        chosen = point.values("auto_squared_error")
        kept = float(point.mean("significant"))
        words = f"Squared error {chosen.mean():.4f} at about {kept:.0f}, least {best.mean():.4f};"
        return _ratio(chosen, best, 1.15, "at most", point, words)

    wide = [one for one in points if not one.parameters["width"]]
    return _worst_of(wide, judge, "no infinitely wide point tries several numbers of directions")
