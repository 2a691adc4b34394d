"""Figures of the single attention head: lines are theory, points are measurements."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from solvable.frame.curves import Curve
from solvable.frame.panels import Panel
from solvable.frame.points import Point
from solvable.frame.spectrum import Law, Spectrum
from solvable.frame.traces import Trace, draw_markers
from solvable.models.attention.single_head.parameters import AXIS, NOISELESS_PENALTY
from solvable.models.attention.single_head.predict import state_of
from solvable.plots.figure import Marker

RECOVERY = {"recovery_ratio": "recovery"}


def thresholds(curves: Sequence[Curve]) -> list[Marker]:
    """Mark the sample ratio of interpolation for noisy labels, or of recovery without noise."""
    name = {"interpolation_ratio": "interpolation"} if curves[0].setting.noise else RECOVERY
    return draw_markers(name, curves[0], None)


def of(metric: str) -> list[Trace]:
    """Traces of a metric: limit, prediction with first order in 1/d, and measurements."""
    name = f"finite_size_{metric}"
    return [
        Trace(metric, ""),
        Trace(name, "first order in 1/d, d = {dimension}", theory=None, dashed=True, colour=0,
              value=lambda point: None if point.refused else (point.predicted(name), np.nan)),
    ]  # fmt: skip


ERROR = Panel(
    "error", "Error of the learned matrix", "matrix error (|S − S*|²/d)", of("matrix_error"),
    "Line: limit; dashed: limit plus first order in 1/d; points: trained heads.",
    markers=thresholds, y_scale="log",
)  # fmt: skip
NOISELESS = Panel(
    "noiseless-error", "Error without label noise", "matrix error (|S − S*|²/d)",
    [Trace("noiseless_matrix_error", "trained without noise")],
    "The samples of the other figures, with labels without noise, at the penalty "
    f"{NOISELESS_PENALTY:g} (line: limit). Above the marked threshold the error "
    "vanishes with the penalty.",
    markers=RECOVERY, y_scale="log",
    when=lambda curve: any(point.setting.trained_without_noise for point in curve.points),
)  # fmt: skip
TEST = Panel(
    "test-error", "Test error", "squared error of the attention matrix",
    of("test_error"),
    "Squared error on noiseless test labels. At vanishing regularisation it peaks at the interpolation "
    "threshold; a finite regularisation smooths the peak.",
    markers=thresholds, y_scale="log",
)  # fmt: skip
TRAIN = Panel(
    "train-error", "Training error", "training error (mean squared)", of("train_error"),
    "Mean squared error on the training labels; 0 below interpolation at vanishing regularisation.",
    markers=thresholds,
)  # fmt: skip
RANK = Panel(
    "rank", "Learned directions", "rank / d", [Trace("rank_fraction", "")],
    "Rank of the learned matrix over d. A width above this rank has no effect.", y_range=(0.0, 1.02),
    when={"trained": "weights"},
)  # fmt: skip


def shown_spectra(curve: Curve) -> list[Point]:
    """First, middle and last of the points that have a predicted spectrum."""
    points = [p for p in curve.points if p.prediction.get("eigenvalues") is not None]
    return [points[k] for k in sorted({0, len(points) // 2, len(points) - 1})] if points else []


def eigenvalues(point: Point) -> list[np.ndarray]:
    """Eigenvalues of each replicate; those of trained weights that exceed 0 by more than rounding."""
    state, rows = state_of(point.setting), point.values("eigenvalues")
    rows = rows[np.isfinite(rows).all(axis=-1)]
    if point.setting.trained == "matrix":
        return list(rows)
    end = state.scale * (float(state.law.edges[-1, 1]) - state.threshold)
    return [row[row > 1e-3 * max(float(rows.max(initial=0.0)), end, 0.1)] for row in rows]


def law(point: Point, values: Sequence[np.ndarray]) -> Law:
    """Predicted density of the shown eigenvalues, and the edge of the noise spectrum."""
    setting, state = point.setting, state_of(point.setting)
    cut = setting.trained == "weights"
    threshold = state.threshold if cut else 0.0
    end = state.scale * (float(state.law.edges[-1, 1]) - threshold)
    top = max(max((float(row.max(initial=0.0)) for row in values), default=0.0), end, 0.1)
    low = (
        0.0 if cut else min(float(np.min(values, initial=0.0)), state.scale * state.law.edges[0, 0])
    )
    x = np.linspace(1.02 * low, 1.02 * top, 600)
    # an eigenvalue s of S corresponds to the eigenvalue s / eta + epsilon of S* + delta Z
    density = setting.dimension * state.law.density(x / state.scale + threshold) / state.scale
    edge = state.scale * max(2 * state.effective_noise - threshold, 0.0)
    return Law(
        [("law", x, density, "line")],
        [Marker(edge, "edge of the noise spectrum", 2)],
        np.linspace(1.02 * low, 1.02 * top, int(np.clip(setting.dimension / 4, 15, 40)) + 1),
        f"{float(point.mean('rank_fraction')):.0%} of the eigenvalues are positive; predicted: "
        f"{state.rank_fraction:.0%}."
        if cut
        else "",
        quantile=0.97,
    )


PARTS = Panel(
    "error-parts", "Parts of the error", "matrix error (|S − S*|²/d)",
    [
        Trace("matrix_error", "error"),
        Trace("overfitting_error", "overfitting", measured=False, dashed=True),
        Trace("underfitting_error", "underfitting", measured=False, dashed=True),
        Trace("approximation_error", "approximation", measured=False, dashed=True),
    ],
    "Predicted error of a power-law target (line), measurements (points), and three of its parts: noise "
    "learned by the bulk, features below the noise, and shrunk features above it.",
    when={"target": "power-law"}, y_scale="log",
)  # fmt: skip


TRAINING = Panel(
    "training", "Weights against matrix", "matrix error (|S − S*|²/d)",
    [Trace("matrix_error", "")],
    "Weights with weight decay, and the matrix S with a penalty on its Frobenius norm (lines: limit).",
    along=AXIS, overlay=("trained",), y_scale="log",
)  # fmt: skip
SPECTRUM = Spectrum(
    "spectrum", "Learned spectrum at n/d² = {:.3g}", "eigenvalue of S", eigenvalues, law, shown_spectra,
    "Eigenvalues of the learned matrix (histogram; of trained weights the positive ones) and their "
    "predicted density (line).",
    label="learned", place="ratio-{:.3g}",
)  # fmt: skip


PANELS = (ERROR, NOISELESS, TEST, TRAIN, RANK, PARTS, TRAINING, SPECTRUM)
