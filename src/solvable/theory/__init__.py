"""Predictions without data: sequential recovery, its finite-size terms, kernels, filters."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from solvable.theory.exponents import (
        error_exponent,
        neighbour_mixing,
        normalised_mse_asymptote,
        threshold_exponent,
        total_to_tail_ratio,
    )
    from solvable.theory.finite_size import (
        FiniteSizeMoments,
        LatentSample,
        finite_size_moments,
        gaussian_draw,
        quadratic_draw,
    )
    from solvable.theory.kernel_staircase import (
        LearningExponents,
        best_kernel_error,
        degree_dimension,
        degree_energies,
        single_index_exponents,
    )
    from solvable.theory.lofi import (
        FilterPrediction,
        predict_filter,
    )
    from solvable.theory.lofi_emergence import (
        FeatureEmergence,
        predicted_emergence,
        residual_dimension,
    )
    from solvable.theory.lofi_lift import (
        LiftedPrediction,
        activation_energies,
        predict_lifted_filter,
    )
    from solvable.theory.lofi_width import (
        WidthConvergence,
        fourth_moment_kernel,
        width_convergence,
    )
    from solvable.theory.population import (
        PopulationMatrix,
        overlap_floor,
        population_bulk,
    )
    from solvable.theory.power_law import (
        normalised_mse_sum,
        recovered_count,
        unrecovered_tail,
        weight_scale,
    )
    from solvable.theory.quadratic import (
        quadratic_curve,
        solve_quadratic,
        state_at,
    )
    from solvable.theory.quadratic_bayes import (
        BayesOptimalState,
        bayes_optimal,
    )
    from solvable.theory.quadratic_diagonal import (
        DiagonalState,
        DiagonalTarget,
        solve_diagonal,
    )
    from solvable.theory.quadratic_dilute import (
        DiluteState,
        solve_dilute,
        spike_error,
    )
    from solvable.theory.quadratic_dynamics import (
        QuadraticFlow,
        feature_learning_times,
        flow_exponent,
        flow_matrix,
        flow_strengths,
        quadratic_flow,
        width_floor,
    )
    from solvable.theory.quadratic_errors import (
        ErrorDecomposition,
        decompose_error,
        exact_feature_errors,
        optimal_regularisation,
        outlier_error,
    )
    from solvable.theory.quadratic_narrow import (
        NarrowState,
        solve_narrow,
    )
    from solvable.theory.quadratic_phase_laws import (
        QuadraticPhase,
    )
    from solvable.theory.quadratic_phases import (
        PhasePoint,
        PowerLawPhases,
        quadratic_phase,
    )
    from solvable.theory.quadratic_spectral_phase import (
        SpectralDecision,
        SpectralPhase,
        spectral_phase,
    )
    from solvable.theory.quadratic_state import (
        QuadraticState,
    )
    from solvable.theory.quadratic_thresholds import (
        InterpolationThreshold,
        bayes_perfect_recovery_threshold,
        flow_recovery_threshold,
        interpolation_threshold,
        perfect_recovery_threshold,
    )
    from solvable.theory.readouts import (
        readout_error,
    )
    from solvable.theory.sample_kernel import (
        QuadraticBackground,
        SampleKernel,
        corrected_kernel,
        plain_kernel,
        quadratic_background,
    )
    from solvable.theory.sequential import (
        SequentialPrediction,
        predict_sequential,
    )

_HOMES = {
    "BayesOptimalState": "quadratic_bayes",
    "DiagonalState": "quadratic_diagonal",
    "DiagonalTarget": "quadratic_diagonal",
    "DiluteState": "quadratic_dilute",
    "ErrorDecomposition": "quadratic_errors",
    "FeatureEmergence": "lofi_emergence",
    "FilterPrediction": "lofi",
    "FiniteSizeMoments": "finite_size",
    "InterpolationThreshold": "quadratic_thresholds",
    "LatentSample": "finite_size",
    "LearningExponents": "kernel_staircase",
    "LiftedPrediction": "lofi_lift",
    "NarrowState": "quadratic_narrow",
    "PhasePoint": "quadratic_phases",
    "PopulationMatrix": "population",
    "PowerLawPhases": "quadratic_phases",
    "QuadraticBackground": "sample_kernel",
    "QuadraticFlow": "quadratic_dynamics",
    "QuadraticPhase": "quadratic_phase_laws",
    "QuadraticState": "quadratic_state",
    "SampleKernel": "sample_kernel",
    "SequentialPrediction": "sequential",
    "SpectralDecision": "quadratic_spectral_phase",
    "SpectralPhase": "quadratic_spectral_phase",
    "WidthConvergence": "lofi_width",
    "activation_energies": "lofi_lift",
    "bayes_optimal": "quadratic_bayes",
    "bayes_perfect_recovery_threshold": "quadratic_thresholds",
    "best_kernel_error": "kernel_staircase",
    "corrected_kernel": "sample_kernel",
    "decompose_error": "quadratic_errors",
    "degree_dimension": "kernel_staircase",
    "degree_energies": "kernel_staircase",
    "error_exponent": "exponents",
    "exact_feature_errors": "quadratic_errors",
    "feature_learning_times": "quadratic_dynamics",
    "finite_size_moments": "finite_size",
    "flow_exponent": "quadratic_dynamics",
    "flow_matrix": "quadratic_dynamics",
    "flow_recovery_threshold": "quadratic_thresholds",
    "flow_strengths": "quadratic_dynamics",
    "fourth_moment_kernel": "lofi_width",
    "gaussian_draw": "finite_size",
    "interpolation_threshold": "quadratic_thresholds",
    "neighbour_mixing": "exponents",
    "normalised_mse_asymptote": "exponents",
    "normalised_mse_sum": "power_law",
    "optimal_regularisation": "quadratic_errors",
    "outlier_error": "quadratic_errors",
    "overlap_floor": "population",
    "perfect_recovery_threshold": "quadratic_thresholds",
    "plain_kernel": "sample_kernel",
    "population_bulk": "population",
    "predict_filter": "lofi",
    "predict_lifted_filter": "lofi_lift",
    "predict_sequential": "sequential",
    "predicted_emergence": "lofi_emergence",
    "quadratic_background": "sample_kernel",
    "quadratic_curve": "quadratic",
    "quadratic_draw": "finite_size",
    "quadratic_flow": "quadratic_dynamics",
    "quadratic_phase": "quadratic_phases",
    "readout_error": "readouts",
    "recovered_count": "power_law",
    "residual_dimension": "lofi_emergence",
    "single_index_exponents": "kernel_staircase",
    "solve_diagonal": "quadratic_diagonal",
    "solve_dilute": "quadratic_dilute",
    "solve_narrow": "quadratic_narrow",
    "solve_quadratic": "quadratic",
    "spectral_phase": "quadratic_spectral_phase",
    "spike_error": "quadratic_dilute",
    "state_at": "quadratic",
    "threshold_exponent": "exponents",
    "total_to_tail_ratio": "exponents",
    "unrecovered_tail": "power_law",
    "weight_scale": "power_law",
    "width_convergence": "lofi_width",
    "width_floor": "quadratic_dynamics",
}

__all__ = [
    "BayesOptimalState",
    "DiagonalState",
    "DiagonalTarget",
    "DiluteState",
    "ErrorDecomposition",
    "FeatureEmergence",
    "FilterPrediction",
    "FiniteSizeMoments",
    "InterpolationThreshold",
    "LatentSample",
    "LearningExponents",
    "LiftedPrediction",
    "NarrowState",
    "PhasePoint",
    "PopulationMatrix",
    "PowerLawPhases",
    "QuadraticBackground",
    "QuadraticFlow",
    "QuadraticPhase",
    "QuadraticState",
    "SampleKernel",
    "SequentialPrediction",
    "SpectralDecision",
    "SpectralPhase",
    "WidthConvergence",
    "activation_energies",
    "bayes_optimal",
    "bayes_perfect_recovery_threshold",
    "best_kernel_error",
    "corrected_kernel",
    "decompose_error",
    "degree_dimension",
    "degree_energies",
    "error_exponent",
    "exact_feature_errors",
    "feature_learning_times",
    "finite_size_moments",
    "flow_exponent",
    "flow_matrix",
    "flow_recovery_threshold",
    "flow_strengths",
    "fourth_moment_kernel",
    "gaussian_draw",
    "interpolation_threshold",
    "neighbour_mixing",
    "normalised_mse_asymptote",
    "normalised_mse_sum",
    "optimal_regularisation",
    "outlier_error",
    "overlap_floor",
    "perfect_recovery_threshold",
    "plain_kernel",
    "population_bulk",
    "predict_filter",
    "predict_lifted_filter",
    "predict_sequential",
    "predicted_emergence",
    "quadratic_background",
    "quadratic_curve",
    "quadratic_draw",
    "quadratic_flow",
    "quadratic_phase",
    "readout_error",
    "recovered_count",
    "residual_dimension",
    "single_index_exponents",
    "solve_diagonal",
    "solve_dilute",
    "solve_narrow",
    "solve_quadratic",
    "spectral_phase",
    "spike_error",
    "state_at",
    "threshold_exponent",
    "total_to_tail_ratio",
    "unrecovered_tail",
    "weight_scale",
    "width_convergence",
    "width_floor",
]


def __getattr__(name: str) -> Any:
    """Import the module of a name when the name is first used."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
