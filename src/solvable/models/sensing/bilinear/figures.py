"""Figures of bilinear sequence regression: lines are theory, points are measurements."""

from __future__ import annotations

from collections.abc import Sequence

from solvable.frame.curves import Axis, Curve
from solvable.frame.panels import Panel
from solvable.frame.points import Point
from solvable.frame.traces import Trace
from solvable.models.sensing import information
from solvable.models.sensing.bilinear.parameters import BilinearParameters
from solvable.models.sensing.information import bayes
from solvable.plots.figure import Marker

THRESHOLDS = {"recovery_ratio": "recovery", "nuclear_norm_ratio": "nuclear norm"}
"""Thresholds for noiseless labels, drawn as vertical lines."""

SAMPLES = Axis("sample_ratio", "sample ratio n/(dL)", scale="linear")
"""The system's own axis, for panels that are drawn if the overlaid parameter varies."""


def descending(curve: Curve) -> bool:
    """Return True for curves of gradient descent."""
    return bool(curve.setting.estimator == "gradient-descent")


def per_parameter(setting: BilinearParameters) -> float:
    """Samples over free parameters of the factors, n / (r (d + L))."""
    return setting.samples / (setting.rank * sum(setting.shape))


def weak_recovery_line(curves: Sequence[Curve]) -> list[Marker]:
    """Return the threshold of weak recovery, which is equal for all ranks."""
    known = next((p for curve in curves for p in curve.points if not p.refused), None)
    if known is None:
        return []
    return [Marker(float(known.predicted("weak_recovery_per_parameter")), "weak recovery")]


def bracket(points: Sequence[Point]) -> tuple[float, float]:
    """Middle and half width of the gap between the last error above 0.002 and the first below it."""
    known = sorted((p.setting.sample_ratio, float(p.mean("matrix_error"))) for p in points)
    left = [x for x, error in known if not error <= 0.002]
    right = [x for x, error in known if error <= 0.002 and (not left or x > left[-1])]
    if not (left and right) or points[0].setting.noise > 0:
        return float("nan"), float("nan")
    return (left[-1] + right[0]) / 2, (right[0] - left[-1]) / 2


PANELS = (
    Panel(
        "matrix-error",
        "Error of the weight matrix",
        "matrix error E",
        [
            Trace("matrix_error", "Bayes-optimal"),
            Trace("ridge_error", "ridge on all entries", dashed=True),
        ],
        "Matrix error against samples per entry. Lines: predicted errors of the Bayes-optimal estimator "
        "and of ridge regression; points: measured errors of message passing and ridge regression. "
        "Vertical lines: sample ratios above which the Bayes-optimal estimator and the least nuclear "
        "norm recover the matrix from noiseless labels.",
        markers=THRESHOLDS,
        y_range=(-0.02, 1.02),
        when=bayes,
    ),
    Panel(
        "test-error",
        "Error on fresh sequences",
        "test error (mean squared)",
        [
            Trace("test_error", "against clean labels"),
            Trace("noisy_test_error", "against noisy labels"),
        ],
        "The test error equals the matrix error; on noisy labels, add the noise variance.",
        markers={"recovery_ratio": "recovery"},
        when=bayes,
    ),
    Panel(
        "ranks",
        "Matrix error for each rank",
        "matrix error E",
        [Trace("matrix_error", "")],
        "Bayes-optimal error (lines) and error of message passing (points) for each rank ratio.",
        markers={"recovery_ratio": ""},
        overlay=("rank_ratio",),
        along=SAMPLES,
        y_range=(-0.02, 1.02),
        when=bayes,
    ),
    Panel(
        "per-parameter",
        "Matrix error against samples over free parameters",
        "matrix error E",
        [Trace("matrix_error", ""), Trace("ridge_error", "ridge", dashed=True, measured=False)],
        "Bayes-optimal error (lines), error of message passing (points) and of ridge regression "
        "(dashed) for each rank ratio. Vertical line: samples above which a matrix of vanishing rank "
        "is found at all (weak recovery).",
        markers=weak_recovery_line,
        overlay=("rank_ratio",),
        along=Axis("sample_ratio", "sample ratio n/(r(d+L))", value=per_parameter),
        y_range=(-0.02, 1.02),
        when=bayes,
    ),
    Panel(
        "aspects",
        "Matrix error for each aspect ratio",
        "matrix error E",
        [Trace("matrix_error", "")],
        "Bayes-optimal error (lines) and error of message passing (points) for each aspect ratio. "
        "Dashed: limit of infinite aspect ratio.",
        once=[Trace("infinite_aspect_error", "L/d infinite", dashed=True, measured=False)],
        overlay=("aspect",),
        along=SAMPLES,
        y_range=(-0.02, 1.02),
        when=bayes,
    ),
    Panel(
        "estimators",
        "Matrix error for each estimator",
        "matrix error E",
        [Trace("matrix_error", "")],
        "Predicted errors (lines) and measured errors (points) of each estimator.",
        markers=THRESHOLDS,
        overlay=("estimator",),
        along=SAMPLES,
        y_range=(-0.02, 1.22),
        when=lambda curve: curve.setting.noise == 0 and not descending(curve),
    ),
    Panel(
        "thresholds",
        "Samples for exact recovery without noise",
        "sample ratio n/(dL)",
        [Trace("threshold_ratio", "", reduce=bracket)],
        "Predicted thresholds of exact recovery (lines, for whole ranks). Points: middle of the two "
        "sample ratios between which the measured error falls below 0.002; the bar spans both.",
        along=Axis("rank_ratio", "rank ratio r/d", resolution=12),
        overlay=("estimator",),
        y_range=(-0.02, 1.05),
        when=lambda curve: curve.setting.noise == 0 and not descending(curve),
    ),
    Panel(
        "descent",
        "Gradient descent from random starts",
        "matrix error E",
        [
            Trace("single_error", "one start"),
            Trace("matrix_error", "average of all starts"),
            Trace("bayes_error", "Bayes-optimal", measured=False, dashed=True),
        ],
        "Measured errors of gradient descent and of the average of its estimates. Lines: errors if "
        "each start were a draw of the posterior. Dashed: Bayes-optimal error.",
        y_range=(-0.02, 2.22),
        when=descending,
    ),
    *information.PANELS,
    Panel(
        "matrix-error-by-aspect",
        "Matrix error against aspect ratio",
        "matrix error E",
        [Trace("matrix_error", "")],
        "Bayes-optimal error (line) and error of message passing (points) at fixed samples per entry.",
        along=Axis("aspect", "aspect ratio L/d"),
        y_range=(-0.02, 1.02),
        when=bayes,
    ),
)
