"""Overlaps of a label-weighted second moment with the directions of an additive channel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

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
    """Directions that the second moment of mapped labels finds at one sample ratio; p of each."""

    # of each true direction with the span of the p eigenvectors farthest from the bulk
    squared_overlap: np.ndarray
    # of the combination of true directions of each eigenvector, with that span
    span_overlap: np.ndarray
    individual_overlap: np.ndarray  # of each eigenvector with its own combination, as if alone
    eigenvalues: np.ndarray  # farthest from the bulk first
    bulk_edges: tuple[float, float]  # mean smallest and largest eigenvalue with permuted labels
    recovered: np.ndarray  # out of the bulk in the limit of many dimensions
    rotation: np.ndarray  # columns: the combination that each eigenvector points to
    parameters: np.ndarray  # lambda*, of the edge where it is not out; negative at the lower end

    def count_law(self, dimension: int) -> dict[int, float]:
        """Chances of how many eigenvalues a learner counts beyond the edges with their margin."""
        from scipy.special import ndtr

        low, high = self.bulk_edges
        half = (high - low) / 2
        distance = np.maximum(self.eigenvalues - high, low - self.eigenvalues) / half
        # Beyond 2 % of the half-width of the bulk (note 2.6). Eigenvalues at the edge, and that of one
        # draw of permuted labels, scatter by about d^(-2/3) of it together.
        beyond = ndtr((distance - 0.02) * dimension ** (2 / 3))
        counts = np.zeros(distance.size + 1)
        counts[0] = 1.0
        for chance in beyond:
            counts[1:] = counts[1:] * (1 - chance) + counts[:-1] * chance
            counts[0] *= 1 - chance
        kept = sorted(int(k) for k in np.argsort(-counts)[:3] if counts[k] > 0.05)
        return {k: float(counts[k] / counts[kept].sum()) for k in kept}


def mapped_labels(moments: ConditionalMoments, label_map: LabelMap | str) -> np.ndarray:
    """Centred label map at every label of a channel, standardised by the law of the label."""
    if label_map == "optimal":
        return best_weights(moments)
    return map_of_law(moments.labels, moments.probabilities, label_map)


def best_weights(moments: ConditionalMoments) -> np.ndarray:
    """The map that finds the last direction from the fewest samples, at every label."""
    # T* = G / (1 + G) (note 2.2), cut from below where a label leaves no variance.
    return np.asarray(optimal_map(moments.second[:, -1]))


def optimal_map(second: np.ndarray) -> np.ndarray:
    """Map G / (1 + G) of the label, cut from below."""
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
    r"""Overlaps, eigenvalues and edges of :math:`\frac1n\sum_iT(y_i)x_ix_i^\top`.

    .. math:: \psi(\lambda)=\lambda\Big(\frac1\alpha+E\frac T{\lambda-T}\Big),\quad
        \Phi(\lambda)=\lambda E\Big[\frac{T\,zz^\top}{\lambda-T}\Big],\qquad
        \rho^2=\frac{\psi'(\lambda_\star)}{\psi'(\lambda_\star)-v^\top\Phi'(\lambda_\star)v}

    at the :math:`\lambda_\star` where an eigenvalue of :math:`\Phi`, of eigenvector v, meets
    :math:`\psi`. Links that are not even make :math:`\Phi` a full matrix, whose eigenvectors are
    taken at each :math:`\lambda_\star`.

    Parameters
    ----------
    moments : ConditionalMoments
        Of the channel; with those of pairs (``pair_moments``) where links are not even.
    label_map : {"tanh", "square", "identity", "clip", "optimal"} or callable
        Of standardised labels; "optimal" is :math:`G_{pp}/(1+G_{pp})` of the last direction.
    sample_ratio : float
        :math:`\alpha=n/d`, above 0.
    dimension : int
        :math:`d`, above the number of directions.

    Returns
    -------
    SpectralPrediction
        One entry for each direction.

    Raises
    ------
    InvalidParameter
        If a number is out of range, or the map unknown.

    Notes
    -----
    Milliseconds for 16 directions. arXiv:2502.01583 and note 3.2 (eq. 3.3); finite dimension, and
    eigenvectors of :math:`\Phi` that move with :math:`\lambda`, derived. Backed by
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
    """Law, directions and spectrum in the eigenvectors of Phi at the place of each outlier."""
    assert moments.cross is not None
    chance, p = moments.probabilities, moments.n_directions
    strength = np.einsum("m,mab->ab", chance * T, moments.cross)
    rotation = np.linalg.eigh(strength)[1]
    law = moments.law(T)
    for _ in range(3):
        # E[(v . z)² | y] = 1 + v^T G v
        along = np.einsum("ak,mab,bk->mk", rotation, moments.cross, rotation, optimize=True)
        law = LabelLaw(T, chance, np.maximum(1 + along, 0.0))
        spectrum = label_weighted_spectrum(law, ratio=ratio, dimension=dimension)
        places = signed_parameters(spectrum)
        columns = []
        for k in range(p):
            # Phi(lambda) / lambda less a multiple of the identity
            weight = T / (places[k] - T)
            matrix = np.einsum("m,mab->ab", chance * weight, moments.cross)
            values, vectors = np.linalg.eigh(matrix)
            part = vectors.T @ rotation[:, k]
            # Of directions that are alike any basis is as good: the one at hand is kept.
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
    """Directions by distance from the bulk, and the overlap of each true one with their span."""
    own, at_upper = spectrum.squared_overlap, spectrum.at_upper_end
    recovered = np.where(at_upper, spectrum.upper.outlying, spectrum.lower.outlying)
    low, high = permuted_edges(law, samples / dimension, dimension)
    places = spectrum.eigenvalues
    distance = np.where(at_upper, places - high, low - places)
    order = np.argsort(-distance, kind="stable")
    eigenvalues = places[order]
    p = law.n_directions
    if p > dimension / 10:
        # Many directions are noise for each other: matrices are drawn, fewer of large ones.
        draws = int(np.clip(2.5e8 / dimension**3, 1, 120))
        drawn = draw_spikes(
            sample=_sample(law), heights=law.strengths, n_samples=samples,
            n_features=dimension - p, background=None, draws=draws, between_edges=True,
        )  # fmt: skip
        span, eigenvalues = drawn.squared_overlap, drawn.eigenvalues.mean(axis=0)
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


def _even(span: np.ndarray, strengths: np.ndarray) -> np.ndarray:
    """Means over directions that are alike, whose predictions differ by draws alone."""
    size = max(float(np.abs(strengths).max()), 1e-300)
    group = np.unique(np.round(strengths / size, 9), return_inverse=True)[1]
    return np.asarray((np.bincount(group, span) / np.bincount(group))[group])


def permuted_edges(law: LabelLaw, ratio: float, dimension: int) -> tuple[float, float]:
    """Mean smallest and largest eigenvalue of the second moment with permuted labels."""
    # Labels that tell nothing of one direction, and so of none
    blind = LabelLaw(law.weights, law.probabilities, np.ones((law.weights.size, 1)))
    spectrum = label_weighted_spectrum(blind, ratio=ratio, dimension=dimension)
    return float(spectrum.lower.eigenvalues[0]), float(spectrum.upper.eigenvalues[0])


def _sample(law: LabelLaw) -> WeightedSample:
    return WeightedSample(
        law.weights, law.probabilities, law.weights[:, None] ** 2 * law.second_moments
    )


def bulk_parameters(spectrum: LabelWeightedSpectrum) -> np.ndarray:
    """Parameter of each direction; of those in the bulk every second is at the other end."""
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
    """Overlap of each direction with the span of the eigenvectors kept, at a finite dimension."""
    # Directions near the edge compete for eigenvectors of the bulk, and share them.
    p, strengths = law.n_directions, law.strengths
    least = 1e-9 * np.sqrt(law.weight_power)
    none = np.abs(strengths) <= least
    sample = _sample(law)
    kept = p if keep is None else keep

    def found(sign: float) -> np.ndarray:
        spikes = predict_spikes(
            sample=sample,
            heights=np.where(none, sign * least, strengths),
            n_samples=samples,
            n_features=dimension - p,
            n_directions=kept,
            between_edges=True,
        )
        return spikes.squared_overlap

    overlap = found(1.0)
    if none.any():
        # A direction that only has more noise than the others is at both ends alike.
        other = found(-1.0)
        overlap = np.where(none, overlap + other - kept / dimension, overlap)
    return np.clip(overlap, 0.0, 1.0)
