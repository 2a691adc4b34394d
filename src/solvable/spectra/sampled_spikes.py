"""Simulated spiked matrices, for few samples, few directions or many spikes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvable.arrays import random_stream
from solvable.spectra.edges import weighted_bulk
from solvable.spectra.orientation import oriented
from solvable.spectra.structured_spikes import Background, Ranking, WeightedSample, both_sides


@dataclass(frozen=True)
class DrawnSpikes:
    """Leading eigenpairs of sampled matrices, and the eigenvectors' components along the spikes."""

    eigenvalues: np.ndarray  # eigenvalues (draws, p), in the order of rank
    components: np.ndarray  # overlaps (draws, p, p): <spike i, eigenvector k>
    edges: np.ndarray  # lower and upper edge that the learner compares with, (draws, 2)

    @property
    def squared_overlap(self) -> np.ndarray:
        """Mean squared overlap of each spike with the eigenvectors' span."""
        return np.asarray(np.mean(np.sum(self.components**2, axis=2), axis=0))

    def places(self) -> np.ndarray:
        """Mean eigenvalue of the eigenvector that is matched with each spike."""
        from scipy.optimize import linear_sum_assignment

        matched = [linear_sum_assignment(U**2, maximize=True)[1] for U in self.components]
        return np.take_along_axis(self.eigenvalues, np.array(matched), axis=1).mean(axis=0)


@dataclass(frozen=True)
class _Rest:
    """Samples of small weight, replaced by Gaussian noise of these variances and means."""

    block: np.ndarray  # variances between spikes, (p, p)
    rows: np.ndarray  # variances between a spike and a direction of the complement, (p,)
    complement: float
    spike_mean: np.ndarray  # means E[w h_i²] of these samples, which the heights already include
    mean: float  # mean weight E[w] of these samples


def draw_spikes(
    *,
    sample: WeightedSample,
    heights: np.ndarray,
    n_samples: float,
    n_features: int,
    background: Background | None,
    draws: int,
    room: float = 0.0,
    ranking: Ranking = "centre",
    stream: int = 0,
) -> DrawnSpikes:
    """Draw the matrix of `predict_spikes`, and return the directions that a learner ranks first."""
    # Calls with different `stream` have independent random numbers.
    # ``n_features`` counts the complement of the spikes. Time O(draws D³).
    p, C, n = heights.size, n_features, round(n_samples)
    held = Background.empty(p) if background is None else background
    # If most directions are spikes, a learner counts them as noise too.
    size = p + C if p > C > 0 else C
    edges, added = _edges(sample, heights, n_samples, size, background)
    # The largest weights, twice as many as directions, are drawn; the sum over all other samples is
    # Gaussian.
    kept = max(2 * (p + C), 64)
    if ranking != "centre" and n <= 64 * (p + C):
        # The sum over few samples is not Gaussian, which moves both edges and weak spikes.
        kept = n
    largest = _largest(sample, n, kept)
    chance = sample.probabilities[largest]
    rest = _rest(sample, largest, n)
    levels = _levels(held, C)
    offsets = np.concatenate([heights - rest.spike_mean, levels[0] - rest.mean])
    deviation = _deviation(rest, held, C)
    rng = random_stream("drawn spikes", p, C, stream)
    eigenvalues, components = np.empty((draws, p)), np.empty((draws, p, p))
    compared = np.empty((draws, 2))
    for draw in range(draws):
        count = n if n <= kept else rng.binomial(n, chance.sum())
        atoms = rng.choice(largest, count, p=chance / chance.sum())
        weights = sample.weights[atoms]
        if n <= kept:
            # Labels are centred on the given samples, and the edges are the learner's edges.
            weights = weights - weights.mean() + sample.probabilities @ sample.weights
            norms = (
                weights * (C + sample.powers[atoms].sum(axis=1)) / (p + C)
            )  # effective weights T |F|² / D
            if C and ranking == "centre":
                bulk = weighted_bulk(weights=norms, aspect_ratio=n / (p + C))
                edges = np.add(bulk.with_margin(dimension=p + C), added)
        powers = sample.powers[atoms]
        if sample.gaussian:
            powers = powers * (1 + sample.spread * (rng.standard_normal(powers.shape) ** 2 - 1))
        matrix = _moment(weights, powers, n, C, sample.gaussian, rng)
        noise = rng.standard_normal((p + C, p + C), dtype=np.float32)
        matrix += deviation * (noise + noise.T) / np.sqrt(np.float32(2))
        matrix[np.diag_indices(p + C)] += offsets
        if levels[1] is not None:
            joined = np.sqrt(levels[1]) * rng.choice([-1.0, 1.0], levels[1].shape)
            matrix[:p, p:] += joined
            matrix[p:, :p] += joined.T
        values, vectors, others = _eigenpairs(matrix, p, draw)
        if ranking == "modulus":
            first = np.argsort(-np.abs(values), kind="stable")[:p]
        elif ranking == "permuted":
            edges = _permuted_edges(weights / n, rest, p + C, sample.gaussian, rng)
            distance = np.maximum(values - edges[1], edges[0] - values)
            first = np.argsort(-distance, kind="stable")[:p]
        else:
            margin = room * (edges[1] - edges[0])
            first = _from_centre(values, others, edges, margin, p, C)
        eigenvalues[draw], components[draw] = values[first], oriented(vectors[:p, first])
        compared[draw] = edges
    return DrawnSpikes(eigenvalues, components, compared)


