"""Claims on hierarchical multi-index models; each row gives the reason for its tolerance."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from solvable.frame.agreement import Agreement, Cell, overlap_scatter
from solvable.frame.estimates import Slope
from solvable.frame.points import Point

PAGE = "derivations/multi-index"


def above_threshold(cell: Cell) -> bool:
    """Return True if there is one pass and n/d is at least 1.5 times the feature's threshold."""
    if cell.setting.deflation:
        return False
    threshold = cell.predicted("threshold_ratio")
    return bool(1.5 * threshold <= cell.setting.sample_ratio)


def near_threshold(cell: Cell) -> bool:
    """Return True if there is one pass, n/d is near the threshold, and the prediction is above chance."""
    if cell.setting.deflation or above_threshold(cell):
        return False
    # Far below the threshold the predicted overlap is that of random directions, so that a comparison
    # tests nothing.
    return cell.expected > max(0.15, 2 * cell.setting.features / cell.setting.dimension)


def deflated(cell: Cell) -> bool:
    """Return True if there is a second pass on the residuals."""
    return bool(cell.setting.deflation == 1)


def outlying(cell: Cell) -> bool:
    """Return True if there is one pass and the predicted eigenvalue is 15 % or more beyond the edge."""
    edge, place = float(cell.point.predicted("bulk_edge")), cell.expected
    return not cell.setting.deflation and abs(place) > 1.15 * abs(edge) and place * edge > 0


def bounded(cell: Cell) -> bool:
    """Return True if the label map is bounded and n/d is at least 2, so that the bulk has two edges."""
    return cell.setting.label_map in ("tanh", "square") and cell.setting.sample_ratio >= 2


def slowly_trained(cell: Cell) -> bool:
    """Return True if a network was trained at a learning rate of at most 0.01."""
    return bool(cell.setting.trained and cell.setting.learning_rate <= 0.01)


def readout_of(kind: str, *, passes: int) -> Callable[[Cell], bool]:
    """Select the points with the readout `kind` and the given number of passes."""
    return lambda cell: cell.setting.readout == kind and cell.setting.deflation == passes - 1


def between_thresholds(point: Point) -> bool:
    """Return True if n/d is between the first and the last threshold, where the error is a power law."""
    setting = point.setting
    thresholds = np.asarray(point.predicted("threshold_ratio"), dtype=float)
    finite = thresholds[np.isfinite(thresholds)]
    inside = finite.size and 3 * finite[0] <= setting.sample_ratio <= 2 * finite[-1]
    return bool(inside and setting.decay > 0.5 and not setting.deflation)


