"""Claims of `curse-of-detail` about the strength and norm of features in random kernels."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from solvable.frame.agreement import Agreement
from solvable.frame.conditions import above, at_least
from solvable.frame.estimates import Slope
from solvable.frame.points import Point
from solvable.models.two_layer_posterior.equilibrium import PAGE
from solvable.models.two_layer_posterior.feature_kernels import feature_names, strengths_of
from solvable.models.two_layer_posterior.feature_norms import has_norms

AMPLIFIED = {"spike": 0, "gain": at_least(1), "dimension": at_least(8, "gain")}
"""A kernel without a spike, with a gain of up to d / 8."""

KERNELS = "run with --preset kernels"


def strength(entry: int) -> Callable[[Point], np.ndarray]:
    """Return the strength of one feature, for each replicate."""
    return lambda point: point.values("strengths")[:, entry]


def norm(point: Point) -> np.ndarray:
    """Return the norm of the feature of the higher degree, for each replicate."""
    return point.values("norms")[:, 1]


def predicted_norm(point: Point) -> float:
    """Return the predicted norm of the feature of the higher degree."""
    return float(point.predicted("norms")[1])


def amplified_samples(point: Point) -> bool:
    """Return True for norms on samples, with gains between d / 8 and 2 d."""
    d = point.setting.dimension
    return has_norms(point.setting) and d / 8 <= point.setting.gain <= 2 * d


def cube(point: Point) -> float:
    """Return the predicted strength of the feature of the higher degree."""
    return float(point.predicted("strengths")[1])


def cube_of_one_layer(point: Point) -> float:
    """Return the predicted strength of the feature of the higher degree without a second layer."""
    return float(strengths_of(point.setting.model_copy(update={"second_width_ratio": 0.0}))[1])


# fmt: off
KERNEL_CLAIMS = (
    Agreement(
        "feature-strengths",
        "The strength of each feature in the kernel of random layers equals the integral over the kernel "
        "of wide layers.",
        "strengths", f"{PAGE} (20)", within=0.1, relative=True, power=0.3,
        because="A network of finite width has random strengths.",
        where={"gain": above(0)}, entry=feature_names, missing=KERNELS,
    ),
    Agreement(
        "feature-norms",
        "The norm of each feature on samples, in the kernel of random layers of finite width, equals the "
        "prediction.",
        "norms", f"{PAGE} (22), (23)", within=0.15, relative=True, power=0.3,
        because="The first layer's noise is large if samples are not far fewer than neurons.",
        where={"norms on samples": lambda cell: has_norms(cell.setting), "gain": at_least(1),
               "dimension": at_least(1, "gain")},
        entry=feature_names, missing=KERNELS,
    ),
    Slope(
        "norm-falls-with-the-gain",
        "The norm of the feature of the higher degree falls with the gain by the predicted exponent, "
        "which tends to minus the degree as d and the number of samples grow.",
        "arXiv:2512.04165, Figures 5 and 6; derivations/two-layer-posterior (22), (23)", metric=norm,
        expected=predicted_norm, along="gain", fewest=3, within=0.15, power=0.25,
        because="The first layer's noise is large if samples are not far fewer than neurons.",
        where=amplified_samples, missing=KERNELS,
    ),
    Slope(
        "power-of-the-gain",
        "The strength of the feature of the higher degree grows with the gain by the predicted exponent, "
        "which tends to the degree, 3 for erf, as d grows.",
        "arXiv:2512.04165, Figures 5 and 6; derivations/scale (6)", metric=strength(1), expected=cube,
        along="gain", fewest=3, within=0.1, power=0.1,
        because="A network of finite width has random strengths.", where=AMPLIFIED, missing=KERNELS,
    ),
    Slope(
        "lazy-layer-keeps-ratios",
        "Behind a lazy second layer the strength of the feature of the higher degree grows with the gain "
        "by the exponent that is predicted without this layer.",
        "arXiv:2512.04165, Figures 5 and 6; derivations/scale (6)", metric=strength(1),
        expected=cube_of_one_layer, along="gain", fewest=3, within=0.15, power=0.15,
        because="Ratios are kept for features that are weak in the second layer.",
        where={**AMPLIFIED, "second_width": above(0)}, missing=KERNELS,
    ),
    Slope(
        "spike-transmits-its-feature",
        "The strength of a spike's feature grows with the number of its neurons by the predicted "
        "exponent, which is 1 without the rest of the kernel.",
        "arXiv:2512.04165, Figures 5 and 6; derivations/scale (5)", metric=strength(2),
        expected=lambda point: float(point.predicted("strengths")[2]), along="spike", fewest=3,
        within=0.05, power=0.15, because="A network of finite width has random strengths.",
        where={"spike": above(0)}, missing="run with --preset spikes",
    ),
)
