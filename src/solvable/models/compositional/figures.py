"""Figures of compositional targets: theory as lines, measurement as points."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from solvable.frame.checking import BOOKKEEPING, groups
from solvable.frame.points import Metrics, Point
from solvable.models.compositional.parameters import CompositionalParameters
from solvable.models.compositional.predict import predict, predict_first_layer
from solvable.models.compositional.scaling_checks import crossing
from solvable.plots.figure import Figure, Marker, Series

CURVE_POINTS = 24
"""Sample sizes at which a predicted curve is evaluated."""

SHOWN_FEATURES = 11
"""Most features drawn in one figure."""

Curve = tuple[np.ndarray, list[Metrics]]
"""Sample sizes and the predictions there."""


def draw_figures(points: Sequence[Point]) -> list[Figure]:
    """Recovery and its scaling over all dimensions; overlaps, error and layers at the largest."""
    families: dict[tuple[object, ...], list[list[Point]]] = {}
    for group in groups(points):
        setting = group[0].parameters
        skipped = ("dimension", *BOOKKEEPING)
        key = tuple(value for name, value in setting.items() if name not in skipped)
        families.setdefault(key, []).append(group)
    varying = [
        name
        for name in (points[0].parameters if points else ())
        if name not in ("dimension", *BOOKKEEPING)
        and len({str(one.parameters[name]) for one in points}) > 1
    ]
    figures: list[Figure] = []
    for family in families.values():
        family.sort(key=lambda group: group[0].parameters["dimension"])
        setting = family[-1][0].parameters
        words = ", ".join(f"{name.replace('_', ' ')} {setting[name]}" for name in varying)
        suffix = "".join(f"-{setting[name]}" for name in varying)
        figures += _family(family, suffix, f" ({words})" if words else "")
    return figures


def _family(family: list[list[Point]], suffix: str, title: str) -> list[Figure]:
    largest = family[-1]
    at = f", d = {largest[0].parameters['dimension']}"
    curve = _curve(largest, predict)
    figures = [_recovery(family, suffix, title)]
    if len(family) > 1:
        figures.append(_scaling(family, suffix, title))
    figures += [
        _features(largest, curve, suffix, at + title),
        _error(largest, curve, suffix, at + title),
    ]
    if largest[0].parameters["layers"] == 4:
        figures.append(_layers(largest, curve, suffix, at + title))
    else:
        figures.append(_last_layer(largest, curve, suffix, at + title))
    return figures


def _curve(group: Sequence[Point], predict: Callable[[CompositionalParameters], Metrics]) -> Curve:
    """Predictions on a fine grid of sample sizes around those of a group."""
    sizes = _sizes(group)
    grid = np.geomspace(sizes[0] / 1.4, sizes[-1] * 1.4, CURVE_POINTS)
    settings = [dict(group[0].parameters) | {"samples": max(4, round(n))} for n in grid]
    return grid, [predict(CompositionalParameters(**setting)) for setting in settings]


def _sizes(group: Sequence[Point]) -> np.ndarray:
    return np.array([point.parameters["samples"] for point in group], dtype=float)


def _line(curve: Curve, name: str) -> np.ndarray:
    return np.array([np.asarray(one[name], dtype=float) for one in curve[1]])


def _measured(group: Sequence[Point], name: str) -> tuple[np.ndarray, np.ndarray]:
    values = np.array([point.mean(name) for point in group])
    return values, np.array([point.standard_error(name) for point in group])


def _pair(
    label: str,
    curve: tuple[np.ndarray, np.ndarray],
    sizes: np.ndarray,
    measured: tuple[np.ndarray, np.ndarray],
    colour: int,
) -> list[Series]:
    """A prediction and its measurement, in one colour."""
    return [
        Series(f"{label}, theory", curve[0], curve[1], "line", colour=colour),
        Series(label, sizes, measured[0], "points", measured[1], colour),
    ]


def _recovery(family: Sequence[Sequence[Point]], suffix: str, title: str) -> Figure:
    series: list[Series] = []
    markers: list[Marker] = []
    for colour, group in enumerate(family):
        curve = _curve(group, predict_first_layer)
        label = f"d = {group[0].parameters['dimension']}"
        line = curve[0], _line(curve, "subspace_overlap")
        measured = _measured(group, "subspace_overlap")
        series += _pair(label, line, _sizes(group), measured, colour)
        expected = group[0].prediction["crossing_samples"]
        if expected is not None:
            markers.append(Marker(float(np.asarray(expected)), "", colour))
    return Figure(
        f"recovery{suffix}",
        f"The first representation is found{title}",
        "samples n",
        "subspace overlap",
        series,
        "Mean squared overlap of the learned with the true first representation; it does not "
        "depend on a rotation of either. Vertical lines: half of it found, as predicted.",
        markers,
        x_scale="log",
        y_range=(-0.02, 1.02),
    )


def _scaling(family: Sequence[Sequence[Point]], suffix: str, title: str) -> Figure:
    rows = []
    for group in family:
        prediction = group[0].prediction
        found, kernel = prediction["crossing_samples"], prediction["kernel_threshold_samples"]
        rows.append(
            [
                group[0].parameters["dimension"],
                crossing(group),
                np.nan if found is None else float(np.asarray(found)),
                float(np.asarray(kernel)),
            ]
        )
    dimensions, measured, predicted, kernels = np.array(rows, dtype=float).T
    return Figure(
        f"scaling{suffix}",
        f"Recovery costs far fewer samples than a kernel needs{title}",
        "dimension d",
        "samples n",
        [
            Series("half of the representation, theory", dimensions, predicted, "line", colour=0),
            Series("half of the representation", dimensions, measured, "points", colour=0),
            Series("kernel learns the top degree", dimensions, kernels, "dashed", colour=1),
        ],
        "Samples at which half of the first representation is found, of order d^(q + epsilon), "
        "and at which a rotation-invariant kernel can learn the highest degree of the label.",
        x_scale="log",
        y_scale="log",
    )


def _features(group: Sequence[Point], curve: Curve, suffix: str, title: str) -> Figure:
    values, errors = _measured(group, "squared_overlap")
    predicted = _line(curve, "squared_overlap")
    thresholds = np.asarray(group[0].prediction["threshold_samples"], dtype=float)
    sizes, grid = _sizes(group), curve[0]
    series: list[Series] = []
    markers: list[Marker] = []
    for k in range(min(values.shape[1], SHOWN_FEATURES)):
        line, measured = (grid, predicted[:, k]), (values[:, k], errors[:, k])
        series += _pair(f"feature {k + 1}", line, sizes, measured, k)
        if grid[0] < thresholds[k] < grid[-1]:
            markers.append(Marker(float(thresholds[k]), "", k))
    return Figure(
        f"features{suffix}",
        f"Rotated features appear one after another{title}",
        "samples n",
        "squared overlap with the true rotated feature",
        series,
        "Features rotated to the eigenbasis of the layers above, strongest eigenvalue first. "
        "Vertical lines: predicted thresholds.",
        markers,
        x_scale="log",
        y_range=(-0.02, 1.02),
    )


def _error(group: Sequence[Point], curve: Curve, suffix: str, title: str) -> Figure:
    sizes = _sizes(group)
    line = curve[0], _line(curve, "normalised_mse")
    series = _pair("layered learner", line, sizes, _measured(group, "normalised_mse"), 0)
    for colour, name in ((1, "polynomial"), (2, "rbf")):
        kernel, errors = _measured(group, f"{name}_kernel_normalised_mse")
        if np.isfinite(kernel).any():
            label = "polynomial kernel" if name == "polynomial" else "RBF kernel"
            series.append(Series(label, sizes, kernel, "points", errors, colour))
    floor = _line(curve, "polynomial_kernel_normalised_mse")
    series.append(Series("least error of any kernel", curve[0], floor, "dashed", colour=1))
    return Figure(
        f"error{suffix}",
        f"The error falls as features are found{title}",
        "samples n",
        "mean squared error / variance of the label",
        series,
        "A kernel learns the part of the label of degree 2, and one direction of degree 4 per "
        "sample at best: it needs all D_4 of them.",
        x_scale="log",
        y_scale="log",
    )


def _last_layer(group: Sequence[Point], curve: Curve, suffix: str, title: str) -> Figure:
    values, errors = _measured(group, "last_layer_eigenvalues")
    predicted = _line(curve, "last_layer_eigenvalues")
    truth = group[0].prediction["last_layer_eigenvalues_of_target"]
    sizes, grid = _sizes(group), curve[0]
    series: list[Series] = []
    for k in range(min(values.shape[1], SHOWN_FEATURES)):
        line, measured = (grid, predicted[:, k]), (values[:, k], errors[:, k])
        series += _pair(f"eigenvalue {k + 1}", line, sizes, measured, k)
        if isinstance(truth, list):
            level = float(np.asarray(truth[k]))
            ends = [float(grid[0]), float(grid[-1])]
            series.append(Series(f"true {k + 1}", ends, [level, level], "dashed", colour=k))
    return Figure(
        f"last-layer{suffix}",
        f"The last layer is read off the recovered features{title}",
        "samples n",
        "eigenvalue of the last layer",
        series,
        "Eigenvalues of the fitted last quadratic layer, in order. Each is that of B (dashed) "
        "times the squared overlap of its feature.",
        x_scale="log",
    )


def _layers(group: Sequence[Point], curve: Curve, suffix: str, title: str) -> Figure:
    sizes, grid = _sizes(group), curve[0]
    first = grid, _line(curve, "subspace_overlap")
    series = _pair("first representation", first, sizes, _measured(group, "subspace_overlap"), 0)
    inner = np.array([point.values("inner_squared_overlap").mean(axis=1) for point in group])
    count = inner.shape[1]
    error = inner.std(axis=1, ddof=1) / np.sqrt(count) if count > 1 else np.full(len(inner), np.nan)
    second = grid, _line(curve, "inner_squared_overlap").mean(axis=1)
    series += _pair("second representation", second, sizes, (inner.mean(axis=1), error), 1)
    ceiling = _line(curve, "inner_overlap_ceiling").mean(axis=1)
    series.append(Series("ceiling of the second", grid, ceiling, "dashed", colour=1))
    return Figure(
        f"layers{suffix}",
        f"Layer by layer{title}",
        "samples n",
        "mean squared overlap",
        series,
        "The first representation lets through no more than the dashed curve. At these widths "
        "the second step loses part of it to terms of order 1/width of its population matrix; the "
        "line follows its leading eigenvectors, from which a learner may depart.",
        x_scale="log",
        y_range=(-0.02, 1.02),
    )
