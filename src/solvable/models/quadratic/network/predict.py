"""Predictions for a quadratic network from the two scalars of the saddle point."""

from __future__ import annotations

import numpy as np

from solvable.frame.points import NO_PREDICTION, Metrics
from solvable.models.quadratic.network.denoised import denoised_error
from solvable.models.quadratic.network.errors import decompose_error
from solvable.models.quadratic.network.feature_groups import (
    feature_groups,
    group_errors,
    group_strengths,
)
from solvable.models.quadratic.network.finite_size import at_dimension, finite_group_errors
from solvable.models.quadratic.network.parameters import QuadraticParameters
from solvable.models.quadratic.network.phases import PhasePoint, quadratic_phase
from solvable.models.quadratic.network.solutions import (
    bayes_error,
    interpolation_of,
    local_exponent,
    measure_of,
    noiseless_error,
    penalties_of,
    penalty_of,
    state_of,
)
from solvable.models.quadratic.network.spectral_phase import decision_at, outlier_edge
from solvable.models.quadratic.network.theory import QuadraticState, curve_from
from solvable.spectra.functionals import thresholded_error, truncated_moments
from solvable.spectra.measures import second_moment
from solvable.spectra.thresholds import (
    bayes_perfect_recovery_threshold,
    flow_recovery_threshold,
    perfect_recovery_threshold,
)


def predict(parameters: QuadraticParameters) -> Metrics:
    """Predicted metrics at a parameter set: measured metrics, and quantities of the theory alone."""
    metrics = _metrics(parameters, state_of(parameters))
    if parameters.target == "power-law" and parameters.noise > 0:
        metrics["local_exponent"] = local_exponent(parameters)
    return metrics


def curve(parameters: QuadraticParameters, ratios: np.ndarray) -> list[Metrics]:
    """Predictions along a curve of sample ratios; each solution starts the next search."""
    penalties = penalties_of(parameters, ratios)
    states = curve_from(measure_of(parameters), ratios, parameters.noise, penalties)
    places = [parameters.model_copy(update={"samples": 0, "sample_ratio": r}) for r in ratios]
    # The denoised error needs drawn matrices, and no figure shows its line. It is left out.
    return [_metrics(place, state, False) for place, state in zip(places, states, strict=True)]


def chance(parameters: QuadraticParameters, prediction: Metrics) -> Metrics:
    """Metrics of the network S = 0, which has learned nothing."""
    strengths = group_strengths(measure_of(parameters), feature_groups(parameters))
    energy = second_moment(measure_of(parameters))
    labels = 2 * energy + parameters.noise
    return {
        "matrix_error": energy, "test_error": labels, "train_error": labels, "gcv_test_error": labels,
        "noiseless_matrix_error": energy, "pruned_error": energy, "denoised_error": energy,
        "rank_fraction": 0.0, "outliers": 0.0, "eigenvalues": [0.0] * parameters.dimension,
        "feature_errors": [*strengths],
    }  # fmt: skip


def _metrics(
    parameters: QuadraticParameters, state: QuadraticState, denoise: bool = True
) -> Metrics:
    noise, threshold = state.effective_noise, state.threshold
    sizes, reasons = _at_this_size(parameters, state)
    pruned, outliers = _above_noise(state, parameters.dimension)
    left = degrees_left(parameters, state.degrees_of_freedom)
    known = left >= 4
    denoised = denoised_error(parameters, state) if known and denoise else None
    if not known:
        reasons += [
            f"gcv_test_error and denoised_error are missing: training leaves {left:.2g} degrees of "
            "freedom per coordinate to estimate the noise; allowed: 4 or more. Raise sample_ratio or "
            "regularisation."
        ]
    elif denoised is None and denoise:
        reasons += [
            "denoised_error is missing: with so few samples the noise is far from Gaussian. Raise "
            "sample_ratio."
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
        "penalty": state.regularisation,
        "cut_over_noise": threshold / noise,
        **_phases(parameters, state),
        "outliers": outliers,
        "degrees_of_freedom": state.degrees_of_freedom,
        "objective": state.objective,
        "gcv_test_error": state.test_error if known else None,
        **_limits(parameters, state),
        **sizes,
        "pruned_error": pruned,
        "denoised_error": denoised,
        "feature_errors": [*group_errors(state, feature_groups(parameters))],
        "eigenvalues": _eigenvalues(state, parameters.dimension),
        **({NO_PREDICTION: "; ".join(reasons)} if reasons else {}),
    }


def degrees_left(parameters: QuadraticParameters, freedom: float) -> float:
    """Unused degrees of freedom per coordinate, (n - df)/d; 4 suffice to estimate the noise."""
    return parameters.dimension * (parameters.ratio - freedom)


