"""The spectral estimator of the kernel: a label-weighted moment of summed tokens."""

from __future__ import annotations

import numpy as np

from solvable.errors import InvalidData


def moment_matrix(queries: np.ndarray, documents: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Moment matrix of summed query and document tokens, weighted by labels, shape (d, d)."""
    # Queries have shape (n, d) or (n, L_q, d), documents (n, K, d) or (n, K, L_d, d), weights (n, K).
    # Its mean is (K - 1) L_q S for Gaussian tokens and scores as labels; it is the first gradient step of
    # contrastive training. Matrices of several blocks of queries average to that of all.
    q, d, y = (np.asarray(values, dtype=np.float64) for values in (queries, documents, weights))
    q = q.sum(axis=1) if q.ndim == 3 else q
    d = d.sum(axis=2) if d.ndim == 4 else d
    fits = q.ndim == 2 and d.ndim == 3 and d.shape[:2] == y.shape
    if not fits or not q.size or q.shape != (d.shape[0], d.shape[2]):
        raise InvalidData(
            f"queries have shape {np.shape(queries)}, documents {np.shape(documents)} and weights "
            f"{y.shape}; allowed: (n, d) or (n, L_q, d), (n, K, d) or (n, K, L_d, d), and (n, K)."
        )
    # M = (1 / n) sum q (sum_c y_c d_c)^T, symmetrised   (late-interaction 14)
    matrix = q.T @ np.einsum("nc,ncd->nd", y, d) / len(q)
    if not np.isfinite(matrix).all():
        raise InvalidData("the tokens or weights are not finite; allowed: finite numbers.")
    return np.asarray((matrix + matrix.T) / 2)


def spectral_kernel(matrix: np.ndarray, *, edge: float = 0.0) -> np.ndarray:
    """Part of a symmetric matrix (d, d) with eigenvalues above an edge; 0 keeps the positive part."""
    M = np.asarray(matrix, dtype=np.float64)
    if M.ndim != 2 or M.shape[0] != M.shape[1]:
        raise InvalidData(f"the matrix has shape {M.shape}; allowed: (d, d).")
    values, vectors = np.linalg.eigh((M + M.T) / 2)
    kept = np.where(values > max(edge, 0.0), values, 0.0)
    return np.asarray((vectors * kept) @ vectors.T)
