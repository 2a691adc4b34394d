"""Even links with information exponent above 2, their kernels, and the amplitudes of a teacher."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import exp, factorial, sqrt

import numpy as np

from solvable.errors import InvalidParameter, unknown_choice
from solvable.hermite import gaussian_quadrature


@dataclass(frozen=True)
class EvenLink:
    """An even standardised link, its derivative, and its squared Hermite coefficients."""

    name: str
    evaluate: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
    energies: tuple[float, ...]
    # energies[i] = mu_{2i}²: K = E sigma(<u, x>) sigma(<v, x>) = sum_i energies[i] y^i, y = <u, v>².

    @property
    def information_exponent(self) -> int:
        """Lowest degree with a non-zero Hermite coefficient."""
        return 2 * next(i for i, energy in enumerate(self.energies) if energy > 0)

    def kernel(self, y: np.ndarray) -> np.ndarray:
        """Compute the kernel K at squared overlaps y."""
        return _horner(self.energies, y)

    def pull(self, y: np.ndarray) -> np.ndarray:
        """Compute s K'(s), the pull of a feature on a student, at squared overlaps y = s²."""
        return _horner([2 * i * energy for i, energy in enumerate(self.energies)], y)

    def pull_slope(self, y: np.ndarray) -> np.ndarray:
        """Derivative of the pull with respect to y."""
        return _horner([2 * i * i * energy for i, energy in enumerate(self.energies)][1:], y)

    @property
    def kick(self) -> float:
        """Ratio E sigma'⁴ / E sigma'², which is large if rare inputs have large gradients."""
        z, weights = gaussian_quadrature(96, (0.0,))
        slope = self.evaluate(z.copy())[1]
        return float(weights @ slope**4 / (weights @ slope**2))

    @property
    def activity(self) -> float:
        """Mean square of the link's derivative, which is K'(1)."""
        return float(self.pull(np.array(1.0)))


def _horner(coefficients: list[float] | tuple[float, ...], y: np.ndarray) -> np.ndarray:
    """Evaluate a polynomial in y."""
    total = np.full_like(y, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        total *= y
        if coefficient:
            total += coefficient
    return total


def _he4(z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    square = z * z
    # h_4 = (z⁴ - 6 z² + 3) / sqrt(24), h_4' = 4 (z³ - 3 z) / sqrt(24)
    scale = z.dtype.type(1 / sqrt(24))
    return ((square - 6) * square + 3) * scale, (square - 3) * z * (4 * scale)


def _he6(z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    square = z * z
    # h_6 = (z⁶ - 15 z⁴ + 45 z² - 15) / sqrt(720)
    scale = z.dtype.type(1 / sqrt(720))
    value = ((square - 15) * square + 45) * square - 15
    return value * scale, ((square - 10) * square + 15) * z * (6 * scale)


SECOND = exp(1.5) / 4
"""Factor of cos(2 z) that cancels the second Hermite coefficient of cos(z)."""


def _cosine_energies(highest: int = 44) -> tuple[float, tuple[float, ...]]:
    """Norm of cosmix after its mean is removed; squared Hermite coefficients of the standardised link."""
    # cos(b z) has mu_{2i} = (-1)^i b^{2i} exp(-b²/2) / sqrt((2i)!)
    raw = [
        (exp(-0.5) - SECOND * 4.0**i * exp(-2.0)) / sqrt(factorial(2 * i))
        for i in range(highest // 2 + 1)
    ]
    squares = [
        0.0,
        0.0,
        *(value**2 for value in raw[2:]),
    ]  # the coefficients of degree 0 (the mean) and degree 2 are 0
    total = sum(squares)
    return sqrt(total), tuple(square / total for square in squares)


def _cosmix(z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    norm, _ = _cosine_energies()
    mean = exp(-0.5) - SECOND * exp(-2.0)
    kind = z.dtype.type
    value = np.cos(z) - kind(SECOND) * np.cos(2 * z) - kind(mean)
    slope = kind(2 * SECOND) * np.sin(2 * z) - np.sin(z)
    return value * kind(1 / norm), slope * kind(1 / norm)


@lru_cache(maxsize=8)
def even_link(name: str) -> EvenLink:
    """Return the link with this name."""
    links = {
        "he4": (_he4, (0.0, 0.0, 1.0)),
        "he6": (_he6, (0.0, 0.0, 0.0, 1.0)),
        "cosmix": (_cosmix, _cosine_energies()[1]),
    }
    if name not in links:
        raise InvalidParameter(unknown_choice("link", name, sorted(links)))
    return EvenLink(name, *links[name])


def amplitudes(features: int, decay: float) -> np.ndarray:
    """Return the amplitudes p^-beta, scaled so that their squares sum to 1."""
    values = np.arange(1, features + 1.0) ** -decay
    return np.asarray(values / np.linalg.norm(values))


def population_loss(
    link: EvenLink,
    strengths: np.ndarray,
    norms: np.ndarray,
    overlaps: np.ndarray,
    mutual: np.ndarray,
) -> float:
    """Compute half the mean squared distance to the teacher, from squared overlaps (m, P) and (m, m)."""
    # loss 1/2 E (f* - f)², where E sigma(<u, x>) sigma(<v, x>) = K(<u, v>)   (multi-index 28)
    cross, own = norms @ link.kernel(overlaps) @ strengths, norms @ link.kernel(mutual) @ norms
    return float(0.5 * (strengths @ strengths - 2 * cross + own))
