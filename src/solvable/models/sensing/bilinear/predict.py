"""Predictions of bilinear sequence regression: Bayes-optimal error, thresholds, ridge error."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from solvable.frame.points import NO_PREDICTION, Metrics
from solvable.message_passing.rectangular_signal import RectangularSignal
from solvable.message_passing.signal_evolution import signal_evolution
from solvable.models.sensing.bilinear.nuclear_norm import nuclear_norm_error
from solvable.models.sensing.bilinear.parameters import BilinearParameters
from solvable.models.sensing.free_entropy import entropy_metrics, free_entropy, label_information
from solvable.spectra.nuclear_norm import nuclear_norm_ratio

STEEPEST = 3.0
"""Largest factor by which the predicted error may change within the scatter of drawn matrices."""


def curve(parameters: BilinearParameters, coordinates: np.ndarray) -> list[Metrics]:
    """Predict the metrics at an array of sample ratios."""
    # the axis of a figure may start at 0, where state evolution is not defined and the error is 1
    alpha = np.maximum(np.asarray(coordinates, dtype=float), 1e-4)
    signal, noise = parameters.signal, parameters.noise
    # t = (Delta + E) / alpha, E = mmse(t)   (sensing 15)
    bayes = signal_evolution(signal, parameters.channel, alpha).error
    noises = [noise * factor for factor in (1.01, 0.99)]
    channels = [parameters.model_copy(update={"noise": value}).channel for value in noises]
    # dlogE / dlogP = 1 - dlogE / dlogDelta   (sensing 19)
    response = 1 - _slope([signal_evolution(signal, each, alpha).error for each in channels])
    ridge_response = 1 - _slope([ridge_error(alpha, value) for value in noises])
    single: list[float | None] = [None] * alpha.size
    errors: list[float | None] = bayes.tolist()
    if parameters.estimator == "nuclear-norm":
        errors = nuclear_norm_error(signal, alpha).tolist()
    elif parameters.estimator == "gradient-descent":
        # two draws of the posterior differ by 2 E; the mean of k draws has the error E (1 + 1 / k)
        # (sensing 27)
        known, share = noise == 0, 1 + 1 / parameters.starts
        errors = [share * E if known else None for E in bayes]
        single = [2 * float(E) if known else None for E in bayes]
    columns = {
        "matrix_error": errors,
        "test_error": errors,
        "noisy_test_error": [None if E is None else E + noise for E in errors],
        "single_error": single,
        "bayes_error": bayes.tolist(),
        "ridge_error": ridge_error(alpha, noise).tolist(),
        "infinite_aspect_error": infinite_aspect_error(
            alpha, rank_ratio=signal.rank_ratio, noise=noise
        ).tolist(),
        # I-MMSE: dI / dalpha = log(1 + E / Delta) / 2   (sensing 24)
        "information_rate": [label_information(noise, E) if noise else None for E in bayes],
        "power_response": response.tolist(),
        "ridge_power_response": ridge_response.tolist(),
    }
    shared = {"power": 1.0, **thresholds(signal), **weak_recovery(signal, noise)}
    own = "nuclear_norm_ratio" if parameters.estimator == "nuclear-norm" else "recovery_ratio"
    shared["threshold_ratio"] = shared[own]
    entropy = free_entropy(signal, parameters.channel)
    return [
        {name: column[k] for name, column in columns.items()}
        | shared
        | entropy_metrics(entropy, 1.0, float(alpha[k]), float(bayes[k]))
        for k in range(alpha.size)
    ]


def _slope(sides: list[np.ndarray]) -> np.ndarray:
    """Logarithmic slope from the errors at 1 % more and 1 % less noise; 0 where an error is 0."""
    more, less = (np.asarray(side) for side in sides)
    known = (more > 0) & (less > 0)
    return np.where(known, np.log(np.where(known, more / np.where(known, less, 1), 1)) / 0.02, 0.0)


def predict(parameters: BilinearParameters) -> Metrics:
    """Predict the metrics by state evolution at the integer shape, rank and number of samples."""
    metrics = curve(parameters, np.array([parameters.ratio]))[0]
    reason = unsettled(parameters, metrics)
    if reason:
        own = ("matrix_error", "test_error", "noisy_test_error", "single_error",
               "power_response", "information_rate")  # fmt: skip
        metrics |= dict.fromkeys(own) | {NO_PREDICTION: reason}
    return metrics


def unsettled(parameters: BilinearParameters, metrics: Metrics) -> str:
    """Reason why the limit does not predict the error at this size; empty if the limit does."""
    if metrics["matrix_error"] is None:
        return "gradient descent has a prediction for noiseless labels alone; set noise=0."
    d, alpha = parameters.dimension, parameters.ratio
    # A drawn matrix's recovery threshold and squared norm have the relative scatter (2 / (r d))^(1/2).
    width = min(0.5, (2 / (parameters.rank * d)) ** 0.5)
    sides = alpha * np.array([1 - width, 1 + width])
    if parameters.estimator == "nuclear-norm":
        above, below = nuclear_norm_error(parameters.signal, sides)
    else:
        above, below = signal_evolution(parameters.signal, parameters.channel, sides).error
    if above + 1e-3 <= STEEPEST * (below + 1e-3):
        return ""
    return (
        f"sample_ratio is too near recovery: the predicted error falls from {above:.2g} to {below:.2g} "
        f"if sample_ratio changes by {100 * width:.0f} %, the scatter of the recovery threshold between "
        f"matrices with rank {parameters.rank} and {d} rows. Raise dimension or noise, or move "
        f"sample_ratio away from {metrics['threshold_ratio']:.3g}."
    )


def chance(parameters: BilinearParameters, prediction: Metrics) -> Metrics:
    """Metrics of the estimate 0, which ignores the data; for gradient descent of its random starts."""
    several = parameters.estimator == "gradient-descent"
    error = 1 + several / parameters.starts
    return {
        "matrix_error": error,
        "test_error": error,
        "noisy_test_error": error + parameters.noise,
        "single_error": 2.0 if several else None,
        "ridge_error": 1.0,
        "information_rate": label_information(parameters.noise, 1.0)
        if prediction.get("information_rate") is not None
        else None,
    }


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
