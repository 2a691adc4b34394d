"""Claims of `curse-of-detail`, each with its tolerance and the reason for the tolerance."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from solvable.frame.agreement import Agreement, Cell
from solvable.frame.conditions import above
from solvable.frame.estimates import Estimate
from solvable.frame.points import Point
from solvable.hermite import gaussian_quadrature, hermite_polynomials
from solvable.models.two_layer_posterior.equilibrium import (
    PAGE,
    UNSETTLED,
    UNSPECIALISED,
    in_equilibrium,
    ran_long,
    settled,
)
from solvable.models.two_layer_posterior.kernel_claims import KERNEL_CLAIMS
from solvable.models.two_layer_posterior.learning_curves import (
    LEVEL,
    alignment_of,
    samples_at_level,
)
from solvable.models.two_layer_posterior.parity_claims import PARITY_CLAIMS

THEORY = "arXiv:2512.04165, Equations 25 and 33"

BY_CHANCE = 0.0027
"""Fraction of neurons that exceed three standard deviations under the prior."""


def planted_over_prior(point: Point) -> np.ndarray | None:
    """Alignment from the planted start over alignment from the prior start, for each replicate."""
    if point.setting.start != "both" or point.setting.gain:
        return None
    prior, planted = point.values("alignment_prior"), point.values("alignment_planted")
    if not prior.mean() > 0:  # neither start learned anything
        return np.zeros_like(prior)
    return np.asarray(1 + (planted - prior) / prior.mean())


def with_outliers(least: float) -> Callable[[Cell], bool]:
    """Select points in equilibrium with more predicted outliers than the prior has by chance."""

    def chosen(cell: Cell) -> bool:
        by_chance = BY_CHANCE * cell.setting.width
        return settled(cell) and cell.predicted("outliers") > by_chance + least

    return chosen


def learns_in_equilibrium(point: Point) -> bool:
    """Return True if a point is in equilibrium and its predicted alignment exceeds 0.01."""
    return in_equilibrium(point) and float(point.predicted("alignment")) > 0.01


def evenly_labelled(cell: Cell) -> bool:
    """Select points in equilibrium at which few sets of samples do not carry the mean error."""
    nodes, weights = gaussian_quadrature(60)
    labels = hermite_polynomials(nodes, cell.setting.degree)[cell.setting.degree]
    # variance of a set's mean squared label: (E[y⁴] - 1) / P
    return settled(cell) and float(weights @ labels**4) - 1 < cell.setting.samples


def sample_factor(points: Sequence[Point]) -> tuple[float, float] | None:
    """Estimate needed over predicted number of samples, from the shift of a learning curve."""
    curve = sorted(points, key=lambda point: float(point.setting.scaled_samples))
    predicted = np.array([float(point.predicted("alignment")) for point in curve])
    if not predicted.min() < LEVEL < predicted.max():
        return None
    x = np.log([point.setting.scaled_samples for point in curve])
    measured = np.array([alignment_of(point) for point in curve])
    # A(log P) = A_predicted(log P - delta), to first order, by least squares (two-layer-posterior 18).
    # Adjusted alignments scatter about equally at all numbers of samples.
    slope = np.gradient(predicted, x)
    weights = slope * np.array([point.replicates for point in curve])
    delta = weights @ (predicted - measured) / (weights @ slope)
    return float(np.exp(delta)), 1.0


def dimension_exponent(points: Sequence[Point]) -> tuple[float, float] | None:
    """Estimate the exponent of d in the number of samples, measured and expected."""
    return sample_exponent(points, "dimension")


def context_factor(points: Sequence[Point]) -> tuple[float, float] | None:
    """Estimate the growth of attention's samples from the fewest to the most tokens."""
    exponents = sample_exponent(points, "context")
    if exponents is None:
        return None
    tokens = [int(point.setting.context) for point in points]
    span = max(tokens) / min(tokens)
    return span ** exponents[0], span ** exponents[1]


def sample_exponent(points: Sequence[Point], along: str) -> tuple[float, float] | None:
    """Fit p in P ~ size^p, with P the samples at the level of alignment: measured and predicted p.

    None for fewer than three sizes, or if a curve does not cross the level.
    """
    sizes = sorted({int(getattr(point.setting, along)) for point in points})
    if len(sizes) < 3:
        return None
    curves = [[p for p in points if getattr(p.setting, along) == size] for size in sizes]
    deep = points[0].setting.second_width > 0
    rows = [[samples_at_level(curve, name) for curve in curves] for name in ("mean", "predicted")]
    logs = np.log(sizes)
    # sum_d w_d log P with least-squares weights
    weights = (logs - logs.mean()) / np.sum((logs - logs.mean()) ** 2)
    slopes = [np.nan if None in row else float(weights @ np.array(row)) for row in rows]
    # Three layers: P ~ d^max(1, min((1 + n1)/2, (1 + n2)/2, 3)) at widths of d^n1 and d^n2, here d.
    return slopes[0], 1.0 if deep else slopes[1]


