"""Prediction of compositional targets: the spike law first, latent draws for the later layers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from solvable.arrays import random_stream
from solvable.errors import InvalidParameter
from solvable.frame.points import NO_PREDICTION, Metrics
from solvable.models.compositional.diagonal_form import diagonal_forms
from solvable.models.compositional.latent_layers import transported
from solvable.models.compositional.latent_moments import (
    TEACHERS,
    LatentMoments,
    draw_latent,
    unit_weights,
)
from solvable.models.compositional.parameters import CompositionalParameters
from solvable.models.compositional.second_step import LARGEST, SecondStep, fresh_rows, second_step
from solvable.models.compositional.small_population import small_populations
from solvable.models.compositional.theory import (
    composed_background,
    crossing_samples,
    degree_two_share,
    first_layer_law,
    recovery_exponent,
)
from solvable.models.compositional.upper_layers import (
    make_target,
    rotated_basis,
    rotated_hidden,
)
from solvable.moment_spectrum.cross_terms import wants_cross_terms
from solvable.moment_spectrum.cubic import cubic_law, only_known
from solvable.moment_spectrum.kernel_degrees import best_kernel_error, degree_dimension
from solvable.moment_spectrum.latent_draws import (
    PAIRS,
    LatentDraws,
    fit_last_layer,
    random_features,
    sample_lean,
)
from solvable.moment_spectrum.operator_draws import drawn_background
from solvable.moment_spectrum.sample_kernel import SampleKernel, corrected_kernel, plain_kernel
from solvable.moment_spectrum.spike_heights import controlled_mean, exact_heights
from solvable.moment_spectrum.spike_law import (
    FEW,
    MOST_DRAWN,
    SpikeLaw,
    check_samples,
    ranking_room,
)
from solvable.operators import apply_label_map, standardise
from solvable.spectra.sampled_spikes import DrawnSpikes
from solvable.spectra.structured_spikes import SpikePrediction


@dataclass(frozen=True)
class Model:
    """All that a prediction needs and that does not depend on the sample size."""

    law: SpikeLaw
    draws: tuple[LatentDraws, ...]  # of each first layer
    crossing: float
    degree_two_share: float
    true_last_layer: list[float | None] | None  # eigenvalues, descending


def _check(parameters: CompositionalParameters) -> None:
    """Refuse settings at which no law holds."""
    p, D = parameters.widths[0], parameters.n_features_total
    check_samples(parameters.samples, p)
    drawn = D <= MOST_DRAWN and parameters.first_layer == "orthonormal"
    if _is_bulk(parameters) and not drawn and p < D:
        raise InvalidParameter(
            f"{p} of {D} directions are features: they are themselves the bulk that a learner measures "
            "from, and what is none may stand out, which is predicted with whole matrices of orthogonal "
            "features. Allowed: at most half of the directions, or first_layer=orthonormal and "
            f"{MOST_DRAWN} directions; lower dimension or features."
        )


def _is_bulk(parameters: CompositionalParameters) -> bool:
    """Whether most directions are features."""
    return 2 * parameters.widths[0] > parameters.n_features_total


def _fits_products(parameters: CompositionalParameters) -> bool:
    """Whether the last layer has products of too many features, which are no small part of it."""
    p, rows = parameters.widths[0], fresh_rows(parameters)
    fitted = wants_cross_terms("auto", p, rows, linear_terms=False)
    return _is_bulk(parameters) and p > PAIRS and fitted


def predict_first_layer(parameters: CompositionalParameters) -> Metrics:
    """Predicted metrics of the first spectral step alone: a hundredth of a second a size."""
    _check(parameters)
    model = _model(_key(parameters))
    return _first_layer(parameters, model, _spikes(parameters, model.law)[0])


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
    _check(parameters)
    model = _model(_key(parameters))
    spikes, drawn = _spikes(parameters, model.law)
    step: SecondStep | None = None
    if parameters.layers == 4 and not _lost_in_many(parameters, spikes):
        # The matrices drawn for the second step are nearer than the law, which knows no degree eight.
        step = second_step(parameters, model.law, spikes)
        spikes = replace(spikes, squared_overlap=step.first_overlap)
    overlap = spikes.squared_overlap
    inner, last_layer, error = _later_layers(parameters, model, spikes, drawn, step)
    kernel = _kernel_floor(parameters, model)
    found: Metrics = {
        **_first_layer(parameters, model, spikes),
        "inner_squared_overlap": inner,
        "inner_overlap_ceiling": _ceiling(parameters, overlap),
        "last_layer_eigenvalues": last_layer,
        "last_layer_eigenvalues_of_target": model.true_last_layer,
        "normalised_mse": error,
        "polynomial_kernel_normalised_mse": kernel,
        "rbf_kernel_normalised_mse": kernel,
        "degree_two_share": model.degree_two_share,
        "heights": model.law.heights.tolist(),
        "weights": rotated_basis(parameters).weights.tolist(),
        "threshold_samples": [float(n) if np.isfinite(n) else None for n in model.law.thresholds],
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
    if parameters.layers == 4 and step is None:
        found[NO_PREDICTION] = (
            f"a feature of the first layer is lost among D = {parameters.n_features_total} directions; "
            "what the second layer sees in its place is drawn with whole matrices. Allowed: D of at most "
            f"{LARGEST}, or samples with which all features of the first layer are found"
        )
    elif parameters.layers == 3 and _fits_products(parameters):
        found[NO_PREDICTION] = (
            f"most directions are features, and products of {parameters.widths[0]} of them are fitted: "
            "what these make of directions that are none is not computed, so that there is no error. "
            f"Allowed: at most {PAIRS} features, half of the directions, or fewer samples"
        )
    if parameters.degree == 3:
        return only_known(found, parameters.samples, parameters.dimension, parameters.correction)
    return found


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


def _spikes(
    parameters: CompositionalParameters, law: SpikeLaw
) -> tuple[SpikePrediction, DrawnSpikes | None]:
    """Spikes of the first step, as the learner ranks them, and draws of them where there are some."""
    n, D = parameters.samples, parameters.n_features_total
    found, drawn = law.spikes(n), law.drawn(n, D)
    overlap = law.crowded(n, D, drawn)
    if overlap is None:
        return found, drawn
    places = found.eigenvalues if drawn is None else drawn.places()
    return replace(found, squared_overlap=overlap, eigenvalues=places), drawn


def _later_layers(
    parameters: CompositionalParameters,
    model: Model,
    spikes: SpikePrediction,
    drawn: DrawnSpikes | None,
    step: SecondStep | None,
) -> tuple[list[float | None] | None, list[float | None], float | None]:
    """Overlaps of the second representation, eigenvalues of the last layer, and the error."""
    if parameters.layers == 4:
        if step is None:
            return [None] * parameters.widths[1], [None] * parameters.widths[1], None
        return step.squared_overlap.tolist(), step.last_layer.tolist(), step.normalised_mse
    # Norms and angles of the directions, and with them the last layer, are each first layer's own.
    if _fits_products(parameters):
        return None, [None] * parameters.widths[0], None
    fits, readout, rows = [], parameters.readout != "identity", fresh_rows(parameters)
    for place, draws in enumerate(model.draws):
        learned = draws.learned(spikes.squared_overlap)
        guess = model.law.heights * spikes.squared_overlap
        if drawn is not None and _is_bulk(parameters):
            # What is lost is a few whole directions, not a part of each.
            learned, guess = draws.along(drawn.components[place]), drawn.eigenvalues[place]
        fit = fit_last_layer(learned, draws.labels, readout=readout, rows=rows, guess=guess)
        fits.append(fit)
    values = np.mean([np.linalg.eigvalsh(fit.matrix)[::-1] for fit in fits], axis=0)
    return None, values.tolist(), float(np.mean([fit.normalised_mse for fit in fits]))


def _lost_in_many(parameters: CompositionalParameters, spikes: SpikePrediction) -> bool:
    """Whether a feature is lost among more directions than whole matrices are drawn of."""
    # What stands in its place is an eigenvector of the noise and of what the population holds.
    many = parameters.n_features_total > LARGEST
    return many and bool((spikes.squared_overlap < 0.5).any())


def _ceiling(
    parameters: CompositionalParameters, squared_overlap: np.ndarray
) -> list[float | None] | None:
    """Squared norm of the true quadratic forms in terms of the learned first representation."""
    if parameters.layers == 3:
        return None
    moved = transported(rotated_hidden(parameters), np.diag(np.sqrt(squared_overlap)))
    return list(np.sum(moved**2, axis=0).tolist())


def _true_last_layer(
    parameters: CompositionalParameters, scale: float
) -> list[float | None] | None:
    """Eigenvalues of B in the units of the labels; None for a nonlinear readout."""
    if parameters.readout != "identity":
        return None
    return list((np.linalg.eigvalsh(make_target(parameters, 0).matrix)[::-1] / scale).tolist())


def _kernel_floor(parameters: CompositionalParameters, model: Model) -> float:
    """Least error of a rotation-invariant kernel."""
    # What is beyond degree 2 is of degree 4 at least, where a sample is worth most.
    share = model.degree_two_share
    floor = best_kernel_error(
        samples=parameters.samples,
        dimension=parameters.dimension,
        energies={2: share, 4: 1 - share},
    )
    return float(floor)


def _key(parameters: CompositionalParameters) -> CompositionalParameters:
    """The same parameters with everything reset that the model does not depend on."""
    return parameters.model_copy(update={"samples": 2, "test_samples": 2, "kernel_samples": 0})


@lru_cache(maxsize=64)
def _model(parameters: CompositionalParameters) -> Model:
    targets = [make_target(parameters, seed) for seed in range(TEACHERS)]
    parts = [draw_latent(target, parameters) for target in targets]
    # Every first layer has labels of its own scale, which its learner divides out.
    labels, _, scales = zip(*(standardise(part.labels) for part in parts), strict=True)
    weights = [apply_label_map(own, parameters.label_map) for own in labels]
    law = _law(parameters, parts, np.concatenate(weights))
    shares = [
        degree_two_share(part.second_moment, draws=part.labels.size, label_variance=variance)
        for part, variance in ((part, float(part.labels.var())) for part in parts)
    ]
    return Model(
        law=law,
        draws=tuple(
            _latent_draws(parameters, part, y, T, place)
            for place, (y, part, T) in enumerate(zip(labels, parts, weights, strict=True))
        ),
        # Overlaps of cubic layers are not known around one half.
        crossing=np.inf if parameters.degree == 3 else crossing_samples(law),
        degree_two_share=float(np.mean(shares)),
        true_last_layer=_true_last_layer(parameters, float(np.mean(scales))),
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
    if part.matrices is not None:
        s = part.squared_input_norm
        lean = sample_lean(T, part.signal, part.images, s, parameters.dimension)
    return LatentDraws(y, part.signal, noise, lean)


def _law(
    parameters: CompositionalParameters, parts: list[LatentMoments], T: np.ndarray
) -> SpikeLaw:
    """Law of the first step from the draws of all first layers."""
    D, d = parameters.n_features_total, parameters.dimension
    signal = np.concatenate([part.signal for part in parts])
    squared_norm = np.concatenate([part.squared_norm for part in parts])
    plain = plain_kernel(latent=signal, squared_norm=squared_norm, n_features=D)
    room = ranking_room(d, parameters.degree, parameters.correction)
    cubic = [part.cubic for part in parts if part.cubic is not None]
    if cubic:
        mapped = np.split(T, len(parts))
        weights = unit_weights(parameters)
        return cubic_law(cubic, mapped, weights, corrected=parameters.correction == "wick")
    if parameters.degree != 2:
        heights = _heights(parameters, parts, T, plain.diagonal)
        return first_layer_law(weights=T, kernel=plain, n_features=D, heights=heights, room=room)
    kernels = [
        corrected_kernel(
            latent=part.signal,
            squared_input_norm=part.squared_input_norm,
            squared_images=part.images,
            traces=np.trace(part.matrices, axis1=1, axis2=2),
            dimension=d,
        )
        for part in parts
        if part.matrices is not None
    ]
    corrected = SampleKernel.joined(kernels)
    wick = parameters.correction == "wick"
    heights = _heights(parameters, parts, T, corrected.diagonal, corrected=True)
    # The contraction 2 tr((x x^T - I) M_k^2), which the correction takes out of the operator.
    moved = plain.diagonal - corrected.diagonal
    first = parts[0].matrices
    assert first is not None
    background = composed_background(
        heights=heights,
        matrices=first,
        contracted=None if wick else T @ moved / T.size,
        contraction_noise=float(np.mean(T**2 * 2 * squared_norm) / d),
    )
    law = first_layer_law(
        weights=T,
        kernel=corrected,
        n_features=D,
        heights=heights if wick else _heights(parameters, parts, T, plain.diagonal),
        background=background,
        room=room,
    )
    if D <= FEW:
        return replace(law, means=small_populations(parameters))
    # Directions that are not orthonormal have no diagonal form in orthonormal features.
    if parameters.layers == 4 or parameters.first_layer != "orthonormal":
        return law
    drawn = drawn_background(law, diagonal_forms(parameters, 8), parameters.label_map)
    return replace(law, background=drawn)


def _heights(
    parameters: CompositionalParameters,
    parts: list[LatentMoments],
    T: np.ndarray,
    diagonal: np.ndarray,
    *,
    corrected: bool = False,
) -> np.ndarray:
    """E[T <A_k, K A_k>], with the index of a diagonal layer as control variate."""
    strengths = rotated_basis(parameters).weights
    index = (np.concatenate([part.signal for part in parts]) ** 2 - 1) @ strengths
    p = strengths.size
    # Its mean is known for degrees 1 and 2; p^2 products of matrices are not worth it for very many.
    exact = None
    cheap = parameters.degree == 2 and p**2 * parameters.dimension**3 < 5e8
    if parameters.degree == 1 or cheap:
        means = [
            exact_heights(strengths, np.eye(p), part.matrices, corrected=corrected)
            for part in parts
        ]
        exact = np.mean([mean for mean in means if mean is not None], axis=0)
    return controlled_mean(T, diagonal, index, exact)
