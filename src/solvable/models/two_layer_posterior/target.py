"""The target: a Hermite polynomial of one direction of Gaussian inputs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from solvable.arrays import random_stream
from solvable.hermite import hermite_polynomials
from solvable.teachers.base import draw_normals


@dataclass(frozen=True)
class HermiteTarget:
    """Target y = He_m(w*.x) / sqrt(m!) of unit variance, without noise (arXiv:2512.04165, FCN2)."""

    dimension: int
    degree: int = 3
    seed: int = 0  # seed of the direction

    @cached_property
    def direction(self) -> np.ndarray:
        """Unit vector w_*, shape (d,)."""
        draw = random_stream(self.seed, "hermite direction").standard_normal(self.dimension)
        return np.asarray(draw / np.linalg.norm(draw))

    def label(self, X: np.ndarray) -> np.ndarray:
        """Compute the labels of samples, shape (n,)."""
        return hermite_polynomials(X @ self.direction, self.degree)[self.degree]

    def sample(
        self, n: int, rng: np.random.Generator | int, dtype: Any = np.float64
    ) -> tuple[np.ndarray, np.ndarray]:
        """Draw inputs X of shape (n, d) and of a given dtype, and labels y of shape (n,)."""
        stream = random_stream(rng, "samples") if isinstance(rng, int) else rng
        X = draw_normals(dtype, self.dimension, n, stream)
        return X, self.label(X)
