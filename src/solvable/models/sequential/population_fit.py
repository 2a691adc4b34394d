r"""The population operator of degree-2 features beside its spikes, as a few numbers fitted to draws.

With :math:`X=xx^\top-I` and :math:`B=E[TX]` it is :math:`BU+UB` and a part of degree four, which for
:math:`T=y` is :math:`\sum_i a_iM_iUM_i`. Bounded labels add the next order of
:math:`E[T(\Sigma U\Sigma-U)]+\frac12E[T\langle\Sigma-I,U\rangle(\Sigma-I)]`, :math:`\Sigma` the
covariance of x given the latent features: :math:`BUB` and :math:`\langle M_i^2,U\rangle M_i^2`.
What joins a spike to the rest has coefficients of its own, half as large.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from solvable.arrays import random_stream
from solvable.models.sequential.target import HierarchicalTarget
from solvable.operators import LabelMap, apply_label_map

LARGEST_DRAWN = 60
"""Dimension up to which operators are drawn in place of a law."""

LARGEST_FITTED = 48
"""Dimension at which the coefficients are fitted for larger ones: they differ by O(1/d)."""

MOST_FITTED = 24
"""Features up to which every coefficient is fitted."""


@dataclass(frozen=True)
class PopulationRates:
    """Coefficients of the population operator, which hardly depend on the dimension."""

    pairs: np.ndarray  # of Z U Z for the matrices of `sandwich_matrices`, shape (2p + 2,)
    squares: np.ndarray  # of M_i^2 in B, and of I; shape (p + 1,)
    spread: np.ndarray  # the same in E[T^2 X] / E[T^2]
    own: np.ndarray  # of <M_i^2, U> M_i^2, shape (p,)
    links: np.ndarray  # of M_j M_i M_j, then of {M_i, M_j^2}, in what joins spike i, shape (p, 2p)


class Symmetric:
    """Symmetric matrices of one size as vectors, in the basis (E_ab + E_ba) / sqrt(2), E_aa."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.rows, self.columns = np.triu_indices(size)
        self.norm = np.where(self.rows == self.columns, 1, np.sqrt(2))

    def vectors(self, matrices: np.ndarray) -> np.ndarray:
        """Coordinates of the symmetric part of matrices, (..., D)."""
        return np.asarray(symmetric(matrices)[..., self.rows, self.columns] * self.norm)

    def matrices(self, vectors: np.ndarray) -> np.ndarray:
        """Matrices of coordinates (..., D)."""
        found = np.zeros((*vectors.shape[:-1], self.size, self.size))
        found[..., self.rows, self.columns] = vectors / self.norm
        found[..., self.columns, self.rows] = found[..., self.rows, self.columns]
        return found

    def operator(self, pairs: np.ndarray) -> np.ndarray:
        """Dense U -> sum_k X_k U Y_k on symmetric matrices, from sum_k X_k (x) Y_k, (d, d, d, d)."""
        a, b = self.rows[:, None], self.columns[:, None]
        matrix = pairs[a, self.rows, b, self.columns] + pairs[a, self.columns, b, self.rows]
        matrix *= self.norm[:, None] * self.norm / 2
        return np.asarray(matrix)


def symmetric(matrices: np.ndarray) -> np.ndarray:
    """Symmetric parts."""
    return np.asarray((matrices + np.swapaxes(matrices, -1, -2)) / 2)


def link_matrices(M: np.ndarray) -> np.ndarray:
    """What spikes are joined to: M_j M_i M_j, then M_i M_j^2 + M_j^2 M_i, (p, 2p, d, d)."""
    crossed = M @ M[:, None] @ M
    moved = 2 * symmetric(M[:, None] @ (M @ M))
    return np.concatenate([crossed, moved], axis=1)


def sandwich_matrices(M: np.ndarray, B: np.ndarray, scale: float = 1.0) -> np.ndarray:
    """Z in Z U Z: M_i, then M_i moved by G = sum_k M_k^2, B, and B moved; shape (2p + 2, d, d)."""
    # (M_i G) U M_i and G U B, by which large eigenvalues saturate, by polarisation
    G = scale * np.sum(M @ M, axis=0)
    return np.concatenate([M, M + 2 * symmetric(M @ G), B[None], (B + G)[None]])


def can_fit(target: HierarchicalTarget) -> bool:
    """Whether there are few enough features, and orthonormal, to have coefficients of their own."""
    few = target.features <= MOST_FITTED and 4 * target.features <= target.n_features_total
    # Larger operators are drawn at a smaller dimension, whose chance is not theirs: near threshold the
    # last of eleven features at d = 120 had .10 for .01 measured, and the law of many directions .01.
    return few and target.first_layer == "orthonormal" and target.dimension <= LARGEST_DRAWN


