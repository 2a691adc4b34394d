r"""Ridge readouts whose penalty is chosen by leave-one-out or by generalised cross-validation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from solvable.errors import InvalidData, InvalidParameter
from solvable.operators._symmetric import mirror
from solvable.operators.label_moments import _rank_update

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
    the criterion has a spurious minimum. ``tests/learners/test_ridge_readout.py`` refits without
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
    values = np.maximum(values, 0.0)
    power = float(values.sum()) / n
    centre = Y.mean(axis=0)
    projected = vectors.T @ (Y - centre)
    squares = vectors**2

    def criterion(penalty: float) -> tuple[float, float]:
        shrunk = values / (values + penalty)
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
        _rank_update(self.gram, Z, 1.0)
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
        gram = mirror(self.gram.copy(order="F")) - n * np.outer(mean, mean)
        cross = self.cross - n * np.outer(mean, centre)
        total = float(np.sum(self.powers - n * centre**2))
        from scipy.linalg import eigh

        values, vectors = eigh(gram, check_finite=False)
        values = np.maximum(values, 0.0)
        projected = vectors.T @ cross
        strengths = np.sum(projected**2, axis=1)
        power = float(values.sum()) / n

        def criterion(penalty: float) -> tuple[float, float]:
            # Directions without power have no covariance with the targets either.
            gain = np.divide(
                strengths * (values + 2 * penalty),
                (values + penalty) ** 2,
                out=np.zeros_like(values),
                where=values + penalty > 0,
            )
            freedom = 1 + float(np.sum(values / (values + penalty)))
            residual = max(total - float(gain.sum()), 0.0)
            return n * residual / max(n - freedom, 1e-12) ** 2, freedom

        penalty = _penalty(regularisation, power, criterion, n)
        error, freedom = criterion(penalty)
        inverse = np.divide(
            1.0, values + penalty, out=np.zeros_like(values), where=values + penalty > 0
        )
        weights = vectors @ (inverse[:, None] * projected)
        return RidgeFit(weights, centre - mean @ weights, penalty, error, freedom)


def _penalty(
    regularisation: Regularisation,
    power: float,
    criterion: Callable[[float], tuple[float, float]],
    n: int,
) -> float:
    if regularisation != "leave-one-out":
        number = None if isinstance(regularisation, str) else float(regularisation)
        if number is None or not 0 <= number < np.inf:
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
