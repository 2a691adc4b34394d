"""Limits of bilinear sequence regression: thresholds, ridge regression, infinite aspect ratio."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from solvable.frame.points import Metrics
from solvable.message_passing.rectangular_signal import RectangularSignal
from solvable.spectra.nuclear_norm import nuclear_norm_ratio


def recovery_ratio(aspect: float, rank_ratio: float) -> float:
    """Sample ratio n/(dL) above which noiseless labels determine the matrix."""
    # alpha = rho (1 + beta - rho) / beta: r (d + L - r) free parameters for d L entries
    # (sensing 16)
    rho = min(rank_ratio, 1.0)
    return rho * (1 + aspect - rho) / aspect


@lru_cache(maxsize=256)
def thresholds(signal: RectangularSignal) -> Metrics:
    """Recovery thresholds without noise, for the Bayes-optimal estimator and the least nuclear norm."""
    shape = {"aspect": signal.aspect, "rank_ratio": signal.rank_ratio}
    return {
        "recovery_ratio": recovery_ratio(**shape),
        "nuclear_norm_ratio": nuclear_norm_ratio(**shape),  # (sensing 17)
    }


def weak_recovery(signal: RectangularSignal, noise: float) -> Metrics:
    """Threshold of weak recovery at vanishing rank, in samples per free parameter r (d + L)."""
    # n / (r (d + L)) = (1 + Delta) sqrt(beta) / (1 + beta)   (sensing 25)
    samples = (1 + noise) * np.sqrt(signal.aspect) / (1 + signal.aspect)
    return {"weak_recovery_per_parameter": float(samples)}


def ridge_error(sample_ratio: np.ndarray | float, noise: float) -> np.ndarray:
    """Error of ridge regression on all dL entries; the best penalty is the noise variance."""
    # E = x / (1 + x), x = (Delta + E) / alpha: E² + (alpha + Delta - 1) E - Delta = 0   (sensing 18)
    alpha = np.asarray(sample_ratio, dtype=float)
    half = (alpha + noise - 1) / 2
    root = np.sqrt(half**2 + noise)
    # choose the form without cancellation
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(half > 0, noise / (half + root), root - half)


def infinite_aspect_error(
    sample_ratio: np.ndarray, *, rank_ratio: float, noise: float
) -> np.ndarray:
    """Bayes-optimal error in the limit of long sequences, L/d to infinity."""
    alpha, rho = np.asarray(sample_ratio, dtype=float), rank_ratio

    def mmse(t: np.ndarray) -> np.ndarray:
        # E = t - (t / 2) (sqrt(1 + rho ((t + 2) rho t + 2 t + rho - 2)) - (rho - 1) - rho t)
        # (sensing 26)
        root = np.sqrt(1 + rho * ((t + 2) * rho * t + 2 * t + rho - 2))
        small = t * (1 - (root - (rho - 1) - rho * t) / 2)
        return np.where(t > 1e6, 1.0, small)  # E -> 1 with an error of order 1/t

    # alpha(t) = (Delta + mmse(t)) / t decreases: bisection in log t
    low, high = np.full(alpha.shape, -25.0), np.full(alpha.shape, 25.0)
    for _ in range(60):
        middle = (low + high) / 2
        t = np.exp(middle)
        few = (noise + mmse(t)) / t > alpha
        low, high = np.where(few, middle, low), np.where(few, high, middle)
    return np.where(low == -25.0, 0.0, mmse(np.exp(low)))
