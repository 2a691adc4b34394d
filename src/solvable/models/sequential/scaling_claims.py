"""Claims of sequential feature recovery about exponents, windows and the expansion of eigenvectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from solvable.frame.agreement import Agreement, Cell
from solvable.frame.conditions import above, at_least, below, inside
from solvable.frame.estimates import Estimate, Slope, grouped_but
from solvable.frame.points import Point
from solvable.models.sequential.crossings import ALONG, crossings, large_enough, overlap_tables

PAPER = "arXiv:2605.14567"

ACROSS = ("dimension", "decay", *ALONG)
"""Names of the parameters in which the points of one claim across curves may differ."""


def at_threshold(point: Point, *, predicted: bool = False) -> np.ndarray:
    """Mean overlap of the features whose threshold is within 10 % of n; NaN if there are none."""
    overlaps = point.predicted("squared_overlap") if predicted else point.values("squared_overlap")
    near = np.abs(np.log(point.setting.samples / point.predicted("threshold_samples"))) < 0.1
    if near.shape != overlaps.shape[-1:] or not near.any():
        return np.full(() if predicted else (point.replicates,), np.nan)
    return np.asarray(overlaps[..., near].mean(axis=-1))


Number = Callable[[np.ndarray, np.ndarray], float]
"""Number computed from sample sizes (m,) and overlaps (m, p) of a curve."""


Pairs = Callable[[Sequence[Point]], tuple[float, float] | None]
"""Measured and predicted number computed from points, or None."""


def by_dimension(number: Pairs) -> Pairs:
    """Return the mean over dimensions of a pair of measured and predicted numbers."""

    def estimate(points: Sequence[Point]) -> tuple[float, float] | None:
        found = [number(group) for group in grouped_but(points, ("decay", *ALONG))]
        pairs = [pair for pair in found if pair is not None and np.isfinite(pair).all()]
        if not pairs:
            return None
        measured, expected = np.mean(pairs, axis=0)
        return float(measured), float(expected)

    return estimate


def slope_along_decay(number: Number) -> Pairs:
    """Return an estimate of the slope of a number of a curve against gamma, measured and predicted."""

    def estimate(points: Sequence[Point]) -> tuple[float, float] | None:
        rows = []
        for group in grouped_but(points, ALONG):
            if (tables := overlap_tables(group)) is not None:
                samples, *sides = tables
                rows.append((group[0].setting.decay, *(number(samples, side) for side in sides)))
        table = np.array(rows, dtype=float).reshape(-1, 3)
        if len(table) < 3 or not np.isfinite(table).all():
            return None
        decay, *numbers = table.T
        measured, expected = (float(np.polyfit(decay, values, 1)[0]) for values in numbers)
        return measured, expected

    return estimate


def log_first(samples: np.ndarray, overlaps: np.ndarray) -> float:
    """Logarithm of the sample size at which the first feature passes an overlap of 0.5."""
    return float(np.log(crossings(samples, overlaps)[0]))


def log_window(samples: np.ndarray, overlaps: np.ndarray) -> float:
    """Logarithm of the ratio of the sample sizes at which the last and the first feature pass 0.5."""
    sizes = crossings(samples, overlaps)
    return float(np.log(sizes[-1] / sizes[0]))


def log_rise(samples: np.ndarray, overlaps: np.ndarray) -> float:
    """Logarithm of the ratio of the sample sizes at which the mean overlap passes 0.6 and 0.2."""
    mean = overlaps.mean(axis=1, keepdims=True)
    return float(np.log(crossings(samples, mean, 0.6)[0] / crossings(samples, mean, 0.2)[0]))


def jump(points: Sequence[Point]) -> tuple[float, float] | None:
    """Measured and predicted width of the rise without decay, relative to that of the largest decay."""
    groups = {group[0].setting.decay: group for group in grouped_but(points, ALONG)}
    if len(groups) < 2 or 0.0 not in groups:
        return None
    tables = [overlap_tables(groups[decay]) for decay in (0.0, max(groups))]
    flat, decaying = (
        np.array([log_rise(table[0], side) for side in table[1:]]) if table else np.full(2, np.nan)
        for table in tables
    )
    measured, expected = flat / decaying
    return float(measured), float(expected)


def count(point: Point) -> np.ndarray:
    """Number of features with a squared overlap above 0.5, for each replicate."""
    return np.asarray((point.values("squared_overlap") > 0.5).sum(axis=1), dtype=float)


def on_the_staircase(point: Point) -> bool:
    """Return True if the power law of the number of recovered features applies."""
    # Below three features and above half of them, the ends of the spectrum of weights matter.
    found = float(point.predicted("features_above_half"))
    return large_enough(point) and 3 <= found <= point.setting.feature_count / 2


def first_loss(point: Point, *, predicted: bool = False) -> np.ndarray:
    """Overlap that the first feature loses, far above its threshold; NaN elsewhere."""
    overlaps = point.predicted("squared_overlap") if predicted else point.values("squared_overlap")
    far = point.setting.samples > 8 * point.predicted("threshold_samples").flat[0]
    return np.asarray(np.where(far, 1 - overlaps[..., 0], np.nan))


def learned_energy(point: Point) -> np.ndarray:
    """Share of the variance of the label that is learned, for each replicate."""
    return np.asarray(1 - point.values("normalised_mse"))


def over_the_tail(point: Point) -> np.ndarray:
    """Measured error divided by the predicted loss of the unrecovered features alone."""
    return np.asarray(point.values("normalised_mse") / tail(point))


def tail(point: Point) -> np.ndarray:
    """Predicted loss of the unrecovered features; NaN if all features are recovered."""
    loss = point.predicted("normalised_mse_tail_only")
    return np.where(loss > 0, loss, np.nan)


def far(cell: Cell) -> bool:
    """Return True if the first order of the expansion in the noise holds for a feature."""
    small = cell.predicted("loss_outside_span") + cell.predicted("loss_inside_span") < 0.15
    return bool(large_enough(cell) and small and not cell.setting.skewed)


def inside_cells(point: Point) -> np.ndarray:
    """Mask of the features whose mixing with other features can be measured."""
    inside, outside = (point.predicted(f"loss_{side}_span") for side in ("inside", "outside"))
    # A mixing below 0.003 is no larger than the overlap of a learned direction with a random one.
    return np.asarray((inside > 0.003) & (inside < 0.1) & (outside < 0.3))


def mean_inside(points: Sequence[Point]) -> tuple[float, float] | None:
    """Ratio of measured to predicted mixing with all other features, and its expected value 1."""
    ratios = []
    for point in points:
        cells = inside_cells(point)
        measured, theory = (
            read("loss_inside_span") / (1 - read("loss_outside_span"))
            for read in (point.values, point.predicted)
        )
        ratios.append(measured[:, cells].mean(axis=0) / theory[cells])
    return (float(np.concatenate(ratios).mean()), 1.0) if ratios else None


def bound_exponent(points: Sequence[Point]) -> tuple[float, float] | None:
    """Slope of log(samples that Davis and Kahan demand / samples needed) against log(rank)."""
    tables = overlap_tables(points)
    if tables is None or tables[1].shape[1] < 10:
        return None
    samples, *sides = tables
    demanded = points[0].predicted("davis_kahan_samples")
    rows = [np.log(demanded / crossings(samples, side)) for side in sides]
    rank = np.arange(1.0, demanded.size + 1)
    rank[:1] = np.nan
    table = np.array([np.log(rank), *rows])
    logs, *ratios = table[:, np.isfinite(table).all(axis=0)]
    if logs.size < 5:
        return None
    measured, expected = (float(np.polyfit(logs, ratio, 1)[0]) for ratio in ratios)
    return measured, expected


# fmt: off
SCALING_CLAIMS = (
    Slope("transition-sharpens",
        "The squared overlap at the threshold, which is 0 in the limit of large D, falls as a power of "
        "the number D of directions. The exponent equals its prediction (-1/3 in the limit of large D).",
        "derivations/sequential (26)", metric=at_threshold,
        expected=lambda point: at_threshold(point, predicted=True),
        along="n_features_total", ignore=("dimension", *ALONG), within=0.08, power=0.5,
        because="0.08: predicted overlaps at the threshold are accurate to about 0.01, a tenth of "
        "their value.",
        missing="fewer than three dimensions have a sample size within 10 % of a threshold; run with "
        "--preset sharpening"),
    Estimate("first-feature-is-earlier",
        "With a larger gamma the first feature passes an overlap of 0.5 at fewer samples. The slope of "
        "log(samples) against gamma equals its prediction.",
        f"{PAPER}, Figure 3; derivations/sequential (7)",
        estimate=by_dimension(slope_along_decay(log_first)), apart=ACROSS, within=0.2, power=0.4,
        because="0.2: the crossings are interpolated between sample sizes a factor of two apart.",
        missing="fewer than three values of decay have a sample size on each side of the first crossing; "
        "run with --preset dimensions"),
    Estimate("window-is-wider",
        "With a larger gamma the ratio of the sample sizes of the last and the first feature is larger. "
        "The slope of its logarithm against gamma equals its prediction.",
        f"{PAPER}, Figure 3; derivations/sequential (7)",
        estimate=by_dimension(slope_along_decay(log_window)), apart=ACROSS, within=0.3, power=0.4,
        because="0.3: two crossings are interpolated between sample sizes a factor of two apart.",
        missing="fewer than three values of decay have sample sizes on each side of all crossings; run "
        "with --preset dimensions"),
    Estimate("jump-without-decay",
        "Without a power law (gamma = 0) all features appear at once. The rise of the mean overlap from "
        "0.2 to 0.6 is narrower in log(samples) than at the largest gamma, by the predicted factor.",
        f"{PAPER}, Figure 3; derivations/sequential (6)",
        estimate=by_dimension(jump), apart=ACROSS, within=0.08, power=0.5,
        because="0.08: the ends of the rise are interpolated between sample sizes a factor of two apart.",
        missing="no dimension has decay 0, another decay, and sample sizes on each side of the rise; run "
        "with --preset dimensions"),
    Slope("staircase-exponent",
        "The number of features with a squared overlap above 0.5 grows as the power 1/(2 gamma) of the "
        "number of samples.",
        f"{PAPER}, Corollary 3.1; derivations/sequential (30)", metric=count,
        expected="asymptotic_features_above_half", along="samples", ignore=ALONG,
        span=3.0, within=0.12, power=0.5,
        because="0.12: the number changes in whole steps, and exceeds the power law while it is small.",
        where=({"feature_count": at_least(32), "decay": above(0)}, on_the_staircase),
        missing="no curve with decay > 0 has at least 32 features and three sample sizes at which "
        "three to half of them are recovered; run with --preset exponents"),
    Slope("loss-exponent",
        "Far above its threshold the first feature loses an overlap that falls as a power of n. The "
        "exponent equals its prediction (-1 for Gaussian features).",
        f"{PAPER}, Theorem 3.1; derivations/sequential (9)", metric=first_loss,
        expected=lambda point: first_loss(point, predicted=True), along="samples",
        ignore=ALONG, span=4.0, within=0.1, power=0.3,
        because="0.1: the formula leaves out higher orders in D/n.", where=large_enough,
        missing="no curve has three sample sizes above eight times the threshold of the first feature; "
        "run with --preset gaussian"),
    Slope("learned-energy-exponent",
        "For gamma < 1/2 the share of the variance of the label that is learned grows as a power of n. "
        "The exponent equals that of the predicted share (1/(2 gamma) - 1 for infinitely many features).",
        f"{PAPER}, Theorem 3.2; derivations/sequential (31)", metric=learned_energy,
        expected=lambda point: 1 - float(point.predicted("normalised_mse")), along="samples",
        ignore=ALONG, span=3.0, within=0.06, power=0.2,
        because="0.06: the formula leaves out terms of order D/n.",
        where={"feature_count": at_least(32), "decay": inside(0, 0.5), "second_layer": "least-squares",
               "normalised_mse": below(0.95)},
        missing="no curve has 0 < decay < 1/2, at least 32 features and three sample sizes with a "
        "learned energy above 0.05; run with --preset learned-energy"),
    Agreement("tail-is-too-low",
        "Where recovered features are predicted to lose more than a third of the error, the error is "
        "larger than the loss of the unrecovered features alone, by the predicted factor.",
        over_the_tail, f"{PAPER}, Theorem 3.2; derivations/sequential (11)", within=0.1,
        expected=lambda point: point.predicted("normalised_mse") / tail(point),
        relative=True, power=0.3,
        because="10 %: errors are twice as sensitive to finite-size corrections as overlaps are.",
        where={"second_layer": "least-squares", "n/D of at least 7.5 (30 for label_map=identity)":
               large_enough, "normalised_mse_tail_only": above(0.01),
               "normalised_mse": above(1.5, "normalised_mse_tail_only")},
        missing="raise samples or features"),
    Agreement("loss-outside-span",
        "The part of each learned direction outside the span of the features is the one of the "
        "expansion in the noise, D tau_2h/(n theta²), plus the loss at infinite n.",
        "loss_outside_span", f"{PAPER}, Equation 3.2; derivations/sequential (28)", within=0.15,
        relative=True, entry="feature", power=0.4,
        because="15 %: the expansion leaves out the second order in the noise.", where=far,
        missing="no feature is predicted to lose less than 0.15 of its overlap; raise samples"),
    Estimate("loss-inside-span",
        "The part of each learned direction along other features equals that of the expansion in the "
        "noise, which has no factor D.",
        f"{PAPER}, Equation 3.2; derivations/sequential (28)",
        estimate=mean_inside, where=lambda point: bool(inside_cells(point).any()), within=0.25, power=0.5,
        because="A quarter of the mean over features: the expansion leaves out the second order.",
        missing="no feature is predicted to mix with others by 0.003 to 0.1; run with --preset gaussian"),
    Estimate("davis-kahan-exponent",
        "The bound of Davis and Kahan demands more samples than feature k needs, by a power of k. The "
        "exponent equals its prediction (2 in the limit of large k).",
        f"{PAPER}, Section 3; derivations/sequential (29)",
        estimate=bound_exponent, apart=ALONG, within=0.2, power=0.2,
        because="0.2: the crossings are interpolated between sample sizes a factor of two apart.",
        missing="fewer than ten features, or fewer than five that pass a squared overlap of 0.5; run "
        "with --preset gaussian"),
)
