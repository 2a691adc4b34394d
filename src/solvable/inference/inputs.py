r"""Inputs of an empirical risk: with a covariance, as random features, or as two Gaussian classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from solvable.arrays import check_real
from solvable.errors import InvalidParameter
from solvable.links import make_link


class Directions(NamedTuple):
    """Covariance of the inputs in its eigenbasis."""

    variances: np.ndarray
    shares: np.ndarray
    """Fraction of the parameters with each variance; sums to 1."""
    signals: np.ndarray
    """Squared covariance of each direction with the index, times the number of parameters."""


def isotropic(signal: float) -> Directions:
    """Directions of independent inputs of equal variance; `signal` is the second moment of an entry."""
    return Directions(np.ones(1), np.ones(1), np.array([signal]))


@dataclass(frozen=True)
class InputCovariance:
    r"""Gaussian inputs with a given spectrum of their covariance.

    Parameters
    ----------
    variances : sequence of float of shape (k,), at least 0
        Eigenvalues of d times the covariance of an input.
    shares : sequence of float of shape (k,), optional
        Fraction of the dimensions with each eigenvalue; equal by default.
    powers : sequence of float of shape (k,), optional
        Mean square of the signal's entries along the eigenvectors of each eigenvalue, relative to the
        prior's second moment; 1 by default.

    Raises
    ------
    InvalidParameter
        If lengths differ, a number is negative, or no direction with variance carries signal.

    Notes
    -----
    Backed by ``tests/inference/test_data.py``.

    Examples
    --------
    >>> InputCovariance([2.0, 0.5]).index_variance
    1.25
    """

    variances: Sequence[float]
    shares: Sequence[float] | None = None
    powers: Sequence[float] | None = None

    def __post_init__(self) -> None:
        for name in ("variances", "shares", "powers"):
            given = getattr(self, name)
            values = np.asarray(np.ones(len(self.variances)) if given is None else given, float)
            if (
                values.shape != (len(self.variances),)
                or not (np.isfinite(values) & (values >= 0)).all()
            ):
                raise InvalidParameter(
                    f"{name} is {given}; allowed: {len(self.variances)} finite numbers of at least 0."
                )
            object.__setattr__(
                self, name, tuple((values / (values.sum() if name == "shares" else 1)).tolist())
            )
        if not self.index_variance > 0:
            raise InvalidParameter(
                "no direction has both variance and signal; allowed: at least one."
            )

    @property
    def index_variance(self) -> float:
        """Variance of the index x . w for a prior of second moment 1."""
        return float(np.sum(np.array(self.shares) * self.variances * np.array(self.powers)))

    def directions(self, second_moment: float) -> Directions:
        """Directions for a prior of this second moment."""
        variances = np.array(self.variances)
        signals = second_moment * variances**2 * np.array(self.powers)
        return Directions(variances, np.array(self.shares), signals)


@dataclass(frozen=True)
class RandomFeatures:
    r"""Random features of the inputs, with Gaussian first-layer weights F.

    .. math:: \hat y=\frac1{\sqrt p}\sum_{a\le p}\hat w_a\big[\sigma(F_a\cdot x)-E\sigma\big],
        \qquad|F_a|^2=d .

    Parameters
    ----------
    activation : str
        Name or formula of the activation, as in :func:`solvable.links.make_link`.
    ratio : float, above 0
        Number of features per dimension, p / d.

    Raises
    ------
    InvalidParameter
        If the ratio is not above 0 or the activation has no linear part.

    Notes
    -----
    Features count as Gaussian variables with the same covariance (Mei and Montanari 2022; Goldt et al.
    2022), :math:`\kappa_1Fx+\kappa_*\zeta`. Backed by ``tests/inference/test_data.py``.

    Examples
    --------
    >>> [round(number, 5) for number in RandomFeatures("relu", 2.0).moments]
    [0.5, 0.30141]
    """

    activation: str
    ratio: float

    def __post_init__(self) -> None:
        check_real("ratio", self.ratio, 0.0)
        if not self.ratio > 0:
            raise InvalidParameter(f"ratio is {self.ratio}; allowed: above 0.")
        if abs(self.moments[0]) < 1e-9:
            raise InvalidParameter(
                f"the activation {self.activation!r} has no linear part, so its features are independent "
                "of a linear label; allowed: activations with E[z sigma(z)] other than 0."
            )

    @cached_property
    def moments(self) -> tuple[float, float]:
        r"""Linear part :math:`\kappa_1` and the deviation :math:`\kappa_*` of the rest."""
        link = make_link(self.activation, standardised=False)
        z, chance = link.nodes()
        mean, linear, square = (float(chance @ (link(z) * factor)) for factor in (1.0, z, link(z)))
        return linear, float(np.sqrt(max(square - mean**2 - linear**2, 0.0)))

    def directions(self, second_moment: float) -> Directions:
        """Directions of the features for a prior of this second moment."""
        # Marchenko-Pastur law of F F^T / d: with x = 1 + c + 2 sqrt(c) cos(theta) its density is
        # 2 sin(theta)² / (pi x) per theta   (empirical-risk 13)
        c, (linear, rest) = self.ratio, self.moments
        theta = (np.arange(400) + 0.5) * np.pi / 400
        x = 1 + c + 2 * np.sqrt(c) * np.cos(theta)
        shares = np.sin(theta) ** 2 / x
        shares *= min(1.0, 1 / c) / shares.sum()
        if c > 1:
            x, shares = np.append(x, 0.0), np.append(shares, 1 - 1 / c)
        signals = second_moment * linear**2 * c * x
        return Directions(linear**2 * x + rest**2, shares, signals)


@dataclass(frozen=True)
class GaussianMixture:
    r"""Two Gaussian classes, in the place of an output.

    .. math:: x=y\,\frac vd+\sqrt{\frac\Delta d}\,\xi,\qquad y=\pm1,

    where the entries of the centre v come from the prior, or have mean square 1 without prior. At length
    1 the centres are at distance 2, and :math:`\Delta` is the variance of the noise.

    Parameters
    ----------
    variance : float, above 0
        :math:`\Delta`.
    share : float, above 0 and below 1
        Share of the class y = 1.

    Raises
    ------
    InvalidParameter
        If a number is out of range.

    Notes
    -----
    Backed by ``tests/inference/test_data.py``.

    Examples
    --------
    >>> round(GaussianMixture(1.0).bayes_error(2.0), 6)
    0.207108
    """

    variance: float
    share: float = 0.5

    def __post_init__(self) -> None:
        check_real("variance", self.variance, 0.0)
        if not self.variance > 0:
            raise InvalidParameter(f"variance is {self.variance}; allowed: above 0.")
        if not 0 < self.share < 1:
            raise InvalidParameter(f"share is {self.share}; allowed: above 0 and below 1.")

    def error(self, mean: float, noise: float, intercept: float) -> float:
        """Share of wrong signs of predictions y `mean` + `intercept` with this deviation."""
        from scipy.special import ndtr

        wrong = ndtr(-(np.array([mean, mean]) + np.array([intercept, -intercept])) / noise)
        return float(self.share * wrong[0] + (1 - self.share) * wrong[1])

    def bayes_error(self, sample_ratio: float, second_moment: float = 1.0) -> float:
        """Lowest error of any classifier that does not know the Gaussian centre."""
        # predictions of mean q and variance Delta q with q = alpha rho² / (alpha rho + Delta), and an
        # intercept that shifts the odds   (empirical-risk 12)
        check_real("sample_ratio", sample_ratio, 0.0)
        known = sample_ratio * second_moment**2 / (sample_ratio * second_moment + self.variance)
        intercept = self.variance / 2 * np.log(self.share / (1 - self.share))
        return self.error(known, float(np.sqrt(self.variance * known)), float(intercept))
