"""Prediction of a quadratic network: the saddle point, and all that follows from its two scalars."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from solvable.frame.points import NO_PREDICTION, Metrics
from solvable.models.quadratic.network.bayes import bayes_optimal
from solvable.models.quadratic.network.denoised import denoised_error, feature_deviations
from solvable.models.quadratic.network.errors import decompose_error
from solvable.models.quadratic.network.finite_size import finite_sizes, unreachable
from solvable.models.quadratic.network.parameters import QuadraticParameters
from solvable.models.quadratic.network.phases import PhasePoint, quadratic_phase
from solvable.models.quadratic.network.spectral_phase import spectral_phase
from solvable.models.quadratic.network.theory import (
    QuadraticState,
    quadratic_curve,
    solve_quadratic,
)
from solvable.spectra.denoiser import denoising_error, feature_errors
from solvable.spectra.free_convolution import SpectralLaw
from solvable.spectra.functionals import thresholded_error, truncated_moments
from solvable.spectra.measures import Measure, power_law, second_moment
from solvable.spectra.product_measure import marchenko_pastur
from solvable.spectra.thresholds import (
    bayes_perfect_recovery_threshold,
    interpolation_threshold,
    perfect_recovery_threshold,
)


def predict(parameters: QuadraticParameters) -> Metrics:
    """Predicted metrics of a parameter set, under the names of the measured ones and more."""
    return _metrics(parameters, state_of(parameters))


def curve(parameters: QuadraticParameters, ratios: np.ndarray) -> list[Metrics]:
    """The same along a curve of sample ratios, each of which starts the search of the next."""
    states = quadratic_curve(
        measure_of(parameters),
        sample_ratios=ratios,
        label_noise=parameters.noise,
        regularisation=parameters.regularisation,
    )
    places = [parameters.model_copy(update={"samples": 0, "sample_ratio": r}) for r in ratios]
    # No line shows the denoised error, for which matrices are drawn.
    return [_metrics(place, state, False) for place, state in zip(places, states, strict=True)]


def chance(parameters: QuadraticParameters, prediction: Metrics) -> Metrics:
    """Metrics of a network that learned nothing, S = 0."""
    strengths = group_strengths(state_of(parameters), feature_groups(parameters))
    energy = second_moment(measure_of(parameters))
    labels = 2 * energy + parameters.noise
    return {
        "matrix_error": energy, "test_error": labels, "train_error": labels, "gcv_test_error": labels,
        "pruned_error": energy, "denoised_error": energy, "rank_fraction": 0.0, "outliers": 0.0,
        "eigenvalues": [0.0] * parameters.dimension,
        "feature_errors": [*strengths],
    }  # fmt: skip


def _metrics(
    parameters: QuadraticParameters, state: QuadraticState, denoise: bool = True
) -> Metrics:
    noise, threshold = state.effective_noise, state.threshold
    sizes, reasons = _at_this_size(parameters, state)
    left = degrees_left(parameters, state.degrees_of_freedom)
    told = left >= 4
    denoised = denoised_error(parameters, state) if told and denoise else None
    if not told:
        reasons += [
            f"no gcv_test_error and denoised_error, as training leaves {left:.2g} degrees of freedom for "
            "each coordinate (allowed: 4 or more) to tell the noise by. Raise sample_ratio or "
            "regularisation."
        ]
    elif denoised is None and denoise:
        reasons += [
            "no denoised_error, as so few samples show the denoiser more than target and Gaussian "
            "noise. Raise sample_ratio."
        ]
    return {
        "matrix_error": state.matrix_error,
        "test_error": state.test_error,
        "train_error": state.train_error,
        "rank_fraction": state.rank_fraction,
        "trace": state.trace,
        "effective_noise": noise,
        "threshold": threshold,
        "bulk_edge": max(2 * noise - threshold, 0.0),
        **_phases(parameters, state),
        "outliers": _outliers(state, parameters.dimension),
        "degrees_of_freedom": state.degrees_of_freedom,
        "objective": state.objective,
        "gcv_test_error": state.test_error if told else None,
        **_limits(parameters, state),
        **sizes,
        # Pruning moves the cut to the edge 2 delta of the noise, and trains nothing again.
        "pruned_error": _cut_error(state, max(2 * noise, threshold)),
        "denoised_error": denoised,
        "feature_errors": [*group_errors(state, feature_groups(parameters))],
        "eigenvalues": _eigenvalues(state, parameters.dimension),
        **({NO_PREDICTION: "; ".join(reasons)} if reasons else {}),
    }


def state_of(parameters: QuadraticParameters) -> QuadraticState:
    """The saddle point of a parameter set."""
    return _state(
        _key(parameters),
        parameters.ratio,
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
    """Bayes-optimal error, from a network's own noise downwards; None where that does not settle."""
    # The network's error is at least the denoiser's at the same noise, so that its own delta is at
    # least the largest root of R(delta) + Delta/2 = 2 alpha delta^2 (2408.03733), the one that
    # counts; above that root the fixed-point map goes down to it. A third of the laws of `bayes`.
    law, place = state.law, float(np.log(state.effective_noise))
    step, slope, before = 0.0, 2.0, None
    for _ in range(12):
        error = denoising_error(law)
        share = (error + state.label_noise / 2) / (2 * state.sample_ratio * law.variance)
        if share <= 0:
            return None
        gap = float(np.log(share))
        if abs(gap) < 1e-9:
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


