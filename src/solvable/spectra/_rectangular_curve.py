"""Algebraic curve for the singular values of a product of Gaussian matrices in noise."""

# Y = (A B / sqrt(r) + sqrt(Delta) Z) / (d L)^(1/4) with A (d, r), B (r, L), Z (d, L) standard Gaussian,
# d <= L, beta = L / d, rho = r / d. Given A the columns of Y are Gaussian, so that Y Y^T is a sample
# covariance matrix with population A A^T / r + Delta. Let T = tau + Delta, where tau follows the
# Marchenko-Pastur law of ratio c = 1 / rho, and p = -1 / (sqrt(beta) m) with m the Stieltjes
# transform of the companion Y^T Y. Then (Silverstein and Bai 1995)
#     sqrt(beta) z = p (beta + int T nu(dT) / (p - T)).
# With h = 1 / int nu(dT) / (p - T) both sides are rational: p = h + h / (h - c) + Delta and
#     zeta = sqrt(beta) z = p (beta - 1 + p / h)
#          = (h² + k1 h - e) (beta h² + k2 h - e) / (h (h - c)²),
# k1 = 1 - c + Delta, k2 = 1 - beta c + Delta, e = c Delta   (spectra 32), the quartic of
# arXiv:2203.07752. The physical root has Im h > 0 and |h - c|² > c (that is, Im p > 0): there is one
# such root where the density is positive and none elsewhere.

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Quartic:
    """Coefficients of the curve, for several noise levels at once."""

    aspect: float
    rank_ratio: float
    noise: np.ndarray

    @property
    def c(self) -> float:
        """Marchenko-Pastur ratio."""
        return 1 / self.rank_ratio

    @property
    def linear(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Coefficients k1, k2 and e."""
        return 1 - self.c + self.noise, 1 - self.aspect * self.c + self.noise, self.c * self.noise

    def at(self, index: Any) -> Quartic:
        """Curve for a subset of the noise levels."""
        return Quartic(self.aspect, self.rank_ratio, self.noise[index])

    def product(self) -> np.ndarray:
        """Coefficients of (h² + k1 h - e) (beta h² + k2 h - e) on the last axis, from h⁴ down."""
        beta, (k1, k2, e) = self.aspect, self.linear
        parts = (beta, k2 + beta * k1, k1 * k2 - (1 + beta) * e, -e * (k1 + k2), e * e)
        return np.stack(np.broadcast_arrays(*parts), axis=-1)

    def polynomial(self, zeta: np.ndarray) -> np.ndarray:
        """Coefficients of the quartic in h divided by the leading coefficient, which is left out."""
        product, c = self.product(), self.c
        shift = np.stack(np.broadcast_arrays(zeta, -2 * c * zeta, c * c * zeta, 0.0), axis=-1)
        return np.asarray((product[..., 1:] - shift) / self.aspect)

    def physical(self, h: np.ndarray) -> np.ndarray:
        """Return True if a root is the physical root."""
        return (h.imag > 0) & (np.abs(h - self.c) ** 2 > self.c)

    def polished(self, h: np.ndarray, zeta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Make two Newton steps; also return the relative size of the second step."""
        beta, c, (k1, k2, e) = self.aspect, self.c, self.linear
        step = h
        with np.errstate(divide="ignore", invalid="ignore"):
            for _ in range(2):
                P, S = (h + k1) * h - e, (beta * h + k2) * h - e
                value = P * S - zeta * h * (h - c) ** 2
                slope = (2 * h + k1) * S + P * (2 * beta * h + k2) - zeta * (h - c) * (3 * h - c)
                step = value / slope
                h = h - step
            return h, np.abs(step / h)

    def solve(self, zeta: np.ndarray) -> np.ndarray:
        """Physical root where the density is positive; 0 elsewhere."""
        poly = self.polynomial(zeta)
        first, second = quartic_pairs(*np.moveaxis(poly, -1, 0))
        h = np.where(self.physical(first), first, second)
        h, step = self.polished(h, zeta)
        # The formula is inaccurate for roots of very different sizes.
        lost = ~(self.physical(h) & (step < 1e-9))
        if lost.any():
            some = self.at(lost) if self.noise.shape == zeta.shape else self
            roots = companion_roots(poly[lost])
            good = some.at((..., None)).physical(roots)
            best = np.argmax(np.where(good, roots.imag, 0), axis=-1)[..., None]
            h[lost] = np.where(good.any(-1), np.take_along_axis(roots, best, -1)[..., 0], 0)
        return h


def quartic_pairs(
    b: np.ndarray, c: np.ndarray, d: np.ndarray, e: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Upper roots of the two real quadratics whose product is x⁴ + b x³ + c x² + d x + e."""
    # Ferrari: with x = y - b / 4, y⁴ + p y² + q y + r and m > 0 of m³ + p m² + (p²/4 - r) m = q²/8,
    # the factors are y² -+ sqrt(2 m) y + p/2 + m +- q / (2 sqrt(2 m)).
    p, q = c - 3 * b * b / 8, d - b * c / 2 + b**3 / 8
    r = e - b * d / 4 + b * b * c / 16 - 3 * b**4 / 256
    m = np.maximum(largest_root(p, p * p / 4 - r, -q * q / 8), 1e-300)
    k = np.sqrt(2 * m)
    pairs = []
    for sign in (1, -1):
        height = np.sqrt(np.maximum(m + p + sign * q / k, 0) / 2)
        pairs.append(sign * k / 2 - b / 4 + 1j * height)
    return pairs[0], pairs[1]


def largest_root(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Largest real root of x³ + a x² + b x + c."""
    Q, R = (a * a - 3 * b) / 9, (2 * a**3 - 9 * a * b + 27 * c) / 54
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        cosine = np.where(R * R < Q**3, R / np.abs(Q) ** 1.5, 0.0)
        # The three real roots are -2 sqrt(Q) cos((angle + 2 pi k) / 3); k = 1 gives the largest.
        three = (
            -2 * np.sqrt(np.abs(Q)) * np.cos((np.arccos(np.clip(cosine, -1, 1)) + 2 * np.pi) / 3)
        )
        single = -np.copysign(np.cbrt(np.abs(R) + np.sqrt(np.maximum(R * R - Q**3, 0))), R)
        single = single + np.where(single == 0, 0, Q / single)
    return np.asarray(np.where(R * R < Q**3, three, single) - a / 3)


def companion_roots(coefficients: np.ndarray) -> np.ndarray:
    """Roots of monic polynomials; the last axis contains all coefficients but the leading 1."""
    degree = coefficients.shape[-1]
    matrix = np.zeros((*coefficients.shape, degree), dtype=coefficients.dtype)
    matrix[..., 0, :] = -coefficients
    matrix[..., range(1, degree), range(degree - 1)] = 1
    return np.linalg.eigvals(matrix)


def critical_places(curve: Quartic) -> np.ndarray:
    """Real parts of the five critical values of zeta, ascending, clipped at 0: (noises, 5)."""
    # Every edge is a critical value; the density bends near complex critical values. dzeta/dh
    # = 0 reads (PS)' h (h - c) = PS (3 h - c).
    product, c = curve.product(), curve.c
    derivative = product[:, :4] * np.array([4, 3, 2, 1])
    poly = np.zeros((len(product), 6))
    poly[:, :4] += derivative
    poly[:, 1:5] -= c * derivative
    poly[:, :5] -= 3 * product
    poly[:, 1:] += c * product
    h = companion_roots(poly[:, 1:] / poly[:, :1])
    beta, noise = curve.aspect, curve.noise[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        p = h + h / (h - c) + noise
        places = (p * (beta - 1 + p / h)).real
    return np.sort(np.where(np.isfinite(places), np.maximum(places, 0), 0), axis=1)
