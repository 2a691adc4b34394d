"""Test errors of kernel ridge regression with a polynomial and an RBF kernel and a tuned ridge."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from solvable.arrays import random_stream
from solvable.errors import MemoryLimitExceeded
from solvable.fitting.inputs import by_blocks
from solvable.fitting.kernel_system import KernelMatrix, RidgePath
from solvable.memory import available_bytes, gigabytes

RIDGES = (1e6, 1e5, 1e4, 1000.0, 100.0, 10.0, 1.0, 0.1, 0.01)
"""Ridges among which ``ridge="auto"`` chooses; the largest ridge predicts the mean label."""

TUNING_ROWS = 8_000  # largest number of rows for choosing the ridge; a quarter validates


def kernel_errors(
    train: Callable[[], np.ndarray],
    y: np.ndarray,
    test: tuple[np.ndarray, np.ndarray],
    *,
    degree: int,
    largest: int,
) -> dict[str, float | None]:
    """Compute the normalised error of both kernels, fitted to the rows of y; None for too many rows."""
    errors: dict[str, float | None] = {}
    # The Gaussian kernel takes longer, so that its limit is half as many rows.
    limits: dict[Literal["polynomial", "rbf"], int] = {"polynomial": largest, "rbf": largest // 2}
    for name, limit in limits.items():
        error = None
        if len(y) <= limit:
            model = KernelRidge(name, degree)
            residual = model.fit(train(), y).predict(test[0]) - test[1]
            error = float(np.mean(residual**2) / test[1].var())
        errors[f"{name}_kernel_normalised_mse"] = error
    return errors


class KernelRidge:
    """Kernel ridge regression on standardised inputs, with the ridge chosen on held-out rows."""

    # One Krylov space of the labels gives the solutions for all ridges. It takes 2 n² flops per vector,
    # with 10 to 60 vectors if the best ridge is not small. If n / 40 vectors are not enough, a Cholesky
    # factor (n³ / 3 flops) is computed. Memory: half of the kernel matrix, and as much for a factor.

    def __init__(
        self,
        kind: Literal["rbf", "polynomial"],
        degree: int = 4,
        ridge: float | Literal["auto"] = "auto",
    ) -> None:
        self.kind = kind
        self.degree = degree  # degree of the polynomial kernel, at least 1
        self.ridge = ridge  # ridge that is added to the kernel matrix

    def fit(self, X: np.ndarray, y: np.ndarray) -> KernelRidge:
        """Choose bandwidth and ridge, then fit all rows in X's floating-point type."""
        _check_memory(len(X), X.itemsize)
        self.centre_, self.scale_ = _centre_and_scale(X)
        self.offset_ = float(np.mean(y))
        order = random_stream(0, "kernel ridge").permutation(len(X))
        self.rows_ = self._standardised(X)[order]
        residual = (y - self.offset_)[order]
        self.bandwidth_ = _median_distance(self.rows_)
        matrix = KernelMatrix(self._kernel, self.rows_)
        self.ridge_ = self._chosen_ridge(matrix, residual)
        solution = RidgePath(matrix, residual).solve(self.ridge_, 1e-8)
        self.dual_coef_ = solution.astype(X.dtype)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Predict labels, in blocks of rows."""
        prediction_rows = 500  # number of rows that are predicted at a time
        outputs = by_blocks(
            lambda rows: self._kernel(self._standardised(rows), self.rows_) @ self.dual_coef_,
            X,
            prediction_rows,
        )
        return outputs.astype(np.float64) + self.offset_

    def _standardised(self, X: np.ndarray) -> np.ndarray:
        return (X - self.centre_) / self.scale_

    def _chosen_ridge(self, matrix: KernelMatrix, residual: np.ndarray) -> float:
        self.validation_errors_: dict[float, float] = {}
        if self.ridge != "auto":
            return float(self.ridge)
        tuned = residual[:TUNING_ROWS]
        fitted = len(tuned) - len(tuned) // 4
        if len(tuned) < 4:
            return 1.0
        path, truth = RidgePath(matrix, tuned[:fitted]), tuned[fitted:]
        for ridge in RIDGES:
            solution = np.zeros(len(tuned))
            solution[:fitted] = path.solve(ridge, 1e-5)
            error = float(np.mean((matrix.product(solution)[fitted:] - truth) ** 2))
            self.validation_errors_[ridge] = error
            # The error has one minimum up to noise, and the margin is several standard deviations of the
            # noise, so smaller (slower) ridges need not be tried.
            if error > min(self.validation_errors_.values()) + 0.02 * np.mean(truth**2):
                break
        return min(self.validation_errors_, key=self.validation_errors_.__getitem__)

    def _kernel(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        """Compute the kernel matrix between two sets of standardised rows."""
        gram = A @ B.T
        if self.kind == "rbf":
            # RBF kernel exp(-|a - b|² / (2 l²)), with l² the median squared distance between samples;
            # |a - b|² = |a|² + |b|² - 2 a.b
            gram *= -2
            gram += np.einsum("ij,ij->i", A, A)[:, None]
            gram += np.einsum("ij,ij->i", B, B)
            np.maximum(gram, 0, out=gram)
            gram *= -1 / (2 * self.bandwidth_**2)
            return np.exp(gram, out=gram)
        # polynomial kernel (1 + a.b / d)^r
        gram /= A.shape[1]
        gram += 1
        base = gram.copy()
        for _ in range(self.degree - 1):
            gram *= base
        return gram


def _check_memory(rows: int, itemsize: int) -> None:
    # needed memory: half of the matrix, and half of its Cholesky factor
    size = 1.0 * itemsize * rows**2
    if size > available_bytes():
        raise MemoryLimitExceeded(
            f"half the kernel matrix of {rows} samples and its factor need {gigabytes(size)} of memory; "
            f"allowed: the {gigabytes(available_bytes())} available. Fit fewer rows, or give float32 "
            "inputs, which need half."
        )


def _centre_and_scale(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Compute each column's mean and standard deviation in X's type; constant columns are not scaled."""
    scale = X.std(axis=0, dtype=np.float64)
    scale[scale == 0] = 1
    return X.mean(axis=0, dtype=np.float64).astype(X.dtype), scale.astype(X.dtype)


def _median_distance(Z: np.ndarray) -> float:
    """Compute the square root of the median squared distance between rows; 1 if all rows coincide."""
    from scipy.spatial.distance import pdist

    distances = pdist(Z[:500]) if len(Z) > 1 else np.ones(1)
    return float(np.median(distances)) or 1.0
