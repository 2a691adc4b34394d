"""Predicted metrics of sequential feature recovery, under the names of the measured ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from solvable.errors import InvalidParameter
from solvable.frame.points import Metrics
from solvable.models.sequential.parameters import SequentialParameters
from solvable.models.sequential.target import HierarchicalTarget, make_target
from solvable.models.sequential.theory import predict_sequential
from solvable.moment_spectrum.cubic import check_cubic, only_known
from solvable.moment_spectrum.degree_two_background import QuadraticBackground
from solvable.moment_spectrum.kernel_degrees import best_kernel_error
from solvable.moment_spectrum.moments import DRAWS, FiniteSizeMoments, finite_size_moments
from solvable.moment_spectrum.neighbour_mixing import neighbour_mixing
from solvable.moment_spectrum.operator_draws import OperatorDraws
from solvable.moment_spectrum.rotated_draw import (
    can_rotate,
    mean_degree_two_energy,
    mean_index_variance,
)
from solvable.moment_spectrum.small_population import small_populations
from solvable.moment_spectrum.spike_law import FEW, DrawnPopulation
from solvable.spectra.density import SpectralDensity, weighted_density

TARGETS = 32
"""Targets that the moments are averaged over: norms of random directions scatter by root 2/D."""


@dataclass(frozen=True)
class _Model:
    """All that a prediction needs and that does not depend on the sample size."""

    moments: FiniteSizeMoments
    weights: np.ndarray
    coefficients: np.ndarray
    degree_two_share: float | None  # of the label, where it is known


def predict(parameters: SequentialParameters) -> Metrics:
    """Predicted metrics of a parameter set, and quantities that only theory knows."""
    if parameters.selection == "modulus" or parameters.solver == "power-iteration":
        raise InvalidParameter(
            f"selection is {parameters.selection!r} and solver is {parameters.solver!r}: theory is of "
            "converged directions beyond the edges of the bulk, of which the published choices lose "
            "some; predicted for selection=edges solver=lanczos."
        )
    model = _model_of(parameters)
    moments, n, D = model.moments, parameters.samples, parameters.n_features_total
    theory = predict_sequential(
        weights=model.weights,
        n_features_total=D,
        samples=n,
        moments=moments,
        coefficients=model.coefficients,
    )
    overlap = theory.squared_overlap
    mixing = neighbour_mixing(
        heights=moments.law.heights,
        products=moments.products,
        samples=n,
        squared_overlap=np.where(theory.recovered, overlap, 0.0),
    )
    errors = {
        "least-squares": float(theory.normalised_mse),
        "in-sample": float(theory.normalised_mse_in_sample),
        "shrinkage": float(theory.normalised_mse_shrinkage),
    }
    kernel = _kernel_floor(model, parameters)
    found: Metrics = {
        "squared_overlap": overlap.tolist(),
        "mean_squared_overlap": float(overlap.mean()),
        "threshold_samples": [
            float(size) if np.isfinite(size) else None for size in theory.threshold_samples
        ],
        "eigenvalues": _of_directions(theory.eigenvalues, moments.mixing),
        "bulk_edges": theory.bulk_edges.tolist(),
        "detection_edges": None,
        "noise_scale": float(theory.noise_scale),
        "detected_features": float(theory.recovered.sum()),
        "neighbour_mixing": [float(mixed) if np.isfinite(mixed) else None for mixed in mixing],
        "normalised_mse": errors[parameters.second_layer],
        "normalised_mse_tail_only": float(theory.normalised_mse_tail_only),
        "normalised_mse_least_squares": errors["least-squares"],
        "normalised_mse_in_sample": errors["in-sample"],
        "normalised_mse_shrinkage": errors["shrinkage"],
        "population_floor": theory.population_floor.tolist(),
        "label_variance": moments.label_variance,
        "spectrum": None,
        "polynomial_kernel_normalised_mse": kernel,
        "rbf_kernel_normalised_mse": kernel,
    }
    cubic = parameters.inputs == "hermite" and parameters.degree == 3
    if not cubic:
        return found
    return only_known(found, n, parameters.dimension, parameters.correction)


def _of_directions(eigenvalues: np.ndarray, mixing: np.ndarray | None) -> list[float | None]:
    """Eigenvalue of each direction; None for one that is no single eigenvector's."""
    if mixing is None:
        return list(eigenvalues.tolist())
    clear = np.diag(mixing) > 0.5
    return [float(one) if known else None for one, known in zip(eigenvalues, clear, strict=True)]


