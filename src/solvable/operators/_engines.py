"""Block arithmetic of the degree 1, 2 and 3 Hermite features, without ever forming them.

An engine turns a set of vectors into a state (``prepare``), applies it to a block of rows
(``project``), and sums weighted features of a block (``accumulate``) in coordinates that ``finish``
turns into vectors once, after all blocks. NaN weights are left to the caller.
"""

from __future__ import annotations

from functools import cached_property
from itertools import combinations_with_replacement
from math import factorial, sqrt
from typing import Any

import numpy as np

from solvable.arrays import Array, namespace
from solvable.operators._symmetric import quadratic_forms, triangles, weighted_gram


def as_like(array: Array, reference: Array, dtype: Any = None) -> Array:
    """Array in the library and on the device of the reference; float64 unless a dtype is given."""
    xp = namespace(reference)
    dtype = xp.float64 if dtype is None else dtype
    if isinstance(reference, np.ndarray):
        return np.asarray(array, dtype=dtype)
    from array_api_compat import device

    return xp.asarray(array, dtype=dtype, device=device(reference))


def products_of_pairs(X: Array) -> Array:
    """Columns x_i x_j, i <= j, in row-major order: shape (rows, d (d + 1) / 2)."""
    xp = namespace(X)
    return xp.concat([X[:, i : i + 1] * X[:, i:] for i in range(X.shape[1])], axis=1)


class Linear:
    """F(x) = x."""

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension

    def rows(self, n_vectors: int) -> int:
        return 4096

    def prepare(self, U: Array, like: Array) -> Any:
        return as_like(U, like, like.dtype)

    def project(self, X: Array, state: Any) -> Array:
        return X @ state

    def accumulate(self, X: Array, W: Array) -> tuple[Array, ...]:
        return (X.T @ W,)

    def weighted(self, X: Array, weights: Array, state: Any) -> tuple[Array, ...]:
        return self.accumulate(X, weights[:, None] * self.project(X, state))

    def finish(self, sums: tuple[Array, ...]) -> Array:
        return sums[0]

    def transform(self, X: Array) -> Array:
        return X


