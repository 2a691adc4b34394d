r"""Label-weighted operators (signals), from summed moments or from features in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from solvable.arrays import Array, as_on, namespace, to_numpy
from solvable.operators._symmetric import mirror, symmetric_product, weighted_gram
from solvable.operators.blocks import rows_per_block
from solvable.operators.label_moments import LabelMoments

FORMED_SIZE = 4000
"""An operator is formed up to this number of features if many products are needed."""


class SignalOperators(Protocol):
    """Protocol of signal operators C_s = sum_g K_sg sum_mu w_mu,g z_mu z_mu^T / n, one per signal s."""

    n_features: int  # number P of features
    n_signals: int  # number of signals: 1 for a real or two-valued label, else one per class

    def products(self, Q: np.ndarray) -> np.ndarray:
        """Products C_s Q_s of all signals, (n_signals, P, k); Q is one block, or one per signal."""
        ...

    def centred(self, signal: int, *, single: bool = False) -> Callable[[np.ndarray], np.ndarray]:
        """Product with one operator of the centred label; ``single`` uses float32, in half the time."""
        ...

    def first_moments(self) -> np.ndarray:
        """Label-weighted means of the features, shape (P, n_signals)."""
        ...

    def variances(self, V: np.ndarray) -> np.ndarray:
        r"""Variance :math:`v^T \Sigma v` of each column v, (k,); :math:`\Sigma` is the mean of z z^T."""
        ...

    def mean(self) -> np.ndarray:
        """Mean of the features, shape (P,)."""
        ...

    def total_variance(self) -> float:
        r"""Trace of :math:`\Sigma`."""
        ...


class MomentSignals:
    r"""Signal operators from summed moments.

    Parameters
    ----------
    moments : LabelMoments
        Sums.
    coefficients : ndarray of shape (S, G)
        Coefficients :math:`K_{sg}` of the groups in each signal.
    centred : bool
        If True, features and real labels are centred.

    Examples
    --------
    >>> moments = LabelMoments(2, 2).add(np.eye(2), np.array([0, 1]))
    >>> MomentSignals(moments, np.array([[-1.0, 1.0]])).products(np.eye(2))[0]
    array([[-0.5,  0. ],
           [ 0. ,  0.5]])
    """

    def __init__(
        self, moments: LabelMoments, coefficients: np.ndarray, *, centred: bool = False
    ) -> None:
        self.moments = moments.fetch()
        if centred:
            self.moments = moments.centred()
            if not moments.classes:
                means = coefficients @ moments.totals / moments.rows
                coefficients = coefficients - np.outer(means, [1.0, 0.0])
        self.coefficients = coefficients / moments.rows
        self.n_features = moments.n_features
        self.n_signals = len(coefficients)
        # For a real label the first group contains all samples.
        self._whole = np.ones(moments.n_groups) if moments.classes else np.array([1.0, 0.0])
        self._single = self._combined(self.coefficients[0]) if self.n_signals == 1 else None

    def _combined(self, row: np.ndarray) -> np.ndarray:
        from scipy.linalg.blas import daxpy

        used = np.flatnonzero(row)
        if not used.size:
            return np.zeros((self.n_features, self.n_features), order="F")
        total = self.moments.upper_triangle(used[0]) * row[used[0]]
        flat = total.reshape(-1, order="F")
        for group in used[1:]:
            part = self.moments.upper_triangle(group).reshape(-1, order="F")
            daxpy(part, flat, a=row[group])
        return total

    def dense(self, signal: int) -> np.ndarray:
        """One operator as a matrix, shape (P, P)."""
        return mirror(self._combined(self.coefficients[signal]))

    def products(self, Q: np.ndarray) -> np.ndarray:
        """Products :math:`C_s Q_s` of all signals, shape (n_signals, P, k)."""
        if self._single is not None:
            return symmetric_product(self._single, Q[0] if Q.ndim == 3 else Q)[None]
        shared = Q.ndim == 2
        groups = self.moments.n_groups
        if shared:
            parts = np.stack(
                [symmetric_product(self.moments.upper_triangle(g), Q) for g in range(groups)]
            )
            return np.einsum("sg,gpk->spk", self.coefficients, parts, optimize=True)
        mixed = np.einsum("sg,spk->gpk", self.coefficients, Q, optimize=True)
        parts = np.stack(
            [symmetric_product(self.moments.upper_triangle(g), mixed[g]) for g in range(groups)]
        )
        # If the signals have different blocks, callers use only the sum of C_s Q_s over signals.
        return parts.sum(axis=0)[None]

    def centred(self, signal: int, *, single: bool = False) -> Callable[[np.ndarray], np.ndarray]:
        """Product with one operator of the centred label; the matrix is stored (8 P² bytes)."""
        row = self.coefficients[signal]
        mean = float(row @ self.moments.totals)
        matrix = mirror(self._combined(row - mean * self._whole / self.moments.rows))
        return _product_with(matrix, single)

    def first_moments(self) -> np.ndarray:
        """Label-weighted means of the features, shape (P, n_signals)."""
        return np.asarray((self.coefficients @ self.moments.first).T)

    def _whole_product(self, V: np.ndarray) -> np.ndarray:
        total = np.zeros_like(V, dtype=np.float64)
        for weight, group in zip(self._whole, range(self.moments.n_groups), strict=True):
            if weight:
                total += symmetric_product(self.moments.upper_triangle(group), V)
        return total / self.moments.rows

    def variances(self, V: np.ndarray) -> np.ndarray:
        r"""Variance :math:`v^T \Sigma v` of each column v, shape (k,)."""
        return np.asarray(np.einsum("pk,pk->k", V, self._whole_product(V)))

    def mean(self) -> np.ndarray:
        """Mean of the features, shape (P,)."""
        return np.asarray(self._whole @ self.moments.first / self.moments.rows)

    def total_variance(self) -> float:
        r"""Trace of :math:`\Sigma`."""
        traces = [np.trace(self.moments.upper_triangle(g)) for g in range(self.moments.n_groups)]
        return float(self._whole @ np.array(traces) / self.moments.rows)


class SampleSignals:
    """Signal operators from features in memory, matrix-free: each product is one pass."""

    # Z: features, or a factor R of their kernel G = R R^T, (n, P); weights of each sample in each
    # signal, (n, S); `formed`: form a matrix if many products with it are needed.
    def __init__(self, Z: Any, weights: np.ndarray, *, formed: bool = True) -> None:
        self.Z = Z
        self.weights = weights
        self.formed = formed and Z.shape[1] <= FORMED_SIZE
        self.n_features = Z.shape[1]
        self.n_signals = weights.shape[1]

    def products(self, Q: np.ndarray) -> np.ndarray:
        """Products :math:`C_s Q_s` of all signals; if the blocks differ, their sum, shape (1, P, k)."""
        n = len(self.Z)
        if Q.ndim == 2:
            projected = self.Z @ Q
            return np.stack([self.Z.T @ (w[:, None] * projected) for w in self.weights.T]) / n
        total = sum(w[:, None] * (self.Z @ part) for w, part in zip(self.weights.T, Q, strict=True))
        return (self.Z.T @ total / n)[None]

    def centred(self, signal: int, *, single: bool = False) -> Callable[[np.ndarray], np.ndarray]:
        """Product with one operator of the centred label."""
        if single and not self.formed:
            return side_by_side(self.Z, self.weights[:, [signal]])
        weights = (self.weights[:, signal] - self.weights[:, signal].mean()) / len(self.Z)
        if not self.formed:
            return lambda Q: np.asarray(self.Z.T @ (weights[:, None] * (self.Z @ Q)))
        kind: Any = np.float32 if single else np.float64
        matrix = mirror(weighted_gram(self.Z.astype(kind, copy=False), weights.astype(kind)))
        return _product_with(matrix, single)

    def first_moments(self) -> np.ndarray:
        """Label-weighted means of the features, shape (P, n_signals)."""
        return np.asarray(self.Z.T @ self.weights / len(self.Z))

    def variances(self, V: np.ndarray) -> np.ndarray:
        r"""Variance :math:`v^T \Sigma v` of each column v, shape (k,)."""
        return np.asarray(np.mean((self.Z @ V) ** 2, axis=0))

    def mean(self) -> np.ndarray:
        """Mean of the features, shape (P,)."""
        return np.asarray(self.Z.mean(axis=0))

    def total_variance(self) -> float:
        r"""Trace of :math:`\Sigma`."""
        return float(np.einsum("ij,ij->", self.Z, self.Z) / len(self.Z))


class ClassSignals(SampleSignals):
    """Signal operators of any number of classes, at the cost of two signals."""

    # C_c = sum (1{y = c} - pi_c) z z^T / n   (lofi 4) of features Z, (n, P), and classes from 0, (n,);
    # `whole` is the covariance Sigma of these samples, if known.
    def __init__(
        self, Z: np.ndarray, codes: np.ndarray, n_classes: int, *, whole: np.ndarray | None = None
    ) -> None:
        # Rows are sorted by class, so that the rows of a class are a view and not a copy.
        order = np.argsort(codes, kind="stable")
        counts = np.bincount(codes, minlength=n_classes)
        self.shares = counts / len(codes)
        stops = np.cumsum(counts)
        self._parts = [slice(stop - count, stop) for stop, count in zip(stops, counts, strict=True)]
        indicators = np.zeros((len(codes), n_classes))
        indicators[np.arange(len(codes)), codes[order]] = 1.0
        super().__init__(Z[order], indicators - self.shares)
        if whole is not None:
            self.covariance = whole

    @cached_property
    def covariance(self) -> np.ndarray:
        r"""Covariance :math:`\Sigma`, the mean of :math:`z z^T`, shape (P, P)."""
        return np.asarray(self.Z.T @ self.Z / len(self.Z))

    @cached_property
    def _single_covariance(self) -> np.ndarray:
        return np.asarray(self.covariance, dtype=np.float32)

    def centred(self, signal: int, *, single: bool = False) -> Callable[[np.ndarray], np.ndarray]:
        """Product with one operator; its label has mean zero."""
        if not self.formed:
            return super().centred(signal, single=single)
        kind: Any = np.float32 if single else np.float64
        rows: Any = self.Z[self._parts[signal]].astype(kind, copy=False)
        # NumPy recognises Z^T Z and uses a rank update, which needs half the arithmetic.
        whole = self._single_covariance if single else self.covariance
        matrix = rows.T @ rows  # C_c = Z_c^T Z_c / n - pi_c Sigma
        matrix /= len(self.Z)
        matrix -= kind(self.shares[signal]) * whole
        return _product_with(matrix, single)

    def products(self, Q: np.ndarray) -> np.ndarray:
        """Products :math:`C_c Q_c` of all classes; if the blocks differ, their sum, shape (1, P, k)."""
        n = len(self.Z)
        if Q.ndim == 2:
            parts = np.stack([self.Z[rows].T @ (self.Z[rows] @ Q) for rows in self._parts]) / n
            return np.asarray(parts - self.shares[:, None, None] * parts.sum(axis=0))
        # sum_c C_c Q_c = Z^T (Z_c Q_c, class by class, minus Z sum_c pi_c Q_c) / n.
        projected = np.empty((n, Q.shape[2]))
        for rows, part in zip(self._parts, Q, strict=True):
            np.matmul(self.Z[rows], part, out=projected[rows])
        projected -= self.Z @ np.einsum("c,cpk->pk", self.shares, Q)
        return (self.Z.T @ projected / n)[None]


def side_by_side(Z: Array, weights: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Product with the operators of k labels; each label has equally many columns of the block."""
    # Samples stay on their device; only blocks and their images are copied.
    # q_j -> sum_mu (w_mu,j - mean) z_mu (z_mu . q_j) / n in float32, without forming a matrix, as the
    # largest eigenvalue needs few products per column.
    xp = namespace(Z)
    rows = xp.astype(Z, xp.float32, copy=False)
    centred = as_on((weights - weights.mean(axis=0)) / len(Z), rows)
    # Blocks of 1 MB, which stay in the cache for their second use.
    on_host, width = max(32, 2**18 // Z.shape[1]), Z.shape[1] + 3 * weights.shape[1]
    chunk = rows_per_block(rows, on_host, 4.0 * width)

    def product(Q: np.ndarray) -> np.ndarray:
        narrow = as_on(Q, rows)
        image: Any = 0.0
        for start in range(0, len(rows), chunk):
            part = slice(start, start + chunk)
            projected = rows[part] @ narrow
            projected.reshape(-1, centred.shape[1], Q.shape[1] // centred.shape[1])[:] *= centred[
                part, :, None
            ]
            image = image + xp.astype(projected.T @ rows[part], xp.float64)
        return np.asarray(to_numpy(image).T)

    return product


def centred_products(
    operators: Sequence[SignalOperators], signal: int
) -> list[tuple[Callable[[np.ndarray], np.ndarray], int]]:
    """Products with one signal of several operators, each with its number of draws."""
    shared = [one for one in operators if isinstance(one, SampleSignals) and not one.formed]
    if len(shared) == len(operators) > 0 and all(one.Z is shared[0].Z for one in shared):
        weights = np.column_stack([one.weights[:, signal] for one in shared])
        return [(side_by_side(shared[0].Z, weights), len(shared))]
    return [(one.centred(signal, single=True), 1) for one in operators]


def _product_with(matrix: np.ndarray, single: bool) -> Callable[[np.ndarray], np.ndarray]:
    if not single or len(matrix) <= 64:  # with few features nothing is gained
        return lambda Q: np.asarray(matrix @ Q)
    from scipy.linalg.blas import ssymm, ssymv

    # The transpose of a symmetric matrix is the same matrix in BLAS's column-major order.
    rounded = matrix.astype(np.float32, copy=False).T

    def product(Q: np.ndarray) -> np.ndarray:
        # A product with one column reads only one triangle and takes less than half the time.
        narrow = Q.astype(np.float32)
        image = (
            ssymv(1.0, rounded, narrow[:, 0]) if Q.shape[1] == 1 else ssymm(1.0, rounded, narrow)
        )
        return np.asarray(image, dtype=np.float64).reshape(Q.shape)

    return product
