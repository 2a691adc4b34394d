"""Cached solutions of the theory, shared by predictions, claims and figures."""

from __future__ import annotations

from functools import lru_cache

from solvable.frame.points import Metrics
from solvable.models.quadratic.network.bayes import bayes_optimal
from solvable.models.quadratic.network.parameters import QuadraticParameters
from solvable.models.quadratic.network.theory import QuadraticState, solve_quadratic
from solvable.spectra.measures import Measure, power_law
from solvable.spectra.product_measure import marchenko_pastur
from solvable.spectra.thresholds import bayes_perfect_recovery_threshold, interpolation_threshold


def state_of(parameters: QuadraticParameters) -> QuadraticState:
    """Saddle point at a parameter set."""
    return _state(
        _key(parameters),
        parameters.ratio,
        parameters.noise,
        parameters.regularisation,
    )


def measure_of(parameters: QuadraticParameters) -> Measure:
    """Spectrum of the target in the theory: d eigenvalues, or the Marchenko-Pastur law."""
    return _measure(_key(parameters))


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


@lru_cache(maxsize=4096)
def _bayes(key: Key, ratio: float, noise: float) -> float:
    return bayes_optimal(_measure(key), sample_ratio=ratio, label_noise=noise).matrix_error


def interpolation_of(parameters: QuadraticParameters, tolerance: float) -> Metrics:
    """Position and height of the interpolation peak (quadratic 14); None without label noise."""
    return _interpolation(_key(parameters), parameters.noise, tolerance)


@lru_cache(maxsize=256)
def _interpolation(key: Key, noise: float, tolerance: float) -> Metrics:
    if noise == 0:
        return {"interpolation_ratio": None, "interpolation_peak": None}
    peak = interpolation_threshold(_measure(key), label_noise=noise, tolerance=tolerance)
    return {"interpolation_ratio": peak.sample_ratio, "interpolation_peak": peak.matrix_error}
