"""Block arithmetic of the degree 1, 2 and 3 Hermite features without forming them.

An engine turns a set of vectors into a state (``prepare``), applies it to a block of rows
(``project``), and sums weighted features of a block (``accumulate``) in coordinates that ``finish``
turns into vectors once, after all blocks. Callers check for NaN weights.
"""

from __future__ import annotations

from functools import cached_property
from math import sqrt
from typing import Any

import numpy as np

from solvable.arrays import Array, namespace
from solvable.operators._symmetric import quadratic_forms, triangles, weighted_gram

SUMMED_ROWS = 4096
"""Number of rows that are summed in the type of the samples; these sums are added in float64."""

SMALL_PRODUCT = 1_000_000
"""Number of multiplications up to which OpenBLAS with AVX-512 does not copy its factors.

Above this number, and always on other processors, it copies both factors first, which takes as long as
the product if one of them has only eight columns (measured: 56 GF/s just above, 100 GF/s below).
"""


def as_like(array: Array, reference: Array, dtype: Any = None) -> Array:
    """Convert an array to the library and device of a reference; float64 unless a dtype is given."""
    xp = namespace(reference)
    dtype = xp.float64 if dtype is None else dtype
    if isinstance(reference, np.ndarray):
        return np.asarray(array, dtype=dtype)
    from array_api_compat import device

    return xp.asarray(array, dtype=dtype, device=device(reference))


def _rows_of_small_products(size: int, n: int) -> int:
    """Number of rows per part if n rows are cut into equal parts; n if no cut helps."""
    rows = SMALL_PRODUCT // max(1, size)
    # Products with more multiplications per row do not become faster in parts (measured).
    return n // -(-n // rows) if 600 <= rows < n else n


def sum_of_products(A: Array, B: Array) -> Array:
    """Product A B^T of A (p, n) and B (m, n); sums over long rows are added in float64."""
    xp = namespace(A)
    columns, rows = A.shape[1], SUMMED_ROWS
    if isinstance(A, np.ndarray):
        rows = min(rows, _rows_of_small_products(A.shape[0] * B.shape[0], columns))
    parts = columns // max(1, rows)
    if parts < 2:
        return A @ B.T
    # One product for each part: this also uses all units of an accelerator, which one p x m output with
    # a long sum does not.
    whole = parts * rows
    left, right = (
        xp.permute_dims(xp.reshape(M[:, :whole], (M.shape[0], parts, rows)), (1, 0, 2))
        for M in (A, B)
    )
    total = xp.sum(left @ xp.matrix_transpose(right), axis=0, dtype=xp.float64)
    return total + xp.astype(A[:, whole:] @ B[:, whole:].T, xp.float64)


def thin_product(A: Array, B: Array) -> Array:
    """Product A B of A (m, p) and B (p, n) with few rows m; on the host in small products."""
    m, n = A.shape[0], B.shape[1]
    rows = n if not isinstance(B, np.ndarray) else _rows_of_small_products(m * A.shape[1], n)
    if rows == n:
        return A @ B
    parts = n // rows
    whole = parts * rows
    result = np.empty((m, n), dtype=B.dtype)
    np.matmul(
        A,
        B[:, :whole].reshape(-1, parts, rows).transpose(1, 0, 2),
        out=result[:, :whole].reshape(m, parts, rows).transpose(1, 0, 2),
    )
    np.matmul(A, B[:, whole:], out=result[:, whole:])
    return result


