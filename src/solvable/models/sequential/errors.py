"""Normalised errors of sequential recovery for each kind of second layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from solvable.arrays import random_stream
from solvable.moment_spectrum.cross_terms import wants_cross_terms
from solvable.moment_spectrum.latent_draws import LatentDraws, fit_last_layer, plug_in_error
from solvable.moment_spectrum.moments import FiniteSizeMoments
from solvable.moment_spectrum.operator_draws import InterpolatedSpikes, OperatorSpikes
from solvable.moment_spectrum.spike_law import MatrixMeans
from solvable.spectra.sampled_spikes import DrawnSpikes
from solvable.spectra.structured_spikes import SpikePrediction


@dataclass(frozen=True)
class Spectrum:
    """Predicted spectrum; the first axis of each array runs over sample sizes."""

    overlap: (
        np.ndarray
    )  # squared overlap of each feature with the span of all directions, overlap by chance included
    recovered: np.ndarray
    thresholds: np.ndarray
    places: np.ndarray  # positions of the eigenvalues
    edges: np.ndarray
    noise_scale: np.ndarray
    floor: np.ndarray
    drawn: tuple[
        MatrixMeans | None, ...
    ] = ()  # drawn matrices at each sample size, or None if none are drawn
    own: np.ndarray | None = (
        None  # overlap of each feature with its own eigenvector, if there are many
    )
    operators: Sequence[InterpolatedSpikes] = ()  # drawn moment operators, one for each sample size

    def learned(self, values: np.ndarray | None) -> Spectrum:
        """Spectrum of one sample size with a learner's eigenvalues."""
        if values is None:
            return self
        lower, upper = self.edges[0]
        out = (values > upper) | (values < lower)
        # A learner cannot estimate the overlaps of its directions, so they are set to zero.
        nothing = np.zeros_like(self.overlap)
        return replace(self, places=values[None], recovered=out[None], overlap=nothing)


def fresh_rows(samples: float) -> int:
    """Number of fresh rows for the second layer and the readout: n, between 4,000 and 20,000."""
    return int(np.clip(samples, 4_000, 20_000))


def layer_errors(
    moments: FiniteSizeMoments, spectrum: Spectrum, samples: np.ndarray
) -> dict[str, np.ndarray]:
    """Normalised error for each kind of second layer, and error due to the unrecovered features alone."""
    errors = _draw_errors(moments, moments.latent, spectrum, samples)
    # The error of a learned direction of a drawn operator is correlated with the samples of largest norm
    # and, for the plain operator, with the top eigenvectors of the contraction {B, .}. The label depends
    # on these two as well, so the correlation changes the error of the prediction.
    for k, at in enumerate(spectrum.operators):
        sums = dict.fromkeys(errors, np.zeros(2))
        for weight, drawn in at.parts:
            for name, pair in _operator_errors(moments, drawn).items():
                sums[name] = sums[name] + weight * pair
        for name, (leaning, random) in sums.items():
            if name != "tail-only":
                errors[name][k] *= leaning / random
    return errors


def _operator_errors(moments: FiniteSizeMoments, drawn: OperatorSpikes) -> dict[str, np.ndarray]:
    """Mean squared errors with drawn and with random directions, at the sample size of the operators."""
    if id(drawn) in moments.known:
        return moments.known[id(drawn)][1]
    spectrum, size = _found(moments, drawn, drawn.samples), np.array([float(drawn.samples)])
    sums: dict[str, Any] = {}
    for pair in drawn.learned:
        sides = [
            _draw_errors(moments, [draw], at, size)
            for draw, at in zip(pair, (spectrum.learned(pair[0].values), spectrum), strict=True)
        ]
        power = pair[0].labels.var() / len(drawn.learned)
        for name in sides[0]:
            added = power * np.array([side[name][0] for side in sides])
            sums[name] = sums.get(name, 0.0) + added
    moments.known[id(drawn)] = drawn, sums
    return sums


def _found(moments: FiniteSizeMoments, found: SpikePrediction, samples: float) -> Spectrum:
    """Spectrum of a prediction at one sample size."""
    thresholds = moments.law.thresholds
    return Spectrum(
        overlap=found.squared_overlap[None],
        recovered=(samples > thresholds)[None],
        thresholds=thresholds,
        places=found.eigenvalues[None],
        edges=np.array([found.bulk_edges]),
        noise_scale=np.sqrt([moments.law.noise * moments.law.n_features / samples]),
        floor=np.zeros_like(found.squared_overlap),
    )


