"""Singular values of a matrix and, on request, the leading singular vectors."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

# ``vectors(k)``: singular vectors of the k largest values on the shorter side, as columns
Vectors = Callable[[int], np.ndarray]


def singular_values(matrix: np.ndarray) -> tuple[np.ndarray, Vectors]:
    """Decompose a matrix that is not taller than wide: ascending singular values and left vectors."""
    # From 512 rows on, singular values come from the product of the matrix with its transpose, in a
    # quarter of the time. The product squares the values, so values below 1e-6 of the largest are
    # lost in rounding. With such values, and for small matrices, the matrix itself is decomposed.
    if matrix.shape[0] >= 512:
        squares, vectors = _of_product(matrix)
        if squares[0] > 1e-12 * squares[-1]:
            return np.sqrt(squares), vectors
    left = cache(lambda: np.linalg.svd(matrix, full_matrices=False)[0])
    return np.linalg.svd(matrix, compute_uv=False)[::-1], lambda count: left()[:, :count]


def eigenvectors(matrix: np.ndarray) -> Vectors:
    """Eigenvectors of a symmetric matrix, ordered by decreasing modulus of the eigenvalue."""

    @cache
    def ordered() -> np.ndarray:
        x, V = np.linalg.eigh(matrix)
        return np.asarray(V[:, np.argsort(-np.abs(x), kind="stable")])

    return lambda count: ordered()[:, :count]


def _of_product(matrix: np.ndarray) -> tuple[np.ndarray, Vectors]:
    from scipy.linalg import eigh_tridiagonal, lapack
    from scipy.linalg.blas import dsyrk

    size = matrix.shape[0]
    # The transpose of a row-major array is column-major, which LAPACK takes without a copy.
    product = dsyrk(1.0, matrix.T, trans=1, lower=1)
    reduced, diagonal, beside, tau, _ = lapack.dsytrd(
        product, lower=1, lwork=64 * size, overwrite_a=1
    )
    squares, _ = lapack.dsterf(diagonal, beside)

    @cache
    def vectors(count: int) -> np.ndarray:
        _, found = eigh_tridiagonal(
            diagonal, beside, select="i", select_range=(size - count, size - 1)
        )
        found = np.asfortranarray(found[:, ::-1])
        # The reflections lie below the first subdiagonal, as in a QR decomposition.
        found[1:], _, _ = lapack.dormqr(
            "L", "N", reduced[1:, :-1], tau, found[1:], max(64 * count, 64)
        )
        return np.asarray(found)

    return squares, vectors
