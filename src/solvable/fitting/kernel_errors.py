"""What the layer-wise learner is measured against: kernels and random features."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import Ridge
from sklearn.utils.validation import check_is_fitted

from solvable.arrays import check_integer, check_real, random_stream
from solvable.errors import InvalidParameter, MemoryLimitExceeded, unknown_choice
from solvable.fitting.inputs import by_blocks, seed_from, validate_data
from solvable.fitting.kernel_system import KernelMatrix, RidgePath
from solvable.memory import available_bytes, gigabytes

RIDGES = (1e6, 1e5, 1e4, 1000.0, 100.0, 10.0, 1.0, 0.1, 0.01)
"""Ridges between which ``ridge="auto"`` chooses; with the largest the mean label is predicted."""

TUNING_ROWS = 8_000
"""Most rows on which the ridge is chosen, a quarter of them for validation."""

PREDICTION_ROWS = 500
"""Rows predicted at a time."""


class KernelRidgeBaseline(RegressorMixin, BaseEstimator):
    """Kernel ridge regression of standardised inputs, the ridge chosen on held-out training rows."""

    # One Krylov space of the labels serves all ridges: 2 n^2 flops for each of its vectors, 10 to 60 of
    # them where the best ridge is above the noise of the kernel; a Cholesky factor, n^3 / 3, where n /
    # 40 vectors do not suffice. Memory: half of the kernel matrix, and as much again for a factor.

    def __init__(
        self,
        kind: Literal["rbf", "polynomial"] = "rbf",
        degree: int = 4,
        ridge: float | Literal["auto"] = "auto",
        max_samples: int = 30_000,
        random_state: Any = 0,
    ) -> None:
        self.kind = kind
        self.degree = degree
        self.ridge = ridge
        self.max_samples = max_samples
        self.random_state = random_state

    def fit(self, X: np.ndarray, y: np.ndarray) -> KernelRidgeBaseline:
        """Choose bandwidth and ridge, then fit all rows."""
        self._check_parameters()
        X, y = validate_data(self, X, y, dtype=[np.float64, np.float32], y_numeric=True)
        self._check_memory(len(X), X.itemsize)
        self.centre_, self.scale_ = _centre_and_scale(X)
        self.offset_ = float(np.mean(y))
        rng = random_stream(seed_from(self.random_state), "kernel ridge")
        order = rng.permutation(len(X))
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
        check_is_fitted(self)
        X = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        outputs = by_blocks(
            lambda rows: self._kernel(self._standardised(rows), self.rows_) @ self.dual_coef_,
            X,
            PREDICTION_ROWS,
        )
        return outputs.astype(np.float64) + self.offset_

    def _check_parameters(self) -> None:
        if self.kind not in ("rbf", "polynomial"):
            raise InvalidParameter(unknown_choice("kind", self.kind, ["rbf", "polynomial"]))
        check_integer("degree", self.degree, 1)
        check_integer("max_samples", self.max_samples, 1)
        if self.ridge != "auto":
            check_real("ridge", self.ridge, 0, also=" or 'auto'")

    def _check_memory(self, rows: int, itemsize: int) -> None:
        # Half of the matrix, and the half of its factor if it comes to that.
        size = 1.0 * itemsize * rows**2
        if rows > self.max_samples:
            raise MemoryLimitExceeded(
                f"there are {rows} samples, half of whose kernel matrix and its factor take "
                f"{gigabytes(size)}; allowed: at most max_samples = {self.max_samples}. Fit fewer "
                "rows, or raise max_samples if the memory is there."
            )
        if size > available_bytes():
            raise MemoryLimitExceeded(
                f"half the kernel matrix of {rows} samples and its factor take {gigabytes(size)}; "
                f"available: {gigabytes(available_bytes())}. Fit fewer rows, or give float32 "
                "inputs, which take half."
            )

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
            # The error has one minimum but for noise, of which this is several deviations: smaller
            # ridges, which are the dear ones, need not be looked at.
            if error > min(self.validation_errors_.values()) + 0.02 * np.mean(truth**2):
                break
        return min(self.validation_errors_, key=self.validation_errors_.__getitem__)

    def _kernel(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        """Kernel matrix of two sets of standardised rows."""
        gram = A @ B.T
        if self.kind == "rbf":
            # |a - b|^2 = |a|^2 + |b|^2 - 2 a.b
            gram *= -2
            gram += np.einsum("ij,ij->i", A, A)[:, None]
            gram += np.einsum("ij,ij->i", B, B)
            np.maximum(gram, 0, out=gram)
            gram *= -1 / (2 * self.bandwidth_**2)
            return np.exp(gram, out=gram)
        gram /= self.n_features_in_
        gram += 1
        base = gram.copy()
        for _ in range(self.degree - 1):
            gram *= base
        return gram


def _centre_and_scale(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and deviation of each column in the type of X; constant columns are not scaled."""
    scale = X.std(axis=0, dtype=np.float64)
    scale[scale == 0] = 1
    return X.mean(axis=0, dtype=np.float64).astype(X.dtype), scale.astype(X.dtype)


