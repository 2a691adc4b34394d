"""Kernel ridge with a kernel of the distance whose width and penalty are tuned by leave-one-out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from solvable.arrays import random_stream
from solvable.errors import InvalidParameter, unknown_choice
from solvable.fitting.ridge import RidgeFit, kernel_ridge

Kernel: TypeAlias = Literal["gaussian", "laplace", "linear"]
"""Kernel of the distance r: exp(-r²/w²), exp(-r/w), or the linear kernel, which is -r²/2 when centred."""

KERNELS: tuple[Kernel, ...] = ("gaussian", "laplace", "linear")

TUNED_ROWS = 600
"""Largest number of rows on which the kernel and its width are chosen."""

Scale: TypeAlias = Callable[[np.ndarray], Any]
"""Function that fits a transformation of the columns with a method `apply`, or returns None."""


class _Rbf(BaseEstimator):
    """Kernel ridge with a kernel of the distance; kernel, width and penalty have the least error."""

    def __init__(
        self,
        scale: Scale | None = None,
        seed: int = 0,
        kernels: tuple[Kernel, ...] = ("gaussian",),
    ) -> None:
        self.scale = scale
        self.seed = seed
        self.kernels = kernels

    def _fit_outputs(self, X: np.ndarray, Y: np.ndarray) -> None:
        if not self.kernels or not set(self.kernels) <= set(KERNELS):
            raise InvalidParameter(unknown_choice("kernels", self.kernels, KERNELS))
        self._scale = None if self.scale is None else self.scale(X)
        Z = self._scaled(X)
        rng = random_stream(self.seed, "rows to tune the Gaussian kernel")
        some = rng.permutation(len(Z))[:TUNED_ROWS]
        distances = _squared_distances(Z[some], Z[some])
        apart = distances[distances > 0]
        self._median = float(np.median(apart)) if apart.size else 1.0
        # The kernel is a function of |x - x'|² / (b m), median squared distance m, b = 1/8 ... 8.
        # The leave-one-out error is unbiased here, as no filter was chosen by the labels.
        fits: dict[tuple[Kernel, float], RidgeFit] = {
            (kernel, width): kernel_ridge(_of(kernel, distances / (width * self._median)), Y[some])
            for kernel in self.kernels
            for width in _widths(kernel)
        }
        self.kernel_, self.bandwidth_ = min(fits, key=lambda choice: fits[choice].criterion)
        fit = fits[self.kernel_, self.bandwidth_]
        self._samples = Z
        if len(some) < len(Z):
            fit = kernel_ridge(self._kernel(Z), Y)
        else:
            self._samples = Z[some]
        self.readout_ = fit

    def _scaled(self, X: np.ndarray) -> np.ndarray:
        X = np.asarray(X, dtype=np.float64)
        return X if self._scale is None else np.asarray(self._scale.apply(X))

    def _kernel(self, Z: np.ndarray) -> np.ndarray:
        distances = _squared_distances(Z, self._samples)
        return _of(self.kernel_, distances / (self.bandwidth_ * self._median))

    def outputs(self, X: np.ndarray) -> np.ndarray:
        """Return one output for each column of the targets, shape (n, C)."""
        Z = self._scaled(X)
        parts = [
            self._kernel(Z[start : start + 2048]) @ self.readout_.coefficients
            for start in range(0, max(1, len(Z)), 2048)
        ]
        return np.concatenate(parts) + self.readout_.intercept


class RbfRegressor(RegressorMixin, _Rbf):
    """Kernel ridge regression with a kernel of the distance, for a numeric target."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> RbfRegressor:
        """Choose kernel, width and penalty, then fit all rows."""
        self._fit_outputs(X, np.asarray(y, dtype=np.float64)[:, None])
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the predicted numbers, shape (n,)."""
        return self.outputs(X)[:, 0]


class IndicatorClassifier(ClassifierMixin, BaseEstimator):
    """Classifier that regresses each class's indicator and predicts the class with the largest output."""

    def _coded(self, y: np.ndarray) -> np.ndarray:
        """Store the classes; return one indicator column of 0 and 1 per class."""
        self.classes_, codes = np.unique(y, return_inverse=True)
        return np.eye(len(self.classes_))[codes]

    def decision_function(self, X: np.ndarray) -> np.ndarray:
        """Return the outputs, shape (n,) for two classes and (n, C) for C > 2 classes."""
        raise NotImplementedError

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the predicted classes, shape (n,)."""
        outputs = self.decision_function(X)
        places = (outputs > 0).astype(int) if outputs.ndim == 1 else np.argmax(outputs, axis=1)
        return np.asarray(self.classes_[places])


class RbfClassifier(IndicatorClassifier, _Rbf):
    """Classifier by kernel ridge regression on the indicators of the classes."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> RbfClassifier:
        """Choose kernel, width and penalty, then fit all rows."""
        self._fit_outputs(X, self._coded(y))
        return self

    def decision_function(self, X: np.ndarray) -> np.ndarray:
        """Return the outputs, shape (n,) for two classes and (n, C) for C > 2 classes."""
        outputs = self.outputs(X)
        return outputs[:, 1] - outputs[:, 0] if outputs.shape[1] == 2 else outputs


def _widths(kernel: Kernel) -> list[float]:
    """Return the factors b of the median squared distance that are tried."""
    if kernel == "linear":
        return [1.0]
    # The Laplace kernel has the root of b, so that its widths are 1/8 ... 8 median distances.
    return [2.0 ** (power if kernel == "gaussian" else 2 * power) for power in range(-3, 4)]


def _of(kernel: Kernel, squares: np.ndarray) -> np.ndarray:
    """Return the kernel at squared distances."""
    if kernel == "gaussian":
        return np.asarray(np.exp(-squares))
    return np.asarray(np.exp(-np.sqrt(squares)) if kernel == "laplace" else -squares / 2)


def _squared_distances(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    squares = np.sum(left**2, axis=1)[:, None] + np.sum(right**2, axis=1)
    return np.maximum(squares - 2 * (left @ right.T), 0.0)
