r"""Ridge readouts whose penalty is chosen by leave-one-out or by generalised cross-validation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal, TypeAlias

import numpy as np

from solvable.errors import InvalidData, InvalidParameter
from solvable.operators._symmetric import rank_update

Regularisation: TypeAlias = float | Literal["leave-one-out"]
"""A penalty relative to the mean power of the features, or the choice by leave-one-out."""

GRID = np.logspace(-7, 6, 53)
"""Penalties tried first, relative to the mean squared norm of the centred features."""

FINE = np.logspace(-0.25, 0.25, 11)
"""Factors tried around the best of them."""

LEAST_FREEDOM = 0.05
"""Residual degrees of freedom, as a part of n, below which the criteria mean nothing."""


@dataclass(frozen=True)
class RidgeFit:
    """A fitted ridge.

    Parameters
    ----------
    coefficients : ndarray of shape (P, C) or (n, C)
        Primal or dual weights.
    intercept : ndarray of shape (C,)
        Constant.
    penalty : float
        Chosen penalty of the sum of squares, in the units of the squared features.
    criterion : float
        Mean squared leave-one-out (or generalised cross-validation) error, summed over outputs. It
        knows nothing of filters that have seen the labels, so it is no estimate of generalisation.
    degrees_of_freedom : float
        Trace of the smoother, the constant included.
    """

    coefficients: np.ndarray
    intercept: np.ndarray
    penalty: float
    criterion: float
    degrees_of_freedom: float


def kernel_ridge(
    kernel: np.ndarray, Y: np.ndarray, *, regularisation: Regularisation = "leave-one-out"
) -> RidgeFit:
    r"""Kernel ridge with an unpenalised intercept.

    .. math:: \hat y = \bar y + K_c (K_c + \alpha)^{-1} (y - \bar y), \qquad
        \mathrm{LOO}(\alpha) = \frac1n \sum_i
        \Big(\frac{y_i - \hat y_i}{1 - S_{ii} - 1/n}\Big)^2,

    with :math:`K_c` the doubly centred kernel and :math:`S = K_c (K_c + \alpha)^{-1}`; the second is
    exact.

    Parameters
    ----------
    kernel : ndarray of shape (n, n)
        Positive semi-definite.
    Y : ndarray of shape (n, C)
        Targets.
    regularisation : float or "leave-one-out"
        Penalty relative to the mean diagonal of :math:`K_c`, or its choice.

    Returns
    -------
    RidgeFit
        Dual weights: :math:`f(x) = k(x, X)\,\mathrm{coefficients} + \mathrm{intercept}`.

    Raises
    ------
    InvalidParameter
        If the penalty is negative.

    Notes
    -----
    One eigendecomposition, about :math:`10 n^3` flops, serves all penalties. Penalties that leave
    less than :data:`LEAST_FREEDOM` of the degrees of freedom are not considered: near interpolation
    the criterion has a spurious minimum. ``tests/fitting/test_ridge.py`` refits without
    each sample in turn.

    Examples
    --------
    >>> x = np.linspace(-1, 1, 8)[:, None]
    >>> fit = kernel_ridge(x @ x.T, 2 * x + 1, regularisation=1e-9)
    >>> (x[:1] @ x.T @ fit.coefficients + fit.intercept).round(3)
    array([[-1.]])
    """
    n = len(kernel)
    mean_row = kernel.mean(axis=0)
    centred = kernel - mean_row - mean_row[:, None] + mean_row.mean()
    values, vectors = np.linalg.eigh((centred + centred.T) / 2)
    # What is left of the constant mode is rounding, which no penalty of zero may invert.
    values = np.where(values > n * np.finfo(float).eps * values[-1], values, 0.0)
    power = float(values.sum()) / n
    centre = Y.mean(axis=0)
    projected = vectors.T @ (Y - centre)
    squares = vectors**2

    def criterion(penalty: float) -> tuple[float, float]:
        shrunk = np.divide(values, values + penalty, out=np.zeros(n), where=values + penalty > 0)
        free = 1 - squares @ shrunk - 1 / n
        freedom = 1 + float(shrunk.sum())
        residual = (vectors @ ((1 - shrunk)[:, None] * projected)) / np.maximum(free, 1e-12)[
            :, None
        ]
        return float(np.sum(residual**2) / n), freedom

    penalty = _penalty(regularisation, power, criterion, n)
    error, freedom = criterion(penalty)
    inverse = np.divide(1.0, values + penalty, out=np.zeros(n), where=values + penalty > 0)
    dual = vectors @ (inverse[:, None] * projected)
    dual -= dual.mean(axis=0)
    # Centring the cross kernel with the training means only shifts the outputs by a constant.
    return RidgeFit(dual, centre - mean_row @ dual, penalty, error, freedom)


class ReadoutMoments:
    r"""Sums that a ridge on explicit features needs, summed chunk by chunk and merged.

    Parameters
    ----------
    n_features, n_outputs : int
        P and C.

    Examples
    --------
    >>> Z, Y = np.eye(3), np.ones((3, 1))
    >>> ReadoutMoments(3, 1).add(Z, Y).rows
    3
    """

    _NAMES = ("rows", "features", "targets", "gram", "cross", "powers")

    def __init__(self, n_features: int, n_outputs: int) -> None:
        self.rows = 0
        self.features = np.zeros(n_features)
        self.targets = np.zeros(n_outputs)
        self.gram = np.zeros((n_features, n_features), order="F")
        self.cross = np.zeros((n_features, n_outputs))
        self.powers = np.zeros(n_outputs)

    def add(self, Z: np.ndarray, Y: np.ndarray) -> ReadoutMoments:
        """Add a chunk.

        Parameters
        ----------
        Z : ndarray of shape (m, P)
            Features.
        Y : ndarray of shape (m, C)
            Targets.

        Returns
        -------
        ReadoutMoments
            Itself.
        """
        self.rows += len(Z)
        self.features += Z.sum(axis=0, dtype=np.float64)
        self.targets += Y.sum(axis=0)
        rank_update(self.gram, Z, 1.0)
        self.cross += Z.T @ Y.astype(Z.dtype, copy=False)
        self.powers += np.sum(Y * Y, axis=0)
        return self

    def merge(self, other: ReadoutMoments) -> ReadoutMoments:
        """Add the sums of other samples.

        Parameters
        ----------
        other : ReadoutMoments
            Of the same sizes.

        Returns
        -------
        ReadoutMoments
            Itself.
        """
        if self.cross.shape != other.cross.shape:
            raise InvalidData(
                f"sums of shape {other.cross.shape} cannot be added to {self.cross.shape}."
            )
        for name in self._NAMES:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        return self

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Plain arrays that :meth:`from_arrays` reads back."""
        arrays = {name: np.asarray(getattr(self, name)) for name in self._NAMES}
        return arrays | {"gram": self.gram.T}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> ReadoutMoments:
        """Sums from the arrays of :meth:`to_arrays`.

        Parameters
        ----------
        arrays : mapping of str to ndarray
            As stored.

        Returns
        -------
        ReadoutMoments
            The same sums, bit by bit.
        """
        missing = set(cls._NAMES) - set(arrays)
        if missing:
            raise InvalidData(f"stored sums lack {', '.join(sorted(missing))}.")
        found = cls(*arrays["cross"].shape)
        for name in cls._NAMES:
            setattr(found, name, np.array(arrays[name], dtype=np.float64))
        found.rows = int(arrays["rows"])
        found.gram = np.asfortranarray(arrays["gram"].T)
        return found

    def solve(self, *, regularisation: Regularisation = "leave-one-out") -> RidgeFit:
        r"""Ridge with an unpenalised intercept, its penalty by generalised cross-validation.

        .. math:: \mathrm{GCV}(\alpha) = \frac{n\,\mathrm{RSS}(\alpha)}{(n - \mathrm{df})^2},
            \quad \mathrm{df} = 1 + \sum_i \frac{\lambda_i}{\lambda_i + \alpha},
            \quad \mathrm{RSS} = \sum_c \|y_c\|^2 - \sum_i e_i
            \frac{\lambda_i + 2\alpha}{(\lambda_i + \alpha)^2} .

        Parameters
        ----------
        regularisation : float or "leave-one-out"
            Penalty relative to the mean squared norm of the centred features, or its choice; by
            generalised cross-validation here, as single samples are gone.

        Returns
        -------
        RidgeFit
            Primal weights.
        """
        n = self.rows
        mean, centre = self.features / n, self.targets / n
        cross = self.cross - n * np.outer(mean, centre)
        total = float(np.sum(self.powers - n * centre**2))
        ridge = _Tridiagonal(self._centred_gram(mean), cross)
        power = ridge.trace / n

        def criterion(penalty: float) -> tuple[float, float]:
            gain, freedom = ridge.gain(penalty)
            residual = max(total - gain, 0.0)
            return n * residual / max(n - 1 - freedom, 1e-12) ** 2, 1 + freedom

        penalty = _penalty(regularisation, power, criterion, n)
        error, freedom = criterion(penalty)
        weights = ridge.weights(penalty)
        return RidgeFit(weights, centre - mean @ weights, penalty, error, freedom)

    def _centred_gram(self, mean: np.ndarray) -> np.ndarray:
        """Gram matrix of the features less their means; lower triangle, in column order."""
        from scipy.linalg.blas import dsyr

        lower = np.array(self.gram.T, order="F")
        return np.asarray(dsyr(-float(self.rows), mean, lower=1, a=lower, overwrite_a=1))


