"""Claims of matrix sensing, each with the reason for its tolerance."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from solvable.frame.agreement import Agreement, Cell
from solvable.frame.conditions import at_least
from solvable.frame.estimates import Contrast, Estimate, Lead
from solvable.frame.points import Point
from solvable.models.sensing.information import mutual_information
from solvable.models.sensing.matrix.predict import at_dimension


def growth(cell: Cell) -> float:
    """First-order term in 1/d of the Bayes error, relative to the limit; used for both estimators."""
    setting = cell.setting
    bayes = setting.model_copy(update={"estimator": "bayes"})
    error = at_dimension(bayes, setting.ratio)
    limit = float(cell.point.predicted("bayes_matrix_error"))
    return float("inf") if error is None else error / max(limit, 1e-300) - 1


def at_size(cell: Cell) -> bool:
    """Return True for a positive error and a relative first-order term in 1/d below 0.3."""
    setting = cell.setting
    if float(cell.point.predicted("matrix_error")) < 1e-3 or growth(cell) > 0.3:
        return False
    # Without noise, 1 % more or fewer samples change the error near recovery strongly.
    near = setting.ratio / float(cell.point.predicted("recovery_ratio"))
    quiet = setting.label_noise < 0.05 * float(cell.point.predicted("matrix_error"))
    return not (quiet and near > 0.8)


CLOSE = {
    "dimension": at_least(20),
    "a first order in 1/d below 0.3, away from recovery without noise": at_size,
}


def settled_errors(point: Point) -> np.ndarray:
    """Errors of the replicates in which message passing converged."""
    values = point.values("matrix_error")
    return np.asarray(values[np.isfinite(values)])


def quiet_and_settled(point: Point) -> bool:
    """Return True for noise 0 if message passing converged in at least half of the replicates."""
    enough = 2 * settled_errors(point).size >= max(point.replicates, 4)
    return bool(point.setting.label_noise == 0 and enough)


def bayes_tolerance(cell: Cell) -> float:
    """Relative tolerance of the error of Bayes message passing."""
    # Measured over the same noise outside: 1.037 +- 0.013 and 1.038 +- 0.010 (d = 40 and 80, r = d / 5),
    # 1.032 +- 0.010 and 1.013 +- 0.006 (d = 40 and 80, r = d / 2).
    inner = 2 / cell.setting.dimension if cell.setting.inner_noise else 0.0
    return 0.04 + growth(cell) ** 2 + inner


def relative_order(point: Point) -> float:
    """Predicted error to first order in 1/d over its limit; NaN at exact recovery."""
    limit = float(point.predicted("matrix_error"))
    return float(point.predicted("finite_size_matrix_error")) / limit if limit else np.nan


def ratio_of_sensors(points: Sequence[Point]) -> tuple[float, float] | None:
    """Mean ratio of the corrected errors of rank-one and of GOE measurements; 1 is expected."""
    kinds: dict[float, dict[str, float]] = {}
    for point in points:
        error = float(point.mean("matrix_error")) / relative_order(point)
        if np.isfinite(error):
            kinds.setdefault(point.setting.ratio, {})[point.setting.sensors] = error
    ratios = [both["rank-one"] / both["goe"] for both in kinds.values() if len(both) == 2]
    return (float(np.mean(ratios)), 1.0) if ratios else None


# fmt: off
CLAIMS = (
    Agreement(
        "error-of-bayes",
        "The error of Bayes message passing equals the prediction, which includes the first order in "
        "1/d.",
        "matrix_error", "derivations/sensing (3), (22)", relative=True, power=0.2,
        expected="finite_size_matrix_error", within=bayes_tolerance,
        because="4 %, plus the square of the relative first-order term in 1/d as a bound on the next "
        "order; 2/d more with noise inside the activation, whose variance changes with the measurement.",
        where={"estimator": "bayes", **CLOSE},
    ),
    Agreement(
        "error-of-nuclear-norm",
        "The error of the nuclear norm at its best penalty equals the prediction of state evolution.",
        "matrix_error", "derivations/sensing (10)", relative=True, power=0.4,
        within=lambda cell: 0.04 + 1.5 * growth(cell),
        because="4 %, plus 1.5 times the relative first order of the Bayes error, because only the limit "
        "is predicted.",
        where={"estimator": "nuclear-norm", **CLOSE},
    ),
    Agreement(
        "train-error",
        "The training error equals the prediction from the estimate's degrees of freedom.",
        "train_error", "derivations/sensing (8), (30)", relative=True, power=0.5,
        within=lambda cell: 0.08
        + (growth(cell) ** 2 if cell.setting.estimator == "bayes" else 2 * growth(cell)),
        because="8 %, plus the square of the relative first order of the matrix error as a bound on the "
        "next order. Of the nuclear norm only the limit is predicted: 8 %, plus twice the first order.",
        # With few measurements the training error is small, and measurements show terms of order 1/d
        # that double the training error.
        where={**CLOSE, "a training error above a quarter of the noisy test error": lambda cell:
               cell.expected > 0.25 * (cell.setting.label_noise + 2 * cell.predicted("matrix_error"))},
        missing="raise sample_ratio or noise",
    ),
    Agreement(
        "rank-of-nuclear-norm",
        "The rank of the nuclear-norm estimate over the dimension equals the prediction.",
        "rank_fraction", "derivations/sensing (11)", power=0.3,
        within=lambda cell: 0.03 + 1 / cell.setting.dimension,
        because="1/d for one eigenvalue, and 0.03 for terms of order 1/d, because only the limit is "
        "predicted.",
        where={"estimator": "nuclear-norm", **CLOSE},
    ),
    Agreement(
        "spectrum-of-the-estimate",
        "The mean eigenvalues of the estimate in eight groups equal the predictions.",
        "eigenvalues", "derivations/sensing (9)", entry="group", power=0.3,
        within=lambda cell: 0.05 + (0.05 + growth(cell) / 2) * abs(cell.expected),
        because="5 %, half the relative first order of the error, and 0.05 for the scatter of "
        "eigenvalues.",
        where=CLOSE,
    ),
    Contrast(
        "recovery-without-noise",
        "Without noise the error equals the prediction below the recovery threshold, and is 0 above.",
        "derivations/sensing (5), (12)", metric=settled_errors, expected="matrix_error",
        across="recovery_ratio", along="ratio", within=0.1, relative=True,
        because="A tenth of the predicted difference of errors below and above the threshold.",
        where=quiet_and_settled, power=0.3,
        missing="needed: points without noise on both sides of the recovery threshold; run with --preset "
        "recovery",
    ),
    Lead(
        "bayes-beats-nuclear-norm", "Knowing the spectrum lowers the error by the predicted amount.",
        "derivations/sensing (3), (10)", metric="matrix_error", of={"estimator": "bayes"},
        over={"estimator": "nuclear-norm"},
        within=0.2, relative=True, power=0.5,
        because="A fifth of the predicted difference of the estimators' errors.",
        missing="needed: a setting measured with both estimators; set estimator=bayes,nuclear-norm",
    ),
    Estimate(
        "universality",
        "Rank-one and GOE measurements give the same error, after division by the predicted first "
        "order in 1/d of each.",
        "derivations/sensing (22)", estimate=ratio_of_sensors,
        apart=("sensors", "sample_ratio"), fewest=2, within=0.04, relative=True,
        because="4 % for the second order in 1/d.",
        where={"estimator": "bayes", "dimension": at_least(40)},
        missing="needed: estimator=bayes and both kinds of sensors with dimension >= 40; run with "
        "--preset universality",
    ),
    Agreement(
        "information-of-a-label",
        "The score of fresh labels shows the predicted information of one more label.",
        "information_rate", "derivations/sensing (24)", relative=True, power=0.2,
        within=lambda cell: 0.04 + growth(cell) ** 2,
        because="As for the error of Bayes message passing.",
        where={"estimator": "bayes", **CLOSE}, missing="needed: output=linear and noise above 0",
    ),
    mutual_information(within=0.03),
)
# fmt: on