class Quadratic(Linear):
    """F(x) = x_i x_j for i < j and (x_i^2 - 1) / sqrt(2), rows of the upper triangle."""

    def rows(self, n_vectors: int) -> int:
        return 2048

    @cached_property
    def upper(self) -> np.ndarray:
        """Positions of the upper triangle in the flattened square, row-major."""
        i, j = np.triu_indices(self.dimension)
        return i * self.dimension + j

    @cached_property
    def square(self) -> np.ndarray:
        """For each entry of the flattened square, its position in the upper triangle."""
        d = self.dimension
        table = np.empty((d, d), dtype=np.int64)
        i, j = np.triu_indices(d)
        table[i, j] = table[j, i] = np.arange(i.size)
        return table.reshape(-1)

    @cached_property
    def diagonal(self) -> np.ndarray:
        """Whether a feature lies on the diagonal."""
        i, j = np.triu_indices(self.dimension)
        return i == j

    def to_symmetric(self, U: Array) -> Array:
        xp = namespace(U)
        d = self.dimension
        scale = as_like(np.where(self.diagonal, 1.0, sqrt(0.5)), U, U.dtype)
        flat = xp.take((U * scale[:, None]).T, as_like(self.square, U, xp.int64), axis=1)
        return xp.reshape(flat, (U.shape[1], d, d))

    def from_symmetric(self, V: Array) -> Array:
        xp = namespace(V)
        flat = xp.reshape(V, (V.shape[0], self.dimension**2))
        scale = as_like(np.where(self.diagonal, 1.0, sqrt(2.0)), V, V.dtype)
        return (xp.take(flat, as_like(self.upper, V, xp.int64), axis=1) * scale).T

    def prepare(self, U: Array, like: Array) -> Any:
        matrices = self.to_symmetric(as_like(U, like)) * sqrt(0.5)
        xp = namespace(matrices)
        eye = xp.eye(self.dimension, dtype=matrices.dtype)
        eye = as_like(eye, like)
        traces = xp.sum(matrices * eye, axis=(1, 2))
        if isinstance(like, np.ndarray):
            return triangles(matrices, like.dtype), traces.astype(like.dtype)
        return xp.astype(matrices, like.dtype), xp.astype(traces, like.dtype)

    def _form(self, X: Array, state: Any, k: int) -> Array:
        matrices, traces = state
        if isinstance(X, np.ndarray):
            return quadratic_forms(X, matrices[k]) - traces[k]
        xp = namespace(X)
        return xp.sum((X @ matrices[k, :, :]) * X, axis=1) - traces[k]

    def _gram(self, X: Array, weights: Array) -> Array:
        if isinstance(X, np.ndarray):
            return weighted_gram(X, weights)
        return (X * weights[:, None]).T @ X

    def project(self, X: Array, state: Any) -> Array:
        forms = [self._form(X, state, k) for k in range(state[1].shape[0])]
        return namespace(X).stack(forms, axis=1)

    def accumulate(self, X: Array, W: Array) -> tuple[Array, ...]:
        xp = namespace(X)
        grams = xp.stack([self._gram(X, W[:, k]) for k in range(W.shape[1])], axis=0)
        return grams, xp.sum(W, axis=0, dtype=xp.float64)

    def weighted(self, X: Array, weights: Array, state: Any) -> tuple[Array, ...]:
        # One vector at a time, so that its forms and its rank updates share the cached block.
        xp = namespace(X)
        grams, totals = [], []
        for k in range(state[1].shape[0]):
            w = weights * self._form(X, state, k)
            grams.append(self._gram(X, w))
            totals.append(xp.sum(w, dtype=xp.float64))
        return xp.stack(grams, axis=0), xp.stack(totals)

    def finish(self, sums: tuple[Array, ...]) -> Array:
        grams, totals = sums
        xp = namespace(grams)
        flat = xp.reshape(grams, (grams.shape[0], self.dimension**2))
        entries = xp.take(flat, as_like(self.upper, grams, xp.int64), axis=1)
        on_diagonal = as_like(self.diagonal * 1.0, grams)
        scale = as_like(np.where(self.diagonal, sqrt(0.5), 1.0), grams)
        return ((entries - totals[:, None] * on_diagonal) * scale).T

    def transform(self, X: Array) -> Array:
        shift = as_like(self.diagonal * 1.0, X, X.dtype)
        scale = as_like(np.where(self.diagonal, sqrt(0.5), 1.0), X, X.dtype)
        return (products_of_pairs(X) - shift) * scale


