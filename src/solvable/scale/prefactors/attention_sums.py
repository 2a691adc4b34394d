"""Energies, with prefactors, of a softmax attention block with a cubic target."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import log, sqrt

import numpy as np

from solvable.hermite import gaussian_quadrature
from solvable.scale.prefactors.lazy_kernels import fluctuations
from solvable.scale.prefactors.pattern_sums import (
    Kind,
    LayerNumbers,
    Optimum,
    amplified,
    rest_range,
    specialised,
)
from solvable.scale.prefactors.random_energy import softmax_response

LARGEST_SCALE = 30.0
"""Scale of the scores beyond which the softmax is replaced by the maximum."""


@dataclass(frozen=True)
class AttentionBlock:
    """Softmax attention with H heads over L tokens of dimension d."""

    # f = L^-1/2 sum_h sum_ab softmax(X A_h X^T)_ab w_h . x_b, entries of A from N(0, 1/d²), w from
    # N(0, I/(H d)); target y = L^-1 sum_ab x_a1 x_b2 x_b3.

    dimension: float
    heads: float
    context: float

    @property
    def kernel(self) -> float:
        """Kernel value K(X, X) under the prior in high dimension."""
        # the attention pi_b of a token has E pi_b² = 1 + L E p² - 1/L, with L E p² = 1 - tau(1)
        return 2 - 1 / self.context - softmax_response(1.0, self.context)

    def overlap(self, strength: np.ndarray, rest: float = 1.0) -> np.ndarray:
        """Compute <f, y> sqrt(L) / w_3 of a head with A_12 = mu and other entries scaled by sqrt(r)."""
        # The scores of row a are mu x_a1 x_b2 + sqrt(r) g_ab, equal in law to s xi_b with
        # s² = mu² x_a1² + r. The mean of x_b2 under the softmax is (mu x_a1 / s) tau_L(s), with tau_L
        # the softmax response   (scale 18).
        x, chance = gaussian_quadrature(24)
        strength = np.asarray(strength, dtype=np.float64)
        scale = np.sqrt((strength[..., None] * x) ** 2 + rest)
        response = _response(self.context)(scale)
        return np.asarray(strength * (response * x**2 @ chance))

    def around(self, mean: float, variance: float, rest: float = 1.0) -> float:
        """Compute the mean squared overlap for normal strengths with a given mean and variance."""
        z, chance = fluctuations(variance, 10)
        return float(chance @ self.overlap(mean + sqrt(variance) * z, rest) ** 2)

    def optimum(self, kind: Kind, alignment: float, *, frozen: bool, one_route: bool) -> Optimum:
        """Minimise the energy of a pattern; ``alignment`` is alpha²."""
        d, heads = self.dimension, self.heads
        # <y, K, y> = (E c(A_12)² + E c(A_13)²) / (L d)
        alignment = alignment * self.context * d
        half = self.around(0.0, d**-2)
        if kind == "GP":
            energy = alignment / (4 * half)
            return Optimum(energy, (LayerNumbers("GP"),), (("alignment", energy),))
        if kind == "GFL":
            return amplified(
                heads, alignment, lambda gain: half + self.around(0.0, gain / d**2), d * d
            )
        lazy, spread = (0.0, 0.0) if one_route else (2 * half, d**-2)

        def head(strength: float, rest: float) -> tuple[float, float]:
            each = (d * d * strength**2 + (d * d - 1) * (rest - 1 - log(rest))) / 2
            return each, (self.around(strength, spread, rest) - lazy / 2) / heads

        bounds = [(-log(d) - 6, log(8.0)), rest_range(frozen)]
        return specialised("Sp", heads, alignment, lazy, head, bounds, (-1.0, 0.0))


@lru_cache(maxsize=16)
def _response(context: float) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function of the scale s: the softmax response over L tokens, divided by s."""
    from scipy.interpolate import CubicSpline

    place = np.concatenate([np.linspace(0, 4, 25), np.geomspace(4.4, LARGEST_SCALE, 20)])
    values = [softmax_response(float(scale), context) / scale for scale in place[1:]]
    spline = CubicSpline(place, [1 - 1 / context, *values])
    # at large scales the response is the mean of the maximum, which does not depend on the scale
    return lambda scale: (
        spline(np.minimum(scale, LARGEST_SCALE)) * np.minimum(1, LARGEST_SCALE / scale)
    )
