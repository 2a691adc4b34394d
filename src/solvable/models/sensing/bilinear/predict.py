"""Predictions of bilinear sequence regression: Bayes-optimal error, thresholds, ridge error."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from solvable.frame.points import NO_PREDICTION, Metrics
from solvable.message_passing.rectangular_signal import RectangularSignal
from solvable.message_passing.signal_evolution import signal_evolution
from solvable.models.sensing.bilinear.parameters import BilinearParameters
from solvable.spectra.nuclear_norm import nuclear_norm_ratio

STEEPEST = 3.0
"""Largest factor by which the predicted error may change within the scatter of drawn matrices."""


def recovery_ratio(aspect: float, rank_ratio: float) -> float:
    """Sample ratio n/(dL) above which noiseless labels determine the matrix."""
    # alpha = rho (1 + beta - rho) / beta: r (d + L - r) free parameters for d L entries
    # (sensing 16)
    rho = min(rank_ratio, 1.0)
    return rho * (1 + aspect - rho) / aspect


def ridge_error(sample_ratio: np.ndarray | float, noise: float) -> np.ndarray:
    """Error of ridge regression on all dL entries; the best penalty is the noise variance."""
    # E = x / (1 + x), x = (Delta + E) / alpha: E² + (alpha + Delta - 1) E - Delta = 0   (sensing 18)
    alpha = np.asarray(sample_ratio, dtype=float)
    half = (alpha + noise - 1) / 2
    root = np.sqrt(half**2 + noise)
    # choose the form without cancellation
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(half > 0, noise / (half + root), root - half)


@lru_cache(maxsize=256)
def thresholds(signal: RectangularSignal) -> Metrics:
    """Recovery thresholds without noise, for the Bayes-optimal estimator and the least nuclear norm."""
    shape = {"aspect": signal.aspect, "rank_ratio": signal.rank_ratio}
    return {
        "recovery_ratio": recovery_ratio(**shape),
        "nuclear_norm_ratio": nuclear_norm_ratio(**shape),  # (sensing 17)
    }


def curve(parameters: BilinearParameters, coordinates: np.ndarray) -> list[Metrics]:
    """Predict the metrics at an array of sample ratios."""
    alpha = np.asarray(coordinates, dtype=float)
    signal = parameters.signal
    # logarithmic slopes of the error, from 1 % more and fewer samples and from 1 % more and less noise
    near = alpha * np.array([[1.0], [0.99], [1.01]])
    # t = (Delta + E) / alpha, E = mmse(t)   (sensing 15)
    error, *sides = signal_evolution(signal, parameters.channel, near).error
    steep = _slope(sides[::-1])
    noises = [parameters.noise * factor for factor in (1.01, 0.99)]
    channels = [parameters.model_copy(update={"noise": noise}).channel for noise in noises]
    # dlogE / dlogP = 1 - dlogE / dlogDelta   (sensing 19)
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
    """Logarithmic slope from the errors 1 % above and 1 % below a value; 0 where an error is 0."""
    more, less = (np.asarray(side) for side in sides)
    known = (more > 0) & (less > 0)
    return np.where(known, np.log(np.where(known, more / np.where(known, less, 1), 1)) / 0.02, 0.0)


def predict(parameters: BilinearParameters) -> Metrics:
    """Predict the metrics by state evolution at the integer shape, rank and number of samples."""
    d, L = parameters.shape
    metrics = curve(parameters, np.array([parameters.samples / (d * L)]))[0]
    reason = unsettled(parameters, metrics)
    if reason:
        own = ("matrix_error", "test_error", "noisy_test_error", "steepness", "power_response")
        metrics |= dict.fromkeys(own) | {NO_PREDICTION: reason}
    return metrics


def unsettled(parameters: BilinearParameters, metrics: Metrics) -> str:
    """Reason why the limit does not predict the error at this size; empty if the limit does."""
    d, L = parameters.shape
    alpha = parameters.samples / (d * L)
    # A drawn matrix's recovery threshold and squared norm have the relative scatter (2 / (r d))^(1/2).
    width = min(0.5, (2 / (parameters.rank * d)) ** 0.5)
    sides = alpha * np.array([1 - width, 1 + width])
    above, below = signal_evolution(parameters.signal, parameters.channel, sides).error
    if above + 1e-3 <= STEEPEST * (below + 1e-3):
        return ""
    return (
        f"sample_ratio is too near recovery: the predicted error falls from {above:.2g} to {below:.2g} "
        f"if sample_ratio changes by {100 * width:.0f} %, the scatter of the recovery threshold between "
        f"matrices with rank {parameters.rank} and {d} rows. Raise dimension or noise, or move "
        "sample_ratio away from "
        f"{metrics['recovery_ratio']:.3g}."
    )


def chance(parameters: BilinearParameters, prediction: Metrics) -> Metrics:
    """Metrics of the estimate 0, which ignores the data."""
    return {
        "matrix_error": 1.0,
        "test_error": 1.0,
        "noisy_test_error": 1.0 + parameters.noise,
        "ridge_error": 1.0,
    }
