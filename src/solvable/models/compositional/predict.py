"""Predicted metrics of compositional targets, from the spike law and latent draws."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from solvable.frame.points import NO_PREDICTION, Metrics, listed
from solvable.models.compositional.first_layer import Model, model_of
from solvable.models.compositional.latent_layers import form_overlap, transported
from solvable.models.compositional.later_steps import LARGEST, LaterSteps, fresh_rows, later_steps
from solvable.models.compositional.parameters import CompositionalParameters
from solvable.models.compositional.theory import recovery_exponent
from solvable.models.compositional.two_layers import predicted_two_layer_error
from solvable.models.compositional.upper_layers import rotated_basis, rotated_hidden
from solvable.moment_spectrum.cubic import only_known
from solvable.moment_spectrum.kernel_degrees import best_kernel_error, degree_dimension
from solvable.moment_spectrum.latent_draws import fit_last_layer
from solvable.moment_spectrum.spike_law import SpikeLaw
from solvable.spectra.structured_spikes import SpikePrediction


def predict_first_layer(parameters: CompositionalParameters) -> Metrics:
    """Predicted metrics of the first spectral step alone; about 10 ms per sample size."""
    parameters = parameters.equivalent
    model = model_of(parameters)
    return _first_layer(parameters, model, _spikes(parameters, model.law))


def _first_layer(
    parameters: CompositionalParameters, model: Model, spikes: SpikePrediction
) -> Metrics:
    """Metrics of the first spectral step, computed from the predicted spikes."""
    overlap = spikes.squared_overlap
    return {
        "squared_overlap": overlap.tolist(),
        "subspace_overlap": float(overlap.mean()),  # (compositional 6)
        "eigenvalues": spikes.eigenvalues.tolist(),
        "detected_features": float(np.sum(model.law.thresholds < parameters.samples)),
        "bulk_edges": [float(edge) for edge in spikes.bulk_edges],
    }


def predict(parameters: CompositionalParameters) -> Metrics:
    """Predicted metrics of a parameter set, and predicted quantities that are not measured."""
    parameters = parameters.equivalent
    model = model_of(parameters)
    spikes = _spikes(parameters, model.law)
    hermite = None
    if parameters.first_layer == "random-features":
        other = parameters.model_copy(update={"first_layer": "orthonormal"})
        hermite = predict_first_layer(other)["subspace_overlap"]
    deep = parameters.layers > 3
    steps: LaterSteps | None = None
    # The directions that replace unrecovered features are predicted by drawing whole matrices.
    many = parameters.n_features_total > LARGEST
    if deep and not (many and (spikes.squared_overlap < 0.5).any()):
        # Overlaps are taken from the matrices drawn for the later steps, because these matrices include
        # the label's degrees from eight on, which the spike theory neglects.
        steps = later_steps(parameters, model.law, spikes)
        spikes = replace(spikes, squared_overlap=steps.first_overlap)
    share = model.degree_two_share
    # The label's variance above degree 2 is counted as degree 4, which gives the lowest bound.
    kernel = float(
        best_kernel_error(
            samples=parameters.samples,
            dimension=parameters.dimension,
            energies={2: share, 4: 1 - share},
        )
    )
    metrics: Metrics = {
        **_first_layer(parameters, model, spikes),
        **(_later_layers(parameters, steps) if deep else _last_layer(parameters, model, spikes)),
        "hermite_subspace_overlap": hermite,
        "inner_overlap_ceiling": _ceiling(parameters, spikes.squared_overlap) if deep else None,
        "first_step_inner_overlap": _blind(parameters, spikes) if deep else None,
        "last_layer_eigenvalues_of_target": model.true_last_layer,
        "polynomial_kernel_normalised_mse": kernel,
        "rbf_kernel_normalised_mse": kernel,
        "random_features_normalised_mse": kernel,
        "two_layer_normalised_mse": predicted_two_layer_error(
            parameters, share=share, noise_ratio=model.degree_two_noise
        ),
        "degree_two_share": share,
        "heights": model.law.heights.tolist(),
        "weights": rotated_basis(parameters).weights.tolist(),
        "threshold_samples": listed(model.law.thresholds),
        "crossing_samples": model.crossing if np.isfinite(model.crossing) else None,
        # number D_r of directions, about d^r / r!, for the degree r of the label
        "kernel_threshold_samples": float(
            degree_dimension(parameters.dimension, parameters.label_degree)
        ),
        "recovery_exponent": recovery_exponent(
            degree=parameters.degree,
            exponents=[float(np.log(p) / np.log(parameters.dimension)) for p in parameters.widths],
        ),
    }
    if parameters.learner != "spectral":
        # A network has other errors: its readout is fitted to the samples of its first layer.
        metrics |= dict.fromkeys(("normalised_mse", "last_layer_eigenvalues", "eigenvalues"))
        return metrics
    if deep and steps is None:
        metrics[NO_PREDICTION] = (
            f"a feature of the first layer is lost among D = {parameters.n_features_total} directions, "
            "and the direction in its place is predicted by drawing whole matrices. Allowed: D of at "
            f"most {LARGEST}, or samples with which all features of the first layer are recovered"
        )
    return only_known(metrics, parameters.samples) if parameters.degree == 3 else metrics


def chance(parameters: CompositionalParameters, prediction: Metrics) -> Metrics:
    """Metrics of a learner with random directions and a constant prediction."""
    p = parameters.widths[0]
    share = p / parameters.n_features_total
    deep = parameters.layers > 3
    return {
        "squared_overlap": [share] * p,
        "subspace_overlap": share,
        "inner_squared_overlap": [0.0] * sum(parameters.widths[1:]) if deep else None,
        "first_step_inner_overlap": [0.0] * parameters.widths[1] if deep else None,
        "last_layer_eigenvalues": [0.0] * parameters.widths[-1],
        "normalised_mse": 1.0,
    }


def _spikes(parameters: CompositionalParameters, law: SpikeLaw) -> SpikePrediction:
    """Spikes of the first step, ranked as the learner ranks them."""
    n, D = parameters.samples, parameters.n_features_total
    spikes = law.spikes(n)
    drawn = law.drawn(n, D, spikes)
    overlap = law.crowded(n, D, drawn)
    if overlap is None:
        return spikes
    places = spikes.eigenvalues if drawn is None else drawn.eigenvalues
    return replace(spikes, squared_overlap=overlap, eigenvalues=places)


def _later_layers(parameters: CompositionalParameters, steps: LaterSteps | None) -> Metrics:
    """Overlaps of the later representations, eigenvalues of the last layer, and the error."""
    if steps is None:
        return {
            "inner_squared_overlap": [None] * sum(parameters.widths[1:]),
            "last_layer_eigenvalues": [None] * parameters.widths[-1],
            "normalised_mse": None,
        }
    return {
        "inner_squared_overlap": steps.squared_overlap.tolist(),
        "last_layer_eigenvalues": steps.last_layer.tolist(),
        # With five layers or more the label has degree 8q or more, and rare rows of large index decide
        # the error of the fitted readout.
        "normalised_mse": float(steps.normalised_mse) if parameters.layers == 4 else None,
    }


def _last_layer(
    parameters: CompositionalParameters, model: Model, spikes: SpikePrediction
) -> Metrics:
    """Eigenvalues of the last layer, and error, for a target of three layers."""
    # The average runs over first layers, because norms and angles of the directions, and so the fitted
    # last layers, differ between them.
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


def _blind(parameters: CompositionalParameters, spikes: SpikePrediction) -> list[float | None]:
    """Squared overlap of each feature of the second representation with the form of the first step."""
    moved = transported(rotated_hidden(parameters), np.diag(np.sqrt(spikes.squared_overlap)))
    return list(form_overlap(moved, np.diag(spikes.eigenvalues)).tolist())


def _ceiling(
    parameters: CompositionalParameters, squared_overlap: np.ndarray
) -> list[float | None]:
    """Largest possible squared overlap of each feature of the second representation."""
    # The largest possible squared overlap is |C N_j C^T|_F²   (compositional 12).
    moved = transported(rotated_hidden(parameters), np.diag(np.sqrt(squared_overlap)))
    return list(np.sum(moved**2, axis=0).tolist())
