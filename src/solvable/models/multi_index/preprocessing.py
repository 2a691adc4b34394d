r"""Spectral estimators that know the channel: optimal scalar and matrix preprocessing, and LAMP.

Samples are :math:`\mathcal N(0, I_d)`, and :math:`G(y)=E[zz^\top-I\mid y]`; no matrix of n x n or
dp x dp is formed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from solvable.arrays import Array, Source, as_on, as_source, check_integer, to_numpy
from solvable.errors import InvalidData, InvalidParameter
from solvable.models.multi_index.overlaps import optimal_map
from solvable.models.multi_index.spectral import InputMoment, end_pairs
from solvable.operators import leading_eigenpairs
from solvable.operators.feature_map import floating

ROWS = 2048
"""Rows multiplied at a time."""


@dataclass(frozen=True)
class ChannelDirections:
    """Span of the leading eigenvectors of a matrix-valued problem."""

    directions: np.ndarray  # orthonormal, (d, k)
    eigenvalues: np.ndarray  # of the eigenvectors behind the span, descending, (m,)
    vectors: np.ndarray  # these eigenvectors, (m, d, p)
    basis: np.ndarray | None  # common eigenbasis of all G(y), (p, p), where there is one


def optimal_weights(second: np.ndarray) -> np.ndarray:
    """Weights T* = G / (1 + G), cut from below; (n,) for one direction or (n, p, p)."""
    # They are not centred: eq. 3.4 and the eigenvalue at 1 hold for T* as it is, and a mean of weights
    # that reach -1e4 would put a Marchenko-Pastur law of its size in their place.
    G = np.asarray(second, dtype=np.float64)
    if G.ndim == 1:
        return optimal_map(G)
    values, Q = np.linalg.eigh(G)
    return np.asarray(
        (Q * optimal_weights(values.ravel()).reshape(values.shape)[:, None, :]) @ _t(Q)
    )


def _t(Q: np.ndarray) -> np.ndarray:
    return np.swapaxes(Q, -1, -2)


def common_eigenbasis(second: np.ndarray) -> np.ndarray | None:
    """Orthonormal basis (p, p) in which all G (n, p, p) are diagonal, or None."""
    # A generic combination of matrices that commute has their eigenbasis.
    p = second.shape[-1]
    mixing = np.cos(np.arange(1, len(second) + 1) * np.sqrt(2.0))
    _, Q = np.linalg.eigh(np.einsum("i,iab->ab", mixing, second))
    off = (Q.T @ second @ Q) * (1 - np.eye(p))
    return Q if np.abs(off).max() <= 1e-8 * max(1.0, float(np.abs(second).max())) else None


def scalar_directions(
    samples: Array | Source, weights: np.ndarray, n_directions: int, *, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Leading eigenvalues and vectors of (1/d) sum T x x^T: the factor is that of eq. 3.4."""
    source = as_source(samples)
    _check(source, weights, n_directions)
    operator = InputMoment(source, weights)
    pairs = end_pairs(operator, n_directions, 0, rng)
    # The best map of a label without noise reaches -1e4: Krylov spaces resolve that end, and not the
    # upper one, whose eigenvalues are of order one.
    if (pairs.residuals > 1e-3 * np.abs(pairs.values)).any():
        pairs = leading_eigenpairs(operator, n_directions, 0, route="dense", rng=rng)
    return pairs.values * source.n_samples / source.n_columns, pairs.vectors


def matrix_directions(
    samples: Array | Source,
    second: np.ndarray,
    n_directions: int,
    *,
    rng: np.random.Generator,
    commuting: bool | None = None,
) -> ChannelDirections:
    """Span of the leading eigenvectors of (1/d) sum x x^T (x) T*(y), from G(y) (n, p, p)."""
    source = as_source(samples)
    _check(source, second, n_directions)
    basis = common_eigenbasis(second) if commuting is not False else None
    if basis is not None:
        # p problems of size d: block j has the weights of the eigenvalue G_jj.
        diagonal = np.einsum("aj,iab,bj->ij", basis, second, basis)
        blocks = [
            scalar_directions(source, optimal_weights(column), n_directions, rng=rng)
            for column in diagonal.T
        ]
        values = np.concatenate([block[0] for block in blocks])
        vectors = np.concatenate(
            [block[1].T[:, :, None] * basis[:, j] for j, block in enumerate(blocks)]
        )
    else:
        apply = _MatrixMoment(source, optimal_weights(second))
        values, flat = _largest(apply, source.n_columns * second.shape[-1], n_directions, rng)
        vectors = flat.T.reshape(n_directions, source.n_columns, -1)
    order = np.argsort(-values)[:n_directions]
    return ChannelDirections(
        _column_space(vectors[order], n_directions), values[order], vectors[order], basis
    )


