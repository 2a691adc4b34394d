r"""What bulk and spike fits ask of the law of pure noise, and that law for symmetric matrices."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np

GRID = 4_001
"""Points at which the quantiles are tabulated."""


class NoiseLaw(Protocol):
    """Spectrum of noise of unit scale, p values."""

    @property
    def edges(self) -> tuple[float, float]:
        """Lower and upper end of the support."""
        ...

    @property
    def key(self) -> tuple[float, ...]:
        """Numbers that tell this law from others, for tables of simulations."""
        ...

    @property
    def threshold(self) -> float:
        """Strength from which a signal leaves the bulk."""
        ...

    def density(self, x: np.ndarray) -> np.ndarray:
        """Density at x, zero outside the support."""
        ...

    def cdf(self, x: np.ndarray) -> np.ndarray:
        """Distribution function at x."""
        ...

    def quantile(self, probability: np.ndarray) -> np.ndarray:
        """Inverse of the distribution function."""
        ...

    def edge_scale(self, size: int) -> float:
        """Unit of the Tracy-Widom law at the upper edge, for ``size`` values."""
        ...

    def strength(self, x: np.ndarray) -> np.ndarray:
        """Signal behind an outlier at x; the threshold where x is no outlier."""
        ...

    def spread(self, x: np.ndarray, size: int) -> np.ndarray:
        """Standard deviation of an outlier at x, for ``size`` values."""
        ...

    def draw(self, size: int, rng: np.random.Generator) -> np.ndarray:
        """Values of a simulated matrix, ascending."""
        ...


@dataclass(frozen=True)
class SymmetricNoise:
    r"""Eigenvalues of the Gaussian orthogonal ensemble with edges at :math:`\pm2`.

    .. math::
        f(x)=\frac{\sqrt{4-x^2}}{2\pi},\qquad
        F(x)=\frac12+\frac{x\sqrt{4-x^2}}{4\pi}+\frac1\pi\arcsin\frac x2 .

    Off the diagonal the entries of the d x d matrix have variance :math:`1/d`, on it :math:`2/d`.
    A signal :math:`s>1` shows at :math:`x=s+1/s` with squared overlap :math:`1-1/s^2`, and x has
    variance :math:`\tfrac2d(1-1/s^2)`.

    Notes
    -----
    Source: Wigner; Baik, Ben Arous and Péché; Capitaine, Donati-Martin and Féral,
    arXiv:0706.0136 (variance). Backed by ``tests/diagnose/test_symmetric_fit.py`` (simulation).

    Examples
    --------
    >>> law = SymmetricNoise()
    >>> float(law.cdf(np.array([0.0]))[0]), float(law.strength(np.array([2.5]))[0])
    (0.5, 2.0)
    """

    @property
    def edges(self) -> tuple[float, float]:
        """Lower and upper end of the support."""
        return -2.0, 2.0

    @property
    def key(self) -> tuple[float, ...]:
        """No numbers: there is one such law."""
        return ()

    @property
    def threshold(self) -> float:
        """Strength from which a signal leaves the bulk."""
        return 1.0

    def density(self, x: np.ndarray) -> np.ndarray:
        """Density at x, zero outside the support."""
        return np.asarray(np.sqrt(np.clip(4 - x**2, 0, None)) / (2 * np.pi))

    def cdf(self, x: np.ndarray) -> np.ndarray:
        """Distribution function at x."""
        y = np.clip(x, -2, 2)
        return np.asarray(0.5 + y * np.sqrt(4 - y**2) / (4 * np.pi) + np.arcsin(y / 2) / np.pi)

    def quantile(self, probability: np.ndarray) -> np.ndarray:
        """Inverse of the distribution function."""
        places, masses = _semicircle_table()
        return np.interp(probability, masses, places)

    def edge_scale(self, size: int) -> float:
        """Unit of the Tracy-Widom law at the upper edge."""
        return float(size ** (-2 / 3))

    def strength(self, x: np.ndarray) -> np.ndarray:
        """Signal behind an outlier at x; the threshold where x is no outlier."""
        y = np.maximum(x, 2.0)
        return np.asarray((y + np.sqrt(y**2 - 4)) / 2)

    def spread(self, x: np.ndarray, size: int) -> np.ndarray:
        """Standard deviation of an outlier at x."""
        return np.asarray(np.sqrt(2 / size * (1 - 1 / self.strength(x) ** 2)))

    def draw(self, size: int, rng: np.random.Generator) -> np.ndarray:
        r"""Eigenvalues of a simulated matrix, ascending, from its tridiagonal form.

        Source: Dumitriu and Edelman, math-ph/0206043.
        """
        from scipy.linalg import eigvalsh_tridiagonal

        diagonal = np.sqrt(2.0) * rng.standard_normal(size)
        beside = np.sqrt(rng.chisquare(np.arange(size - 1, 0, -1.0)))
        return np.asarray(eigvalsh_tridiagonal(diagonal, beside) / np.sqrt(size))


@lru_cache(maxsize=1)
def _semicircle_table() -> tuple[np.ndarray, np.ndarray]:
    # The angle takes the square roots out of both ends.
    places = 2 * np.cos(np.linspace(np.pi, 0, GRID))
    return places, SymmetricNoise().cdf(places)
