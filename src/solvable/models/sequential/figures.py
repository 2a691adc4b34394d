"""Figures of sequential feature recovery: theory as lines, measurement as points."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from solvable.frame.curves import Axis, Curve
from solvable.frame.panels import Panel
from solvable.frame.points import Point
from solvable.frame.spectrum import Law, Spectrum
from solvable.frame.traces import Trace, spread_entries
from solvable.models.sequential.predict import bulk_density
from solvable.models.sequential.scaling_figures import SCALING_PANELS, largest
from solvable.plots.figure import Marker, Series


def _ceiling(curve: Curve, _: str, line: np.ndarray) -> np.ndarray:
    """Lower bound on kernel errors, where a kernel was fitted and the bound is above 3/4 of its start."""
    names = ("polynomial_kernel_normalised_mse", "rbf_kernel_normalised_mse")
    drawn = any(np.isfinite(curve.measured(name)[0]).any() for name in names)
    return np.where(drawn & (line > 0.75 * line[0]), line, np.nan)


def _around_the_learner(series: Sequence[Series]) -> tuple[float, float] | None:
    """Range of the error axis: from half the smallest to twice the largest error of the learner."""
    y = next((drawn.y for drawn in series if drawn.label == "layered learner"), None)
    return None if y is None else (0.5 * float(np.nanmin(y)), 2 * float(np.nanmax(y)))


def stored_spectra(point: Point) -> list[Any]:
    """Stored spectra, one for each replicate that stored a spectrum."""
    return [metrics["spectrum"] for metrics in point.metrics if metrics["spectrum"]]


def shown_spectrum(curve: Curve) -> list[Point]:
    """Point with a stored spectrum at which the recovered fraction of the features is closest to 3/4."""
    points = [point for point in curve.points if stored_spectra(point)]
    shares = [np.mean(point.predicted("squared_overlap") > 0.5) for point in points]
    return [points[int(np.argmin(np.abs(np.array(shares) - 0.75)))]] if points else []


def several_spectra(curve: Curve) -> list[Point]:
    """Three points with a stored spectrum, from the smallest to the largest sample size."""
    points = [point for point in curve.points if stored_spectra(point)]
    places = np.linspace(0, len(points) - 1, min(len(points), 3)).round().astype(int)
    return [points[k] for k in places]


def law(point: Point, values: Sequence[np.ndarray]) -> Law:
    """Predicted bulk density, bulk edges, and eigenvalues of the features outside the bulk."""
    density = bulk_density(point.setting)
    ends = np.atleast_1d(point.predicted("bulk_edges"))
    markers = [Marker(float(edge), "bulk edge") for edge in ends]
    overlaps, placed = point.predicted("squared_overlap"), point.predicted("eigenvalues")
    for colour, i in enumerate(spread_entries(placed.size) if overlaps.ndim else []):
        if overlaps[i] > 0.1 and not ends[0] <= placed[i] <= ends[-1]:
            markers.append(Marker(float(placed[i]), f"feature {i + 1}", colour))
    if density is None:
        return Law((), markers)
    return Law([("bulk, theory", density.x, density.density * values[0].size, "line")], markers)


# fmt: off
PANELS = (
    Panel(
        "overlap", "Features appear one after another", "squared overlap with the true feature",
        [Trace("squared_overlap", "feature")],
        "Each feature is recovered at its own sample size. Lines: predictions at this dimension. "
        "Points: measurements with standard errors. Vertical lines: thresholds in the limit of large "
        "dimension; at a finite dimension each curve rises over a window around its threshold, and later "
        "if stronger features share the samples.",
        markers={"threshold_samples": "limit"}, y_range=(-0.02, 1.02),
    ),
    Panel(
        "error", "The error falls as features are recovered",
        "mean squared error / variance of the label",
        [
            Trace("normalised_mse", "layered learner"),
            Trace("normalised_mse_tail_only", "unrecovered features alone", measured=False, dashed=True,
                  shown=lambda _, __, line: np.where(line > 1e-3, line, np.nan)),
            Trace("normalised_mse_asymptotic", "limit of many features", measured=False, dashed=True),
            Trace("polynomial_kernel_normalised_mse", "polynomial kernel", theory=None),
            Trace("rbf_kernel_normalised_mse", "RBF kernel", theory=None),
            Trace("random_features_normalised_mse", "random features of degree 4", theory=None),
            Trace("polynomial_kernel_normalised_mse", "best any kernel can do", measured=False,
                  dashed=True, shown=_ceiling, colour=2),
        ],
        "Solid curve: predicted error, the sum of the losses of all features. Dashed curve: the loss of "
        "the unrecovered features alone, which is too low. Kernels do not recover features one by one.",
        y_scale="log", y_range=_around_the_learner,
    ),
    Spectrum(
        "spectrum", "Features leave the bulk of the spectrum at n = {:,.0f}",
        "eigenvalue of the moment operator", stored_spectra, law, shown_spectrum,
        "Histogram: measured eigenvalues. Curve: predicted density of the bulk. Grey lines: predicted "
        "edges of the bulk. Coloured lines: predicted eigenvalues of the features.",
        y_scale="log",
    ),
    Spectrum(
        "spectra", "Whole spectra: the bulk shrinks, and features leave it",
        "eigenvalue of the moment operator", stored_spectra, law, several_spectra,
        "Histograms: measured eigenvalues at several sample sizes. Curves: predicted densities of the "
        "bulk. Vertical lines: predicted edges of the bulk, and predicted eigenvalues outside it.",
        y_scale="log", together=True,
    ),
    largest(Panel(
        "eigenvalues", "Features leave a bulk that shrinks as the samples grow",
        "eigenvalue of the moment operator",
        [Trace("eigenvalues", "feature"), Trace("bulk_edges", "bulk edge", dashed=True)],
        "Solid: predicted eigenvalue of each feature. Dashed: predicted edges of the bulk.",
    )),
    Panel(
        "overlap-by-dimension", "Larger dimensions need more samples", "mean squared overlap",
        [Trace("squared_overlap", "", mean=True)],
        "Squared overlap with the true feature, averaged over features.",
        along=Axis("dimension", "dimension d"), y_range=(-0.02, 1.02),
    ),
    *SCALING_PANELS,
)
