"""Figures of `curse-of-detail`: energies, learning curves, and the overlaps of specialised neurons."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import numpy as np

from solvable.errors import InvalidParameter, NotConverged
from solvable.frame.conditions import above
from solvable.frame.curves import Axis, Curve
from solvable.frame.panels import Panel, grouped
from solvable.frame.points import Point
from solvable.frame.points_claim import without_blocks
from solvable.frame.statistics import jackknife_errors
from solvable.frame.traces import Trace
from solvable.models.two_layer_posterior.attention_figures import (
    ATTENTION,
    ATTENTION_ERROR,
    attends,
    sample_label,
)
from solvable.models.two_layer_posterior.constants import specialisation
from solvable.models.two_layer_posterior.feature_kernels import feature_names
from solvable.models.two_layer_posterior.feature_norms import has_norms
from solvable.models.two_layer_posterior.large_deviation import large_deviation
from solvable.models.two_layer_posterior.learning_curves import samples_at_level
from solvable.models.two_layer_posterior.neuron_counts import LAW_EDGES, outlier_edge
from solvable.models.two_layer_posterior.parameters import CurseParameters
from solvable.models.two_layer_posterior.parity import quarter_root
from solvable.models.two_layer_posterior.parity_claims import expected_strength
from solvable.plots.figure import Figure, Marker, Series

LEARNING = Panel(
    "alignment",
    "Alignment of networks with the target",
    "alignment with the target",
    [
        Trace("alignment", ""),
        Trace("one_mode_alignment", "the target's mode alone", measured=False, dashed=True),
        Trace("kernel_adaptation_alignment", "kernel adaptation", measured=False, dashed=True),
        Trace("wide_limit_alignment", "many neurons", measured=False, dashed=True),
    ],
    "Points: Langevin networks, from both starts. Solid lines: the predicted posterior at this size. "
    "Dashed: the theory of the target's mode alone; its saddle point, the equations of kernel "
    "adaptation; and the limit of many specialised neurons, whose number does not fluctuate. Vertical "
    "lines: the onset in the limit of large sizes.",
    overlay=("dimension", "width_ratio"),
    markers={"onset": "onset"},
    when=lambda curve: not curve.setting.gain and not attends(curve),
)


def energies(curves: Sequence[Curve]) -> list[Figure]:
    """Draw the energy of full alignment against the dimension, for the first curve of each group."""
    figures = []
    curves = [c for c in curves if not c.setting.second_width and not c.setting.gain]
    curves = [c for c in curves if c.setting.target == "hermite"]
    for group in grouped(curves, ("dimension", "width_ratio", "kappa", "start", "steps", "step")):
        setting = group.curves[0].setting
        dimensions = np.unique(np.geomspace(4, 400, 7).round().astype(int))
        both = [_energies(setting, dimensions, reduced) for reduced in (False, True)]
        if not np.isfinite(both[0]).any():
            continue
        best = specialisation(setting.activation, setting.degree)
        series = [
            Series("exact", dimensions, both[0], "line", colour=0),
            Series("irrelevant weights fixed", dimensions, both[1], "dashed", colour=1),
        ]
        if best.R > 0:
            limit = np.full(dimensions.size, best.R)
            series.append(Series("exact, infinite size", dimensions, limit, "dashed", colour=7))
        figures.append(
            Figure(
                f"energy{group.suffix}",
                f"Energy of learning the target ({_words(setting)})",
                "dimension d",
                "energy / √(χNd)",
                series,
                f"Large-deviation energy of alignment 1 at N = {setting.width_ratio:g} d, over "
                "sqrt(chi N d). With irrelevant weights fixed, as in the paper, the energy is higher: "
                "specialised neurons shrink these weights.",
                x_scale="log",
            )
        )
    return figures


def _energies(setting: CurseParameters, dimensions: np.ndarray, reduced: bool) -> np.ndarray:
    """Energy over sqrt(chi N d) at each dimension; NaN without convergence."""
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


def last(places: Sequence[float]) -> Sequence[float]:
    """Select the point with the most samples."""
    return places[-1:]


def by_chance(point: Point) -> tuple[float, float]:
    """Number of prior neurons beyond three standard deviations."""
    return 0.0027 * point.setting.width, np.nan


SPECIALISED = Panel(
    "specialised",
    "Specialised neurons",
    "outliers per network",
    [
        Trace("outliers", "posterior"),
        Trace("", "outliers of the prior", theory=None, value=by_chance, dashed=True, colour=7),
    ],
    "Number of neurons whose overlap with the target's direction exceeds three standard deviations of "
    "the prior. At a given alignment it grows like sqrt(N / d).",
    when=lambda curve: (
        curve.setting.target == "hermite"
        and not curve.setting.second_width
        and not curve.setting.gain
    ),
    along=Axis(
        "width_ratio",
        "width ratio √(N/d)",
        value=lambda s: sqrt(s.width / s.dimension),
        scale="linear",
    ),
    at=last,
    note=lambda curves: (
        f"{_words(curves[0].setting, width=False)}, d = {curves[0].setting.dimension}."
    ),
)

CARRIED = Panel(
    "carriers",
    "Neurons that carry a parity",
    "strength or number",
    [
        Trace("carrier_strength", "strength", theory=None),
        Trace(
            "",
            "strength of least cost",
            theory=None,
            dashed=True,
            colour=7,
            value=lambda point: (expected_strength(point), np.nan),
        ),
        Trace("carriers", "number", theory=None),
    ],
    "Strength: norm of a neuron's weights on the two bits, averaged with its square as the weight. "
    "Number: of equal neurons with the same sums of squares and of fourth powers. Dashed: strength of "
    "four neurons that carry the measured alignment at the least cost, in proportion to (χN/d)^(1/4) at "
    "large widths.",
    when={"target": "parity"},
    along=Axis("width_ratio", "fourth root ⁴√(χN/d)", value=quarter_root, scale="linear"),
    at=last,
)

LAYERS = Panel(
    "layers",
    "Specialised units of two hidden layers",
    "outliers per network",
    [
        Trace("outliers", "first layer"),
        Trace("second_outliers", "second layer", theory=None),
        Trace("", "first layer, prior", theory=None, value=by_chance, dashed=True, colour=7),
    ],
    "Units whose overlap with the target's direction exceeds three standard deviations of the prior, for "
    "the second layer given the first. As the first layer grows, the second layer takes over. Line: the "
    "posterior of the first layer with a lazy second layer.",
    when={"second_width": above(0), "gain": 0},
    along=Axis("width_ratio", "width of the first layer N1/d"),
    at=last,
)

GROWTH = Panel(
    "samples-to-learn",
    "Samples that reach an alignment of 0.1 (attention: 0.2)",
    "number of samples P",
    [
        Trace(
            "alignment",
            "measured",
            theory=None,
            reduce=lambda points: crossing(points, "mean"),
        ),
        Trace(
            "alignment",
            "predicted",
            theory=None,
            dashed=True,
            colour=7,
            reduce=lambda points: crossing(points, "predicted"),
        ),
    ],
    "Learning curves are interpolated between measured sample sizes. At fixed widths per dimension the "
    "number of samples grows in proportion to d, and that of attention as d^(3/2).",
    along=Axis("dimension", "dimension d", scale="linear"),
    when={"gain": 0},
)

GAINS = Panel(
    "strengths-against-gain",
    "Strength of powers of an amplified feature",
    "strength in the kernel",
    [
        Trace("strengths", names=feature_names),
        Trace("power_laws", "power of the gain", measured=False, dashed=True),
    ],
    "Points: kernels of random networks. Solid lines: the integral over the kernel of wide layers. "
    "Dashed lines: the strength without a gain times D to the feature's degree. The strength follows "
    "these powers while D is far below d, and saturates beyond.",
    along=Axis("gain", "gain D of the direction"),
    overlay=("second_width_ratio",),
    when={"gain": above(0), "spike": 0},
    y_scale="log",
)

NORMS = Panel(
    "norms-against-gain",
    "Norm of powers of an amplified feature",
    "norm on samples",
    [
        Trace("norms", names=feature_names),
        Trace("norm_limits", "infinitely many samples", measured=False, dashed=True),
    ],
    "Points: kernel matrices of random networks, inverted on samples. Solid lines: prediction at this "
    "number of samples and width. Dashed lines: the norm on infinitely many samples in a wide layer. It "
    "falls like the gain to minus the degree while D is far below d. Samples resolve norms up to a bound "
    "that grows with their number.",
    along=Axis("gain", "gain D of the direction"),
    overlay=("second_width_ratio",),
    when=lambda curve: curve.setting.gain > 0 and has_norms(curve.setting),
    y_scale="log",
)

SPIKES = Panel(
    "strengths-against-spike",
    "Strength of features of a spike",
    "strength in the kernel",
    [Trace("strengths", names=feature_names)],
    "M neurons of the first layer point along the direction. Points: kernels of random networks. Lines: "
    "the integral over the kernel of wide layers plus the spike.",
    along=Axis("spike", "neurons M of the spike"),
    overlay=("second_width_ratio",),
    when={"gain": above(0)},
    where={"spike": above(0)},
    y_scale="log",
)


def crossing(points: Sequence[Point], name: str) -> tuple[float, float]:
    """Number of samples at which a curve reaches the level of alignment, with its error."""
    place = samples_at_level(points, name)
    if place is None:
        return np.nan, np.nan
    if name == "predicted":
        return float(np.exp(place)), np.nan
    changed = [
        [
            samples_at_level([*points[:k], part, *points[k + 1 :]], name)
            for part in without_blocks(p)
        ]
        for k, p in enumerate(points)
    ]
    rows = [np.array([np.nan if one is None else one for one in row]) for row in changed]
    error = jackknife_errors(rows).standard_error
    return float(np.exp(place)), float(np.exp(place) * error)


CENTRES = (LAW_EDGES[1:] + LAW_EDGES[:-1]) / 2
"""Centres of the bins of overlaps."""


def law(point: Point) -> tuple[np.ndarray, np.ndarray]:
    """Measured distribution of overlaps (NaN in empty bins), with its standard error."""
    mean, error = point.mean("neuron_law"), point.standard_error("neuron_law")
    return np.where(mean > 0, mean, np.nan), error


def prior_law(point: Point) -> tuple[np.ndarray, float]:
    """Distribution of overlaps under the prior."""
    d, width = point.setting.dimension, point.setting.width
    density = 2 * width * np.sqrt(d / (2 * np.pi)) * np.exp(-d * CENTRES**2 / 2)
    return np.where(density > 1e-2, density, np.nan), np.nan


def seen(curve: Curve, name: str, line: np.ndarray) -> np.ndarray:
    """Keep the distribution where it exceeds 0.01 neurons per unit of overlap."""
    return np.where(line > 1e-2, line, np.nan)


def outlier_edges(curves: Sequence[Curve]) -> list[Marker]:
    """Mark the overlap beyond which neurons count as outliers."""
    edge = outlier_edge(curves[0].setting.dimension)
    return [Marker(edge, "three standard deviations", -1)]


def last_in_words(curves: Sequence[Curve]) -> str:
    """Describe the setting of the last point of a curve."""
    s = curves[0].points[-1].setting
    return f"{_words(s)}, d = {s.dimension}, N = {s.width}, P = {s.samples}."


LAWS = Panel(
    "law-of-overlaps",
    "Distribution of the overlaps of neurons",
    "neurons per unit of |u|",
    [
        Trace("", "prior", theory=None, value=prior_law, dashed=True, colour=7),
        Trace("neuron_law", "posterior", value=law, shown=seen, colour=0),
    ],
    "A few neurons leave the Gaussian bulk of the prior and share one strength. Neurons to the right of "
    "the vertical line count as outliers.",
    markers=outlier_edges,
    where=lambda point: (
        not point.refused and not point.setting.gain and point.setting.target == "hermite"
    ),
    against=lambda point: CENTRES,
    at=last,
    x_label="overlap with the target's direction |u|",
    note=last_in_words,
    y_scale="log",
)


def _words(setting: CurseParameters, *, width: bool = True) -> str:
    ratio = f", N = {setting.width_ratio:g} d" if width else ""
    mean_field = ", mean-field" if setting.readout == "mean-field" else ""
    return f"He{setting.degree}, {setting.activation}{ratio}{mean_field}"


def several(curve: Curve) -> bool:
    """Return True if a curve of trained networks has more than one point."""
    return len(curve.points) > 1 and not curve.setting.gain


PANELS = (
    LEARNING,
    ATTENTION,
    ATTENTION_ERROR,
    energies,
    SPECIALISED,
    CARRIED,
    LAYERS,
    GROWTH,
    GAINS,
    NORMS,
    SPIKES,
    LAWS,
    Panel(
        "errors",
        "Errors of networks of the posterior",
        "mean squared error",
        [
            Trace("training_error", "training", theory=None),
            Trace("test_error", "test"),
        ],
        "A network that outputs 0 has a test error of 1. Alignment alone is not sufficient: specialised "
        "neurons also carry other modes, and cancelling them takes more samples.",
        when=lambda curve: several(curve) and not attends(curve),
    ),
    Panel(
        "error-and-alignment",
        "Test error against alignment",
        "test error",
        [Trace("test_error", "")],
        "A network of alignment A has a test error of at least (1 - A)².",
        overlay=("dimension", "width_ratio", "context"),
        against="alignment",
        x_label="alignment with the target",
        when=several,
    ),
    Panel(
        "starts",
        "Alignment from the two starts",
        "alignment with the target",
        [
            Trace("alignment_prior", "from the prior", theory=None),
            Trace("alignment_planted", "planted", theory=None),
        ],
        "The runs are in equilibrium where both starts agree.",
        when=lambda curve: curve.setting.start == "both" and several(curve),
        x_label=sample_label,
    ),
)
