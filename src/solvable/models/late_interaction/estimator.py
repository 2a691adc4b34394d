"""The spectral estimator of the kernel: a label-weighted moment of summed tokens."""

from __future__ import annotations

import numpy as np

from solvable.errors import InvalidData


def moment_matrix(queries: np.ndarray, documents: np.ndarray, weights: np.ndarray) -> np.ndarray:
    r"""Compute the moment matrix of summed query and document tokens, weighted by labels.

    .. math::
        \hat M=\frac1{2n}\sum_\mu\Big(\hat q_\mu e_\mu^\top+e_\mu\hat q_\mu^\top\Big),\qquad
        e_\mu=\sum_cy_{\mu c}\hat d_{\mu c},

    with the sums :math:`\hat q_\mu,\hat d_{\mu c}` of the tokens. For Gaussian tokens and
    scores as labels its mean is :math:`(K-1)L_qS` exactly. It is the first gradient step of contrastive
    training and of distillation from uniform attention.

    Parameters
    ----------
    queries : array of shape (n, d) or (n, L_q, d)
        Sums of the tokens of each query, or the tokens.
    documents : array of shape (n, K, d) or (n, K, L_d, d)
        Sums of the tokens of each candidate, or the tokens.
    weights : array of shape (n, K)
        Labels y, for example of
        :func:`~solvable.models.late_interaction.teacher.label_weights`.

    Returns
    -------
    ndarray of shape (d, d)
        Symmetric matrix. Matrices of several blocks of queries average to that of all.

    Raises
    ------
    InvalidData
        If the shapes do not fit, or a number is not finite.

    Notes
    -----
    Time O(n K L_d d + n d²). Source: derivations/late-interaction (14). Backed by
    ``tests/models/late_interaction/test_estimator.py``.

    Examples
    --------
    >>> moment_matrix(np.ones((1, 2)), np.eye(2)[None], np.array([[1.0, -1.0]]))
    array([[ 1.,  0.],
           [ 0., -1.]])
    """
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
    """Estimate the kernel: the part of a symmetric matrix with eigenvalues above an edge.

    Parameters
    ----------
    matrix : array of shape (d, d)
        Moment matrix.
    edge : float
        Upper edge of the noise, for example of permuted labels; 0 keeps the positive part.

    Returns
    -------
    ndarray of shape (d, d)
        Positive semidefinite matrix.

    Raises
    ------
    InvalidData
        If the matrix is not square.

    Notes
    -----
    Time O(d³). Source: derivations/late-interaction (14). Backed by
    ``tests/models/late_interaction/test_estimator.py``.

    Examples
    --------
    >>> spectral_kernel(np.diag([3.0, 1.0, -2.0]), edge=2.0).diagonal()
    array([3., 0., 0.])
    """
    M = np.asarray(matrix, dtype=np.float64)
    if M.ndim != 2 or M.shape[0] != M.shape[1]:
        raise InvalidData(f"the matrix has shape {M.shape}; allowed: (d, d).")
    values, vectors = np.linalg.eigh((M + M.T) / 2)
    kept = np.where(values > max(edge, 0.0), values, 0.0)
    return np.asarray((vectors * kept) @ vectors.T)
