r"""Population operator of degree-2 features without spikes, with coefficients fitted to draws.

With :math:`X=xx^\top-I` and :math:`B=E[TX]` the operator is :math:`BU+UB` plus a part of degree four,
which for :math:`T=y` is :math:`\sum_i a_iM_iUM_i`. Bounded labels add the next order of
:math:`E[T(\Sigma U\Sigma-U)]+\frac12E[T\langle\Sigma-I,U\rangle(\Sigma-I)]`, with :math:`\Sigma` the
covariance of x given the latent features (sequential 22): the terms :math:`BUB` and
:math:`\langle M_i^2,U\rangle M_i^2`. The couplings of a spike to the complement have separate
coefficients, half as large.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from solvable.arrays import random_stream
from solvable.moment_spectrum.orthogonal_form import orthonormal_directions
from solvable.moment_spectrum.target_protocol import MomentTarget
from solvable.operators import apply_label_map
from solvable.operators.labels import LabelMap

LARGEST_DRAWN = 44
"""Largest dimension in which operators are drawn; above it a formula is used (error 0.03 in 12 tests)."""

MOST_FITTED = 64
"""Largest number of features for which operators are drawn; the fit has p² products."""


@dataclass(frozen=True)
class PopulationRates:
    """Coefficients of the population operator as smooth functions of a feature's strength."""

    # The functions hardly depend on the dimension and apply to first layers of other strengths.
    unit: float  # unit in which strengths are measured
    inner: np.ndarray  # coefficients of Z U Z, Z in `sandwich_matrices`, and of <M_i², U> M_i²
    squares: np.ndarray  # coefficients in B of M_i², {M_i², G} / 2 and I
    linked: np.ndarray  # coefficients in spike i's couplings of M_j M_i M_j and {M_i, M_j²}

    def pairs(self, strengths: np.ndarray) -> np.ndarray:
        """Coefficients of Z U Z for the matrices of `sandwich_matrices`, shape (2p + 2,)."""
        known = _inner_profiles(strengths / self.unit)
        return np.asarray((known @ self.inner)[: 2 * strengths.size + 2])

    def own(self, strengths: np.ndarray) -> np.ndarray:
        """Coefficients of <M_i², U> M_i², shape (p,)."""
        known = _inner_profiles(strengths / self.unit)
        return np.asarray((known @ self.inner)[2 * strengths.size + 2 :])

    def contracted(self, strengths: np.ndarray) -> np.ndarray:
        """Coefficients of `square_matrices` in B, (2p + 1,)."""
        return np.asarray(_square_profiles(strengths / self.unit) @ self.squares)

    def links(self, strengths: np.ndarray) -> np.ndarray:
        """Coefficients of the matrices of `link_matrices`, shape (p, 2p)."""
        return np.asarray(_link_profiles(strengths / self.unit) @ self.linked)


def _powers(strengths: np.ndarray) -> np.ndarray:
    """Values of the basis functions at the strengths, (p, 4)."""
    # Unmapped labels need the first function alone. If all strengths have one sign, the second and the
    # last function coincide.
    size = np.abs(strengths)
    return np.stack([strengths, strengths * size, strengths**3, strengths**2], axis=-1)


def _blocks(*parts: np.ndarray) -> np.ndarray:
    """Block-diagonal matrix made of the given blocks."""
    rows, columns = np.sum([part.shape for part in parts], axis=0)
    found, row, column = np.zeros((rows, columns)), 0, 0
    for part in parts:
        found[row : row + len(part), column : column + part.shape[1]] = part
        row, column = row + len(part), column + part.shape[1]
    return found


def _inner_profiles(strengths: np.ndarray) -> np.ndarray:
    known = _powers(strengths)
    return _blocks(known, known, np.eye(2), known)


def _square_profiles(strengths: np.ndarray) -> np.ndarray:
    known = _powers(strengths)
    return _blocks(known, known, np.eye(1))