class _Tridiagonal:
    r"""A ridge problem after :math:`A = Q T Q^T`: cheap at every penalty.

    The reduction costs :math:`4 P^3 / 3` flops, less than half of an eigendecomposition, and no
    eigenvector is needed: a penalty costs O(P).
    """

    def __init__(self, lower: np.ndarray, cross: np.ndarray) -> None:
        from scipy.linalg import eigvalsh_tridiagonal
        from scipy.linalg.lapack import dsytrd, dsytrd_lwork

        self.trace = float(np.trace(lower))
        size = len(lower)
        space = int(dsytrd_lwork(size, lower=1)[0])
        # The lower variant leaves its reflectors where those of a QR decomposition are.
        reflectors, diagonal, beside, self._tau, _ = dsytrd(
            lower, lower=1, lwork=space, overwrite_a=1
        )
        self._reflectors = np.asfortranarray(reflectors[1:, :-1])
        self._bands = np.zeros((2, size))
        self._bands[0] = diagonal
        self._bands[1, :-1] = beside
        self._cross = self._turned(cross, "T")
        values = eigvalsh_tridiagonal(diagonal, beside) if size > 1 else diagonal
        self._values = np.maximum(values, 0.0)
        # Below this a penalty is rounding, which is larger if features were summed in float32.
        rounding = 1e-15 * max(float(self._values.max(initial=0.0)), 1e-300) * size
        self._least = max(rounding, -2 * float(values.min(initial=0.0)))

    def _turned(self, columns: np.ndarray, transposed: str) -> np.ndarray:
        """Q^T or Q times columns; Q leaves the first coordinate alone."""
        from scipy.linalg.lapack import dormqr

        turned = np.array(columns, dtype=np.float64, order="F")
        if len(turned) > 1:
            space = max(1, 64 * columns.shape[1])
            turned[1:] = dormqr("L", transposed, self._reflectors, self._tau, turned[1:], space)[0]
        return turned

    def _solved(self, penalty: float) -> np.ndarray:
        from scipy.linalg import solveh_banded

        bands = self._bands.copy()
        bands[0] += max(penalty, self._least)
        if bands.shape[1] == 1:
            return np.asarray(self._cross / bands[0])
        return np.asarray(solveh_banded(bands, self._cross, lower=True, check_finite=False))

    def gain(self, penalty: float) -> tuple[float, float]:
        """Decrease of the sum of squares, and degrees of freedom."""
        solved = self._solved(penalty)
        used = max(penalty, self._least)
        gain = float(np.sum(self._cross * solved) + used * np.sum(solved**2))
        return gain, float(np.sum(self._values / (self._values + used)))

    def weights(self, penalty: float) -> np.ndarray:
        """Primal weights."""
        return self._turned(self._solved(penalty), "N")


def _penalty(
    regularisation: Regularisation,
    power: float,
    criterion: Callable[[float], tuple[float, float]],
    n: int,
) -> float:
    if regularisation != "leave-one-out":
        given: Any = regularisation
        number = float(given) if isinstance(given, Real) else np.nan
        if not 0 <= number < np.inf:
            raise InvalidParameter(
                f"regularisation is {regularisation!r}; allowed: a finite number of at least 0, or "
                "'leave-one-out'."
            )
        return number * power
    if not power:
        return 1.0
    best, chosen = np.inf, GRID[-1] * power

    def look(penalties: np.ndarray) -> None:
        nonlocal best, chosen
        for penalty in penalties:
            error, freedom = criterion(float(penalty))
            if n - freedom >= LEAST_FREEDOM * n and error < best:
                best, chosen = error, float(penalty)

    look(GRID * power)
    look(chosen * FINE)
    return float(chosen)
