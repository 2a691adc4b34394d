"""Figures of quadratic networks: theory as lines, measurement as points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from math import inf

import numpy as np

from solvable.frame.curves import Curve, varying, words_of
from solvable.frame.panels import Panel, Trace, draw_markers, draw_trace, grouped
from solvable.frame.points import Point
from solvable.models.quadratic.network.feature_groups import (
    feature_groups,
    group_names,
    group_strengths,
)
from solvable.models.quadratic.network.parameters import QuadraticParameters
from solvable.models.quadratic.network.solutions import state_of
from solvable.plots.figure import Figure, Marker, Series

OVERLAY = ("width_ratio", "exponent", "regularisation")
"""Parameters whose curves share a figure."""

NETWORK, CONTROL = {"sensing": "network"}, {"sensing": "goe"}


@dataclass(frozen=True)
class SamplePanel(Panel):
    """A panel with the threshold of its target, and what curves share drawn once."""

    overlay: tuple[str, ...] = OVERLAY
    once: Sequence[Trace] = ()
    """Traces of the first curve alone, the same for all."""
    order: str = ""
    """Metric whose first order in 1/d is drawn of a curve that is alone."""
    phases: bool = False
    """Whether phases are told, and marked where one follows another."""

    def _figure(self, curves: Sequence[Curve], words: str, suffix: str) -> Figure:
        figure = super()._figure(curves, words, suffix)
        first, single = curves[0], len(curves) == 1
        name, label = (
            ("interpolation_ratio", "interpolation")
            if first.setting.noise > 0
            else ("perfect_recovery_ratio", "perfect recovery")
        )
        markers = draw_markers({name: label}, first, None)
        caption = self.caption
        if self.phases:
            caption += f" {_phases_in_order(curves)}"
            changes = phase_changes(_phases(first.predictions), first.grid) if single else []
            markers += [Marker(place, f"{phase} from here") for place, phase in changes]
        first_order = Trace(
            self.order, f"first order in 1/d, d = {first.setting.dimension}",
            theory=f"finite_size_{self.order}", shown=_small, measured=False, dashed=True, colour=0,
        )  # fmt: skip
        traces = [*([first_order] if self.order and single else []), *self.once]
        series = [s for trace in traces for s in draw_trace(trace, first, "", 0, alone=True)]
        return replace(figure, series=[*figure.series, *series], markers=markers, caption=caption)


def _phases(predictions: Sequence[Mapping[str, object]]) -> list[str]:
    """Phase at each place: of the scaling law if there is one, else of the spectrum."""
    return [str(place.get("scaling_phase", place["spectral_phase"])) for place in predictions]


def phase_changes(names: Sequence[str], ratios: np.ndarray) -> list[tuple[float, str]]:
    """Places between neighbouring ratios where the name changes, with the new name."""
    return [
        (float(np.sqrt(ratios[k - 1] * ratios[k])), names[k])
        for k in range(1, len(names))
        if names[k] != names[k - 1]
    ]


def _phases_in_order(curves: Sequence[Curve]) -> str:
    """Sentence with the phases of each curve, in order."""
    orders = []
    for curve in curves:
        order = ", ".join(phase for phase, _ in groupby(_phases(curve.predictions)))
        orders.append(": ".join(filter(None, (words_of(curve, varying(curves)), order))))
    return f"Phases: {'; '.join(orders)}."


def _positive_values(series: Sequence[Series]) -> np.ndarray:
    values = np.concatenate([np.empty(0), *(np.asarray(s.y, dtype=float) for s in series)])
    return values[values > 0]


def _log_range(series: Sequence[Series]) -> tuple[float, float] | None:
    """Limits that show every curve, and points no more than a factor 3 beyond them."""
    lines = _positive_values([s for s in series if s.kind == "line"])
    seen = _positive_values([s for s in series if s.kind != "dashed"])
    if not seen.size:
        return None
    low, high = float(seen.min()), float(seen.max())
    if lines.size:
        low, high = max(low, float(lines.min()) / 3), min(high, float(lines.max()) * 3)
    return 0.7 * low, 1.4 * high


def _to_twice(series: Sequence[Series]) -> tuple[float, float] | None:
    """The same up to twice the theory."""
    limits = _log_range(series)
    tops = [float(np.max(s.y)) for s in series if s.kind == "line"]
    return (limits[0], 2 * max(tops)) if limits and tops else limits


def _small(curve: Curve, name: str, line: np.ndarray) -> np.ndarray:
    """A first order in 1/d where it is a correction: less than half of the limit."""
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


def _strengths(setting: QuadraticParameters) -> np.ndarray:
    """Mean squared strengths of the groups of features; of no feature, the mean of all."""
    strengths = np.array(group_strengths(state_of(setting), feature_groups(setting)))
    return np.where(strengths > 0, strengths, strengths.mean())


def spectra(curves: Sequence[Curve]) -> list[Figure]:
    """Spectra early, past the middle and at the end of a curve; one of curves that share figures."""
    shared = [
        curve
        for group in grouped(curves, OVERLAY)
        if len(group.curves) > 1
        for curve in group.curves
    ]
    figures = []
    for group in grouped(curves):
        for curve in group.curves:
            points = (curve.where(**NETWORK) or curve).points
            count = len(points)
            places = {count // 2} if curve in shared else {count // 5, count // 2, count - 1}
            figures += [_spectrum(points[k], group.words, group.suffix) for k in sorted(places)]
    return figures


def _spectrum(point: Point, words: str, suffix: str) -> Figure:
    setting, state = point.setting, state_of(point.setting)
    law, b, edge = state.law, state.threshold, 2 * state.effective_noise
    values = point.values("eigenvalues")
    learned = values[values > 0]
    top = max(float(law.edges[-1, 1]), b + float(learned.max(initial=0.0)))
    bottom = min(float(law.edges[0, 0]), b)
    # One bin for every three eigenvalues, within bounds.
    bins = np.linspace(b, max(top, b + 1e-9), int(np.clip(learned.size / 3, 20, 60)) + 1)
    counts = np.histogram(learned + b, bins=bins)[0] / len(values)
    x = np.unique(np.concatenate([np.linspace(bottom, top, 600), law.x]))
    x = x[:: max(1, x.size // 1500)]
    density = law.density(x) * setting.dimension * (bins[1] - bins[0])
    series = [
        Series("learned", bins, counts, "histogram", colour=0),
        Series("law, learned part", x, np.where(x >= b, density, np.nan), "line", colour=1),
        Series("law, hidden part", x, np.where(x < b, density, np.nan), "dashed", colour=1),
    ]
    markers = [Marker(b, "threshold b", 2), Marker(edge, "edge of noise 2δ", 3)]
    phase = point.prediction.get("spectral_phase")
    # Height of the law's learned part without the spikes of isolated eigenvalues.
    seen = density[(x >= b) & (density > 0)]
    height = float(np.quantile(seen, 0.95)) if seen.size else 0.1
    title = f"n/d² = {setting.ratio:.3g}"
    return Figure(
        f"spectrum{suffix}-ratio-{setting.ratio:.3g}",
        f"Spectrum at {title} ({words})" if words else f"Spectrum at {title}",
        "eigenvalue of S, plus the threshold b",
        "eigenvalues per replicate",
        series,
        f"{f'Phase: {phase}. ' if phase else ''}{float(point.mean('rank_fraction')):.0%} of the "
        "directions are learned. Eigenvalues of target plus noise are cut at b and shifted by it; "
        "what lies left of b is hidden in the fit. What lies beyond 2δ stands out of the noise.",
        [marker for marker in markers if bottom < marker.x < inf],
        y_range=(0.0, 1.1 * max(float(counts.max(initial=0.1)), height)),
    )


PANELS = (
    SamplePanel(
        "error", "Test error", "error R = |S − S*|² / d",
        [*_limit_and_samples("matrix_error"),
         Trace("network_matrix_error", "trained network", theory=None, where=NETWORK, colour=2)],
        "Half of the excess risk in the labels. Line: the limit of many dimensions; dashed: with its "
        "first order in 1/d; points: the minimiser of n samples.",
        order="matrix_error", phases=True, y_scale="log", y_range=_log_range,
        once=[replace(_part("bayes_matrix_error", "Bayes-optimal", 5), dashed=True)],
    ),
    SamplePanel(
        "error-parts", "Parts of the error", "part of the error R",
        [*_limit_and_samples("matrix_error"), _part("overfitting_error", "noise learned by the bulk", 1),
         _part("underfitting_error", "features below the noise", 2),
         _part("approximation_error", "features above it", 3)],
        "Bulk and spikes as if apart (arXiv:2509.24882): the parts add up to the error where the bulk is "
        "cut, and to more where it is not, as it learns a part of the features just below the noise.",
        overlay=(), y_scale="log", y_range=_log_range,
        when=lambda curve: curve.setting.target == "power-law",
    ),
    SamplePanel(
        "train-error", "Training error", "mean squared residual", _limit_and_samples("train_error"),
        "Below the interpolation threshold the labels are fitted, noise and all; beyond it the error "
        "rises to the variance of the noise.",
        order="train_error", y_scale="log", y_range=_log_range,
        once=[Trace("train_error", "label noise", measured=False, dashed=True, colour=5,
                    shown=lambda curve, name, line: 0 * line + (curve.setting.noise or np.nan))],
    ),
    SamplePanel(
        "rank", "Learned directions", "rank of S over d", _limit_and_samples("rank_fraction"),
        "A network as wide as this rank reaches the minimum; wider ones change nothing.",
        order="rank_fraction", y_range=(0.0, 1.02),
    ),
    SamplePanel(
        "self-estimate", "Test error from training data", "mean squared error on fresh noisy labels",
        [Trace("test_error", "theory", measured=False, colour=0),
         Trace("test_error", "true", theory=None, where=NETWORK, colour=0),
         Trace("gcv_test_error", "from training data", theory=None, where=NETWORK, colour=1)],
        "Spectral generalised cross-validation: the training error over the squared share of degrees of "
        "freedom that are left. It needs some to be left, far enough above or regularised enough below "
        "the interpolation threshold.",
        overlay=(), y_scale="log", y_range=_to_twice,
    ),
    SamplePanel(
        "features", "Error of features", "error along a feature / its strength squared",
        [Trace("feature_errors", "feature", names=group_names, scale=_strengths, where=NETWORK)],
        "1 is a feature that is not learned. Strong features are learned first; noise that is fitted "
        "costs weak ones more than ignoring them would. Times strength squared and averaged over all d "
        "directions these are the error R.",
        overlay=(), y_scale="log", y_range=_log_range,
    ),
    spectra,
)  # fmt: skip