def _permuted_edges(
    weights: np.ndarray, rest: _Rest, size: int, gaussian: bool, rng: np.random.Generator
) -> np.ndarray:
    """Smallest and largest eigenvalue of one matrix whose labels are independent of the inputs."""
    # `weights` are those of the drawn samples, divided by n.
    rows = rng.standard_normal((weights.size, size), dtype=np.float32)
    if not gaussian:
        rows *= np.sqrt(size) / np.linalg.norm(rows, axis=1, keepdims=True)
    noise = rng.standard_normal((size, size), dtype=np.float32)
    matrix = (rows * weights.astype(np.float32)[:, None]).T @ rows
    matrix += np.sqrt(np.float32(rest.complement) / 2) * (noise + noise.T)
    values = np.linalg.eigvalsh(matrix) if size < 200 else _eigenpairs(matrix, 1, 0)[0]
    return np.array([values.min(), values.max()]) - rest.mean


def _from_centre(
    values: np.ndarray,
    others: float,
    edges: np.ndarray,
    margin: float,
    spikes: int,
    complement: int,
) -> np.ndarray:
    """Rank eigenvalues by distance beyond the edges and margin, then by distance from the centre."""
    # Edges from permuted labels do not depend on the spikes.
    moved = _centre(values, edges) if spikes > complement else 0.0
    far = np.maximum(values - moved - edges[1], edges[0] + moved - values)
    far = np.maximum(far - margin, 0)
    inside = np.count_nonzero(far == 0) + spikes + complement - values.size
    centre = (values[far == 0].sum() + others) / max(inside, 1)
    return np.asarray(np.lexsort((-np.abs(values - centre), -far))[:spikes])


def few_spikes(directions: int, spikes: int) -> bool:
    """Return True if only the ends of the spectrum are computed, at a tenth of the cost."""
    return directions > 16 * spikes


