"""Claims of attention-indexed models, each with the reason for its tolerance."""

from __future__ import annotations

from math import inf

from solvable.frame.agreement import Agreement, Cell
from solvable.frame.estimates import Contrast
from solvable.models.attention.indexed.theory import peakedness


def judged(cell: Cell) -> bool:
    """Return True if d is at least 30 and the predicted matrix error exceeds 0.005."""
    return cell.setting.dimension >= 30 and cell.predicted("finite_size_matrix_error") > 0.005


def allowed(cell: Cell) -> float:
    """Relative tolerance: 0.04 plus 1.5 times the square of the relative first-order term in 1/d."""
    grown = cell.predicted("finite_size_matrix_error") / cell.predicted("matrix_error") - 1
    return float(0.04 + min(1.5 * grown**2, 0.06))


SECOND = (
    "0.04, plus 1.5 times the square of the first-order term in 1/d as a bound on the next order."
)


CLAIMS = (
    Agreement(
        "error-of-weights",
        "The error of the estimated weights equals the prediction, which includes the first order in "
        "1/d.",
        "matrix_error", "derivations/attention (1), (4); derivations/sensing (3), (22)",
        expected="finite_size_matrix_error", within=allowed, relative=True,
        because=SECOND, where=judged, power=0.2,
        missing="no point has at least 30 dimensions and a predicted matrix error above 0.005; lower "
        "sample_ratio or raise noise",
    ),
    Agreement(
        "error-of-attention",
        "The test error of the posterior mean of the attention matrix equals the prediction.",
        "test_error", "derivations/attention (6), (7)", expected="finite_size_test_error", relative=True,
        within=lambda cell: allowed(cell) + 0.02 * peakedness(cell.setting),
        because=SECOND + " Plus 0.02 times the excess kurtosis of a diagonal index.",
        where=lambda cell: judged(cell) and cell.setting.activation != "linear", power=0.2,
        missing="no point has activation softmax or hardmax, at least 30 dimensions and a predicted "
        "matrix "
        "error above 0.005",
    ),
    Contrast(
        "recovery-without-noise",
        "Without noise the weights are recovered exactly above recovery_ratio, but not below.",
        "derivations/attention (1), (5)", metric="matrix_error", expected="finite_size_matrix_error",
        across="recovery_ratio", along="sample_ratio", below=(0.5, 0.9), above=(1.0, inf),
        within=0.06, relative=True, power=0.2,
        because="6 % for terms of order 1/d, which the prediction leaves out.",
        missing="needed: points with noise 0 at 0.5 to 0.9 times recovery_ratio, and points above "
        "recovery_ratio; set noise=0 and widen sample_ratio",
    ),
)  # fmt: skip
