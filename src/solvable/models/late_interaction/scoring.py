"""Scores of documents: the sum of maxima (MaxSim), the pooled score, and the nDCG of a ranking."""

from __future__ import annotations

import numpy as np

from solvable.errors import InvalidData


def similarities(queries: np.ndarray, documents: np.ndarray, factor: np.ndarray) -> np.ndarray:
    """Return all <W q_i, W d_j>, shape (n, K, L_d, L_q), for a factor W of shape (k, d)."""
    n, candidates, length, _ = documents.shape
    left = queries @ factor.T
    right = (documents @ factor.T).reshape(n, candidates * length, -1)
    return (right @ left.transpose(0, 2, 1)).reshape(n, candidates, length, -1)


def maxsim(queries: np.ndarray, documents: np.ndarray, factor: np.ndarray) -> np.ndarray:
    """Return the score of each candidate, shape (n, K)."""
    # s(Q, D) = sum_i max_j <W q_i, W d_j>   (late-interaction 1)
    _check(queries, documents, factor)
    return np.asarray(similarities(queries, documents, factor).max(axis=2).sum(axis=2))


def pooled(queries: np.ndarray, documents: np.ndarray, factor: np.ndarray) -> np.ndarray:
    """Return the score of each candidate by mean-pooled documents, shape (n, K)."""
    # (1 / L_d) sum_ij <W q_i, W d_j>   (late-interaction 2)
    _check(queries, documents, factor)
    query = queries.sum(axis=1) @ factor.T
    document = documents.mean(axis=2) @ factor.T
    return np.asarray(np.einsum("nk,nck->nc", query, document))


def ndcg(scores: np.ndarray, relevant: np.ndarray, *, depth: int = 10) -> np.ndarray:
    """Return the nDCG of each query with one relevant document, shape (n,)."""
    # 1 / log2(rho + 2) for rank rho < depth, else 0; tied documents share their mean rank
    # (late-interaction 3), so that a constant scorer gains nothing from the order of the documents
    scores, relevant = np.asarray(scores, np.float64), np.asarray(relevant)
    if scores.ndim != 2 or relevant.shape != scores.shape[:1] or not np.isfinite(scores).all():
        raise InvalidData(
            f"scores have shape {scores.shape} and relevant {relevant.shape}; allowed: finite scores "
            "of shape (n, documents), and (n,)."
        )
    own = np.take_along_axis(scores, relevant[:, None], axis=1)
    rank = ((scores > own).sum(axis=1) + (scores >= own).sum(axis=1) - 1) / 2
    return np.asarray(np.where(rank < depth, 1 / np.log2(rank + 2), 0.0))


def _check(queries: np.ndarray, documents: np.ndarray, factor: np.ndarray) -> None:
    """Check that queries (n, L_q, d), documents (n, K, L_d, d) and factor (k, d) fit."""
    shapes = queries.shape, documents.shape, factor.shape
    fits = [len(shape) for shape in shapes] == [3, 4, 2] and shapes[0][0] == shapes[1][0]
    if not fits or len({shape[-1] for shape in shapes}) != 1:
        raise InvalidData(
            f"queries have shape {shapes[0]}, documents {shapes[1]} and the factor {shapes[2]}; "
            "allowed: (n, L_q, d), (n, K, L_d, d) and (k, d)."
        )
