r"""Label-weighted moment operator, matrix-free, for any source of samples."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from types import NoneType
from typing import NamedTuple

import numpy as np

from solvable.arrays import Array, Source, as_source, check_integer, namespace, to_numpy
from solvable.errors import InvalidData, InvalidParameter, unknown_choice
from solvable.operators._cubic import Cubic
from solvable.operators._engines import Quadratic, as_like, sum_of_products
from solvable.operators._symmetric import mirror, rank_update, weighted_gram
from solvable.operators._wick import Contraction, cubic_contraction, quadratic_contraction
from solvable.operators.base import Correction, MomentStatistics, SymmetricOperator, statistics_of
from solvable.operators.blocks import array_behind, rows_per_block
from solvable.operators.feature_map import FeatureMap, floating
from solvable.operators.features import HermiteFeatures


class _Survey(NamedTuple):
    """Statistics from one pass over the samples; the input moments need Hermite degree 2 or 3."""

    squared_norms: np.ndarray  # squared feature norms |F|², (n,)
    input_norms: np.ndarray | None  # squared input norms |x|², (n,)
    second_moment: np.ndarray | None  # input moment B_1 = (1/n) sum T (x x^T - I), (d, d)


class MomentOperator(SymmetricOperator):
    r"""Label-weighted second moment of the features, as an operator that is never formed.

    .. math:: \hat C[U] = \frac1n \sum_\mu T_\mu (F_\mu F_\mu^T - I_D)\, U .

    With ``correction="wick"`` only the part of :math:`F F^T - I` of highest chaos (degree 2 q in x)
    is kept, which removes the largest O(1/d) bias. For q = 2, with
    :math:`\hat B_1 = \frac1n \sum_\mu T_\mu (x_\mu x_\mu^T - I_d)` and vectors as matrices,

    .. math:: \hat C_W[U] = \hat C[U] - (\hat B_1 U + U \hat B_1).

    For q = 3 the contractions of one and of two indices are subtracted; for q = 1 the correction is
    zero.

    Parameters
    ----------
    source : array of shape (n, d), path to a ``.npy`` file, or Source
        Samples. They are not copied; products run on the samples' device.
    weights : array of shape (n,)
        Weights :math:`T`, finite and centred (as :func:`apply_label_map` returns them).
    features : FeatureMap
        Features :math:`F`; :class:`HermiteFeatures` for the correction "wick".
    correction : {"none", "wick"}
        Correction that is subtracted.
    chunk_rows : int, optional
        Rows per block; by default a block fits in the cache. The results differ by rounding only.

    Raises
    ------
    InvalidData
        If shapes disagree or weights are not finite.
    InvalidParameter
        If the correction is unknown or does not exist for these features.

    Notes
    -----
    One product costs what :meth:`FeatureMap.weighted_product` costs, plus :math:`O(d^3)` (q = 2) or
    :math:`O(d^5)` (q = 3) for the correction; memory is one block plus O(D k). Products of float32
    samples use float32; sums use float64. arXiv:2605.14567, Equation 2.6 (operator); the
    correction is tested in ``tests/operators/test_wick.py``.

    Examples
    --------
    >>> X = np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]])
    >>> operator = MomentOperator(X, np.array([1.0, -1.0, 0.0]), HermiteFeatures(1, 2))
    >>> operator.matmat(np.eye(2)).round(3)
    array([[ 0.333,  0.   ],
           [ 0.   , -1.333]])
    """

    def __init__(
        self,
        source: Array | Source | str | Path,
        weights: Array,
        features: FeatureMap,
        *,
        correction: Correction = "none",
        chunk_rows: int | None = None,
    ) -> None:
        self.source = as_source(source)
        self.features = features
        self.weights = np.asarray(to_numpy(weights), dtype=np.float64)
        self.n_samples = self.source.n_samples
        self.correction = correction
        self.chunk_rows = chunk_rows
        if self.n_samples < 1:
            raise InvalidData("there are no samples; at least one row is needed.")
        if self.source.n_columns != features.dimension:
            raise InvalidData(
                f"the samples have {self.source.n_columns} columns and the features are of "
                f"dimension {features.dimension}; they must agree."
            )
        if self.weights.shape != (self.n_samples,):
            raise InvalidData(
                f"weights have shape {self.weights.shape}; allowed: ({self.n_samples},), one per "
                "sample."
            )
        if not np.isfinite(self.weights).all():
            raise InvalidData("some weights are NaN or infinite; allowed: finite numbers.")
        if chunk_rows is not None:
            check_integer("chunk_rows", chunk_rows, 1)
        if correction not in ("none", "wick"):
            raise InvalidParameter(unknown_choice("correction", correction, ["none", "wick"]))
        if correction == "wick" and not isinstance(features, HermiteFeatures):
            raise InvalidParameter(
                f"correction 'wick' exists for HermiteFeatures only; got {type(features).__name__}."
            )

    def _rows(self, n_vectors: int) -> int:
        if self.chunk_rows is not None:
            return self.chunk_rows
        bytes_per_row = self.features.row_bytes(n_vectors) * self.itemsize / 8
        return rows_per_block(self.source, self.features.block_rows(n_vectors), bytes_per_row)

    @property
    def itemsize(self) -> int:
        """Bytes per entry of the samples in products: 4 or 8."""
        return 4 if "float32" in str(self.source.dtype) else 8

    def blocks(self, rows: int) -> Iterator[tuple[Array, np.ndarray]]:
        """Yield samples and weights in order, at most ``rows`` rows at a time."""
        for part, block in self.source.chunks(rows):
            yield block, self.weights[part]

    @cached_property
    def _weights_there(self) -> Array:
        """Weights in the library, type and device of the samples; the copy is made once."""
        array = array_behind(self.source)
        if array is None or isinstance(array, np.ndarray):
            return self.weights
        return as_like(self.weights, array, floating(array[:0, :]).dtype)

    @cached_property
    def _mean_weight(self) -> float:
        return float(self.weights.mean())

    @cached_property
    def lower_chaoses(self) -> Contraction | None:
        """Wick correction of these features, even if it is not used; None if zero or unknown."""
        features = self.features
        engine = features._engine if isinstance(features, HermiteFeatures) else None
        if not isinstance(engine, (Quadratic, Cubic)):
            return None
        second_moment = self._survey.second_moment
        assert second_moment is not None
        if isinstance(engine, Quadratic):
            return quadratic_contraction(engine, second_moment)
        # For degree 2, <U, C_W V> is half the mean of <U (x) V, He_4>, so the matrix gives the He_4 mean.
        pairs = HermiteFeatures(2, features.dimension)
        fourth = MomentOperator(
            self.source, self.weights, pairs, correction="wick", chunk_rows=self.chunk_rows
        ).dense()
        return cubic_contraction(engine, second_moment, fourth)

    def _apply(self, U: Array) -> Array:
        # C U = (1/n) F^T diag(T) F U - mean(T) U (2605.14567, Equation 2.6), minus the correction
        # (sequential 20)
        weights = self._weights_there
        blocks = ((X, weights[part]) for part, X in self.source.chunks(self._rows(U.shape[1])))
        total = self.features.weighted_sum(blocks, U)
        on_host = isinstance(U, np.ndarray)
        result = to_numpy(total) if on_host else total
        vectors = np.asarray(U, dtype=np.float64) if on_host else as_like(U, total)
        result = result / self.n_samples - self._mean_weight * vectors
        subtracted = self.lower_chaoses if self.correction == "wick" else None
        return result if subtracted is None else result - subtracted(vectors)

    @cached_property
    def _survey(self) -> _Survey:
        """Compute norms and moments in one pass over the samples, and copy them to the host."""
        features, weights = self.features, self._weights_there
        norms: list[Array] = []
        squares: list[Array] = []
        moments: Array = 0.0
        for part, block in self.source.chunks(self._rows(1)):
            norms.append(features.squared_norm(block))
            if isinstance(features, HermiteFeatures) and features.degree > 1:
                X = floating(block)
                squares.append(namespace(X).sum(X * X, axis=1))
                moments = moments + _second_moment(X, weights[part])
        squared_norms = _joined(norms)
        input_norms = _joined(squares) if squares else None
        second_moment = to_numpy(moments) if squares else None
        bad = np.flatnonzero(~np.isfinite(squared_norms))
        if bad.size:
            raise InvalidData(
                f"{bad.size} of {self.n_samples} samples contain NaN or infinite entries (first: row "
                f"{bad[0]}); allowed: finite numbers. Drop or impute such rows."
            )
        if second_moment is not None:
            second_moment = second_moment / self.n_samples
            second_moment[np.diag_indices(features.dimension)] -= self._mean_weight
        return _Survey(squared_norms, input_norms, second_moment)

    @property
    def weighted_norms(self) -> np.ndarray:
        r"""Weighted squared norms :math:`T_\mu \|F_\mu\|^2 / D` of all samples, shape (n,)."""
        return self.weights * self._survey.squared_norms / self.features.n_features

    @property
    def input_norms(self) -> np.ndarray | None:
        r"""Squared input norms :math:`\|x_\mu\|^2`, shape (n,); only for Hermite degree 2 or 3."""
        return self._survey.input_norms

    @cached_property
    def statistics(self) -> MomentStatistics:
        """Averages that determine the noise, computed in one pass over the samples at first use."""
        return statistics_of(self.weights, self._survey.squared_norms, self.features.n_features)

    def dense(self) -> np.ndarray:
        """Operator as a matrix (D, D), summed over blocks of explicit features; n D² flops."""
        size = self.features.n_features
        rows = self.chunk_rows or int(max(64, min(4096, max(8_000_000, size**2 / 4) / size)))
        if isinstance(array_behind(self.source), (np.ndarray, NoneType)):
            total = self._dense_on_host(size, rows)
        else:
            total = self._dense_there(rows)
        total /= self.n_samples
        total[np.diag_indices(size)] -= self._mean_weight
        if self.correction == "wick" and self.lower_chaoses is not None:
            for start in range(0, size, 256):
                columns = np.zeros((size, min(256, size - start)))
                columns[np.arange(start, start + columns.shape[1]), np.arange(columns.shape[1])] = 1
                total[:, start : start + columns.shape[1]] -= self.lower_chaoses(columns)
        if not np.isfinite(total).all():
            raise InvalidData("some samples are NaN or infinite; allowed: finite numbers.")
        return total

    def _dense_on_host(self, size: int, rows: int) -> np.ndarray:
        """Sum of T F F^T; in each block, one rank update for positive and one for negative weights."""
        total = np.zeros((size, size), order="F")
        for block, weights in self.blocks(rows):
            X = floating(to_numpy(block))
            for sign in (1.0, -1.0):
                chosen = np.flatnonzero(sign * weights > 0)
                if chosen.size:
                    explicit = self.features.transform(X[chosen])
                    explicit *= np.sqrt(np.abs(weights[chosen])).astype(X.dtype)[:, None]
                    rank_update(total, explicit, sign)
        return mirror(total)

    def _dense_there(self, rows: int) -> np.ndarray:
        """Sum of T F F^T on the device of the samples."""
        weights, total = self._weights_there, 0.0
        for part, block in self.source.chunks(rows):
            explicit = self.features.transform(floating(block))
            xp = namespace(explicit)
            total = total + xp.astype((explicit * weights[part][:, None]).T @ explicit, xp.float64)
        return np.array(to_numpy(total), order="F")


def _joined(parts: list[Array]) -> np.ndarray:
    """Concatenate the results of all blocks on the host, in float64."""
    return np.asarray(to_numpy(namespace(*parts).concat(parts)), dtype=np.float64)


def _second_moment(X: Array, weights: Array) -> Array:
    """Sum of T x x^T over a block, in float64, on the block's device."""
    if isinstance(X, np.ndarray):
        upper = weighted_gram(np.ascontiguousarray(X), to_numpy(weights).astype(X.dtype))
        return mirror(upper).astype(np.float64)
    weighted = X * as_like(weights, X, X.dtype)[:, None]
    return namespace(X).astype(sum_of_products(weighted.T, X.T), namespace(X).float64)
