"""Upper or lower end of a spiked random matrix's spectrum: the edge and the outliers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from solvable.errors import NotConverged
from solvable.spectra.near_semicircle import critical_profile
from solvable.spectra.roots import bracketed_root


@dataclass(frozen=True)
class Spikes:
    """Spikes at one end before the noise is added, with one column of couplings per spike."""

    heights: np.ndarray
    couplings: np.ndarray
    background: np.ndarray
    profiles: np.ndarray | None = None
    links: np.ndarray | None = None

    def some(self, rows: slice | np.ndarray) -> Spikes:
        """Select a subset of the spikes."""
        return Spikes(
            self.heights[rows],
            self.couplings[:, rows],
            self.background[rows],
            None if self.profiles is None else self.profiles[rows],
            None if self.links is None else self.links[rows],
        )


@dataclass(frozen=True)
class SideSpikes:
    """Spikes at one end of a spectrum, one entry each."""

    excess: np.ndarray  # height R_i - L at the edge
    beyond: np.ndarray  # zeta_i minus the edge's zeta; continued linearly below the threshold
    sharp: np.ndarray  # squared overlap c_i²; 0 below the threshold
    near: EdgeArrow


@dataclass(frozen=True)
class EdgeArrow:
    """Spikes and their couplings to single eigenvalues of the noise near the edge."""

    # Spike i has an eigenvalue at a distance t from the edge if g_i t - y_i - sum_k b_ik² / (t -
    # x_k) = 0, with the sum over the noise eigenvalues x_k near the edge; y and g describe the
    # rest of the spectrum.

    couplings: np.ndarray  # variance E[b_ik²] of the couplings
    value: np.ndarray  # g t - y at t = place, with the rest of the spectrum as a continuum
    slope: np.ndarray  # derivative of g t - y at t = place
    place: np.ndarray

    def without(self, depth: float, scale: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Heights y, metric g and couplings; eigenvalues down to a depth (in units of l) are left out."""
        # int_0^m rho / (t + s) ds = kappa (2/pi) [sqrt(m) - sqrt(t) arctan(sqrt(m / t))] for the edge
        # density rho = sqrt(s) / (pi l^(3/2)) and couplings b², kappa = b² l^(-3/2)
        m = depth * scale
        # At t = 0 the change of the metric has the limit g - 1, but infinity times zero is no number.
        t = np.maximum(self.place, 1e-12 * m)
        angle = np.arctan(np.sqrt(m / t))
        change = (angle / np.sqrt(t) - np.sqrt(m) / (m + t)) / np.pi
        # Their sum is at most the sum over the whole spectrum, so g >= 1. If the edge is a single
        # eigenvalue of the background, the density ends sooner than a square root does.
        kappa = np.minimum(self.couplings * scale**-1.5, (self.slope - 1) / change)
        inner = kappa * 2 / np.pi * (np.sqrt(m) - np.sqrt(t) * angle)
        metric = self.slope - kappa * change
        return metric * t - self.value - inner, metric, kappa * scale**1.5


