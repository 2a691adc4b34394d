"""First order in 1/d of the difference between samples and Gaussian measurements."""

# Gaussian matrices are replaced by Z = (x x^T - I) / sqrt(d) one by one (Lindeberg). Each replacement
# changes the minimum of the objective by the mean of max over u of u r - d² (1 + V) u² / 4 - cubic -
# quartic terms, with the residual r = y - <Z, S> without the sample and its leverage V. Three properties
# of x x^T contribute at order 1/d (quadratic 20). First, leverages vary with the direction of x. Second,
# the leverage and r are correlated. Third, a sample moves M = S* + delta Z by theta x x^T, which is not
# small: Tr (M - b)_+² changes by the phase shift -Im log(1 - theta x^T G x) / pi, and a Gaussian matrix
# changes it by the second order in theta only.

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from solvable.spectra._panels import PANEL_NODES
from solvable.spectra.free_convolution import SpectralLaw
from solvable.spectra.functionals import tail_ends

GROUPS = 1000
"""Number of eigenvalue groups; sums over pairs of eigenvalues run over pairs of groups."""


class Gain(NamedTuple):
    """Difference in the gain of d² Phi between one sample and one Gaussian matrix, times d."""

    total: float
    by_noise: float
    """Derivative of the difference in the label noise of this one sample."""


@dataclass(frozen=True)
class SampleShape:
    """Integrals over a spectral law above a threshold that determine the gain."""

    error: float
    """Error R of the learned matrix."""
    freedom: float
    """Degrees of freedom of the fit over d², A."""
    leverages: float
    """Mean over eigenvalues x of rho(x)², the squared row sum of divided differences."""
    with_error: float
    with_lean: float
    cube: float
    third: float
    fourth: float
    tilt: float

    def gain(self, sample_ratio: float, label_noise: float) -> Gain:
        """Gain of one sample over a Gaussian measurement, to first order (quadratic 20)."""
        T, s = 2 * self.error + label_noise, 1 - self.freedom / sample_ratio
        e = 1 / (4 * sample_ratio * s)  # epsilon; s = 1 / (1 + V)
        together = 8 * e * self.with_lean  # sqrt(d) Cov(r, V)
        # -Cov(r², V) s² + E r² (V - E V)² s³, Var V = 32 epsilon² <rho²> / d
        uneven = 32 * e**2 * self.leverages * s**3
        gain = T * uneven - 16 * e * self.with_error * s**2 + 2 * together**2 * s**3
        # cubic: -4 epsilon² E (r s)³ tau_3 / d^(5/2), sqrt(d) E r³ = 8 Tr E³ / d
        cubic = -4 * e**2 * s**3 * (3 * self.tilt - 9 * self.third * together * s)
        gain += T * cubic - 32 * e**2 * s**3 * self.cube * self.third
        # quartic: -8 epsilon³ E (r s)⁴ tau_4 / d³, and the second order of the cubic
        quartic = 3 * s**4 * (-8 * e**3 * self.fourth + 36 * e**4 * self.third**2 * s)
        return Gain(gain + T**2 * quartic, uneven + cubic + 2 * T * quartic)


def sample_shape(law: SpectralLaw, threshold: float, cut: float | None = None) -> SampleShape:
    """Functionals of the law of target plus noise, its learned part and the remaining error."""
    return _Learned(law, threshold, threshold if cut is None else cut).shape()


def rank_slopes(law: SpectralLaw, threshold: float) -> SampleShape:
    """Derivatives of the functionals in eta, for a penalty b Tr S + eta rank S."""
    return _Learned(law, threshold, threshold).slopes()


