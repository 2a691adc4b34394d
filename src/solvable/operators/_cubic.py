"""Block arithmetic of the degree 3 Hermite features without forming them."""

from __future__ import annotations

from functools import cached_property
from itertools import combinations_with_replacement
from math import factorial, sqrt
from typing import Any

import numpy as np

from solvable.arrays import Array, namespace
from solvable.operators._engines import (
    Linear,
    Quadratic,
    as_like,
    columns_of,
    products_of_pairs,
    sum_of_products,
    thin_product,
)


class Cubic(Linear):
    """Orthonormal degree-3 features, ordered by triples i <= j <= k in row-major order.

    A product of three coordinates is a pair (j <= k) times the coordinate i <= j. Pairs are stored in
    blocks of eight values of j; each block is multiplied only with the coordinates up to its last j. At
    d = 40 this computes a share 0.22 of all d³ products; a share 1/6 is needed.
    """

    def __init__(self, dimension: int) -> None:
        super().__init__(dimension)
        self.pairs = Quadratic(dimension)
        borders = [*range(0, dimension, 8), dimension]
        starts = [sum(range(dimension - j + 1, dimension + 1)) for j in borders]
        # for each block, the slice of pairs and the number of coordinates that multiply the pairs
        self.blocks = [
            (slice(start, stop), last)
            for start, stop, last in zip(starts[:-1], starts[1:], borders[1:], strict=True)
        ]

    def rows(self, n_vectors: int) -> int:
        # fastest measured block size: pairs of at most 2 MB in float32, or 1 MB below d = 20
        return max(64, min(24_000 // self.dimension, 1_000_000 // self.dimension**2))

    def row_bytes(self, n_vectors: int) -> float:
        return 8.0 * self.dimension * (self.dimension / 2 + 4 * n_vectors)

    @cached_property
    def triples(self) -> np.ndarray:
        return np.array(list(combinations_with_replacement(range(self.dimension), 3)))

    @cached_property
    def normalisation(self) -> np.ndarray:
        """Normalisation 1 / sqrt(alpha!) of each triple."""
        i, j, k = self.triples.T
        distinct = 1 + (i != j) + (j != k)
        return np.array([0.0, 1 / sqrt(6), 1 / sqrt(2), 1.0])[distinct]

    @cached_property
    def spread(self) -> np.ndarray:
        """Factors that convert a vector to a symmetric tensor of the same norm; see ``multiplicity``."""
        return 1 / (sqrt(factorial(3)) * self.normalisation)

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
    def positions(self) -> np.ndarray:
        """Position of each triple in the flattened cube."""
        return np.asarray(self.triples @ np.array([self.dimension**2, self.dimension, 1]))

    @cached_property
    def gather(self) -> np.ndarray:
        """Triple of each entry (pair, coordinate) of all blocks; one past the last triple if i > j."""
        d, size = self.dimension, len(self.triples)
        j, k = np.triu_indices(d)
        cube = self.tensor.reshape(d, d, d)
        entries = []
        for pairs, last in self.blocks:
            i = np.arange(last)
            met = i <= j[pairs, None]
            entries.append(np.where(met, cube[i, j[pairs, None], k[pairs, None]], size).ravel())
        return np.concatenate(entries)

    @cached_property
    def scatter(self) -> np.ndarray:
        """Position of each triple among the entries (pair, coordinate) of all blocks."""
        table = np.empty(len(self.triples) + 1, dtype=np.int64)
        table[self.gather] = np.arange(self.gather.size)
        return table[:-1]

    @cached_property
    def doubles(self) -> np.ndarray:
        """Position of the triple (i, i, m), sorted; array of shape (d, d), flattened."""
        d = self.dimension
        i, m = np.divmod(np.arange(d * d), d)
        return np.asarray(self.tensor.reshape(d, d, d)[i, i, m])

    @cached_property
    def multiplicity(self) -> np.ndarray:
        """Multiple of x_m that is subtracted from x_i² x_m: 3 for m = i, else 1; flattened (d, d)."""
        return (1.0 + 2.0 * np.eye(self.dimension)).ravel()

    def to_tensor(self, U: Array) -> Array:
        """Convert vectors to symmetric tensors of the same norm, shape (d³, k)."""
        xp = namespace(U)
        scale = self.constant("spread", U, U.dtype)
        return xp.take(U * scale[:, None], self.constant("tensor", U, xp.int64), axis=0)

    def from_tensor(self, V: Array) -> Array:
        """Invert :meth:`to_tensor`; tensors that are not symmetric are symmetrised."""
        xp = namespace(V)
        d, count = self.dimension, V.shape[1]
        cube = xp.reshape(V, (d, d, d, count))
        orders = ((0, 2, 1, 3), (1, 0, 2, 3), (1, 2, 0, 3), (2, 0, 1, 3), (2, 1, 0, 3))
        mean = sum((xp.permute_dims(cube, axes) for axes in orders), cube) / 6
        flat = xp.reshape(mean, (d**3, count))
        entries = xp.take(flat, self.constant("positions", V, xp.int64), axis=0)
        return entries / self.constant("spread", V, V.dtype)[:, None]

    def prepare(self, U: Array, like: Array) -> Any:
        # <u, F> = sum_alpha u_alpha / sqrt(alpha!) He_alpha(x), with He_iim = x_i² x_m - x_m (and
        # 3 x_m for m = i).
        xp = namespace(like)
        d, count = self.dimension, U.shape[1]
        U = as_like(U, like)
        U = U * self.constant("normalisation", U, U.dtype)[:, None]
        twice = xp.take(U, self.constant("doubles", U, xp.int64), axis=0)
        twice = twice * self.constant("multiplicity", U, U.dtype)[:, None]
        linear = xp.sum(xp.reshape(twice, (d, d, count)), axis=0).T
        padded = xp.concat([U, 0 * U[:1, :]], axis=0)
        entries = xp.astype(
            xp.take(padded, self.constant("gather", U, xp.int64), axis=0), like.dtype
        )
        tables, stop = [], 0
        for pairs, last in self.blocks:
            start, stop = stop, stop + (pairs.stop - pairs.start) * last
            table = xp.reshape(entries[start:stop, :], (-1, last, count))
            tables.append(xp.reshape(xp.permute_dims(table, (2, 1, 0)), (count * last, -1)))
        return tables, xp.astype(linear, like.dtype)

    def project(self, X: Array, state: Any) -> Array:
        columns = columns_of(X)
        return self._project(columns, products_of_pairs(columns), state).T

    def _project(self, columns: Array, pairs: Array, state: Any) -> Array:
        """Project the features onto the vectors, shape (k, n)."""
        tables, linear = state
        forms = -(linear @ columns)
        for (some, last), table in zip(self.blocks, tables, strict=True):
            cube = thin_product(table, pairs[some, :])
            cube = namespace(columns).reshape(cube, (-1, last, columns.shape[1]))
            if isinstance(columns, np.ndarray):
                forms += np.einsum("kin,in->kn", cube, columns[:last])
            else:
                cube *= columns[None, :last, :]
                forms += namespace(columns).sum(cube, axis=1)
        return forms

    def accumulate(self, X: Array, W: Array) -> tuple[Array, ...]:
        columns = columns_of(X)
        return self._accumulate(columns, products_of_pairs(columns), W.T)

    def _accumulate(self, columns: Array, pairs: Array, weights: Array) -> tuple[Array, ...]:
        """Sum the weighted triples of each block, (pairs, k i), and the weighted coordinates, (d, k)."""
        xp = namespace(columns)
        weighted = columns[None, :, :] * weights[:, None, :]
        sums = [
            sum_of_products(
                pairs[some, :], xp.reshape(weighted[:, :last, :], (-1, columns.shape[1]))
            )
            for some, last in self.blocks
        ]
        return *sums, sum_of_products(columns, weights)

    def weighted(self, X: Array, weights: Array, state: Any) -> tuple[Array, ...]:
        columns = columns_of(X)
        pairs = products_of_pairs(columns)
        return self._accumulate(columns, pairs, weights * self._project(columns, pairs, state))

    def finish(self, sums: tuple[Array, ...]) -> Array:
        *tables, linear = sums
        xp = namespace(linear)
        count = linear.shape[1]
        flat = [
            xp.reshape(
                xp.permute_dims(xp.reshape(table, (-1, count, last)), (0, 2, 1)), (-1, count)
            )
            for table, (_, last) in zip(tables, self.blocks, strict=True)
        ]
        entries = xp.take(
            xp.concat(flat, axis=0), self.constant("scatter", linear, xp.int64), axis=0
        )
        scale = self.constant("normalisation", linear, linear.dtype)
        return (entries - self._contraction(linear)) * scale[:, None]

    @cached_property
    def equal(self) -> np.ndarray:
        """Masks i = j, i = k and j = k of the triples, and the third index, each flattened."""
        i, j, k = self.triples.T
        return np.stack([i == j, i == k, j == k])

    @cached_property
    def third(self) -> np.ndarray:
        """Third index of each triple for each of its three pairs."""
        return np.ascontiguousarray(self.triples.T[::-1])

    def _contraction(self, linear: Array) -> Array:
        """Compute delta_ij b_k + delta_ik b_j + delta_jk b_i for each triple; b has shape (d, k)."""
        xp = namespace(linear)
        masks = self.constant("equal", linear, linear.dtype)
        third = self.constant("third", linear, xp.int64)
        terms = [xp.take(linear, third[n, :], axis=0) * masks[n, :][:, None] for n in range(3)]
        return terms[0] + terms[1] + terms[2]

    def transform(self, X: Array) -> Array:
        # He_ijk for i <= j <= k is x_i He_jk minus x_k if i = j < k, or minus 2 x_i if i = j = k.
        columns = columns_of(X)
        xp = namespace(columns)
        d = self.dimension
        pairs = self.pairs.transformed(columns)
        cubes = xp.empty((len(self.triples), X.shape[0]), dtype=X.dtype, device=columns.device)
        start = stop = 0
        for i in range(d):
            begin, stop = stop, stop + pairs.shape[0] - start
            cube = columns[i : i + 1, :] * pairs[start:, :]
            cube[1 : d - i, :] -= columns[i + 1 :, :]
            cube[1 : d - i, :] *= sqrt(1 / 2)
            # sqrt(2) x (x² - 1) / sqrt(2) - 2 x = x³ - 3 x
            cube[0, :] *= sqrt(2)
            cube[0, :] -= 2 * columns[i, :]
            cube[0, :] *= sqrt(1 / 6)
            cubes[begin:stop, :] = cube
            start += d - i
        return cubes.T
