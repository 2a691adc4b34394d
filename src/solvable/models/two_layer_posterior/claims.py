"""Claims of `curse-of-detail`, each with its tolerance and the reason for the tolerance."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from solvable.frame.agreement import Agreement, Cell
from solvable.frame.estimates import Estimate
from solvable.frame.points import Point
from solvable.models.two_layer_posterior.langevin import STEP_TOLERANCE

PAGE = "derivations/two-layer-posterior"
THEORY = "arXiv:2512.04165, Equations 25 and 33"

LEVEL = 0.1
"""Alignment that a learning curve must cross for its shift to be estimated."""

BY_CHANCE = 0.0027
"""Fraction of neurons that exceed three standard deviations under the prior."""

UNSETTLED = (
    "no point with both starts is in equilibrium: the two starts disagree, the second half of the run "
    "is worth fewer than ten independent draws, the run is too short, or the step is too large. Raise "
    "steps; at N near d, and from d = 20 on, neurons specialise after times that grow exponentially "
    "with d, longer than any run here. Layers narrower than their inputs are not tested either: raise "
    "width_ratio"
)

UNSPECIALISED = UNSETTLED + "; or fewer than one specialised neuron is predicted"


def ran_long(point: Point) -> bool:
    """Return True if the runs from both starts used small steps and lasted several relaxation times."""
    if point.setting.start != "both":
        return False
    long = float(point.mean("duration")) >= 4 and float(point.mean("effective_samples")) >= 10
    return long and float(point.mean("step_error")) < 2 * STEP_TOLERANCE


def in_equilibrium(point: Point) -> bool:
    """Return True if the prior start and the planted start reached the same alignment."""
    if not ran_long(point):
        return False
    prior, planted = point.values("alignment_prior"), point.values("alignment_planted")
    gap = float(np.mean(planted - prior))
    return abs(gap) <= max(0.02, 0.15 * float(np.mean(planted + prior)) / 2)


def planted_over_prior(point: Point) -> np.ndarray | None:
    """Alignment from the planted start over alignment from the prior start, for each replicate."""
    if point.setting.start != "both":
        return None
    prior, planted = point.values("alignment_prior"), point.values("alignment_planted")
    if not prior.mean() > 0:  # neither start learned anything
        return np.zeros_like(prior)
    return np.asarray(1 + (planted - prior) / prior.mean())


def settled(cell: Cell) -> bool:
    """Return True if the point is in equilibrium and the layer is at least as wide as its inputs."""
    # In a layer narrower than its inputs the kernel fluctuates from network to network.
    return in_equilibrium(cell.point) and cell.setting.width >= cell.setting.dimension


def with_outliers(least: float) -> Callable[[Cell], bool]:
    """Select points in equilibrium with more predicted outliers than the prior has by chance."""

    def chosen(cell: Cell) -> bool:
        by_chance = BY_CHANCE * cell.setting.width
        return settled(cell) and cell.predicted("outliers") > by_chance + least

    return chosen


def learns_in_equilibrium(point: Point) -> bool:
    """Return True if a point is in equilibrium and its predicted alignment exceeds 0.01."""
    return in_equilibrium(point) and float(point.predicted("alignment")) > 0.01


def sample_factor(points: Sequence[Point]) -> tuple[float, float] | None:
    """Estimate needed over predicted number of samples, from the shift of a learning curve."""
    curve = sorted(points, key=lambda point: float(point.setting.scaled_samples))
    predicted = np.array([float(point.predicted("alignment")) for point in curve])
    if not predicted.min() < LEVEL < predicted.max():
        return None
    x = np.log([point.setting.scaled_samples for point in curve])
    measured = np.array([float(point.mean("alignment")) for point in curve])
    # A(log P) = A_predicted(log P - delta), to first order, by least squares (two-layer-posterior 18).
    # The scatter between sets of samples is proportional to the alignment.
    slope = np.gradient(predicted, x)
    weights = slope * np.array([point.replicates for point in curve]) / predicted**2
    delta = weights @ (predicted - measured) / (weights @ slope)
    return float(np.exp(delta)), 1.0


# fmt: off
CLAIMS = (
    Agreement(
        "posterior-is-sampled",
        "The mean product of a weight and the gradient of minus the log posterior is 1, as in the "
        "posterior: the dynamics samples the posterior, and its step is small enough.",
        "virial", f"{PAGE} (17)", within=0.03,
        because="A mean over correlated draws has about this much noise.",
        where=lambda cell: ran_long(cell.point), missing=UNSETTLED,
    ),
    Agreement(
        "starts-agree",
        "Networks that start from the prior and networks that start with planted specialised neurons "
        "reach the same alignment on the same samples.",
        planted_over_prior, f"{PAGE} (1)", within=0.1, expected=1.0, power=0.3,
        because="The two networks are independent draws from one posterior.",
        where=lambda cell: ran_long(cell.point) and cell.mean("alignment_prior") > 0.05,
        missing=UNSETTLED + "; or the alignment is below 0.05",
    ),
    Agreement(
        "alignment",
        "The alignment of networks with the target equals the prediction for the posterior.",
        "alignment", f"{THEORY}; {PAGE} (13)", within=0.15, relative=True, power=0.5,
        because="The theory neglects fluctuations of other modes, and their correlations.",
        where=lambda cell: settled(cell) and cell.expected > 0.05,
        missing=UNSETTLED + "; or no alignment above 0.05 is predicted",
    ),
    Estimate(
        "samples-to-learn",
        "Learning takes the predicted number of samples: the measured learning curve is not shifted.",
        f"{PAGE} (13), (18)", estimate=sample_factor, apart=("scaled_samples",), fewest=3, within=0.1,
        because="The theory neglects fluctuations of other modes.", where=learns_in_equilibrium,
        missing="no curve has three points in equilibrium along which the predicted alignment crosses "
        f"{LEVEL:g}; widen scaled_samples, or raise steps", power=0.3,
    ),
    Agreement(
        "test-error",
        "The test error of single networks of the posterior equals the prediction.",
        "test_error", f"{PAGE} (14)", within=0.08, relative=True, power=0.15,
        because="The theory neglects fluctuations of other modes, and their correlations.",
        where=settled, missing=UNSETTLED,
    ),
    Agreement(
        "outliers",
        "The number of neurons beyond three standard deviations of the prior equals the prediction.",
        "outliers", f"{PAGE} (13)", within=0.25, relative=True, power=0.5,
        because="Fewer than ten neurons specialise, and their number fluctuates.",
        where=with_outliers(1.0), missing=UNSPECIALISED,
    ),
    Agreement(
        "specialised-neurons-shrink",
        "The irrelevant weights of specialised neurons have the predicted norm, far below the prior's.",
        "outlier_rest", f"{PAGE} (6), (13)", within=0.05, power=0.5,
        because="Some neurons of the prior are counted as outliers.",
        where=with_outliers(1.0), missing=UNSPECIALISED,
    ),
    Agreement(
        "strength-of-specialised-neurons",
        "Specialised neurons have the predicted overlap with the target's direction.",
        "outlier_overlap", f"{PAGE} (6), (13)", within=0.07, relative=True, power=0.2,
        because="Some neurons of the prior are counted as outliers.",
        where=with_outliers(1.0), missing=UNSPECIALISED,
    ),
)