def _layers(
    moments: FiniteSizeMoments, samples: float, values: np.ndarray, overlap: np.ndarray
) -> dict[str, np.ndarray]:
    """Second-layer weights of standardised labels: eigenvalues (rows), unchanged or shrunk."""
    D = moments.n_features
    noise_scale = np.sqrt(moments.learner_noise * D / samples)
    # The learner takes the mean of the eigenvalues that do not belong to features as the bulk's centre.
    centre = 0.0
    if moments.shift:
        rest = D - values.shape[1]
        centre = (D * moments.shift - values.sum(axis=1, keepdims=True)) / rest
    size, edge = np.abs(values - centre), 2 * noise_scale
    root = np.sqrt(np.maximum(size**2 - edge**2, 0.0))
    # sqrt((v² - 4 s²)_+)   (sequential 15). For a spike theta = (v + sqrt(v² - 4 s²)) / 2 this equals
    # theta c², which is smooth through the threshold.
    shrunk = np.sign(values - centre) * np.maximum(root, (size + root) / 2 * overlap)
    return {"in-sample": values, "shrinkage": shrunk}


def _places_of_noise(spectrum: Spectrum, n_features: int) -> np.ndarray:
    """Noise eigenvalues that the learner selects in place of unrecovered features, shape (m, p)."""
    # The distance of the k-th eigenvalue from the edge of a semicircle of half-width R is about
    # (3 pi / 2 (k - 0.7))^(2/3) l, with l^(3/2) = R^(3/2) / (2^(3/2) D). The learner ranks the
    # eigenvalues of both ends by modulus.
    p = spectrum.recovered.shape[1]
    depth = (1.5 * np.pi * (np.arange(p) + 0.3)) ** (2 / 3)
    lower, upper = spectrum.edges.T[:, :, None]
    inside = depth * (upper - lower) / 4 * n_features ** (-2 / 3)
    ends = np.concatenate([np.maximum(upper - inside, 0), np.minimum(lower + inside, 0)], axis=1)
    ranked = np.take_along_axis(ends, np.argsort(-np.abs(ends), axis=1, kind="stable"), axis=1)
    # The strongest unrecovered features get the largest eigenvalues of the noise.
    order = np.cumsum(~spectrum.recovered, axis=1) - 1
    return np.take_along_axis(ranked, np.maximum(order, 0), axis=1)


def _draw_errors(
    moments: FiniteSizeMoments,
    draws: Sequence[LatentDraws],
    spectrum: Spectrum,
    samples: np.ndarray,
) -> dict[str, np.ndarray]:
    """Errors on draws of latent features; 1 - sum_i lambda_i² c_i⁴ if Gaussian (sequential 11)."""
    names = ("least-squares", "tail-only", "in-sample", "shrinkage")
    errors = {name: np.zeros(samples.size) for name in names}
    for k, n in enumerate(map(float, samples)):
        formula = _formula_errors(moments, draws, spectrum, n, k)
        for name, error in formula.items():
            errors[name][k] = error
        means = spectrum.drawn[k] if spectrum.drawn else None
        if means is not None:
            for name, error in _interpolated(moments, draws, means, n).items():
                errors[name][k] = error
    return errors


def _interpolated(
    moments: FiniteSizeMoments, draws: Sequence[LatentDraws], means: MatrixMeans, samples: float
) -> dict[str, float]:
    """Errors of drawn matrices, interpolated between the sizes of the lattice."""

    def formula(found: SpikePrediction, size: float) -> dict[str, float]:
        return _formula_errors(moments, draws, _found(moments, found, size), size, 0)

    # The error times n is interpolated. If matrices are drawn at some sizes only, its difference from the
    # formula is interpolated.
    whole = sum(part.weight for part in means.parts) > 1 - 1e-9
    start = {} if whole else formula(means.formula, samples)
    errors: dict[str, float] = {}
    for part in means.parts:
        there = {} if whole else formula(part.formula, float(part.samples))
        for name, error in _matrix_errors(moments, draws, part.drawn, part.samples).items():
            change = part.weight * part.samples / samples * (error - there.get(name, 0.0))
            errors[name] = errors.get(name, start.get(name, 0.0)) + change
    return {name: max(error, 0.0) for name, error in errors.items()}


