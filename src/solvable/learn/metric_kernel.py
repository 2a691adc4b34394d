"""Mean of two kernel ridge regressions, without and with column weights learned from gradients."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin

from solvable.arrays import random_stream
from solvable.fitting.kernel_classifier import IndicatorClassifier, Scale
from solvable.learn.folds import deal_folds
from solvable.learn.kernels_of_columns import kernel_of, size_of, squared_gradients

TRIED: tuple[tuple[str, float], ...] = (
    *(("relu", bias) for bias in (0.3, 1.0)),
    *(("gaussian", width) for width in (0.5, 2.0, 8.0)),
    *(("laplace", width) for width in (0.25, 4.0, 64.0)),
)
"""Kernels with their relative sizes, see :func:`size_of`."""

STEPS = 3
"""Largest number of times that the weights of the columns are computed."""

PENALTIES = np.logspace(-5, 2, 15)
"""Penalties that are tried, relative to the mean of the centred kernel's diagonal."""


@dataclass(frozen=True)
class Member:
    """Fitted kernel ridge regression f(x) = k(s x, s X) coefficients + intercept."""

    kernel: str
    size: float
    scales: np.ndarray  # factor s of each column, shape (d,)
    coefficients: np.ndarray  # dual weights, shape (n, C)
    intercept: np.ndarray  # shape (C,)

    def outputs(self, Z: np.ndarray, samples: np.ndarray) -> np.ndarray:
        """Return the outputs, shape (m, C)."""
        kernel = kernel_of(self.kernel, self.size, Z * self.scales, samples * self.scales)
        return np.asarray(kernel @ self.coefficients + self.intercept)


@dataclass(frozen=True)
class Step:
    """Fits of all penalties with one set of column weights."""

    size: float
    scales: np.ndarray
    duals: np.ndarray  # shape (n, P, C)
    intercepts: np.ndarray  # shape (P, C)
    left_out: np.ndarray  # mean squared leave-one-out error of each penalty, shape (P,)


class _MetricKernel(BaseEstimator):
    """Held-out training rows choose kernel, size, number of steps and penalty of both members."""

    def __init__(self, scale: Scale | None = None, seed: int = 0) -> None:
        self.scale = scale
        self.seed = seed

    def _fit_outputs(self, X: np.ndarray, Y: np.ndarray, classes: np.ndarray | None) -> None:
        self.n_features_in_ = X.shape[1]
        self._scale = None if self.scale is None else self.scale(X)
        Z = self._scaled(X)
        order = random_stream(self.seed, "rows of the column weights").permutation(len(Z))
        some = order[: _rows_for(300, Z.shape[1] * Y.shape[1])]
        losses = _held_out_losses(
            Z[some], Y[some], None if classes is None else classes[some], self.seed
        )
        some = order[: _rows_for(600, Z.shape[1] * Y.shape[1])]
        self._samples = Z
        # The weights follow the target, so they vary with the rows. The mean with the fit without
        # weights halves the loss where they mislead, and keeps most of the gain where they help.
        self.members_ = tuple(
            _fitted(Z, Y, some, _best(losses, steps)) for steps in ((0,), range(1, STEPS + 1))
        )

    def _scaled(self, X: np.ndarray) -> np.ndarray:
        X = np.asarray(X, dtype=np.float64)
        return X if self._scale is None else np.asarray(self._scale.apply(X))

    @property
    def column_weights_(self) -> np.ndarray:
        """Weights of the columns in the squared distance of the second member, of mean 1."""
        return np.asarray(self.members_[1].scales ** 2)

    def outputs(self, X: np.ndarray) -> np.ndarray:
        """Return one output for each column of the targets, shape (n, C)."""
        Z = self._scaled(X)
        parts = [Z[start : start + 2048] for start in range(0, max(1, len(Z)), 2048)]
        members, samples = self.members_, self._samples
        return np.concatenate(
            [sum(one.outputs(part, samples) for one in members) / len(members) for part in parts]
        )


class MetricKernelRegressor(RegressorMixin, _MetricKernel):
    """Kernel ridge regression with learned column weights, for a numeric target."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> MetricKernelRegressor:
        """Choose both members, then fit all rows."""
        self._fit_outputs(X, np.asarray(y, dtype=np.float64)[:, None], None)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the predicted numbers, shape (n,)."""
        return np.asarray(self.outputs(X)[:, 0])


