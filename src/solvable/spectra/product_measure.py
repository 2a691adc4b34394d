"""Marchenko-Pastur law as a target spectrum, computed from the resolvent."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from solvable.arrays import check_positive
from solvable.hermite import panel_nodes
from solvable.spectra.measures import DiscreteMeasure, RealSums


@dataclass(frozen=True)
class MarchenkoPasturMeasure:
    """Spectrum of scale / sqrt(p d) W W^T, the Marchenko-Pastur law."""

    # There is mass (1 - kappa)_+ at 0 and a bulk on (1 +- sqrt(kappa))² / sqrt(kappa). At scale 1 the
    # resolvent solves z g² / sqrt(kappa) - (z - sqrt(kappa) + 1 / sqrt(kappa)) g + 1 = 0
    # (spectra 31).

    width_ratio: float  # ratio kappa = p / d, above 0
    scale: float = 1.0  # factor of every eigenvalue; kappa^(-1/2) gives W W^T / p

    def __post_init__(self) -> None:
        check_positive(width_ratio=self.width_ratio, scale=self.scale)

    @cached_property
    def _root(self) -> float:
        return float(np.sqrt(self.width_ratio))

    @cached_property
    def bulk(self) -> tuple[float, float]:
        """Edges of the continuous part."""
        root = self._root
        return (
            float(self.scale * (1 - root) ** 2 / root),
            float(self.scale * (1 + root) ** 2 / root),
        )

    @cached_property
    def rule(self) -> DiscreteMeasure:
        """Gauss-Legendre panels in the angle, graded towards both edges of the bulk."""
        small = np.pi * np.append(0.0, 2.0 ** np.arange(-10, -5))
        ends = np.concatenate([small, np.arange(2, 31) * np.pi / 32, np.pi - small[::-1]])
        angles, steps = panel_nodes(ends, 20)
        low, high = self.bulk
        middle, half = (low + high) / 2, (high - low) / 2
        places = middle - half * np.cos(angles)
        weights = np.sin(angles) ** 2 / places * steps
        weights *= min(1.0, self.width_ratio) / weights.sum()
        if self.width_ratio < 1:
            places, weights = np.append(0.0, places), np.append(1 - self.width_ratio, weights)
        return DiscreteMeasure(places, weights)

    @property
    def nodes(self) -> np.ndarray:
        """Nodes of a graded Gauss rule, and the position of the atom."""
        return self.rule.nodes

    @property
    def node_weights(self) -> np.ndarray:
        """Weights of the Gauss rule, and of the atom."""
        return self.rule.node_weights

    @property
    def pieces(self) -> np.ndarray:
        """Intervals of the support: the atom at 0, if there is one, and the bulk."""
        return np.array([(0.0, 0.0), self.bulk] if self.width_ratio < 1 else [self.bulk])

    @property
    def masses(self) -> np.ndarray:
        """Mass of the atom if there is one, and of the bulk."""
        ratio = self.width_ratio
        return np.array([1 - ratio, ratio] if ratio < 1 else [1.0])

    @property
    def terms(self) -> int:
        """A few dozen terms: closed forms are used at nearly all points."""
        return 50

    def resolvent(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        r"""Resolvent :math:`G(z)=\int\mu(ds)/(z-s)` above the axis and its first two derivatives."""
        root = self._root
        z = np.asarray(z, dtype=complex) / self.scale
        g, rest, branch = self._roots(z)
        middle = (self.bulk[0] + self.bulk[1]) / (2 * self.scale)
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = -rest / branch
            bend = -slope * (1 - 2 * g / root) / branch
            bend = bend + rest * (z - middle) / branch**3
        return g / self.scale, slope / self.scale**2, bend / self.scale**3

    def _roots(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return G, G - G² / sqrt(kappa*), and the square root in G, all at scale 1."""
        root = self._root
        # Two square roots of single factors select the branch that decays at infinity.
        branch = np.sqrt(z - self.bulk[0] / self.scale)
        branch *= np.sqrt(z - self.bulk[1] / self.scale)
        linear = z + (1 / root - root)
        g = linear + branch
        rest = linear - branch
        # Each form of the root cancels for some z; the larger sum never cancels.
        cancels = np.abs(g) < np.abs(rest)
        with np.errstate(divide="ignore", invalid="ignore"):
            np.divide(2, g, out=g)
            if cancels.any():
                g[cancels] = (rest * root / (2 * z))[cancels]
            np.multiply(g, 1 - g / root, out=rest)
        return g, rest, branch

    def _far(self, u: np.ndarray) -> np.ndarray:
        """Largest y at which the closed forms cancel but the Gauss rule has converged."""
        low, high = self.bulk
        distance = np.maximum(np.maximum(low - u, u - high), 0.0)
        limit = np.where(distance > 0.002 * (high - low), 1e-3 * distance**2, 0.0)
        if self.width_ratio < 1 and low > 0.002 * (high - low):
            limit[np.abs(u) < 0.3 * low] = np.inf
        return limit

    def _close_sums(
        self, u: np.ndarray, y: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        height = np.sqrt(y)
        z = np.empty(u.shape, dtype=complex)
        z.real, z.imag = u, height
        g, rest, branch = self._roots(z / self.scale)
        g /= self.scale
        slope = rest / branch
        slope /= -(self.scale**2)
        first = -g.imag / height
        odd = slope.imag / (2 * height)
        plain = (slope.real + first) / (2 * y)
        second = plain.copy()
        # Near the axis the plain formula is a difference of nearly equal numbers.
        low = np.flatnonzero(~(y * plain > 1e-3 * first))
        if low.size:
            off_axis, usable = self._divided(u[low], height[low])
            second[low] = np.where(usable, off_axis, plain[low])
        # Lower bound of the second sum by Cauchy-Schwarz, which rounding must not violate.
        second = np.maximum(second, np.maximum(odd**2 / first, first**2))
        return first, second, g.real, odd

    def _divided(self, u: np.ndarray, height: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Second sum outside the bulk, as a divided difference of G without cancellation."""
        # With G = 2/q, q = L + s and s² quadratic, the divided differences of s over z, z, conj(z)
        # are rational in the parts of s.
        root, (low, high) = self._root, self.bulk
        low, high = low / self.scale, high / self.scale
        z = (u + 1j * height) / self.scale
        branch = np.sqrt(z - low) * np.sqrt(z - high)
        q = z - root + 1 / root + branch
        with np.errstate(divide="ignore", invalid="ignore"):
            first = 1 + (2 * z.real - low - high) / (2 * branch.real)
            third = 4 * branch.imag**2 - 4 * z.imag**2 - (high - low) ** 2
            third = third / (8 * branch.real**2 * branch * q**2)
            second = first * q.imag**2 / np.abs(q) ** 4 + z.imag * third.imag
            second = 2 * second / z.imag**2
        usable = (np.abs(branch.real) > np.abs(branch.imag)) & (np.abs(q) > 1e-3 * np.abs(branch))
        return second / self.scale**4, usable & np.isfinite(second)

    def inverse_squares(self, u: np.ndarray) -> RealSums:
        """Return the sums of inverse squared distances as a function of y."""
        limit = self._far(u)

        def sums(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            far = y < limit
            if not far.any():
                return self._close_sums(u, y)[:2]
            first, second = np.empty(u.shape), np.empty(u.shape)
            first[far], second[far] = self.rule.inverse_squares(u[far])(y[far])
            if not far.all():
                close = ~far
                first[close], second[close] = self._close_sums(u[close], y[close])[:2]
            return first, second

        return sums

    def start(self, u: np.ndarray, variance: float) -> np.ndarray:
        r"""Height from the cubic for :math:`p=\delta^2|G|^2`; if the cubic is inaccurate, from a scan."""
        # With c = sqrt(kappa*) and z = 1/g + c² / (c - g), the imaginary part Im z = -delta² Im g
        # makes |c - g|² = c² |g|² / (1 - p), and the real part (at scale 1)
        # p³ - (delta² c² + 1 - c² + 2cu) p² + (3 delta² c² + 2cu) p - 2 delta² c² = 0.
        least = 1e-12  # smallest squared imaginary part of g, relative to its scale
        share = self._squared_imaginary(u / self.scale, variance / self.scale**2)
        y = variance * np.maximum(share, least)
        first, second = self.inverse_squares(u)(y)
        # A Newton step ends below the root from either side; this step starts close to the root.
        step = first * (first * variance - 1) / second
        close = (share > least) & (np.abs(step) < 0.1 * y)
        y += step
        if not close.all():
            y[~close] = self._scanned_start(u[~close], variance)
        return np.asarray(y)

    def _squared_imaginary(self, u: np.ndarray, t: float) -> np.ndarray:
        """Return variance times (Im G)² at real parts u, at scale 1; inaccurate near 0."""
        c = self._root
        quadratic = -(t * c**2 + 1 - c**2 + 2 * c * u)
        linear = 3 * t * c**2 + 2 * c * u
        shift = quadratic**2 - 3 * linear
        turn = 2 * quadratic**3 - 9 * quadratic * linear - 54 * t * c**2
        spread = np.sqrt((turn**2 - 4 * shift**3).astype(complex))
        cube = ((turn + np.where(turn < 0, -spread, spread)) / 2) ** (1 / 3)
        unity = np.exp(2j * np.pi / 3 * np.arange(3))[:, None]  # the three cube roots of 1
        with np.errstate(divide="ignore", invalid="ignore"):
            turned = unity * cube
            roots = (quadratic + turned + shift / turned) / -3
            p = roots.real
            a = (c**2 + p / t - c**2 * p / (t * (1 - p))) / (2 * c)
            real = (np.abs(roots.imag) < 1e-6 * p) & (p < 1)
            found = np.where(real, p - t * a**2, 0.0)
        # Only one of the real roots gives an imaginary part.
        return np.asarray(found.max(axis=0))

    def _scanned_start(self, u: np.ndarray, variance: float) -> np.ndarray:
        """Positive lower bound of the squared height; at least the value for the atom alone."""
        scales = [2.0 ** -np.arange(0, 24, 2.0), 10.0 ** -np.arange(8.0, 26.0, 2.0)]
        y = variance * np.concatenate(scales)
        g, _, _ = self.resolvent(u + 1j * np.sqrt(y)[:, None])
        with np.errstate(divide="ignore"):
            below = -g.imag * variance >= np.sqrt(y)[:, None] * (1 + 1e-6)
        # The sum decreases with y: take the largest y at which it still exceeds 1 / t.
        chosen = np.argmax(below, axis=0)
        least = np.where(below.any(axis=0), y[chosen], y[-1])
        if self.width_ratio < 1:
            least = np.maximum(least, variance * (1 - self.width_ratio) - u**2)
        return np.asarray(least)

    def odd_sums(self, u: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Sums that are odd in the distance."""
        first, second = np.empty(u.shape), np.empty(u.shape)
        far = y < self._far(u)
        if far.any():
            first[far], second[far] = self.rule.odd_sums(u[far], y[far])
        on_axis = ~far & (y == 0)
        if on_axis.any():
            g, _, bend = self.resolvent(u[on_axis])
            first[on_axis], second[on_axis] = g.real, bend.real / 2
        close = ~far & (y > 0)
        if close.any():
            first[close], second[close] = self._close_sums(u[close], y[close])[2:]
        return first, second

    def outside(self, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Second and third inverse moments of the distance."""
        first, second = np.empty(u.shape), np.empty(u.shape)
        far = self._far(u) > 0
        if far.any():
            first[far], second[far] = self.rule.outside(u[far])
        close = ~far
        if close.any():
            _, slope, bend = self.resolvent(u[close])
            first[close], second[close] = -slope.real, bend.real / 2
        return first, second


def marchenko_pastur(width_ratio: float, *, scale: float = 1.0) -> MarchenkoPasturMeasure:
    r"""Spectrum of :math:`\frac{1}{\sqrt{p^\star d}}WW^\top` times ``scale``.

    Parameters
    ----------
    width_ratio : float
        :math:`\kappa^\star=p^\star/d`, above 0.
    scale : float
        Factor on the eigenvalues, above 0.

    Returns
    -------
    MarchenkoPasturMeasure
        Mean :math:`\sqrt{\kappa^\star}` and second moment :math:`1+\kappa^\star` at scale 1.

    Examples
    --------
    >>> law = marchenko_pastur(0.25)
    >>> law.bulk
    (0.5, 4.5)
    >>> round(float(law.node_weights @ law.nodes**2), 12)
    1.25
    """
    return MarchenkoPasturMeasure(float(width_ratio), float(scale))
