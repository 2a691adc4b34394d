"""Kernel and random-feature regression with a leave-one-out ridge, and the kernel's exact level."""

from __future__ import annotations

from math import comb, exp, log
from typing import Literal

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin

from solvable.arrays import random_stream
from solvable.errors import InvalidParameter, NotConverged

MOST_ROWS = 4_000
"""Largest number of rows in a kernel matrix; further rows are not used."""

RANDOM_FEATURES = 2_000
"""Number of random features."""


class RidgeKernel(RegressorMixin, BaseEstimator):
    """Regression with the kernel exp(-|x-x'|²/2d), on at most 4,000 rows, or random ReLU features.

    The ridge is the one with the smallest leave-one-out error among factors of 3.
    """

    def __init__(self, kind: Literal["rbf", "random-features"] = "rbf", *, seed: int = 0) -> None:
        self.kind = kind
        self.seed = seed

    def fit(self, X: np.ndarray, y: np.ndarray) -> RidgeKernel:
        """Fit to rows and one or more columns of labels."""
        X, labels = np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)
        self._single = labels.ndim == 1
        labels = labels.reshape(len(X), -1)
        if self.kind == "rbf":
            X, labels = X[:MOST_ROWS], labels[:MOST_ROWS]
        else:
            rng = random_stream(self.seed, "random features")
            self._random = rng.standard_normal((X.shape[1], RANDOM_FEATURES)) / np.sqrt(X.shape[1])
        self._rows, self._mean = X, labels.mean(0)
        centred = labels - self._mean
        lifted = self._lifted(X)
        if self.kind == "rbf" or len(X) <= RANDOM_FEATURES:
            gram = self._kernel(X) if self.kind == "rbf" else lifted @ lifted.T
            values, vectors = np.linalg.eigh(gram)
            values = np.maximum(values, 0)
        else:
            # More rows than features: the same eigenvectors from the covariance of the features.
            values, right = np.linalg.eigh(lifted.T @ lifted)
            values = np.maximum(values, 1e-12 * values[-1])
            vectors = lifted @ right / np.sqrt(values)
        rotated = vectors.T @ centred
        self.ridge_ = self._best_ridge(values, vectors, rotated, centred)
        dual = vectors @ (rotated / (values + self.ridge_)[:, None])
        self._weights = dual if self.kind == "rbf" else lifted.T @ dual
        return self

    def _lifted(self, X: np.ndarray) -> np.ndarray:
        if self.kind == "rbf":
            return X
        lifted = np.maximum(X @ self._random, 0)
        return np.asarray((lifted - 1 / np.sqrt(2 * np.pi)) / np.sqrt(RANDOM_FEATURES))

    def _kernel(self, X: np.ndarray) -> np.ndarray:
        squares = np.sum(self._rows**2, axis=1)
        distance = np.sum(X**2, axis=1)[:, None] + squares - 2 * X @ self._rows.T
        return np.asarray(np.exp(-np.maximum(distance, 0) / (2 * X.shape[1])))

    def _best_ridge(
        self,
        values: np.ndarray,
        vectors: np.ndarray,
        rotated: np.ndarray,
        labels: np.ndarray,
    ) -> float:
        """Return the ridge of smallest leave-one-out error, in factors of 3."""
        best, lowest = float("nan"), np.inf
        ridges = float(values[-1]) * 3.0 ** np.arange(-24, 3)
        shrunk = values[:, None] / (values[:, None] + ridges)
        # leave-one-out residual (y - H y) / (1 - H_ii)
        left = 1 - (vectors**2) @ shrunk
        for place, ridge in enumerate(ridges):
            if left[:, place].min() < 1e-9:
                continue
            fitted = vectors @ (shrunk[:, place, None] * rotated)
            error = float(np.mean(((labels - fitted) / left[:, place, None]) ** 2))
            if error < lowest:
                best, lowest = float(ridge), error
        return best

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Predict labels."""
        X = np.asarray(X, dtype=np.float64)
        blocks = []
        for start in range(0, len(X), 4096):
            part = X[start : start + 4096]
            rows = self._kernel(part) if self.kind == "rbf" else self._lifted(part)
            blocks.append(rows @ self._weights + self._mean)
        found = np.concatenate(blocks)
        return found[:, 0] if self._single else found


def kernel_levels(
    samples: float, dimension: int, energies: dict[int, float], noise: float
) -> dict[int, float]:
    """Predict the share of each Hermite degree that the Gaussian kernel learns with the best ridge.

    Equations 12 and 13 of docs/derivations/probe.md, for the target's variance and the label noise's.
    The law counts directions; on Gaussian inputs, whose lengths differ, measured shares are 2 to 10 %
    lower, the more so in few dimensions.
    """
    if not (samples > 0 and dimension > 0 and noise >= 0 and energies):
        raise InvalidParameter(
            f"samples is {samples}, dimension {dimension} and noise {noise}; allowed: above 0, above 0, "
            "and at least 0."
        )
    n = min(float(samples), float(MOST_ROWS))
    g, a = 1 / (2 * dimension), 0.25
    base = a + g + float(np.sqrt(a * a + 2 * a * g))
    degrees = np.arange(25)  # higher Hermite degrees have negligible eigenvalues
    # mu_l = (2 a / B)^(d/2) (g / B)^l   (probe 13)
    eigenvalues = np.exp(dimension / 2 * log(2 * a / base) + degrees * log(g / base))
    counts = np.array([float(comb(dimension + k - 1, k)) for k in degrees])

    def shares(kappa: float) -> np.ndarray:
        return np.asarray(eigenvalues / (eigenvalues + kappa))

    def error(log_kappa: float) -> float:
        s = shares(exp(log_kappa))
        variance = float(counts @ s**2) / n
        bias = sum(energy * (1 - s[k]) ** 2 for k, energy in energies.items())
        return (bias + noise) / (1 - variance) if variance < 1 else np.inf

    from scipy.optimize import brentq, minimize_scalar

    # kappa is at least that without ridge, n = sum_l D_l s_l   (probe 12)
    low, high = log(eigenvalues[-1]) - 5, log(eigenvalues[0]) + 12
    ridgeless = brentq(lambda x: float(counts @ shares(exp(x))) - n, low, high)
    grid = np.linspace(ridgeless, high, 200)
    place = int(np.argmin([error(x) for x in grid]))
    found = minimize_scalar(
        error, bounds=(grid[max(place - 1, 0)], grid[min(place + 1, 199)]), method="bounded"
    )
    if not np.isfinite(found.fun):
        raise NotConverged(
            f"no ridge with a finite predicted error was found for the kernel at {n:.4g} rows in "
            f"{dimension} dimensions; take another number of rows.",
            {"samples": n},
        )
    s = shares(exp(float(found.x)))
    return {degree: float(s[degree]) for degree in energies}
