"""Quadratic layers above the first one: drawing them, and applying them."""

from __future__ import annotations

from math import comb

import numpy as np

from solvable.arrays import random_stream
from solvable.operators.features import HermiteFeatures
from solvable.teachers.first_layer import draw_directions, freeze


def quadratic_forms(H: np.ndarray, matrices: np.ndarray) -> np.ndarray:
    r"""Centred quadratic forms :math:`h^\top M_jh-\mathrm{tr}M_j` of every row.

    Parameters
    ----------
    H : ndarray of shape (n, p)
        Rows h.
    matrices : ndarray of shape (k, p, p)
        Symmetric matrices.

    Returns
    -------
    ndarray of shape (n, k)
        The forms; O(n p) memory beside the result.

    Examples
    --------
    >>> quadratic_forms(np.array([[1.0, 2.0]]), np.eye(2)[None])
    array([[3.]])
    """
    forms = [np.sum((H @ matrix) * H, axis=1) - np.trace(matrix) for matrix in matrices]
    return np.stack(forms, axis=1)


def draw_quadratic_layer(width: int, following: int, *key: int | str) -> np.ndarray:
    r"""Draw Frobenius-orthonormal symmetric matrices, uniform over such sets.

    Parameters
    ----------
    width : int
        Size of the matrices.
    following : int
        Number of matrices, at most width (width + 1) / 2.
    *key : int or str
        Key of the random stream.

    Returns
    -------
    ndarray of shape (following, width, width)
        Read-only.

    Examples
    --------
    >>> layer = draw_quadratic_layer(4, 2, 0)
    >>> bool(np.allclose(np.einsum("iab,jab->ij", layer, layer), np.eye(2)))
    True
    """
    flat = draw_directions(comb(width + 1, 2), following, "orthonormal", *key)
    return freeze(np.asarray(HermiteFeatures(2, width).to_symmetric(flat)))


def draw_dense_layer(width: int, beta: float, *key: int | str) -> np.ndarray:
    r"""Draw :math:`B\propto(G+G^\top)/2` with :math:`\|B\|_F=\beta/\sqrt p`, shape (p, p).

    Examples
    --------
    >>> float(np.linalg.norm(draw_dense_layer(4, 3.0, 0)).round(12))
    1.5
    """
    gaussian = random_stream(*key).standard_normal((width, width))
    symmetric = (gaussian + gaussian.T) / 2
    return freeze(symmetric * (beta / np.sqrt(width) / np.linalg.norm(symmetric)))


def draw_diagonal_layer(width: int, beta: float, decay: float, *key: int | str) -> np.ndarray:
    r"""Draw :math:`B=\mathrm{diag}(b)`, :math:`b_i=z_ii^{-\gamma}` times the scale of the authors.

    The scale is :math:`\beta/p` for :math:`\gamma=0`, :math:`p^{2\gamma-1}` for
    :math:`0<\gamma\le\frac12` (whatever :math:`\beta`), and :math:`\beta` above.

    Examples
    --------
    >>> abs(draw_diagonal_layer(2, 3.0, 1.0, 0)).diagonal()
    array([3. , 1.5])
    """
    if decay == 0:
        scale = beta / width
    elif decay <= 0.5:
        scale = width ** (2 * decay - 1.0)
    else:
        scale = beta
    signs = random_stream(*key).choice([-1.0, 1.0], width)
    return freeze(np.diag(scale * signs * np.arange(1, width + 1) ** -float(decay)))
