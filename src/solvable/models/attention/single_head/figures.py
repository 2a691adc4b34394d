"""Figures of attention heads: theory as lines, measurement as points."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from solvable.frame.curves import Curve
from solvable.frame.panels import Panel
from solvable.frame.points import Point
from solvable.frame.spectrum import Law, Spectrum
from solvable.frame.traces import Trace
from solvable.models.attention.single_head.predict import state_of
from solvable.plots.figure import Marker

MARKERS = {"interpolation_ratio": "interpolation", "recovery_ratio": "recovery"}


def of(metric: str) -> list[Trace]:
    """A metric, and its prediction at the dimension of each point, where there is one."""
    name = f"finite_size_{metric}"
    return [
        Trace(metric, ""),
        Trace(name, "first order in 1/d, d = {dimension}", theory=None, dashed=True, colour=0,
              value=lambda point: None if point.refused else (point.predicted(name), np.nan)),
    ]  # fmt: skip


ERROR = Panel(
    "error", "Error of the learned matrix", "error |S - S*|² / d", of("matrix_error"),
    "Line: the limit of many dimensions; dashed: with its first order in 1/d; points: trained heads.",
    markers=MARKERS, y_scale="log",
)  # fmt: skip
TEST = Panel(
    "test-error", "Attention on fresh samples", "squared distance to the target's attention",
    of("test_error"),
    "To labels without noise. Where vanishing regularisation would begin to fit all noise there is a "
    "peak, of which a finite one leaves a rounding.",
    markers=MARKERS, y_scale="log",
)  # fmt: skip
TRAIN = Panel(
    "train-error", "Training error", "squared distance to the labels", of("train_error"),
    "Below interpolation noise and all is fitted.", markers=MARKERS,
)  # fmt: skip
RANK = Panel(
    "rank", "Learned directions", "rank over d", [Trace("rank_fraction", "")],
    "A head as wide as this rank learns what wider ones do.", y_range=(0.0, 1.02),
)  # fmt: skip


def shown_spectra(curve: Curve) -> list[Point]:
    """The first, the middle and the last point of a curve that have a predicted spectrum."""
    points = [p for p in curve.points if p.prediction.get("eigenvalues") is not None]
    return [points[k] for k in sorted({0, len(points) // 2, len(points) - 1})] if points else []


def eigenvalues(point: Point) -> list[np.ndarray]:
    """Eigenvalues of each replicate that are above zero, up to rounding."""
    state, rows = state_of(point.setting), point.values("eigenvalues")
    rows = rows[np.isfinite(rows).all(axis=-1)]
    end = state.scale * (float(state.law.edges[-1, 1]) - state.threshold)
    return [row[row > 1e-3 * max(float(rows.max(initial=0.0)), end, 0.1)] for row in rows]


def law(point: Point, values: Sequence[np.ndarray]) -> Law:
    """Target plus noise, cut at a threshold, shifted to it and scaled."""
    setting, state = point.setting, state_of(point.setting)
    end = state.scale * (float(state.law.edges[-1, 1]) - state.threshold)
    top = max(max((float(row.max(initial=0.0)) for row in values), default=0.0), end, 0.1)
    x = np.linspace(0.0, 1.02 * top, 600)
    # Places s of the spectrum lie at s / eta + epsilon of the law
    density = setting.dimension * state.law.density(x / state.scale + state.threshold) / state.scale
    edge = state.scale * max(2 * state.effective_noise - state.threshold, 0.0)
    return Law(
        [("law", x, density, "line")],
        [Marker(edge, "edge of noise", 2)],
        np.linspace(0.0, 1.02 * top, int(np.clip(setting.dimension / 4, 15, 40)) + 1),
        f"Of the eigenvalues {float(point.mean('rank_fraction')):.0%} are above zero; of the law "
        f"{state.rank_fraction:.0%}.",
        quantile=0.97,
    )


SPECTRUM = Spectrum(
    "spectrum", "Learned spectrum at n/d² = {:.3g}", "eigenvalue of S", eigenvalues, law, shown_spectra,
    "Target plus noise, cut at a threshold, shifted to it and scaled.",
    label="learned", place="ratio-{:.3g}",
)  # fmt: skip


PANELS = (
    ERROR,
    TEST,
    TRAIN,
    RANK,
    SPECTRUM,
)
