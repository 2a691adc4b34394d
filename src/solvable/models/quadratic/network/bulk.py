r"""Quadratic networks on labels of pure noise: bulk of the learned spectrum and its error."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvable.errors import NotConverged
from solvable.spectra.roots import bracketed_root
from solvable.spectra.semicircle_tail import semicircle_tail


@dataclass(frozen=True)
class NoiseState:
    """Prediction of a network trained on labels of pure noise."""

    effective_noise: float
    threshold: float
    matrix_error: float


def noise_only(
    *, sample_ratio: float, label_noise: float, regularisation: float = 0.0, unresolved: float = 0.0
) -> NoiseState:
    """Exact solution for no target, or for a target of which nothing is learned."""
    variance = label_noise / 2 + unresolved  # above 0
    # delta² = (Delta/2 + R_0) / (2 alpha - j(a)),  lambda = 4 a delta (alpha - A(a)),  b = a delta,
    # R = R_0 + delta² j(a)  (quadratic 22): the energy R_0 that is not learned acts as label noise
    # 2 R_0. For a >= 2 nothing is fitted. Without regularisation A(a) = alpha below alpha = 1/4 (the
    # interpolator of least trace), and a = 0 above.
    alpha = sample_ratio
    null = float(np.sqrt(variance / (2 * alpha)))
    if regularisation >= 8 * alpha * null:
        return NoiseState(null, regularisation / (4 * alpha), unresolved)
    low = 0.0
    if alpha < 0.25:
        low = bracketed_root(
            lambda a: semicircle_tail(a).slope / alpha - 1, 0.0, 2.0, absolute=1e-15
        )

    def noise(a: float) -> float:
        room = 2 * alpha - semicircle_tail(a).second
        return float(np.sqrt(variance / room)) if room > 1e-13 * alpha else np.inf

    def excess(a: float) -> float:
        free = 4 * a * (alpha - semicircle_tail(a).slope)
        return (free * noise(a) if free > 0 else 0.0) - regularisation

    if low == 0 and noise(0.0) == np.inf and regularisation == 0:
        raise NotConverged(
            "the error has no finite limit at the sample ratio 1/4 without regularisation (interpolation "
            "peak). Use a regularisation above 0.",
            {"sample_ratio": alpha},
        )
    a = low if regularisation == 0 else bracketed_root(excess, low, 2.0)
    delta = noise(a)
    return NoiseState(delta, a * delta, unresolved + delta**2 * semicircle_tail(a).second)


def interpolation_peak_risk(*, regularisation: float, label_noise: float) -> float:
    """Height of the error at the interpolation peak (quadratic 24)."""
    # R = (3 pi/8)^(2/3) (Delta/2)^(4/3) lambda^(-2/3) / 2: limit of `noise_only` at alpha = 1/4 for small
    # lambda, where 1/epsilon² = 8 lambda / 3 pi delta. With a target the peak stays finite at lambda = 0.
    variance = label_noise / 2
    return float(0.5 * (3 * np.pi / 8) ** (2 / 3) * variance ** (4 / 3) / regularisation ** (2 / 3))
