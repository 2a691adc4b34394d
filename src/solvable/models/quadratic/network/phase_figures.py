"""Figures of phases, of the best penalty, of the peak, and of recovery thresholds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from solvable.frame.curves import Axis, Curve
from solvable.frame.panels import Panel
from solvable.frame.points import Point
from solvable.frame.traces import Trace
from solvable.models.quadratic.network.phase_laws import QuadraticPhase
from solvable.models.quadratic.network.phases import PowerLawPhases
from solvable.models.quadratic.network.recovery_claims import LOW_RANK, at_interpolation, crossing
from solvable.models.quadratic.phase_diagram import diagram, settings_by_phase
from solvable.plots.figure import Figure, Series

PHASES = tuple(phase.value for phase in QuadraticPhase)


def phase_diagram(curves: Sequence[Curve]) -> list[Figure]:
    """Draw sample ratios and penalties as points in the colours of their phases, with the borders."""
    groups: dict[tuple[int, float, float], list[Point]] = {}
    for curve in curves:
        for point in curve.points:
            setting = point.setting
            if "phase_exponent" in point.prediction and setting.noise > 0:
                key = (setting.dimension, setting.exponent, setting.noise)
                groups.setdefault(key, []).append(point)
    figures = []
    for key, points in groups.items():
        penalties = {float(point.predicted("penalty")) for point in points}
        if len(penalties) < 2 or len(points) < 6:
            continue
        words = _words(key, list(groups))
        figures.append(_diagram(key, points, words))
    return figures


def _words(key: tuple[int, float, float], keys: Sequence[tuple[int, float, float]]) -> str:
    names = ("d = {}", "exponent {:g}", "noise {:g}")
    varied = [len({other[k] for other in keys}) > 1 for k in range(3)]
    return ", ".join(n.format(v) for n, v, vary in zip(names, key, varied, strict=True) if vary)


def _diagram(key: tuple[int, float, float], points: Sequence[Point], words: str) -> Figure:
    phases = PowerLawPhases(*key)
    ratios = np.array([point.setting.ratio for point in points])
    penalties = np.array([float(point.predicted("penalty")) for point in points])
    series = settings_by_phase(
        points, PHASES, lambda p: (p.setting.ratio, p.predicted("penalty")), error="matrix_error"
    )
    span = (ratios.min() / 1.5, ratios.max() * 1.5)
    series += _borders(phases, span, (penalties.min() / 2, penalties.max() * 2))
    return diagram(
        "samples and penalty", words, series, x="sample ratio n/d²", y="penalty λ of the trace"
    )


def _borders(
    phases: PowerLawPhases, span: tuple[float, float], heights: tuple[float, float]
) -> list[Series]:
    """Lines between phases, inside the figure."""
    grid = np.geomspace(*span, 40)
    samples = grid * phases.dimension
    lines = (
        ("nothing is learned above", phases.collapse_regularisation),
        ("bulk is cut above", phases.cut_regularisation),
        ("every feature is kept below", phases.all_kept_regularisation),
    )
    series: list[Series] = []
    for label, border in lines:
        values = np.array([border(float(n)) for n in samples])
        values[(values < heights[0]) | (values > heights[1])] = np.nan
        if np.isfinite(values).any():
            series.append(Series(label, grid, values, "line", None, 2 * len(series) + 1))
    uprights = (
        ("strongest feature above the noise", phases.plateau_samples),
        ("interpolation", phases.interpolation_samples),
        ("every feature above the noise", phases.full_rank_samples),
    )
    for label, n in uprights:
        place = n / phases.dimension
        if span[0] < place < span[1]:
            shade = 2 * (len(series) - 1)
            series.append(Series(label, [place, place], [*heights], "dashed", None, shade))
    return series


def is_power_law(curve: Curve) -> bool:
    """Return True for a power-law target with label noise."""
    return bool(curve.setting.target == "power-law" and curve.setting.noise > 0)


RATES = Panel(
    "rates", "Error against samples for each dimension and penalty", "matrix error R",
    [Trace("matrix_error", "", theory="finite_size_matrix_error"),
     Trace("scaling_law_matrix_error", "law of the phase", measured=False, dashed=True)],
    "Lines: predicted error at this dimension. Dashed: the power law of the phase, where it differs by "
    "less than 30 % from the predicted error of large d.",
    overlay=("dimension", "regularisation", "regularisation_unit"), y_scale="log",
)  # fmt: skip


def rates(curves: Sequence[Curve]) -> list[Figure]:
    """Draw errors of power-law targets at several dimensions or penalties; one curve has `error`."""
    curves = [curve for curve in curves if is_power_law(curve)]
    several = any(
        len({getattr(curve.setting, name) for curve in curves}) > 1 for name in RATES.overlay
    )
    return RATES(curves) if several else []


def recovered_at(points: Sequence[Point]) -> float:
    """Measured sample ratio of recovery; NaN without measurements."""
    return crossing(points) if all(point.metrics for point in points) else float("nan")


PHASE_PANELS = (
    phase_diagram,
    rates,
    Panel(
        "penalty", "Error against multiples of the best penalty", "matrix error R",
        [Trace("matrix_error", "")],
        "At 1 the penalty is the predicted one of least error at each sample size.",
        along=Axis("regularisation", "penalty / best penalty"),
        where={"regularisation_unit": "best"}, x_scale="log", y_scale="log",
    ),
    Panel(
        "peak", "Height of the interpolation peak", "matrix error R",
        [Trace("matrix_error", "minimiser"),
         Trace("matrix_error", "first order in 1/d", theory="finite_size_matrix_error", measured=False,
               dashed=True, colour=0),
         Trace("interpolation_peak", "limit without penalty", measured=False, dashed=True, colour=1)],
        "Error at the interpolation threshold against the penalty. Without a penalty the peak of a "
        "target of extensive trace is finite.",
        along=Axis("regularisation", "penalty λ"), where=at_interpolation, x_scale="log", y_scale="log",
    ),
    Panel(
        "thresholds", "Samples of exact recovery against the width of the target", "sample ratio n/d²",
        [Trace("perfect_recovery_ratio", "least trace (this network)", reduce=recovered_at, colour=0),
         Trace("bayes_recovery_ratio", "Bayes-optimal", measured=False, colour=1),
         Trace("flow_recovery_ratio", "gradient flow without penalty (conjecture)", measured=False,
               dashed=True, colour=2)],
        "Without label noise. Points: sample ratio at which the error falls below 1 % of that of "
        "learning nothing. The conjecture is that of arXiv:2601.10483 for a network of network_ratio "
        "units per coordinate.",
        along=Axis("width_ratio", "width ratio of the target (p*/d)", scale="linear"), where=LOW_RANK,
    ),
)  # fmt: skip
