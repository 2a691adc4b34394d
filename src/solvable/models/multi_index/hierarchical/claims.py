"""Claims on hierarchical multi-index models, one row each, with the reason of its tolerance."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from solvable.frame.agreement import Agreement, Cell, overlap_scatter
from solvable.frame.estimates import Slope
from solvable.frame.points import Point

PAPER = "arXiv:2602.05846"
SPECTRAL = "arXiv:2502.01583 (note eq. 3.3); finite dimension derived"


def above_threshold(cell: Cell) -> bool:
    """Whether a feature is found at two thirds of the samples at hand, in one pass."""
    if cell.setting.deflation:
        return False
    threshold = cell.predicted("threshold_ratio")
    return bool(1.5 * threshold <= cell.setting.sample_ratio)


def near_threshold(cell: Cell) -> bool:
    """Whether a feature is within a factor of the samples from which it is found, in one pass."""
    if cell.setting.deflation or above_threshold(cell):
        return False
    # Far below nothing but chance is predicted, which tells little.
    return cell.expected > max(0.15, 2 * cell.setting.features / cell.setting.dimension)


def deflated(cell: Cell) -> bool:
    """Whether there is a second pass."""
    return bool(cell.setting.deflation == 1)


def outlying(cell: Cell) -> bool:
    """Whether an eigenvalue is far enough out to be that of one feature."""
    edge, place = float(cell.point.predicted("bulk_edge")), cell.expected
    return not cell.setting.deflation and abs(place) > 1.15 * abs(edge) and place * edge > 0


def bounded(cell: Cell) -> bool:
    """Whether weights are bounded and samples enough for a bulk with two edges."""
    return cell.setting.label_map in ("tanh", "square") and cell.setting.sample_ratio >= 2


def readout_of(kind: str, *, passes: int) -> Callable[[Cell], bool]:
    """Cells of a readout, in one pass or in two."""
    return lambda cell: cell.setting.readout == kind and cell.setting.deflation == passes - 1


def between_thresholds(point: Point) -> bool:
    """Whether the error falls as a power: above the first threshold, and until the last feature."""
    setting = point.setting
    thresholds = np.asarray(point.predicted("threshold_ratio"), dtype=float)
    finite = thresholds[np.isfinite(thresholds)]
    inside = finite.size and 3 * finite[0] <= setting.sample_ratio <= 2 * finite[-1]
    return bool(inside and setting.decay > 0.5 and not setting.deflation)


# fmt: off
CLAIMS = (
    Agreement(
        "overlap-above-threshold",
        "Every feature that two thirds of the samples would find has the predicted overlap.",
        "squared_overlap", SPECTRAL, within=0.03, entry="feature", scatter=overlap_scatter,
        because="0.03: terms of order 1/d, and neighbours that mix near the edge.",
        where=above_threshold,
        missing="no feature has a threshold below two thirds of the samples; raise sample_ratio",
    ),
    Agreement(
        "overlap-near-threshold",
        "Features near their threshold or below share the last eigenvectors as predicted.",
        "squared_overlap", "derived", within=0.08, entry="feature", scatter=overlap_scatter,
        because="0.08: single eigenvalues at the edge, whose ranking the theory takes in the mean.",
        where=near_threshold, power=0.5,
        missing="no feature near its threshold has a predicted overlap beyond chance; lower sample_ratio",
    ),
    Agreement(
        "overlap-deflated", "A second pass on the residuals finds each feature as well as predicted.",
        "squared_overlap", "derived", within=0.08, entry="feature", scatter=overlap_scatter,
        because="0.08: which features the first pass counts as found varies near the edge.",
        where=deflated, power=0.3, missing="no point has a second pass; set deflation=1",
    ),
    Agreement(
        "outlier-places", "The eigenvalue of a found feature is at psi(lambda*).",
        "eigenvalues", SPECTRAL, within=0.05, relative=True, entry="eigenvalue", where=outlying,
        because="5 %: fluctuations of finite d.",
        missing="no eigenvalue lies 15 % beyond the edge; raise sample_ratio",
    ),
    Agreement(
        "permuted-edge", "With permuted labels the spectrum ends at the predicted edge.",
        "bulk_edge", SPECTRAL, within=lambda cell: cell.setting.dimension ** (-2 / 3),
        relative=True, because="d^(-2/3), by which the largest of d eigenvalues fluctuates.",
        where=bounded,
        missing="labels are not bounded, or n/d is below 2", power=0.15,
    ),
    Agreement(
        "subspace-error", "The weighted error of the subspace is the predicted one.",
        "subspace_error", f"{PAPER}; finite size derived", within=0.05, relative=True,
        because="5 %: features near their threshold.", power=0.15,
    ),
    Slope(
        "error-exponent",
        "Between the first and the last threshold the error falls with the predicted power of n.",
        f"{PAPER}, theorems 3.2 and 3.6; prefactors and finite p derived",
        metric="subspace_error", along="sample_ratio", ignore=("test_samples",), span=3.9,
        within=0.03, because="0.03 for the features near their threshold.",
        where=between_thresholds, power=0.15,
        missing="fewer than three sizes of a curve lie between three times the first threshold and the "
        "last; run with --preset scaling",
    ),
    Agreement(
        "risk-monomials",
        "A readout fitted to the samples that found its directions has the predicted excess risk.",
        "risk", "derived: coordinates of training samples lean towards their labels", within=0.08,
        relative=True, because="8 %: overlaps differ between replicates and enter squared.",
        where=readout_of("monomials", passes=1), power=0.2,
        missing="no point has readout=monomials and deflation=0",
    ),
    Agreement(
        "risk-deflated", "After a second pass the excess risk is the predicted one.",
        "risk", "derived", within=0.1, relative=True,
        because="A tenth: as for its overlaps.", where=readout_of("monomials", passes=2), power=0.3,
        missing="no point has readout=monomials and deflation=1",
    ),
    Agreement(
        "risk-random-neurons", "300 random neurons on the directions have the predicted excess risk.",
        "risk", "derived", within=0.1, relative=True,
        because="A tenth: the neurons are drawn anew in each replicate.",
        where=readout_of("relu", passes=1), power=0.3, missing="no point has readout=relu",
    ),
)
