r"""Ridge readouts with a penalty chosen by leave-one-out or generalised cross-validation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal, TypeAlias

import numpy as np

from solvable.arrays import Array, as_on, clipped, is_tensor, namespace, random_stream, to_numpy
from solvable.errors import InvalidData, InvalidParameter
from solvable.operators._symmetric import mirror, rank_update

Regularisation: TypeAlias = float | Literal["leave-one-out"]
"""Penalty relative to the features' mean power, or the option to choose it by leave-one-out."""

GRID = np.logspace(-7, 6, 53)
"""First grid of penalties, relative to the mean squared norm of the centred features."""

TUNING_ROWS = 700
"""Largest number of rows for choosing a kernel's penalty; a larger kernel gives a random subset."""

LEAST_FREEDOM = 0.05
"""Smallest residual degrees of freedom, divided by n, at which the criteria are used."""


@dataclass(frozen=True)
class RidgeFit:
    """Fitted ridge regression."""

    coefficients: np.ndarray  # primal weights (P, C), or dual weights (n, C)
    intercept: np.ndarray  # constant term of each output, shape (C,)
    penalty: float  # penalty in the units of the squared features
    # Mean squared leave-one-out (or generalised cross-validation) error, summed over outputs. It is too
    # low as an estimate of the test error if the features were selected by the labels.
    criterion: float
    degrees_of_freedom: float  # trace of the smoothing matrix, including the constant


def kernel_ridge(
    kernel: Array, Y: np.ndarray, *, regularisation: Regularisation = "leave-one-out"
) -> RidgeFit:
    """Fit kernel ridge with a free intercept: f(x) = k(x, X) coefficients + intercept."""
    # The kernel stays on its device; only arrays as large as the labels are copied to the host.
    xp = namespace(kernel)
    n = len(kernel)
    mean_row = xp.mean(kernel, axis=0)
    centred = kernel - mean_row - mean_row[:, None] + xp.mean(mean_row)
    centre = Y.mean(axis=0)
    targets = as_on(Y - centre, kernel)
    if n > TUNING_ROWS and regularisation == "leave-one-out":
        # The best penalty estimates a noise variance, so a penalty chosen on some rows suits all rows.
        rows = np.sort(random_stream("rows of the penalty", n).permutation(n)[:TUNING_ROWS])
        some = as_on(rows, kernel)
        part = xp.take(xp.take(kernel, some, axis=0), some, axis=1)
        penalty = kernel_ridge(part, Y[rows]).penalty
        dual, error, freedom = _by_inverse(centred, targets, penalty)
    else:
        dual, penalty, error, freedom = _by_spectrum(centred, targets, regularisation)
    dual = dual - xp.mean(dual, axis=0)
    # Centring of the cross kernel by the training means shifts the outputs by a constant.
    intercept = centre - to_numpy(mean_row @ dual)
    return RidgeFit(to_numpy(dual), intercept, penalty, error, freedom)


