"""Checks of quadratic networks: errors, rank, features, spectra, and what training data tell."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from solvable.frame.checking import spread, worst
from solvable.frame.claims import Finding, NotTestable
from solvable.frame.points import Point
from solvable.models.quadratic.parameters import QuadraticParameters
from solvable.models.quadratic.predict import group_names, group_sizes

LARGEST_SHAPE_EFFECT = 0.1
"""Value of d/n = 1/(alpha d) above which an expansion in it ends: ten samples per coordinate."""

SHAPE_FACTOR = 1.5
"""Deviation of samples beyond the first order in 1/d, relative to the limit, over d/n: 0.3 to 1.5 at
d = 24 to 100 below the interpolation threshold, where it is largest."""

LARGEST_CORRECTION = 0.4
"""First correction in 1/d, relative to the limit, above which the second is no smaller."""

LEAST_SPREAD = 3.0
"""Relative deviation between replicates, times d: 2.4 to 5 over many of them, as measured at d = 24
to 60; three replicates tell their own badly."""

ERRORS = 4.0
"""Standard errors that are granted: with three replicates they are themselves uncertain."""


def setting_of(point: Point) -> tuple[float, int]:
    """Sample ratio and dimension."""
    d = point.parameters["dimension"]
    n = point.parameters["samples"] or round(point.parameters["sample_ratio"] * d**2)
    return n / d**2, d


def where(point: Point) -> str:
    """Words for a place in the study."""
    setting = point.parameters
    ratio, d = setting_of(point)
    shape = (
        f"width ratio {setting['width_ratio']:g}"
        if setting["target"] == "marchenko-pastur"
        else f"exponent {setting['exponent']:g}"
    )
    text = f"n/d^2 = {ratio:.3g}, d = {d}, {setting['target']} target, {shape}"
    text += f", noise {setting['noise']:g}, regularisation {setting['regularisation']:g}"
    return text if setting["sensing"] == "network" else f"{text}, Gaussian sensing"


def shape_effect(point: Point) -> float:
    """Coordinates over samples, d/n, which the shape of a sample's noise goes by; 0 for the control."""
    ratio, d = setting_of(point)
    return 1 / (ratio * d) if point.parameters["sensing"] == "network" else 0.0


def shape_tolerance(point: Point) -> float:
    """Relative size of what the shape of a sample's noise adds."""
    return SHAPE_FACTOR * shape_effect(point)


def error_of(point: Point, name: str, scale: float) -> float:
    """Standard error of a metric, no less than replicates have at this dimension."""
    least = LEAST_SPREAD / setting_of(point)[1] * scale / np.sqrt(point.replicates)
    return max(float(spread(point, name)), least)


def _testable(points: Iterable[Point]) -> list[Point]:
    found = []
    for one in points:
        limit = float(one.predicted("matrix_error"))
        correction = abs(float(one.predicted("finite_size_matrix_error")) - limit)
        noisy = one.parameters["noise"] > 0
        close = correction <= LARGEST_CORRECTION * limit
        if noisy and close and shape_effect(one) <= LARGEST_SHAPE_EFFECT:
            found.append(one)
    return found


UNTESTABLE = (
    "no point has label noise and enough samples for an expansion in 1/d: at least 10 per "
    "coordinate, n/d >= 10; raise dimension or sample_ratio"
)


def _deviation(points: Sequence[Point], name: str, power: float) -> Finding | NotTestable:
    """Worst deviation from the prediction at this size; the error enters with this power."""
    findings = []
    for point in _testable(points):
        limit = float(point.predicted(name))
        expected = float(point.predicted(f"finite_size_{name}"))
        error = error_of(point, name, power * abs(expected))
        second_order = (expected - limit) ** 2 / abs(limit)
        shape = power * shape_tolerance(point) * max(abs(expected), abs(limit))
        findings.append(
            Finding(
                float(point.mean(name)),
                expected,
                shape + second_order + ERRORS * error,
                error,
                point.replicates,
                detail=f"Largest deviation: {where(point)}.",
            )
        )
    return worst(findings) if findings else NotTestable(UNTESTABLE)


def test_error(points: Sequence[Point]) -> Finding | NotTestable:
    """Worst deviation of the error of the matrix, half of the excess risk in the labels."""
    return _deviation(points, "matrix_error", 1.0)


def train_error(points: Sequence[Point]) -> Finding | NotTestable:
    """Worst deviation of the training error, a square of residuals."""
    return _deviation(points, "train_error", 2.0)


