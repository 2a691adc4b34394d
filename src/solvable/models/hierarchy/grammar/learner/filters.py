"""One trained filter of a layer-wise network: ridge regression of labels on Fourier features."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import sqrt
from typing import Protocol

import numpy as np

from solvable.errors import MemoryLimitExceeded
from solvable.fitting.kernel_system import KernelMatrix
from solvable.memory import available_bytes, gigabytes
from solvable.operators.activations import evaluate
from solvable.operators.lift import RandomLift

BLOCK_ENTRIES = 1 << 22
"""Largest number of entries of a block of kernel values or features."""

CLAMP = 0.05
"""Normalisers below this are those of patches without training samples; the output is then uniform."""


class Filter(Protocol):
    """Function of patches whose rows are unnormalised outputs."""

    def outputs(self, patches: np.ndarray) -> np.ndarray:
        """Return the outputs W x, shape (n, n_classes)."""
        ...


Counted = tuple[np.ndarray, np.ndarray]
"""Different patches of a part of the samples, and how often each has each label."""


@dataclass(frozen=True)
class KernelFilter:
    """Solution of the ridge problem with infinitely many features, in the different patches."""

    points: np.ndarray
    dual: np.ndarray
    bandwidth: float

    def outputs(self, patches: np.ndarray) -> np.ndarray:
        """Return the outputs W x = sum_u K(x, u) alpha_u, shape (n, n_classes)."""
        rows = max(1, BLOCK_ENTRIES // len(self.points))
        parts = [
            gaussian_kernel(patches[start : start + rows], self.points, self.bandwidth) @ self.dual
            for start in range(0, len(patches), rows)
        ]
        return np.concatenate(parts)


@dataclass(frozen=True)
class FeatureFilter:
    """Solution of the ridge problem with pairs of random Fourier features."""

    lift: RandomLift
    weights: np.ndarray

    def outputs(self, patches: np.ndarray) -> np.ndarray:
        """Return the outputs W x, shape (n, n_classes)."""
        rows = max(1, BLOCK_ENTRIES // len(self.weights))
        parts = [
            fourier_pairs(self.lift, patches[start : start + rows]) @ self.weights
            for start in range(0, len(patches), rows)
        ]
        return np.concatenate(parts)


def gaussian_kernel(left: np.ndarray, right: np.ndarray, bandwidth: float) -> np.ndarray:
    """Kernel exp(-|h - h'|² / 2 sigma²) of two sets of patches."""
    squares = [np.einsum("ij,ij->i", part, part) for part in (left, right)]
    exponent = left @ right.T
    exponent *= 2
    exponent -= squares[0][:, None]
    exponent -= squares[1]
    np.minimum(exponent, 0, out=exponent)
    exponent /= 2 * bandwidth**2
    return np.exp(exponent, out=exponent)


def fourier_pairs(lift: RandomLift, patches: np.ndarray) -> np.ndarray:
    """Rows of norm 1 whose inner products approximate the Gaussian kernel."""
    # fourier(t) = sin + cos and fourier(-t) = cos - sin of sqrt(2) t: a rotation of (cos, sin)
    angles = lift.preactivation(patches.astype(np.float32))
    pairs = [evaluate(lift.activation, angles), evaluate(lift.activation, -angles)]
    rows = np.concatenate(pairs, axis=1)
    rows *= 1 / sqrt(2 * lift.width)
    return rows


def fit_kernel(
    points: np.ndarray, counts: np.ndarray, bandwidth: float, ridge: float
) -> KernelFilter:
    """Solve the ridge problem with the exact kernel, in the different patches."""
    size = len(points)
    # strips of the upper triangle, and the matrix that is factorised
    needed = 12.0 * size**2
    if needed > available_bytes():
        raise MemoryLimitExceeded(
            f"the kernel of {size} different patches needs {gigabytes(needed)}, and "
            f"{gigabytes(available_bytes())} are free; use mode='features' or fewer strings."
        )
    roots = np.sqrt(counts.sum(axis=1))

    def weighted(left: np.ndarray, right: np.ndarray) -> np.ndarray:
        return left[:, -1:] * gaussian_kernel(left[:, :-1], right[:, :-1], bandwidth) * right[:, -1]

    # alpha = D^(1/2) (D^(1/2) K D^(1/2) + N lambda I)^-1 D^(-1/2) B (hierarchy 12)
    matrix = KernelMatrix(weighted, np.column_stack([points, roots]))
    dual = matrix.solve(counts / roots[:, None], counts.sum() * ridge)
    return KernelFilter(points, roots[:, None] * dual, bandwidth)


def fit_features(
    parts: Iterable[Counted], lift: RandomLift, ridge: float, steps: int | None
) -> FeatureFilter:
    """Solve the ridge problem in random features, or take gradient steps from zero."""
    gram = np.zeros((2 * lift.width, 2 * lift.width))
    moment: np.ndarray | float = 0.0
    n = 0.0
    for points, counts in parts:
        total = counts.sum(axis=1)
        n += float(total.sum())
        rows = max(1, BLOCK_ENTRIES // len(gram))
        for start in range(0, len(points), rows):
            block = slice(start, start + rows)
            features = fourier_pairs(lift, points[block])
            moment = moment + features.T @ counts[block]
            features *= np.sqrt(total[block, None], dtype=np.float32)
            gram += features.T @ features
    # W = E[e x^T] (E[x x^T] + lambda I)^-1 (hierarchy 10)
    gram /= n
    return FeatureFilter(lift, ridge_weights(gram, np.asarray(moment) / n, ridge, steps))


def ridge_weights(
    gram: np.ndarray, moment: np.ndarray, ridge: float, steps: int | None = None
) -> np.ndarray:
    """Weights, shape (features, classes), of ridge regression with these mean products."""
    # With `steps` these are the weights after that many gradient steps from zero, of size
    # 2 / (1 + ridge).
    if steps is None:
        from scipy.linalg import solve

        return np.asarray(solve(gram + ridge * np.eye(len(gram)), moment, assume_a="pos"))
    weights = np.zeros_like(moment)
    for _ in range(steps):
        # step 2 |P| / (|P| + 1) with lambda = 1 / |P| (hierarchy 10)
        weights -= 2 / (1 + ridge) * (gram @ weights + ridge * weights - moment)
    return weights


def normalised(outputs: np.ndarray) -> np.ndarray:
    """Divide outputs by their sum; uniform where the sum is close to zero."""
    # h = W x / <1, W x> (hierarchy 11)
    total = outputs.sum(axis=1, keepdims=True)
    small = np.abs(total) < CLAMP
    return np.where(small, 1 / outputs.shape[1], outputs / np.where(small, 1.0, total))
