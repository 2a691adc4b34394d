"""Claims on matrix sensing, one row each, with the reason of its tolerance."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from solvable.frame.agreement import Agreement, Cell
from solvable.frame.estimates import Contrast, Lead
from solvable.frame.points import Point
from solvable.models.sensing.matrix.predict import at_dimension

SENSING = "arXiv:2503.14121, arXiv:2408.03733"


def growth(cell: Cell) -> float:
    """Relative excess of the error at this size over the limit, for both estimators that of Bayes."""
    setting = cell.setting
    bayes = setting.model_copy(update={"estimator": "bayes"})
    error = at_dimension(bayes, setting.ratio)
    limit = float(cell.point.predicted("bayes_matrix_error"))
    return float("inf") if error is None else error / max(limit, 1e-300) - 1


def at_size(cell: Cell) -> bool:
    """Cells near enough to the limit, with something left to learn."""
    setting = cell.setting
    if float(cell.point.predicted("matrix_error")) < 1e-3 or growth(cell) > 0.3:
        return False
    # Without noise a per cent of the samples is everything next to recovery.
    near = setting.ratio / float(cell.point.predicted("recovery_ratio"))
    quiet = setting.noise < 0.05 * float(cell.point.predicted("matrix_error"))
    return setting.dimension >= 20 and not (quiet and near > 0.8)


def of(estimator: str) -> Callable[[Cell], bool]:
    """Such cells of one estimator."""
    return lambda cell: cell.setting.estimator == estimator and at_size(cell)


def settled_errors(point: Point) -> np.ndarray:
    """Errors of the replicates on which message passing settled."""
    values = point.values("matrix_error")
    return np.asarray(values[np.isfinite(values)])


def quiet_and_settled(point: Point) -> bool:
    """Whether there is no noise, and message passing settled on half of the replicates."""
    enough = 2 * settled_errors(point).size >= max(point.replicates, 4)
    return bool(point.setting.noise == 0 and enough)


# fmt: off
CLAIMS = (
    Agreement(
        "error-of-bayes",
        "Message passing reaches the error of state evolution, the least of any algorithm that is known.",
        "matrix_error", f"{SENSING}; first order in 1/d derived", relative=True, power=0.2,
        expected="finite_size_matrix_error", within=lambda cell: 0.04 + growth(cell) ** 2,
        because="Four per cent, and the square of what the first order in 1/d adds.", where=of("bayes"),
        missing="needs estimator=bayes, dimension 20 and a first order in 1/d below 0.3, away from "
        "recovery without noise",
    ),
    Agreement(
        "error-of-nuclear-norm",
        "The best penalty of the nuclear norm has the error of the best soft threshold.",
        "matrix_error", "derived from arXiv:2408.03733", relative=True, power=0.4,
        within=lambda cell: 0.04 + 1.5 * growth(cell),
        because="The limit alone is predicted: one and a half times what 1/d adds for a Bayesian.",
        where=of("nuclear-norm"),
        missing="needs estimator=nuclear-norm, dimension 20, a first order in 1/d below 0.3, away from "
        "recovery without noise",
    ),
    Agreement(
        "train-error",
        "What is left of the labels is what the degrees of freedom of the estimate leave.",
        "train_error", "derived", within=lambda cell: 0.08 + 2 * growth(cell), relative=True, power=0.5,
        because="The limit alone is predicted: twice what 1/d adds to the error.",
        # What little is left of few measurements doubles by 1/d (measured).
        where=lambda cell: at_size(cell)
        and cell.expected > 0.25 * (cell.setting.noise + 2 * cell.predicted("matrix_error")),
        missing="needs an estimate that leaves half of the residual: raise sample_ratio or noise",
    ),
    Agreement(
        "rank-of-nuclear-norm",
        "The share of eigenvalues that the nuclear norm keeps is that beyond the best threshold.",
        "rank_fraction", "derived", within=lambda cell: 0.03 + 1 / cell.setting.dimension, power=0.3,
        because="An eigenvalue more or less, and the flat optimum of the penalty.",
        where=of("nuclear-norm"), missing="needs estimator=nuclear-norm at 20 dimensions or more",
    ),
    Agreement(
        "spectrum-of-the-estimate",
        "Eigenvalues of the estimate, in eight groups from the largest, are those of the denoised law.",
        "eigenvalues", SENSING, entry="group", power=0.3,
        within=lambda cell: 0.05 + (0.05 + growth(cell) / 2) * abs(cell.expected),
        because="Five per cent, half of what 1/d adds to the error, and the scatter of few eigenvalues.",
        where=at_size, missing="needs dimension 32 and a first order in 1/d below 0.3",
    ),
    Contrast(
        "recovery-without-noise",
        "Without noise the error is that of the theory below the recovery threshold, and nothing beyond.",
        SENSING, metric=settled_errors, expected="matrix_error", across="recovery_ratio", along="ratio",
        within=0.1, relative=True, because="A tenth of the fall.", where=quiet_and_settled, power=0.3,
        missing="no points without noise on both sides of the recovery threshold; run with --preset "
        "recovery",
    ),
    Lead(
        "bayes-beats-nuclear-norm", "Knowing the spectrum lowers the error by the predicted amount.",
        "derived", metric="matrix_error", of={"estimator": "bayes"}, over={"estimator": "nuclear-norm"},
        within=0.2, relative=True, because="A fifth of the lead.", power=0.5,
        missing="no setting has both estimators; set estimator to both",
    ),
)
# fmt: on