def products_of_pairs(columns: Array) -> Array:
    """Rows x_i x_j, i <= j, row-major, of shape (d (d + 1) / 2, n) from the columns of X, (d, n)."""
    # One long row per feature: writing (D, n) is four times faster than the short rows of (n, D).
    xp = namespace(columns)
    d, rows = columns.shape
    pairs = xp.empty((d * (d + 1) // 2, rows), dtype=columns.dtype, device=columns.device)
    stop = 0
    for i in range(d):
        start, stop = stop, stop + d - i
        if isinstance(columns, np.ndarray):
            np.multiply(columns[i], columns[i:], out=pairs[start:stop])
        else:
            pairs[start:stop, :] = columns[i : i + 1, :] * columns[i:, :]
    return pairs


def columns_of(X: Array) -> Array:
    """Copy of the transpose in row-major order."""
    return (
        np.ascontiguousarray(X.T)
        if isinstance(X, np.ndarray)
        else namespace(X).asarray(X.T, copy=True)
    )


class Linear:
    """Engine of the features F(x) = x."""

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension
        self._held: dict[tuple[str, ...], Array] = {}

    def __getstate__(self) -> dict[str, Any]:
        # Copies on a device are not pickled; they are sent again when needed.
        return self.__dict__ | {"_held": {}}

    def constant(self, name: str, like: Array, dtype: Any) -> Array:
        """Return an attribute in a library, device and type; the copy is made once."""
        if isinstance(like, np.ndarray):
            return np.asarray(getattr(self, name), dtype=dtype)
        key = name, namespace(like).__name__, str(like.device), str(dtype)
        if key not in self._held:
            self._held[key] = as_like(getattr(self, name), like, dtype)
        return self._held[key]

    def rows(self, n_vectors: int) -> int:
        """Number of rows of a block that fits into the host's cache."""
        return 4096

    def row_bytes(self, n_vectors: int) -> float:
        """Largest memory per row of a block, in float64 numbers."""
        return 8.0 * (self.dimension + 3 * n_vectors)

    def prepare(self, U: Array, like: Array) -> Any:
        return as_like(U, like, like.dtype)

    def project(self, X: Array, state: Any) -> Array:
        return X @ state

    def accumulate(self, X: Array, W: Array) -> tuple[Array, ...]:
        return (sum_of_products(X.T, W.T),)

    def weighted(self, X: Array, weights: Array, state: Any) -> tuple[Array, ...]:
        return self.accumulate(X, weights[:, None] * self.project(X, state))

    def finish(self, sums: tuple[Array, ...]) -> Array:
        return sums[0]

    def transform(self, X: Array) -> Array:
        return X


class Quadratic(Linear):
    """Engine of the features x_i x_j, i < j, and (x_i² - 1) / sqrt(2), in upper-triangle order."""

    def rows(self, n_vectors: int) -> int:
        return 2048

    def row_bytes(self, n_vectors: int) -> float:
        return 8.0 * self.dimension * (1 + 3 * n_vectors)

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
        """Mask of the diagonal features (x_i² - 1) / sqrt(2)."""
        i, j = np.triu_indices(self.dimension)
        return i == j

    @cached_property
    def spread(self) -> np.ndarray:
        """Factors from a vector to a matrix of the same norm: 1 on, 1 / sqrt(2) off the diagonal."""
        return np.where(self.diagonal, 1.0, sqrt(0.5))

    @cached_property
    def gathered(self) -> np.ndarray:
        """Factors that convert a matrix back to a vector: 1 on, sqrt(2) off the diagonal."""
        return np.where(self.diagonal, 1.0, sqrt(2.0))

    @cached_property
    def normalisation(self) -> np.ndarray:
        """Normalisation 1 / sqrt(alpha!): 1 / sqrt(2) on the diagonal, 1 off the diagonal."""
        return np.where(self.diagonal, sqrt(0.5), 1.0)

    def to_symmetric(self, U: Array) -> Array:
        xp = namespace(U)
        d = self.dimension
        scale = self.constant("spread", U, U.dtype)
        flat = xp.take((U * scale[:, None]).T, self.constant("square", U, xp.int64), axis=1)
        return xp.reshape(flat, (U.shape[1], d, d))

    def from_symmetric(self, V: Array) -> Array:
        xp = namespace(V)
        flat = xp.reshape(V, (V.shape[0], self.dimension**2))
        scale = self.constant("gathered", V, V.dtype)
        return (xp.take(flat, self.constant("upper", V, xp.int64), axis=1) * scale).T

    def prepare(self, U: Array, like: Array) -> Any:
        xp = namespace(like)
        U = as_like(U, like)
        matrices = self.to_symmetric(U) * sqrt(0.5)
        traces = xp.sum(U * self.constant("diagonal", U, U.dtype)[:, None], axis=0) * sqrt(0.5)
        if isinstance(like, np.ndarray):
            return triangles(matrices, like.dtype), traces.astype(like.dtype)
        return xp.astype(matrices, like.dtype), xp.astype(traces, like.dtype)

    def _forms(self, X: Array, state: Any, some: slice) -> Array:
        """Project the features onto some of the vectors, shape (n, k)."""
        matrices, traces = state[0], state[1][some]
        if isinstance(X, np.ndarray):
            forms = np.stack([quadratic_forms(X, matrix) for matrix in matrices[some]], axis=1)
            return forms - traces
        xp = namespace(X)
        matrices = matrices[some, :, :]
        rows, d = X.shape
        images = X @ xp.reshape(xp.permute_dims(matrices, (1, 0, 2)), (d, -1))
        images = xp.reshape(images, (rows, -1, d))
        images *= X[:, None, :]
        return xp.sum(images, axis=2) - traces

    def _grams(self, X: Array, W: Array) -> Array:
        """Compute X^T diag(w) X for each column w, (k, d, d); in NumPy only upper triangles."""
        if isinstance(X, np.ndarray):
            return np.stack([weighted_gram(X, w) for w in W.T], axis=0)
        xp = namespace(X)
        rows, d = X.shape
        weighted = xp.reshape(X[:, None, :] * W[:, :, None], (rows, -1))
        grams = xp.reshape(sum_of_products(X.T, weighted.T), (d, -1, d))
        return xp.permute_dims(grams, (1, 0, 2))

    def _groups(self, X: Array, count: int) -> list[slice]:
        """Number of vectors in one product: one if the block should stay in cache, else all."""
        step = 1 if X.shape[0] <= self.rows(1) else count
        return [slice(start, start + step) for start in range(0, count, step)]

    def project(self, X: Array, state: Any) -> Array:
        groups = self._groups(X, state[1].shape[0])
        return namespace(X).concat([self._forms(X, state, some) for some in groups], axis=1)

    def accumulate(self, X: Array, W: Array) -> tuple[Array, ...]:
        xp = namespace(X)
        grams = [self._grams(X, W[:, some]) for some in self._groups(X, W.shape[1])]
        return xp.concat(grams, axis=0), xp.sum(W, axis=0, dtype=xp.float64)

    def weighted(self, X: Array, weights: Array, state: Any) -> tuple[Array, ...]:
        # A vector's quadratic forms and its rank updates use the same cached block.
        xp = namespace(X)
        grams, totals = [], []
        for some in self._groups(X, state[1].shape[0]):
            W = weights[:, None] * self._forms(X, state, some)
            grams.append(self._grams(X, W))
            totals.append(xp.sum(W, axis=0, dtype=xp.float64))
        return xp.concat(grams, axis=0), xp.concat(totals)

    def finish(self, sums: tuple[Array, ...]) -> Array:
        grams, totals = sums
        xp = namespace(grams)
        flat = xp.reshape(grams, (grams.shape[0], self.dimension**2))
        entries = xp.take(flat, self.constant("upper", grams, xp.int64), axis=1)
        on_diagonal = self.constant("diagonal", grams, grams.dtype)
        scale = self.constant("normalisation", grams, grams.dtype)
        return ((entries - totals[:, None] * on_diagonal) * scale).T

    def transform(self, X: Array) -> Array:
        return self.transformed(columns_of(X)).T

    def transformed(self, columns: Array) -> Array:
        """Compute the features (D, n) of the columns of X."""
        pairs = products_of_pairs(columns)
        start = 0
        for size in range(self.dimension, 0, -1):
            # x_i² -> (x_i² - 1) / sqrt(2)
            pairs[start, :] -= 1
            pairs[start, :] *= sqrt(0.5)
            start += size
        return pairs
