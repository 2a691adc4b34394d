"""Figures of attention heads: theory as lines, measurement as points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from solvable.frame.curves import Curve
from solvable.frame.panels import Panel, PanelFunction, Trace, grouped
from solvable.frame.points import Point
from solvable.models.attention.single_head.predict import state_of
from solvable.plots.figure import Figure, Marker, Series

MARKERS = {"interpolation_ratio": "interpolation", "recovery_ratio": "recovery"}


def at_points(panel: Panel) -> PanelFunction:
    """A panel with the prediction at the dimension of each point, where there is one."""

    def draw(curves: Sequence[Curve]) -> list[Figure]:
        return _with_first_order(panel, curves)

    draw.__name__ = panel.name
    return draw


def _with_first_order(panel: Panel, curves: Sequence[Curve]) -> list[Figure]:
    metric, figures = panel.traces[0].metric, []
    for group, figure in zip(grouped(curves), panel(curves), strict=True):
        curve = group.curves[0]
        told = [point.prediction.get(f"finite_size_{metric}") for point in curve.points]
        kept = [(x, y) for x, y in zip(curve.x, told, strict=True) if y is not None]
        extra = []
        if len(kept) > 1:
            x, y = (np.array(column, dtype=float) for column in zip(*kept, strict=True))
            words = f"first order in 1/d, d = {curve.setting.dimension}"
            extra = [Series(words, x, y, "dashed", colour=0)]
        figures.append(replace(figure, series=[*figure.series, *extra]))
    return figures


ERROR = Panel(
    "error", "Error of the learned matrix", "error |S - S*|² / d", [Trace("matrix_error", "")],
    "Line: the limit of many dimensions; dashed: with its first order in 1/d; points: trained heads.",
    markers=MARKERS, y_scale="log",
)  # fmt: skip
TEST = Panel(
    "test-error", "Attention on fresh samples", "squared distance to the target's attention",
    [Trace("test_error", "")],
    "To labels without noise. Where vanishing regularisation would begin to fit all noise there is a "
    "peak, of which a finite one leaves a rounding.",
    markers=MARKERS, y_scale="log",
)  # fmt: skip
TRAIN = Panel(
    "train-error", "Training error", "squared distance to the labels", [Trace("train_error", "")],
    "Below interpolation noise and all is fitted.", markers=MARKERS,
)  # fmt: skip
RANK = Panel(
    "rank", "Learned directions", "rank over d", [Trace("rank_fraction", "")],
    "A head as wide as this rank learns what wider ones do.", y_range=(0.0, 1.02),
)  # fmt: skip


def spectra(curves: Sequence[Curve]) -> list[Figure]:
    """Learned spectra at the first, the middle and the last point of a curve."""
    figures = []
    for group in grouped(curves):
        for curve in group.curves:
            points = [p for p in curve.points if p.prediction.get("eigenvalues") is not None]
            chosen = sorted({0, len(points) // 2, len(points) - 1}) if points else []
            figures += [_spectrum(points[k], group.words, group.suffix) for k in chosen]
    return figures


def _spectrum(point: Point, words: str, suffix: str) -> Figure:
    setting, state = point.setting, state_of(point.setting)
    values = point.values("eigenvalues")
    values = values[np.isfinite(values).all(axis=-1)]
    end = state.scale * (float(state.law.edges[-1, 1]) - state.threshold)
    top = max(float(values.max(initial=0.0)), end, 0.1)
    bins = np.linspace(0.0, 1.02 * top, int(np.clip(setting.dimension / 4, 15, 40)) + 1)
    learned = values[values > 1e-3 * top]
    counts = np.histogram(learned, bins=bins)[0] / max(len(values), 1)
    x = np.linspace(0.0, 1.02 * top, 600)
    # Places s of the spectrum lie at s / eta + epsilon of the law
    density = state.law.density(x / state.scale + state.threshold) / state.scale
    line = density * setting.dimension * (bins[1] - bins[0])
    title = f"Learned spectrum at n/d² = {setting.ratio:.3g}"
    return Figure(
        f"spectrum{suffix}-ratio-{setting.ratio:.3g}",
        f"{title} ({words})" if words else title,
        "eigenvalue of S",
        "eigenvalues per replicate",
        [
            Series("learned", bins, counts, "histogram", colour=0),
            Series("law", x, line, "line", colour=1),
        ],
        f"Of the eigenvalues {float(point.mean('rank_fraction')):.0%} are above zero; of the law "
        f"{state.rank_fraction:.0%}. Target plus noise, cut at a threshold, shifted to it and scaled.",
        [
            Marker(
                state.scale * max(2 * state.effective_noise - state.threshold, 0.0),
                "edge of noise",
                2,
            )
        ],
        y_range=(0.0, 1.15 * max(float(counts.max(initial=0.1)), float(np.quantile(line, 0.97)))),
    )


PANELS = (
    at_points(ERROR),
    at_points(TEST),
    at_points(TRAIN),
    RANK,
    spectra,
)
