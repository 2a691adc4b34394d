"""Spectra of rectangular and symmetric noise: density, edge at finite size, spikes above the edge."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from solvable.errors import InvalidParameter
from solvable.spectra.edges import tracy_widom_quantile

GRID = 4_001  # nodes of a tabulated distribution function; error below 1e-7 of the mass


@dataclass(frozen=True)
class RectangularNoise:
    """Singular-value distribution of a p x q matrix of independent entries with variance 1/q."""

    ratio: float  # aspect ratio c = p/q, in (0, 1]

    def __post_init__(self) -> None:
        if not 0 < self.ratio <= 1:
            raise InvalidParameter(
                f"ratio is {self.ratio}; allowed: above 0 and at most 1. Transpose a tall matrix."
            )

    @property
    def edges(self) -> tuple[float, float]:
        """Lower and upper end of the support."""
        return 1 - self.ratio**0.5, 1 + self.ratio**0.5

    @property
    def key(self) -> tuple[float, ...]:
        """Key of this distribution in tables of simulations: the rounded aspect ratio."""
        return (max(round(20 * self.ratio) / 20, 0.05),)

    @property
    def threshold(self) -> float:
        """Smallest strength at which a signal leaves the bulk."""
        return float(self.ratio**0.25)

    def edge_scale(self, size: int) -> float:
        """Tracy-Widom unit at the upper edge, for ``size`` values."""
        low, high = float(size) ** 0.5, (size / self.ratio) ** 0.5
        return (1 / low + 1 / high) ** (1 / 3) / (2 * high)

    def strength(self, x: np.ndarray) -> np.ndarray:
        """Strength of the signal behind an outlier at x; if x is no outlier, the threshold."""
        gap = np.maximum(np.asarray(x) ** 2 - 1 - self.ratio, 2 * self.ratio**0.5)
        # Rounding may make the square negative at the threshold.
        root = np.sqrt(np.maximum(gap**2 - 4 * self.ratio, 0.0))
        return np.asarray(np.sqrt((gap + root) / 2))

    def place(self, strength: float) -> float:
        """Position of the outlier caused by a signal that exceeds the threshold."""
        # x² = (1 + s²) (c + s²) / s²   (spectra 4)
        square = strength**2
        return float(((1 + square) * (self.ratio + square) / square) ** 0.5)

    def spread(self, x: np.ndarray, size: int) -> np.ndarray:
        """Standard deviation of an outlier at x, for ``size`` values."""
        columns, c = round(size / self.ratio), self.ratio
        found = debias(np.asarray(x), noise=1.0, n_columns=columns, ratio=c)
        s, y = found.strengths, found.observed
        # 2 x dx = 2 (s - c / s³) ds.
        return np.asarray(found.standard_errors * (s - c / s**3) / y)

    def draw(self, size: int, rng: np.random.Generator) -> np.ndarray:
        """Singular values of a simulated matrix, ascending."""
        columns = max(size, round(size / self.ratio))
        return noise_singular_values(size, columns, rng) / np.sqrt(columns)

    def density(self, x: np.ndarray) -> np.ndarray:
        """Density at x, zero outside the support."""
        # Marchenko-Pastur   (spectra 2): f(x) = sqrt((x_+² - x²) (x² - x_-²)) / (pi c x).
        low, high = self.edges
        square = np.clip((high**2 - x**2) * (x**2 - low**2), 0, None)
        inside = (x > low) & (x < high)
        return np.where(inside, np.sqrt(square) / (np.pi * self.ratio * np.where(x > 0, x, 1)), 0.0)

    def cdf(self, x: np.ndarray) -> np.ndarray:
        """Distribution function at x."""
        places, masses = _table(self.ratio)
        return np.interp(x, places, masses, left=0.0, right=1.0)

    def quantile(self, probability: np.ndarray) -> np.ndarray:
        """Inverse of the distribution function."""
        places, masses = _table(self.ratio)
        return np.interp(probability, masses, places)

    def moments_beyond(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Means of g = 1/(x² - lambda) and g² over the p eigenvalues lambda, for x outside the bulk."""
        square, c = x**2, self.ratio
        root = np.sqrt((square - 1 - c) ** 2 - 4 * c)
        # Here and below, differences of nearly equal numbers are rewritten as quotients.
        first = 2 / (square - 1 + c + root)
        return first, first**2 * (1 + (square - 1 - c) / root) / 2

    def fluctuations_beyond(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Variances of g over the p and over the q eigenvalues, and the mean of lambda g²."""
        square, c = x**2, self.ratio
        root = np.sqrt((square - 1 - c) ** 2 - 4 * c)
        first = 2 / (square - 1 + c + root)
        short = 2 * c * first**2 / (root * (square - 1 - c + root))
        above_zeros = 2 * first / (square + 1 - c + root)
        cross = first**2 / 2 * (((1 + c) * square - (1 - c) ** 2) / root + 1 - c)
        return short, c * short + c * (1 - c) * above_zeros**2, cross


@lru_cache(maxsize=64)
def _table(ratio: float) -> tuple[np.ndarray, np.ndarray]:
    # As a function of the angle both square-root edges are smooth, so a plain rule is accurate.
    angle = np.linspace(np.pi, 0, GRID)
    lift = 1 + ratio + 2 * ratio**0.5 * np.cos(angle)
    middle = (angle[1:] + angle[:-1]) / 2
    at_middle = 1 + ratio + 2 * ratio**0.5 * np.cos(middle)
    masses = np.concatenate([[0.0], np.cumsum(np.sin(middle) ** 2 / at_middle)])
    return np.sqrt(np.clip(lift, 0, None)), masses / masses[-1]


def noise_edge(n_rows: int, n_columns: int, *, probability: float = 0.99) -> float:
    """Quantile of a noise matrix's largest singular value; the entries have variance 1."""
    if min(n_rows, n_columns) < 2:
        raise InvalidParameter(
            f"the matrix is {n_rows} x {n_columns}; allowed: at least two rows and columns."
        )
    # Edge (spectra 3): Johnstone 2001, with the halves of Ma, Bernoulli 18 (2012) 322, which make the
    # error of order p^(-2/3): x² = (sqrt(p') + sqrt(q'))² + (sqrt(p') + sqrt(q')) (p'^(-1/2) +
    # q'^(-1/2))^(1/3) TW_1, p' = p - 1/2, q' = q - 1/2.
    low, high = np.sqrt(n_rows - 0.5), np.sqrt(n_columns - 0.5)
    scale = (low + high) * (1 / low + 1 / high) ** (1 / 3)
    square = (low + high) ** 2 + scale * tracy_widom_quantile(probability)
    return float(np.sqrt(square))


def noise_singular_values(n_rows: int, n_columns: int, rng: np.random.Generator) -> np.ndarray:
    """Singular values of a standard normal matrix, simulated without forming the matrix."""
    from scipy.linalg import eigvalsh_tridiagonal

    # Dumitriu and Edelman, math-ph/0206043: a bidiagonal matrix with chi_q, chi_{q-1}, ... on the
    # diagonal and chi_{p-1}, ..., chi_1 next to it.
    diagonal = rng.chisquare(n_columns - np.arange(n_rows))
    beside = rng.chisquare(np.arange(n_rows - 1, 0, -1.0))
    total = diagonal.copy()
    total[1:] += beside
    squares = eigvalsh_tridiagonal(total, np.sqrt(diagonal[:-1] * beside))
    return np.sqrt(np.clip(squares, 0, None))


@dataclass(frozen=True)
class SymmetricNoise:
    """Eigenvalue distribution of the Gaussian orthogonal ensemble with edges at -2 and 2."""

    # The entries of the d x d matrix have variance 1/d off the diagonal and 2/d on the diagonal.

    @property
    def edges(self) -> tuple[float, float]:
        """Lower and upper end of the support."""
        return -2.0, 2.0

    @property
    def key(self) -> tuple[float, ...]:
        """Key of this distribution in tables of simulations: empty, because it has no parameter."""
        return ()

    @property
    def threshold(self) -> float:
        """Smallest strength at which a signal leaves the bulk."""
        return 1.0

    def density(self, x: np.ndarray) -> np.ndarray:
        """Density at x, zero outside the support."""
        # Semicircle   (spectra 6): f(x) = sqrt(4 - x²) / (2 pi).
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
        """Tracy-Widom unit at the upper edge."""
        return float(size ** (-2 / 3))

    def strength(self, x: np.ndarray) -> np.ndarray:
        """Strength of the signal behind an outlier at x; if x is no outlier, the threshold."""
        y = np.maximum(x, 2.0)
        return np.asarray((y + np.sqrt(y**2 - 4)) / 2)

    def place(self, strength: float) -> float:
        """Position of the outlier caused by a signal that exceeds the threshold."""
        # Spiked semicircle   (spectra 6): x = s + 1/s, squared overlap 1 - 1/s².
        return strength + 1 / strength

    def spread(self, x: np.ndarray, size: int) -> np.ndarray:
        """Standard deviation of an outlier at x."""
        # Capitaine, Donati-Martin and Feral, arXiv:0706.0136: Var x = 2/d (1 - 1/s²).
        return np.asarray(np.sqrt(2 / size * (1 - 1 / self.strength(x) ** 2)))

    def draw(self, size: int, rng: np.random.Generator) -> np.ndarray:
        """Eigenvalues of a simulated matrix, ascending, from its tridiagonal form."""
        from scipy.linalg import eigvalsh_tridiagonal

        # Dumitriu and Edelman, math-ph/0206043.
        diagonal = np.sqrt(2.0) * rng.standard_normal(size)
        beside = np.sqrt(rng.chisquare(np.arange(size - 1, 0, -1.0)))
        return np.asarray(eigvalsh_tridiagonal(diagonal, beside) / np.sqrt(size))


@lru_cache(maxsize=1)
def _semicircle_table() -> tuple[np.ndarray, np.ndarray]:
    # As a function of the angle both square-root edges are smooth.
    places = 2 * np.cos(np.linspace(np.pi, 0, GRID))
    return places, SymmetricNoise().cdf(places)


NoiseLaw = RectangularNoise | SymmetricNoise  # noise distribution of unit scale


@dataclass(frozen=True)
class Spikes:
    """Estimated signals behind outlying singular values, in the unit of the matrix."""

    observed: np.ndarray  # (k,): singular values before shrinkage, descending
    strengths: np.ndarray  # (k,): de-biased strengths s, the singular values without noise
    standard_errors: np.ndarray  # (k,): standard errors of the strengths
    # (k,): squared overlap of the observed and the signal's singular vector, on the shorter
    # and the longer side of the matrix
    short_overlap: np.ndarray
    long_overlap: np.ndarray

    def intervals(self, *, confidence: float = 0.95, floor: float = 0.0) -> np.ndarray:
        """Intervals of the strengths' moduli, shape (k, 2), cut at the threshold."""
        from scipy.special import ndtri

        size, reach = np.abs(self.strengths), ndtri(0.5 + confidence / 2) * self.standard_errors
        low = np.maximum(size - reach, np.minimum(floor, size))
        return np.stack([low, size + reach], axis=1)


def debias(observed: np.ndarray, *, noise: float, n_columns: int, ratio: float) -> Spikes:
    """Estimate the strengths of the signals behind singular values above the edge of the noise."""
    law = RectangularNoise(ratio)
    x, c = np.asarray(observed, dtype=float) / noise, ratio
    if (x <= law.edges[1]).any():
        raise InvalidParameter(
            f"a singular value of {observed.min():.6g} is not beyond the edge "
            f"{noise * law.edges[1]:.6g} of the noise; pass outliers only."
        )
    # Spike relation (spectra 4), arXiv:1103.2221: x² = (1 + s²) (c + s²) / s² in units of the
    # noise, for s > c^(1/4).
    gap = x**2 - 1 - c
    root = np.sqrt(gap**2 - 4 * c)
    square = (gap + root) / 2
    s = np.sqrt(square)
    # Standard error (spectra 5). With A = x <g>, B = x (c <g> + (1 - c)/x²) the outlier solves (1/s
    # - Gamma)² = A B, where Var A = 2 x²/p (<g²> - <g>²) and Var Gamma = <lambda g²>/q.
    first, _ = law.moments_beyond(x)
    short, long_ = x * first, x * (c * first + (1 - c) / x**2)
    of_short, of_long, cross = law.fluctuations_beyond(x)
    var_short, var_long = 2 * x**2 * of_short / (c * n_columns), 2 * x**2 * of_long / n_columns
    var_cross = cross / n_columns
    spread = np.sqrt(long_**2 * var_short + short**2 * var_long + 4 * var_cross / square)
    # Along the curve AB = 1/s², d(AB)/ds turns the error of x into an error of s.
    error = spread * s**3 / 2
    return Spikes(
        np.asarray(observed, dtype=float),
        noise * s,
        noise * error,
        # Overlaps (spectra 4): o_p = (s⁴ - c) / (s⁴ + c s²) and o_q = (s⁴ - c) / (s⁴ + s²).
        (square**2 - c) / (square**2 + c * square),
        (square**2 - c) / (square**2 + square),
    )
