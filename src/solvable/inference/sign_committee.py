r"""Bayes-optimal overlaps of two sign units, :math:`y=\mathrm{sign}(z_1)+\mathrm{sign}(z_2)`.

With Gaussian weights the overlap matrix has the eigenvectors (1, 1) and (1, -1), with eigenvalues q and
p. The units are specialised where p > 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from solvable.errors import InvalidParameter
from solvable.spectra.roots import bracketed_root

STEP = 0.6
"""Step of the midpoint rule; overlaps change by 2e-6 with half of it."""

LARGEST = 0.995
"""Largest overlap; nodes grow like the inverse of its distance from 1."""


@dataclass(frozen=True)
class SignCommittee:
    r"""Two sign units with Gaussian weights: overlaps and the ratio of their specialisation.

    Labels are -2, 0 and 2; the units have equal weight. Below the threshold the estimate is the sum of
    both weight vectors. Above it, message passing finds each.

    Notes
    -----
    State evolution :math:`R=\alpha E[gg^\top]`, :math:`Q=(I+R)^{-1}R` (arXiv:1806.05451) is solved
    for the ratio at given overlaps, without iteration (inference 10). Backed by
    ``tests/inference/test_sign_committee.py``.

    Examples
    --------
    >>> round(SignCommittee().specialisation, 3)
    2.052
    """

    def information(self, q: float, p: float) -> tuple[float, float]:
        """Information of a label about the sum and the difference of the weight vectors."""
        from scipy.special import ndtr

        if not (0 <= q <= LARGEST and 0 <= p <= LARGEST):
            raise InvalidParameter(f"overlaps are {q} and {p}; allowed: from 0 to {LARGEST}.")
        width = np.sqrt(1 - max(q, p))
        (x, first), (y, second) = (_half_line(each, width) for each in (q, p))
        xi, zeta = (part.ravel() for part in np.meshgrid(x, y))
        chance = np.outer(second, first).ravel()
        root = np.sqrt((2 - q - p) / 2)  # deviation of each index
        r = (p - q) / (2 - q - p)
        one, two = ((xi + sign * zeta) / np.sqrt(2) / root for sign in (1, -1))
        slopes = np.zeros((3, 2, xi.size))  # labels 2, -2, 0
        for k, (x, y) in enumerate(((one, two), (two, one))):
            density = np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi) / root
            other = (y - r * x) / np.sqrt(1 - r**2)
            slopes[0, k], slopes[1, k] = density * ndtr(other), -density * ndtr(-other)
        slopes[2] = -slopes[0] - slopes[1]
        both, neither = _orthant(one, two, r), _orthant(-one, -two, r)
        P = np.maximum([both, neither, 1 - both - neither], 1e-13)
        parts = [(slopes[:, 0] + sign * slopes[:, 1]) ** 2 / 2 / P for sign in (1, -1)]
        total, difference = (float(part.sum(axis=0) @ chance) for part in parts)
        return total, difference

    def unspecialised(self, q: float) -> float:
        """Sample ratio at which the sum of the weight vectors has overlap q and their difference 0."""
        # r = q / (1 - q) = alpha E[g_s²]
        return q / (1 - q) / self.information(q, 0.0)[0]

    @cached_property
    def specialisation(self) -> float:
        """Sample ratio above which the units specialise."""

        def gain(q: float) -> float:
            # one step of state evolution multiplies a small overlap p by this number (inference 10)
            small = 1e-6
            return self.unspecialised(q) * self.information(q, small)[1] / small - 1

        return self.unspecialised(bracketed_root(gain, 0.3, 0.95, relative=1e-10))

    def specialised(self, p: float) -> tuple[float, float]:
        """Sample ratio at which the difference has overlap p > 0, and the overlap q of the sum."""
        if not 0 < p <= 0.98:
            raise InvalidParameter(f"p is {p}; allowed: above 0, up to 0.98.")

        def excess(q: float) -> float:
            total, difference = self.information(q, p)
            return float(np.log(q / (1 - q) / total) - np.log(p / (1 - p) / difference))

        q = bracketed_root(excess, 1e-3, LARGEST, relative=1e-10)
        return q / (1 - q) / self.information(q, p)[0], q


def _half_line(q: float, width: float) -> tuple[np.ndarray, np.ndarray]:
    """Midpoint rule of N(0, q) above 0, for even functions that vary over a width."""
    # Gauss-Hermite rules miss this width: with 48 nodes overlaps are wrong by 2e-3 at q = 0.94.
    if q == 0:
        return np.zeros(1), np.ones(1)
    step = STEP * min(1.0, width / np.sqrt(q))
    x = (np.arange(int(7.5 / step)) + 0.5) * step
    chance = np.exp(-(x**2) / 2)
    return np.sqrt(q) * x, chance / chance.sum()


def _orthant(x: np.ndarray, y: np.ndarray, r: float) -> np.ndarray:
    """Probability that two normal variables of correlation r are below x and y (Owen 1956)."""
    from scipy.special import ndtr, owens_t

    scale = np.sqrt(1 - r**2)
    x, y = (np.where(part == 0, 1e-300, part) for part in (x, y))
    inside = owens_t(x, (y / x - r) / scale) + owens_t(y, (x / y - r) / scale)
    return np.asarray((ndtr(x) + ndtr(y)) / 2 - inside - np.where(x * y < 0, 0.5, 0.0))
