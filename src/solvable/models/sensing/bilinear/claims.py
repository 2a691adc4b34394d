"""Claims of bilinear sequence regression, each with the reason for its tolerance."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

import numpy as np

from solvable.frame.agreement import Agreement, Cell
from solvable.frame.conditions import above, at_least, between
from solvable.frame.estimates import Contrast
from solvable.frame.points import Point
from solvable.models.sensing.information import mutual_information

SOURCE = "arXiv:2410.18858, Figure 3; derivations/sensing (15), (19)"

MISSING = (
    "no point has at least 100 samples and a predicted error above 0.01; raise noise or dimension"
)


def finite(cell: Cell) -> float:
    """Tolerance for terms of order 1/d and for the error at which message passing stops."""
    return (0.02 + 0.8 / cell.setting.dimension) * cell.expected + 1e-3


def norm_corrected(name: str, response: str = "power_response") -> Callable[[Point], np.ndarray]:
    """Return a metric: an error, corrected for the squared norm of the drawn weights."""

    def metric(point: Point) -> np.ndarray:
        # E(P) = E(1) P^(dlogE / dlogP): the squared norm P causes most of the error's scatter
        # (sensing 19)
        return np.asarray(point.values(name) / point.values("power") ** point.predicted(response))

    return metric


MATRIX, TEST = norm_corrected("matrix_error"), norm_corrected("test_error")
RIDGE = norm_corrected("ridge_error", "ridge_power_response")


def gain(point: Point) -> np.ndarray:
    """Error of ridge regression minus the error of message passing."""
    return RIDGE(point) - MATRIX(point)


def expected_gain(point: Point) -> np.ndarray:
    """Predicted error of ridge regression minus the predicted error of message passing."""
    return point.predicted("ridge_error") - point.predicted("matrix_error")


ENOUGH = {"samples": at_least(100), "expected": above(0.01)}
PASSED = {"estimator": "message-passing", **ENOUGH}


def below_or_between(point: Point) -> bool:
    """Select noiseless points: errors above 0.1 below recovery, else ratios below nuclear_norm_ratio."""
    if point.setting.estimator != "message-passing":
        return False
    left = float(point.predicted("matrix_error")) > 0.1
    before = point.setting.sample_ratio < float(point.predicted("nuclear_norm_ratio"))
    below = point.setting.sample_ratio < float(point.predicted("recovery_ratio"))
    return point.setting.noise == 0 and (left if below else before)


# fmt: off
CLAIMS = (
    Agreement(
        "matrix-error",
        "The matrix error of Bayes message passing equals the prediction of state evolution.",
        MATRIX, SOURCE, expected="matrix_error", within=finite,
        because="0.02 plus 0.8/d of the error, for terms of order 1/d; 0.001, the error at which the "
        "algorithm stops.",
        where=PASSED,
        missing=MISSING,
    ),
    Agreement(
        "test-error",
        "The test error of message passing equals the predicted matrix error.",
        TEST, SOURCE, expected="test_error", within=lambda cell: 1.5 * finite(cell),
        because="1.5 times the tolerance of the matrix error, for the finite number of test samples.",
        where=PASSED, missing=MISSING, power=0.2,
    ),
    Agreement(
        "ridge-error",
        "The error of ridge regression at the best penalty equals the prediction.",
        RIDGE, "arXiv:2410.18858, Figure 1; derivations/sensing (18), (19)", expected="ridge_error",
        within=0.02, relative=True,
        because="2 % for terms of order 1/(d L), which the prediction leaves out.",
        where=ENOUGH,
        missing="lower sample_ratio",
    ),
    Agreement(
        "gain",
        "The error of message passing is below the error of ridge regression by the predicted amount.",
        gain, "derivations/sensing (15), (18), (19)", expected=expected_gain,
        within=lambda cell: 1.5 * finite(cell),
        because="Terms of order 1/d in the errors of message passing and ridge regression.",
        where={**PASSED, "expected": above(0.1)},
        missing="lower rank_ratio",
    ),
    Contrast(
        "recovery-before-the-nuclear-norm",
        "Without noise, message passing recovers the matrix exactly between recovery_ratio and "
        "nuclear_norm_ratio, but not below recovery_ratio.",
        "arXiv:2410.18858, Figure 4; derivations/sensing (16), (17)", metric=MATRIX,
        expected="matrix_error", across="recovery_ratio", along="sample_ratio",
        below=(0.0, 1.0), above=(1.1, inf), where=below_or_between,
        within=0.03, relative=True, because="3 % of the predicted difference of errors.",
        missing="needed: points with noise 0 below recovery_ratio, and between recovery_ratio and "
        "nuclear_norm_ratio; set noise=0 and vary sample_ratio",
    ),
    Agreement(
        "information-of-a-label",
        "The score of fresh labels shows the predicted information of one more label.",
        "information_rate", "derivations/sensing (24)", expected="information_rate",
        within=lambda cell: 0.02 + finite(cell) / 2,
        because="Half the relative tolerance of the matrix error, and 0.02 for the squared norm of "
        "drawn weights, which changes the noise of a fresh label.",
        where=PASSED, missing="needed: noise above 0 with estimator=message-passing", power=0.3,
    ),
    mutual_information(within=0.05),
    Agreement(
        "error-of-the-nuclear-norm",
        "The error of the least nuclear norm equals the prediction in the limit.",
        MATRIX, "arXiv:2410.18858, Figure 5; derivations/sensing (23)", expected="matrix_error",
        within=lambda cell: (0.02 + 1 / cell.setting.dimension) * cell.expected,
        because="0.02 plus 1/d of the error, for terms of order 1/d.",
        where={"estimator": "nuclear-norm", **ENOUGH}, power=0.2,
        missing="set noise=0 and sample_ratio below nuclear_norm_ratio, or run with --preset "
        "nuclear-norm",
    ),
    Contrast(
        "recovery-by-the-nuclear-norm",
        "The least nuclear norm recovers the matrix above nuclear_norm_ratio, and not below.",
        "arXiv:2410.18858, Figures 4 and 5; derivations/sensing (17), (23)", metric=MATRIX,
        expected="matrix_error", across="nuclear_norm_ratio", along="sample_ratio",
        below=(0.0, 0.95), above=(1.1, inf),
        where={"estimator": "nuclear-norm"},
        within=0.06, relative=True, because="6 % of the predicted difference of errors.", power=0.2,
        missing="needed: estimator=nuclear-norm and noise=0 on both sides of nuclear_norm_ratio; run "
        "with --preset nuclear-norm",
    ),
    Agreement(
        "average-of-gradient-descent",
        "At learning rates near 0.65, the average of k starts has 1 + 1/k times the Bayes-optimal "
        "error.",
        MATRIX, "derivations/sensing (27)", expected="matrix_error",
        within=lambda cell: 10 / cell.setting.dimension, relative=True,
        because="10/d for terms of order 1/d: the average of 64 published runs at d = 100 is 9 % above.",
        where={"estimator": "gradient-descent", "learning_rate": between(0.55, 0.75), **ENOUGH},
        missing="set noise=0, or run with --preset descent", power=0.4,
    ),
)
# fmt: on
