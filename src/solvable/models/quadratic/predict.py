"""Prediction of a quadratic network: the saddle point, and all that follows from its two scalars."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from solvable.frame.points import Metrics
from solvable.models.quadratic.bayes import bayes_optimal
from solvable.models.quadratic.finite_size import finite_size
from solvable.models.quadratic.groups import feature_groups, outlier_edge
from solvable.models.quadratic.naming import phase_metrics
from solvable.models.quadratic.saddle import second_moment, thresholded_error
from solvable.models.quadratic.theory import QuadraticState, solve_quadratic
from solvable.models.quadratic.thresholds import (
    bayes_perfect_recovery_threshold,
    interpolation_threshold,
    perfect_recovery_threshold,
)
from solvable.spectra.denoiser import denoising_error, feature_errors
from solvable.spectra.free_convolution import SpectralLaw
from solvable.spectra.functionals import truncated_moments
from solvable.spectra.measures import Measure, power_law
from solvable.spectra.product_measure import marchenko_pastur

if TYPE_CHECKING:
    from solvable.models.quadratic.system import QuadraticParameters

BAYES_STEPS = 12
"""Laws on the way from the network's noise to the Bayes-optimal one, at most."""

BAYES_TOLERANCE = 1e-9
"""Largest relative residual of the Bayes-optimal error plus half of the label noise."""

LISTED_DIMENSION = 2_000
"""Dimension beyond which eigenvalues and features are not listed one by one."""


def predict(parameters: QuadraticParameters) -> Metrics:
    """Predicted metrics of a parameter set, under the names of the measured ones and more."""
    state = state_of(parameters)
    noise, threshold = state.effective_noise, state.threshold
    return {
        "matrix_error": state.matrix_error,
        "test_error": state.test_error,
        "train_error": state.train_error,
        "rank_fraction": state.rank_fraction,
        "trace": state.trace,
        "effective_noise": noise,
        "threshold": threshold,
        "bulk_edge": max(2 * noise - threshold, 0.0),
        **phase_metrics(parameters, state),
        "outliers": outliers(state, parameters.dimension),
        "degrees_of_freedom": state.degrees_of_freedom,
        "objective": state.objective,
        "gcv_test_error": state.test_error,
        **_limits(parameters, state),
        **_at_this_size(parameters, state),
        "pruned_error": cut_error(state, max(2 * noise, threshold)),
        "denoised_error": denoising_error(state.law),
        "feature_errors": [*group_errors(state, feature_groups(parameters))],
        "eigenvalues": _eigenvalues(state, parameters.dimension),
    }


def state_of(parameters: QuadraticParameters) -> QuadraticState:
    """The saddle point of a parameter set."""
    return _state(
        _key(parameters),
        parameters.n_samples / parameters.dimension**2,
        parameters.noise,
        parameters.regularisation,
    )


def measure_of(parameters: QuadraticParameters) -> Measure:
    """Spectrum of the target as theory is told it: d eigenvalues, or Marchenko and Pastur's law."""
    return _measure(_key(parameters))


def bayes_error(parameters: QuadraticParameters, ratio: float) -> float:
    """Least error of any estimator from this many samples per squared dimension."""
    rank = parameters.target_rank / parameters.dimension
    if parameters.noise == 0 and ratio >= bayes_perfect_recovery_threshold(rank):
        return 0.0
    return _bayes(_key(parameters), ratio, parameters.noise)


def bayes_below(state: QuadraticState) -> float | None:
    r"""Bayes-optimal error, from a network's own noise downwards: a third of the laws.

    The network's error is at least that of the denoiser at the same noise, so that its own noise
    is at least the largest root of :math:`R(\delta)+\frac\Delta2=2\alpha\delta^2`, which is the one
    that counts; above it the fixed-point map goes down to it. None where that does not settle in a
    few steps, as at exact recovery.
    """
    law, place = state.law, float(np.log(state.effective_noise))
    step, slope, before = 0.0, 2.0, None
    for _ in range(BAYES_STEPS):
        error = denoising_error(law)
        share = (error + state.label_noise / 2) / (2 * state.sample_ratio * law.variance)
        if share <= 0:
            return None
        gap = float(np.log(share))
        if abs(gap) < BAYES_TOLERANCE:
            return error
        if before is not None:
            slope = (before - gap) / step
        # A secant; the fixed-point map has the slope 2, the steepest there is.
        if not 0.05 < slope < 4 or (before is None and gap > 0):
            return None
        step, before = gap / slope, gap
        place += step
        law = SpectralLaw(law.target, noise=float(np.exp(place)))
    return None


