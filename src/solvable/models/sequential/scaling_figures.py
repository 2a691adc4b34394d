"""Figures across dimensions, exponents of the weights and ranks of the features."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from solvable.frame.curves import Axis, Curve
from solvable.frame.panels import Panel, PanelFunction, grouped
from solvable.frame.points import Point
from solvable.frame.traces import Trace, spread_entries
from solvable.models.sequential.crossings import crossings, overlap_tables
from solvable.models.sequential.parameters import SequentialParameters
from solvable.models.sequential.scaling_claims import at_threshold, count, learned_energy
from solvable.plots.figure import Figure, Series


def exponent(setting: SequentialParameters) -> float:
    """Exponent alpha in n = d^alpha."""
    return float(np.log(setting.samples) / np.log(setting.dimension))


EXPONENT = Axis("samples", "ln n / ln d", value=exponent, scale="linear")
"""Axis on which features of all dimensions appear at the same places in the limit of large d."""


def crossing_sizes(points: Sequence[Point], *, predicted: bool = False) -> np.ndarray:
    """Sample size at which each feature passes an overlap of 0.5, as a list."""
    tables = overlap_tables(points)
    return np.full(1, np.nan) if tables is None else crossings(tables[0], tables[1 + predicted])


def nearest_to_threshold(points: Sequence[Point]) -> tuple[float, float]:
    """Mean and standard error of the measured overlap at the threshold."""
    rows = [at_threshold(point) for point in points]
    rows = [row for row in rows if np.isfinite(row).all()]
    if not rows:
        return np.nan, np.nan
    values = np.concatenate(rows)
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(values.size))


def predicted_at_threshold(points: Sequence[Point]) -> float:
    """Predicted overlap at the measured sample size next to the threshold."""
    rows = [float(at_threshold(point, predicted=True)) for point in points]
    return float(np.nanmean(rows)) if np.isfinite(rows).any() else np.nan


def rounding_law(curves: Sequence[Curve]) -> list[Series]:
    """Overlap 0.85 D^(-1/3) of one weak feature at its threshold, without overlap by chance."""
    x = np.geomspace(min(curve.x[0] for curve in curves), max(curve.x[-1] for curve in curves), 20)
    return [Series("0.85 D^(-1/3)", x, 0.85 * x ** (-1 / 3), "dashed", colour=1)]


def power_law(curve: Curve, name: str, power: float, label: str) -> list[Series]:
    """Draw a power of n through the prediction at the largest n, for each entry of a list."""
    table = curve.line(name).reshape(curve.grid.size, -1)
    series = []
    for colour, entry in enumerate(spread_entries(table.shape[1])):
        line = table[-1, entry] * (curve.grid / curve.grid[-1]) ** power
        shown = np.where(line < 0.7, line, np.nan)
        series.append(Series("" if colour else label, curve.grid, shown, "dashed", None, colour))
    return series


def inverse_law(curves: Sequence[Curve]) -> list[Series]:
    """Draw lines proportional to 1/n."""
    return power_law(curves[0], "lost_cosine", -1, "proportional to 1/n")


def energy_law(curves: Sequence[Curve]) -> list[Series]:
    """Draw the power of the learned energy in the limit of many features."""
    power = 1 / (2 * curves[0].setting.decay) - 1
    return power_law(curves[0], "learned_energy", power, f"proportional to n^{power:.3g}")


def many_features(curve: Curve) -> bool:
    """Return True for a power law of weights among at least twelve features."""
    return bool(curve.setting.decay > 0 and curve.setting.feature_count >= 12)


def slow_decay(curve: Curve) -> bool:
    """Return True for gamma < 1/2 and at least twelve features."""
    return many_features(curve) and curve.setting.decay < 0.5


def positive(_: Curve, __: str, line: np.ndarray) -> np.ndarray:
    """Values above 1 %, so that they can be drawn on a logarithmic axis."""
    return np.where(line > 0.01, line, np.nan)


def _up_to_the_number(series: Sequence[Series]) -> tuple[float, float]:
    """Range of the axis of the staircase, from below 1 to twice the number of features."""
    return 0.8, 2 * float(np.nanmax([1, *series[0].y]))


def far_points(places: Sequence[float]) -> list[float]:
    """Return the largest sample size alone."""
    return [max(places)]


def samples_by_rank(curves: Sequence[Curve]) -> list[Figure]:
    """Draw the samples that each feature needs, and those that the bound of Davis and Kahan demands."""
    figures = []
    for group in grouped([curve for curve in curves if len(curve.points) > 2]):
        for curve in group.curves:
            first = next((point for point in curve.points if not point.refused), None)
            if first is None or curve.setting.feature_count < 5:
                continue
            demanded = first.predicted("davis_kahan_samples")
            needed = crossing_sizes(curve.points, predicted=True)
            measured = crossing_sizes(curve.points)
            if measured.shape != demanded.shape or not np.isfinite(needed).any():
                continue
            rank = np.arange(1.0, needed.size + 1)
            series = [
                Series("overlap 0.5, theory", rank, needed, "line", colour=0),
                Series("overlap 0.5", rank, measured, "points", colour=0),
                Series("demanded by Davis and Kahan", rank, demanded, "dashed", colour=1),
            ]
            limits = 0.5 * float(np.nanmin(needed)), 2 * float(demanded.max())
            figures.append(
                Figure(
                    f"samples-by-rank{group.suffix}",
                    "A feature needs fewer samples than a perturbation bound demands"
                    + (f" ({group.words})" if group.words else ""),
                    "feature i",
                    "samples n",
                    series,
                    "Solid: number of samples at which a feature has a squared overlap of 0.5. Dashed: "
                    "number at which the bound of Davis and Kahan on the sine of its angle falls to the "
                    "same level. The bound contains the gap to the neighbouring eigenvalue, so that it "
                    "demands more samples by a factor that grows as the square of the rank.",
                    x_scale="log",
                    y_scale="log",
                    y_range=limits,
                )
            )
    return figures


def ranks(point: Point) -> np.ndarray:
    """Ranks of the features of a point."""
    return np.arange(1.0, point.setting.feature_count + 1)


def gaps(point: Point) -> np.ndarray:
    """Distance of each spike to the nearest other one."""
    gaps = point.predicted("height_gaps")
    return np.broadcast_to(gaps, point.mean("loss_outside_span").shape)


def remainder(point: Point) -> np.ndarray:
    """Loss of each direction minus the two terms of the expansion, divided by these, in modulus."""
    names = ("loss_outside_span", "loss_inside_span")
    first = sum(point.predicted(name) for name in names)
    return np.asarray(np.abs(sum(point.values(name) for name in names) - first) / first)


def largest(panel: Panel) -> PanelFunction:
    """Return a panel function that draws the largest dimension of a study, if it has any numbers."""

    def draw(curves: Sequence[Curve]) -> list[Figure]:
        most = max(curve.setting.dimension for curve in curves)
        drawn = panel([curve for curve in curves if curve.setting.dimension == most])
        return [one for one in drawn if any(np.isfinite(series.y).any() for series in one.series)]

    draw.__name__ = panel.name
    return draw


# fmt: off
SCALING_PANELS = (
    Panel(
        "overlap-by-exponent", "Features appear at a power of the dimension", "mean squared overlap",
        [Trace("mean_squared_overlap", "")],
        "Squared overlap averaged over the features. In the limit of large d each feature appears at a "
        "fixed power of d; at finite d the rise is as wide as 1/ln d.",
        along=EXPONENT, overlay=("dimension",), y_range=(-0.02, 1.02),
    ),
    Panel(
        "error-by-exponent", "The error falls where the overlap rises",
        "mean squared error / variance of the label", [Trace("normalised_mse", "")],
        along=EXPONENT, overlay=("dimension",),
    ),
    Panel(
        "overlap-by-decay", "A larger gamma widens the window of recovery", "mean squared overlap",
        [Trace("mean_squared_overlap", "")],
        "Squared overlap averaged over the features. At gamma = 0 all features appear at once.",
        along=EXPONENT, overlay=("decay",), y_range=(-0.02, 1.02),
    ),
    Panel(
        "window", "The first feature appears earlier for a larger gamma, the last one later",
        "samples n at an overlap of 0.5",
        [Trace("", "feature", reduce=crossing_sizes, theory=None),
         Trace("", "theory, feature", reduce=partial(crossing_sizes, predicted=True), theory=None,
               dashed=True)],
        "Number of samples at which each feature has a squared overlap of 0.5.",
        along=Axis("decay", "exponent γ of the weights", scale="linear", margin=1.0, resolution=9),
        y_scale="log",
    ),
    Panel(
        "sharpening", "The overlap at the threshold vanishes in large dimensions",
        "squared overlap (at the threshold)",
        [Trace("", "measured", reduce=nearest_to_threshold, theory=None),
         Trace("", "theory", reduce=predicted_at_threshold, theory=None, dashed=True)],
        "Mean squared overlap of features whose threshold is within 10 % of n. In the limit of large D "
        "it is 0, so that its value is the width of the transition in units of the threshold. Dashed: "
        "prediction at these sizes, with the overlap by chance, and the law for one weak feature.",
        along=Axis("dimension", "number of directions D", value=lambda s: s.n_features_total),
        also=rounding_law, y_scale="log", x_scale="log",
    ),
    Panel(
        "staircase", "The number of recovered features grows as a power of n",
        "features with a squared overlap above 0.5",
        [
            Trace("", "measured", theory="features_above_half", value=count),
            Trace("asymptotic_features_above_half", "power law", measured=False, dashed=True),
        ],
        "Solid: predicted number at this size. Dashed: the power law n^(1/(2 gamma)).",
        when=many_features, y_scale="log", y_range=_up_to_the_number,
    ),
    largest(Panel(
        "loss", "Each feature loses an overlap that falls as 1/n", "lost cosine (1 − |cos|)",
        [Trace("", "feature", theory="lost_cosine",
               value=lambda point: 1 - np.sqrt(point.values("squared_overlap")))],
        "Dashed: proportional to 1/n, through the prediction at the largest n.",
        also=inverse_law, y_scale="log",
    )),
    Panel(
        "learned-energy", "The learned share of the label grows as a power of n",
        "learned share of the variance",
        [
            Trace("", "measured", theory="learned_energy", value=learned_energy, shown=positive),
        ],
        "Solid: prediction at this number of features. Dashed: the power 1/(2 gamma) - 1 of infinitely "
        "many features, through the prediction at the largest n.",
        also=energy_law, when=slow_decay, y_scale="log", y_range=(0.02, 1.5),
    ),
    largest(Panel(
        "expansion", "Where a learned direction goes wrong", "squared overlap lost",
        [Trace("loss_outside_span", "outside the span of the features"),
         Trace("loss_inside_span", "along other features", colour=1)],
        "Lines: first order of the expansion in the noise, which holds where it is small.",
        against=ranks, at=far_points, x_label="feature i", y_scale="log",
    )),
    largest(Panel(
        "remainder", "The expansion fails where the gap is as small as the noise inside the span",
        "relative remainder of the lost overlap",
        [Trace("", "measured", value=remainder, theory=None)],
        "Modulus of the lost overlap minus the two terms of first order, divided by these terms.",
        against=gaps, at=far_points, x_label="gap to the nearest other eigenvalue", x_scale="log",
        y_scale="log",
    )),
    samples_by_rank,
)