def _eigenpairs(matrix: np.ndarray, spikes: int, seed: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Candidates for the leading eigenpairs, and the sum of all other eigenvalues."""
    if not few_spikes(len(matrix), spikes):
        return *np.linalg.eigh(matrix), 0.0
    from scipy.sparse.linalg import ArpackError, eigsh

    # Ranks grow outwards, so as many eigenpairs as spikes suffice at each end, in a tenth of the time.
    start = random_stream("drawn spikes", "start", seed).standard_normal(len(matrix))
    try:
        values, vectors = eigsh(matrix, k=2 * spikes, which="BE", tol=1e-4, v0=start)
    except ArpackError:  # eigenvalues too close to be separated by products of the matrix
        return *np.linalg.eigh(matrix), 0.0
    return values, vectors, float(np.trace(matrix) - values.sum())


def _centre(values: np.ndarray, edges: np.ndarray) -> float:
    """Centre of the bulk as a learner that does not know the spikes would estimate it."""
    bulk = np.ones(values.size, dtype=bool)
    while True:
        centre = float(values[bulk].mean())
        far = np.maximum(values - centre - edges[1], edges[0] + centre - values)
        beyond = bulk & (far > 0)
        taken = beyond & (far >= far[beyond].max(initial=0) / 2)
        if not taken.any() or taken.sum() == bulk.sum():
            return centre
        bulk &= ~taken


def _edges(
    sample: WeightedSample,
    heights: np.ndarray,
    n_samples: float,
    n_features: int,
    background: Background | None,
) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper edge with the learner's margin, and the background's share in each edge."""
    if not n_features:  # every direction is returned, whatever its eigenvalue
        return np.zeros(2), np.zeros(2)
    law = (sample, n_samples, n_features)
    upper, lower = both_sides(*law, background, heights)
    bare = (upper, lower) if background is None else both_sides(*law, None, heights)
    # Only the largest of a hundred eigenvalues of noise is more than 2.02 l beyond the edge.
    edges = [sign * (side.edge + 2.02 * side.scale) for sign, side, *_ in (lower, upper)]
    added = [sign * (side.edge - bare[sign < 0][1].edge) for sign, side, *_ in (lower, upper)]
    return np.array(edges), np.array(added)


def _deviation(rest: _Rest, background: Background, size: int) -> np.ndarray:
    """Standard deviations of the off-diagonal entries in the Gaussian part of the matrix."""
    p, n_features = len(rest.block), max(size, 1)
    variance = np.zeros((p + size, p + size), dtype=np.float32)
    variance[:p, :p] = rest.block
    variance[p:, p:] = rest.complement + background.variance / n_features
    variance[:p, p:] = (rest.rows + background.couplings / n_features)[:, None]
    variance[p:, :p] = variance[:p, p:].T
    return np.sqrt(variance)


def _moment(
    weights: np.ndarray,
    powers: np.ndarray,
    n_samples: int,
    n_complement: int,
    gaussian: bool,
    rng: np.random.Generator,
) -> np.ndarray:
    """Compute (1/n) sum_mu w_mu f_mu f_mu^T for drawn samples f = (h, g), |g|² = D - p or g normal."""
    p = powers.shape[1]
    rows = rng.standard_normal((weights.size, p + n_complement), dtype=np.float32)
    rows[:, :p] = np.sign(rows[:, :p]) * np.sqrt(powers)
    if not gaussian:
        norms = np.linalg.norm(rows[:, p:], axis=1, keepdims=True)
        rows[:, p:] *= np.sqrt(n_complement) / np.maximum(norms, 1e-30)
    return np.asarray((rows * (weights / n_samples).astype(np.float32)[:, None]).T @ rows)


def _largest(sample: WeightedSample, n_samples: int, kept: int) -> np.ndarray:
    """Atoms with the largest weights, to which a given number of n samples belongs."""
    order = np.argsort(-np.abs(sample.weights))
    if n_samples <= kept:
        return np.asarray(order)
    within = np.cumsum(sample.probabilities[order]) < kept / n_samples
    return np.asarray(order[: np.count_nonzero(within) + 1])


def _rest(sample: WeightedSample, largest: np.ndarray, n_samples: int) -> _Rest:
    """Moments of the samples that are not drawn, and the means of all samples."""
    chance = sample.probabilities.copy()
    chance[largest] = 0.0
    w, h2 = sample.weights, sample.powers
    block = (h2.T * (chance * w**2)) @ h2
    # Diagonal noise entries have twice the variance of the other entries, here Var(w h²).
    np.fill_diagonal(block, np.diag(block) - ((chance * w) @ h2) ** 2)
    block[np.diag_indices(len(block))] /= 2
    drawn = sample.probabilities - chance
    return _Rest(
        block / n_samples,
        (chance * w**2) @ h2 / n_samples,
        float(chance @ w**2) / n_samples,
        (drawn * w) @ h2,
        float(drawn @ w),
    )


def _levels(background: Background, size: int) -> tuple[np.ndarray, np.ndarray | None]:
    """Levels of the background, one per direction of the complement, and the levels' links."""
    order = np.argsort(background.atoms)
    copies = (((np.arange(size) + 0.5) / max(size, 1)) * order.size).astype(int)
    if background.links is None:
        return background.atoms[order][copies], None
    shared = np.bincount(copies, minlength=order.size)[copies]
    return background.atoms[order][copies], background.links[:, order][:, copies] / shared