def error_per_alignment(points: Sequence[Point]) -> tuple[float, float] | None:
    """Estimate the slope of the test error against the alignment, measured and predicted."""
    slopes = []
    for read in (Point.mean, Point.predicted):
        alignment, error = (
            np.array([float(read(point, name)) for point in points])
            for name in ("alignment", "test_error")
        )
        centred = alignment - alignment.mean()
        if not centred @ centred > 0:
            return None
        slopes.append(float(centred @ error / (centred @ centred)))
    return slopes[0], slopes[1]


# fmt: off
CLAIMS = (
    Agreement(
        "posterior-is-sampled",
        "The mean product of a weight and the gradient of minus the log posterior is 1, as in the "
        "posterior: the dynamics samples the posterior, and its step is small enough.",
        "virial", f"{PAGE} (17)", within=0.03,
        because="A mean over correlated draws has about this much noise.",
        where=ran_long, missing=UNSETTLED,
    ),
    Agreement(
        "starts-agree",
        "Networks that start from the prior and networks that start with planted specialised neurons "
        "reach the same alignment on the same samples.",
        planted_over_prior, f"{PAGE} (1)", within=0.1, expected=1.0, power=0.3,
        because="The two networks are independent draws from one posterior.",
        where=(ran_long, lambda cell: cell.mean("alignment_prior") > 0.05),
        missing=UNSETTLED + "; or the alignment is below 0.05",
    ),
    Agreement(
        "alignment",
        "The alignment of networks with the target equals the prediction for the posterior, after the "
        "predicted effect of each set of samples is subtracted.",
        "adjusted_alignment", f"{THEORY}; {PAGE} (13)", within=0.15, expected="alignment",
        relative=True, power=0.5,
        because="The theory neglects fluctuations of other modes, and their correlations.",
        where={"both starts in equilibrium": settled, "expected": above(0.05)}, missing=UNSETTLED,
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
        where=evenly_labelled,
        missing=UNSETTLED + "; or so few samples (93 at degree 3) that rare sets carry the mean error",
    ),
    Agreement(
        "outliers",
        "The number of neurons of the first layer beyond three standard deviations of the prior equals "
        "the prediction; a second layer, if any, is predicted as lazy.",
        "outliers", f"{PAGE} (13), (19)", within=0.25, relative=True, power=0.5,
        because="Fewer than ten neurons specialise, and their number fluctuates.",
        where=with_outliers(1.0), missing=UNSPECIALISED,
    ),
    Agreement(
        "specialised-neurons-shrink",
        "The irrelevant weights of specialised neurons have the predicted norm, far below the prior's.",
        "outlier_rest", f"{PAGE} (6), (13)", within=0.05, power=0.5,
        because="Some neurons that did not specialise exceed three deviations and are counted too.",
        where=with_outliers(1.0), missing=UNSPECIALISED,
    ),
    Agreement(
        "strength-of-specialised-neurons",
        "Specialised neurons have the predicted overlap with the target's direction.",
        "outlier_overlap", f"{PAGE} (6), (13)", within=0.07, relative=True, power=0.2,
        because="Some neurons that did not specialise exceed three deviations and are counted too.",
        where=with_outliers(1.0), missing=UNSPECIALISED,
    ),
    Estimate(
        "samples-grow-with-dimension",
        "The number of samples that reach an alignment of 0.1 (0.2 for attention) grows as a power of "
        "the dimension with the predicted exponent: close to 1 for one hidden layer, exactly 1 for two, "
        "close to 3/2 for attention. Widths grow with the dimension; heads and tokens are fixed.",
        "arXiv:2512.04165, Figures 2b and 3a; derivations/scale (3)",
        estimate=dimension_exponent, apart=("dimension", "scaled_samples"), fewest=6, within=0.2,
        because="Curves of small dimensions are less steep, and differ by a factor near 1.",
        where=settled,
        missing="no three dimensions have curves that cross this alignment in equilibrium; run with "
        "--preset onset, three-layers or attention-dimensions", power=0.3,
    ),
    Estimate(
        "samples-grow-with-context",
        "From the fewest to the most tokens, the samples at which attention reaches an alignment of 0.2 "
        "grow by the predicted factor at these sizes; at many tokens they grow as the root.",
        f"arXiv:2512.04165, Figure 3b; {PAGE} (27)",
        estimate=context_factor, apart=("context", "scaled_samples"), fewest=6, within=0.2,
        relative=True,
        because="The prediction uses the response of the softmax for scores drawn from the prior; "
        "trained heads have larger scores.",
        where=({"target": "attention"}, in_equilibrium),
        missing="no three numbers of tokens have curves that cross an alignment of 0.2 in equilibrium; "
        "run with --preset attention", power=0.5,
    ),
    Estimate(
        "error-falls-with-alignment",
        "The test error falls with the alignment along a curve, with the predicted slope.",
        f"arXiv:2512.04165, Appendix F.2; {PAGE} (13), (14)", estimate=error_per_alignment,
        apart=("scaled_samples",), fewest=3, within=0.15, relative=True, power=0.3,
        because="The theory neglects fluctuations of other modes.",
        where=learns_in_equilibrium, missing=UNSETTLED + "; or a curve has fewer than three points",
    ),
    *PARITY_CLAIMS,
    *KERNEL_CLAIMS,
)