def _median_distance(Z: np.ndarray) -> float:
    """Square root of the median squared distance between rows; 1 if they coincide."""
    from scipy.spatial.distance import pdist

    distances = pdist(Z[:500]) if len(Z) > 1 else np.ones(1)
    return float(np.median(distances)) or 1.0


class RandomFeatureRidge(RegressorMixin, BaseEstimator):
    """Ridge regression of scikit-learn on random features of standardised inputs."""

    # phi_j(x) = max(0, u_j) or u_j^r, u_j = w_j.x + b_j, w_j ~ N(0, I / d), b_j ~ N(0, 1); those of
    # degree 4 are a shallow baseline of 2605.14567. Time n width^2, memory 2 n width.

    def __init__(
        self,
        kind: Literal["relu", "polynomial"] = "relu",
        width: int = 1000,
        degree: int = 4,
        ridge: float = 1.0,
        random_state: Any = 0,
    ) -> None:
        self.kind = kind
        self.width = width
        self.degree = degree
        self.ridge = ridge
        self.random_state = random_state

    def fit(self, X: np.ndarray, y: np.ndarray) -> RandomFeatureRidge:
        """Draw the features and fit the ridge."""
        if self.kind not in ("relu", "polynomial"):
            raise InvalidParameter(unknown_choice("kind", self.kind, ["relu", "polynomial"]))
        check_integer("width", self.width, 1)
        check_integer("degree", self.degree, 1)
        check_real("ridge", self.ridge, 0)
        X, y = validate_data(self, X, y, dtype=[np.float64, np.float32], y_numeric=True)
        # The linear model centres a copy of the features.
        size = 2.0 * X.itemsize * len(X) * self.width
        if size > available_bytes():
            raise MemoryLimitExceeded(
                f"{self.width} features of {len(X)} samples take {gigabytes(size)}; available: "
                f"{gigabytes(available_bytes())}. Lower width, or fit fewer rows."
            )
        rng = random_stream(seed_from(self.random_state), "random features")
        columns = X.shape[1]
        self.centre_, self.scale_ = _centre_and_scale(X)
        self.weights_ = (rng.standard_normal((columns, self.width)) / np.sqrt(columns)).astype(
            X.dtype
        )
        self.biases_ = rng.standard_normal(self.width).astype(X.dtype)
        self.model_ = Ridge(alpha=self.ridge).fit(self._features(X), y)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Predict labels, in blocks of rows."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        outputs = by_blocks(
            lambda rows: self.model_.predict(self._features(rows)), X, PREDICTION_ROWS
        )
        return outputs.astype(np.float64)

    def _features(self, X: np.ndarray) -> np.ndarray:
        features = (X - self.centre_) / self.scale_ @ self.weights_
        features += self.biases_
        if self.kind == "relu":
            return np.maximum(features, 0, out=features)
        return np.power(features, self.degree, out=features)


def kernel_errors(
    train: Callable[[], np.ndarray],
    y: np.ndarray,
    test: tuple[np.ndarray, np.ndarray],
    *,
    degree: int,
    largest: int,
) -> dict[str, float | None]:
    """Normalised error of both kernels on the rows of y; None beyond the largest number of rows."""
    errors: dict[str, float | None] = {}
    # The Gaussian kernel searches a bandwidth too: half of the rows in the same time.
    limits: dict[Literal["polynomial", "rbf"], int] = {"polynomial": largest, "rbf": largest // 2}
    for name, limit in limits.items():
        error = None
        if len(y) <= limit:
            model = KernelRidgeBaseline(kind=name, degree=degree)
            residual = model.fit(train(), y).predict(test[0]) - test[1]
            error = float(np.mean(residual**2) / test[1].var())
        errors[f"{name}_kernel_normalised_mse"] = error
    return errors