def _link_profiles(strengths: np.ndarray) -> np.ndarray:
    """Values of the basis functions for pairs of strengths, equal ones included, (p, 2p, k)."""
    known, p = _powers(strengths), strengths.size
    mixed = np.einsum("jk,il->ijkl", known, np.stack([np.ones(p), strengths, np.abs(strengths)], 1))
    alone = np.eye(p)[:, :, None] * known
    half = np.concatenate([mixed.reshape(p, p, -1), alone], axis=2)
    return np.stack([_blocks(row, row) for row in half])


class Symmetric:
    """Coordinates of symmetric matrices in the basis (E_ab + E_ba) / sqrt(2), E_aa."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.rows, self.columns = np.triu_indices(size)
        self.norm = np.where(self.rows == self.columns, 1, np.sqrt(2))

    def vectors(self, matrices: np.ndarray) -> np.ndarray:
        """Coordinates of the symmetric part of matrices, (..., D)."""
        return np.asarray(symmetric(matrices)[..., self.rows, self.columns] * self.norm)

    def squares(self, x: np.ndarray) -> np.ndarray:
        """Coordinates of x x^T - 1 for each row of x, (n, D), with the dtype of x."""
        found = x[:, self.rows] * x[:, self.columns]
        found *= self.norm.astype(x.dtype)
        found[:, self.rows == self.columns] -= 1
        return np.asarray(found)

    def matrices(self, vectors: np.ndarray) -> np.ndarray:
        """Symmetric matrices with given coordinates (..., D)."""
        found = np.zeros((*vectors.shape[:-1], self.size, self.size))
        found[..., self.rows, self.columns] = vectors / self.norm
        found[..., self.columns, self.rows] = found[..., self.rows, self.columns]
        return found

    def operator(self, pairs: np.ndarray) -> np.ndarray:
        """Matrix (D, D) of U -> sum_k X_k U Y_k, from sum_k X_k (x) Y_k of shape (d, d, d, d)."""
        a, b = self.rows[:, None], self.columns[:, None]
        matrix = pairs[a, self.rows, b, self.columns] + pairs[a, self.columns, b, self.rows]
        matrix *= self.norm[:, None] * self.norm / 2
        return np.asarray(matrix)

    def symmetrised(self, operator: np.ndarray) -> np.ndarray:
        """Component of a symmetric operator that is symmetric in all four indices."""
        d = self.size
        where = np.empty((d, d), dtype=int)
        where[self.rows, self.columns] = where[self.columns, self.rows] = np.arange(self.norm.size)
        # The component is (W_abcd + W_acbd + W_adbc) / 3; coordinates are W_kl = norm_k norm_l W_abcd.
        entries = operator / (self.norm[:, None] * self.norm)
        a, b = self.rows[:, None], self.columns[:, None]
        entries = (
            entries
            + entries[where[a, self.rows], where[b, self.columns]]
            + entries[where[a, self.columns], where[b, self.rows]]
        )
        return np.asarray(entries * (self.norm[:, None] * self.norm) / 3)


def symmetric(matrices: np.ndarray) -> np.ndarray:
    """Symmetric parts of matrices."""
    return np.asarray((matrices + np.swapaxes(matrices, -1, -2)) / 2)


def link_matrices(M: np.ndarray) -> np.ndarray:
    """Matrices coupled to spike i: all M_j M_i M_j, then all M_i M_j² + M_j² M_i, (p, 2p, d, d)."""
    crossed = M @ M[:, None] @ M
    moved = 2 * symmetric(M[:, None] @ (M @ M))
    return np.concatenate([crossed, moved], axis=1)


def sandwich_matrices(M: np.ndarray, B: np.ndarray, scale: float = 1.0) -> np.ndarray:
    """Matrices Z of the terms Z U Z: M_i, M_i + {M_i, G}, B and B + G; shape (2p + 2, d, d)."""
    # G = sum_k M_k². By polarisation the terms give (M_i G) U M_i and G U B, which model the saturation
    # of large eigenvalues.
    G = scale * np.sum(M @ M, axis=0)
    return np.concatenate([M, M + 2 * symmetric(M @ G), B[None], (B + G)[None]])


def square_matrices(M: np.ndarray, scale: float = 1.0) -> np.ndarray:
    """Matrices in B: M_i², the saturation terms (M_i² G + G M_i²) / 2, and I; (2p + 1, d, d)."""
    V = M @ M
    G = scale * np.sum(V, axis=0)
    return np.concatenate([V, symmetric(V @ G), np.eye(M.shape[-1])[None]])


def can_fit(target: MomentTarget) -> bool:
    """Return True if features and inputs are few enough to draw operators."""
    return target.features <= MOST_FITTED and target.dimension <= LARGEST_DRAWN


def fit_population(
    targets: Sequence[MomentTarget], label_map: LabelMap, draws: int | None = None
) -> PopulationRates:
    """Fit coefficients by least squares to draws of given targets; the cost is O(draws p d²)."""
    p, d = targets[0].features, targets[0].dimension
    space = Symmetric(d)
    if draws is None:  # keeps the time below a second
        draws = int(np.clip(4e8 / (p * d**2), 20_000, 60_000))
    unit = float(np.abs(targets[0].weights).max())
    inner, linked, squares = (_Normal() for _ in range(3))
    for target in targets:
        moments = _moments(target, label_map, draws // len(targets))
        M, B, strengths = moments.matrices, moments.contraction, moments.strengths / unit
        known = space.vectors(square_matrices(M))
        squares.add(known, space.vectors(B), _square_profiles(strengths))
        basis = space.vectors(M).T
        known = space.vectors(link_matrices(M))
        known -= known @ basis @ basis.T
        # C' = C - {B, .} couples spike i to E[T h_i X] / sqrt(2) - {B, M_i}.
        images = space.vectors(moments.images) - space.vectors(2 * symmetric(B @ M))
        for i, profiles in enumerate(_link_profiles(strengths)):
            linked.add(known[i], images[i] - basis @ (basis.T @ images[i]), profiles)
        gram, image = _inner_equations(moments, basis, images.T, space)
        inner.sum(gram, image, _inner_profiles(strengths))
    return PopulationRates(unit, inner.solution, squares.solution, linked.solution)


class _Normal:
    """Normal equations of a least-squares fit whose coefficients are combinations of few profiles."""

    def __init__(self) -> None:
        self.gram: np.ndarray | float = 0.0
        self.image: np.ndarray | float = 0.0

    def add(self, columns: np.ndarray, response: np.ndarray, profiles: np.ndarray) -> None:
        """Add a response and the columns that fit it, with one coefficient per column."""
        self.sum(columns @ columns.T, columns @ response, profiles)

    def sum(self, gram: np.ndarray, image: np.ndarray, profiles: np.ndarray) -> None:
        """Add given normal equations of the coefficients to the sum."""
        self.gram = self.gram + profiles.T @ gram @ profiles
        self.image = self.image + profiles.T @ image

    @property
    def solution(self) -> np.ndarray:
        # The least-norm solution splits coefficients of columns that coincide, such as M_i³.
        gram = np.asarray(self.gram)
        size = np.sqrt(np.maximum(np.diag(gram), 1e-12 * np.diag(gram).max()))
        found = np.linalg.lstsq(gram / size / size[:, None], self.image / size, rcond=1e-5)[0]
        return np.asarray(found / size)


@dataclass(frozen=True)
class _Moments:
    """Moments of one target, averaged over draws of x."""

    strengths: np.ndarray  # index of the target in orthonormal directions
    matrices: np.ndarray  # matrices M_i of Frobenius norm 1
    contraction: np.ndarray  # contraction matrix B = E[T X]
    images: np.ndarray  # couplings E[T h_i X] / sqrt(2)
    sandwiches: np.ndarray  # moments E[T <X, Z X Z>] / 2
    squares: np.ndarray  # moments E[T <M_i², X>²] / 2


def _moments(target: MomentTarget, label_map: LabelMap, draws: int) -> _Moments:
    rng = random_stream("sequential-recovery", "population", target.seed)
    form, directions = orthonormal_directions(target)
    M = target.feature_map.to_symmetric(directions)
    x = rng.standard_normal((draws, target.dimension))
    forms, lengths = quadratic_forms(x, M)
    h = (forms - np.trace(M, axis1=1, axis2=2)) / np.sqrt(2)
    T = apply_label_map(np.asarray(target.observed_label(form.index(h), rng)), label_map)
    B = (x * T[:, None]).T @ x / draws
    images = np.array([(x * (T * column)[:, None]).T @ x for column in h.T]) / draws
    images -= (T @ h / draws)[:, None, None] * np.eye(target.dimension)
    squares = T @ (lengths - 1) ** 2 / (2 * draws)
    forms, lengths = quadratic_forms(x, sandwich_matrices(M, B))
    # <X, Z X Z> = (x^T Z x)² - 2 |Z x|² + tr Z²; T has mean zero
    sandwiches = T @ (forms**2 - 2 * lengths) / (2 * draws)
    return _Moments(form.strengths, M, B, images / np.sqrt(2), sandwiches, squares)


def quadratic_forms(x: np.ndarray, Z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Forms x^T Z x and squared lengths of Z x, shape (n, k)."""
    forms, lengths = np.empty((2, len(x), len(Z)))
    for k, matrix in enumerate(Z):
        moved = x @ matrix
        forms[:, k] = np.einsum("nd,nd->n", x, moved)
        lengths[:, k] = np.einsum("nd,nd->n", moved, moved)
    return forms, lengths


