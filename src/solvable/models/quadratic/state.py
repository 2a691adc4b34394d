r"""What two scalars say of a trained quadratic network: errors, rank and spectrum."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvable.errors import InvalidParameter
from solvable.models.quadratic.saddle import SaddlePoint, energy_above, second_moment
from solvable.spectra.free_convolution import SpectralLaw
from solvable.spectra.functionals import truncated_moments


@dataclass(frozen=True)
class QuadraticState:
    r"""What the theory says of a trained network: :math:`\hat S\approx(S^\star+\delta Z-b)_+`.

    Attributes
    ----------
    sample_ratio : float
        :math:`\alpha=n/d^2`.
    label_noise : float
        :math:`\Delta`, a variance.
    regularisation : float
        :math:`\tilde\lambda`.
    effective_noise : float
        :math:`\delta`.
    threshold : float
        :math:`b`.
    matrix_error : float
        :math:`R=\frac1d\|\hat S-S^\star\|_F^2`, half the excess risk in the labels.
    train_error : float
        Mean squared residual per sample, :math:`B^2/\alpha`.
    test_error : float
        On fresh noisy labels, :math:`2R+\Delta=4\alpha\delta^2`.
    trace : float
        :math:`\frac1d\mathrm{Tr}\hat S`.
    rank_fraction : float
        Rank of :math:`\hat S` over d, :math:`1-F_\delta(b)`.
    objective : float
        Minimum of :math:`\frac1{d^2}\sum_\mu r_\mu^2+\frac{\tilde\lambda}d\mathrm{Tr}S`.
    degrees_of_freedom : float
        A, the spectral degrees of freedom over :math:`d^2`.
    residual : float
        :math:`Q^\star+\delta\partial_1J-(J-b\,\partial_2J)-(2\alpha\delta^2-\frac\Delta2)`, 0 at a
        solution up to rounding.
    law : SpectralLaw
        Of :math:`S^\star+\delta Z`.

    Notes
    -----
    Independent of the width of the network at fixed :math:`\tilde\lambda`, as long as it is at least
    the rank of :math:`\hat S`.
    """

    sample_ratio: float
    label_noise: float
    regularisation: float
    effective_noise: float
    threshold: float
    matrix_error: float
    train_error: float
    test_error: float
    trace: float
    rank_fraction: float
    objective: float
    degrees_of_freedom: float
    residual: float
    law: SpectralLaw

    @property
    def zero_mass(self) -> float:
        r"""Fraction of eigenvalues of :math:`\hat S` that vanish, :math:`F_\delta(b)`."""
        return 1 - self.rank_fraction

    def density(self, x: np.ndarray | float) -> np.ndarray:
        r"""Density of the positive part of the learned spectrum, of mass :attr:`rank_fraction`.

        Parameters
        ----------
        x : array of any shape
            Eigenvalues of :math:`\hat S`.

        Returns
        -------
        ndarray
            :math:`\mu_\delta(x+b)` for x > 0, and 0 below.

        Examples
        --------
        >>> from solvable.models.quadratic.theory import state_at
        >>> state = state_at(np.array([0.0]), effective_noise=1.0, threshold=0.0, label_noise=1.0)
        >>> state.density([-1.0, 0.5]).round(6)
        array([0.      , 0.308202])
        """
        places = np.asarray(x, dtype=np.float64)
        return np.asarray(np.where(places > 0, self.law.density(places + self.threshold), 0.0))

    def quantiles(self, levels: np.ndarray | float) -> np.ndarray:
        r"""Quantiles of the learned spectrum.

        Parameters
        ----------
        levels : array of any shape
            Fractions of the spectrum below, inside (0, 1).

        Returns
        -------
        ndarray
            0 up to :attr:`zero_mass`.

        Examples
        --------
        >>> from solvable.models.quadratic.theory import state_at
        >>> state = state_at(np.array([0.0]), effective_noise=1.0, threshold=0.0, label_noise=1.0)
        >>> state.quantiles([0.3, 0.75]).round(4)
        array([0.   , 0.8079])
        """
        asked = np.asarray(levels, dtype=np.float64)
        if not ((asked > 0) & (asked < 1)).all():
            raise InvalidParameter(f"levels are {levels}; allowed: numbers inside (0, 1).")
        flat = 1 - asked.ravel()
        found = np.zeros(flat.size)
        positive = flat < self.rank_fraction
        if positive.any():
            found[positive] = self._tail_places(flat[positive]) - self.threshold
        return found.reshape(asked.shape)

    def leading_eigenvalues(self, count: int, *, dimension: int) -> np.ndarray:
        r"""Typical places of the largest eigenvalues of :math:`\hat S` at a finite dimension.

        Parameters
        ----------
        count : int
            How many, at most ``dimension``.
        dimension : int
            :math:`d`.

        Returns
        -------
        ndarray of shape (count,)
            Quantiles at :math:`1-(k-\frac12)/d`, descending; an isolated eigenvalue s of the target
            gives :math:`s+\delta^2/s-b`.

        Examples
        --------
        >>> from solvable.models.quadratic.theory import state_at
        >>> state = state_at(np.array([0.0]), effective_noise=1.0, threshold=0.5, label_noise=1.0)
        >>> state.leading_eigenvalues(2, dimension=100).round(3)
        array([1.417, 1.328])
        """
        if not 1 <= count <= dimension:
            raise InvalidParameter(
                f"count is {count}; allowed: from 1 to the dimension {dimension}."
            )
        return self.quantiles(1 - (np.arange(1, count + 1) - 0.5) / dimension)

    def _tail_places(self, tails: np.ndarray) -> np.ndarray:
        """Places of the law above which these masses lie, by bisection closed by Newton steps."""
        low = np.full(tails.size, self.threshold)
        high = np.full(tails.size, self.law.edges[-1, 1])
        middle = (low + high) / 2
        for _ in range(200):
            excess = truncated_moments(self.law, middle).mass - tails
            low, high = np.where(excess > 0, middle, low), np.where(excess > 0, high, middle)
            density = self.law.density(middle)
            with np.errstate(divide="ignore", invalid="ignore"):
                moved = middle + excess / density
            moved = np.where((moved > low) & (moved < high), moved, (low + high) / 2)
            if (np.abs(moved - middle) <= 1e-12 * self.law.noise).all():
                return np.asarray(moved)
            middle = moved
        return np.asarray(middle)


def state_of(
    point: SaddlePoint, ratio: float, label_noise: float, penalty: float
) -> QuadraticState:
    r"""All that follows from the two scalars.

    Parameters
    ----------
    point : SaddlePoint
        :math:`(\delta,b)` with law and moments.
    ratio, label_noise, penalty : float
        :math:`\alpha`, :math:`\Delta` and :math:`\tilde\lambda`, which must belong to them.

    Returns
    -------
    QuadraticState
        With the residual that says how well they do.
    """
    moments, noise, b = point.moments, point.effective_noise, point.threshold
    freedom, trace = float(moments.slope[0]), float(moments.first[0])
    # alpha - A cancels below the interpolation threshold, lambda / b does not.
    root = penalty * noise / (2 * b) if b > 0 and penalty > 0 else 2 * noise * (ratio - freedom)
    squares = max(root, 0.0) ** 2
    energy = second_moment(point.law.target)
    explained = energy_above(moments)
    error = 2 * ratio * noise**2 - label_noise / 2
    return QuadraticState(
        sample_ratio=ratio,
        label_noise=label_noise,
        regularisation=penalty,
        effective_noise=noise,
        threshold=b,
        matrix_error=point.matrix_error,
        train_error=squares / ratio,
        test_error=2 * point.matrix_error + label_noise,
        trace=trace,
        rank_fraction=float(moments.mass[0]),
        objective=squares + penalty * trace,
        degrees_of_freedom=freedom,
        residual=energy + noise * float(moments.noise_derivative[0]) - explained - error,
        law=point.law,
    )