# fmt: off
CLAIMS = (
    Agreement(
        "overlap-above-threshold",
        "Above 1.5 times its threshold the squared overlap of a feature equals the prediction.",
        "squared_overlap", f"{PAGE} (7), (8), (24)", within=0.03, entry="feature",
        scatter=overlap_scatter,
        because="0.03: the theory neglects terms of order 1/d and the mixing of features near the edge.",
        where=above_threshold,
        missing="no feature has a threshold below sample_ratio / 1.5; raise sample_ratio",
    ),
    Agreement(
        "overlap-near-threshold",
        "Near and below its threshold the squared overlap of a feature equals the mean predicted at this "
        "dimension.",
        "squared_overlap", f"{PAGE} (24)", within=0.08, entry="feature", scatter=overlap_scatter,
        because="0.08: the theory orders eigenvalues near the edge by their means.",
        where=near_threshold, power=0.5,
        missing="no feature near its threshold has a predicted overlap above chance; lower sample_ratio",
    ),
    Agreement(
        "overlap-deflated",
        "After a second pass on the residuals the squared overlap of each feature equals the prediction.",
        "squared_overlap", f"{PAGE} (27)", within=0.08, entry="feature", scatter=overlap_scatter,
        because="0.08: the number of features that the first pass detects varies between samples.",
        where=deflated, power=0.3, missing="no point has a second pass; set deflation=1",
    ),
    Agreement(
        "outlier-places", "The eigenvalue of a detected feature equals the outlier psi(lambda*).",
        "eigenvalues", f"{PAGE} (7)", within=0.05, relative=True, entry="eigenvalue", where=outlying,
        because="5 %: eigenvalues fluctuate at finite d.",
        missing="no eigenvalue lies 15 % beyond the edge; raise sample_ratio",
    ),
    Agreement(
        "permuted-edge", "With permuted labels the edge of the spectrum equals the prediction.",
        "bulk_edge", f"{PAGE} (7)", within=lambda cell: cell.setting.dimension ** (-2 / 3),
        relative=True, because="d^(-2/3): the largest of d eigenvalues fluctuates by this order.",
        where=bounded,
        missing="no point has label_map tanh or square and n/d of at least 2", power=0.15,
    ),
    Agreement(
        "subspace-error", "The weighted error of the subspace equals the prediction.",
        "subspace_error", f"{PAGE} (23), (24)", within=0.05, relative=True,
        because="5 %: predictions are less accurate near a threshold.", power=0.15,
    ),
    Slope(
        "error-exponent",
        "Between the first and the last threshold the exponent of the subspace error in n equals the "
        "prediction at this number of features.",
        f"arXiv:2602.05846, Theorems 3.2 and 3.6; {PAGE} (23)",
        metric="subspace_error", along="sample_ratio", ignore=("test_samples",), span=3.9,
        within=0.03, because="0.03: predictions are less accurate near a threshold.",
        where=between_thresholds, power=0.15,
        missing="no curve has three values of sample_ratio between three times the first threshold and "
        "twice the last; run with --preset scaling",
    ),
    Agreement(
        "risk-monomials",
        "The excess risk of a readout on monomials, fitted to the same samples as its directions, equals "
        "the prediction.",
        "risk", f"{PAGE} (25), (26)", within=0.08,
        relative=True, because="8 %: overlaps differ between replicates, and enter squared.",
        where=readout_of("monomials", passes=1), power=0.2,
        missing="no point has readout=monomials and deflation=0",
    ),
    Agreement(
        "risk-deflated", "After a second pass the excess risk equals the prediction.",
        "risk", f"{PAGE} (26), (27)", within=0.1, relative=True,
        because="10 %: the number of features that the first pass detects varies.",
        where=readout_of("monomials", passes=2), power=0.3,
        missing="no point has readout=monomials and deflation=1",
    ),
    Agreement(
        "risk-random-neurons",
        "The excess risk of a readout with 300 random neurons equals the prediction.",
        "risk", f"{PAGE} (25), (26)", within=0.1, relative=True,
        because="10 %: each replicate draws its own neurons.",
        where=readout_of("relu", passes=1), power=0.3, missing="no point has readout=relu",
    ),
    Agreement(
        "gradient-ends-at-the-estimator",
        "At small learning rates, gradient descent on the first layer finds the directions that the "
        "spectral estimator detects on the same samples.",
        "estimator_overlap", f"{PAGE} (33)", within=0.02, power=0.1,
        because="0.02: at a finite learning rate the output of the network is not 0.",
        where=slowly_trained,
        missing="no network was trained at a small learning rate; set learning_rate=0.01, deflation=0 "
        "and n up to trained_samples",
    ),
    Agreement(
        "gradient-overlap",
        "Above twice its threshold the squared overlap of a feature with the directions of gradient "
        "descent at a small learning rate equals the prediction for the spectral estimator.",
        "gradient_overlap", f"{PAGE} (24), (33)", within=0.03,
        entry="feature", scatter=overlap_scatter,
        because="0.03: the theory neglects terms of order 1/d and the mixing of features near the edge.",
        # Gradient descent ranks by modulus, the estimator by distance from the bulk: if the edges of the
        # bulk differ, the two choose different directions near the edge.
        where=lambda cell: (
            slowly_trained(cell)
            and cell.setting.sample_ratio >= 2 * cell.predicted("threshold_ratio")
        ),
        missing="no network was trained at a small learning rate above a threshold; set "
        "learning_rate=0.01 and raise sample_ratio",
    ),
)
