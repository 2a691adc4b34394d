"""Figures of quadratic networks: predictions as lines, measurements as points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby

import numpy as np

from solvable.frame.conditions import above
from solvable.frame.curves import Curve, varying, words_of
from solvable.frame.panels import Panel
from solvable.frame.points import Point
from solvable.frame.spectrum import Law, Spectrum
from solvable.frame.traces import Trace, draw_markers
from solvable.models.quadratic.network.feature_groups import (
    feature_groups,
    group_names,
    group_strengths,
)
from solvable.models.quadratic.network.parameters import QuadraticParameters
from solvable.models.quadratic.network.phase_claims import kind_of
from solvable.models.quadratic.network.phase_figures import PHASE_PANELS
from solvable.models.quadratic.network.solutions import NOISELESS_PENALTY, measure_of, state_of
from solvable.plots.figure import Marker, Series

OVERLAY = ("width_ratio", "exponent", "regularisation")
"""Parameters whose curves share a figure."""

NETWORK, CONTROL = {"sensing": "network"}, {"sensing": "goe"}


def thresholds(curves: Sequence[Curve]) -> list[Marker]:
    """Mark the sample ratio of interpolation for noisy labels, or of perfect recovery without noise."""
    if curves[0].setting.noise > 0:
        return draw_markers({"interpolation_ratio": "interpolation"}, curves[0], None)
    return recovery_threshold(curves)


def recovery_threshold(curves: Sequence[Curve]) -> list[Marker]:
    """Mark the sample ratio of perfect recovery."""
    return draw_markers({"perfect_recovery_ratio": "perfect recovery"}, curves[0], None)


def thresholds_and_phases(curves: Sequence[Curve]) -> list[Marker]:
    """Mark the threshold and, for a single curve, the changes of phase."""
    first = curves[0]
    changes = phase_changes(_phases(first.predictions), first.grid) if len(curves) == 1 else []
    return [*thresholds(curves), *(Marker(x, f"{phase} from here") for x, phase in changes)]


def _phases(predictions: Sequence[Mapping[str, object]]) -> list[str]:
    """Phase at each point: the scaling phase for a power law, the spectral phase for other targets."""
    return [str(place.get("scaling_phase", place["spectral_phase"])) for place in predictions]


def phase_changes(names: Sequence[str], ratios: np.ndarray) -> list[tuple[float, str]]:
    """Return the ratios between which the phase changes, with the new phase."""
    return [
        (float(np.sqrt(ratios[k - 1] * ratios[k])), names[k])
        for k in range(1, len(names))
        if names[k] != names[k - 1]
    ]


def _phases_in_order(curves: Sequence[Curve]) -> str:
    """Return a sentence with the phases of each curve, in order."""
    orders = []
    for curve in curves:
        order = ", ".join(phase for phase, _ in groupby(_phases(curve.predictions)))
        orders.append(": ".join(filter(None, (words_of(curve, varying(curves)), order))))
    return f"Phases: {'; '.join(orders)}."


def _positive_values(series: Sequence[Series]) -> np.ndarray:
    values = np.concatenate([np.empty(0), *(np.asarray(s.y, dtype=float) for s in series)])
    return values[values > 0]


def _log_range(series: Sequence[Series]) -> tuple[float, float] | None:
    """Axis limits that contain all lines, and points up to a factor 3 beyond the lines."""
    lines = _positive_values([s for s in series if s.kind == "line"])
    seen = _positive_values([s for s in series if s.kind != "dashed"])
    if not seen.size:
        return None
    low, high = float(seen.min()), float(seen.max())
    if lines.size:
        low, high = max(low, float(lines.min()) / 3), min(high, float(lines.max()) * 3)
    return 0.7 * low, 1.4 * high


def _to_twice(series: Sequence[Series]) -> tuple[float, float] | None:
    """Axis limits up to twice the largest prediction."""
    limits = _log_range(series)
    tops = [float(np.max(s.y)) for s in series if s.kind == "line"]
    return (limits[0], 2 * max(tops)) if limits and tops else limits


def _small(curve: Curve, name: str, line: np.ndarray) -> np.ndarray:
    """Show a first order in 1/d only where it is less than half of the limit."""
    limit = curve.line(name.removeprefix("finite_size_"))
    return np.where(np.abs(line - limit) < 0.5 * np.abs(limit), line, np.nan)


def _positive(curve: Curve, name: str, line: np.ndarray) -> np.ndarray:
    return np.where(line > 0, line, np.nan)


def _part(metric: str, label: str, colour: int) -> Trace:
    return Trace(metric, label, measured=False, shown=_positive, colour=colour)


def _limit_and_samples(metric: str) -> list[Trace]:
    return [
        Trace(metric, "theory, d → ∞", measured=False, colour=0),
        Trace(metric, "minimiser", theory=None, where=NETWORK, colour=0),
        Trace(metric, "Gaussian control", theory=None, where=CONTROL, colour=1),
    ]


def _first_order(metric: str) -> Trace:
    return Trace(
        metric, "first order in 1/d, d = {dimension}", theory=f"finite_size_{metric}", shown=_small,
        measured=False, dashed=True, colour=0, alone=True,
    )  # fmt: skip


def _strengths(setting: QuadraticParameters) -> np.ndarray:
    """Mean squared strength of each group; the mean over groups for a group of strength 0."""
    strengths = np.array(group_strengths(measure_of(setting), feature_groups(setting)))
    return np.where(strengths > 0, strengths, strengths.mean())


def shown_spectra(curve: Curve) -> list[Point]:
    """Choose three points of a curve: early, in the middle and the last."""
    points = (curve.where(**NETWORK) or curve).points
    count = len(points)
    return [points[k] for k in sorted({count // 5, count // 2, count - 1})]


def shifted(point: Point) -> list[np.ndarray]:
    """Eigenvalues of the learned directions, with the threshold b added back."""
    b = state_of(point.setting).threshold
    return [row[row > 0] + b for row in point.values("eigenvalues")]


def law(point: Point, values: Sequence[np.ndarray]) -> Law:
    """Eigenvalue density of target plus noise; the fit does not show eigenvalues below the threshold."""
    state = state_of(point.setting)
    spectrum, b, edge = state.law, state.threshold, 2 * state.effective_noise
    top = max(float(spectrum.edges[-1, 1]), b, *(float(row.max(initial=b)) for row in values))
    bottom = min(float(spectrum.edges[0, 0]), b)
    learned = sum(row.size for row in values)
    # About three eigenvalues per bin, and 20 to 60 bins.
    bins = np.linspace(b, max(top, b + 1e-9), int(np.clip(learned / 3, 20, 60)) + 1)
    x = np.unique(np.concatenate([np.linspace(bottom, top, 600), spectrum.x]))
    x = x[:: max(1, x.size // 1500)]
    density = spectrum.density(x) * point.setting.dimension
    density[np.isin(x, spectrum.edges)] = 0.0  # up to the root of rounding
    markers = [Marker(b, "threshold b", 2), Marker(edge, "edge of noise 2δ", 3)]
    phase = point.prediction.get("spectral_phase")
    seen = kind_of(point)
    kinds = f"Phase: {phase}{f', measured: {seen}' if seen else ''}. " if phase else ""
    return Law(
        [
            ("law, learned part", x, np.where(x >= b, density, np.nan), "line"),
            ("law, hidden part", x, np.where(x < b, density, np.nan), "dashed"),
        ],
        [marker for marker in markers if bottom < marker.x],
        bins,
        f"{kinds}{float(point.mean('rank_fraction')):.0%} of the directions are learned.",
        quantile=0.95,  # the height ignores peaks of isolated eigenvalues
    )


PANELS = (
    Panel(
        "error", "Test error", "matrix error R (|S − S*|²/d)",
        [*_limit_and_samples("matrix_error"),
         Trace("network_matrix_error", "trained network", theory=None, where=NETWORK, colour=2),
         _first_order("matrix_error")],
        "Half of the excess risk in the labels. Solid line: limit of many dimensions. Dashed line: with "
        "the first order in 1/d. Points: minimiser for n samples.",
        markers=thresholds_and_phases, note=_phases_in_order, overlay=OVERLAY,
        y_scale="log", y_range=_log_range,
        once=[replace(_part("bayes_matrix_error", "Bayes-optimal", 5), dashed=True),
              Trace("bayes_estimate_error", "Bayes-optimal message passing", theory=None, where=NETWORK,
                    colour=5)],
    ),
    Panel(
        "noiseless-error", "Error without label noise", "matrix error R (|S − S*|²/d)",
        [Trace("noiseless_matrix_error", "theory, d → ∞", measured=False, colour=0),
         Trace("noiseless_matrix_error", "minimiser", theory=None, colour=0)],
        "The samples of the other figures, with labels without noise, fitted at the penalty "
        f"{NOISELESS_PENALTY:g}. Above the threshold the error is proportional to the squared penalty.",
        markers=recovery_threshold, overlay=OVERLAY, y_scale="log", y_range=_log_range,
        when={"low_rank": True, "noiseless_samples": above(0)},
    ),
    Panel(
        "error-parts", "Parts of the error", "part of the matrix error R",
        [*_limit_and_samples("matrix_error"), _part("overfitting_error", "noise learned by the bulk", 1),
         _part("underfitting_error", "features below the noise", 2),
         _part("approximation_error", "features above the noise", 3)],
        "Parts of arXiv:2509.24882, Result 3, which treats bulk and spikes as separate. Their sum "
        "equals the error where the bulk is cut, and exceeds the error elsewhere.",
        markers=thresholds, y_scale="log", y_range=_log_range,
        when={"target": "power-law"},
    ),
    Panel(
        "train-error", "Training error", "training error (mean squared)",
        [*_limit_and_samples("train_error"), _first_order("train_error")],
        "Below the interpolation threshold the network fits the labels with their noise. Above the "
        "threshold the training error rises to the variance of the noise.",
        markers=thresholds, overlay=OVERLAY, y_scale="log", y_range=_log_range,
        once=[Trace("train_error", "label noise", measured=False, dashed=True, colour=5,
                    shown=lambda curve, name, line: 0 * line + (curve.setting.noise or np.nan))],
    ),
    Panel(
        "rank", "Learned directions", "rank of S / d",
        [*_limit_and_samples("rank_fraction"), _first_order("rank_fraction")],
        "A network of this many units reaches the minimum; more units change nothing.",
        markers=thresholds, overlay=OVERLAY, y_range=(0.0, 1.02),
    ),
    Panel(
        "self-estimate", "Test error from training data", "test error (mean squared, noisy labels)",
        [Trace("test_error", "theory", measured=False, colour=0),
         Trace("test_error", "true", theory=None, where=NETWORK, colour=0),
         Trace("gcv_test_error", "from training data", theory=None, where=NETWORK, colour=1)],
        "Generalised cross-validation: training error over the squared share of unused degrees of "
        "freedom. Not defined where training uses all of them, as below the interpolation threshold "
        "with little regularisation.",
        markers=thresholds, y_scale="log", y_range=_to_twice,
    ),
    Panel(
        "features", "Error of features", "error along a feature / squared strength",
        [Trace("feature_errors", "feature", names=group_names, scale=_strengths, where=NETWORK)],
        "Lines: limit of large d. A feature with value 1 is not learned. Strong features are learned "
        "first. Above 1 the fitted noise exceeds the strength of the feature. The mean of value times "
        "strength squared over all d directions is the error R.",
        markers=thresholds, y_scale="log", y_range=_log_range,
    ),
    Spectrum(
        "spectrum", "Spectrum at n/d² = {:.3g}", "eigenvalue of S + threshold b", shifted, law,
        shown_spectra,
        "Eigenvalues of target plus noise are cut at b and shifted by b; those below b are not visible "
        "in the fit. Eigenvalues above 2δ stand out of the noise.",
        label="learned", place="ratio-{:.3g}", overlay=OVERLAY,
    ),
    *PHASE_PANELS,
)  # fmt: skip
