"""Claims on attention-indexed models, one row each, with the reason of its tolerance."""

from __future__ import annotations

from math import inf

from solvable.frame.agreement import Agreement, Cell
from solvable.frame.estimates import Contrast
from solvable.models.attention.indexed.theory import peakedness

SOURCE = "arXiv:2506.01582; first order in 1/d derived"


def judged(cell: Cell) -> bool:
    """Whether there is an error to speak of, in enough dimensions."""
    return cell.setting.dimension >= 30 and cell.predicted("finite_size_matrix_error") > 0.005


def allowed(cell: Cell) -> float:
    """Four hundredths, and the second order in 1/d."""
    grown = cell.predicted("finite_size_matrix_error") / cell.predicted("matrix_error") - 1
    return float(0.04 + min(1.5 * grown**2, 0.06))


SECOND = "0.04, and one and a half times the square of the first order in 1/d for the second."


CLAIMS = (
    Agreement(
        "error-of-weights",
        "Message passing estimates the weights of attention as well as a Bayesian can, with the error of "
        "state evolution and its first order in 1/d.",
        "matrix_error", SOURCE, expected="finite_size_matrix_error", within=allowed, relative=True,
        because=SECOND, where=judged, power=0.2,
        missing="no point has 30 dimensions and an error above 0.005; lower sample_ratio or raise noise",
    ),
    Agreement(
        "error-of-attention",
        "The mean attention matrix over what is not known of the weights has the predicted error on "
        "fresh samples.",
        "test_error", "derived", expected="finite_size_test_error", relative=True,
        within=lambda cell: allowed(cell) + 0.02 * peakedness(cell.setting),
        because=SECOND + " And 0.02 times the excess kurtosis of an index.",
        where=lambda cell: judged(cell) and cell.setting.activation != "linear", power=0.2,
        missing="no point has activation softmax or hardmax, 30 dimensions and an error above 0.005",
    ),
    Contrast(
        "recovery-without-noise",
        "Without noise softmax tells T (T + 1) / 2 - 1 numbers of each sample, and the weights are "
        "recovered exactly from as many samples as count their free parameters.",
        "derived (note 4.2)", metric="matrix_error", expected="finite_size_matrix_error",
        across="recovery_ratio", along="sample_ratio", below=(0.5, 0.9), above=(1.0, inf),
        within=0.06, relative=True, because="6 % for finite dimensions.", power=0.2,
        missing="no points without noise at 0.5 to 0.9 and beyond recovery_ratio; set noise=0 and widen "
        "sample_ratio",
    ),
)  # fmt: skip