def fit_population(
    targets: Sequence[HierarchicalTarget], label_map: LabelMap, draws: int | None = None
) -> PopulationRates:
    """Coefficients by least squares on draws of some targets; O(draws p d^2)."""
    p, d = targets[0].features, min(targets[0].dimension, LARGEST_FITTED)
    space = Symmetric(d)
    if draws is None:  # a second at most
        draws = int(np.clip(4e8 / (p * d**2), 20_000, 60_000))
    inner, links = _Normal(3 * p + 2), [_Normal(2 * p) for _ in range(p)]
    squares, spread = _Normal(p + 1), _Normal(p + 1)
    for target in targets:
        moments = _moments(replace(target, dimension=d), label_map, draws // len(targets))
        M, B = moments.matrices, moments.contraction
        known = space.vectors(np.concatenate([M @ M, np.eye(d)[None]]))
        squares.add(known, space.vectors(B))
        spread.add(known, space.vectors(moments.spread))
        basis = space.vectors(M).T
        known = space.vectors(link_matrices(M))
        known -= known @ basis @ basis.T
        # C' = C - {B, .} joins spike i to E[T h_i X] / sqrt(2) - {B, M_i}
        images = space.vectors(moments.images) - space.vectors(2 * symmetric(B @ M))
        for i, normal in enumerate(links):
            normal.add(known[i], images[i] - basis @ (basis.T @ images[i]))
        _add_inner(inner, moments, basis, images.T, space)
    found = inner.solution
    return PopulationRates(
        pairs=found[: 2 * p + 2],
        squares=squares.solution,
        spread=spread.solution,
        own=found[2 * p + 2 :],
        links=np.array([normal.solution for normal in links]),
    )


class _Normal:
    """Normal equations of a least-squares fit, summed up."""

    def __init__(self, size: int) -> None:
        self.gram, self.image = np.zeros((size, size)), np.zeros(size)

    def add(self, columns: np.ndarray, response: np.ndarray) -> None:
        self.gram += columns @ columns.T
        self.image += columns @ response

    @property
    def solution(self) -> np.ndarray:
        # Of directions that coincide, as M_i^3 does, each gets a half.
        return np.asarray(np.linalg.lstsq(self.gram, self.image, rcond=1e-8)[0])


@dataclass(frozen=True)
class _Moments:
    """Moments of one target over draws of x."""

    matrices: np.ndarray  # M_i, |M_i|_F = 1
    contraction: np.ndarray  # B = E[T X]
    spread: np.ndarray  # E[T^2 X] / E[T^2]
    images: np.ndarray  # E[T h_i X] / sqrt(2)
    sandwiches: np.ndarray  # E[T <X, Z X Z>] / 2
    squares: np.ndarray  # E[T <M_i^2, X>^2] / 2


def _moments(target: HierarchicalTarget, label_map: LabelMap, draws: int) -> _Moments:
    rng = random_stream("sequential-recovery", "population", target.seed)
    M = target.symmetric_matrices()
    x = rng.standard_normal((draws, target.dimension))
    forms, lengths = quadratic_forms(x, M)
    h = (forms - np.trace(M, axis1=1, axis2=2)) / np.sqrt(2)
    index = (h**2 - 1) @ target.weights / np.sqrt(2)
    T = apply_label_map(np.asarray(target.label(index)), label_map)
    B = (x * T[:, None]).T @ x / draws
    spread = (x * (T**2)[:, None]).T @ x / (T @ T) - np.eye(target.dimension)
    images = np.array([(x * (T * column)[:, None]).T @ x for column in h.T]) / draws
    images -= (T @ h / draws)[:, None, None] * np.eye(target.dimension)
    squares = T @ (lengths - 1) ** 2 / (2 * draws)
    forms, lengths = quadratic_forms(x, sandwich_matrices(M, B))
    # <X, Z X Z> = (x^T Z x)^2 - 2 |Z x|^2 + tr Z^2, and T has mean zero
    sandwiches = T @ (forms**2 - 2 * lengths) / (2 * draws)
    return _Moments(M, B, spread, images / np.sqrt(2), sandwiches, squares)


def quadratic_forms(x: np.ndarray, Z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """x^T Z x and |Z x|^2, shape (n, k)."""
    forms, lengths = np.empty((2, len(x), len(Z)))
    for k, matrix in enumerate(Z):
        moved = x @ matrix
        forms[:, k] = np.einsum("nd,nd->n", x, moved)
        lengths[:, k] = np.einsum("nd,nd->n", moved, moved)
    return forms, lengths


def _add_inner(
    normal: _Normal, moments: _Moments, Q: np.ndarray, images: np.ndarray, space: Symmetric
) -> None:
    """Add <O_k, C'> = sum_l x_l <O_k, O_l> on the complement of the spikes, spanned by Q."""
    M, B = moments.matrices, moments.contraction
    Z, V = sandwich_matrices(M, B), M @ M
    flat, v = Z.reshape(len(Z), -1), space.vectors(V)
    # <O_Z, O_Y> = [(tr Z Y)^2 + tr Z Y Z Y] / 2, and <V, Z V Z>, <V, W>^2
    crossed = np.array([[np.sum((a @ b) * (b @ a)) for b in Z] for a in Z])
    turned = space.vectors(Z[:, None] @ V @ Z[:, None])
    inside = np.einsum("kiD,iD->ki", turned, v)
    gram = np.block([[((flat @ flat.T) ** 2 + crossed) / 2, inside], [inside.T, (v @ v.T) ** 2]])
    # <O, {B, .}> = tr(Z B) tr Z + tr Z^2 B, and 2 <V, B V>
    traces = np.trace(Z, axis1=1, axis2=2)
    plain = (flat @ B.ravel()) * traces + np.einsum("kab,kbc,ca->k", Z, Z, B, optimize=True)
    joined = 2 * np.einsum("iab,bc,ica->i", V, B, V, optimize=True)
    image = np.concatenate([moments.sandwiches - plain, moments.squares - joined])
    # Of the whole space, less what the spikes hold of it
    matrices = space.matrices(Q.T)
    moved = space.vectors(Z[:, None] @ matrices @ Z[:, None]).transpose(0, 2, 1)
    moved = np.concatenate([moved, v[:, :, None] * (v @ Q)[:, None]])
    rows, block = moved.reshape(len(moved), -1), (Q.T @ moved).reshape(len(moved), -1)
    normal.gram += gram - 2 * rows @ rows.T + block @ block.T
    image += block @ (Q.T @ images).ravel() - 2 * rows @ images.ravel()
    normal.image += image
