"""Prediction of compositional targets: the spike law first, latent draws for the later layers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from solvable.arrays import random_stream
from solvable.frame.points import NO_PREDICTION, Metrics, listed
from solvable.models.compositional.diagonal_form import diagonal_forms
from solvable.models.compositional.latent_layers import transported
from solvable.models.compositional.latent_moments import TEACHERS, LatentMoments, draw_latent
from solvable.models.compositional.parameters import CompositionalParameters
from solvable.models.compositional.second_step import LARGEST, SecondStep, fresh_rows, second_step
from solvable.models.compositional.theory import (
    crossing_samples,
    degree_two_share,
    recovery_exponent,
)
from solvable.models.compositional.upper_layers import (
    make_target,
    rotated_basis,
    rotated_hidden,
)
from solvable.moment_spectrum.cubic import check_cubic, cubic_law, only_known
from solvable.moment_spectrum.degree_two_background import quadratic_background
from solvable.moment_spectrum.kernel_degrees import best_kernel_error, degree_dimension
from solvable.moment_spectrum.latent_draws import (
    LatentDraws,
    fit_last_layer,
    random_features,
    sample_lean,
)
from solvable.moment_spectrum.operator_draws import drawn_background
from solvable.moment_spectrum.sample_kernel import SampleKernel, plain_kernel
from solvable.moment_spectrum.spike_heights import controlled_mean, exact_heights
from solvable.moment_spectrum.spike_law import (
    SpikeLaw,
    check_dimension,
    check_range,
    ranking_room,
)
from solvable.operators import apply_label_map, standardise
from solvable.spectra.structured_spikes import SpikePrediction, compress_sample


@dataclass(frozen=True)
class Model:
    """All that a prediction needs and that does not depend on the sample size."""

    law: SpikeLaw
    draws: tuple[LatentDraws, ...]  # of each first layer
    crossing: float
    degree_two_share: float
    true_last_layer: list[float | None] | None  # eigenvalues, descending


def predict_first_layer(parameters: CompositionalParameters) -> Metrics:
    """Predicted metrics of the first spectral step alone: a hundredth of a second a size."""
    model = _model_of(parameters)
    return _first_layer(parameters, model, _spikes(parameters, model.law))


def _first_layer(
    parameters: CompositionalParameters, model: Model, spikes: SpikePrediction
) -> Metrics:
    """Metrics of the first spectral step from its spikes."""
    overlap = spikes.squared_overlap
    return {
        "squared_overlap": overlap.tolist(),
        "subspace_overlap": float(overlap.mean()),
        "eigenvalues": spikes.eigenvalues.tolist(),
        "detected_features": float(np.sum(model.law.thresholds < parameters.samples)),
        "bulk_edges": [float(edge) for edge in spikes.bulk_edges],
    }


def predict(parameters: CompositionalParameters) -> Metrics:
    """Predicted metrics of a parameter set, under the names of the measured ones and more."""
    model = _model_of(parameters)
    spikes = _spikes(parameters, model.law)
    four = parameters.layers == 4
    step: SecondStep | None = None
    # What stands in the place of a lost feature is drawn with whole matrices.
    many = parameters.n_features_total > LARGEST
    if four and not (many and (spikes.squared_overlap < 0.5).any()):
        # The matrices drawn for the second step are nearer than the law, which knows no degree eight.
        step = second_step(parameters, model.law, spikes)
        spikes = replace(spikes, squared_overlap=step.first_overlap)
    share = model.degree_two_share
    # What is beyond degree 2 is of degree 4 at least, where a sample is worth most.
    kernel = float(
        best_kernel_error(
            samples=parameters.samples,
            dimension=parameters.dimension,
            energies={2: share, 4: 1 - share},
        )
    )
    metrics: Metrics = {
        **_first_layer(parameters, model, spikes),
        **(_last_layer(parameters, model, spikes) if not four else _second_layer(parameters, step)),
        "inner_overlap_ceiling": _ceiling(parameters, spikes.squared_overlap) if four else None,
        "last_layer_eigenvalues_of_target": model.true_last_layer,
        "polynomial_kernel_normalised_mse": kernel,
        "rbf_kernel_normalised_mse": kernel,
        "degree_two_share": share,
        "heights": model.law.heights.tolist(),
        "weights": rotated_basis(parameters).weights.tolist(),
        "threshold_samples": listed(model.law.thresholds),
        "crossing_samples": model.crossing if np.isfinite(model.crossing) else None,
        # about d^r / r!
        "kernel_threshold_samples": float(
            degree_dimension(parameters.dimension, parameters.label_degree)
        ),
        "recovery_exponent": recovery_exponent(
            degree=parameters.degree,
            epsilon=float(np.log(parameters.widths[0]) / np.log(parameters.dimension)),
            layers=parameters.layers,
        ),
    }
    if four and step is None:
        metrics[NO_PREDICTION] = (
            f"a feature of the first layer is lost among D = {parameters.n_features_total} directions; "
            "what the second layer sees in its place is drawn with whole matrices. Allowed: D of at most "
            f"{LARGEST}, or samples with which all features of the first layer are found"
        )
    return only_known(metrics, parameters.samples) if parameters.degree == 3 else metrics


def chance(parameters: CompositionalParameters, prediction: Metrics) -> Metrics:
    """Metrics of random directions, and of a readout that predicts the mean."""
    p = parameters.widths[0]
    share = p / parameters.n_features_total
    inner = None if parameters.layers == 3 else [0.0] * parameters.widths[-1]
    return {
        "squared_overlap": [share] * p,
        "subspace_overlap": share,
        "inner_squared_overlap": inner,  # type: ignore[dict-item]
        "last_layer_eigenvalues": [0.0] * parameters.widths[-1],
        "normalised_mse": 1.0,
    }


def _spikes(parameters: CompositionalParameters, law: SpikeLaw) -> SpikePrediction:
    """Spikes of the first step, as the learner ranks them."""
    n, D = parameters.samples, parameters.n_features_total
    spikes, drawn = law.spikes(n), law.drawn(n, D)
    overlap = law.crowded(n, D, drawn)
    if overlap is None:
        return spikes
    places = spikes.eigenvalues if drawn is None else drawn.places()
    return replace(spikes, squared_overlap=overlap, eigenvalues=places)


def _second_layer(parameters: CompositionalParameters, step: SecondStep | None) -> Metrics:
    """Overlaps of the second representation, eigenvalues of the last layer, and the error."""
    nothing: list[float | None] = [None] * parameters.widths[1]
    return {
        "inner_squared_overlap": step.squared_overlap.tolist() if step else nothing,
        "last_layer_eigenvalues": step.last_layer.tolist() if step else nothing,
        "normalised_mse": step.normalised_mse if step else None,
    }


def _last_layer(
    parameters: CompositionalParameters, model: Model, spikes: SpikePrediction
) -> Metrics:
    """The same of three layers, which have no second representation."""
    # Norms and angles of the directions, and with them the last layer, are each first layer's own.
    readout, rows = parameters.readout != "identity", fresh_rows(parameters)
    guess = model.law.heights * spikes.squared_overlap
    fits = [
        fit_last_layer(
            draws.learned(spikes.squared_overlap),
            draws.labels,
            readout=readout,
            rows=rows,
            guess=guess,
        )
        for draws in model.draws
    ]
    values = np.mean([np.linalg.eigvalsh(fit.matrix)[::-1] for fit in fits], axis=0)
    return {
        "inner_squared_overlap": None,
        "last_layer_eigenvalues": values.tolist(),
        "normalised_mse": float(np.mean([fit.normalised_mse for fit in fits])),
    }


def _ceiling(
    parameters: CompositionalParameters, squared_overlap: np.ndarray
) -> list[float | None]:
    """Squared norm of the true quadratic forms in terms of the learned first representation."""
    moved = transported(rotated_hidden(parameters), np.diag(np.sqrt(squared_overlap)))
    return list(np.sum(moved**2, axis=0).tolist())


def _model_of(parameters: CompositionalParameters) -> Model:
    """Model of the same parameters with everything reset that it does not depend on."""
    check_dimension(parameters.dimension)
    check_range(parameters.samples, parameters.widths[0], parameters.n_features_total)
    same = {"samples": 4, "test_samples": 2, "kernel_samples": 0}
    return _model(parameters.model_copy(update=same))


@lru_cache(maxsize=64)
def _model(parameters: CompositionalParameters) -> Model:
    if parameters.degree == 3:
        check_cubic(parameters.dimension, parameters.widths[0], parameters.correction)
    targets = [make_target(parameters, seed) for seed in range(TEACHERS)]
    parts = [draw_latent(target, parameters) for target in targets]
    # Every first layer has labels of its own scale, which its learner divides out.
    labels, _, scales = zip(*(standardise(part.labels) for part in parts), strict=True)
    mapped = [apply_label_map(own, parameters.label_map) for own in labels]
    law = _law(parameters, parts, mapped)
    shares = [
        degree_two_share(
            part.second_moment, draws=part.labels.size, label_variance=float(part.labels.var())
        )
        for part in parts
    ]
    true_last_layer = None  # in the units of the labels; none of a nonlinear readout
    if parameters.readout == "identity":
        values = np.linalg.eigvalsh(targets[0].matrix)[::-1] / float(np.mean(scales))
        true_last_layer = list(values.tolist())
    return Model(
        law=law,
        draws=tuple(
            _latent_draws(parameters, part, y, T, place)
            for place, (y, part, T) in enumerate(zip(labels, parts, mapped, strict=True))
        ),
        # Overlaps of cubic layers are not known around one half.
        crossing=np.inf if parameters.degree == 3 else crossing_samples(law),
        degree_two_share=float(np.mean(shares)),
        true_last_layer=true_last_layer,
    )


def _latent_draws(
    parameters: CompositionalParameters,
    part: LatentMoments,
    y: np.ndarray,
    T: np.ndarray,
    place: int,
) -> LatentDraws:
    """Draws of one first layer that its last layer is fitted to."""
    rng = random_stream("compositional-target", "noise", place)
    noise = random_features(part.squared_norm, part.signal, parameters.n_features_total, rng)
    lean = None
    if part.images is not None:
        s = part.squared_input_norm
        lean = sample_lean(T, part.signal, part.images, s, parameters.dimension)
    return LatentDraws(y, part.signal, noise, lean)


def _law(
    parameters: CompositionalParameters, parts: list[LatentMoments], mapped: Sequence[np.ndarray]
) -> SpikeLaw:
    """Law of the first step from the draws of all first layers."""
    cubic = [part.cubic for part in parts if part.cubic is not None]
    if cubic:
        return cubic_law(cubic, mapped)
    D, d, T = parameters.n_features_total, parameters.dimension, np.concatenate(mapped)
    quadratic, wick = parameters.degree == 2, parameters.correction == "wick"
    signal = np.concatenate([part.signal for part in parts])
    squared_norm = np.concatenate([part.squared_norm for part in parts])
    plain = plain_kernel(latent=signal, squared_norm=squared_norm, n_features=D)
    corrected = [part.corrected for part in parts if part.corrected is not None]
    kernel = SampleKernel.joined(corrected) if corrected else plain
    strengths = rotated_basis(parameters).weights
    index = (signal**2 - 1) @ strengths

    def heights(diagonal: np.ndarray, wick: bool) -> np.ndarray:
        """E[T <A_k, K A_k>], with the index of a diagonal layer as control variate."""
        exact = exact_heights(strengths, corrected=wick, dimension=d if quadratic else None)
        return controlled_mean(T, diagonal, index, exact)

    background = None
    if quadratic:
        # The contraction 2 tr((x x^T - I) M_k^2), which the correction takes out of the operator.
        moved = plain.diagonal - kernel.diagonal
        background = quadratic_background(
            heights(kernel.diagonal, True),
            d,
            contracted=None if wick else T @ moved / T.size,
            contraction_noise=float(np.mean(T**2 * 2 * squared_norm) / d),
        )
    law = SpikeLaw(
        heights=heights(kernel.diagonal if wick else plain.diagonal, wick),
        sample=compress_sample(T * kernel.rest, (T**2)[:, None] * kernel.outer),
        background=background,
        n_features=D - strengths.size,
        room=ranking_room(d, parameters.degree, wick),
    )
    # Directions that are not orthonormal have no diagonal form in orthonormal features.
    if parameters.layers == 4 or parameters.first_layer != "orthonormal":
        return law
    drawn = drawn_background(law, diagonal_forms(parameters, 8), parameters.label_map)
    return replace(law, background=drawn)
