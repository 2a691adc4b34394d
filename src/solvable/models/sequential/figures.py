"""Figures of sequential feature recovery: theory as lines, measurement as points."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from solvable.frame.checking import BOOKKEEPING, groups
from solvable.frame.points import Point
from solvable.models.sequential.parameters import SequentialParameters
from solvable.models.sequential.predict import bulk_density, predict
from solvable.plots.figure import Figure, Marker, Series
from solvable.spectra.density import SpectralDensity

CURVE_POINTS = 60
"""Sample sizes at which a predicted curve is evaluated."""

SHOWN_FEATURES = 11
"""Most features drawn in one figure; with more, ranks are spread evenly in their logarithm."""

BINS = 60
"""Bins of a spectrum."""


def draw_figures(points: Sequence[Point]) -> list[Figure]:
    """Overlap, error and spectrum of every curve of the study."""
    figures: list[Figure] = []
    curves = groups(points)
    varying = [
        name
        for name in (points[0].parameters if points else ())
        if name not in BOOKKEEPING and len({str(one.parameters[name]) for one in points}) > 1
    ]
    for group in curves:
        words = ", ".join(f"{name} {group[0].parameters[name]}" for name in varying)
        suffix = "".join(f"-{group[0].parameters[name]}" for name in varying)
        title = f" ({words})" if words else ""
        curve = dense_curve(group)
        figures += [_overlap(group, curve, suffix, title), _error(group, curve, suffix, title)]
        figures += _spectrum(group, suffix, title)
    return figures


Curve = tuple[np.ndarray, list[dict[str, np.ndarray]]]
"""Sample sizes, and the prediction at each."""


def dense_curve(group: Sequence[Point]) -> Curve:
    """Predictions on a fine grid of sample sizes around those of a curve."""
    sizes = np.array([point.parameters["samples"] for point in group], dtype=float)
    grid = np.geomspace(sizes[0] / 1.5, sizes[-1] * 1.5, CURVE_POINTS)
    found = []
    for n in grid:
        setting = dict(group[0].parameters) | {"samples": max(2, round(n))}
        prediction = predict(SequentialParameters(**setting))
        found.append({name: np.asarray(value, dtype=float) for name, value in prediction.items()})
    return grid, found


def shown(features: int) -> list[int]:
    """Indices of the features that are drawn."""
    if features <= SHOWN_FEATURES:
        return list(range(features))
    return sorted({round(rank) - 1 for rank in np.geomspace(1, features, SHOWN_FEATURES)})


def _density(point: Point) -> SpectralDensity | None:
    return bulk_density(SequentialParameters(**point.parameters))


def _measured(group: Sequence[Point], name: str) -> tuple[np.ndarray, np.ndarray]:
    values = np.array([point.mean(name) for point in group])
    return values, np.array([point.standard_error(name) for point in group])


def _overlap(group: Sequence[Point], dense: Curve, suffix: str, title: str) -> Figure:
    sizes = [float(point.parameters["samples"]) for point in group]
    values, errors = _measured(group, "squared_overlap")
    grid, curve = dense
    predicted = np.array([one["squared_overlap"] for one in curve])
    thresholds = curve[0]["threshold_samples"]
    series: list[Series] = []
    markers: list[Marker] = []
    for colour, i in enumerate(shown(values.shape[1])):
        label = f"feature {i + 1}"
        series.append(Series(f"{label}, theory", grid, predicted[:, i], "line", colour=colour))
        series.append(Series(label, sizes, values[:, i], "points", errors[:, i], colour))
        if grid[0] < thresholds[i] < grid[-1]:
            markers.append(Marker(float(thresholds[i]), f"threshold {i + 1}", colour))
    return Figure(
        f"overlap{suffix}",
        f"Features appear one after another{title}",
        "samples n",
        "squared overlap with the true feature",
        series,
        "Each feature is found at its own sample size. Lines: theory at this finite size. "
        "Points: measured, with standard errors. Vertical lines: predicted thresholds.",
        markers,
        x_scale="log",
        y_range=(-0.02, 1.02),
    )


def _error(group: Sequence[Point], dense: Curve, suffix: str, title: str) -> Figure:
    sizes = [float(point.parameters["samples"]) for point in group]
    values, errors = _measured(group, "normalised_mse")
    grid, curve = dense

    def line(name: str) -> np.ndarray:
        return np.array([float(one[name]) for one in curve])

    tail = line("normalised_mse_tail_only")
    series = [
        Series("layered learner, theory", grid, line("normalised_mse"), "line", colour=0),
        Series("layered learner", sizes, values, "points", errors, 0),
        Series(
            "unrecovered features alone",
            grid,
            np.where(tail > 1e-3, tail, np.nan),
            "dashed",
            colour=1,
        ),
    ]
    ceiling = line("polynomial_kernel_normalised_mse")
    # A bound from counting samples: where it has used up a quarter of them it says little.
    ceiling = np.where(ceiling > 0.75 * ceiling[0], ceiling, np.nan)
    for colour, name in ((2, "polynomial"), (3, "rbf")):
        kernel, kernel_errors = _measured(group, f"{name}_kernel_normalised_mse")
        if np.isfinite(kernel).any():
            label = f"{name if name == 'polynomial' else 'RBF'} kernel"
            series.append(Series(label, sizes, kernel, "points", kernel_errors, colour))
    if len(series) > 3:
        series.append(Series("best any kernel can do", grid, ceiling, "dashed", colour=2))
    return Figure(
        f"error{suffix}",
        f"The error falls as features are recovered{title}",
        "samples n",
        "mean squared error / variance of the label",
        series,
        "The predicted error is a sum over all features. The dashed curve counts the unrecovered "
        "ones alone and is too low. Kernels see no sequential recovery.",
        x_scale="log",
        y_scale="log",
        y_range=(0.5 * float(np.nanmin(values)), 2 * float(np.nanmax(values))),
    )


def _spectrum(group: Sequence[Point], suffix: str, title: str) -> list[Figure]:
    held = [point for point in group if any(one["spectrum"] for one in point.metrics)]
    if not held:
        return []
    # Where about half of the features have left the bulk both kinds of eigenvalues are seen.
    recovered = [np.mean(point.predicted("squared_overlap") > 0.5) for point in held]
    point = held[int(np.argmin(np.abs(np.array(recovered) - 0.75)))]
    values = np.concatenate([one["spectrum"] for one in point.metrics if one["spectrum"]]).astype(
        float
    )
    replicates = sum(bool(one["spectrum"]) for one in point.metrics)
    counts, edges = np.histogram(values, bins=BINS)
    series = [Series("measured", edges, counts / replicates, "histogram", colour=0)]
    density = _density(point)
    if density is not None:
        count = density.density * values.size / replicates * (edges[1] - edges[0])
        series.append(Series("bulk, theory", density.x, count, "line", colour=1))
    lower, upper = point.predicted("bulk_edges")
    markers = [Marker(float(lower), "bulk edge"), Marker(float(upper), "bulk edge")]
    overlaps, placed = point.predicted("squared_overlap"), point.predicted("eigenvalues")
    for colour, i in enumerate(shown(placed.size)):
        if overlaps[i] > 0.1 and not lower <= placed[i] <= upper:
            markers.append(Marker(float(placed[i]), f"feature {i + 1}", colour))
    samples = point.parameters["samples"]
    return [
        Figure(
            f"spectrum{suffix}",
            f"Features leave the bulk of the spectrum at n = {samples:,}{title}",
            "eigenvalue of the moment operator",
            "eigenvalues per replicate",
            series,
            "Histogram: measured eigenvalues; curve: predicted bulk. Grey lines: predicted edges. "
            "Coloured lines: predicted places of the features.",
            markers,
            y_scale="log",
        )
    ]