class Side:
    """Upper end of a spectrum; for the lower end, negate the matrix."""

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
        self.n_features = n_features
        self.delta = n_samples / n_features
        self.mean = float(probabilities @ weights)
        self.start = float(atoms.max())
        self.lowest = self._lowest()
        self.critical = root(self.slope, self.lowest)  # the edge solves L' = 0   (spectra 18)
        self.edge = self.place(self.critical)
        self.curvature = self._curvature(self.critical)
        self.steepness = -self.resolvent(self.critical)[1]
        # Eigenvalues at the edge have spacing l, and N(t) = (2 / 3 pi) (t / l)^(3/2) of them are
        # within t of it: l^(-3/2) = D |G'| sqrt(2 / L'')
        self.scale = (n_features * self.steepness * np.sqrt(2 / self.curvature)) ** (-2 / 3)
        self.unit = float(np.sqrt(self.scale / (2 * self.curvature)))

    def _lowest(self) -> float:
        """Offset below which the largest weight alone would cause an eigenvalue."""
        largest = float(self.weights.max())
        if largest <= 0:
            return 0.0

        def beyond(offset: float) -> float:
            return 1 / (largest * self.resolvent(offset)[0]) - 1 / self.delta

        return root(beyond, 0.0)

    def resolvent(self, offset: float) -> tuple[float, float]:
        """G and its derivative, at an offset above the largest atom."""
        inverse = 1 / (self.start + offset - self.atoms)
        # np.mean gives the same numbers in twice the time, and this is called thousands of times a line.
        return float(inverse.sum() / inverse.size), -float((inverse**2).sum() / inverse.size)

    def place(self, offset: float) -> float:
        """Position L in the spectrum."""
        # L = zeta + E[w / (1 - w a)] - E[w] + b² G, a = G / delta   (spectra 18).
        G = self.resolvent(offset)[0]
        share = self.weights / (1 - self.weights * G / self.delta)
        moved = float(self.probabilities @ share) - self.mean
        return self.start + offset + moved + self.variance * G

    def slope(self, offset: float) -> float:
        """Derivative L', which increases with the offset."""
        G, change = self.resolvent(offset)
        share = (self.weights / (1 - self.weights * G / self.delta)) ** 2
        return 1 + change * (float(self.probabilities @ share) / self.delta + self.variance)

    def _curvature(self, offset: float) -> float:
        """Second derivative L'' at the edge."""
        G, change = self.resolvent(offset)
        second = 2 * float(np.mean(1 / (self.start + offset - self.atoms) ** 3))
        share = self.weights / (1 - self.weights * G / self.delta)
        quadratic = float(self.probabilities @ share**2) / self.delta + self.variance
        cubic = 2 * float(self.probabilities @ share**3) / self.delta**2
        return second * quadratic + change**2 * cubic

    def curves(
        self,
        offsets: np.ndarray,
        spikes: Spikes,
        *,
        own: bool = False,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """L, L', R and R' at offsets: all spikes at common offsets, or each spike at its own offset."""
        inverse = 1 / (self.start + offsets[:, None] - self.atoms)
        G, change = inverse.mean(axis=1), -np.mean(inverse**2, axis=1)
        share = 1 / (1 - G[:, None] * (self.weights / self.delta))
        moved, chance = self.weights * share, self.probabilities * share
        place = self.start + offsets + moved @ self.probabilities - self.mean + self.variance * G
        spread = moved**2 @ self.probabilities / self.delta
        slope = np.maximum(1 + change * (spread + self.variance), 0.0)

        def mean(rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
            return np.einsum("ij,ji->i", rows, columns) if own else rows @ columns

        if not own:
            G, change = G[:, None], change[:, None]
        # R = theta + E[u a / (1 - w a)] + b_i² G + the contribution of the atoms   (spectra 18).
        value = spikes.heights + mean(chance, spikes.couplings) * G / self.delta
        value = value + spikes.background * G
        rate = (mean(chance * share, spikes.couplings) / self.delta + spikes.background) * change
        if spikes.links is not None:
            value = value + mean(inverse, spikes.links.T)
            rate = rate - mean(inverse**2, spikes.links.T)
        elif spikes.profiles is not None:
            # zeta - <x>_i - 1 / <1 / (zeta - x)>_i
            profiles = spikes.profiles
            through, back = mean(inverse, profiles.T), -mean(inverse**2, profiles.T)
            zeta = self.start + (offsets if own else offsets[:, None])
            value = value + zeta - profiles @ self.atoms - 1 / through
            rate = rate + 1 + back / through**2
        return place, slope, value, rate

    def spikes(self, spikes: Spikes) -> SideSpikes:
        """Compute all spikes of this end."""
        # All functions are smooth in the offset: cubic interpolation between points whose distance
        # from the edge grows by 40 % a step, then one Newton step.
        steps = self.unit * np.concatenate([[0.0], np.geomspace(1e-1, 1e2, 20)])
        parts = [self.curves(self.critical + steps, spikes)]
        while (parts[-1][0][-1] < parts[-1][2][-1]).any():
            more = steps[-1] * np.geomspace(1, 30, 11)[1:]
            steps = np.concatenate([steps, more])
            parts.append(self.curves(self.critical + more, spikes))
        L, slope, R, rate = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        excess = R[0] - L[0]
        beyond = excess / -rate[0]
        out = np.flatnonzero(excess > 0)
        beyond[out] = crossing(steps, L[:, None] - R[:, out], slope[:, None] - rate[:, out])
        sharp = np.zeros(excess.size)
        # The linear equation has the exact value and slope at the outlier, or else four spacings
        # outside the edge.
        near = np.maximum(beyond, np.interp(4 * self.scale, L - L[0], steps))
        place, value, turned = np.empty((3, excess.size))
        for start in range(0, excess.size, 64):  # 64 spikes times the weights: a few megabytes
            rows = slice(start, start + 64)
            chosen = spikes.some(rows)
            there = self.curves(self.critical + np.maximum(beyond[rows], 0), chosen, own=True)
            gap, growth = there[0] - there[2], there[1] - there[3]
            found = excess[rows] > 0
            beyond[rows] -= np.where(found, gap / growth, 0.0)
            sharp[rows] = np.where(found, there[1] / growth, 0.0)
            there = self.curves(self.critical + near[rows], chosen, own=True)
            place[rows], value[rows] = there[0] - self.edge, there[0] - there[2]
            turned[rows] = 1 - there[3] / there[1]
        strength = -rate[0] / (self.n_features * self.steepness)
        return SideSpikes(excess, beyond, sharp, EdgeArrow(strength, value, turned, place))

    def scatter(self, couplings: np.ndarray, n_samples: float) -> np.ndarray:
        """Variance of the spike block's entries from n samples, minus the variance of the edge."""
        # n Var = E[w² h_i² h_j²] for features that are independent given the weight, with couplings
        # u = w² h²; on the diagonal the variance of w (h_i² - 1), because the edge moves with the
        # rest.
        with np.errstate(divide="ignore", invalid="ignore"):
            power = couplings / (self.weights**2)[:, None]
        power = np.where(np.isfinite(power), power, 1.0)
        chance = self.probabilities * self.weights**2
        variance = (power.T * chance) @ power
        diagonal = chance @ (3 * power**2 - 2 * power + 1)
        diagonal -= (self.probabilities * self.weights @ (power - 1)) ** 2
        np.fill_diagonal(variance, diagonal)
        return np.asarray(variance / n_samples)

    def rounded(self, spikes: SideSpikes) -> np.ndarray:
        """Mean squared overlap of each spike alone with the extreme eigenvector."""
        steepness = spikes.near.couplings * self.n_features * self.steepness
        unit = self.unit * self.curvature / steepness
        above = spikes.sharp / (1 - spikes.sharp) / unit
        place = np.where(spikes.excess > 0, above, spikes.beyond / self.unit)
        ratio = unit * critical_profile(place)
        return np.asarray(ratio / (1 + ratio))

    def places(self, spikes: SideSpikes) -> np.ndarray:
        """Mean positions of the eigenvalues, smoothed in the same way as the overlaps."""
        moved = (spikes.beyond + np.hypot(spikes.beyond, 2 * 0.85 * self.unit)) / 2
        return np.array([self.place(self.critical + offset) for offset in moved])


def crossing(steps: np.ndarray, gap: np.ndarray, growth: np.ndarray) -> np.ndarray:
    """Point where each column first becomes positive, by cubic interpolation of values and slopes."""
    cell, column = np.maximum(np.argmax(gap > 0, axis=0), 1) - 1, np.arange(gap.shape[1])
    width = np.diff(steps)[cell]
    first, change = gap[cell, column], gap[cell + 1, column] - gap[cell, column]
    start, end = width * growth[cell, column] - change, change - width * growth[cell + 1, column]
    low, high = np.zeros(cell.size), np.ones(cell.size)
    for _ in range(40):
        t = (low + high) / 2
        above = first + change * t + t * (1 - t) * (start * (1 - t) + end * t) > 0
        low, high = np.where(above, low, t), np.where(above, t, high)
    return np.asarray(steps[cell] + low * width)


def root(function: Callable[[float], float], above: float) -> float:
    """Root, above a given point, of a function that turns from negative to positive."""
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