def _at_this_size(parameters: QuadraticParameters, state: QuadraticState) -> Metrics:
    """The limit with its first order in 1/d."""
    extra = finite_size(state, samples=parameters.sensing == "network")
    d = parameters.dimension
    error = state.matrix_error + extra.matrix_error / d
    return {
        "finite_size_matrix_error": error,
        "finite_size_test_error": 2 * error + parameters.noise,
        "finite_size_train_error": state.train_error + extra.train_error / d,
        "finite_size_rank_fraction": state.rank_fraction + extra.rank_fraction / d,
        "finite_size_trace": state.trace + extra.trace / d,
    }


def cut_error(state: QuadraticState, threshold: float) -> float:
    """Error R after the threshold is moved, by pruning without training again."""
    moments = truncated_moments(state.law, threshold)
    return thresholded_error(second_moment(state.law.target), moments)


def outliers(state: QuadraticState, dimension: int) -> float:
    """Learned directions beyond the edge of the noise, by the margin of a finite dimension."""
    place = outlier_edge(state.effective_noise, state.threshold, dimension) + state.threshold
    return float(dimension * truncated_moments(state.law, place).mass[0])


def group_errors(state: QuadraticState, ends: list[int]) -> list[float]:
    """Mean errors of groups of features, strongest first; the groups end at these ranks."""
    return _grouped(state, feature_errors(state.law, state.threshold), ends)


def group_strengths(state: QuadraticState, ends: list[int]) -> list[float]:
    """Mean squared strengths of groups of features, as :func:`group_errors`."""
    return _grouped(state, state.law.target.nodes**2, ends)


def _grouped(state: QuadraticState, values: np.ndarray, ends: list[int]) -> list[float]:
    weights = state.law.target.node_weights[::-1]
    # Both sums at the boundaries of the nodes: exact where groups end between atoms.
    mass = np.append(0.0, np.cumsum(weights))
    total = np.append(0.0, np.cumsum(weights * values[::-1]))
    places = np.append(0.0, np.asarray(ends) / ends[-1])
    return [float(one) for one in np.diff(np.interp(places, mass, total)) / np.diff(places)]


def _eigenvalues(state: QuadraticState, dimension: int) -> list[float | None] | None:
    """Typical places of all eigenvalues of the minimiser, descending.

    Quantiles from the masses between the nodes of the law's quadrature: to a few hundredths of the
    spacing of eigenvalues, and many times faster than exact ones.
    """
    if dimension > LISTED_DIMENSION:
        return None
    law = state.law
    mass = np.cumsum(law.weights) - law.weights / 2
    levels = 1 - (np.arange(1, dimension + 1) - 0.5) / dimension
    places = np.interp(levels, mass, law.x) - state.threshold
    return [float(one) for one in np.maximum(places, 0.0)]


def _limits(parameters: QuadraticParameters, state: QuadraticState) -> Metrics:
    """What does not depend on the regularisation: thresholds, and the best any estimator can do."""
    rank = parameters.target_rank / parameters.dimension
    best = bayes_below(state)
    if best is None:
        best = bayes_error(parameters, state.sample_ratio)
    return {
        **_interpolation(_key(parameters), parameters.noise),
        "perfect_recovery_ratio": perfect_recovery_threshold(rank),
        "bayes_matrix_error": best,
        "bayes_test_error": 2 * best + parameters.noise,
    }


Key = tuple[str, int, float]
"""Spectrum, dimension where it matters, and the ratio or exponent."""


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


@lru_cache(maxsize=256)
def _interpolation(key: Key, noise: float) -> Metrics:
    if noise == 0:
        return {"interpolation_ratio": None, "interpolation_peak": None}
    peak = interpolation_threshold(_measure(key), label_noise=noise)
    return {"interpolation_ratio": peak.sample_ratio, "interpolation_peak": peak.matrix_error}
