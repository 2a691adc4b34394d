"""Eigenpairs at both ends of a spectrum, from the explicit operator or its dual matrix."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from solvable.arrays import to_numpy
from solvable.errors import InvalidData
from solvable.operators._lanczos import RitzPairs, both_ends
from solvable.operators.base import SymmetricOperator


def ends_of_matrix(
    matrix: np.ndarray, n_upper: int, n_lower: int
) -> tuple[np.ndarray, np.ndarray, float]:
    """Eigenpairs of both ends, and the largest modulus; the matrix is not overwritten."""
    from scipy.linalg import eigh

    size = len(matrix)
    if 3 * (n_upper + n_lower) >= size or min(n_upper, n_lower) == 0:
        return _one_call(matrix, n_upper, n_lower)
    upper, upper_vectors = eigh(matrix, subset_by_index=(size - n_upper, size - 1))
    lower, lower_vectors = eigh(matrix, subset_by_index=(0, n_lower - 1))
    values = np.concatenate([upper[::-1], lower[::-1]])
    vectors = np.concatenate([upper_vectors[:, ::-1], lower_vectors[:, ::-1]], axis=1)
    return values, vectors, float(np.max(np.abs(values)))


def _one_call(
    matrix: np.ndarray, n_upper: int, n_lower: int
) -> tuple[np.ndarray, np.ndarray, float]:
    values, vectors = np.linalg.eigh(matrix)
    ends = both_ends(len(matrix), n_upper, n_lower)
    return values[ends], vectors[:, ends], float(np.max(np.abs(values)))


def dense_pairs(operator: SymmetricOperator, n_upper: int, n_lower: int) -> RitzPairs:
    """Eigenpairs from the explicit matrix of the operator."""
    matrix = operator.dense()
    values, vectors, scale = ends_of_matrix(matrix, n_upper, n_lower)
    residuals = np.linalg.norm(matrix @ vectors - vectors * values, axis=0)
    return RitzPairs(values, vectors, residuals, scale, 0)


def gram_pairs(
    operator: SymmetricOperator, n_upper: int, n_lower: int, rng: np.random.Generator
) -> RitzPairs:
    """Eigenpairs of an uncorrected operator with n < D, from the dual matrix (n, n)."""
    # With K = F F^T = L L^T (pivoted Cholesky, rank r) the columns of Q = F^T L^-T are orthonormal and
    # span the rows of F, so that C = Q (L^T diag(T) L / n) Q^T - mean(T) I: an r x r problem, and the
    # eigenvalue -mean(T) of multiplicity D - r on the complement of Q.
    X, weights = _gather(operator)
    features = operator.features
    order, L = _pivoted_cholesky(features.kernel(X))
    rank, size = L.shape[1], features.n_features
    reduced = L.T @ (weights[order, None] * L) / operator.n_samples
    inner_ends = min(n_upper, rank), min(n_lower, rank)
    values, coefficients = _reduced_ends(reduced, *inner_ends)
    n_null = min(size - rank, n_upper + n_lower)
    candidates = np.concatenate([values, np.zeros(n_null)])
    ends = both_ends(len(candidates), n_upper, n_lower)
    chosen = np.argsort(candidates, kind="stable")[ends]

    def through_features(table: np.ndarray) -> np.ndarray:
        """Product of Q with an array of r rows."""
        from scipy.linalg import solve_triangular

        scattered = np.zeros((len(X), table.shape[1]))
        scattered[order[:rank]] = solve_triangular(L[:rank], table, lower=True, trans="T")
        return np.asarray(features.adjoint(X, scattered))

    vectors = np.empty((size, len(chosen)))
    inside = chosen < len(values)
    if inside.any():
        vectors[:, inside] = through_features(coefficients[:, chosen[inside]])
    if not inside.all():
        count = int(np.count_nonzero(~inside))
        project = _row_space(lambda U: features.project(X, U), order, L, through_features)
        vectors[:, ~inside] = _complement(project, size, count, rng)
    mean = float(weights.mean())
    shifted = candidates[chosen] - mean
    products = operator.products
    residuals = np.linalg.norm(operator.matmat(vectors) - vectors * shifted, axis=0)
    scale = float(np.max(np.abs(np.append(values - mean, shifted))))
    return RitzPairs(shifted, vectors, residuals, scale, operator.products - products)


def _gather(operator: SymmetricOperator) -> tuple[np.ndarray, np.ndarray]:
    """All samples and weights, on the host in float64."""
    blocks, weights = [], []
    for block, part in operator.blocks(4096):
        blocks.append(np.array(to_numpy(block), dtype=np.float64))
        weights.append(part)
    X = np.concatenate(blocks)
    if not np.isfinite(X).all():
        raise InvalidData("some samples are NaN or infinite; allowed: finite numbers.")
    return X, np.concatenate(weights)


def _pivoted_cholesky(kernel: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pivoted Cholesky: the row order and L (n, rank), with kernel[order][:, order] = L L^T."""
    from scipy.linalg.lapack import dpstrf

    factor, pivots, rank, _ = dpstrf(kernel, lower=1)
    return pivots - 1, np.tril(factor)[:, :rank]


def _reduced_ends(reduced: np.ndarray, n_upper: int, n_lower: int) -> tuple[np.ndarray, np.ndarray]:
    """Select both ends; where the ends overlap, an eigenpair counts once."""
    if n_upper + n_lower >= len(reduced):
        values, coefficients = np.linalg.eigh(reduced)
        return values, coefficients
    values, coefficients, _ = ends_of_matrix(reduced, n_upper, n_lower)
    return values, coefficients


def _row_space(
    forward: Callable[[np.ndarray], np.ndarray],
    order: np.ndarray,
    L: np.ndarray,
    through_features: Callable[[np.ndarray], np.ndarray],
) -> Callable[[np.ndarray], np.ndarray]:
    """Orthogonal projection Q Q^T onto the rows of F."""
    from scipy.linalg import solve_triangular

    rank = L.shape[1]

    def project(U: np.ndarray) -> np.ndarray:
        along = solve_triangular(L[:rank], forward(U)[order[:rank]], lower=True)
        return through_features(along)

    return project


def _complement(
    project: Callable[[np.ndarray], np.ndarray], size: int, count: int, rng: np.random.Generator
) -> np.ndarray:
    """Orthonormal vectors orthogonal to the rows of F."""
    U = rng.standard_normal((size, count))
    for _ in range(3):
        U = np.linalg.qr(U - project(U))[0]
    return U
