"""Kernels of scaled columns, and the gradients of functions in their spaces."""

from __future__ import annotations

import numpy as np

KERNELS = ("relu", "gaussian", "laplace")
"""Infinitely wide network of two ReLU layers with a bias b below the first; exp(-r²/b); exp(-r/√b)."""


def size_of(kernel: str, relative: float, Z: np.ndarray) -> float:
    """Return the size b of a kernel: a share of the median squared distance, or a bias for ``relu``."""
    if kernel == "relu":
        return float(relative * Z.shape[1] ** 0.5)
    squares = _squares(Z, Z)
    apart = squares[squares > 0]
    return float(relative * np.median(apart)) if apart.size else relative


def kernel_of(kernel: str, size: float, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the kernel between two sets of rows."""
    if kernel == "relu":
        cosines, one, other = _cosines(left, right, size)
        return np.asarray(_arc(cosines)[0] * one[:, None] * other / left.shape[1])
    ratio = _squares(left, right) / size
    return np.asarray(np.exp(-ratio) if kernel == "gaussian" else np.exp(-np.sqrt(ratio)))


def squared_gradients(kernel: str, size: float, Z: np.ndarray, dual: np.ndarray) -> np.ndarray:
    """Return, for each column, the mean of (df/dz)² for f = k(z, Z) dual, summed over outputs."""
    total = np.zeros(Z.shape[1])
    if kernel == "relu":
        # k = |x| |x'| g(c) with the cosine c has the gradient x |x'| / |x| (g - c g') + x' g'.
        cosines, sizes, _ = _cosines(Z, Z, size)
        value, slope = _arc(cosines)
        along = (value - cosines * slope) * sizes / sizes[:, None] / Z.shape[1]
        across = slope / Z.shape[1]
    else:
        # k = h(r²) has the gradient 2 h'(r²) (x - x').
        ratio = _squares(Z, Z) / size
        if kernel == "gaussian":
            across = 2 * np.exp(-ratio) / size
        else:
            # The kernel has a corner at distance 0, where the gradient is taken as 0.
            root = np.sqrt(ratio)
            apart = root > 1e-9
            across = np.where(apart, np.exp(-root) / np.where(apart, root, 1.0), 0.0) / size
        along = -across
    for weights in dual.T:
        gradient = Z * (along @ weights)[:, None] + across @ (Z * weights[:, None])
        total += np.mean(gradient**2, axis=0)
    return total


def _squares(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    squares = np.sum(left**2, axis=1)[:, None] + np.sum(right**2, axis=1)
    return np.asarray(np.maximum(squares - 2 * (left @ right.T), 0.0))


def _cosines(
    left: np.ndarray, right: np.ndarray, bias: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the cosines of the rows with the bias as a further column, and the norms of both sets."""
    one, other = (np.sqrt(np.sum(Z**2, axis=1) + bias**2) for Z in (left, right))
    cosines = (left @ right.T + bias**2) / one[:, None] / other
    return np.clip(cosines, -1.0, 1.0), one, other


def _arc(cosines: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the normalised kernel of two ReLU layers as a function of the cosine, and its derivative."""
    # One layer: (sqrt(1 - c²) + (π - arccos c) c) / π, with the derivative (π - arccos c) / π
    # (Cho and Saul 2009, degree 1).
    value, slope = cosines, np.ones(())
    for _ in range(2):
        open_ = np.pi - np.arccos(np.clip(value, -1.0, 1.0))
        below = value
        value = (np.sqrt(np.maximum(1 - below**2, 0.0)) + open_ * below) / np.pi
        slope = slope * open_ / np.pi
    return value, np.asarray(slope)