def chance(parameters: SequentialParameters, _: Metrics) -> Metrics:
    """Metrics of random directions and of the mean label."""
    share = parameters.features / parameters.n_features_total
    return {
        "squared_overlap": [share] * parameters.features,
        "mean_squared_overlap": share,
        "neighbour_mixing": [1 / parameters.n_features_total] * (parameters.features - 1),
        "normalised_mse": 1.0,
    }


def bulk_density(parameters: SequentialParameters) -> SpectralDensity | None:
    """Predicted density of the bulk; None where the background has more than a semicircle."""
    law = _model_of(parameters).moments.law
    known = law.background
    corrected = isinstance(known, QuadraticBackground | OperatorDraws) and not known.plain
    if law.full or (known is not None and not corrected):
        return None
    held = known.at(parameters.samples) if known else None
    # 2,000 quantiles stand for the law of the weights.
    places = (np.arange(2_000) + 0.5) / 2_000
    chances = np.cumsum(law.sample.probabilities)
    return weighted_density(
        weights=np.interp(places, chances, law.sample.clipped(parameters.samples).weights),
        aspect_ratio=parameters.samples / law.n_features,
        background_variance=held.variance + float(held.atoms.var()) if held else 0.0,
    )


def _model_of(parameters: SequentialParameters) -> _Model:
    """Model of the same parameters with everything reset that it does not depend on."""
    same = {"samples": 2, "test_samples": 2, "kernel_samples": 0, "spectrum_samples": 0}
    return _model(parameters.model_copy(update={**same, "second_layer": "least-squares"}))


@lru_cache(maxsize=64)
def _model(parameters: SequentialParameters) -> _Model:
    targets = [make_target(parameters, seed) for seed in range(TARGETS)]
    share = None
    quadratic = parameters.inputs == "hermite" and parameters.degree == 2
    if quadratic and parameters.readout == "identity":
        known = targets if parameters.first_layer == "random" else targets[:1]
        shares = [mean_degree_two_energy(one) / mean_index_variance(one) for one in known]
        share = float(np.mean(shares))
    first = targets[0]
    return _Model(
        moments=draw_moments(parameters, targets),
        weights=first.weights,
        coefficients=first.readout_function.coefficients,
        degree_two_share=share,
    )


def draw_moments(
    parameters: SequentialParameters, targets: Sequence[HierarchicalTarget]
) -> FiniteSizeMoments:
    """Moments of a parameter set, averaged over targets as the replicates of a study are."""
    d, p = parameters.dimension, parameters.features
    # Some millions of numbers each; fewer draws of many features, whose heights lie on a smooth curve.
    draws = int(np.clip(2e6 / p, 2_000, DRAWS))
    if not can_rotate(targets[0]):
        check_cubic(d, p)
        targets = targets[:4]
        draws = int(np.clip(1e10 / (d**3 * p * 4), DRAWS / 5, DRAWS / 2.5))
    moments = finite_size_moments(
        targets,
        n_features=parameters.n_features_total,
        label_map=parameters.label_map,
        correction=parameters.correction,
        draws=draws,
    )
    quadratic = parameters.inputs == "hermite" and parameters.degree == 2
    drawn = isinstance(moments.law.background, DrawnPopulation)
    if not quadratic or drawn or moments.n_features > FEW:
        return moments
    means = small_populations(targets, parameters.label_map, parameters.correction)
    return replace(moments, law=replace(moments.law, means=means))


def _kernel_floor(model: _Model, parameters: SequentialParameters) -> float | None:
    """Least error of a rotation-invariant kernel, where the degrees of the label are known."""
    share = model.degree_two_share
    if share is None:
        return None
    energies = {2: share, 4: 1 - share}
    floor = best_kernel_error(
        samples=parameters.samples, dimension=parameters.dimension, energies=energies
    )
    return float(floor)
