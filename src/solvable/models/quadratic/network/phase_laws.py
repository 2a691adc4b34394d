r"""Scaling laws of quadratic networks that learn a power law, with their constants."""

from __future__ import annotations

from enum import StrEnum

import numpy as np

from solvable.errors import InvalidParameter
from solvable.spectra.roots import bracketed_root


class QuadraticPhase(StrEnum):
    """Phases of arXiv:2509.24882, Result 1, and the interpolation peak between V and VIa."""

    PLATEAU = "Ia"
    COLLAPSE = "Ib"
    THRESHOLDED = "II"
    SHIFTED = "III"
    BENIGN = "IV"
    OVERFITTING = "V"
    PEAK = "peak"
    NOISY_BULK = "VIa"
    FULL_RANK = "VIb"


DESCRIPTIONS = {
    QuadraticPhase.PLATEAU: "too few samples: the strongest feature is below the noise",
    QuadraticPhase.COLLAPSE: "too strong a regularisation: nothing is learned",
    QuadraticPhase.THRESHOLDED: "strong features learned and shrunk, no bulk: outliers to heavy tail",
    QuadraticPhase.SHIFTED: "every feature learned and shrunk: shifted heavy tail",
    QuadraticPhase.BENIGN: "features above the noise learned, most of the bulk cut: best rate",
    QuadraticPhase.OVERFITTING: "noise in the bulk dominates the error: harmful overfitting",
    QuadraticPhase.PEAK: "interpolation threshold: wide bulk",
    QuadraticPhase.NOISY_BULK: "half of the bulk learned next to spikes: parametric rate",
    QuadraticPhase.FULL_RANK: "every feature learned with its noise: parametric rate, twice VIa",
}
"""Description of each phase."""


def full_rank_risk(
    *, sample_ratio: float, label_noise: float, regularisation: float = 0.0
) -> float:
    """Error in phases III and VIb, where all eigenvalues of target plus noise exceed the threshold."""
    if not 0.5 < sample_ratio < np.inf:
        raise InvalidParameter(
            f"sample_ratio is {sample_ratio}; allowed: above 1/2, as fewer samples do not determine "
            "the target."
        )
    # b = lambda epsilon, 1/epsilon = 4 alpha - 2, delta² = (Delta + 2 b²) / (4 alpha - 2) and
    # R = b² + delta²  (quadratic 27). Exact if b is below the spectrum of S* + delta Z, as the positive
    # cone has no effect. For many samples R = b² + Delta / 4 alpha, with twice the noise term of VIa.
    shift = regularisation / (4 * sample_ratio - 2)
    return float(shift**2 + (label_noise + 2 * shift**2) / (4 * sample_ratio - 2))


def truncated_constant(exponent: float) -> float:
    """Constant C of phase IV, in R = C delta² K / d for K features above the noise (quadratic 25)."""
    # C = 1 / (2 gamma - 1) + 6 - 8 / (1 + gamma) + 3 / (1 + 2 gamma): the tail below the noise,
    # plus the error of outliers at b = 2 delta, summed over s_i = delta (K / i)^gamma. For few samples
    # and no regularisation b / delta -> 2.
    head = 6 - 8 / (1 + exponent) + 3 / (1 + 2 * exponent)
    return float(1 / (2 * exponent - 1) + head)


def truncated_risk(
    *, exponent: float, normalisation: float, effective_samples: float, label_noise: float
) -> float:
    """Error in phase IV, where features above the noise are learned and most of the bulk is cut."""
    # R = c² C K^(1 - 2 gamma) with c² K^(-2 gamma) (2 n_eff - C K) = Delta/2, which is s_K = delta with
    # 2 alpha delta² = R + Delta/2  (quadratic 25). For R << Delta the rate is n_eff^(-1 + 1/2 gamma).
    # Without noise K = 2 n_eff / C, and the rate is n_eff^(1 - 2 gamma).
    constant = truncated_constant(exponent)
    most = 2 * effective_samples / constant
    learned = most
    if label_noise > 0:
        scale = label_noise / (2 * normalisation)

        def excess(rank: float) -> float:
            return scale * rank ** (2 * exponent) + constant * rank - 2 * effective_samples

        learned = bracketed_root(excess, 0.0, most, absolute=1e-14 * most)
    return float(normalisation * constant * learned ** (1 - 2 * exponent))


def thresholded_risk(
    *, dimension: int, exponent: float, normalisation: float, threshold: float
) -> float:
    """Error in phase II, where features above the threshold b are shrunk by b and others are lost."""
    # R = (K b² + sum over i > K of s_i²) / d = 2 gamma / (2 gamma - 1) K b² / d with s_K = b and
    # b = lambda d / 4 n_eff  (quadratic 26): the rate is (lambda sqrt(d) / n_eff)^(2 - 1/gamma).
    kept = (np.sqrt(normalisation * dimension) / threshold) ** (1 / exponent)
    return float(2 * exponent / (2 * exponent - 1) * kept * threshold**2 / dimension)


def phase_exponents(
    phase: QuadraticPhase, *, exponent: float, noiseless: bool = False
) -> tuple[float, float, float]:
    """Exponents of n/d, of the regularisation and of d in the error of a phase."""
    # arXiv:2509.24882, Result 1. Without noise phase IV has n_eff^(1 - 2 gamma)  (quadratic 25).
    tail = 2 - 1 / exponent
    return {
        QuadraticPhase.PLATEAU: (0.0, 0.0, 0.0),
        QuadraticPhase.COLLAPSE: (0.0, 0.0, 0.0),
        QuadraticPhase.THRESHOLDED: (-tail, tail, tail / 2),
        QuadraticPhase.SHIFTED: (-2.0, 2.0, 2.0),
        QuadraticPhase.BENIGN: (1 - 2 * exponent if noiseless else -tail / 2, 0.0, 0.0),
        QuadraticPhase.OVERFITTING: (0.4, 0.0, -0.4),
        QuadraticPhase.PEAK: (0.0, -2 / 3, 0.0),
        QuadraticPhase.NOISY_BULK: (-1.0, 0.0, 1.0),
        QuadraticPhase.FULL_RANK: (-1.0, 0.0, 1.0),
    }[phase]
