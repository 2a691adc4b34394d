"""Figures of filters on Gaussian inputs: theory as lines, measurement as points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from solvable.frame.points import Metrics, Point
from solvable.models.lofi.parameters import NeuralLoFiParameters
from solvable.models.lofi.predict import predict
from solvable.plots.figure import Figure, Marker, Series

CURVE_POINTS = 40
"""Sample ratios at which a predicted curve is evaluated."""

HIDDEN_POINTS = 20
"""The same where a prediction takes half a second."""

MOST_CURVES = 6
"""Curves that one figure of overlaps may hold."""

VARYING = ("ratio", "kernel_samples", "test_samples")
"""Parameters in which the points of one curve may differ."""

NAMES = {"single-index": "One direction", "hidden": "A hidden direction", "subspace": "A subspace"}


@dataclass(frozen=True)
class _Curve:
    """Points of one setting against the sample ratio, and predictions on a finer grid."""

    points: list[Point]
    grid: np.ndarray
    predictions: list[Metrics]

    @property
    def ratios(self) -> np.ndarray:
        return np.array([one.parameters["ratio"] for one in self.points])

    def line(self, name: str) -> np.ndarray:
        rows = [np.atleast_1d(np.asarray(one[name], dtype=float)) for one in self.predictions]
        return np.array([row.mean() for row in rows])

    def measured(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        values = [np.atleast_1d(one.mean(name)).mean() for one in self.points]
        errors = [np.atleast_1d(one.standard_error(name)).mean() for one in self.points]
        return np.array(values), np.array(errors)

    def pair(self, label: str, name: str, colour: int, sign: float = 1.0) -> list[Series]:
        """A prediction and its measurement in one colour."""
        values, errors = self.measured(name)
        return [
            Series(f"{label}, theory", self.grid, sign * self.line(name), "line", colour=colour),
            Series(label, self.ratios, sign * values, "points", errors, colour),
        ]


def draw_figures(points: Sequence[Point]) -> list[Figure]:
    """One figure of overlaps for all single-index curves, and those of each other target."""
    curves = _curves(points)
    figures: list[Figure] = []
    single = [one for one in curves if one.points[0].parameters["target"] == "single-index"]
    names = _differences(single)
    figures += _all_overlaps(single, names)
    figures += [_spectrum(one, name) for one, name in zip(single, names, strict=True)]
    for target, draw in (("hidden", _hidden), ("subspace", _subspace)):
        chosen = [one for one in curves if one.points[0].parameters["target"] == target]
        for curve, name in zip(chosen, _differences(chosen), strict=True):
            figures += draw(curve, name)
    return figures


def _curves(points: Sequence[Point]) -> list[_Curve]:
    groups: dict[tuple[object, ...], list[Point]] = {}
    for point in points:
        key = tuple(value for name, value in point.parameters.items() if name not in VARYING)
        groups.setdefault(key, []).append(point)
    found = []
    for group in groups.values():
        group.sort(key=lambda one: one.parameters["ratio"])
        setting = dict(group[0].parameters)
        count = HIDDEN_POINTS if setting["target"] == "hidden" else CURVE_POINTS
        low, high = (group[k].parameters["ratio"] for k in (0, -1))
        grid = np.geomspace(low / 1.1, high * (1.1 if setting["lift"] == "none" else 1.0), count)
        settings = [setting | {"ratio": float(ratio)} for ratio in grid]
        predictions = [predict(NeuralLoFiParameters(**one)) for one in settings]
        found.append(_Curve(group, grid, predictions))
    return found


def _differences(curves: Sequence[_Curve]) -> list[str]:
    """Words for what tells the curves apart."""
    if not curves:
        return []
    settings = [one.points[0].parameters for one in curves]
    varying = [
        name
        for name in settings[0]
        if name not in VARYING and len({str(one[name]) for one in settings}) > 1
    ]
    return [", ".join(_word(name, one[name]) for name in varying) for one in settings]


def _word(name: str, value: object) -> str:
    if name == "lift":
        return "no lift" if value == "none" else f"{value} lift"
    if name in ("channel", "label_map"):
        return str(value)
    return f"{name.replace('_', ' ')} {value}"


def _suffix(name: str) -> str:
    return "".join(f"-{word}" for word in name.replace(",", "").split())


def _titled(text: str, name: str) -> str:
    return f"{text} ({name})" if name else text


def _all_overlaps(curves: Sequence[_Curve], names: Sequence[str]) -> list[Figure]:
    """One figure of all curves, or one for each label map where they are many."""
    if not curves:
        return []
    if len(curves) <= MOST_CURVES:
        return [_overlaps(curves, names, "")]
    maps = [one.points[0].parameters["label_map"] for one in curves]
    found = []
    for label_map in dict.fromkeys(maps):
        chosen = [one for one, own in zip(curves, maps, strict=True) if own == label_map]
        found.append(_overlaps(chosen, _differences(chosen), f"label map {label_map}"))
    return found


def _overlaps(curves: Sequence[_Curve], names: Sequence[str], title: str) -> Figure:
    series: list[Series] = []
    markers: list[Marker] = []
    for colour, (curve, name) in enumerate(zip(curves, names, strict=True)):
        series += curve.pair(name or "first filter", "squared_overlap", colour)
        threshold = np.atleast_1d(curve.points[0].predicted("emergence_ratio"))[0]
        best = np.atleast_1d(curve.points[0].predicted("weak_recovery_ratio"))[0]
        for ratio, label in ((threshold, "emergence"), (best, "any label map")):
            if curve.grid[0] < ratio < curve.grid[-1] and (len(curves) == 1 or ratio == threshold):
                alone = len(curves) == 1
                markers.append(
                    Marker(float(ratio), label if alone else "", colour if not alone else -1)
                )
    return Figure(
        f"overlap{_suffix(title)}",
        _titled("The first filter finds its direction at a definite size", title),
        "samples per dimension n/d",
        "squared overlap",
        series,
        "Squared overlap of the leading eigenvector with the direction. Vertical lines: the "
        "threshold of the filter, and for one curve that of the best label map. After a lift the "
        "transition is drawn without its rounding at finite d.",
        markers,
        x_scale="log",
        y_range=(-0.02, 1.02),
    )


def _spectrum(curve: _Curve, name: str) -> Figure:
    lifted = curve.points[0].parameters["lift"] != "none"
    series = curve.pair("outlier", "eigenvalue", 0) + curve.pair("edge", "bulk_edge", 1)
    if not lifted:
        series += curve.pair("opposite edge", "opposite_edge", 2)
    unit = "eigenvalue times n" if lifted else "eigenvalue"
    return Figure(
        f"spectrum{_suffix(name)}",
        _titled("An eigenvalue leaves the bulk", name),
        "samples per dimension n/d",
        unit,
        series,
        "The leading eigenvalue at the direction's end, the next one there (the edge of the bulk), "
        "and the extreme one at the other end. Extreme eigenvalues of a bulk lie a little inside its "
        "edge at finite d.",
        x_scale="log",
    )


def _hidden(curve: _Curve, name: str) -> list[Figure]:
    setting = curve.points[0].parameters
    words = (
        f"{setting['nuisance']} irrelevant directions of variance {setting['nuisance_variance']:g}"
    )
    overlaps = curve.pair("all directions", "best_squared_overlap", 0)
    overlaps += curve.pair("strong ones removed", "deflated_squared_overlap", 1)
    ranks = curve.pair("all directions", "best_rank", 0)
    values, errors = curve.measured("deflated_rank")
    ranks.append(Series("strong ones removed", curve.ratios, values, "points", errors, 1))
    return [
        Figure(
            f"hidden-overlap{_suffix(name)}",
            _titled("Strong irrelevant directions hide a feature", name),
            "samples per dimension n/d",
            "squared overlap of the best eigenvector",
            overlaps,
            f"{words}: their noise spreads the feature over many eigenvectors. Removing them shows it.",
            x_scale="log",
            y_range=(-0.02, 1.02),
        ),
        Figure(
            f"hidden-rank{_suffix(name)}",
            _titled("A hidden feature ranks behind the noise of strong directions", name),
            "samples per dimension n/d",
            "eigenvalues of larger modulus",
            ranks,
            f"{words}: a filter that keeps fewer eigenvectors than this misses the feature. Without a "
            "feature to be found, at few samples, the best eigenvector is any.",
            x_scale="log",
        ),
    ]


def _subspace(curve: _Curve, name: str) -> list[Figure]:
    overlaps = curve.pair("largest moduli", "subspace_overlap", 0)
    overlaps += curve.pair("upper end alone", "upper_subspace_overlap", 1)
    figures = [
        Figure(
            f"subspace-overlap{_suffix(name)}",
            _titled("Both ends of the spectrum carry the subspace", name),
            "samples per dimension n/d",
            "mean squared overlap with the subspace",
            overlaps,
            "Four eigenvectors of the raw second moment against the four directions of the label. "
            "Keeping positive eigenvalues alone loses half of them.",
            x_scale="log",
            y_range=(-0.02, 1.02),
        )
    ]
    series = []
    labels = (("error", "filter, then one layer"), ("kernel_error", "NNGP, one layer"),
              ("deep_kernel_error", "NNGP, three layers"))  # fmt: skip
    for colour, (key, label) in enumerate(labels):
        values, errors = curve.measured(key)
        if np.isfinite(values).any():
            series.append(Series(label, curve.ratios, values, "points", errors, colour))
    if series:
        floor = curve.line("error_floor")
        series.append(Series("floor of the filter", curve.grid, floor, "dashed", colour=0))
        figures.append(
            Figure(
                f"subspace-error{_suffix(name)}",
                _titled("One filter makes a target of degree two easy", name),
                "samples per dimension n/d",
                "test error",
                series,
                "Infinitely wide networks with a filter of the raw inputs and without. Dashed: the "
                "Bayes error given the learned coordinates.",
                x_scale="log",
                y_range=(0.0, 0.55),
            )
        )
    return figures
