"""Images of digits, and kernels of infinitely many random features on these images."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from solvable.data import load
from solvable.models.lofi.emergence import residual_dimension
from solvable.operators import dual_kernel

SHAPES = {"digits": (8, 8, 1), "mnist-5k": (28, 28, 1)}
"""Height, width and channels of the images of each data set."""

GRAM_SAMPLES = 200
"""Number of images on which kernels of finite and infinite width are compared."""


@lru_cache(maxsize=2)
def images(data: str) -> tuple[np.ndarray, np.ndarray]:
    """Digits and pixels of a data set; all pixels are standardised by one mean and one deviation."""
    rows = load(data)
    X = np.asarray((rows.X - rows.X.mean()) / rows.X.std())
    X.setflags(write=False)
    return X, np.asarray(rows.y).astype(int)


def lifted_kernel(X: np.ndarray, activation: str) -> tuple[np.ndarray, float]:
    """Kernel of an infinitely wide lift, and the scale c of the lift's inputs."""
    scale = math.sqrt(float(np.mean(np.sum(X**2, axis=1))))  # c² = (1/n) sum_mu |x_mu|²   (lofi 2)
    inner = X @ X.T / scale**2
    return dual_kernel(activation, inner, np.diag(inner), np.diag(inner)), scale


def residual_dimensions(X: np.ndarray, activation: str, kept: Sequence[int]) -> list[float | None]:
    """Residual effective dimension of the kernel for each number of kept directions (lofi 21)."""
    kernel, _ = lifted_kernel(X, activation)
    dimensions = residual_dimension(np.maximum(np.linalg.eigvalsh(kernel), 0.0))
    return [float(dimensions[k]) for k in kept]
