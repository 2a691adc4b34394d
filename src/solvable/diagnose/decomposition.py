"""Singular values of a matrix and, on request, the leading singular vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

import numpy as np

# ``vectors(k)``: singular vectors of the k largest values on the shorter side, as columns
Vectors = Callable[[int], np.ndarray]

BY_PRODUCT = 256  # rows from which on singular values come from the product with the transpose


def singular_values(
    matrix: np.ndarray, scale: float = 1.0, *, exact: bool = True
) -> tuple[np.ndarray, Vectors]:
    """Decompose matrix / scale, not taller than wide: ascending singular values and left vectors.

    If not ``exact``, only the larger half of the values is exact to about 0.1 %.
    """
    # From 256 rows on, and for long matrices, singular values come from the product of the matrix with
    # its transpose, in a quarter of the time. The product squares the values, so values below 1e-6 of
    # the largest are lost in rounding. With such values, and for small matrices, the matrix itself is
    # decomposed.
    if not exact and len(matrix) >= BY_PRODUCT and matrix.dtype == np.float32:
        squares, vectors = _of_product(gram(matrix, scale, np.float32))
        # Rounding in single precision is a few 1e-7 of the largest square.
        if squares[len(squares) // 2] > 1e-4 * squares[-1]:
            return np.sqrt(np.maximum(squares, 0.0)), vectors
    small = 2_000_000  # entries, up to which a copy in double precision needs no thought
    if matrix.shape[0] >= BY_PRODUCT or matrix.size > small:
        squares, vectors = _of_product(gram(matrix, scale))
        if squares[0] > 1e-12 * squares[-1]:
            return np.sqrt(squares), vectors
    wide = (
        np.divide(matrix, scale, dtype=np.float64)
        if matrix.size <= small
        else _lower(matrix, scale)
    )
    left = cache(lambda: np.linalg.svd(wide, full_matrices=False)[0])
    return np.linalg.svd(wide, compute_uv=False)[::-1], lambda count: left()[:, :count]


def gram(matrix: np.ndarray, scale: float = 1.0, dtype: type = np.float64) -> np.ndarray:
    """Lower triangle of A A^T for A = matrix / scale, summed over blocks of columns."""
    from scipy.linalg.blas import dsyrk, ssyrk

    multiply = dsyrk if dtype is np.float64 else ssyrk
    total: np.ndarray = np.zeros((len(matrix), len(matrix)), dtype, order="F")
    for part in _blocks(matrix, scale, dtype):
        # BLAS takes column-major arrays without a copy; the transpose of a row-major one is such.
        turned = not part.flags.f_contiguous
        total = multiply(
            1.0, part.T if turned else part, 1.0, total, trans=int(turned), lower=1, overwrite_c=1
        )
    return np.asarray(total)


def _blocks(
    matrix: np.ndarray, scale: float, dtype: type, width: int = 512
) -> Iterator[np.ndarray]:
    """Yield blocks of columns of matrix / scale, so that no whole copy is needed."""
    for start in range(0, matrix.shape[1], width):
        part = matrix[:, start : start + width]
        # Entries beyond single precision are scaled before they are rounded.
        wide = np.result_type(part.dtype, dtype)
        yield np.divide(part, scale, dtype=wide).astype(dtype, copy=False)


def _lower(matrix: np.ndarray, scale: float) -> np.ndarray:
    """Square matrix with the singular values and left vectors of a wide one."""
    # A^T = Q R, with R from one block of columns after the other: A = R^T Q^T.
    upper = np.zeros((0, len(matrix)))
    for part in _blocks(matrix, scale, np.float64):
        upper = np.asarray(np.linalg.qr(np.vstack([upper, part.T]), mode="r"))
    return np.asarray(upper.T)


def eigenvectors(matrix: np.ndarray) -> Vectors:
    """Eigenvectors of a symmetric matrix, ordered by decreasing modulus of the eigenvalue."""

    @cache
    def ordered() -> np.ndarray:
        x, V = np.linalg.eigh(matrix)
        return np.asarray(V[:, np.argsort(-np.abs(x), kind="stable")])

    return lambda count: ordered()[:, :count]


def _of_product(product: np.ndarray) -> tuple[np.ndarray, Vectors]:
    """Eigenvalues of a positive matrix, ascending, and its leading eigenvectors; overwrites it."""
    from scipy.linalg import eigh_tridiagonal, get_lapack_funcs

    size = len(product)
    sytrd, sterf, ormqr = get_lapack_funcs(("sytrd", "sterf", "ormqr"), (product,))
    reduced, diagonal, beside, tau, _ = sytrd(product, lower=1, lwork=64 * size, overwrite_a=1)
    squares, _ = sterf(diagonal, beside)
    known = np.zeros((size, 0), product.dtype)

    def vectors(count: int) -> np.ndarray:
        nonlocal known
        if (new := count - known.shape[1]) > 0:
            places = (size - count, size - known.shape[1] - 1)
            _, found = eigh_tridiagonal(
                diagonal, beside, select="i", select_range=places, lapack_driver="stemr"
            )
            found = np.asfortranarray(found[:, ::-1], dtype=product.dtype)
            # The reflections lie below the first subdiagonal, as in a QR decomposition.
            found[1:], _, _ = ormqr("L", "N", reduced[1:, :-1], tau, found[1:], max(64 * new, 64))
            known = np.hstack([known, found])
        return known[:, :count]

    return np.asarray(squares, dtype=np.float64), vectors