def scaling_phase(parameters: QuadraticParameters) -> PhasePoint | None:
    """Scaling phase of a power-law target with its leading law; None for other targets."""
    if parameters.target != "power-law":
        return None
    return quadratic_phase(
        dimension=parameters.dimension,
        exponent=parameters.exponent,
        effective_samples=parameters.n_samples / parameters.dimension,
        regularisation=penalty_of(parameters),
        label_noise=parameters.noise,
    )


def _phases(parameters: QuadraticParameters, state: QuadraticState) -> Metrics:
    """Phase of the spectrum; for a power law also the scaling phase and the parts of the error."""
    decision = decision_at(state, parameters.dimension)
    spectral, margin = decision.phase.value, decision.margin
    scaling = scaling_phase(parameters)
    if scaling is None:
        return {"spectral_phase": spectral, "spectral_margin": min(margin, 10.0)}
    parts, law = decompose_error(state), float(scaling.matrix_error)
    # Between two phases neither law is accurate, so that a law is shown only within 30 % of the error.
    holds = state.matrix_error / 1.3 <= law <= 1.3 * state.matrix_error
    return {
        "spectral_phase": spectral,
        "spectral_margin": min(margin, 10.0),
        "phase_exponent": scaling.exponents[0],
        "scaling_phase": scaling.phase.value,
        "scaling_law_matrix_error": law if holds else None,
        "overfitting_error": parts.overfitting,
        "underfitting_error": parts.underfitting,
        "approximation_error": parts.approximation,
    }


def _at_this_size(
    parameters: QuadraticParameters, state: QuadraticState
) -> tuple[Metrics, list[str]]:
    """Errors with their first order in 1/d, for samples and Gaussian matrices; reasons for gaps."""
    sizes, beyond = Metrics(), []
    samples = parameters.sensing == "network"
    parts = at_dimension(state, parameters.dimension, samples=samples)
    for name, part in parts.items():
        sizes[f"finite_size_{name}"], sizes[f"control_{name}"] = part.expected, part.control
        if part.expected is None:
            beyond.append(f"{name} {part.order:.2g} on {part.limit:.2g}")
    error = parts["matrix_error"].expected
    sizes |= {"finite_size_test_error": None, "finite_size_feature_errors": None}
    if error is not None:
        sizes["finite_size_test_error"] = 2 * error + parameters.noise
        ends = feature_groups(parameters)
        found = finite_group_errors(state, ends, error, samples=samples)
        sizes["finite_size_feature_errors"] = [*found]
    reasons = [
        f"the correction for this dimension exceeds half of the limit ({', '.join(beyond)}), so that no "
        "expansion holds. Raise dimension, sample_ratio or regularisation."
    ]
    return sizes, reasons if beyond and state.rank_fraction > 0 else []


def _above_noise(state: QuadraticState, dimension: int) -> tuple[float, float]:
    """Error after pruning, and number of learned directions above the edge of the noise."""
    # Pruning moves the cut to the edge 2 delta of the noise, without further training (quadratic 15).
    cut = max(2 * state.effective_noise, state.threshold)
    # outliers (quadratic 12)
    place = outlier_edge(state.effective_noise, state.threshold, dimension) + state.threshold
    moments = truncated_moments(state.law, np.array([cut, place]))
    error = thresholded_error(second_moment(state.law.target), moments)
    return error, float(dimension * moments.mass[1])


def _eigenvalues(state: QuadraticState, dimension: int) -> list[float | None] | None:
    """Typical eigenvalues of the minimiser, descending; None above d = 2000."""
    if dimension > 2_000:
        return None
    places = state.law.typical_places(dimension) - state.threshold
    return [float(place) for place in np.maximum(places, 0.0)]


def _limits(parameters: QuadraticParameters, state: QuadraticState) -> Metrics:
    """Thresholds and the Bayes-optimal error, which do not depend on the regularisation."""
    # interpolation (quadratic 14), perfect recovery (quadratic 13), best estimator (quadratic 16)
    rank = parameters.target_rank / parameters.dimension
    best = bayes_error(parameters, state.sample_ratio)
    return {
        **interpolation_of(parameters),
        "noiseless_matrix_error": noiseless_error(parameters, state.sample_ratio),
        "perfect_recovery_ratio": perfect_recovery_threshold(rank),
        "bayes_recovery_ratio": bayes_perfect_recovery_threshold(rank),
        "flow_recovery_ratio": flow_recovery_threshold(rank, max(rank, parameters.network_ratio)),
        "bayes_matrix_error": best,
        "bayes_estimate_error": best,
        "bayes_test_error": 2 * best + parameters.noise,
    }
