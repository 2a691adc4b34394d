"""Claims on bilinear sequence regression, one row each, with the reason of its tolerance."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

import numpy as np

from solvable.frame.agreement import Agreement, Cell
from solvable.frame.estimates import Contrast
from solvable.frame.points import Point

SOURCE = "arXiv:2410.18858, arXiv:2503.14121"


MISSING = "no point has 100 samples and a predicted error of 0.01; raise noise or dimension"


def finite(cell: Cell) -> float:
    """Terms of order 1/d, and where message passing stops."""
    return (0.02 + 0.8 / cell.setting.dimension) * cell.expected + 1e-3


def steadied(name: str, response: str = "power_response") -> Callable[[Point], np.ndarray]:
    """An error without what it owes to the squared norm of the drawn weights, which is 1 on average."""

    def metric(point: Point) -> np.ndarray:
        # E(Q) = E(1) Q^(dlogE / dlogQ): most of what replicates scatter by
        return np.asarray(point.values(name) / point.values("power") ** point.predicted(response))

    return metric


MATRIX, TEST = steadied("matrix_error"), steadied("test_error")
RIDGE = steadied("ridge_error", "ridge_power_response")


def gain(point: Point) -> np.ndarray:
    """How much less than ridge message passing errs."""
    return RIDGE(point) - MATRIX(point)


def expected_gain(point: Point) -> np.ndarray:
    """The same of the prediction."""
    return point.predicted("ridge_error") - point.predicted("matrix_error")


def testable(cell: Cell) -> bool:
    """Whether there are samples enough, and an error above what a loop that stops leaves."""
    return bool(cell.setting.samples >= 100 and cell.expected > 0.01)


def below_or_between(point: Point) -> bool:
    """Whether without noise something is left below recovery, or the nuclear norm is yet to come."""
    left = float(point.predicted("matrix_error")) > 0.1
    before = point.setting.sample_ratio < float(point.predicted("nuclear_norm_ratio"))
    below = point.setting.sample_ratio < float(point.predicted("recovery_ratio"))
    return point.setting.noise == 0 and (left if below else before)


# fmt: off
CLAIMS = (
    Agreement(
        "matrix-error",
        "Bayes message passing errs as state evolution says, at any aspect, rank and noise.",
        MATRIX, SOURCE, expected="matrix_error", within=finite,
        because="Terms of order 1/d of denoiser and sensors; a loop that stops at 1e-3.",
        where=testable,
        missing=MISSING,
    ),
    Agreement(
        "test-error",
        "Its answers to fresh sequences err as its matrix does.",
        TEST, SOURCE, expected="test_error", within=lambda cell: 1.5 * finite(cell),
        because="Half as much again for the finite number of fresh sequences.",
        where=testable, missing=MISSING, power=0.2,
    ),
    Agreement(
        "ridge-error",
        "Ridge regression on all entries, at its best penalty, errs as if there were no structure.",
        RIDGE, "arXiv:2410.18858", expected="ridge_error", within=0.02, relative=True,
        because="Terms of order 1/(dL).",
        where=testable,
        missing="ridge makes errors below 0.01 everywhere; lower sample_ratio or raise noise",
    ),
    Agreement(
        "gain",
        "Knowing that the matrix is a product of two lowers the error by what is predicted.",
        gain, SOURCE, expected=expected_gain,
        within=lambda cell: 1.5 * finite(cell),
        because="Terms of order 1/d.",
        where=lambda cell: cell.expected > 0.1 and cell.setting.samples >= 100,
        missing="no point has a predicted gain of 0.1; lower rank_ratio",
    ),
    Contrast(
        "recovery-before-the-nuclear-norm",
        "Without noise the matrix is found exactly from fewer samples than the nuclear norm needs, and "
        "not from fewer than its degrees of freedom.",
        "arXiv:2410.18858", metric=MATRIX, expected="matrix_error", across="recovery_ratio",
        along="sample_ratio", below=(0.0, 1.0), above=(1.1, inf), where=below_or_between,
        within=0.03, relative=True, because="3 % of the difference.",
        missing="no points without noise below recovery_ratio and between it and nuclear_norm_ratio; set "
        "noise=0 and vary sample_ratio",
    ),
)
