"""Likelihood of a whole spectrum of bulk and outliers, edges of finite size included."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvable.diagnose.noise import NoiseLaw

EDGE = -3.0  # distance from the edge, in its own unit, from which its density replaces the limit

FLOOR = -1e4  # least logarithm of a density: a value far inside a forbidden region, in nats


@dataclass(frozen=True)
class WholeBulk:
    """Law of the values y = (x - b)_+, x of noise of scale delta and of signals."""

    law: NoiseLaw  # of unit scale
    scale: float  # delta
    shift: float  # b
    size: int  # number of values
    cut: bool = True  # whether values below zero became zero
    signed: bool = False  # whether outliers lie on either side of a centre -b

    @property
    def unit(self) -> float:
        """Unit kappa of the Tracy-Widom law, in that of the values."""
        return self.law.edge_scale(self.size) * self.scale

    def modulus(self, y: np.ndarray) -> np.ndarray:
        """Distance from the centre, as a value on the upper side."""
        return np.abs(y + self.shift) - self.shift if self.signed else y

    def log_density(self, y: np.ndarray) -> np.ndarray:
        """Logarithm of the density per value; of the mass of the atom at zeros."""
        x = (y + self.shift) / self.scale
        kappa = self.law.edge_scale(self.size)
        low, high = self.law.edges
        with np.errstate(divide="ignore"):
            found = np.log(self.law.density(x)) - np.log(self.scale)
        # Beyond x_+ the limit density vanishes; at finite size it is K((x - x_+) / kappa) / (p
        # kappa), so that a value far out costs as much as noise asks for and no more.
        common = np.log(self.size * kappa * self.scale)
        above = (x - high) / kappa
        near = above > EDGE
        found[near] = log_edge_density(above[near]) - common
        # A hard edge at zero has a density of its own; only a soft one is rounded.
        if low > 3 * kappa or low < 0:
            below = (low - x) / kappa
            near = below > EDGE
            found[near] = log_edge_density(below[near]) - common
        if self.cut and not self.signed and self.shift > 0:
            with np.errstate(divide="ignore"):
                found[y == 0] = np.log(self.law.cdf(np.array([self.shift / self.scale])))
        return np.maximum(found, FLOOR)

    def log_spikes(self, y: np.ndarray) -> np.ndarray:
        """Logarithm of the largest density that one signal each can give to outliers."""
        return np.asarray(-np.log(np.sqrt(2 * np.pi) * self.width(y)))

    def width(self, y: np.ndarray) -> np.ndarray:
        """Standard deviation of outliers, rounded at the threshold."""
        x = (self.modulus(y) + self.shift) / self.scale
        # Well beyond the edge only: the formula vanishes at the threshold.
        beyond = np.maximum(x, self.law.edges[1] + 1e-9)
        spread = self.law.spread(beyond, self.size)
        return np.asarray(self.scale * np.hypot(spread, self.law.edge_scale(self.size)))

    def log_power_law(self, y: np.ndarray, decay: float) -> np.ndarray:
        """Logarithm of the density of an outlier whose strength is of a power law."""
        # Strengths beyond the threshold s_c have the tail (s/s_c)^(-1/gamma); the density is an
        # average over the unit of the edge on either side, as it is not bounded there.
        y = self.modulus(y)
        ends = (np.stack([y - self.unit, y + self.unit]) + self.shift) / self.scale
        near, far = np.log(self.law.strength(ends) / self.law.threshold) / decay
        with np.errstate(divide="ignore"):
            # Far out the two tails are equal to rounding, their logarithms are not.
            share = np.log(-np.expm1(np.minimum(near - far, 0.0)))
        found = share - near - np.log(2 * self.unit * (1 + self.signed))
        return np.maximum(found, FLOOR)

    @property
    def separated(self) -> float:
        """Strength in units of the threshold from which a signal shows beyond the bulk for sure."""
        # One standard deviation of its outlier then ends where 1 % of noise would.
        kappa, edge = self.law.edge_scale(self.size), self.law.edges[1]
        grid = edge + kappa * np.linspace(0.0, 40.0, 4000)[1:]
        clear = grid - self.law.spread(grid, self.size) > edge + 2.02 * kappa
        first = grid[int(np.argmax(clear))] if clear.any() else grid[-1]
        strength = float(self.law.strength(np.array([first]))[0]) / self.law.threshold
        return float(np.clip(strength, 1.001, 4.0))

    def merging(self, decay: float) -> float:
        """Number of power-law signals from which the weakest of them merge."""
        # Their spacing gamma s_c/K is below the widths of two neighbours
        # (docs/quadratic-phases.md).
        far = np.array([30.0])
        width = 2 * float(self.law.spread(far, self.size)[0])
        return decay * self.law.threshold / width


def log_edge_density(xi: np.ndarray) -> np.ndarray:
    """Logarithm of the density of eigenvalues at a soft edge, per unit of Tracy-Widom."""
    from scipy.special import airy, airye, itairy

    # Forrester, Nagao and Honner, Nucl. Phys. B 553 (1999) 601, orthogonal ensemble:
    # K(xi) = Ai'(xi)² - xi Ai(xi)² + Ai(xi)/2 (1 - int_xi^inf Ai).
    found = np.empty(xi.shape)
    far = xi > 3
    # Far out the last term is the whole; its Airy function in scaled form.
    x = xi[far]
    # SciPy's function ends in NaN; its leading term is exact to 1e-9 before.
    scaled = np.where(x < 1e5, airye(np.minimum(x, 1e5))[0], x**-0.25 / (2 * np.sqrt(np.pi)))
    found[far] = np.log(scaled / 2) - 2 / 3 * x**1.5
    x = xi[~far]
    value, slope, _, _ = airy(x)
    integrals = itairy(np.abs(x))
    rest = np.where(x >= 0, 1 / 3 - integrals[0], 1 / 3 + integrals[2])
    found[~far] = np.log(slope**2 - x * value**2 + value / 2 * (1 - rest))
    return found