def _by_spectrum(
    centred: Array, targets: Array, regularisation: Regularisation
) -> tuple[Array, float, float, float]:
    """Compute dual weights, penalty, criterion and freedom, in about 10 n³ flops for all penalties."""
    xp = namespace(centred)
    n = len(centred)
    values, vectors = xp.linalg.eigh((centred + centred.T) / 2)
    # The constant mode is zero up to rounding, and must not be inverted at a penalty of zero.
    least = n * float(np.finfo(float).eps) * float(values[-1])
    values = xp.where(values > least, values, xp.zeros_like(values))
    power = float(xp.sum(values)) / n
    projected = vectors.T @ targets
    squares = vectors**2

    powers = xp.sum(projected**2, axis=1)

    def over(numerator: Array, penalties: Array) -> Array:
        whole = values[:, None] + penalties
        return xp.where(whole > 0, numerator / xp.where(whole > 0, whole, xp.ones_like(whole)), 0.0)

    def left_out(kept: Array) -> Array:
        # With S = K_c (K_c + alpha)^-1 the leave-one-out error is exactly
        # LOO(alpha) = (1/n) sum ((y_i - yhat_i) / (1 - S_ii - 1/n))².
        free = 1 - squares @ kept - 1 / n
        parts = (1 - kept)[:, :, None] * projected[:, None, :]
        residual = xp.reshape(vectors @ xp.reshape(parts, (n, -1)), parts.shape)
        return _left_out(residual, free[:, :, None])

    def criterion(penalties: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        smoother = over(values[:, None], as_on(penalties, centred))
        freedom = 1 + xp.sum(smoother, axis=0)
        if not isinstance(centred, np.ndarray):  # one copy from the device for all penalties
            both = to_numpy(xp.stack([left_out(smoother), freedom]))
            return both[0], both[1]
        # The training error is a lower bound of the leave-one-out error. Errors are computed eight at a
        # time, in the order of generalised cross-validation, until all other bounds are above the
        # smallest error.
        bounds = powers @ (1 - smoother) ** 2 / n
        guess = bounds / np.maximum(1 - freedom / n, 1e-12) ** 2
        errors = np.full(len(penalties), np.inf)
        wanted = np.argsort(guess, kind="stable")
        wanted = wanted[n - freedom[wanted] >= LEAST_FREEDOM * n] if len(wanted) > 1 else wanted
        while len(wanted):
            now, wanted = wanted[:8], wanted[8:]
            errors[now] = left_out(smoother[:, now])
            wanted = wanted[bounds[wanted] < errors.min()]
        return errors, freedom

    penalty = _penalty(regularisation, power, criterion, n)
    (error,), (freedom,) = criterion(np.array([penalty]))
    inverse = over(xp.ones_like(values)[:, None], as_on(np.array([penalty]), centred))
    return vectors @ (inverse * projected), penalty, float(error), float(freedom)


def _by_inverse(centred: Array, targets: Array, penalty: float) -> tuple[Array, float, float]:
    """Compute dual weights, criterion and freedom at one penalty, in n³ flops."""
    xp = namespace(centred)
    n = len(centred)
    inverse = _inverse(centred + penalty * as_on(np.eye(n), centred))
    dual = inverse @ targets
    # 1 - S = alpha (K_c + alpha)^-1
    kept = penalty * xp.linalg.diagonal(inverse)
    left_out = _left_out((penalty * dual)[:, None, :], (kept - 1 / n)[:, None, None])
    return dual, float(left_out[0]), 1 + n - float(xp.sum(kept))


def _left_out(residual: Array, free: Array) -> Array:
    """Compute mean squared leave-one-out errors (m,) from residuals (n, m, C) and 1 - S_ii - 1/n."""
    xp = namespace(residual)
    return xp.sum((residual / clipped(free, 1e-12)) ** 2, axis=(0, 2)) / len(residual)


def _inverse(positive: Array) -> Array:
    """Invert a positive definite matrix, by Cholesky for NumPy arrays."""
    if not isinstance(positive, np.ndarray):
        return namespace(positive).linalg.inv(positive)
    from scipy.linalg.lapack import dpotrf, dpotri

    factor, failed = dpotrf(np.asfortranarray(positive), lower=0, overwrite_a=1)
    if failed:
        return np.linalg.inv(positive)
    return mirror(dpotri(factor, lower=0, overwrite_c=1)[0])


class ReadoutMoments:
    """Sums over samples for a ridge on explicit features; sums grow by chunks and can be merged."""

    _NAMES = ("rows", "features", "targets", "gram", "cross", "powers")

    def __init__(self, n_features: int, n_outputs: int) -> None:
        self.rows = 0
        self.features = np.zeros(n_features)
        self.targets = np.zeros(n_outputs)
        self.gram = np.zeros((n_features, n_features), order="F")
        self.cross = np.zeros((n_features, n_outputs))
        self.powers = np.zeros(n_outputs)

    def add(self, Z: Array, Y: np.ndarray) -> ReadoutMoments:
        """Add a chunk of features (m, P) and targets (m, C); tensors are summed on their device."""
        xp = namespace(Z)
        if is_tensor(Z) and not is_tensor(self.gram):
            wide = xp.astype(Z[:1], xp.float64)
            for name in ("features", "gram", "cross"):
                setattr(self, name, as_on(getattr(self, name), wide))
        self.rows += len(Z)
        self.features += xp.sum(Z, axis=0, dtype=xp.float64)
        self.targets += Y.sum(axis=0)
        rank_update(self.gram, Z, 1.0)
        self.cross += xp.astype(Z.T @ as_on(Y, Z), xp.float64, copy=False)
        self.powers += np.sum(Y * Y, axis=0)
        return self

    def _fetch(self) -> None:
        """Copy the sums to the host."""
        if is_tensor(self.gram):
            self.features, self.cross = to_numpy(self.features), to_numpy(self.cross)
            self.gram = np.asfortranarray(to_numpy(self.gram))

    def merge(self, other: ReadoutMoments) -> ReadoutMoments:
        """Add the sums of other samples."""
        if self.cross.shape != other.cross.shape:
            raise InvalidData(
                f"sums of shape {other.cross.shape} cannot be added to sums of shape "
                f"{self.cross.shape}; allowed: equal shapes."
            )
        self._fetch()
        other._fetch()
        for name in self._NAMES:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        return self

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return arrays that :meth:`from_arrays` reads."""
        self._fetch()
        arrays = {name: np.asarray(getattr(self, name)) for name in self._NAMES}
        return arrays | {"gram": self.gram.T}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> ReadoutMoments:
        """Return the sums from the arrays of :meth:`to_arrays`."""
        missing = set(cls._NAMES) - set(arrays)
        if missing:
            raise InvalidData(f"stored sums lack {', '.join(sorted(missing))}. Fit again.")
        sums = cls(*arrays["cross"].shape)
        for name in cls._NAMES:
            setattr(sums, name, np.array(arrays[name], dtype=np.float64))
        sums.rows = int(arrays["rows"])
        sums.gram = np.asfortranarray(arrays["gram"].T)
        return sums

    def solve(self, *, regularisation: Regularisation = "leave-one-out") -> RidgeFit:
        """Fit a ridge with a free intercept; the penalty is chosen by generalised cross-validation."""
        self._fetch()
        n = self.rows
        mean, centre = self.features / n, self.targets / n
        cross = self.cross - n * np.outer(mean, centre)
        total = float(np.sum(self.powers - n * centre**2))
        ridge = _Tridiagonal(self._centred_gram(mean), cross)
        power = ridge.trace / n

        def criterion(penalties: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            # GCV(alpha) = n RSS / (n - 1 - df)². Leave-one-out would need the samples themselves.
            gain, freedom = np.transpose([ridge.gain(float(penalty)) for penalty in penalties])
            residual = np.maximum(total - gain, 0.0)
            return n * residual / np.maximum(n - 1 - freedom, 1e-12) ** 2, 1 + freedom

        penalty = _penalty(regularisation, power, criterion, n)
        (error,), (freedom,) = criterion(np.array([penalty]))
        weights = ridge.weights(penalty)
        return RidgeFit(weights, centre - mean @ weights, penalty, float(error), float(freedom))

    def _centred_gram(self, mean: np.ndarray) -> np.ndarray:
        """Return the lower triangle of the centred features' Gram matrix, in column order."""
        from scipy.linalg.blas import dsyr

        lower = np.array(self.gram.T, order="F")
        return np.asarray(dsyr(-float(self.rows), mean, lower=1, a=lower, overwrite_a=1))


class _Tridiagonal:
    """Ridge problem after the reduction A = Q T Q^T to a tridiagonal T; each penalty is then fast."""

    # The reduction takes 4 P³ / 3 flops, less than half of an eigendecomposition. No eigenvectors are
    # computed, and each penalty takes O(P).

    def __init__(self, lower: np.ndarray, cross: np.ndarray) -> None:
        from scipy.linalg import eigvalsh_tridiagonal
        from scipy.linalg.lapack import dsytrd, dsytrd_lwork

        self.trace = float(np.trace(lower))
        size = len(lower)
        space = int(dsytrd_lwork(size, lower=1)[0])
        # With lower=1 the reflectors are stored in the same positions as in a QR decomposition.
        reflectors, diagonal, next_diagonal, self._tau, _ = dsytrd(
            lower, lower=1, lwork=space, overwrite_a=1
        )
        self._reflectors = np.asfortranarray(reflectors[1:, :-1])
        self._bands = np.zeros((2, size))
        self._bands[0] = diagonal
        self._bands[1, :-1] = next_diagonal
        self._cross = self._turned(cross, "T")
        values = eigvalsh_tridiagonal(diagonal, next_diagonal) if size > 1 else diagonal
        self._values = np.maximum(values, 0.0)
        # Rounding sets the smallest usable penalty; it is larger if features were summed in float32.
        rounding = 1e-15 * max(float(self._values.max(initial=0.0)), 1e-300) * size
        self._least = max(rounding, -2 * float(values.min(initial=0.0)))

    def _turned(self, columns: np.ndarray, transposed: str) -> np.ndarray:
        """Multiply columns by Q^T or Q, which do not change the first coordinate."""
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
        """Return the decrease of the residual sum of squares, and the degrees of freedom."""
        solved = self._solved(penalty)
        used = max(penalty, self._least)
        # decrease of the residual sum of squares: c^T (A + alpha)^-1 c + alpha |(A + alpha)^-1 c|²
        # degrees of freedom: sum_i lambda_i / (lambda_i + alpha)
        gain = float(np.sum(self._cross * solved) + used * np.sum(solved**2))
        return gain, float(np.sum(self._values / (self._values + used)))

    def weights(self, penalty: float) -> np.ndarray:
        """Return the primal weights."""
        return self._turned(self._solved(penalty), "N")


def _penalty(
    regularisation: Regularisation,
    power: float,
    criterion: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]],
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
    chosen = GRID[-1] * power
    best = np.inf
    for grid in (GRID * power, np.logspace(-0.25, 0.25, 11)):
        penalties = grid if np.isinf(best) else chosen * grid
        errors, freedom = criterion(penalties)
        # Near interpolation the criteria have a spurious minimum, which is excluded.
        errors = np.where(n - freedom >= LEAST_FREEDOM * n, errors, np.inf)
        place = int(np.argmin(errors))
        if errors[place] < best:
            best, chosen = float(errors[place]), float(penalties[place])
    return float(chosen)
