r"""Exponents of a link: information, generative and noise sensitivity, with what cannot be told."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import factorial, inf

import numpy as np

from solvable.hermite import gaussian_quadrature, hermite_polynomials
from solvable.links import Link, Parity

HIGHEST = 20
"""Degree up to which information and generative exponents are looked for."""

HIGHEST_POWER = 8
"""Power of the link up to which the noise sensitivity exponent is looked for."""


@dataclass(frozen=True)
class LinkExponents:
    """How a link hides its direction; None where quadrature cannot tell."""

    information: int | None  # min k: E[sigma h_k] != 0, up to 20
    generative: int | None  # min k: E[h_k(z) | sigma(z)] not 0, up to 20
    # min beta: c_beta = E[sigma^beta (z² - 1)] != 0; infinite if none is
    noise_sensitivity: float | None
    coefficient: float | None  # c_beta of that exponent
    moments: tuple[float, ...]  # c_1, c_2, ... as far as known, at least up to that exponent
    parity: Parity
    untold: str = ""  # why an exponent is None; empty if none is

    def decisive_power(self, noise: float) -> int | None:
        """Power of the link by which noise of this variance lets second moments find the direction."""
        # A tiny c_1 counts only where beta! / c_beta² lambda^-beta of higher powers is above it.
        orders = [
            (large_noise_ratio(power, c, noise), power)
            for power, c in enumerate(self.moments, start=1)
            if c
        ]
        return min(orders)[1] if orders else None


def large_noise_ratio(power: int, coefficient: float, noise: float) -> float:
    """Threshold n/d of one direction at large noise, from one moment of the link alone."""
    # alpha = beta! / c_beta² lambda^-beta (3.6)
    return factorial(power) / coefficient**2 * noise**power


@lru_cache(maxsize=256)
def exponents_of(link: Link) -> LinkExponents:
    """Exponents of a standardised link."""
    untold = []
    parity = link.parity
    # Coefficients of a link of unit variance; rounding is of order 1e-14.
    orders = np.flatnonzero(np.abs(link.hermite(HIGHEST)[1:]) > 1e-8) + 1
    information = int(orders[0]) if orders.size else None
    # The generative exponent is at most the information exponent.
    highest = information or HIGHEST
    generative = next((k for k in range(1, highest + 1) if _depends(link, k)), information)
    if information is None:
        untold.append(f"no Hermite coefficient up to degree {HIGHEST} is above rounding")
    if generative is None:
        untold.append(f"no moment of z up to degree {HIGHEST} is seen to depend on the label")
    moments, reason = _power_moments(link)
    power = next((k for k, c in enumerate(moments, start=1) if c), None)
    sensitivity: float | None = power
    if power is None and not _depends(link, 2):
        sensitivity = inf
    elif power is None:
        untold.append(reason or f"moments up to the power {HIGHEST_POWER} are all zero")
    return LinkExponents(
        information,
        generative,
        sensitivity,
        None if power is None else moments[power - 1],
        moments,
        parity,
        "; ".join(untold),
    )


def _depends(link: Link, degree: int) -> bool:
    """Whether E[h_k(z) | label] is not zero identically, noise or not."""
    # E[h_k exp(i t y)] is the transform of p(y) E[h_k | y], and noise multiplies it by a Gaussian
    # without zeros. What another rule tells otherwise is quadrature, not dependence.
    frequencies = np.array([0.17, 0.41, 0.73, 1.1, 1.6, 2.3, 3.4, 5.1])
    found = []
    for per_panel in (128, 192):
        z, chance = _nodes(link, per_panel)
        part = chance * hermite_polynomials(z, degree)[degree]
        found.append(np.exp(1j * frequencies[:, None] * link(z)) @ part)
    rule, finer = found
    return bool((np.abs(finer) > 1e-8 + 10 * np.abs(finer - rule)).any())


def _nodes(link: Link, per_panel: int) -> tuple[np.ndarray, np.ndarray]:
    """Quadrature split at the breakpoints of the link and within +-14."""
    return gaussian_quadrature(per_panel, link.breakpoints or (0.0,))


def _power_moments(link: Link) -> tuple[tuple[float, ...], str]:
    """c_1, c_2, ..., up to the first that matters at any noise, or that quadrature cannot tell."""
    rules = [(z, chance, link(z)) for z, chance in (_nodes(link, 64), _nodes(link, 96))]
    found: list[float] = []
    for power in range(1, HIGHEST_POWER + 1):
        (rule, _, _), (finer, size, tail) = (
            _power_moment(z, chance, values, power) for z, chance, values in rules
        )
        # declare c_beta = 0 if |c_beta| < 1e-8 E|sigma|^beta (note 2.8)
        zero = abs(finer) < 1e-8 * size
        off = abs(finer - rule)
        if not np.isfinite(finer) or tail > 1e-7 or off > max(1e-9 * size, 1e-3 * abs(finer)):
            return tuple(found), (
                f"E[sigma^{power} (z^2 - 1)] is beyond quadrature ({tail:.1g} of it lies beyond |z| = 13)"
            )
        found.append(0.0 if zero else finer)
        # A first moment that is tiny leaves the next to decide at all but the largest noise.
        if abs(finer) > 0.05:
            break
    return tuple(found), ""


def _power_moment(
    z: np.ndarray, chance: np.ndarray, values: np.ndarray, power: int
) -> tuple[float, float, float]:
    """E[sigma^beta (z² - 1)], E|sigma|^beta, and the part of the former's size in the far tails."""
    with np.errstate(over="ignore", invalid="ignore"):
        parts = chance * values**power
        terms = parts * (z**2 - 1)
        whole = np.abs(terms).sum()
        tail = np.abs(terms[np.abs(z) > 13]).sum() / whole
    return float(terms.sum()), float(np.abs(parts).sum()), float(tail)