def _inner_equations(
    moments: _Moments, Q: np.ndarray, images: np.ndarray, space: Symmetric
) -> tuple[np.ndarray, np.ndarray]:
    """Inner products <O_k, O_l> and <O_k, C'> on the complement of the spikes in Q."""
    M, B = moments.matrices, moments.contraction
    Z, V = sandwich_matrices(M, B), M @ M
    flat, v = Z.reshape(len(Z), -1), space.vectors(V)
    # <O_Z, O_Y> = [(tr Z Y)² + tr Z Y Z Y] / 2, and <V, Z V Z>, <V, W>²
    crossed = np.array([np.einsum("kab,kba->k", a @ Z, a @ Z) for a in Z])
    turned = space.vectors(Z[:, None] @ V @ Z[:, None])
    inside = np.einsum("kiD,iD->ki", turned, v)
    gram = np.block([[((flat @ flat.T) ** 2 + crossed) / 2, inside], [inside.T, (v @ v.T) ** 2]])
    # <O, {B, .}> = tr(Z B) tr Z + tr Z² B, and 2 <V, B V>
    traces = np.trace(Z, axis1=1, axis2=2)
    plain = (flat @ B.ravel()) * traces + np.einsum("kab,kbc,ca->k", Z, Z, B, optimize=True)
    joined = 2 * np.einsum("iab,bc,ica->i", V, B, V, optimize=True)
    image = np.concatenate([moments.sandwiches - plain, moments.squares - joined])
    # Products on the whole space minus products on the span of the spikes
    matrices = space.matrices(Q.T)
    moved = space.vectors(Z[:, None] @ matrices @ Z[:, None]).transpose(0, 2, 1)
    moved = np.concatenate([moved, v[:, :, None] * (v @ Q)[:, None]])
    rows, block = moved.reshape(len(moved), -1), (Q.T @ moved).reshape(len(moved), -1)
    gram += block @ block.T - 2 * rows @ rows.T
    image += block @ (Q.T @ images).ravel() - 2 * rows @ images.ravel()
    return gram, image