def degrees_left(parameters: QuadraticParameters, freedom: float) -> float:
    """Degrees of freedom for each coordinate that training leaves, (n - df)/d; 4 tell something."""
    return parameters.dimension * (parameters.ratio - freedom)


def feature_groups(parameters: QuadraticParameters) -> list[int]:
    """Ranks at which the groups of features end, strongest features first; the last is d."""
    d, rank = parameters.dimension, parameters.target_rank
    if parameters.target == "power-law":
        # The first three alone, then groups 1.6 times as far each.
        ends = [1, 2, 3]
        while ends[-1] < d:
            ends.append(min(d, max(ends[-1] + 1, int(1.6 * ends[-1]))))
        return ends
    # Fifths of a Marchenko-Pastur target; the directions that it lacks are the last group.
    ends = sorted({max(1, round(rank * part / 5)) for part in range(1, 6)})
    return ends if rank == d else [*ends, d]


def group_means(values: np.ndarray, ends: Sequence[int]) -> list[float]:
    """Means of values, one for each rank, over groups that end at these ranks."""
    starts = [0, *ends[:-1]]
    return [float(values[a:b].mean()) for a, b in zip(starts, ends, strict=True)]


def group_sizes(parameters: QuadraticParameters) -> np.ndarray:
    """Number of features in each group."""
    return np.diff([0, *feature_groups(parameters)])


def group_names(parameters: QuadraticParameters) -> list[str]:
    """Words for each group."""
    ends = feature_groups(parameters)
    starts = [0, *ends[:-1]]
    names = [
        f"feature {b}" if b == a + 1 else f"features {a + 1}-{b}"
        for a, b in zip(starts, ends, strict=True)
    ]
    return [*names[:-1], "no feature"] if ends[-1] > parameters.target_rank else names


def group_errors(state: QuadraticState, ends: Sequence[int]) -> list[float]:
    """Mean errors of groups of features, strongest first; the groups end at these ranks."""
    return _grouped(state, feature_errors(state.law, state.threshold), ends)


@lru_cache(maxsize=256)
def group_scatter(parameters: QuadraticParameters) -> list[float]:
    """Standard deviations of the errors of groups of features between replicates."""
    state, ends, d = state_of(parameters), feature_groups(parameters), parameters.dimension
    nodes, m, e = feature_deviations(state)
    # E_ij ~ N(0, q/d), q = e - m^2, twice that at E_ii of mean m: Var |E v|^2 = 2 q (q + 4 m^2) / d; the
    # fourth moment of samples adds 14 m^2 / n to Var E_ii where the feature is learned (derived).
    q = np.maximum(e - m**2, 0)
    variance = 2 * q * (q + 4 * m**2) / d
    if parameters.sensing == "network":
        variance += 56 * m**4 / parameters.n_samples * np.minimum(q / state.law.variance, 1)
    alone, together = (
        np.array(_grouped(state, np.interp(state.law.target.nodes, nodes, values), ends))
        for values in (variance, 3 / d * q)  # delta moves all alike, by some 3/d (measured)
    )
    return [float(s) for s in np.hypot(np.sqrt(alone / group_sizes(parameters)), together)]


def group_strengths(state: QuadraticState, ends: Sequence[int]) -> list[float]:
    """Mean squared strengths of groups of features, as :func:`group_errors`."""
    return _grouped(state, state.law.target.nodes**2, ends)


def _grouped(state: QuadraticState, values: np.ndarray, ends: Sequence[int]) -> list[float]:
    weights = state.law.target.node_weights[::-1]
    # Both sums at the boundaries of the nodes: exact where groups end between atoms.
    mass = np.append(0.0, np.cumsum(weights))
    total = np.append(0.0, np.cumsum(weights * values[::-1]))
    places = np.append(0.0, np.asarray(ends) / ends[-1])
    means = np.diff(np.interp(places, mass, total)) / np.diff(places)
    return [float(mean) for mean in means]


