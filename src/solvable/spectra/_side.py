"""One end of the spectrum of a spiked random matrix: its edge and its outliers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from solvable.errors import NotConverged
from solvable.spectra.roots import bracketed_root
from solvable.spectra.spiked import critical_profile


class Side:
    """The upper end of the spectrum; the lower end is that of the negated matrix."""

    def __init__(
        self,
        weights: np.ndarray,
        probabilities: np.ndarray,
        atoms: np.ndarray,
        variance: float,
        n_samples: float,
        n_features: int,
    ) -> None:
        self.weights, self.probabilities = weights, probabilities
        self.atoms, self.variance = atoms, variance
        self.delta = n_samples / n_features
        self.mean = float(probabilities @ weights)
        self.start = float(atoms.max())
        self.lowest = self._lowest()
        self.critical = root(self.slope, self.lowest)  # L' = 0: the edge
        self.edge = self.place(self.critical)
        curvature = self._curvature(self.critical)
        steepness = np.mean(1 / (self.start + self.critical - atoms) ** 2)
        fluctuation = np.cbrt(curvature / (2 * steepness**2))
        self.curvature = curvature
        self.unit = n_features ** (-1 / 3) / 2 * float(np.sqrt(2 * fluctuation / curvature))

    def _lowest(self) -> float:
        """Offset below which the largest weight alone would be an eigenvalue."""
        largest = float(self.weights.max())
        if largest <= 0:
            return 0.0

        def beyond(offset: float) -> float:
            return 1 / (largest * self.resolvent(offset)[0]) - 1 / self.delta

        return root(beyond, 0.0)

    def resolvent(self, offset: float) -> tuple[float, float]:
        """G and its derivative at the largest atom plus an offset."""
        inverse = 1 / (self.start + offset - self.atoms)
        return float(np.mean(inverse)), -float(np.mean(inverse**2))

    def place(self, offset: float) -> float:
        """L: the place in the spectrum."""
        # L = zeta + E[w / (1 - w a)] - E[w] + b^2 G, a = G / delta.
        G = self.resolvent(offset)[0]
        share = self.weights / (1 - self.weights * G / self.delta)
        moved = float(self.probabilities @ share) - self.mean
        return self.start + offset + moved + self.variance * G

    def slope(self, offset: float) -> float:
        """L', increasing."""
        G, change = self.resolvent(offset)
        share = (self.weights / (1 - self.weights * G / self.delta)) ** 2
        return 1 + change * (float(self.probabilities @ share) / self.delta + self.variance)

    def _curvature(self, offset: float) -> float:
        """L'' at the edge."""
        G, change = self.resolvent(offset)
        second = 2 * float(np.mean(1 / (self.start + offset - self.atoms) ** 3))
        share = self.weights / (1 - self.weights * G / self.delta)
        quadratic = float(self.probabilities @ share**2) / self.delta + self.variance
        cubic = 2 * float(self.probabilities @ share**3) / self.delta**2
        return second * quadratic + change**2 * cubic

    def _through_atoms(self, offset: float, profile: np.ndarray | None) -> tuple[float, float]:
        """What a spike gains through atoms of which it is no eigenvector, and the derivative."""
        if profile is None:
            return 0.0, 0.0
        # zeta - <x>_i - 1 / <1 / (zeta - x)>_i
        inverse = 1 / (self.start + offset - self.atoms)
        mean, change = float(profile @ inverse), -float(profile @ inverse**2)
        gain = self.start + offset - float(profile @ self.atoms) - 1 / mean
        return gain, 1 + change / mean**2

    def _target(
        self,
        offset: float,
        height: float,
        coupling: np.ndarray,
        background: float,
        profile: np.ndarray | None,
    ) -> tuple[float, float]:
        """R and R' of one spike."""
        G, change = self.resolvent(offset)
        inverse = self.probabilities / (1 - self.weights * G / self.delta)
        # R = theta + E[u a / (1 - w a)] + b_i^2 G + what it gains through the atoms.
        gain, slope = self._through_atoms(offset, profile)
        value = float(coupling @ inverse) * G / self.delta + background * G
        rate = float(coupling @ (inverse**2 / self.probabilities)) / self.delta + background
        return height + value + gain, rate * change + slope

    def spike(
        self, height: float, coupling: np.ndarray, background: float, profile: np.ndarray | None
    ) -> tuple[float, float, float, float]:
        """Place, rounded overlap, sharp overlap and excess of one spike."""

        def target(offset: float) -> tuple[float, float]:
            return self._target(offset, height, coupling, background, profile)

        def excess(offset: float) -> float:
            return self.place(offset) - target(offset)[0]

        def overlap(offset: float) -> float:
            slope = max(self.slope(offset), 0.0)  # c^2 = L' / (L' - R')
            return slope / (slope - target(offset)[1])

        gap, steepness = excess(self.critical), -target(self.critical)[1]
        unit = self.unit * self.curvature / steepness
        if gap < 0:
            beyond = root(excess, self.critical) - self.critical
            sharp = overlap(self.critical + beyond)
            ratio = unit * float(critical_profile(sharp / (1 - sharp) / unit))
        else:
            beyond, sharp = -gap / steepness, 0.0
            ratio = unit * float(critical_profile(beyond / self.unit))
        # The critical profile at threshold smooths the place of the eigenvalue there as well.
        rounded = (beyond + np.hypot(beyond, 2 * 0.85 * self.unit)) / 2
        return self.place(self.critical + rounded), ratio / (1 + ratio), sharp, -gap

    def excess_at_edge(
        self, height: float, coupling: np.ndarray, background: float, profile: np.ndarray | None
    ) -> float:
        """Return what :meth:`spike` gives last, without its place."""
        return self._target(self.critical, height, coupling, background, profile)[0] - self.edge


def root(function: Callable[[float], float], above: float) -> float:
    """Root above a point of a function that turns from negative to positive."""
    step = max(abs(above), 1.0) * 1e-9
    low = above + step
    at_low = function(low)
    if at_low >= 0:
        return low
    for _ in range(100):
        high = above + step * 8
        at_high = function(high)
        if at_high > 0:
            return bracketed_root(function, low, high, ends=(at_low, at_high))
        low, at_low, step = high, at_high, step * 8
    raise NotConverged(
        f"no edge of the bulk was found above {above:.3g}: the condition is still "
        f"{at_low:.3g} at {low:.3g}. Check the weights for extreme values.",
        {"above": above, "reached": low},
    )