class _Learned:
    """Nodes of the law, those above a cut first, with the learned values f(x) = x - b above the cut."""

    def __init__(self, law: SpectralLaw, b: float, cut: float) -> None:
        self.law, self.b, t = law, b, law.variance
        below, self.above = _sides(law, cut)
        (low_x, low_u, low_v, low_w), (top_x, top_u, top_v, top_w) = (
            grouped(side) for side in (below, self.above)
        )
        self.mass = float(top_w.sum())
        # rho(x) = int mu(dy) (f(x) - f(y)) / (x - y): row sums of divided differences D of f
        self.gaps = 1 / (top_x[:, None] - low_x[None, :])
        self.rho = np.concatenate(
            [
                self.mass + (top_x - b) * (self.gaps @ low_w),
                self.mass - (b - low_x) * (top_w @ self.gaps),
            ]
        )
        self.x, u, v, self.w = (np.concatenate(pair) for pair in (
            (top_x, low_x), (top_u, low_u), (top_v, low_v), (top_w, low_w),
        ))  # fmt: skip
        self.f, shift = np.append(top_x - b, 0 * low_x), self.x - u  # delta² h
        # Moments of S* in an eigenvector of M at x give E_xx and (E²)_xx of E = S* - S.
        self.first, self.second = u - shift, t + u**2 - 2 * u * shift - v**2
        self.lean = self.first - self.f
        self.square = self.second - 2 * self.f * self.first + self.f**2
        self.top = top_x.size

    def _error_resolvent(self, x: np.ndarray, g: np.ndarray) -> np.ndarray:
        # int mu(dy) E_yy / (x - y) = zeta g - 1 + mass - (x - b) int_b mu(dy) / (x - y), zeta = x - t g
        low_x, low_w = self.x[self.top :], self.w[self.top :]
        left = (low_w / (x[:, None] - low_x)).sum(axis=1)
        zeta = x - self.law.variance * g
        return np.asarray(zeta * g - 1 + self.mass - (x - self.b) * (g - left))

    def shape(self) -> SampleShape:
        """Compute the integrals that determine the gain."""
        t, w, f, rho, lean = self.law.variance, self.w, self.f, self.rho, self.lean
        nodes = self.law.target.nodes
        cube = self.law.target.node_weights @ nodes**3
        cube += w @ (-3 * self.second * f + 3 * self.first * f**2 - f**3)
        top_lean, low_lean = np.split(w * lean, [self.top])
        # E_xx D E_yy
        pair = top_lean.sum() ** 2 + 2 * (top_lean * f[: self.top]) @ self.gaps @ low_lean
        # tau_p = int 2 (x - b) Im g^p dx / p pi, with the resolvent g on the lower side of the axis
        place, where, height, weights = self.above
        g = (place - where) / t + 1j * height / t
        phases = weights * t / height * 2 * (place - self.b)
        third, fourth = (float(phases @ np.imag(g**p)) / p for p in (3, 4))
        # sqrt(d) Cov(r, tau_3)
        tilt = 2 * float(phases @ np.imag(g**2 * self._error_resolvent(place, g)))
        return SampleShape(
            error=float(w @ self.square),
            freedom=float(w @ rho) / 2,
            leverages=float(w @ rho**2),
            with_error=2 * float(w @ (rho * self.square)) + float(pair),
            with_lean=float(w @ (rho * lean)),
            cube=float(cube),
            third=third,
            fourth=fourth,
            tilt=tilt,
        )

    def slopes(self) -> SampleShape:
        """Derivatives along -delta(x - b), the change of f under a penalty of the rank."""
        t, b, mass = self.law.variance, self.b, self.mass
        u, v = (float(value) for value in self.law.preimage(b))
        density, hilbert = v / (np.pi * t), (b - u) / t
        first, second = 2 * u - b, t + u**2 - 2 * u * (b - u) - v**2

        def pairs(values: np.ndarray, at_b: float) -> float:
            # int int mu mu q(x) (df(x) - df(y)) / (x - y) = -mu(b) int mu(dy) (q(b) + q(y)) / (b - y)
            rest = self.w @ ((values - at_b) / (b - self.x))
            return -density * float(rest + 2 * at_b * hilbert)

        # At b: f = 0, rho = mass, D(b, y) = 1 above b and 0 below.
        lean = pairs(self.lean, first)
        top_lean = float((self.w * self.lean)[: self.top].sum())
        pair = 2 * density * top_lean + 2 * first * (lean + density * first * hilbert)
        square = pairs(self.square, second) + 2 * density * mass * first
        place, where, height, weights = self.above
        g = (place - where) / t + 1j * height / t
        at_b = np.array([hilbert + 1j * v / t])
        third, fourth = (-2 * float(np.imag(at_b[0] ** p)) / (p * np.pi) for p in (3, 4))
        tilt = 4 * density * float((weights * t / height) @ np.imag(g**2))
        ends = at_b**2 * self._error_resolvent(np.array([b]), at_b)
        return SampleShape(
            error=2 * density * first,
            freedom=-density * hilbert,
            leverages=2 * pairs(self.rho, mass),
            with_error=2 * square + pair,
            with_lean=lean + density * mass,
            cube=3 * density * second,
            third=third,
            fourth=fourth,
            tilt=tilt - 4 / np.pi * float(np.imag(ends[0])),
        )


def _sides(law: SpectralLaw, threshold: float) -> list[np.ndarray]:
    """Nodes (x, u, height, weight) of a law below and above a threshold."""
    component, (start, stop) = law.panel_components, law.panel_ends.T
    end = tail_ends(law, threshold)[component]
    nodes = np.stack([law.x, law.u, law.height, law.weights]).reshape(4, -1, PANEL_NODES)
    cut = (start < end) & (end < stop)
    sides = []
    for whole, ends in ((stop <= end, (start, end)), (start >= end, (end, stop))):
        parts = [nodes[:, whole].reshape(4, -1)]
        if cut.any():
            points, weights = law.panels(component[cut], *(side[cut] for side in ends))
            parts.append(np.stack([points.x, points.u, points.height, weights]))
        sides.append(np.concatenate(parts, axis=1))
    return sides


def grouped(nodes: np.ndarray, most: int = GROUPS) -> np.ndarray:
    """Average neighbouring nodes so that at most ``most`` groups remain."""
    size = 1
    while nodes.shape[1] > most * size:
        size *= 2
    starts = np.arange(0, nodes.shape[1], size)
    weights = nodes[3]
    if size == 1:
        return nodes
    total = np.add.reduceat(weights, starts)
    means = np.add.reduceat(nodes[:3] * weights, starts, axis=1) / total
    return np.vstack([means, total])