def _formula_errors(
    moments: FiniteSizeMoments,
    draws: Sequence[LatentDraws],
    spectrum: Spectrum,
    samples: float,
    k: int,
) -> dict[str, float]:
    """Errors of features with the mean overlaps of place k of a spectrum."""
    readout, rows = not moments.linear, fresh_rows(samples)
    stream = random_stream("sequential-recovery", "noise inside the span")
    overlap, found = spectrum.overlap[k], spectrum.recovered[k]
    values = np.where(
        spectrum.recovered, spectrum.places, _places_of_noise(spectrum, moments.n_features)
    )[k]
    layers = _layers(moments, samples, values[None], overlap)
    squares, guess = _squares_alone(moments, samples), spectrum.places[k] * overlap
    noise = moments.label_second_moment / samples
    errors = dict.fromkeys(("least-squares", "tail-only", *layers), 0.0)
    for draw in draws:
        features = draw.learned(overlap)
        alone = features
        if squares and spectrum.own is not None:
            # squares lose the overlap with other directions
            alone = draw.learned(np.minimum(spectrum.own[k], overlap))
        if not squares:  # products of features are not fitted here for more than 12 features
            alone = draw.spanning(alone)
        fit = fit_last_layer(alone, draw.labels, readout=readout, rows=rows, guess=guess)
        errors["least-squares"] += fit.normalised_mse / len(draws)
        errors["tail-only"] += draw.tail_error(found, guess, readout=readout) / len(draws)
        inside = _noise_inside(features, noise, stream)
        for name, error in _plug_in(moments, layers, features, 0, inside, draw.labels).items():
            errors[name] += error / len(draws)
    return errors


def _matrix_errors(
    moments: FiniteSizeMoments, draws: Sequence[LatentDraws], drawn: DrawnSpikes, samples: int
) -> dict[str, float]:
    """Errors of features along the eigenvectors of drawn matrices, which mix features with each other."""
    if id(drawn) in moments.known:
        return moments.known[id(drawn)][1]
    matrices = len(drawn.eigenvalues)
    layers = _layers(moments, samples, drawn.eigenvalues, np.zeros(1))
    squares = _squares_alone(moments, samples)
    errors = dict.fromkeys(layers, 0.0)
    for place, draw in enumerate(draws):
        # Few first layers use two matrices each, with disjoint rows.
        chosen = list(range(place % matrices, matrices, len(draws))[: 2 if len(draws) < 4 else 1])
        for number, j in enumerate(chosen):
            part = draw.every(3, number) if len(chosen) > 1 else draw
            share = 1 / len(chosen) / len(draws)
            features = part.along(drawn.components[j])
            for name, error in _plug_in(moments, layers, features, j, 0.0, part.labels).items():
                errors[name] += share * error
            if (
                squares
            ):  # mixing of features in one direction matters only if squares alone are fitted
                fit = fit_last_layer(
                    features,
                    part.labels,
                    readout=not moments.linear,
                    rows=fresh_rows(samples),
                    guess=drawn.eigenvalues[j],
                )
                known = errors.get("least-squares", 0.0)
                errors["least-squares"] = known + share * fit.normalised_mse
    moments.known[id(drawn)] = drawn, errors
    return errors


def _squares_alone(moments: FiniteSizeMoments, samples: float) -> bool:
    """Return True if the second layer has too few rows for products of features."""
    rows, p = fresh_rows(samples), moments.law.heights.size
    return not wants_cross_terms("auto", p, rows, linear_terms=False)


def _plug_in(
    moments: FiniteSizeMoments,
    layers: Mapping[str, np.ndarray],
    features: np.ndarray,
    row: int,
    inside: np.ndarray | float,
    labels: np.ndarray,
) -> dict[str, float]:
    """Errors of the second layers that are made of the eigenvalues, without a fit."""
    # The index is s(h) = (sigma / 2) sum_i lambda_i (h_i² - 1)   (sequential 14; arXiv:2605.14567,
    # Equations 2.12 and 2.13). With a label map or a nonlinear label the index does not have the units of
    # the label, and the learner fits a readout.
    scaled = not moments.linear or moments.label_map != "identity"
    half = labels.std() / 2
    return {
        name: plug_in_error(
            half * ((features**2 - 1) @ weights[row] + inside), labels, readout=scaled
        )
        for name, weights in layers.items()
    }


def _noise_inside(features: np.ndarray, variance: float, stream: np.random.Generator) -> np.ndarray:
    """Noise of the index of each draw, caused by sampling noise in the moment of the learned features."""
    # The noisy index is s(h) = (sigma / 2) sum_ij (v_i delta_ij + E_ij) (h_i h_j - delta_ij), where the
    # noise E_ij has variance (1 + delta_ij) E[T²] / n   (sequential 16).
    norm = np.sum(features**2, axis=1)
    power = 2 * (norm**2 - 2 * norm + features.shape[1]) * variance
    return np.asarray(np.sqrt(power) * stream.standard_normal(norm.size))
