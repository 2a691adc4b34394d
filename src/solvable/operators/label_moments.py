r"""Label-weighted moments that are summed chunk by chunk, and their operators."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Protocol

import numpy as np

from solvable.errors import InvalidData, MemoryLimitExceeded
from solvable.operators._memory import available_bytes, gigabytes
from solvable.operators._symmetric import mirror, weighted_gram

FORMED_SIZE = 4000
"""Features up to which one operator is formed where many products with it are needed."""


class SignalOperators(Protocol):
    r"""Operators :math:`C_s = \sum_g K_{sg} \sum_{\mu} w_{\mu g}\, z_\mu z_\mu^T / n`, one a signal.

    Attributes
    ----------
    n_features : int
        Columns P of the features.
    n_signals : int
        1 for a real or a two-valued label, the number of classes otherwise.
    """

    n_features: int
    n_signals: int

    def products(self, Q: np.ndarray) -> np.ndarray:
        """:math:`C_s Q_s` of all signals, shape (n_signals, P, k).

        ``Q`` has shape (P, k), the same for all, or (n_signals, P, k).
        """
        ...

    def centred(self, signal: int, *, single: bool = False) -> Callable[[np.ndarray], np.ndarray]:
        """Product with one operator, its label less its mean; maps (P, k) to (P, k).

        ``single`` asks for float32, which halves the time of a product with a few vectors.
        """
        ...

    def first_moments(self) -> np.ndarray:
        """Label-weighted means of the features, shape (P, n_signals)."""
        ...

    def variances(self, V: np.ndarray) -> np.ndarray:
        r""":math:`v^T \Sigma v` of each column, :math:`\Sigma` the mean of :math:`z z^T`, (k,)."""
        ...

    def mean(self) -> np.ndarray:
        """Mean of the features, shape (P,)."""
        ...

    def total_variance(self) -> float:
        r""":math:`\mathrm{tr}\,\Sigma`."""
        ...


class LabelMoments:
    r"""Sums of :math:`w_g`, :math:`w_g z` and :math:`w_g z z^T` over samples, group by group.

    For classes :math:`w_g` is 1 in class g and 0 elsewhere; for a real label there are two groups,
    :math:`w = (1, y)`. Sums are additive: parts of the samples can be summed anywhere, in any
    chunks, and merged; the result is the same to rounding.

    Parameters
    ----------
    n_features : int
        Columns P of the features.
    n_groups : int
        Number of classes, or 2 for a real label.
    classes : bool
        Whether the groups are classes, so that each sample belongs to one.

    Raises
    ------
    MemoryLimitExceeded
        If the sums, :math:`8 G P^2` bytes, do not fit.

    Notes
    -----
    :math:`n P^2` flops for any number of classes, twice that for a real label. float32 features are
    multiplied in float32 and added up in float64.

    Examples
    --------
    >>> Z = np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]])
    >>> whole, part = LabelMoments(2, 2), LabelMoments(2, 2)
    >>> whole.add(Z, np.array([0, 1, 1])).second(1)
    array([[1., 1.],
           [1., 5.]])
    >>> part.add(Z[:1], np.array([0])).merge(LabelMoments(2, 2).add(Z[1:], np.array([1, 1]))).rows
    3
    """

    def __init__(self, n_features: int, n_groups: int, *, classes: bool = True) -> None:
        needed, free = 8.0 * n_groups * n_features**2, available_bytes()
        if needed > free:
            raise MemoryLimitExceeded(
                f"second moments of {n_features} features in {n_groups} groups take "
                f"{gigabytes(needed)}; {gigabytes(free)} are free. Take a smaller width."
            )
        self.n_features = n_features
        self.n_groups = n_groups
        self.classes = classes
        self.rows = 0
        self.totals = np.zeros(n_groups)
        self.first = np.zeros((n_groups, n_features))
        self._second = [np.zeros((n_features, n_features), order="F") for _ in range(n_groups)]

    def add(self, Z: np.ndarray, labels: np.ndarray) -> LabelMoments:
        """Add a chunk of samples.

        Parameters
        ----------
        Z : ndarray of shape (m, P)
            Features, float32 or float64.
        labels : ndarray of shape (m,)
            Class of each sample, 0 to ``n_groups - 1``; or its real label.

        Returns
        -------
        LabelMoments
            Itself.

        Raises
        ------
        InvalidData
            If shapes disagree or features are not finite.
        """
        if Z.ndim != 2 or Z.shape[1] != self.n_features or len(labels) != len(Z):
            raise InvalidData(
                f"features have shape {Z.shape} and labels {labels.shape}; allowed: "
                f"(m, {self.n_features}) and (m,)."
            )
        if self.classes:
            for group in range(self.n_groups):
                chosen = labels == group
                if chosen.any():
                    part = Z if chosen.all() else Z[chosen]
                    self._add(group, part, None)
        else:
            self._add(0, Z, None)
            self._add(1, Z, np.asarray(labels, dtype=np.float64))
        if not np.isfinite(self.first).all():
            raise InvalidData(
                "the features are NaN or infinite, so the samples are; allowed: finite numbers."
            )
        self.rows += len(Z)
        return self

    def _add(self, group: int, Z: np.ndarray, weights: np.ndarray | None) -> None:
        if weights is None:
            self.totals[group] += len(Z)
            self.first[group] += Z.sum(axis=0, dtype=np.float64)
            _rank_update(self._second[group], Z, 1.0)
            return
        self.totals[group] += weights.sum()
        self.first[group] += weights @ Z
        size = np.sqrt(np.abs(weights)).astype(Z.dtype)
        for sign in (1.0, -1.0):
            chosen = np.sign(weights) == sign
            if chosen.any():
                _rank_update(self._second[group], Z[chosen] * size[chosen, None], sign)

    def merge(self, other: LabelMoments) -> LabelMoments:
        """Add the sums of other samples.

        Parameters
        ----------
        other : LabelMoments
            Of the same features and groups.

        Returns
        -------
        LabelMoments
            Itself.

        Raises
        ------
        InvalidData
            If the two are not of the same kind.
        """
        kinds = [(one.n_features, one.n_groups, one.classes) for one in (self, other)]
        if kinds[0] != kinds[1]:
            raise InvalidData(
                f"moments of (features, groups, classes) {kinds[1]} cannot be added to {kinds[0]}."
            )
        self.rows += other.rows
        self.totals += other.totals
        self.first += other.first
        for mine, theirs in zip(self._second, other._second, strict=True):
            mine += theirs
        return self

    def second(self, group: int) -> np.ndarray:
        """Sum of :math:`w_g z z^T`, shape (P, P); a copy."""
        return mirror(self._second[group].copy(order="F"))

    def upper_triangle(self, group: int) -> np.ndarray:
        """Sum of :math:`w_g z z^T` in column order; only its upper triangle is filled."""
        return self._second[group]

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Plain arrays that :meth:`from_arrays` reads back, to be stored or sent.

        Returns
        -------
        dict of str to ndarray
            ``rows``, ``classes``, ``totals``, ``first``, ``second``.
        """
        return {
            "rows": np.array(self.rows),
            "classes": np.array(self.classes),
            "totals": self.totals,
            "first": self.first,
            "second": np.stack([one.T for one in self._second]),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> LabelMoments:
        """Moments from the arrays of :meth:`to_arrays`.

        Parameters
        ----------
        arrays : mapping of str to ndarray
            As stored.

        Returns
        -------
        LabelMoments
            The same sums, bit by bit.

        Raises
        ------
        InvalidData
            If arrays are missing or of the wrong shape.
        """
        missing = {"rows", "classes", "totals", "first", "second"} - set(arrays)
        if missing:
            raise InvalidData(f"stored moments lack {', '.join(sorted(missing))}.")
        groups, width = arrays["first"].shape
        if arrays["second"].shape != (groups, width, width) or arrays["totals"].shape != (groups,):
            raise InvalidData(
                f"stored moments have shapes {arrays['first'].shape} and {arrays['second'].shape}; "
                "allowed: (G, P) and (G, P, P)."
            )
        found = cls(width, groups, classes=bool(arrays["classes"]))
        found.rows = int(arrays["rows"])
        found.totals = np.array(arrays["totals"], dtype=np.float64)
        found.first = np.array(arrays["first"], dtype=np.float64)
        found._second = [np.asfortranarray(one.T) for one in arrays["second"]]
        return found


class MomentSignals:
    r"""Signal operators of summed moments.

    Parameters
    ----------
    moments : LabelMoments
        Sums.
    coefficients : ndarray of shape (S, G)
        :math:`K_{sg}`: how each signal combines the groups.

    Examples
    --------
    >>> moments = LabelMoments(2, 2).add(np.eye(2), np.array([0, 1]))
    >>> MomentSignals(moments, np.array([[-1.0, 1.0]])).products(np.eye(2))[0]
    array([[-0.5,  0. ],
           [ 0. ,  0.5]])
    """

    def __init__(self, moments: LabelMoments, coefficients: np.ndarray) -> None:
        self.moments = moments
        self.coefficients = coefficients / moments.rows
        self.n_features = moments.n_features
        self.n_signals = len(coefficients)
        # With one group for all samples (real label) the first is the whole.
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
        """:math:`C_s Q_s` of all signals, shape (n_signals, P, k)."""
        if self._single is not None:
            return _symmetric_product(self._single, Q[0] if Q.ndim == 3 else Q)[None]
        shared = Q.ndim == 2
        groups = self.moments.n_groups
        if shared:
            parts = np.stack(
                [_symmetric_product(self.moments.upper_triangle(g), Q) for g in range(groups)]
            )
            return np.einsum("sg,gpk->spk", self.coefficients, parts, optimize=True)
        mixed = np.einsum("sg,spk->gpk", self.coefficients, Q, optimize=True)
        parts = np.stack(
            [_symmetric_product(self.moments.upper_triangle(g), mixed[g]) for g in range(groups)]
        )
        # Only the sum over signals of C_s Q_s is ever used for blocks that differ.
        return parts.sum(axis=0)[None]

    def centred(self, signal: int, *, single: bool = False) -> Callable[[np.ndarray], np.ndarray]:
        """Product with one operator, its label less its mean; holds the matrix, 8 P^2 bytes."""
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
                total += _symmetric_product(self.moments.upper_triangle(group), V)
        return total / self.moments.rows

    def variances(self, V: np.ndarray) -> np.ndarray:
        r""":math:`v^T \Sigma v` of each column, (k,)."""
        return np.asarray(np.einsum("pk,pk->k", V, self._whole_product(V)))

    def mean(self) -> np.ndarray:
        """Mean of the features, shape (P,)."""
        return np.asarray(self._whole @ self.moments.first / self.moments.rows)

    def total_variance(self) -> float:
        r""":math:`\mathrm{tr}\,\Sigma`."""
        traces = [np.trace(self.moments.upper_triangle(g)) for g in range(self.moments.n_groups)]
        return float(self._whole @ np.array(traces) / self.moments.rows)


class SampleSignals:
    r"""Signal operators of features held in memory, never formed: one pass a product.

    Parameters
    ----------
    Z : ndarray of shape (n, P)
        Features, or a factor R of their kernel :math:`G = R R^T`.
    weights : ndarray of shape (n, S)
        Weight of each sample in each signal.

    Examples
    --------
    >>> SampleSignals(np.eye(2), np.array([[-1.0], [1.0]])).products(np.eye(2))[0]
    array([[-0.5,  0. ],
           [ 0. ,  0.5]])
    """

    def __init__(self, Z: np.ndarray, weights: np.ndarray) -> None:
        self.Z = Z
        self.weights = weights
        self.n_features = Z.shape[1]
        self.n_signals = weights.shape[1]

    def products(self, Q: np.ndarray) -> np.ndarray:
        """:math:`C_s Q_s` of all signals; their sum, shape (1, P, k), if the blocks differ."""
        n = len(self.Z)
        if Q.ndim == 2:
            projected = self.Z @ Q
            return np.stack([self.Z.T @ (w[:, None] * projected) for w in self.weights.T]) / n
        total = sum(w[:, None] * (self.Z @ one) for w, one in zip(self.weights.T, Q, strict=True))
        return (self.Z.T @ total / n)[None]

    def centred(self, signal: int, *, single: bool = False) -> Callable[[np.ndarray], np.ndarray]:
        """Product with one operator, its label less its mean."""
        weights = (self.weights[:, signal] - self.weights[:, signal].mean()) / len(self.Z)
        if self.n_features > FORMED_SIZE:
            return lambda Q: np.asarray(self.Z.T @ (weights[:, None] * (self.Z @ Q)))
        matrix = mirror(weighted_gram(self.Z, weights))
        return _product_with(matrix, single)

    def first_moments(self) -> np.ndarray:
        """Label-weighted means of the features, shape (P, n_signals)."""
        return np.asarray(self.Z.T @ self.weights / len(self.Z))

    def variances(self, V: np.ndarray) -> np.ndarray:
        r""":math:`v^T \Sigma v` of each column, (k,)."""
        return np.asarray(np.mean((self.Z @ V) ** 2, axis=0))

    def mean(self) -> np.ndarray:
        """Mean of the features, shape (P,)."""
        return np.asarray(self.Z.mean(axis=0))

    def total_variance(self) -> float:
        r""":math:`\mathrm{tr}\,\Sigma`."""
        return float(np.einsum("ij,ij->", self.Z, self.Z) / len(self.Z))


class ClassSignals(SampleSignals):
    r"""Signal operators :math:`C_c = \sum (1\{y = c\} - \pi_c)\, z z^T / n` of many classes.

    The same as :class:`SampleSignals`, at the cost of two signals for any number of classes.

    Parameters
    ----------
    Z : ndarray of shape (n, P)
        Features.
    codes : ndarray of int, shape (n,)
        Classes from 0.
    n_classes : int
        Their number.
    whole : ndarray of shape (P, P), optional
        :attr:`covariance` of the same samples in any order, if it is known.

    Examples
    --------
    >>> ClassSignals(np.eye(2), np.array([0, 1]), 2).products(np.eye(2))[1]
    array([[-0.25,  0.  ],
           [ 0.  ,  0.25]])
    """

    def __init__(
        self, Z: np.ndarray, codes: np.ndarray, n_classes: int, *, whole: np.ndarray | None = None
    ) -> None:
        # Rows of a class side by side are views, not copies, in every product.
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
        r""":math:`\Sigma`, the mean of :math:`z z^T`, shape (P, P)."""
        return np.asarray(self.Z.T @ self.Z / len(self.Z))

    def centred(self, signal: int, *, single: bool = False) -> Callable[[np.ndarray], np.ndarray]:
        """Product with one operator; its label has mean zero as it is."""
        if self.n_features > FORMED_SIZE:
            return super().centred(signal, single=single)
        rows = self.Z[self._parts[signal]]
        # NumPy sees the transpose and takes a rank update, half the arithmetic.
        matrix = rows.T @ rows
        matrix /= len(self.Z)
        matrix -= self.shares[signal] * self.covariance
        return _product_with(matrix, single)

    def products(self, Q: np.ndarray) -> np.ndarray:
        """:math:`C_c Q_c` of all classes; their sum, shape (1, P, k), if the blocks differ."""
        n = len(self.Z)
        if Q.ndim == 2:
            parts = np.stack([self.Z[rows].T @ (self.Z[rows] @ Q) for rows in self._parts]) / n
            return np.asarray(parts - self.shares[:, None, None] * parts.sum(axis=0))
        own = np.empty((n, Q.shape[2]))
        for rows, one in zip(self._parts, Q, strict=True):
            np.matmul(self.Z[rows], one, out=own[rows])
        own -= self.Z @ np.einsum("c,cpk->pk", self.shares, Q)
        return (self.Z.T @ own / n)[None]


def _product_with(matrix: np.ndarray, single: bool) -> Callable[[np.ndarray], np.ndarray]:
    if not single:
        return lambda Q: np.asarray(matrix @ Q)
    rounded = matrix.astype(np.float32)
    return lambda Q: np.asarray(rounded @ Q.astype(np.float32), dtype=np.float64)


def _rank_update(upper: np.ndarray, Z: np.ndarray, sign: float) -> None:
    """Add sign * Z^T Z to the upper triangle, in place."""
    from scipy.linalg.blas import dsyrk, ssyrk

    if Z.dtype == np.float32:
        upper += ssyrk(sign, np.ascontiguousarray(Z).T)
        return
    # syrk overwrites its argument only in column order and float64, which upper always is.
    dsyrk(sign, np.ascontiguousarray(Z, dtype=np.float64).T, beta=1.0, c=upper, overwrite_c=1)


def _symmetric_product(upper: np.ndarray, Q: np.ndarray) -> np.ndarray:
    """Product with a symmetric matrix of which the upper triangle is filled."""
    from scipy.linalg.blas import dsymm

    return np.asarray(dsymm(1.0, upper, np.asfortranarray(Q), lower=0))
