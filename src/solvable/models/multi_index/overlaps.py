"""Predicted overlaps of a label-weighted second moment with the directions of an additive channel."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from solvable.errors import InvalidParameter
from solvable.message_passing.moments import ConditionalMoments
from solvable.operators.labels import LabelMap, map_of_law
from solvable.spectra.label_law import LabelLaw
from solvable.spectra.label_weighted import (
    LabelWeightedSpectrum,
    critical_parameter,
    label_weighted_spectrum,
    signed_parameters,
)
from solvable.spectra.sample_lattice import lattice_sizes
from solvable.spectra.sampled_spikes import draw_spikes
from solvable.spectra.structured_spikes import Ranking, WeightedSample, predict_spikes


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
    ranking: Ranking = "permuted",
) -> SpectralPrediction:
    r"""Predict overlaps, eigenvalues and edges of :math:`\frac1n\sum_iT(y_i)x_ix_i^\top`.

    .. math:: \psi(\lambda)=\lambda\Big(\frac1\alpha+E\frac T{\lambda-T}\Big),\quad
        \Phi(\lambda)=\lambda E\Big[\frac{T\,zz^\top}{\lambda-T}\Big],\qquad
        \rho^2=\frac{\psi'(\lambda_\star)}{\psi'(\lambda_\star)-v^\top\Phi'(\lambda_\star)v}

    Here :math:`\lambda_\star` solves :math:`\phi(\lambda)=\psi(\lambda)` for an eigenvalue
    :math:`\phi` of :math:`\Phi` with eigenvector v. For links that are not even :math:`\Phi` is a full
    matrix; its eigenvectors are computed at each :math:`\lambda_\star`.
    Takes milliseconds for 16 directions. arXiv:2502.01583; equations 7, 8 and 24 of
    ``docs/derivations/multi-index.md`` (finite dimension, full :math:`\Phi`).

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
    ranking : {"permuted", "modulus"}
        Order in which p eigenvectors are taken: by distance from the nearer edge with permuted labels,
        or by modulus, as gradient descent takes them.

    Returns
    -------
    SpectralPrediction
        Predictions with one entry for each direction.

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
    law, rotation = moments.law(T), np.eye(moments.n_directions)
    if moments.cross is not None:
        law, rotation = _rotated(moments, T, sample_ratio, dimension)
    return arranged(law, rotation, sample_ratio * dimension, dimension, ranking)


def _with_norms(law: LabelLaw, dimension: int) -> LabelLaw:
    """Distribution of the weight T |x|² / d, with the features divided by |x| / d^(1/2)."""
    # x x^T = |x|² e e^T: the theory of the edge is that of vectors e of one length, and the variance
    # 2 / d of |x|² / d acts like a larger variance of T. Cubes of normal numbers, by Wilson and Hilferty.
    if dimension - law.n_directions < 10:  # lengths near 0 are not in the theory
        return law
    nodes, chance = np.polynomial.hermite_e.hermegauss(5)
    step = 2 / (9 * (dimension - law.n_directions))
    norms = (1 - step + np.sqrt(step) * nodes) ** 3
    norms /= chance @ norms / chance.sum()
    return LabelLaw(
        np.outer(law.weights, norms).ravel(),
        np.outer(law.probabilities, chance).ravel(),
        (law.second_moments[:, None] / norms[:, None]).reshape(-1, law.n_directions),
    )


def _rotated(
    moments: ConditionalMoments, T: np.ndarray, ratio: float, dimension: int
) -> tuple[LabelLaw, np.ndarray]:
    """Use the eigenvectors of Phi(lambda*) at each outlier as directions; return their label law."""
    assert moments.cross is not None
    chance, p = moments.probabilities, moments.n_directions
    # Weights that no sample is expected to have would be poles near the edge of the bulk.
    within = moments.law(T).clipped(ratio * dimension).weights
    T = np.clip(T, within[0], within[-1])
    # Odd maps of odd links have no strength E[T G]: then the noise E[T² G] singles out directions.
    power = np.sqrt(chance @ T**2)
    chosen = T / power + 1e-6 * (T / power) ** 2
    rotation = np.linalg.eigh(np.einsum("m,mab->ab", chance * chosen, moments.cross))[1]
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
    return law, rotation


def arranged(
    law: LabelLaw,
    rotation: np.ndarray,
    samples: float,
    dimension: int,
    ranking: Ranking = "permuted",
) -> SpectralPrediction:
    """Sort directions by distance from the bulk; predict each true direction's overlap with the span."""
    bare, law = law, _with_norms(law, dimension)
    spectrum = label_weighted_spectrum(law, ratio=samples / dimension, dimension=dimension)
    own, at_upper = spectrum.squared_overlap, spectrum.at_upper_end
    recovered = np.where(at_upper, spectrum.upper.outlying, spectrum.lower.outlying)
    low, high = permuted_edges(law, samples / dimension, dimension)
    places = spectrum.eigenvalues
    distance = np.where(at_upper, places - high, low - places)
    order = np.argsort(-distance, kind="stable")
    eigenvalues = places[order]
    if _needs_draws(law, samples, dimension):
        span, eigenvalues = _drawn_means(bare, samples, dimension, ranking)
    else:
        span = span_overlaps(law, samples, dimension, ranking=ranking)
    span = _even(span, law)
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
        background=None, draws=draws, ranking="permuted",
    )  # fmt: skip
    # The learner detects an eigenvalue that lies 2 % of the bulk's half-width beyond the edge of one
    # permutation.
    low, high = drawn.edges.T[:, :, None]
    beyond = np.maximum(drawn.eigenvalues - high, low - drawn.eigenvalues)
    counts = np.count_nonzero(beyond > 0.01 * (high - low), axis=1)
    return [C[:, :count] for C, count in zip(drawn.components, counts, strict=True)]


