"""Normalised errors of sequential recovery for each kind of second layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from solvable.arrays import random_stream
from solvable.moment_spectrum.cross_terms import wants_cross_terms
from solvable.moment_spectrum.latent_draws import LatentDraws, fit_last_layer, plug_in_error
from solvable.moment_spectrum.moments import FiniteSizeMoments
from solvable.moment_spectrum.operator_draws import OperatorSpikes
from solvable.spectra.sampled_spikes import DrawnSpikes


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
        DrawnSpikes | None, ...
    ] = ()  # drawn matrices at each sample size, or None if none are drawn
    own: np.ndarray | None = (
        None  # overlap of each feature with its own eigenvector, if there are many
    )
    operators: Sequence[OperatorSpikes] = ()  # drawn moment operators, one for each sample size

    def only(self, place: int, values: np.ndarray | None = None) -> Spectrum:
        """Spectrum at one sample size, with a learner's eigenvalues if `values` are given."""
        here = slice(place, place + 1)
        rows = ("overlap", "recovered", "places", "edges", "noise_scale")
        own = replace(
            self, **{name: getattr(self, name)[here] for name in rows}, drawn=(), operators=()
        )
        if values is None:
            return own
        lower, upper = own.edges[0]
        out = (values > upper) | (values < lower)
        # A learner cannot estimate the overlaps of its directions, so they are set to zero.
        nothing = np.zeros_like(own.overlap)
        return replace(own, places=values[None], recovered=out[None], overlap=nothing)


def fresh_rows(samples: float) -> int:
    """Number of fresh rows for the second layer and the readout: n, between 4,000 and 20,000."""
    return int(np.clip(samples, 4_000, 20_000))


def layer_errors(
    moments: FiniteSizeMoments, spectrum: Spectrum, samples: np.ndarray
) -> dict[str, np.ndarray]:
    """Normalised error for each kind of second layer, and error due to the unrecovered features alone."""
    errors = _drawn_errors(moments, moments.latent, spectrum, samples)
    # The error of a learned direction of a drawn operator is correlated with the samples of largest norm
    # and, for the plain operator, with the top eigenvectors of the contraction {B, .}. The label depends
    # on these two as well, so the correlation changes the error of the prediction.
    for k, drawn in enumerate(spectrum.operators):
        size, sums = samples[k : k + 1], dict.fromkeys(errors, np.zeros(2))
        for pair in drawn.learned:
            spectra = spectrum.only(k, pair[0].values), spectrum.only(k)
            sides = [
                _drawn_errors(moments, [draw], at, size)
                for draw, at in zip(pair, spectra, strict=True)
            ]
            power = pair[0].labels.var()
            for name in sums:
                sums[name] = sums[name] + power * np.array([side[name][0] for side in sides])
        for name, (leaning, random) in sums.items():
            if name != "tail-only":
                errors[name][k] *= leaning / random
    return errors


def _layers(
    moments: FiniteSizeMoments, spectrum: Spectrum, samples: np.ndarray, k: int
) -> dict[str, np.ndarray]:
    """Second-layer weights of standardised labels at sample size k: eigenvalues, unchanged or shrunk.

    Each array has one row for each drawn matrix, or a single row if no matrix is drawn.
    """
    D, drawn = moments.n_features, spectrum.drawn[k] if spectrum.drawn else None
    noise_scale = np.sqrt(moments.learner_noise * D / samples[k])
    if drawn is None:
        values = np.where(spectrum.recovered, spectrum.places, _places_of_noise(spectrum, D))[k]
        values, overlap = values[None], spectrum.overlap[k]
    else:
        values, overlap = drawn.eigenvalues, np.zeros(1)
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


def _drawn_errors(
    moments: FiniteSizeMoments,
    draws: Sequence[LatentDraws],
    spectrum: Spectrum,
    samples: np.ndarray,
) -> dict[str, np.ndarray]:
    """Errors on draws of latent features; 1 - sum_i lambda_i² c_i⁴ if Gaussian (sequential 11)."""
    readout = not moments.linear
    names = ("least-squares", "tail-only", "in-sample", "shrinkage")
    errors = {name: np.zeros(samples.size) for name in names}
    for k, rows in enumerate(map(fresh_rows, samples)):
        stream = random_stream("sequential-recovery", "noise inside the span")
        drawn = spectrum.drawn[k] if spectrum.drawn else None
        layers = _layers(moments, spectrum, samples, k)
        squares = not wants_cross_terms("auto", spectrum.places.shape[1], rows, linear_terms=False)
        guess, found = spectrum.places[k] * spectrum.overlap[k], spectrum.recovered[k]
        noise = moments.label_second_moment / samples[k]
        for place, draw in enumerate(draws):
            share = 1 / len(draws)
            features = draw.learned(spectrum.overlap[k])
            alone = features
            if (
                squares and spectrum.own is not None
            ):  # squares lose the overlap with other directions
                alone = draw.learned(np.minimum(spectrum.own[k], spectrum.overlap[k]))
            if not squares:  # products of features are not fitted here for more than 12 features
                alone = draw.spanning(alone)
            fits: list[tuple[np.ndarray, np.ndarray, float]] = [(alone, guess, 1.0)]
            # Pairs of learned features and the index of their row of second-layer weights
            plugged = [(features, 0)]
            if drawn is not None:
                matrices = len(drawn.eigenvalues)
                chosen = list(range(place % matrices, matrices, len(draws))[:3])
                plugged = [(draw.along(drawn.components[j]), j) for j in chosen]
                if (
                    squares
                ):  # mixing of features in one direction matters only if squares alone are fitted
                    fits = [(h, drawn.eigenvalues[j], 1 / len(chosen)) for h, j in plugged]
            errors["tail-only"][k] += share * draw.tail_error(found, guess, readout=readout)
            for learned, weights, part in fits:
                fit = fit_last_layer(
                    learned, draw.labels, readout=readout, rows=rows, guess=weights
                )
                errors["least-squares"][k] += share * part * fit.normalised_mse
            inside = _noise_inside(features, noise, stream) if drawn is None else 0.0
            for h, j in plugged:
                for name, error in _plug_in(moments, layers, h, j, inside, draw.labels).items():
                    errors[name][k] += share / len(plugged) * error
    return errors


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
