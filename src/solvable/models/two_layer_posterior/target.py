"""The target: a Hermite polynomial of one direction of Gaussian inputs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from solvable.arrays import check_integer, random_stream
from solvable.hermite import hermite_polynomials
from solvable.teachers.base import check_dtype, draw_normals


@dataclass(frozen=True)
class HermiteTarget:
    r"""Labels :math:`y=\mathrm{He}_m(w_*\cdot x)/\sqrt{m!}`, of unit variance and without noise.

    Parameters
    ----------
    dimension : int
        :math:`d`.
    degree : int
        :math:`m \ge 1`.
    seed : int
        Seed of the direction.

    Notes
    -----
    arXiv:2512.04165, FCN2. Backed by ``tests/models/two_layer_posterior/test_system.py``.

    Examples
    --------
    >>> X, y = HermiteTarget(10, 3).sample(5, 0)
    >>> X.shape, y.shape
    ((5, 10), (5,))
    """

    dimension: int
    degree: int = 3
    seed: int = 0

    def __post_init__(self) -> None:
        check_integer("dimension", self.dimension, 1)
        check_integer("degree", self.degree, 1)

    @cached_property
    def direction(self) -> np.ndarray:
        """Unit vector w_*, shape (d,)."""
        draw = random_stream(self.seed, "hermite direction").standard_normal(self.dimension)
        return np.asarray(draw / np.linalg.norm(draw))

    def label(self, X: np.ndarray) -> np.ndarray:
        """Labels of samples, shape (n,)."""
        return hermite_polynomials(X @ self.direction, self.degree)[self.degree]

    def sample(
        self, n: int, rng: np.random.Generator | int, dtype: Any = np.float64
    ) -> tuple[np.ndarray, np.ndarray]:
        """Draw inputs X of shape (n, d) in the type asked for, and labels y of shape (n,)."""
        check_integer("n", n, 1)
        stream = random_stream(rng, "samples") if isinstance(rng, int) else rng
        X = draw_normals(check_dtype(dtype), self.dimension, int(n), stream)
        return X, self.label(X)
