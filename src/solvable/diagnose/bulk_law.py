"""Likelihood of all values of a spectrum, bulk and outliers, with finite-size edges."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvable.diagnose.noise import NoiseLaw

EDGE = -3.0  # distance from the edge, in Tracy-Widom units, from which the edge density is used

FLOOR = -1e4  # smallest log-density of a value inside a forbidden region, in nats


@dataclass(frozen=True)
class WholeBulk:
    """Distribution of values y = (x - b)_+; x are values of signals plus noise of scale delta."""

    law: NoiseLaw  # distribution of the noise at unit scale
    scale: float  # noise scale delta
    shift: float  # threshold b
    size: int  # number of values
    cut: bool = True  # True if values below zero were set to zero
    signed: bool = False  # True if outliers lie on both sides of the centre -b

    @property
    def unit(self) -> float:
        """Tracy-Widom unit at the edge, in the unit of the values."""
        return self.law.edge_scale(self.size) * self.scale

    def modulus(self, y: np.ndarray) -> np.ndarray:
        """Map the values to the upper side: their distance from the centre."""
        return np.abs(y + self.shift) - self.shift if self.signed else y

    def log_density(self, y: np.ndarray) -> np.ndarray:
        """Log-density of each value; for zeros, the log-mass of the atom at zero."""
        x = (y + self.shift) / self.scale
        kappa = self.law.edge_scale(self.size)
        low, high = self.law.edges
        with np.errstate(divide="ignore"):
            found = np.log(self.law.density(x)) - np.log(self.scale)
        # The limit density vanishes above x_+. At finite size the density is K((x - x_+) / kappa)
        # / (p kappa)   (spectra 8), so that a value far out gets the log-likelihood that noise of
        # this size gives it.
        common = np.log(self.size * kappa * self.scale)
        above = (x - high) / kappa
        near = above > EDGE
        found[near] = log_edge_density(above[near]) - common
        # Only a soft edge gets the finite-size density; the hard edge at zero has a density of its own.
        if low > 3 * kappa or low < 0:
            below = (low - x) / kappa
            near = below > EDGE
            found[near] = log_edge_density(below[near]) - common
        if self.cut and not self.signed and self.shift > 0:
            with np.errstate(divide="ignore"):
                found[y == 0] = np.log(self.law.cdf(np.array([self.shift / self.scale])))
        return np.maximum(found, FLOOR)

    def log_spikes(self, y: np.ndarray) -> np.ndarray:
        """Largest log-density of each outlier if a separate signal causes each outlier."""
        return np.asarray(-np.log(np.sqrt(2 * np.pi) * self.width(y)))

    def width(self, y: np.ndarray) -> np.ndarray:
        """Standard deviation of outliers, smoothed at the threshold."""
        x = (self.modulus(y) + self.shift) / self.scale
        # The formula holds only well above the edge: at the threshold it gives zero.
        beyond = np.maximum(x, self.law.edges[1] + 1e-9)
        spread = self.law.spread(beyond, self.size)
        return np.asarray(self.scale * np.hypot(spread, self.law.edge_scale(self.size)))

    def log_power_law(self, y: np.ndarray, decay: float) -> np.ndarray:
        """Log-density of an outlier whose strength follows a power law."""
        # Strengths beyond the threshold s_c have the tail (s/s_c)^(-1/gamma). The density is
        # averaged over one Tracy-Widom unit on each side, because it diverges at the edge.
        y = self.modulus(y)
        ends = (np.stack([y - self.unit, y + self.unit]) + self.shift) / self.scale
        near, far = np.log(self.law.strength(ends) / self.law.threshold) / decay
        with np.errstate(divide="ignore"):
            # Far from the edge the two tails differ by rounding only, so logarithms are used.
            share = np.log(-np.expm1(np.minimum(near - far, 0.0)))
        found = share - near - np.log(2 * self.unit * (1 + self.signed))
        return np.maximum(found, FLOOR)

    @property
    def separated(self) -> float:
        """Smallest strength, in units of the threshold, of a signal that is surely above the bulk."""
        # At this strength the outlier minus one standard deviation is at the 1 % quantile of noise.
        kappa, edge = self.law.edge_scale(self.size), self.law.edges[1]
        grid = edge + kappa * np.linspace(0.0, 40.0, 4000)[1:]
        clear = grid - self.law.spread(grid, self.size) > edge + 2.02 * kappa
        first = grid[int(np.argmax(clear))] if clear.any() else grid[-1]
        strength = float(self.law.strength(np.array([first]))[0]) / self.law.threshold
        return float(np.clip(strength, 1.001, 4.0))

    def merging(self, decay: float) -> float:
        """Number of power-law signals from which on the weakest outliers merge   (spectra 10)."""
        # The spacing gamma s_c / K is then below the summed widths of two neighbours.
        far = np.array([30.0])
        width = 2 * float(self.law.spread(far, self.size)[0])
        return decay * self.law.threshold / width


def log_edge_density(xi: np.ndarray) -> np.ndarray:
    """Log-density of eigenvalues at a soft edge, per Tracy-Widom unit."""
    from scipy.special import airy, airye, itairy

    # Density of the orthogonal ensemble (Forrester, Nagao and Honner, Nucl. Phys. B 553 (1999) 601)
    # (spectra 8): K(xi) = Ai'(xi)² - xi Ai(xi)² + Ai(xi)/2 (1 - int_xi^inf Ai).
    found = np.empty(xi.shape)
    far = xi > 3
    # Far from the edge only the last term matters; its Airy function is computed in scaled form.
    x = xi[far]
    # SciPy's function returns NaN above this value, where the leading term is accurate to 1e-9.
    scaled = np.where(x < 1e5, airye(np.minimum(x, 1e5))[0], x**-0.25 / (2 * np.sqrt(np.pi)))
    found[far] = np.log(scaled / 2) - 2 / 3 * x**1.5
    x = xi[~far]
    value, slope, _, _ = airy(x)
    integrals = itairy(np.abs(x))
    rest = np.where(x >= 0, 1 / 3 - integrals[0], 1 / 3 + integrals[2])
    found[~far] = np.log(slope**2 - x * value**2 + value / 2 * (1 - rest))
    return found
