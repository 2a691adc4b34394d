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
    from solvable.theory.lofi import FilterPrediction, predict_filter
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
    from solvable.theory.population import PopulationMatrix, overlap_floor, population_bulk
    from solvable.theory.power_law import (
        normalised_mse_sum,
        recovered_count,
        unrecovered_tail,
        weight_scale,
    )
    from solvable.theory.readouts import readout_error
    from solvable.theory.sample_kernel import (
        QuadraticBackground,
        SampleKernel,
        corrected_kernel,
        plain_kernel,
        quadratic_background,
    )
    from solvable.theory.sequential import SequentialPrediction, predict_sequential

_HOMES = {
    "FeatureEmergence": "lofi_emergence",
    "FilterPrediction": "lofi",
    "FiniteSizeMoments": "finite_size",
    "LatentSample": "finite_size",
    "LearningExponents": "kernel_staircase",
    "LiftedPrediction": "lofi_lift",
    "PopulationMatrix": "population",
    "QuadraticBackground": "sample_kernel",
    "SampleKernel": "sample_kernel",
    "SequentialPrediction": "sequential",
    "WidthConvergence": "lofi_width",
    "activation_energies": "lofi_lift",
    "best_kernel_error": "kernel_staircase",
    "corrected_kernel": "sample_kernel",
    "degree_dimension": "kernel_staircase",
    "degree_energies": "kernel_staircase",
    "error_exponent": "exponents",
    "finite_size_moments": "finite_size",
    "fourth_moment_kernel": "lofi_width",
    "gaussian_draw": "finite_size",
    "neighbour_mixing": "exponents",
    "normalised_mse_asymptote": "exponents",
    "normalised_mse_sum": "power_law",
    "overlap_floor": "population",
    "plain_kernel": "sample_kernel",
    "population_bulk": "population",
    "predict_filter": "lofi",
    "predict_lifted_filter": "lofi_lift",
    "predict_sequential": "sequential",
    "predicted_emergence": "lofi_emergence",
    "quadratic_background": "sample_kernel",
    "quadratic_draw": "finite_size",
    "readout_error": "readouts",
    "recovered_count": "power_law",
    "residual_dimension": "lofi_emergence",
    "single_index_exponents": "kernel_staircase",
    "threshold_exponent": "exponents",
    "total_to_tail_ratio": "exponents",
    "unrecovered_tail": "power_law",
    "weight_scale": "power_law",
    "width_convergence": "lofi_width",
}

__all__ = [
    "FeatureEmergence",
    "FilterPrediction",
    "FiniteSizeMoments",
    "LatentSample",
    "LearningExponents",
    "LiftedPrediction",
    "PopulationMatrix",
    "QuadraticBackground",
    "SampleKernel",
    "SequentialPrediction",
    "WidthConvergence",
    "activation_energies",
    "best_kernel_error",
    "corrected_kernel",
    "degree_dimension",
    "degree_energies",
    "error_exponent",
    "finite_size_moments",
    "fourth_moment_kernel",
    "gaussian_draw",
    "neighbour_mixing",
    "normalised_mse_asymptote",
    "normalised_mse_sum",
    "overlap_floor",
    "plain_kernel",
    "population_bulk",
    "predict_filter",
    "predict_lifted_filter",
    "predict_sequential",
    "predicted_emergence",
    "quadratic_background",
    "quadratic_draw",
    "readout_error",
    "recovered_count",
    "residual_dimension",
    "single_index_exponents",
    "threshold_exponent",
    "total_to_tail_ratio",
    "unrecovered_tail",
    "weight_scale",
    "width_convergence",
]


def __getattr__(name: str) -> Any:
    """Import the module of a name when the name is first used."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
