"""What samples add to Gaussian measurements of the same covariance, to first order in 1/d."""

# Exchange Gaussian matrices for Z = (x x^T - I) / sqrt(d) one by one (Lindeberg): each changes the
# minimum of the objective by the mean of max over u of u r - d^2 (1 + V) u^2 / 4 - cubic - quartic, where
# r = y - <Z, S> without this sample and V its leverage (derived). Three properties of x x^T count at
# order 1/d: leverages differ, by the place of x among the directions that are learned; they and r
# depend on each other; and a sample is no small change of M = S* + delta Z, but moves it by
# theta x x^T, so that Tr (M - b)_+^2 changes by the phase shift -Im log(1 - theta x^T G x) / pi, of which
# a Gaussian matrix has the second order in theta alone.

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from solvable.spectra._panels import PANEL_NODES
from solvable.spectra.free_convolution import SpectralLaw
from solvable.spectra.functionals import tail_ends

GROUPS = 1000
"""Groups of eigenvalues between which pairs are summed."""


class Gain(NamedTuple):
    """What the shape of samples adds to the d^2 Phi that one more sample gains, times d."""

    total: float
    by_noise: float
    """Its derivative in Delta, all but the sample itself unchanged."""


@dataclass(frozen=True)
class SampleShape:
    """What the gain takes of a law and a threshold, at any number of samples and label noise."""

    error: float
    """R."""
    freedom: float
    """A."""
    leverages: float
    """Mean of rho^2."""
    with_error: float
    with_lean: float
    cube: float
    third: float
    fourth: float
    tilt: float

    def gain(self, sample_ratio: float, label_noise: float) -> Gain:
        """First order of one more sample, over a Gaussian measurement, at a solution of the limit."""
        T, s = 2 * self.error + label_noise, 1 - self.freedom / sample_ratio
        e = 1 / (4 * sample_ratio * s)  # epsilon; s = 1 / (1 + V)
        together = 8 * e * self.with_lean  # sqrt(d) Cov(r, V)
        # -Cov(r^2, V) s^2 + E r^2 (V - E V)^2 s^3, Var V = 32 epsilon^2 <rho^2> / d
        uneven = 32 * e**2 * self.leverages * s**3
        gain = T * uneven - 16 * e * self.with_error * s**2 + 2 * together**2 * s**3
        # cubic: -4 epsilon^2 E (r s)^3 tau_3 / d^(5/2), sqrt(d) E r^3 = 8 Tr E^3 / d
        cubic = -4 * e**2 * s**3 * (3 * self.tilt - 9 * self.third * together * s)
        gain += T * cubic - 32 * e**2 * s**3 * self.cube * self.third
        # quartic: -8 epsilon^3 E (r s)^4 tau_4 / d^3, and the second order of the cubic
        quartic = 3 * s**4 * (-8 * e**3 * self.fourth + 36 * e**4 * self.third**2 * s)
        return Gain(gain + T**2 * quartic, uneven + cubic + 2 * T * quartic)


def sample_shape(law: SpectralLaw, threshold: float, cut: float | None = None) -> SampleShape:
    """Functionals of target plus noise, its learned part and the error that it leaves."""
    b, t = threshold, law.variance
    below, above = _sides(law, b if cut is None else cut)
    (low_x, low_u, low_v, low_w), (top_x, top_u, top_v, top_w) = grouped(below), grouped(above)
    mass = float(top_w.sum())
    # rho(x) = int mu(dy) (f(x) - f(y)) / (x - y): row sums of divided differences D of f(x) = (x - b)
    # above the cut, 0 below
    gaps = 1 / (top_x[:, None] - low_x[None, :])
    rho = np.concatenate([mass + (top_x - b) * (gaps @ low_w), mass - (b - low_x) * (top_w @ gaps)])
    x, u, v, w = (np.concatenate(pair) for pair in (
        (top_x, low_x), (top_u, low_u), (top_v, low_v), (top_w, low_w),
    ))  # fmt: skip
    f, shift = np.append(top_x - b, 0 * low_x), x - u  # delta^2 h
    # Moments of S* in an eigenvector of M at x, and so those of E = S* - S: E_xx and (E^2)_xx.
    first, second = u - shift, t + u**2 - 2 * u * shift - v**2
    lean, square = first - f, second - 2 * f * first + f**2
    nodes = law.target.nodes
    cube = law.target.node_weights @ nodes**3 + w @ (-3 * second * f + 3 * first * f**2 - f**3)
    top_lean, low_lean = np.split(w * lean, [top_x.size])
    pair = top_lean.sum() ** 2 + 2 * (top_lean * (top_x - b)) @ gaps @ low_lean  # E_xx D E_yy
    # tau_p = int 2 (x - b) Im g^p dx / p pi, with the resolvent g on the lower side of the axis
    place, where, height, weights = above
    g = (place - where) / t + 1j * height / t
    phases = weights * t / height * 2 * (place - b)
    third, fourth = (float(phases @ np.imag(g**p)) / p for p in (3, 4))
    # int mu(dy) E_yy / (x - y) = zeta g - 1 + mass - (x - b) int_b mu(dy) / (x - y), zeta = x - delta^2 g
    left = (low_w / (place[:, None] - low_x)).sum(axis=1)
    error_resolvent = (place - t * g) * g - 1 + mass - (place - b) * (g - left)
    tilt = 2 * float(phases @ np.imag(g**2 * error_resolvent))  # sqrt(d) Cov(r, tau_3)
    return SampleShape(
        error=float(w @ square),
        freedom=float(w @ rho) / 2,
        leverages=float(w @ rho**2),
        with_error=2 * float(w @ (rho * square)) + float(pair),
        with_lean=float(w @ (rho * lean)),
        cube=float(cube),
        third=third,
        fourth=fourth,
        tilt=tilt,
    )


def _sides(law: SpectralLaw, threshold: float) -> list[np.ndarray]:
    """Place, u, height and weight of the nodes below a threshold, and above."""
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
    """Means over as many neighbouring nodes as leave at most so many groups, and their weights."""
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