class Cubic(Linear):
    """Orthonormal degree-3 features, triples i <= j <= k in row-major order."""

    def __init__(self, dimension: int) -> None:
        super().__init__(dimension)
        self.pairs = Quadratic(dimension)

    def rows(self, n_vectors: int) -> int:
        return int(max(64, min(2048, 4_000_000 // self.dimension**2)))

    @cached_property
    def triples(self) -> np.ndarray:
        return np.array(list(combinations_with_replacement(range(self.dimension), 3)))

    @cached_property
    def normalisation(self) -> np.ndarray:
        """1 / sqrt(alpha!) for each triple."""
        i, j, k = self.triples.T
        distinct = 1 + (i != j) + (j != k)
        return np.array([0.0, 1 / sqrt(6), 1 / sqrt(2), 1.0])[distinct]

    @cached_property
    def tensor(self) -> np.ndarray:
        """For each entry (i, j, k) of the flattened cube, the position of its sorted triple."""
        d = self.dimension
        table = np.empty((d, d, d), dtype=np.int64)
        order = np.arange(len(self.triples))
        for axes in ((0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)):
            table[tuple(self.triples[:, axes].T)] = order
        return table.reshape(-1)

    @cached_property
    def _pair_rows(self) -> np.ndarray:
        """Positions of the entries (i <= j, k) in the flattened cube, pairs row-major."""
        d = self.dimension
        return (self.pairs.upper[:, None] * d + np.arange(d)).reshape(-1)

    @cached_property
    def _sorted_entries(self) -> np.ndarray:
        """Position of each triple in the flattened (pair, k) table."""
        i, j, k = self.triples.T
        return self.pairs.square[i * self.dimension + j] * self.dimension + k

    def to_tensor(self, U: Array) -> Array:
        """Symmetric tensors of the same norm: shape (d^3, k)."""
        xp = namespace(U)
        # A triple occupies 3! / alpha! entries of the cube.
        scale = as_like(1 / (sqrt(factorial(3)) * self.normalisation), U, U.dtype)
        return xp.take(U * scale[:, None], as_like(self.tensor, U, xp.int64), axis=0)

    def from_tensor(self, V: Array) -> Array:
        """Inverse of :meth:`to_tensor` on symmetric tensors; symmetrises others."""
        xp = namespace(V)
        d, count = self.dimension, V.shape[1]
        cube = xp.reshape(V, (d, d, d, count))
        orders = (
            (0, 1, 2, 3),
            (0, 2, 1, 3),
            (1, 0, 2, 3),
            (1, 2, 0, 3),
            (2, 0, 1, 3),
            (2, 1, 0, 3),
        )
        mean = sum((xp.permute_dims(cube, axes) for axes in orders[1:]), cube) / 6
        positions = (self.triples @ np.array([d * d, d, 1])).astype(np.int64)
        entries = xp.take(xp.reshape(mean, (d**3, count)), as_like(positions, V, xp.int64), axis=0)
        scale = as_like(sqrt(factorial(3)) * self.normalisation, V, V.dtype)
        return entries * scale[:, None]

    def prepare(self, U: Array, like: Array) -> Any:
        xp = namespace(like)
        d = self.dimension
        tensors = self.to_tensor(as_like(U, like)) / sqrt(factorial(3))
        count = tensors.shape[1]
        table = xp.take(tensors, as_like(self._pair_rows, like, xp.int64), axis=0)
        table = xp.reshape(table, (-1, d * count))
        on_diagonal = as_like(self.pairs.diagonal * 1.0, like)
        traces = 3 * xp.sum(xp.reshape(table * on_diagonal[:, None], (-1, d, count)), axis=0)
        table = table * (2 - on_diagonal)[:, None]
        return xp.astype(table, like.dtype), xp.astype(traces, like.dtype)

    def project(self, X: Array, state: Any) -> Array:
        return self._project(X, products_of_pairs(X), state)

    def _project(self, X: Array, pairs: Array, state: Any) -> Array:
        xp = namespace(X)
        table, traces = state
        cube = xp.reshape(pairs @ table, (X.shape[0], self.dimension, traces.shape[1]))
        return xp.sum(cube * X[:, :, None], axis=1) - X @ traces

    def accumulate(self, X: Array, W: Array) -> tuple[Array, ...]:
        return self._accumulate(X, products_of_pairs(X), W)

    def _accumulate(self, X: Array, pairs: Array, W: Array) -> tuple[Array, ...]:
        xp = namespace(X)
        weighted = xp.reshape(X[:, :, None] * W[:, None, :], (X.shape[0], -1))
        return pairs.T @ weighted, X.T @ W

    def weighted(self, X: Array, weights: Array, state: Any) -> tuple[Array, ...]:
        pairs = products_of_pairs(X)
        return self._accumulate(X, pairs, weights[:, None] * self._project(X, pairs, state))

    def finish(self, sums: tuple[Array, ...]) -> Array:
        table, linear = sums
        xp = namespace(table)
        flat = xp.reshape(table, (-1, linear.shape[1]))
        entries = xp.take(flat, as_like(self._sorted_entries, table, xp.int64), axis=0)
        scale = as_like(self.normalisation, table)
        return (entries - self._contraction(linear)) * scale[:, None]

    def _contraction(self, linear: Array) -> Array:
        """delta_ij b_k + delta_ik b_j + delta_jk b_i for each triple; b has shape (d, k)."""
        xp = namespace(linear)
        i, j, k = self.triples.T
        terms = []
        for same, index in (((i == j), k), ((i == k), j), ((j == k), i)):
            mask = as_like(same * 1.0, linear, linear.dtype)
            values = xp.take(linear, as_like(index.astype(np.int64), linear, xp.int64), axis=0)
            terms.append(values * mask[:, None])
        return terms[0] + terms[1] + terms[2]

    def transform(self, X: Array) -> Array:
        xp = namespace(X)
        d = self.dimension
        pairs = products_of_pairs(X)
        starts = [int(self.pairs.square[i * d + i]) for i in range(d)]
        cubes = xp.concat(
            [X[:, i : i + 1] * pairs[:, start:] for i, start in enumerate(starts)], axis=1
        )
        scale = as_like(self.normalisation, X, X.dtype)
        return (cubes - self._contraction(X.T).T) * scale
