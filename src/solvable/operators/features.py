r"""Orthonormal Hermite features as a linear operator; the feature matrix is never formed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from math import comb

import numpy as np

from solvable.arrays import Array, check_integer, namespace
from solvable.errors import InvalidData, InvalidParameter
from solvable.hermite import hermite_kernel
from solvable.operators._cubic import Cubic
from solvable.operators._engines import Linear, Quadratic, as_like
from solvable.operators.blocks import rows_per_block
from solvable.operators.feature_map import FeatureMap, floating

_ENGINES = {1: Linear, 2: Quadratic, 3: Cubic}


@dataclass(frozen=True)
class HermiteFeatures(FeatureMap):
    r"""Orthonormal Hermite features of one degree.

    .. math:: F_\alpha(x) = \prod_j \frac{\mathrm{He}_{\alpha_j}(x_j)}{\sqrt{\alpha_j!}},
        \quad |\alpha| = q, \qquad E[F F^T] = I_D, \quad D = \binom{d+q-1}{q},
        \quad x \sim N(0, I_d).

    Multi-indices run over :math:`i \le j` (:math:`i \le j \le k`) in row-major order; for q = 2
    this is the order of ``numpy.triu_indices``. For q = 1, :math:`F(x) = x`, which also describes the
    Gaussian-equivalent model, whose samples are features.

    Parameters
    ----------
    degree : {1, 2, 3}
        Degree :math:`q`.
    dimension : int
        Dimension :math:`d`, at least 1.

    Raises
    ------
    InvalidParameter
        If the degree or the dimension is out of range.

    Notes
    -----
    Products cost :math:`4 n D`, :math:`4 n d^2` (half of it in NumPy, by triangular products and rank
    updates) and :math:`2 n d^3` flops per vector for q = 1, 2, 3; memory is that of one block. The
    features are arXiv:2605.14567, Equation 2.1; the matrix-free products are compared with
    :meth:`transform` in ``tests/operators/test_features.py``.

    Examples
    --------
    >>> features = HermiteFeatures(2, 3)
    >>> features.n_features
    6
    >>> features.transform(np.array([[1.0, 2.0, 3.0]])).round(3)
    array([[0.   , 2.   , 3.   , 2.121, 6.   , 5.657]])
    """

    degree: int
    dimension: int

    def __post_init__(self) -> None:
        if self.degree not in _ENGINES:
            raise InvalidParameter(f"degree is {self.degree!r}; allowed: 1, 2, 3.")
        check_integer("dimension", self.dimension, 1)

    @property
    def n_features(self) -> int:
        """Number of features, D."""
        return comb(self.dimension + self.degree - 1, self.degree)

    @cached_property
    def _engine(self) -> Linear:
        return _ENGINES[self.degree](self.dimension)

    def block_rows(self, n_vectors: int = 1) -> int:
        """Number of rows per block with which intermediate arrays for the vectors stay in cache."""
        return self._engine.rows(n_vectors)

    def row_bytes(self, n_vectors: int = 1) -> float:
        """Largest memory per row of a block with this number of vectors, in float64 numbers."""
        return self._engine.row_bytes(n_vectors)

    def _check(self, X: Array, **vectors: tuple[Array, int]) -> None:
        if X.ndim != 2 or X.shape[1] != self.dimension:
            raise InvalidData(
                f"X has shape {tuple(X.shape)}; allowed: (n, {self.dimension}), as the features "
                "were made for that dimension."
            )
        for name, (array, rows) in vectors.items():
            if array.ndim != 2 or array.shape[0] != rows:
                raise InvalidData(f"{name} has shape {tuple(array.shape)}; allowed: ({rows}, k).")

    def _blocks(self, X: Array, n_vectors: int) -> Iterator[tuple[slice, Array]]:
        rows = rows_per_block(X, self.block_rows(n_vectors), self.row_bytes(n_vectors))
        for start in range(0, X.shape[0], rows):
            part = slice(start, min(start + rows, X.shape[0]))
            yield part, floating(X[part, :])

    def transform(self, X: Array) -> Array:
        """Compute the features (n, D) explicitly, in the type of X; for small problems and tests."""
        self._check(X)
        return self._engine.transform(floating(X))

    def project(self, X: Array, U: Array) -> Array:
        """Project the features onto directions (D, k): :math:`F(X) U`, (n, k), in the type of X."""
        self._check(X, U=(U, self.n_features))
        xp = namespace(X)
        state = None
        parts = []
        for _, block in self._blocks(X, U.shape[1]):
            state = self._engine.prepare(U, block) if state is None else state
            parts.append(self._engine.project(block, state))
        return xp.concat(parts, axis=0) if parts else floating(X)[:, :0] @ U[:0, :]

    def adjoint(self, X: Array, W: Array) -> Array:
        """Sum the features with weights W (n, k): :math:`F(X)^T W`, shape (D, k), in float64."""
        self._check(X, W=(W, X.shape[0]))
        sums = _add_up(
            self._engine.accumulate(block, as_like(W[rows, :], block, block.dtype))
            for rows, block in self._blocks(X, W.shape[1])
        )
        return self._engine.finish(sums)

    def weighted_product(self, X: Array, weights: Array, U: Array) -> Array:
        r"""Compute :math:`\sum_\mu w_\mu F(x_\mu) F(x_\mu)^T U`, shape (D, k), in float64.

        Matrix products use the type of X; blocks are summed in float64 on the device of X.
        """
        self._check(X)
        if tuple(weights.shape) != (X.shape[0],):
            raise InvalidData(
                f"weights have shape {tuple(weights.shape)}; allowed: ({X.shape[0]},)."
            )
        blocks = ((block, weights[rows]) for rows, block in self._blocks(X, U.shape[1]))
        return self.weighted_sum(blocks, U)

    def weighted_sum(self, blocks: Iterable[tuple[Array, np.ndarray]], U: Array) -> Array:
        """Sum :meth:`weighted_product` over blocks; the vectors are prepared only once."""
        engine = self._engine

        def parts() -> Iterator[tuple[Array, ...]]:
            state = None
            for block, weights in blocks:
                X = floating(block)
                if state is None:
                    self._check(X, U=(U, self.n_features))
                    state = engine.prepare(U, X)
                yield engine.weighted(X, as_like(weights, X, X.dtype), state)

        return engine.finish(_add_up(parts()))

    def squared_norm(self, X: Array) -> Array:
        """Squared norm of each sample's features, shape (n,), computed by the dual kernel in float64."""
        self._check(X)
        xp = namespace(X)
        squares = xp.sum(floating(X) ** 2, axis=1, dtype=xp.float64)
        return hermite_kernel(squares, squares, squares, self.dimension, self.degree)

    def kernel(self, X: Array, Y: Array | None = None) -> Array:
        """Dual kernel (n, m) between two sets of samples; between X and itself if Y is None."""
        Y = X if Y is None else Y
        self._check(X)
        self._check(Y)
        xp = namespace(X, Y)
        X, Y = floating(X), floating(Y)
        return hermite_kernel(
            X @ Y.T,
            xp.sum(X**2, axis=1)[:, None],
            xp.sum(Y**2, axis=1)[None, :],
            self.dimension,
            self.degree,
        )

    def to_symmetric(self, U: Array) -> Array:
        r"""Convert vectors (D, k) to symmetric matrices (k, d, d) of the same norm (q = 2).

        :math:`V_{ii} = u_{ii}`, :math:`V_{ij} = u_{ij} / \sqrt 2` for :math:`i < j`, in the order of
        ``numpy.triu_indices``: :math:`\langle u, F(x) \rangle = (x^T V x - \mathrm{tr} V)/\sqrt 2`.
        """
        return self._quadratic().to_symmetric(U)

    def from_symmetric(self, V: Array) -> Array:
        """Invert :meth:`to_symmetric`; only the upper triangles are read."""
        return self._quadratic().from_symmetric(V)

    def _quadratic(self) -> Quadratic:
        if not isinstance(self._engine, Quadratic):
            raise InvalidParameter(
                f"degree is {self.degree}; only features of degree 2 correspond to symmetric matrices."
            )
        return self._engine


def _add_up(parts: Iterable[tuple[Array, ...]]) -> tuple[Array, ...]:
    """Add blocks in float64."""
    total: list[Array] | None = None
    for part in parts:
        if total is None:
            xp = namespace(part[0])
            total = [xp.astype(array, xp.float64, copy=True) for array in part]
        else:
            for accumulator, array in zip(total, part, strict=True):
                accumulator += array
    if total is None:
        raise InvalidData("there are no samples; at least one row is needed.")
    return tuple(total)