class _MatrixMoment:
    """V -> (1/d) sum_i x_i (x_i^T V) T(y_i) on (d, p) blocks."""

    def __init__(self, source: Source, weights: np.ndarray) -> None:
        self.source, self.weights = source, weights

    def __call__(self, flat: np.ndarray) -> np.ndarray:
        d, p = self.source.n_columns, self.weights.shape[-1]
        V = flat.reshape(d, p)
        total = np.zeros((d, p))
        for part, block in self.source.chunks(ROWS):
            X = floating(block)
            H = to_numpy(X @ as_on(V, X))
            turned = np.einsum("ib,iab->ia", H, self.weights[part])
            total += to_numpy(X.T @ as_on(turned, X))
        return total.ravel() / d


def lamp_directions(
    samples: Array | Source, second: np.ndarray, n_directions: int, *, rng: np.random.Generator
) -> ChannelDirections:
    r"""Linearised message passing: leading eigenvectors of :math:`(XX^\top/d-I)\,G(y)`."""
    lamp = _Lamp(as_source(samples), second, n_directions)
    values, flat = _largest(lamp, lamp.size, n_directions, rng, symmetric=False)
    # W = X^T G omega.
    vectors = np.stack([lamp.moment(lamp.weighted(column)) for column in flat.T])
    return ChannelDirections(_column_space(vectors, n_directions), values, vectors, None)


def lamp_moduli(
    samples: Array | Source, second: np.ndarray, count: int, *, rng: np.random.Generator
) -> np.ndarray:
    """Largest moduli of eigenvalues of linearised message passing, descending, to a thousandth."""
    from scipy.sparse.linalg import LinearOperator, eigs

    lamp = _Lamp(as_source(samples), second, count)
    operator = LinearOperator(
        (lamp.size, lamp.size), matvec=lambda v: lamp(v.ravel()), dtype=np.float64
    )
    values = eigs(
        operator, count, which="LM", v0=rng.standard_normal(lamp.size), tol=1e-3,
        return_eigenvectors=False,
    )  # fmt: skip
    return np.sort(np.abs(values))[::-1]


class _Lamp:
    """Product omega -> (X X^T / d - I) G omega on (n p) vectors."""

    def __init__(self, source: Source, second: np.ndarray, count: int) -> None:
        G = np.asarray(second, dtype=np.float64)
        self.G = G[:, None, None] if G.ndim == 1 else G
        _check(source, self.G, count)
        self.source = source
        self.shape = source.n_samples, self.G.shape[-1]
        self.size = self.shape[0] * self.shape[1]

    def weighted(self, omega: np.ndarray) -> np.ndarray:
        """G omega, (n, p)."""
        return np.asarray(np.einsum("iab,ib->ia", self.G, omega.reshape(self.shape)))

    def moment(self, u: np.ndarray) -> np.ndarray:
        """X^T u, (d, p)."""
        total = np.zeros((self.source.n_columns, self.shape[1]))
        for part, block in self.source.chunks(ROWS):
            X = floating(block)
            total += to_numpy(X.T @ as_on(u[part], X))
        return total

    def __call__(self, omega: np.ndarray) -> np.ndarray:
        # L omega = X (X^T u) / d - u with u = G omega.
        u = self.weighted(omega)
        message = self.moment(u) / self.source.n_columns
        out = np.empty(self.shape)
        for part, block in self.source.chunks(ROWS):
            X = floating(block)
            out[part] = to_numpy(X @ as_on(message, X))
        return (out - u).ravel()


def _largest(
    apply: Callable[[np.ndarray], np.ndarray],
    size: int,
    count: int,
    rng: np.random.Generator,
    *,
    symmetric: bool = True,
) -> tuple[np.ndarray, np.ndarray]:
    """Eigenpairs of largest (real part of the) eigenvalue, descending."""
    from scipy.sparse.linalg import LinearOperator, eigs, eigsh

    operator = LinearOperator((size, size), matvec=lambda v: apply(v.ravel()), dtype=np.float64)
    start = rng.standard_normal(size)
    if symmetric:
        values, vectors = eigsh(operator, count, which="LA", v0=start, tol=1e-5)
    else:
        values, vectors = eigs(operator, count, which="LR", v0=start, tol=1e-8)
    order = np.argsort(-values.real)
    # An outlier is real; the bulk of a matrix without symmetry is a disc, of complex pairs.
    return values.real[order], vectors.real[:, order]


def _column_space(vectors: np.ndarray, count: int) -> np.ndarray:
    """Leading left singular vectors of the stacked (m, d, p) blocks, each of unit norm."""
    stacked = np.concatenate(list(vectors / np.linalg.norm(vectors, axis=(1, 2), keepdims=True)), 1)
    U, _, _ = np.linalg.svd(stacked, full_matrices=False)
    return np.asarray(U[:, :count])


def _check(source: Source, values: np.ndarray, n_directions: int) -> None:
    check_integer("n_directions", n_directions, 1)
    if n_directions > source.n_columns:
        raise InvalidParameter(
            f"n_directions is {n_directions}; allowed: up to the {source.n_columns} columns."
        )
    if len(values) != source.n_samples:
        raise InvalidData(
            f"there are {source.n_samples} samples and moments of {len(values)} labels; they must "
            "agree."
        )
    if not np.isfinite(values).all():
        raise InvalidData("some moments of labels are NaN or infinite; allowed: finite numbers.")
