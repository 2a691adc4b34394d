"""Information, generative and noise sensitivity exponents of a link by quadrature."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import factorial, inf

import numpy as np

from solvable.hermite import gaussian_quadrature, hermite_polynomials
from solvable.links import Link, Parity

HIGHEST = 20
"""Highest degree tried for the information and generative exponents."""

HIGHEST_POWER = 8
"""Highest power of the link tried for the noise sensitivity exponent."""


@dataclass(frozen=True)
class LinkExponents:
    """Exponents of a link; an exponent is None if quadrature cannot determine it."""

    information: int | None  # smallest k with E[sigma h_k] != 0, up to 20
    generative: int | None  # smallest k with E[h_k(z) | sigma(z)] not 0, up to 20 (multi-index 3)
    # smallest beta with c_beta = E[sigma^beta (z² - 1)] not 0 (multi-index 4); infinite if all are 0
    noise_sensitivity: float | None
    coefficient: float | None  # c_beta at the noise sensitivity exponent
    moments: tuple[
        float, ...
    ]  # moments c_1, c_2, ..., at least up to the noise sensitivity exponent
    parity: Parity
    undetermined: str = ""  # reasons why exponents are None; empty if all are known

    def decisive_power(self, noise: float) -> int | None:
        """Power of the link whose moment gives the lowest large-noise threshold at this noise."""
        # A tiny c_1 sets the threshold only at very large noise, where higher powers give larger ones.
        orders = [
            (large_noise_ratio(power, c, noise), power)
            for power, c in enumerate(self.moments, start=1)
            if c
        ]
        return min(orders)[1] if orders else None


def large_noise_ratio(power: int, coefficient: float, noise: float) -> float:
    """Threshold n/d of one direction at large noise, computed from one moment c_beta of the link."""
    # threshold alpha = beta! / c_beta² lambda^-beta   (multi-index 14; arXiv:2603.17896, Theorem 3.2)
    return factorial(power) / coefficient**2 * noise**power


@lru_cache(maxsize=256)
def exponents_of(link: Link) -> LinkExponents:
    """Compute the exponents of a standardised link."""
    undetermined = []
    parity = link.parity
    # The link has variance 1, so rounding errors of its coefficients are about 1e-14.
    orders = np.flatnonzero(np.abs(link.hermite(HIGHEST)[1:]) > 1e-8) + 1
    information = int(orders[0]) if orders.size else None
    # The generative exponent is at most the information exponent.
    highest = information or HIGHEST
    generative = next((k for k in range(1, highest + 1) if _depends(link, k)), information)
    if information is None:
        undetermined.append(
            f"the information exponent (no Hermite coefficient up to degree {HIGHEST} exceeds rounding)"
        )
    if generative is None:
        undetermined.append(
            f"the generative exponent (no moment of z up to degree {HIGHEST} visibly depends on the "
            "label)"
        )
    moments, reason = _power_moments(link)
    power = next((k for k, c in enumerate(moments, start=1) if c), None)
    sensitivity: float | None = power
    # If all moments are near 0, E[z² | label] = 1 cannot be distinguished from a weak dependence.
    if power is None and generative is not None and not _depends(link, 2):
        sensitivity = inf
    elif power is None:
        reason = reason or f"E[sigma^k (z² - 1)] is below rounding up to k = {HIGHEST_POWER}"
        undetermined.append(f"the noise sensitivity exponent ({reason})")
    return LinkExponents(
        information,
        generative,
        sensitivity,
        None if power is None else moments[power - 1],
        moments,
        parity,
        "; ".join(undetermined),
    )


def _depends(link: Link, degree: int) -> bool:
    """Return True if E[h_k(z) | label] differs from 0 for some label; noise does not matter."""
    # E[h_k exp(i t y)] is the Fourier transform of p(y) E[h_k | y]   (multi-index 3). Noise multiplies
    # this transform by a Gaussian, which has no zeros. The difference between two quadrature rules
    # bounds the error.
    frequencies = np.array([0.17, 0.41, 0.73, 1.1, 1.6, 2.3, 3.4, 5.1])
    transforms = []
    for per_panel in (128, 192):
        z, chance = _nodes(link, per_panel)
        part = chance * hermite_polynomials(z, degree)[degree]
        transforms.append(np.exp(1j * frequencies[:, None] * link(z)) @ part)
    rule, finer = transforms
    return bool((np.abs(finer) > 1e-8 + 10 * np.abs(finer - rule)).any())


def _nodes(link: Link, per_panel: int) -> tuple[np.ndarray, np.ndarray]:
    """Gaussian quadrature on [-14, 14], split at the breakpoints of the link."""
    return gaussian_quadrature(per_panel, link.breakpoints or (0.0,))


def _power_moments(link: Link) -> tuple[tuple[float, ...], str]:
    """Moments c_1, c_2, ... up to the first moment above 0.05, or a reason if quadrature fails."""
    rules = [(z, chance, link(z)) for z, chance in (_nodes(link, 64), _nodes(link, 96))]
    moments: list[float] = []
    for power in range(1, HIGHEST_POWER + 1):
        (rule, _, _), (finer, size, tail) = (
            _power_moment(z, chance, values, power) for z, chance, values in rules
        )
        zero = (
            abs(finer) < 1e-8 * size
        )  # c_beta counts as 0 below 1e-8 E|sigma|^beta (multi-index 4)
        off = abs(finer - rule)
        if not np.isfinite(finer) or tail > 1e-7 or off > max(1e-9 * size, 1e-3 * abs(finer)):
            reason = f"two rules give {rule:.2g} and {finer:.2g}"
            if tail > 1e-7:
                reason = f"a share of {tail:.1g} lies beyond |z| = 13"
            return tuple(moments), f"quadrature cannot compute E[sigma^{power} (z² - 1)]: {reason}"
        moments.append(0.0 if zero else finer)
        # After a tiny moment, the next moment sets the threshold, except at very large noise.
        if abs(finer) > 0.05:
            break
    return tuple(moments), ""


def _power_moment(
    z: np.ndarray, chance: np.ndarray, values: np.ndarray, power: int
) -> tuple[float, float, float]:
    """Means of sigma^beta (z² - 1) and abs(sigma)^beta; share of the former from abs(z) > 13."""
    with np.errstate(over="ignore", invalid="ignore"):
        parts = chance * values**power
        terms = parts * (z**2 - 1)
        whole = np.abs(terms).sum()
        tail = np.abs(terms[np.abs(z) > 13]).sum() / whole
    return float(terms.sum()), float(np.abs(parts).sum()), float(tail)