def outlier_edge(noise: float, threshold: float, dimension: int) -> float:
    """Learned eigenvalue from which one stands out of the noise."""
    # 2 delta - b, with the margin delta d^(-2/3) in which the largest of d eigenvalues lies.
    return max(2 * noise * (1 + dimension ** (-2 / 3)) - threshold, 0.0)


def phase_of_spectrum(state: QuadraticState, dimension: int) -> str:
    """Name of the learned spectrum at this dimension, one of six after arXiv:1810.01075."""
    measure = state.law.target
    mass = np.cumsum(measure.node_weights[::-1])
    places = np.searchsorted(mass, (np.arange(dimension) + 0.5) / dimension)
    strengths = measure.node_weights.size - 1 - np.minimum(places, mass.size - 1)
    decision = spectral_phase(
        effective_noise=state.effective_noise,
        threshold=state.threshold,
        strengths=np.maximum(measure.nodes[strengths], 0.0),
    )
    return decision.phase.value


def scaling_phase(parameters: QuadraticParameters) -> PhasePoint | None:
    """Phase of the scaling law of a power-law target, with that law; None for other targets."""
    if parameters.target != "power-law":
        return None
    return quadratic_phase(
        dimension=parameters.dimension,
        exponent=parameters.exponent,
        effective_samples=parameters.n_samples / parameters.dimension,
        regularisation=parameters.regularisation,
        label_noise=parameters.noise,
    )


def _phases(parameters: QuadraticParameters, state: QuadraticState) -> Metrics:
    """Names of both phases; of a power law its scaling law, and the parts of the error."""
    spectral = phase_of_spectrum(state, parameters.dimension)
    scaling = scaling_phase(parameters)
    if scaling is None:
        return {"spectral_phase": spectral}
    parts, law = decompose_error(state), float(scaling.matrix_error)
    # Blank where its regime does not hold: at finite d there is none between two phases, for one.
    holds = state.matrix_error / 1.3 <= law <= 1.3 * state.matrix_error
    return {
        "spectral_phase": spectral,
        "scaling_phase": scaling.phase.value,
        "scaling_law_matrix_error": law if holds else None,
        "overfitting_error": parts.overfitting,
        "underfitting_error": parts.underfitting,
        "approximation_error": parts.approximation,
    }


def _at_this_size(
    parameters: QuadraticParameters, state: QuadraticState
) -> tuple[Metrics, list[str]]:
    """The limit with its first order in 1/d, and for Gaussian measurements; why some are missing."""
    d, found, beyond = parameters.dimension, Metrics(), []
    gaussian, extra = finite_sizes(state, samples=parameters.sensing == "network")
    if parameters.sensing == "goe":
        extra = gaussian
    lost = {"train_error": 0.0}
    if parameters.sensing == "network":
        lost["train_error"] = unreachable(state, d)
    for name in ("matrix_error", "train_error", "rank_fraction", "trace"):
        limit, control, full = (float(getattr(part, name)) for part in (state, gaussian, extra))
        order = (abs(control) + abs(full - control)) / d + lost.get(name, 0.0)
        # An expansion whose first order is half of the limit says nothing.
        small = order <= 0.5 * abs(limit)
        found[f"finite_size_{name}"] = limit + full / d if small else None
        found[f"control_{name}"] = limit + control / d if small else None
        beyond += [] if small else [f"{name} {order:.2g} on {limit:.2g}"]
    error = state.matrix_error + extra.matrix_error / d
    known = found["finite_size_matrix_error"] is not None
    found["finite_size_test_error"] = 2 * error + parameters.noise if known else None
    reasons = [
        f"what this dimension adds to the limit, {', '.join(beyond)}, is more than half of it, so that "
        "no expansion holds. Raise dimension, sample_ratio or regularisation."
    ]
    return found, reasons if beyond and state.rank_fraction > 0 else []


def _cut_error(state: QuadraticState, threshold: float) -> float:
    moments = truncated_moments(state.law, threshold)
    return thresholded_error(second_moment(state.law.target), moments)


def _outliers(state: QuadraticState, dimension: int) -> float:
    """Learned directions beyond the edge of the noise, by the margin of a finite dimension."""
    place = outlier_edge(state.effective_noise, state.threshold, dimension) + state.threshold
    return float(dimension * truncated_moments(state.law, place).mass[0])


def _eigenvalues(state: QuadraticState, dimension: int) -> list[float | None] | None:
    """Typical places of all eigenvalues of the minimiser, descending; None for too many to list."""
    if dimension > 2_000:
        return None
    places = state.law.typical_places(dimension) - state.threshold
    return [float(place) for place in np.maximum(places, 0.0)]


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
