r"""Overlap of one hidden neuron with a Hermite target, and the mean square of its components."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import factorial, pi, sqrt
from typing import Literal

import numpy as np

from solvable.arrays import Array
from solvable.errors import InvalidParameter, NotConverged, unknown_choice
from solvable.hermite import GAUSSIAN_RANGE, hermite_polynomials, panel_nodes
from solvable.links import Link, make_link

ACTIVATIONS = ("erf", "tanh", "relu")
"""Named activations; any formula in z that :func:`solvable.links.make_link` reads is allowed too."""

Target = Literal["hermite", "parity"]

LARGEST_NORM = 1_000.0
"""Largest pre-activation scale of a tabulated activation."""

HIGHEST_DEGREE = 40
"""Largest Hermite degree of a tabulated activation."""


class Profile:
    r"""Hermite coefficients :math:`a_m(s) = E[\sigma(s\xi) h_m(\xi)]` as functions of the scale s."""

    # x -> sigma(w.x) depends on s = |w| and on the direction only, so that
    # <sigma(w.x), h_m(x_1)> = a_m(s) (u/s)^m: one function of s serves every neuron.

    def __init__(self, activation: str, link: Link) -> None:
        self.activation = activation
        self.link = link
        self._splines: dict[int, Callable[[np.ndarray], np.ndarray]] = {}

    @cached_property
    def homogeneous(self) -> bool:
        """Return True if sigma(b h) = b sigma(h) for b > 0."""
        points = np.array([-3.0, -1.0, -0.2, 0.2, 1.0, 3.0])
        return all(
            np.allclose(self.link(factor * points), factor * self.link(points), rtol=1e-12, atol=0)
            for factor in (0.3, 2.0, 17.0)
        )

    def coefficient(self, degree: int, scale: np.ndarray) -> np.ndarray:
        """Compute a_m(s) at scales s >= 0 of any shape."""
        s = np.asarray(scale, dtype=np.float64)
        if self.activation == "erf":
            # E erf^(m)(s xi) = (1 + 2 s²)^(-m/2) erf^(m)(0); Stein's lemma gives s^m / sqrt(m!)
            return np.asarray(erf_amplitude(degree) * (s / np.sqrt(1 + 2 * s * s)) ** degree)
        if self.homogeneous:
            return np.asarray(s * self._quadrature(np.ones(1), degree)[degree, 0])
        if degree > HIGHEST_DEGREE - 2:
            raise InvalidParameter(
                f"degree is {degree}; allowed for the activation {self.activation!r}: up to "
                f"{HIGHEST_DEGREE - 2}."
            )
        return np.asarray(self._spline(degree)(np.arcsinh(self._checked(s))))

    def power(self, scale: np.ndarray) -> np.ndarray:
        """Compute E sigma(s xi)² at scales s >= 0."""
        s = np.asarray(scale, dtype=np.float64)
        if self.activation == "erf":
            return np.asarray(2 / pi * np.arcsin(2 * s * s / (1 + 2 * s * s)))
        if self.homogeneous:
            return np.asarray(s * s * self._table[1][0] / LARGEST_NORM**2)
        return np.asarray(self._spline(-1)(np.arcsinh(self._checked(s))))

    def _checked(self, s: np.ndarray) -> np.ndarray:
        if s.size and float(s.max()) > LARGEST_NORM:
            raise InvalidParameter(
                f"a neuron has norm {float(s.max()):.3g}; allowed for the activation "
                f"{self.activation!r}: up to {LARGEST_NORM:g}."
            )
        return s

    def _nodes(self, per_panel: int, scale: float) -> tuple[np.ndarray, np.ndarray]:
        """Gauss-Legendre panels that shrink towards 0, where sigma(s xi) varies fast, split at kinks."""
        halves = 2.0 ** -np.arange(1, 18)
        grid = np.concatenate([halves, np.arange(0.0, GAUSSIAN_RANGE + 1)])
        kinks = [b / scale for b in self.link.breakpoints if abs(b) < GAUSSIAN_RANGE * scale]
        edges = np.unique(np.concatenate([grid, -grid, kinks]))
        nodes, weights = panel_nodes(edges, per_panel)
        weights = weights * np.exp(-(nodes**2) / 2)
        return nodes, weights / weights.sum()

    def _quadrature(self, scales: np.ndarray, degree: int, per_panel: int = 20) -> np.ndarray:
        """Hermite coefficients a_0 to a_degree at each scale, shape (degree + 1, scales)."""
        kinked = any(self.link.breakpoints)
        blocks = [scales[j : j + 1] for j in range(scales.size)] if kinked else [scales]
        coefficients = []
        for block in blocks:
            nodes, weights = self._nodes(per_panel, float(block[0]))
            with np.errstate(all="ignore"):
                values = self.link(block[:, None] * nodes) * weights
            coefficients.append(hermite_polynomials(nodes, degree) @ values.T)
        return np.concatenate(coefficients, axis=1)

    @cached_property
    def _table(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Scales, powers, and coefficients of every degree."""
        if self.homogeneous:
            scales = np.array([LARGEST_NORM])
        else:
            scales = np.sinh(np.linspace(1e-7, np.arcsinh(LARGEST_NORM), 1_500))
        coefficients = self._quadrature(scales, HIGHEST_DEGREE)
        probe = scales[:: max(1, scales.size // 12)]
        finer = self._quadrature(probe, HIGHEST_DEGREE, 32)
        difference = np.abs(coefficients[:, :: max(1, scales.size // 12)] - finer).max()
        size = np.abs(finer).max()
        if not np.isfinite(coefficients).all() or not difference <= 1e-8 * size:
            raise NotConverged(
                f"Hermite coefficients of the activation {self.activation!r} at pre-activations of "
                f"scale up to {LARGEST_NORM:g} change by {difference:.1e} on refining the quadrature; "
                "allowed: functions that neither oscillate nor grow like an exponential.",
                {"difference": float(difference)},
            )
        powers = np.empty(scales.size)
        for j, scale in enumerate(scales):
            nodes, weights = self._nodes(20, float(scale))
            powers[j] = weights @ self.link(scale * nodes) ** 2
        return scales, powers, coefficients

    def _spline(self, degree: int) -> Callable[[np.ndarray], np.ndarray]:
        """Return a spline in arcsinh(s) of a_degree, or of the power for degree -1."""
        if degree not in self._splines:
            from scipy.interpolate import CubicHermiteSpline, CubicSpline

            scales, powers, coefficients = self._table
            place = np.arcsinh(scales)
            if degree == -1:
                self._splines[degree] = CubicSpline(place, powers)
            else:
                values = coefficients[degree]
                # s a_m'(s) = m a_m + sqrt((m+1)(m+2)) a_(m+2), by parts
                ladder = sqrt((degree + 1) * (degree + 2)) * coefficients[degree + 2]
                slope = (degree * values + ladder) / scales
                self._splines[degree] = CubicHermiteSpline(
                    place, values, slope * np.sqrt(1 + scales**2)
                )
        return self._splines[degree]


@lru_cache(maxsize=32)
def profile(activation: str) -> Profile:
    """Return the Hermite coefficients of an activation, given by name or formula."""
    if activation not in ACTIVATIONS:
        try:
            return Profile(activation, make_link(activation, standardised=False))
        except InvalidParameter as error:
            listed = unknown_choice("activation", activation, ACTIVATIONS)
            raise InvalidParameter(f"{listed} A formula in z is allowed too; {error}") from error
    return Profile(activation, make_link(activation, standardised=False))


def erf_amplitude(degree: int) -> float:
    """Compute erf^(m)(0) / sqrt(m!), with its sign; 0 for even degrees."""
    if degree % 2 == 0:
        return 0.0
    half = (degree - 1) // 2
    # (-1)^((m-1)/2) (2 / sqrt(pi)) (m-1)! / (((m-1)/2)! sqrt(m!))
    return (
        (-1) ** half
        * 2
        / sqrt(pi)
        * factorial(degree - 1)
        / factorial(half)
        / sqrt(factorial(degree))
    )


@dataclass(frozen=True)
class NeuronOverlap:
    """Overlap of a hidden neuron with a normalised target of one direction."""

    # c(w) = <sigma(w.x), y> = a_m(s) (u/s)^m, s² = u² + r   (two-layer-posterior 2; arXiv:2512.04165,
    # Equation 35), with w = u w* + w_perp, r = |w_perp|², Gaussian x and y = He_m(w*.x) / sqrt(m!). The
    # other target is y = x_1 x_2 of two bits, with w* = (e_1 + e_2) / sqrt(2). Erf and homogeneous
    # activations have closed forms; others use a table, accurate to about 1e-11.

    activation: str  # one of ACTIVATIONS, or a formula in z
    degree: int
    target: Target = "hermite"

    def value(self, u: Array, r: Array) -> np.ndarray:
        """Compute c(u, r) with broadcasting."""
        u, r = np.broadcast_arrays(np.asarray(u, dtype=np.float64), np.asarray(r, dtype=np.float64))
        if self.target == "parity":
            return parity_overlap(u / sqrt(2), u / sqrt(2), r)
        s, cosine = _polar(u, r)
        return np.asarray(
            profile(self.activation).coefficient(self.degree, s) * cosine**self.degree
        )


def parity_overlap(first: np.ndarray, second: np.ndarray, r: np.ndarray) -> np.ndarray:
    """Compute E relu(w.x) x_1 x_2 for two bits, from their weights and |w|² on Gaussian inputs."""
    size = np.sqrt(r)
    total = np.zeros(np.broadcast_shapes(first.shape, second.shape, size.shape))
    for sign, mean in ((1, first + second), (-1, first - second)):
        total = total + sign * (_rectified(mean, size) + _rectified(-mean, size))
    return np.asarray(total / 4)


def neuron_overlap(activation: str, degree: int, target: Target = "hermite") -> NeuronOverlap:
    """Build the overlap of a neuron with He_m of one direction, or with a parity of two bits."""
    if not isinstance(degree, int) or degree < 1:
        raise InvalidParameter(f"degree is {degree!r}; allowed: an integer of at least 1.")
    if target not in ("hermite", "parity"):
        raise InvalidParameter(unknown_choice("target", target, ("hermite", "parity")))
    if target == "parity" and (activation, degree) != ("relu", 2):
        raise InvalidParameter(
            f"the target is a parity of degree {degree} with activation {activation!r}; allowed: the "
            "parity of two bits (degree 2) with relu."
        )
    if target == "hermite":
        scales = np.array([0.5, 1.0, 2.0])
        size = np.sqrt(profile(activation).power(scales))
        if (np.abs(profile(activation).coefficient(degree, scales)) < 1e-9 * size).all():
            raise InvalidParameter(
                f"the target is He{degree}, whose overlap with every neuron of activation "
                f"{activation!r} is 0 (an odd activation has only odd degrees, relu has degree 1 and "
                "even degrees); allowed: degrees that the activation has."
            )
    return NeuronOverlap(activation, degree, target)


def hermite_modes(activation: str, degrees: Sequence[int], u: Array, r: Array) -> np.ndarray:
    """Compute a_m(s) (u/s)^m for several degrees (0 allowed), shape (degrees, *u.shape)."""
    u, r = np.broadcast_arrays(np.asarray(u, dtype=np.float64), np.asarray(r, dtype=np.float64))
    s, cosine = _polar(u, r)
    shape = profile(activation)
    return np.stack([shape.coefficient(m, s) * cosine**m for m in degrees])


def power_parts(activation: str, u: Array, r: Array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    r"""Split the power of sigma(w.x): function of x_1, linear in w_perp.x, and mixed remainder."""
    u, r = np.broadcast_arrays(np.asarray(u, dtype=np.float64), np.asarray(r, dtype=np.float64))
    s, cosine = _polar(u, r)
    shape = profile(activation)
    whole = shape.power(s)
    linear = shape.coefficient(1, s) ** 2
    rho = cosine**2
    if activation == "erf":
        # E[E[sigma | x_1]²] is the kernel of the activation at two inputs that share only x_1
        alone = 2 / pi * np.arcsin(2 * u * u / (1 + 2 * s * s))
    else:
        alone, left = np.zeros_like(s), whole.copy()
        for m in range(HIGHEST_DEGREE - 1):
            part = shape.coefficient(m, s) ** 2
            alone, left = alone + part * rho**m, left - part
        # the power beyond the last degree of the table is counted at the next degree
        alone = alone + np.maximum(left, 0.0) * rho ** (HIGHEST_DEGREE - 1)
    perpendicular = linear * (1 - rho)
    return alone, perpendicular, np.maximum(whole - alone - perpendicular, 0.0)


def kernel_diagonal(activation: str, variance: float = 1.0) -> float:
    """Compute the diagonal K(x, x) = E sigma(sqrt(q) xi)² of a layer's kernel at variance q."""
    return float(profile(activation).power(np.asarray(sqrt(variance))))


def linear_gain(activation: str, variance: float = 1.0) -> float:
    """Compute the squared mean slope (E sigma'(sqrt(q) xi))² of an activation at variance q."""
    return float(profile(activation).coefficient(1, np.asarray(sqrt(variance))) ** 2 / variance)


def _polar(u: np.ndarray, r: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Norm of a neuron, and cosine of its angle with the target's direction (0 at norm 0)."""
    s = np.sqrt(u * u + r)
    return s, np.where(s > 0, u / np.where(s > 0, s, 1.0), 0.0)


def _rectified(mean: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Compute E relu(mean + size g) for standard normal g."""
    from scipy.special import ndtr

    ratio = mean / np.where(size > 0, size, 1e-300)
    return np.asarray(mean * ndtr(ratio) + size * np.exp(-(ratio**2) / 2) / sqrt(2 * pi))
