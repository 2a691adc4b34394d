"""What `curse-of-detail` claims: a row per statement, with its tolerance's reason."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from solvable.frame.agreement import Agreement, Cell
from solvable.frame.estimates import Estimate
from solvable.frame.points import Point
from solvable.models.two_layer_posterior.langevin import STEP_TOLERANCE

PAPER = "arXiv:2512.04165"
DERIVED = f"derived ({PAPER}, eqs. 25 and 33; finite size)"

LEVEL = 0.1
"""Alignment that a learning curve passes where it tells how many samples learning takes."""

BY_CHANCE = 0.0027
"""Share of the prior beyond three standard deviations."""

UNSETTLED = (
    "no point with both starts is in equilibrium: they disagree, or the second half of the run is worth "
    "fewer than ten independent draws, or is short, or its step is large. Raise steps; with N near d, "
    "and from d = 20 on, neurons specialise after times that grow exponentially with d, of which no run "
    "of this length tells. Or layers are narrower than their inputs: raise width_ratio"
)

UNSPECIALISED = UNSETTLED + "; or fewer than one specialised neuron is predicted"


def ran_long(point: Point) -> bool:
    """Whether both starts were run, in small steps, for some relaxation times of prior and alignment."""
    if point.setting.start != "both":
        return False
    long = float(point.mean("duration")) >= 4 and float(point.mean("effective_samples")) >= 10
    return long and float(point.mean("step_error")) < 2 * STEP_TOLERANCE


def in_equilibrium(point: Point) -> bool:
    """Whether networks from the prior and planted ones came to the same alignment."""
    if not ran_long(point):
        return False
    prior, planted = point.values("alignment_prior"), point.values("alignment_planted")
    gap = float(np.mean(planted - prior))
    return abs(gap) <= max(0.02, 0.15 * float(np.mean(planted + prior)) / 2)


def planted_over_prior(point: Point) -> np.ndarray | None:
    """Alignment from a planted start over that from the prior, on the same samples of each replicate."""
    if point.setting.start != "both":
        return None
    prior, planted = point.values("alignment_prior"), point.values("alignment_planted")
    if not prior.mean() > 0:  # nothing was learnt that the two could agree on
        return np.zeros_like(prior)
    return np.asarray(1 + (planted - prior) / prior.mean())


def settled(cell: Cell) -> bool:
    """Cells of points in equilibrium, of layers whose kernel fluctuates little (note 2.7)."""
    return in_equilibrium(cell.point) and cell.setting.width >= cell.setting.dimension


def with_outliers(least: float) -> Callable[[Cell], bool]:
    """Cells in equilibrium at which more outliers are predicted than the prior alone has by chance."""

    def chosen(cell: Cell) -> bool:
        by_chance = BY_CHANCE * cell.setting.width
        return settled(cell) and cell.predicted("outliers") > by_chance + least

    return chosen


def learns_in_equilibrium(point: Point) -> bool:
    """Whether a point in equilibrium is predicted to have learned something."""
    return in_equilibrium(point) and float(point.predicted("alignment")) > 0.01


def sample_factor(points: Sequence[Point]) -> tuple[float, float] | None:
    """Samples that learning takes over those predicted, from the shift of a whole learning curve."""
    curve = sorted(points, key=lambda point: float(point.setting.scaled_samples))
    predicted = np.array([float(point.predicted("alignment")) for point in curve])
    if not predicted.min() < LEVEL < predicted.max():
        return None
    x = np.log([point.setting.scaled_samples for point in curve])
    measured = np.array([float(point.mean("alignment")) for point in curve])
    # A(log P) = A_predicted(log P - delta), to first order, least squares. Sets of samples scatter in
    # proportion to what is learnt.
    slope = np.gradient(predicted, x)
    weights = slope * np.array([point.replicates for point in curve]) / predicted**2
    delta = weights @ (predicted - measured) / (weights @ slope)
    return float(np.exp(delta)), 1.0


# fmt: off
CLAIMS = (
    Agreement(
        "posterior-is-sampled",
        "Weights times gradient of the posterior are as many as there are weights: the dynamics samples "
        "the posterior, and its step is small enough.",
        "virial", "derived (integration by parts)", within=0.03,
        because="The last digits of a mean over correlated draws.",
        where=lambda cell: ran_long(cell.point), missing=UNSETTLED,
    ),
    Agreement(
        "starts-agree",
        "Networks drawn from the prior and networks with planted specialised neurons reach one alignment "
        "on the same samples.",
        planted_over_prior, PAPER, within=0.1, expected=1.0, power=0.3,
        because="Two networks are two draws of one posterior.",
        where=lambda cell: ran_long(cell.point) and cell.mean("alignment_prior") > 0.05,
        missing=UNSETTLED + "; or the alignment is below 0.05",
    ),
    Agreement(
        "alignment",
        "The alignment of a network with the target is that of the posterior at this size.",
        "alignment", DERIVED, within=0.15, relative=True, power=0.5,
        because="What the theory leaves out: fluctuations of other modes, and their correlations.",
        where=lambda cell: settled(cell) and cell.expected > 0.05,
        missing=UNSETTLED + "; or no alignment above 0.05 is predicted",
    ),
    Estimate(
        "samples-to-learn",
        "Learning takes as many samples as predicted: the curve of alignments is not shifted.",
        DERIVED, estimate=sample_factor, apart=("scaled_samples",), fewest=3, within=0.1,
        because="A tenth, for what the theory leaves out.", where=learns_in_equilibrium, power=0.3,
        missing="no curve has three points in equilibrium along which the alignment is predicted to pass "
        f"{LEVEL:g}; widen scaled_samples, or raise steps",
    ),
    Agreement(
        "test-error",
        "The test error of single networks of the posterior is the predicted one.",
        "test_error", DERIVED, within=0.08, relative=True, power=0.15,
        because="What the theory leaves out: fluctuations of other modes, and their correlations.",
        where=settled, missing=UNSETTLED,
    ),
    Agreement(
        "outliers",
        "As many neurons as in the posterior are beyond three standard deviations of the prior.",
        "outliers", DERIVED, within=0.25, relative=True, power=0.5,
        because="Less than ten neurons, of which each fluctuates.",
        where=with_outliers(1.0), missing=UNSPECIALISED,
    ),
    Agreement(
        "specialised-neurons-shrink",
        "Specialised neurons shrink their irrelevant weights far below the prior's.",
        "outlier_rest", DERIVED, within=0.05, power=0.5,
        because="Outliers of the prior among them.",
        where=with_outliers(1.0), missing=UNSPECIALISED,
    ),
    Agreement(
        "strength-of-specialised-neurons",
        "Specialised neurons have the predicted overlap with the target's direction.",
        "outlier_overlap", DERIVED, within=0.07, relative=True, power=0.2,
        because="Outliers of the prior among them.",
        where=with_outliers(1.0), missing=UNSPECIALISED,
    ),
)
