"""Prediction for bilinear sequence regression: the Bayes-optimal error, thresholds, and ridge."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from solvable.frame.points import NO_PREDICTION, Metrics
from solvable.message_passing.rectangular_signal import RectangularSignal
from solvable.message_passing.signal_evolution import signal_evolution
from solvable.models.sensing.bilinear.parameters import BilinearParameters
from solvable.spectra.nuclear_norm import nuclear_norm_ratio

STEEPEST = 3.0
"""Factor by which the error may change where a size is still near the limit."""


def recovery_ratio(aspect: float, rank_ratio: float) -> float:
    """Samples n/(dL) from which the matrix is recovered where labels have no noise."""
    # 2410.18858: its degrees of freedom, r (d + L - r) of dL
    rho = min(rank_ratio, 1.0)
    return rho * (1 + aspect - rho) / aspect


def ridge_error(sample_ratio: np.ndarray | float, noise: float) -> np.ndarray:
    """Error of ridge regression on all dL entries at its best penalty, the noise."""
    # E = x / (1 + x), x = (Delta + E) / alpha: E² + (alpha + Delta - 1) E - Delta = 0
    alpha = np.asarray(sample_ratio, dtype=float)
    half = (alpha + noise - 1) / 2
    root = np.sqrt(half**2 + noise)
    # of two equal forms the one that subtracts nothing
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(half > 0, noise / (half + root), root - half)


@lru_cache(maxsize=256)
def thresholds(signal: RectangularSignal) -> Metrics:
    """Samples from which labels without noise are enough, for any method and for the nuclear norm."""
    shape = {"aspect": signal.aspect, "rank_ratio": signal.rank_ratio}
    return {
        "recovery_ratio": recovery_ratio(**shape),
        "nuclear_norm_ratio": nuclear_norm_ratio(**shape),
    }


def curve(parameters: BilinearParameters, coordinates: np.ndarray) -> list[Metrics]:
    """Predictions at sample ratios, all at once."""
    alpha = np.asarray(coordinates, dtype=float)
    signal = parameters.signal
    # At 1 % more and fewer samples, and more and less noise: how steep the curve is
    near = alpha * np.array([[1.0], [0.99], [1.01]])
    error, *sides = signal_evolution(signal, parameters.channel, near).error
    steep = _slope(sides[::-1])
    noises = [parameters.noise * factor for factor in (1.01, 0.99)]
    channels = [parameters.model_copy(update={"noise": noise}).channel for noise in noises]
    response = 1 - _slope([signal_evolution(signal, each, alpha).error for each in channels])
    ridge = ridge_error(alpha, parameters.noise)
    ridge_response = 1 - _slope([ridge_error(alpha, noise) for noise in noises])
    shared = {"power": 1.0, **thresholds(signal)}
    return [
        {
            "matrix_error": float(E),
            "test_error": float(E),
            "noisy_test_error": float(E + parameters.noise),
            "ridge_error": float(R),
            "steepness": float(max(-s, 0.0)),
            "power_response": float(k),
            "ridge_power_response": float(k_ridge),
            **shared,
        }
        for E, R, s, k, k_ridge in zip(error, ridge, steep, response, ridge_response, strict=True)
    ]


def _slope(sides: list[np.ndarray]) -> np.ndarray:
    """Logarithmic slope of an error between 1 % above and below; 0 where it vanishes."""
    more, less = (np.asarray(side) for side in sides)
    known = (more > 0) & (less > 0)
    return np.where(known, np.log(np.where(known, more / np.where(known, less, 1), 1)) / 0.02, 0.0)


def predict(parameters: BilinearParameters) -> Metrics:
    """State evolution at the sides, rank and number of samples that are drawn."""
    d, L = parameters.shape
    found = curve(parameters, np.array([parameters.samples / (d * L)]))[0]
    reason = unsettled(parameters, found)
    if reason:
        own = ("matrix_error", "test_error", "noisy_test_error", "steepness", "power_response")
        found |= dict.fromkeys(own) | {NO_PREDICTION: reason}
    return found


def unsettled(parameters: BilinearParameters, found: Metrics) -> str:
    """Why a finite size is far from the limit, or nothing."""
    d, L = parameters.shape
    alpha = parameters.samples / (d * L)
    # What a drawn matrix asks for differs by as much as its squared norm does, (2 / (r d))^(1/2).
    width = min(0.5, (2 / (parameters.rank * d)) ** 0.5)
    sides = alpha * np.array([1 - width, 1 + width])
    above, below = signal_evolution(parameters.signal, parameters.channel, sides).error
    if above + 1e-3 <= STEEPEST * (below + 1e-3):
        return ""
    return (
        f"near recovery, at {parameters.samples} samples, the error falls from {above:.2g} to "
        f"{below:.2g} within the {100 * width:.0f} % by which a matrix of rank {parameters.rank} and "
        f"{d} rows differs from the limit. Raise dimension or noise, or move sample_ratio away from "
        f"{found['recovery_ratio']:.3g}."
    )


def chance(parameters: BilinearParameters, prediction: Metrics) -> Metrics:
    """Metrics of an estimate that is 0."""
    return {
        "matrix_error": 1.0,
        "test_error": 1.0,
        "noisy_test_error": 1.0 + parameters.noise,
        "ridge_error": 1.0,
    }