class MetricKernelClassifier(IndicatorClassifier, _MetricKernel):
    """Classifier by kernel ridge regression with learned column weights on the indicators of classes."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> MetricKernelClassifier:
        """Choose both members, then fit all rows."""
        self._fit_outputs(X, self._coded(y), np.unique(y, return_inverse=True)[1])
        return self

    def decision_function(self, X: np.ndarray) -> np.ndarray:
        """Return the outputs, shape (n,) for two classes and (n, C) for C > 2 classes."""
        outputs = self.outputs(X)
        return outputs[:, 1] - outputs[:, 0] if outputs.shape[1] == 2 else outputs


Choice = tuple[str, float, int, int]
"""Kernel, relative size, number of steps, and position of the penalty."""


def _rows_for(most: int, gradients: int) -> int:
    """Return the number of rows from which weights are computed, fewer if gradients are many."""
    # A step takes rows² x columns x outputs multiplications.
    return int(np.clip((2e8 / max(gradients, 1)) ** 0.5, 100, most))


def _held_out_losses(
    Z: np.ndarray, Y: np.ndarray, classes: np.ndarray | None, seed: int
) -> dict[tuple[str, float], np.ndarray]:
    """Return the squared error on held-out rows of every step and penalty, for each kernel."""
    folds = deal_folds(3, np.arange(len(Z)), classes, seed=seed)
    losses = {tried: np.zeros((STEPS + 1, len(PENALTIES))) for tried in TRIED}
    for fold in range(3):
        inside, held = folds != fold, folds == fold
        for (kernel, relative), total in losses.items():
            for number, step in enumerate(_steps(Z[inside], Y[inside], kernel, relative)):
                K = kernel_of(kernel, step.size, Z[held] * step.scales, Z[inside] * step.scales)
                outputs = np.tensordot(K, step.duals, 1) + step.intercepts
                total[number] += np.sum((outputs - Y[held][:, None]) ** 2, axis=(0, 2))
        losses = _with_chance(losses)
    return losses


def _with_chance(
    losses: dict[tuple[str, float], np.ndarray],
) -> dict[tuple[str, float], np.ndarray]:
    """Leave out kernels whose errors are far larger than the smallest, without and with weights."""
    ends = {tried: (total[0].min(), total[1:].min()) for tried, total in losses.items()}
    limits = 1.25 * np.min(list(ends.values()), axis=0)
    return {tried: losses[tried] for tried, end in ends.items() if np.any(np.array(end) <= limits)}


def _best(losses: Mapping[tuple[str, float], np.ndarray], steps: Any) -> Choice:
    """Return the choice with the smallest error among the given numbers of steps."""
    choices = [
        (float(total[number, place]), (*tried, number, place))
        for tried, total in losses.items()
        for number in steps
        for place in range(len(PENALTIES))
    ]
    return min(choices, key=lambda choice: choice[0])[1]


def _steps(
    Z: np.ndarray, Y: np.ndarray, kernel: str, relative: float, most: int = STEPS
) -> Iterator[Step]:
    """Fit all penalties, weigh each column by the mean squared derivative of the best fit, and repeat."""
    # Recursive feature machine (arXiv:2212.13881) with the diagonal of the average gradient outer
    # product: s_k² <- mean over rows and outputs of (df/dz_k)², with mean 1 over the columns.
    n, d = Z.shape
    scales = np.ones(d)
    for number in range(most + 1):
        scaled = Z * scales
        size = size_of(kernel, relative, scaled)
        K = kernel_of(kernel, size, scaled, scaled)
        row = K.mean(axis=0)
        values, vectors = np.linalg.eigh(K - row - row[:, None] + row.mean())
        values = np.maximum(values, 0)
        penalties = PENALTIES * _power(K, values.sum())
        projected = vectors.T @ (Y - Y.mean(axis=0))
        parts = projected[:, None, :] / (values[:, None] + penalties)[:, :, None]
        duals = (vectors @ parts.reshape(n, -1)).reshape(parts.shape)
        # leave-one-out residual: penalty x dual / (1 - S_ii - 1/n)
        free = 1 - vectors**2 @ (values[:, None] / (values[:, None] + penalties)) - 1 / n
        errors = penalties[:, None] * duals / np.maximum(free, 1e-12)[:, :, None]
        left_out = np.mean(np.sum(errors**2, axis=2), axis=0)
        duals = duals - duals.mean(axis=0)
        yield Step(size, scales, duals, Y.mean(axis=0) - np.tensordot(row, duals, 1), left_out)
        if number < most:
            best = duals[:, int(np.argmin(left_out))]
            slopes = scales**2 * squared_gradients(kernel, size, scaled, best)
            scales = np.sqrt(slopes / slopes.mean()) if slopes.mean() > 0 else np.ones(d)


def _fitted(Z: np.ndarray, Y: np.ndarray, some: np.ndarray, choice: Choice) -> Member:
    """Compute the column weights on some rows, then fit all rows."""
    from scipy.linalg import solve

    kernel, relative, number, place = choice
    *_, last = _steps(Z[some], Y[some], kernel, relative, most=number)
    scaled = Z * last.scales
    K = kernel_of(kernel, last.size, scaled, scaled)
    row = K.mean(axis=0)
    centred = K - row - row[:, None] + row.mean()
    penalty = PENALTIES[place] * _power(K, np.trace(centred))
    centred[np.diag_indices(len(Z))] += penalty
    dual = solve(centred, Y - Y.mean(axis=0), assume_a="pos")
    dual -= dual.mean(axis=0)
    return Member(kernel, last.size, last.scales, dual, Y.mean(axis=0) - row @ dual)


def _power(kernel: np.ndarray, trace: float) -> float:
    """Return the mean diagonal of the centred kernel, or of the kernel if all rows are equal."""
    whole = float(np.trace(kernel))
    rounding = 1e-9  # share of the trace that centring leaves of equal rows
    return (float(trace) if trace > rounding * whole else whole) / len(kernel)
