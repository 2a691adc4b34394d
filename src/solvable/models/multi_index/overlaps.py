"""Predicted overlaps of a label-weighted second moment with the directions of an additive channel."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from solvable.arrays import random_stream
from solvable.errors import InvalidParameter
from solvable.message_passing.moments import ConditionalMoments
from solvable.operators.labels import LabelMap, map_of_law
from solvable.spectra.label_law import LabelLaw
from solvable.spectra.label_weighted import (
    LabelWeightedSpectrum,
    label_weighted_spectrum,
    signed_parameters,
)
from solvable.spectra.sampled_spikes import draw_spikes
from solvable.spectra.structured_spikes import WeightedSample, predict_spikes


@dataclass(frozen=True)
class SpectralPrediction:
    """Predictions for the p eigenvectors farthest from the bulk, at one ratio n/d."""

    # squared projection of each true direction on the span of the p eigenvectors   (multi-index 24)
    squared_overlap: np.ndarray
    # Each eigenvector estimates a combination of true directions; this is the combination's squared
    # projection on the span of the p eigenvectors.
    span_overlap: np.ndarray
    # squared overlap of each eigenvector with the combination that it estimates (multi-index 8)
    individual_overlap: np.ndarray
    eigenvalues: np.ndarray  # eigenvalues, farthest from the bulk first
    bulk_edges: tuple[float, float]  # means of the extreme eigenvalues with permuted labels
    recovered: np.ndarray  # True if the eigenvalue is an outlier in the limit of large d
    rotation: np.ndarray  # column k is the combination that eigenvector k estimates
    parameters: (
        np.ndarray
    )  # lambda* of the outlier, or lambda at the edge; negative at the lower end


def mapped_labels(moments: ConditionalMoments, label_map: LabelMap | str) -> np.ndarray:
    """Centred label map of the standardised labels, at every label on the grid of a channel."""
    if label_map == "optimal":
        return best_weights(moments)
    return map_of_law(moments.labels, moments.probabilities, label_map)


def best_weights(moments: ConditionalMoments) -> np.ndarray:
    """Label map with the lowest threshold for the last direction, at every label on the grid."""
    return np.asarray(optimal_map(moments.second[:, -1]))


def optimal_map(second: np.ndarray) -> np.ndarray:
    """Map T* = G / (1 + G) of the label, cut below at -1e4."""
    # T*(y) = 1 - 1 / E[z² | y]   (multi-index 9); T* is cut where a label leaves no variance of z.
    most_negative = -1e4
    with np.errstate(divide="ignore"):
        return np.maximum(second / np.maximum(1 + second, 1e-300), most_negative)


def predict_spectral(
    moments: ConditionalMoments,
    *,
    label_map: LabelMap | str = "tanh",
    sample_ratio: float,
    dimension: int,
) -> SpectralPrediction:
    r"""Predict overlaps, eigenvalues and edges of :math:`\frac1n\sum_iT(y_i)x_ix_i^\top`.

    .. math:: \psi(\lambda)=\lambda\Big(\frac1\alpha+E\frac T{\lambda-T}\Big),\quad
        \Phi(\lambda)=\lambda E\Big[\frac{T\,zz^\top}{\lambda-T}\Big],\qquad
        \rho^2=\frac{\psi'(\lambda_\star)}{\psi'(\lambda_\star)-v^\top\Phi'(\lambda_\star)v}

    Here :math:`\lambda_\star` solves :math:`\phi(\lambda)=\psi(\lambda)` for an eigenvalue
    :math:`\phi` of :math:`\Phi` with eigenvector v. For links that are not even :math:`\Phi` is a full
    matrix; its eigenvectors are computed at each :math:`\lambda_\star`.

    Parameters
    ----------
    moments : ConditionalMoments
        Conditional moments of the channel; for links that are not even, with ``pair_moments``.
    label_map : {"tanh", "square", "identity", "clip", "optimal"} or callable
        Map of standardised labels; "optimal" is :math:`G_{pp}/(1+G_{pp})` of the last direction.
    sample_ratio : float
        Samples per dimension :math:`\alpha=n/d`, above 0.
    dimension : int
        Dimension :math:`d`, above the number of directions.

    Returns
    -------
    SpectralPrediction
        Predictions with one entry for each direction.

    Raises
    ------
    InvalidParameter
        If a number is out of range or the map is unknown.

    Notes
    -----
    Takes milliseconds for 16 directions. arXiv:2502.01583; equations 7, 8 and 24 of
    ``docs/derivations/multi-index.md`` (finite dimension, full :math:`\Phi`). Backed by
    ``tests/models/multi_index/test_overlaps.py`` (simulated matrices).

    Examples
    --------
    >>> from solvable.models.multi_index.target import power_law_channel
    >>> channel = power_law_channel("he2", features=16, decay=1.0, noise=0.5)
    >>> found = predict_spectral(channel.moments, sample_ratio=32, dimension=600)
    >>> found.individual_overlap[:3].round(2)
    array([0.93, 0.84, 0.7 ])
    """
    if dimension <= moments.n_directions:
        raise InvalidParameter(
            f"dimension is {dimension}; allowed: above the {moments.n_directions} directions."
        )
    T = mapped_labels(moments, label_map)
    law = moments.law(T)
    rotation = np.eye(moments.n_directions)
    spectrum = label_weighted_spectrum(law, ratio=sample_ratio, dimension=dimension)
    if moments.cross is not None:
        law, rotation, spectrum = _rotated(moments, T, sample_ratio, dimension, spectrum)
    return arranged(law, rotation, spectrum, sample_ratio * dimension, dimension)


def _rotated(
    moments: ConditionalMoments,
    T: np.ndarray,
    ratio: float,
    dimension: int,
    spectrum: LabelWeightedSpectrum,
) -> tuple[LabelLaw, np.ndarray, LabelWeightedSpectrum]:
    """Use the eigenvectors of Phi(lambda*) at each outlier as directions; return law and spectrum."""
    assert moments.cross is not None
    chance, p = moments.probabilities, moments.n_directions
    strength = np.einsum("m,mab->ab", chance * T, moments.cross)
    rotation = np.linalg.eigh(strength)[1]
    law = moments.law(T)
    for _ in range(3):
        # second moment along a direction v: E[(v . z)² | y] = 1 + v^T G v
        along = np.einsum("ak,mab,bk->mk", rotation, moments.cross, rotation, optimize=True)
        law = LabelLaw(T, chance, np.maximum(1 + along, 0.0))
        spectrum = label_weighted_spectrum(law, ratio=ratio, dimension=dimension)
        places = signed_parameters(spectrum)
        columns = []
        for k in range(p):
            # E[T (z z^T - I) / (lambda - T)] = Phi(lambda) / lambda minus a multiple of the identity
            # (multi-index 7)
            weight = T / (places[k] - T)
            matrix = np.einsum("m,mab->ab", chance * weight, moments.cross)
            values, vectors = np.linalg.eigh(matrix)
            part = vectors.T @ rotation[:, k]
            # In a degenerate eigenspace every basis is valid, so the current direction is kept.
            level = values[np.argmax(np.abs(part))]
            part[np.abs(values - level) > 1e-6 * np.abs(values).max()] = 0.0
            columns.append(vectors @ (part / np.linalg.norm(part)))
        rotation = np.stack(columns, axis=1)
    return law, rotation, spectrum


def arranged(
    law: LabelLaw,
    rotation: np.ndarray,
    spectrum: LabelWeightedSpectrum,
    samples: float,
    dimension: int,
) -> SpectralPrediction:
    """Sort directions by distance from the bulk; predict each true direction's overlap with the span."""
    own, at_upper = spectrum.squared_overlap, spectrum.at_upper_end
    recovered = np.where(at_upper, spectrum.upper.outlying, spectrum.lower.outlying)
    low, high = permuted_edges(law, samples / dimension, dimension)
    places = spectrum.eigenvalues
    distance = np.where(at_upper, places - high, low - places)
    order = np.argsort(-distance, kind="stable")
    eigenvalues = places[order]
    p = law.n_directions
    if p > dimension / 10:
        # Many directions act as noise on each other, so the prediction is a mean over drawn matrices.
        # Large matrices need fewer draws.
        draws = int(np.clip(2.5e8 / dimension**3, 1, 120))
        # Drawn matrices have centred weights; the optimal map has a mean, which shifts every eigenvalue.
        mean = law.probabilities @ law.weights
        drawn = draw_spikes(
            sample=_sample(replace(law, weights=law.weights - mean)), heights=law.strengths,
            n_samples=samples, n_features=dimension - p, background=None, draws=draws, between_edges=True,
        )  # fmt: skip
        span, eigenvalues = drawn.squared_overlap, drawn.eigenvalues.mean(axis=0) + mean
    else:
        span = span_overlaps(law, samples, dimension)
    span = _even(span, law.strengths)
    return SpectralPrediction(
        squared_overlap=np.clip(rotation**2 @ span, 0.0, 1.0),
        span_overlap=np.clip(span, 0.0, 1.0)[order],
        individual_overlap=own[order],
        eigenvalues=eigenvalues,
        bulk_edges=(low, high),
        recovered=recovered[order],
        rotation=rotation[:, order],
        parameters=bulk_parameters(spectrum)[order],
    )


def detected_components(
    moments: ConditionalMoments,
    weights: np.ndarray,
    *,
    sample_ratio: float,
    dimension: int,
    draws: int,
) -> list[np.ndarray]:
    """Draw the components <true direction, eigenvector> of the eigenvectors that a learner detects."""
    # The width of the edge changes slowly with the dimension, and drawn matrices must stay small.
    d, p = min(dimension, max(1_000, 2 * moments.n_directions)), moments.n_directions
    law = moments.law(weights)
    drawn = draw_spikes(
        sample=_sample(law), heights=law.strengths, n_samples=sample_ratio * d, n_features=d - p,
        background=None, draws=draws, between_edges=True,
    )  # fmt: skip
    low, high = permuted_edges(law, sample_ratio, d)
    half = (high - low) / 2
    # The learner detects an eigenvalue that lies 2 % of the bulk's half-width beyond the edge of one
    # permutation, which scatters by 0.63 d^(-2/3) half-widths (Tracy-Widom).
    scatter = 0.63 * half * d ** (-2 / 3)
    moved = scatter * random_stream("edge of one permutation").standard_normal((draws, 2, 1))
    beyond = np.maximum(
        drawn.eigenvalues - high - moved[:, 0], low - moved[:, 1] - drawn.eigenvalues
    )
    counts = np.count_nonzero(beyond > 0.02 * half, axis=1)
    return [C[:, :count] for C, count in zip(drawn.components, counts, strict=True)]


def _even(span: np.ndarray, strengths: np.ndarray) -> np.ndarray:
    """Average predictions over directions of equal strength, which differ only by random draws."""
    size = max(float(np.abs(strengths).max()), 1e-300)
    group = np.unique(np.round(strengths / size, 9), return_inverse=True)[1]
    return np.asarray((np.bincount(group, span) / np.bincount(group))[group])


def permuted_edges(law: LabelLaw, ratio: float, dimension: int) -> tuple[float, float]:
    """Means of the second moment's smallest and largest eigenvalue with permuted labels."""
    # Permuted labels are independent of the inputs: E[z² | y] = 1   (multi-index 7)
    blind = LabelLaw(law.weights, law.probabilities, np.ones((law.weights.size, 1)))
    spectrum = label_weighted_spectrum(blind, ratio=ratio, dimension=dimension)
    return float(spectrum.lower.eigenvalues[0]), float(spectrum.upper.eigenvalues[0])


def _sample(law: LabelLaw) -> WeightedSample:
    return WeightedSample(
        law.weights, law.probabilities, law.weights[:, None] ** 2 * law.second_moments
    )


def bulk_parameters(spectrum: LabelWeightedSpectrum) -> np.ndarray:
    """Parameter lambda of each direction; directions in the bulk take the two edges in turn."""
    places = signed_parameters(spectrum)
    inside = np.flatnonzero(~spectrum.recovered)
    ends = spectrum.upper.critical_parameter, -spectrum.lower.critical_parameter
    for rank, k in enumerate(inside[np.argsort(-spectrum.squared_overlap[inside], kind="stable")]):
        if rank % 2:
            places[k] = ends[int(places[k] > 0)]
    return np.asarray(places)


def span_overlaps(
    law: LabelLaw, samples: float, dimension: int, keep: int | None = None
) -> np.ndarray:
    """Mean squared projection of each direction on the span of `keep` eigenvectors at finite d."""
    # Directions near the edge compete for the same eigenvectors of the bulk, so they are predicted
    # together.   (multi-index 24)
    p, strengths = law.n_directions, law.strengths
    least = 1e-9 * np.sqrt(law.weight_power)
    none = np.abs(strengths) <= least
    sample = _sample(law)
    kept = p if keep is None else keep

    def projections(sign: float) -> np.ndarray:
        spikes = predict_spikes(
            sample=sample,
            heights=np.where(none, sign * least, strengths),
            n_samples=samples,
            n_features=dimension - p,
            n_directions=kept,
            between_edges=True,
        )
        return spikes.squared_overlap

    overlap = projections(1.0)
    if none.any():
        # A direction of strength 0 with more noise than other directions appears at both ends.
        other = projections(-1.0)
        overlap = np.where(none, overlap + other - kept / dimension, overlap)
    return np.clip(overlap, 0.0, 1.0)
