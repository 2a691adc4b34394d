"""Block power iteration, the solver of the paper, for comparison with the library's solver."""

from __future__ import annotations

import numpy as np

from solvable.errors import InvalidParameter, NotConverged
from solvable.operators.base import SymmetricOperator
from solvable.operators.eigen import Eigenpairs

SAFE_PIVOT = 1e-5
"""Smallest ratio of Cholesky pivots for which the vectors are orthonormal up to about 1e-6."""


def block_power_iteration(
    operator: SymmetricOperator,
    n_vectors: int,
    *,
    passes: int = 15,
    extra: int = 10,
    rayleigh_ritz: bool = False,
    rng: np.random.Generator,
) -> np.ndarray:
    """Return approximate leading eigenvectors by subspace iteration, the solver of arXiv:2605.14567.

    Each pass multiplies a block of ``n_vectors + extra`` vectors by the operator and makes it
    orthonormal. Two eigenvalues of opposite sign and nearly equal modulus converge slowly.

    Parameters
    ----------
    operator : SymmetricOperator
        The moment operator.
    n_vectors, passes, extra : int
        Number of vectors returned, of passes over the data, and of further vectors in the block.
    rayleigh_ritz : bool
        True rotates the block to the eigenvectors of the operator inside its span, with one more product,
        and returns the vectors whose eigenvalues have the largest modulus.
    rng : numpy.random.Generator
        Generator of the starting block.

    Returns
    -------
    ndarray of shape (D, n_vectors)
        Orthonormal vectors, in general not converged; compare
        :func:`solvable.operators.leading_eigenpairs`.

    Examples
    --------
    >>> from solvable.operators import HermiteFeatures, MomentOperator
    >>> X = np.array([[3.0, 0.0], [0.0, 1.0]])
    >>> operator = MomentOperator(X, np.array([1.0, 0.0]), HermiteFeatures(1, 2))
    >>> found = block_power_iteration(operator, 1, extra=0, rng=np.random.default_rng(0))
    >>> np.abs(found).round(3).ravel()
    array([1., 0.])
    """
    block = n_vectors + extra
    if not 1 <= n_vectors <= block <= operator.shape[0] or passes < 1:
        raise InvalidParameter(
            f"n_vectors is {n_vectors}, extra is {extra} and passes is {passes}; allowed: n_vectors and "
            f"passes of at least 1, and n_vectors + extra of at most {operator.shape[0]}."
        )
    Q = np.linalg.qr(rng.standard_normal((operator.shape[0], block)))[0]
    for step in range(1, passes + 1):
        Q = _orthonormalised(operator.matmat(Q), step)
    if rayleigh_ritz:
        compressed = Q.T @ operator.matmat(Q)
        values, rotation = np.linalg.eigh((compressed + compressed.T) / 2)
        Q = Q @ rotation[:, np.argsort(-np.abs(values))]
    return Q[:, :n_vectors]


def iterated_pairs(
    operator: SymmetricOperator, n_vectors: int, tolerance: float, rng: np.random.Generator
) -> Eigenpairs:
    """First vectors of the block after 15 passes, sorted by descending Rayleigh quotient."""
    start = operator.products
    extra = min(10, operator.shape[0] - n_vectors)
    vectors = block_power_iteration(operator, n_vectors, extra=extra, rng=rng)
    images = operator.matmat(vectors)
    values = np.sum(vectors * images, axis=0)
    order = np.argsort(-values)
    residuals = np.linalg.norm(images - vectors * values, axis=0)[order]
    scale = float(np.abs(values).max())
    return Eigenpairs(
        values=values[order],
        vectors=vectors[:, order],
        residuals=residuals,
        products=operator.products - start,
        route="power-iteration",
        converged=residuals <= tolerance * scale,
        scale=scale,
        n_upper=int(np.count_nonzero(values > 0)),
    )


def _orthonormalised(block: np.ndarray, step: int) -> np.ndarray:
    from scipy.linalg import solve_triangular

    norm = float(np.linalg.norm(block))
    if not 0 < norm < np.inf:
        raise NotConverged(
            f"the block of power iteration has norm {norm:g} after pass {step}: the operator is "
            "zero on the block, or its weights overflow. Scale the labels, or check that they vary.",
            {"norm": norm, "passes": step},
        )
    block = block / norm
    try:
        factor = np.linalg.cholesky(block.T @ block)
    except np.linalg.LinAlgError:
        return np.linalg.qr(block)[0]
    pivots = np.diag(factor)
    # The Gram matrix squares the condition number, so smaller pivots would give errors above 1e-6.
    if pivots.min() < SAFE_PIVOT * pivots.max():
        return np.linalg.qr(block)[0]
    return solve_triangular(factor, block.T, lower=True).T