def _needs_draws(law: LabelLaw, samples: float, dimension: int) -> bool:
    """Return True if matrices are drawn, which takes a second, rather than spectra near the edge."""
    # Many directions act as noise on each other, and few samples scatter beyond the theory of the edge.
    if law.n_directions > dimension / 10 or dimension < 100:
        return True
    # Neither a direction of strength 0, which belongs to no end, nor a noisy one at both ends, nor an
    # edge made by few samples is in the theory of the edge; both edges decide which eigenvectors are
    # kept. All matter for small matrices only. Beyond 150 dimensions the means of the few matrices that
    # take seconds are no more exact, unless fewer than ten samples make an edge.
    if dimension > 300:
        return False
    strengths, clipped = law.strengths, law.clipped(samples)
    least = 1e-9 * np.sqrt(law.weight_power)
    if (np.abs(strengths) <= least).any():
        return True
    # A weak direction whose samples have large weights overlaps with both ends of the spectrum.
    noise = (law.probabilities * law.weights**2) @ law.second_moments
    if ((noise > 2 * noise.min()) & (np.abs(strengths) < 0.5 * np.abs(strengths).max())).any():
        return True
    fewest, alpha = (80 if dimension <= 150 else 10), samples / dimension
    ends = clipped, clipped.mirrored()
    return any(_samples_at_the_edge(end, alpha) * dimension < fewest for end in ends)


def _samples_at_the_edge(law: LabelLaw, ratio: float) -> float:
    """Effective number of samples, divided by d, in the sum that determines the upper edge."""
    parameter = critical_parameter(law, ratio)[1]
    # 1 / alpha = E[(T / (lambda - T))²] is carried by n E[s]² / E[s²] samples.
    share = (
        (law.weights / (parameter - law.weights)) ** 2 if parameter else np.ones(law.weights.size)
    )
    return ratio * float(law.probabilities @ share) ** 2 / float(law.probabilities @ share**2)


