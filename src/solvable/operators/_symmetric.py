"""Quadratic forms and weighted Gram matrices with half the arithmetic of a GEMM (NumPy only)."""

from __future__ import annotations

import numpy as np

from solvable.arrays import Array, namespace


def triangles(symmetric: np.ndarray, dtype: np.dtype) -> list[np.ndarray]:
    """Upper triangular matrices with the same quadratic forms, in BLAS's column-major order."""
    upper = np.triu(symmetric)
    upper += np.triu(symmetric, 1)
    return [np.asfortranarray(matrix, dtype=dtype) for matrix in upper]


def quadratic_forms(X: np.ndarray, triangle: np.ndarray) -> np.ndarray:
    """Compute x^T L x for each row x and upper triangular L, by a triangular product."""
    from scipy.linalg.blas import get_blas_funcs

    (trmm,) = get_blas_funcs(("trmm",), (X,))
    # X.T in row-major order is X in column-major order for BLAS; trmm overwrites the copy.
    product = trmm(1.0, triangle, X.T.copy(order="F"), overwrite_b=1)
    forms: np.ndarray = np.einsum("ij,ij->i", product.T, X)
    return forms


def weighted_gram(X: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Upper triangle of sum_mu w_mu x_mu x_mu^T, by one rank update for each sign of the weights."""
    width = X.shape[1]
    if width <= 64:
        # For few rows, splitting by sign takes longer than the saved half of the arithmetic.
        return np.asarray((X * weights[:, None]).T @ X)
    from scipy.linalg.blas import get_blas_funcs

    (syrk,) = get_blas_funcs(("syrk",), (X,))
    size = np.sqrt(np.abs(weights))
    gram = np.zeros((width, width), dtype=X.dtype, order="F")
    for sign, rows in ((1.0, np.flatnonzero(weights > 0)), (-1.0, np.flatnonzero(weights < 0))):
        if rows.size:
            part = X[rows]
            part *= size[rows, None]
            gram = syrk(sign, part.T, beta=1.0, c=gram, overwrite_c=1)
    return gram


def mirror(upper: np.ndarray) -> np.ndarray:
    """Copy the upper triangle to the lower triangle, in place."""
    for start in range(0, len(upper), 512):
        stop = min(start + 512, len(upper))
        block = upper[start:stop, start:stop]
        block[:] = np.triu(block) + np.triu(block, 1).T
        upper[stop:, start:stop] = upper[start:stop, stop:].T
    return upper


def rank_update(upper: Array, Z: Array, sign: float) -> None:
    """Add sign * Z^T Z to the upper triangle in place; products use the type of Z."""
    if not isinstance(Z, np.ndarray):
        upper += sign * namespace(Z).astype(Z.T @ Z, upper.dtype, copy=False)
        return
    from scipy.linalg.blas import dsyrk, ssyrk

    # BLAS's columns are NumPy's rows, so an array of either order is not copied.
    turned = not Z.flags.f_contiguous
    if Z.dtype == np.float32:
        upper += ssyrk(sign, np.ascontiguousarray(Z).T if turned else Z, trans=not turned)
        return
    Z = np.asarray(Z, dtype=np.float64)
    Z = np.ascontiguousarray(Z).T if turned else Z
    # syrk overwrites only a float64 array in column-major order; ``upper`` always is one.
    dsyrk(sign, Z, beta=1.0, c=upper, overwrite_c=1, trans=not turned)


def symmetric_product(upper: np.ndarray, Q: np.ndarray) -> np.ndarray:
    """Product with a symmetric matrix of which only the upper triangle is filled."""
    from scipy.linalg.blas import dsymm

    return np.asarray(dsymm(1.0, upper, np.asfortranarray(Q), lower=0))