def rank(points: Sequence[Point]) -> Finding | NotTestable:
    """Worst deviation of the number of learned directions over d."""
    findings = []
    for point in _testable(points):
        d = setting_of(point)[1]
        error = float(spread(point, "rank_fraction"))
        expected = float(point.predicted("finite_size_rank_fraction"))
        tolerance = 1 / d + shape_tolerance(point) * expected + ERRORS * error
        findings.append(
            Finding(
                float(point.mean("rank_fraction")),
                expected,
                tolerance,
                error,
                point.replicates,
                detail=f"Largest deviation: {where(point)}.",
            )
        )
    return worst(findings) if findings else NotTestable(UNTESTABLE)


def spectrum(points: Sequence[Point]) -> Finding | NotTestable:
    """Largest distance between the distributions of learned eigenvalues, beyond zero."""
    findings = []
    for point in _testable(points):
        if point.prediction["eigenvalues"] is None:
            continue
        d = setting_of(point)[1]
        rank_moved = abs(
            float(point.predicted("finite_size_rank_fraction") - point.predicted("rank_fraction"))
        )
        distance = distribution_distance(
            point.values("eigenvalues"), point.predicted("eigenvalues")
        )
        # Eigenvalues repel: counts scatter by less than one, and steps are 1/d high.
        tolerance = (
            2 / d + rank_moved + shape_tolerance(point) * float(point.predicted("rank_fraction"))
        )
        findings.append(
            Finding(
                distance,
                0.0,
                tolerance,
                None,
                point.replicates,
                "at most",
                detail=f"Largest distance: {where(point)}.",
            )
        )
    return worst(findings) if findings else NotTestable(UNTESTABLE)


def distribution_distance(measured: np.ndarray, quantiles: np.ndarray) -> float:
    """Kolmogorov-Smirnov distance over positive eigenvalues; quantiles at (k - 1/2)/d."""
    pooled, d = np.sort(measured.ravel()), quantiles.size
    places = pooled[pooled > 0]
    if places.size == 0:
        return float(np.mean(quantiles > 0))
    rising = quantiles[::-1]
    expected = np.interp(places, rising, (np.arange(d) + 0.5) / d)
    below = np.searchsorted(pooled, places, "left") / pooled.size
    until = np.searchsorted(pooled, places, "right") / pooled.size
    return float(np.maximum(np.abs(below - expected), np.abs(until - expected)).max())


def features(points: Sequence[Point]) -> Finding | NotTestable:
    """Worst deviation of the error along a group of the target's features."""
    findings = []
    for point in _testable(points):
        setting = model_of(point)
        expected, d = point.predicted("feature_errors"), setting.dimension
        limit = float(point.predicted("matrix_error"))
        correction = abs(float(point.predicted("finite_size_matrix_error")) / limit - 1)
        # Edges of a random target's spectrum move by d^(-2/3) between replicates.
        drawn = d ** (-2 / 3) if setting.target == "marchenko-pastur" else 0.0
        measured, errors = point.mean("feature_errors"), spread(point, "feature_errors")
        sizes = group_sizes(setting)
        for k, name in enumerate(group_names(setting)):
            # One direction has an error of d terms, relative variance 2/d; all move together too.
            relative = max(np.sqrt(2 / (d * sizes[k])), LEAST_SPREAD / d)
            least = relative * float(expected[k]) / np.sqrt(point.replicates)
            error = max(float(errors[k]), least)
            # The expansion tells the size of the whole shift, not along which features it goes.
            shift = (correction + shape_tolerance(point)) * max(float(expected[k]), limit)
            findings.append(
                Finding(
                    float(measured[k]),
                    float(expected[k]),
                    shift + drawn * float(expected[k]) + ERRORS * error,
                    error,
                    point.replicates,
                    detail=f"Largest deviation: {name}, {where(point)}.",
                )
            )
    return worst(findings) if findings else NotTestable(UNTESTABLE)


def decomposition(points: Sequence[Point]) -> Finding | NotTestable:
    """Worst relative difference between the predicted error and the sum over its features."""
    findings = []
    for point in points:
        total = float(point.predicted("matrix_error"))
        sizes = group_sizes(model_of(point))
        summed = float(point.predicted("feature_errors") @ sizes / sizes.sum())
        if total > 0:
            findings.append(
                Finding(summed / total, 1.0, 3e-3, replicates=0, detail=f"At {where(point)}.")
            )
    return worst(findings) if findings else NotTestable("no point has an error to decompose")


def model_of(point: Point) -> QuadraticParameters:
    """Parameters of a point."""
    return QuadraticParameters(**point.parameters)