def _drawn_means(
    law: LabelLaw, samples: float, dimension: int, ranking: Ranking
) -> tuple[np.ndarray, np.ndarray]:
    """Mean squared overlaps and eigenvalues of drawn matrices, smooth in the number of samples."""
    # Large matrices of many directions need fewer draws.
    draws = int(np.clip(5e8 / dimension**3, 1 if law.n_directions > dimension / 10 else 60, 240))
    arrays = (law.weights, law.probabilities, law.second_moments)
    key = tuple(array.tobytes() for array in arrays), law.n_directions, dimension, ranking
    if draws < 12:
        span, eigenvalues = _means_at(*key, round(samples), draws, 0)
    else:
        # The means are interpolated between sizes, each of which has a third of the draws.
        sizes = lattice_sizes(samples, fewest=2)
        means = [_means_at(*key, one.samples, draws // 3, one.index) for one in sizes]
        weights = [one.weight for one in sizes]
        span, eigenvalues = (
            np.average(part, axis=0, weights=weights) for part in zip(*means, strict=True)
        )
    # Drawn matrices lack the mean of the weights, which shifts every eigenvalue.
    return span, eigenvalues + law.mean_weight


@lru_cache(maxsize=256)
def _means_at(
    law: tuple[bytes, ...],
    p: int,
    dimension: int,
    ranking: Ranking,
    samples: int,
    draws: int,
    stream: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Means over drawn matrices at one number of samples; neighbours on a curve share it."""
    weights, chances, moments = (np.frombuffer(part) for part in law)
    rebuilt = LabelLaw(weights, chances, moments.reshape(-1, p))
    drawn = draw_spikes(
        sample=_sample(rebuilt), heights=rebuilt.strengths, n_samples=samples, n_features=dimension - p,
        background=None, draws=draws, ranking=ranking, stream=stream,
    )  # fmt: skip
    return drawn.squared_overlap, drawn.eigenvalues.mean(axis=0)


def _even(span: np.ndarray, law: LabelLaw) -> np.ndarray:
    """Average predictions over directions of equal moments, which differ only by random draws."""
    moments = np.stack([law.strengths, law.probabilities * law.weights**2 @ law.second_moments])
    least = 1e-9 * np.sqrt(law.weight_power)
    size = np.maximum(np.abs(moments).max(axis=1, keepdims=True), least)
    group = np.unique(np.round(moments / size, 5), axis=1, return_inverse=True)[1].ravel()
    return np.asarray((np.bincount(group, span) / np.bincount(group))[group])


def permuted_edges(law: LabelLaw, ratio: float, dimension: int) -> tuple[float, float]:
    """Means of the second moment's smallest and largest eigenvalue with permuted labels."""
    # Permuted labels are independent of the inputs: E[z² | y] = 1   (multi-index 7)
    blind = LabelLaw(law.weights, law.probabilities, np.ones((law.weights.size, 1)))
    spectrum = label_weighted_spectrum(blind, ratio=ratio, dimension=dimension)
    return float(spectrum.lower.eigenvalues[0]), float(spectrum.upper.eigenvalues[0])


def _sample(law: LabelLaw) -> WeightedSample:
    return WeightedSample(
        law.weights,
        law.probabilities,
        law.weights[:, None] ** 2 * law.second_moments,
        gaussian=True,
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
    law: LabelLaw,
    samples: float,
    dimension: int,
    keep: int | None = None,
    ranking: Ranking = "permuted",
) -> np.ndarray:
    """Mean squared projection of each direction on the span of `keep` eigenvectors at finite d."""
    # Directions near the edge compete for the same eigenvectors of the bulk, so they are predicted
    # together.   (multi-index 24)
    p, strengths = law.n_directions, law.strengths
    least = 1e-9 * np.sqrt(law.weight_power)
    none = np.abs(strengths) <= least
    sample = _sample(law)
    kept = p if keep is None else keep

    def projections(sign: float, *, both_ends: bool) -> np.ndarray:
        spikes = predict_spikes(
            sample=sample,
            heights=np.where(none, sign * least, strengths),
            n_samples=samples,
            n_features=dimension - p,
            n_directions=kept,
            ranking=ranking,
            both_ends=both_ends,
        )
        return spikes.squared_overlap

    overlap = projections(1.0, both_ends=True)
    if none.any():
        # A direction of strength 0 with more noise than other directions appears at both ends, so its
        # projections on the eigenvectors of each end are added.
        ends = projections(1.0, both_ends=False) + projections(-1.0, both_ends=False)
        overlap = np.where(none, ends, overlap)
    return np.clip(overlap, 0.0, 1.0)
