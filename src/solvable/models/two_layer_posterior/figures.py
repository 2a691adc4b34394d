"""Figures of `curse-of-detail`: energies, learning curves, specialised neurons and their law."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import numpy as np

from solvable.errors import InvalidParameter, NotConverged
from solvable.frame.curves import Curve
from solvable.frame.panels import Panel, Trace, grouped, suffix_of
from solvable.frame.points import Point
from solvable.models.two_layer_posterior.constants import specialisation
from solvable.models.two_layer_posterior.large_deviation import large_deviation
from solvable.models.two_layer_posterior.neuron_counts import LAW_EDGES, outlier_edge
from solvable.models.two_layer_posterior.parameters import CurseParameters
from solvable.plots.figure import Figure, Marker, Series

LEARNING = Panel(
    "alignment",
    "What networks of the posterior learn of the target",
    "alignment with the target",
    [
        Trace("alignment", ""),
        Trace("one_mode_alignment", "the target's mode alone", measured=False, dashed=True),
        Trace("wide_limit_alignment", "many neurons", measured=False, dashed=True),
    ],
    "Points: Langevin networks, from the prior and planted; lines: the posterior at this size. Dashed: "
    "the large deviation alone, as if specialised neurons carried no other modes than the target's; and "
    "the limit of many specialised neurons, whose number does not fluctuate. "
    "Vertical lines: the onset in the limit of large sizes.",
    overlay=("dimension", "width_ratio"),
    markers={"onset": "onset"},
)


def energies(curves: Sequence[Curve]) -> list[Figure]:
    """Exact energies of full alignment against the dimension, of the setting of each first curve."""
    figures = []
    for group in grouped(curves, ("dimension", "width_ratio", "kappa", "start", "steps", "step")):
        setting = group.curves[0].setting
        dimensions = np.unique(np.geomspace(4, 400, 7).round().astype(int))
        both = [_energies(setting, dimensions, reduced) for reduced in (False, True)]
        if not np.isfinite(both[0]).any():
            continue
        best = specialisation(setting.activation, setting.degree)
        series = [
            Series("exact", dimensions, both[0], "line", colour=0),
            Series("rest of the weights held", dimensions, both[1], "dashed", colour=1),
        ]
        if best.R > 0:
            limit = np.full(dimensions.size, best.R)
            series.append(Series("limit of the exact one", dimensions, limit, "dashed", colour=7))
        figures.append(
            Figure(
                f"energy{group.suffix}",
                f"Energy of learning the target ({_words(setting)})",
                "dimension d",
                "energy / sqrt(chi N d)",
                series,
                f"Large-deviation energy of alignment 1 at N = {setting.width_ratio:g} d, over its order "
                "sqrt(chi N d). Held: the paper's reduction, in which neurons keep the norm of their "
                "irrelevant weights; they shrink it, which is cheaper.",
                x_scale="log",
            )
        )
    return figures


def _energies(setting: CurseParameters, dimensions: np.ndarray, reduced: bool) -> np.ndarray:
    """Energy over sqrt(chi N d) at each dimension; NaN where it has none."""
    found = np.full(dimensions.size, np.nan)
    for place, d in enumerate(dimensions):
        width = max(1, round(setting.width_ratio * d))
        chi = width if setting.readout == "mean-field" else 1
        try:
            energy = large_deviation(
                dimension=int(d),
                width=width,
                degree=setting.degree,
                activation=setting.activation,
                readout=setting.readout,
                reduced=reduced,
            ).energy
        except (InvalidParameter, NotConverged):
            continue
        found[place] = energy / sqrt(chi * width * d)
    return found


def specialised(curves: Sequence[Curve]) -> list[Figure]:
    """Outliers against sqrt(N/d), at the largest sample size that all widths share."""
    figures = []
    for group in grouped(curves, ("width_ratio",)):
        shared = set.intersection(*(set(curve.x) for curve in group.curves))
        if len(group.curves) < 2 or not shared:
            continue
        p = max(shared)
        points = [curve.points[list(curve.x).index(p)] for curve in group.curves]
        points.sort(key=lambda point: point.setting.width_ratio)
        setting = points[0].setting
        x = np.array([sqrt(point.setting.width / point.setting.dimension) for point in points])
        measured = np.array([float(point.mean("outliers")) for point in points])
        errors = np.array([float(point.standard_error("outliers")) for point in points])
        predicted = np.array([float(point.predicted("outliers")) for point in points])
        series = [
            Series("posterior", x, predicted, "line", colour=0),
            Series("measured", x, measured, "points", errors, 0),
        ]
        by_chance = np.array([0.0027 * point.setting.width for point in points])
        series.append(Series("outliers of the prior", x, by_chance, "dashed", colour=7))
        figures.append(
            Figure(
                f"specialised{group.suffix}",
                f"Specialised neurons ({_words(setting, width=False)}, d = {setting.dimension}, "
                f"scaled samples {p:g})",
                "sqrt(N / d)",
                "outliers per network",
                series,
                "Neurons whose overlap with the target's direction is beyond three standard deviations "
                "of the prior. Their number grows like sqrt(N / d) at a given alignment.",
            )
        )
    return figures


def laws(curves: Sequence[Curve]) -> list[Figure]:
    """Law of the overlap of neurons with the direction, at the most samples of each curve."""
    figures = []
    for curve in curves:
        point = curve.points[-1]
        if point.refused:
            continue
        setting = point.setting
        centres = (LAW_EDGES[1:] + LAW_EDGES[:-1]) / 2
        measured, errors = point.mean("neuron_law"), point.standard_error("neuron_law")
        shown = measured > 0
        prior = 2 * setting.width * np.sqrt(setting.dimension / (2 * np.pi))
        prior = prior * np.exp(-setting.dimension * centres**2 / 2)
        series = [
            Series("prior", centres, np.where(prior > 1e-2, prior, np.nan), "dashed", colour=7)
        ]
        if (law := _predicted_law(point)) is not None:
            series.append(
                Series("posterior", centres, np.where(law > 1e-2, law, np.nan), "line", colour=0)
            )
        if shown.any():
            series.append(
                Series("measured", centres[shown], measured[shown], "points", errors[shown], 0)
            )
        words = f"{_words(setting)}, d = {setting.dimension}, N = {setting.width}, P = {setting.samples}"
        figures.append(
            Figure(
                f"law-of-overlaps{suffix_of(words)}",
                f"Where neurons look ({words})",
                "overlap |u| with the target's direction",
                "neurons per unit of |u|",
                series,
                "A few neurons leave the prior's Gaussian bulk for one strength. Right of the vertical "
                "line they count as outliers.",
                [Marker(outlier_edge(setting.dimension), "three standard deviations", -1)],
                y_scale="log",
            )
        )
    return figures


def _predicted_law(point: Point) -> np.ndarray | None:
    law = point.prediction.get("neuron_law")
    return None if law is None else np.asarray(law, dtype=float)


def _words(setting: CurseParameters, *, width: bool = True) -> str:
    ratio = f", N = {setting.width_ratio:g} d" if width else ""
    mean_field = ", mean-field" if setting.readout == "mean-field" else ""
    return f"He{setting.degree}, {setting.activation}{ratio}{mean_field}"


def several(curve: Curve) -> bool:
    """Curves of more than one point."""
    return len(curve.points) > 1


PANELS = (
    LEARNING,
    energies,
    specialised,
    laws,
    Panel(
        "errors",
        "Errors of networks of the posterior",
        "mean squared error",
        [
            Trace("training_error", "training", theory=None),
            Trace("test_error", "test"),
        ],
        "A test error of 1 is that of a network that outputs 0. Alignment is necessary, not enough: "
        "specialised neurons carry other modes than the target's, which cost samples to cancel.",
        when=several,
    ),
    Panel(
        "starts",
        "Two starts, one posterior",
        "alignment with the target",
        [
            Trace("alignment_prior", "from the prior", theory=None),
            Trace("alignment_planted", "planted", theory=None),
        ],
        "Where both starts agree the runs are in equilibrium.",
        when=lambda curve: curve.setting.start == "both" and several(curve),
    ),
)
