"""Cached solutions of the theory, shared by predictions, claims and figures."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from solvable.errors import InvalidParameter
from solvable.frame.points import Metrics
from solvable.message_passing.matrix_channels import GaussianIndices
from solvable.message_passing.signal_evolution import signal_evolution
from solvable.message_passing.signal_laws import SymmetricSignal
from solvable.models.quadratic.network.parameters import QuadraticParameters
from solvable.models.quadratic.network.saddle import check_problem
from solvable.models.quadratic.network.theory import QuadraticState, solve_quadratic
from solvable.spectra.measures import Measure, as_measure, power_law
from solvable.spectra.product_measure import marchenko_pastur
from solvable.spectra.thresholds import bayes_perfect_recovery_threshold, interpolation_threshold

NOISELESS_PENALTY = 5e-3
"""Penalty of fits without label noise, and largest penalty of claims on recovery."""


def state_of(parameters: QuadraticParameters) -> QuadraticState:
    """Saddle point at a parameter set."""
    return _state(_key(parameters), parameters.ratio, parameters.noise, penalty_of(parameters))


def penalty_of(parameters: QuadraticParameters) -> float:
    """Penalty lambda of the trace: `regularisation` times its unit."""
    unit, d = parameters.regularisation_unit, parameters.dimension
    if unit == "best":
        best = _best_penalty(_key(parameters), parameters.ratio, parameters.noise)
        return parameters.regularisation * best
    return parameters.regularisation * {"one": 1.0, "1/d": 1 / d, "sqrt(d)": d**0.5}[unit]


def penalties_of(parameters: QuadraticParameters, ratios: np.ndarray) -> np.ndarray:
    """Penalty at each of the sample ratios of a curve."""
    if parameters.regularisation_unit != "best":
        return np.full(len(ratios), penalty_of(parameters))
    key, noise = _key(parameters), parameters.noise
    best = [_best_penalty(key, float(ratio), noise) for ratio in ratios]
    return parameters.regularisation * np.array(best)


def local_exponent(parameters: QuadraticParameters) -> float:
    """Predicted slope of log R against log n at a fixed penalty."""
    # At the best penalty this is the slope along the best penalties, as the error is stationary there.
    key, noise, penalty = _key(parameters), parameters.noise, penalty_of(parameters)
    step = 0.1
    errors = [
        _state(key, parameters.ratio * np.exp(side), noise, penalty).matrix_error
        for side in (-step, step)
    ]
    return float(np.log(errors[1] / errors[0]) / (2 * step))


def measure_of(parameters: QuadraticParameters) -> Measure:
    """Spectrum of the target in the theory: d eigenvalues, or the Marchenko-Pastur law."""
    return _measure(_key(parameters))


def noiseless_error(parameters: QuadraticParameters, ratio: float) -> float | None:
    """Error of the minimiser for labels without noise; None if no replicate measures it."""
    if not (parameters.noiseless_samples and parameters.low_rank):
        return None
    return _state(_key(parameters), ratio, 0.0, NOISELESS_PENALTY).matrix_error


def bayes_error(parameters: QuadraticParameters, ratio: float) -> float:
    """Bayes-optimal error at this number of samples per squared dimension (quadratic 16)."""
    rank = parameters.target_rank / parameters.dimension
    if parameters.noise == 0 and ratio >= bayes_perfect_recovery_threshold(rank):
        return 0.0
    return _bayes(_key(parameters), ratio, parameters.noise)


Key = tuple[str, int, float]
"""Cache key of a target: spectrum, dimension (0 in the limit), and width ratio or exponent."""


def _key(parameters: QuadraticParameters) -> Key:
    if parameters.target == "power-law":
        return (parameters.target, parameters.dimension, parameters.exponent)
    return (parameters.target, 0, parameters.target_units / parameters.dimension)


@lru_cache(maxsize=64)
def _measure(key: Key) -> Measure:
    spectrum, dimension, shape = key
    if spectrum == "power-law":
        return power_law(dimension=dimension, exponent=shape)
    return marchenko_pastur(shape)


@lru_cache(maxsize=4096)
def _state(key: Key, ratio: float, noise: float, regularisation: float) -> QuadraticState:
    return solve_quadratic(
        _measure(key), sample_ratio=ratio, label_noise=noise, regularisation=regularisation
    )


@lru_cache(maxsize=1024)
def _best_penalty(key: Key, ratio: float, noise: float) -> float:
    """Penalty of the smallest error, accurate to 1 %; this inaccuracy changes the error by only 1e-4."""
    from scipy.optimize import minimize_scalar

    # Near the bulk's end at 4 sqrt(alpha Delta) noise is cut and features are shrunk; the minimum lies
    # below for a power law. Above full_rank_samples the error falls to the end of the range.
    cut = float(4 * np.sqrt(ratio * noise))
    best = minimize_scalar(
        lambda place: _state(key, ratio, noise, float(np.exp(place))).matrix_error,
        bounds=(np.log(cut) - 7, np.log(cut) + 2),
        method="bounded",
        options={"xatol": 0.01},
    )
    return float(np.exp(best.x))


@lru_cache(maxsize=4096)
def _bayes(key: Key, ratio: float, noise: float) -> float:
    return bayes_optimal(_measure(key), sample_ratio=ratio, label_noise=noise).matrix_error


def interpolation_of(parameters: QuadraticParameters) -> Metrics:
    """Position and height of the interpolation peak (quadratic 14); None without label noise."""
    return _interpolation(_key(parameters), parameters.noise)


@lru_cache(maxsize=256)
def _interpolation(key: Key, noise: float) -> Metrics:
    if noise == 0:
        return {"interpolation_ratio": None, "interpolation_peak": None}
    peak = interpolation_threshold(_measure(key), label_noise=noise)
    return {"interpolation_ratio": peak.sample_ratio, "interpolation_peak": peak.matrix_error}


@dataclass(frozen=True)
class BayesOptimalState:
    """Prediction of the Bayes-optimal estimator."""

    effective_noise: float  # delta: the data are as informative as S* + delta Z
    matrix_error: float  # R of the posterior mean


def bayes_optimal(
    target: Measure | np.ndarray, *, sample_ratio: float, label_noise: float
) -> BayesOptimalState:
    """Bayes-optimal error: fixed point of message passing from no information."""
    check_problem(sample_ratio=sample_ratio, label_noise=label_noise, regularisation=0.0)
    # R = delta² - (4 pi²/3) delta⁴ int mu_delta³, R + Delta/2 = 2 alpha delta², at the largest root
    # (quadratic 16; arXiv:2408.03733). Noise of variance sigma² inside the activation of a target
    # W W^T / sqrt(p* d) is equivalent to Delta = 2 sigma² (2 + sigma²); divide by kappa* for W W^T / p*.
    measure = as_measure(target)
    sensing = GaussianIndices(np.array([2.0]), np.array([float(label_noise)]))
    signal = SymmetricSignal(measure)
    # A multiple of the identity is known in advance: only the label noise remains.
    known = signal.variance <= 1e-14 * signal.second_moment
    error, variance = 0.0, label_noise / (4 * sample_ratio)
    if not known:
        state = signal_evolution(signal, sensing, sample_ratio)
        error, variance = float(state.error), float(state.noise)
    if variance == 0:
        raise InvalidParameter(
            f"at sample_ratio {sample_ratio} without label noise the best estimator recovers the target "
            "exactly, so that the effective noise vanishes. Use a smaller sample ratio or label noise."
        )
    return BayesOptimalState(float(np.sqrt(variance)), error)
