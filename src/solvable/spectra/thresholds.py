r"""Thresholds of least-trace solutions: interpolation of noisy labels, noiseless recovery."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from solvable.arrays import check_real
from solvable.errors import InvalidParameter, NotConverged
from solvable.spectra.free_convolution import SpectralLaw
from solvable.spectra.functionals import TruncatedMoments, thresholded_error, truncated_moments
from solvable.spectra.measures import Measure, as_measure, second_moment
from solvable.spectra.roots import bracketed_root


@dataclass(frozen=True)
class InterpolationThreshold:
    """Interpolation threshold: above it the unregularised network no longer fits noisy labels exactly."""

    sample_ratio: float  # sample ratio n / d² of the threshold
    matrix_error: float  # height of the error's peak without regularisation
    effective_noise: float  # noise delta at the threshold; b is 0 there


def interpolation_threshold(
    target: Measure | np.ndarray, *, label_noise: float, tolerance: float = 0.0
) -> InterpolationThreshold:
    """Compute the interpolation threshold at vanishing regularisation, where b = 0   (spectra 34)."""
    # The search ends at a relative error ``tolerance`` of the equation.
    # Q + Delta / 2 = J(delta, 0) - (delta / 2) d_1 J(delta, 0), alpha = d_1 J(delta, 0) / (4 delta)
    # (spectra 34; arXiv:2505.17958). With the denoiser f the right side is int_0 x f(x)
    # mu_delta(dx): above 0, close to Q at small noise, and (4 / 3 pi) delta int s mu*(ds) + Q / 2
    # at large noise, whose root starts the search.
    check_real("label_noise", label_noise, 0.0)
    measure = as_measure(target)
    energy = second_moment(measure)
    if label_noise == 0:
        raise InvalidParameter(
            "label_noise is 0; allowed: above 0. Without noise there is no peak: the target is "
            "recovered at perfect_recovery_threshold."
        )
    if energy == 0:
        raise InvalidParameter(
            "the target is zero, so the interpolation threshold is 1/4 and the peak is infinite. "
            "Use a target with eigenvalues above 0, or a regularisation above 0."
        )

    total = energy + label_noise / 2
    seen: dict[float, TruncatedMoments] = {}

    def excess(log_noise: float) -> float:
        law = SpectralLaw(
            measure, noise=float(np.exp(log_noise)), tolerance=max(1e-11, tolerance / 100)
        )
        seen[log_noise] = moments = truncated_moments(law, 0.0)
        denoised = float(moments.second[0] - 2 * law.variance * moments.slope[0])
        # The logarithm of the right side is nearly linear in the logarithm of the noise.
        found = float(np.log(total / max(denoised, 1e-300 * total)))
        return found if abs(found) > tolerance else 0.0

    mean = float(measure.node_weights @ measure.nodes)
    here = float(np.log(3 * np.pi * (energy + label_noise) / (8 * mean)))
    gap = excess(here)
    # The bracket's end is a tenth beyond the asymptote's root; the distance then doubles.
    step = 1.1 * gap / (1 - energy / (2 * total)) + 1e-6 * np.sign(gap)
    for _ in range(60):
        there = here + step
        beyond = excess(there)
        if gap * beyond <= 0:
            break
        here, gap, step = there, beyond, 2 * step
    else:
        raise NotConverged(
            "the ridgeless peak is too high for double precision: the target is too weak against "
            "the label noise.",
            {"effective_noise": float(np.exp(here)), "excess": gap},
        )
    place = bracketed_root(excess, here, there, absolute=1e-13, ends=(gap, beyond))
    moments = seen[place]
    return InterpolationThreshold(
        sample_ratio=float(moments.slope[0]),
        matrix_error=thresholded_error(energy, moments),
        effective_noise=moments.noise,
    )


def perfect_recovery_threshold(rank_fraction: float, *, sides: Literal[1, 2] = 1) -> float:
    """Sample ratio above which the least trace recovers a positive semidefinite matrix exactly."""
    kappa = _checked_fraction(rank_fraction)
    if kappa == 1:
        return 0.5

    def balance(cut: float) -> float:
        mean = _semicircle_above(cut, 1) - cut * _semicircle_above(cut, 0)
        return kappa * cut - sides * (1 - kappa) * mean

    # kappa a = s (1 - kappa) int_a² (x - a) mu_sc(dx), alpha = kappa - kappa² / 2 + (s / 2) (1 -
    # kappa)² int_a² x (x - a) mu_sc(dx). The threshold depends on the rank alone.
    cut = bracketed_root(balance, 0.0, 2.0, absolute=1e-15)
    rest = _semicircle_above(cut, 2) - cut * _semicircle_above(cut, 1)
    return kappa - kappa**2 / 2 + sides * (1 - kappa) ** 2 / 2 * rest


def bayes_perfect_recovery_threshold(rank_fraction: float) -> float:
    """Sample ratio kappa - kappa² / 2 above which the best estimator is perfect   (spectra 35)."""
    if not 0 < rank_fraction < np.inf:
        raise InvalidParameter(f"rank_fraction is {rank_fraction}; allowed: above 0, finite.")
    kappa = min(float(rank_fraction), 1.0)
    return kappa - kappa**2 / 2


def flow_recovery_threshold(rank_fraction: float, width_ratio: float) -> float:
    """Conjectured sample ratio at which plain gradient flow finds a noiseless target (2601.10483)."""
    kappa = _checked_fraction(rank_fraction)
    if not kappa <= width_ratio < np.inf:
        raise InvalidParameter(
            f"width_ratio is {width_ratio}; allowed: from the target's {kappa} on, or it cannot be "
            "recovered."
        )
    # min{w - w² / 2, kappa - kappa² / 2 + (1 - kappa)² / 2 int_max(0, omega)² x² mu_sc(dx)} for
    # width w, mu_sc([omega, 2]) = (w - kappa) / (1 - kappa)
    width = min(float(width_ratio), 1.0)
    parameters = kappa - kappa**2 / 2
    if kappa == 1:
        return parameters
    share = (width - kappa) / (1 - kappa)
    cut = max(_semicircle_quantile(share), 0.0)
    return min(width - width**2 / 2, parameters + (1 - kappa) ** 2 / 2 * _semicircle_above(cut, 2))


def _semicircle_quantile(tail: float) -> float:
    if tail <= 0:
        return 2.0
    if tail >= 1:
        return -2.0
    return bracketed_root(lambda x: _semicircle_above(x, 0) - tail, -2.0, 2.0, absolute=1e-14)


def _semicircle_above(cut: float, power: int) -> float:
    r"""Integrals :math:`\int_a^2x^k\mu_{sc}(dx)` for k = 0, 1, 2, with a = 2 cos(angle)."""
    angle = float(np.arccos(np.clip(cut / 2, -1, 1)))
    sine = np.sin(angle)
    if power == 0:
        return float(angle - sine * np.cos(angle)) / np.pi
    if power == 1:
        return float(4 / (3 * np.pi) * sine**3)
    return float(angle / np.pi - np.sin(4 * angle) / (4 * np.pi))


def _checked_fraction(rank_fraction: float) -> float:
    if not 0 < rank_fraction <= 1:
        raise InvalidParameter(
            f"rank_fraction is {rank_fraction}; allowed: above 0 and up to 1 (rank over dimension)."
        )
    return float(rank_fraction)
