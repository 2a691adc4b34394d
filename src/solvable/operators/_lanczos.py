"""Eigenpairs at both ends of a spectrum, by thick-restart Lanczos with full orthogonalisation.

This is faster than SciPy's ``eigsh`` for expensive products and short vectors: one Krylov space serves
both ends, and convergence is checked after every few products instead of once per restart. The images
of the basis are stored, so residuals are exact and need no product. Pairs that did not converge are
returned with their residual.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class RitzPairs:
    """Ritz pairs of both ends in descending order, with exact residual norms."""

    values: np.ndarray
    vectors: np.ndarray
    residuals: np.ndarray
    scale: float
    products: int


def both_ends(size: int, n_upper: int, n_lower: int) -> np.ndarray:
    """Indices of both ends in an ascending list of values, by descending value."""
    upper = np.arange(size - 1, size - 1 - n_upper, -1)
    return np.concatenate([upper, np.arange(n_lower - 1, -1, -1)])


class _Basis:
    """Krylov basis: orthonormal vectors, their images, and the operator projected onto the vectors."""

    def __init__(self, size: int, capacity: int) -> None:
        self.vectors = np.empty((size, capacity), order="F")
        self.images = np.empty((size, capacity), order="F")
        self.projected = np.zeros((capacity, capacity))
        self.count = 0

    def orthogonalise(self, vector: np.ndarray) -> np.ndarray:
        """Project the basis out of a vector twice, which is enough for full orthogonality."""
        held = self.vectors[:, : self.count]
        for _ in range(2):
            vector = vector - held @ (held.T @ vector)
        return vector

    def append(self, vector: np.ndarray, image: np.ndarray) -> None:
        k = self.count
        self.vectors[:, k] = vector
        self.images[:, k] = image
        self.count = k + 1
        row = self.vectors[:, : k + 1].T @ image
        self.projected[k, : k + 1] = self.projected[: k + 1, k] = row

    def ritz(self) -> tuple[np.ndarray, np.ndarray]:
        values, coefficients = np.linalg.eigh(self.projected[: self.count, : self.count])
        return values, coefficients

    def compress(self, values: np.ndarray, coefficients: np.ndarray) -> None:
        """Restart from some of the Ritz vectors (thick restart)."""
        k = values.size
        self.vectors[:, :k] = self.vectors[:, : self.count] @ coefficients
        self.images[:, :k] = self.images[:, : self.count] @ coefficients
        self.projected[:k, :k] = np.diag(values)
        self.count = k

    def pairs(self, n_upper: int, n_lower: int, products: int) -> RitzPairs:
        values, coefficients = self.ritz()
        ends = both_ends(self.count, n_upper, n_lower)
        chosen = coefficients[:, ends]
        vectors = self.vectors[:, : self.count] @ chosen
        residuals = self.images[:, : self.count] @ chosen - vectors * values[ends]
        return RitzPairs(
            values=values[ends],
            vectors=vectors,
            residuals=np.linalg.norm(residuals, axis=0),
            scale=float(np.max(np.abs(values))),
            products=products,
        )


def _next_direction(
    basis: _Basis, image: np.ndarray, scale: float, rng: np.random.Generator
) -> np.ndarray:
    """Unit vector that extends the Krylov space; a random vector if the space is invariant."""
    candidate = basis.orthogonalise(image)
    norm = float(np.linalg.norm(candidate))
    while norm <= 1e-12 * scale or norm == 0:
        candidate = basis.orthogonalise(rng.standard_normal(image.size))
        norm, scale = float(np.linalg.norm(candidate)), 0.0
    unit = basis.orthogonalise(candidate / norm)
    return unit / np.linalg.norm(unit)


def lanczos(
    apply: Callable[[np.ndarray], np.ndarray],
    size: int,
    n_upper: int,
    n_lower: int,
    *,
    enough: Callable[[RitzPairs], bool],
    max_products: int,
    capacity: int,
    rng: np.random.Generator,
) -> RitzPairs:
    """Iterate until the Ritz pairs of both ends suffice or the limit of products is reached."""
    # number of vectors before a restart; if it equals the dimension, the result is exact
    wanted = n_upper + n_lower
    capacity = min(size, max(capacity, wanted + 8))
    basis = _Basis(size, capacity)
    direction = rng.standard_normal(size)
    direction /= np.linalg.norm(direction)
    products = 0
    while True:
        image = apply(direction)
        products += 1
        basis.append(direction, image)
        finished = basis.count == size or products >= max_products
        due = (
            products % 2 == 0 or basis.count == capacity
        )  # convergence is not checked at every product, because a check takes time
        if basis.count >= wanted and (finished or due):
            pairs = basis.pairs(n_upper, n_lower, products)
            if finished or enough(pairs):
                return pairs
        direction = _next_direction(basis, image, float(np.linalg.norm(image)), rng)
        if basis.count == capacity:
            _restart(basis, n_upper, n_lower)


def _restart(basis: _Basis, n_upper: int, n_lower: int) -> None:
    """Restart from the wanted Ritz vectors and about a third of the others."""
    values, coefficients = basis.ritz()
    spare = max(1, (basis.count - n_upper - n_lower) // 3)
    total = n_upper + n_lower
    extra_upper = -(-spare * n_upper // total)
    extra_lower = -(-spare * n_lower // total)
    keep_upper, keep_lower = n_upper + extra_upper, n_lower + extra_lower
    if keep_upper + keep_lower >= basis.count:
        keep_upper, keep_lower = n_upper, n_lower
    kept = np.sort(both_ends(basis.count, keep_upper, keep_lower))
    basis.compress(values[kept], coefficients[:, kept])
