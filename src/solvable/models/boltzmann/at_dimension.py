"""Predict overlaps of a Boltzmann machine in a finite dimension, or give the reason for no prediction."""

from __future__ import annotations

from functools import lru_cache
from math import gamma

import numpy as np

from solvable.arrays import random_stream
from solvable.models.boltzmann.evolution import bulk_edge, component_overlap, outlier, unit_state
from solvable.models.boltzmann.parameters import BoltzmannParameters
from solvable.models.boltzmann.phase import Phase


def component_overlaps(
    strengths: tuple[float, ...], parameters: BoltzmannParameters, count: int
) -> np.ndarray:
    """Cosine of each spike with the span of `count` leading components, shape (draws, spikes)."""
    size = (strengths, parameters.samples, parameters.dimension, count)
    drawn = drawn_components(*size, draws=24)
    scatter = float(drawn.std(axis=0).max())
    # more draws near the threshold and for nearly equal spikes, where the cosines scatter more
    return drawn if scatter < 0.04 else drawn_components(*size, draws=400 if scatter > 0.12 else 96)


def too_near(phase: Phase, parameters: BoltzmannParameters, ratio: float) -> str:
    """Reason why the limit does not predict the overlaps at this size; empty if the limit does."""
    d, c = parameters.dimension, 1 + parameters.weight_decay
    if phase.reason and phase.norm is None:
        return ""
    replicon = phase.replicon or 0.0
    # above this replicon some samples are unstable (measured at d = 100 to 1,000)
    limit = 1 - 3 * d ** (-1 / 3)
    if replicon > limit:
        return (
            f"unstable in some samples: the replicon is {replicon:.2g}; allowed at dimension {d}: up to "
            f"{max(limit, 0):.2g}. Raise dimension, sample_ratio or spike."
        )
    learnt = sorted(parameters.strengths)[::-1][: parameters.hidden_units]
    places = [outlier(strength, ratio) for strength in learnt]
    if phase.shared:
        places = places[:1]
    elif parameters.hidden_units > len(places):
        places.append(bulk_edge(ratio))
    # an eigenvalue s of the sample covariance has the standard deviation s (2 / n)^(1/2)
    scatter = np.sqrt(2 / parameters.samples)
    if parameters.weight_decay and any(abs(s - c) < 2.5 * scatter * s for s in places):
        return (
            f"weight_decay is {parameters.weight_decay:g}, for which weights vanish in some samples and "
            "not in others: an eigenvalue of the sample covariance, "
            f"{min(places, key=lambda s: abs(s - c)):.3g}, is within 2.5 standard deviations of "
            "1 + weight_decay. Change weight_decay, or raise dimension."
        )
    return ""


def overlaps_of(
    phase: Phase, parameters: BoltzmannParameters, ratio: float
) -> tuple[list[float | None], str]:
    """Overlaps in a finite dimension, or the reason why overlaps are not predicted."""
    strengths, d = parameters.strengths, parameters.dimension
    overlap: list[float | None] = [None] * len(strengths)
    for spike, unit in zip(phase.spikes, phase.units, strict=True):
        limit = component_overlap(strengths[spike], ratio)
        if unit.q > 0:
            # times the finite-size ratio for the spike's own principal component alone: components mix
            # nearly equal spikes, whereas sign units separate them
            alone = component_overlaps(strengths[spike : spike + 1], parameters, 1)
            rounding = float(alone.mean()) / limit
            overlap[spike] = min(float(unit.overlap) * rounding, 1.0)
    others = [spike for spike in range(len(strengths)) if spike not in phase.spikes]
    if others:
        drawn = component_overlaps(strengths, parameters, len(phase.spikes))
        least = drawn[:, list(phase.spikes)].min(axis=1)
        if (drawn[:, others].max(axis=1) > least).any():
            return [None] * len(strengths), (
                "there are fewer units than spikes, and the spikes are so close at this dimension that "
                "the units may learn any of them. Raise dimension or hidden_units."
            )
        if parameters.algorithm == "gradient" and _trapped(phase, parameters, ratio, others):
            return [None] * len(strengths), (
                "gradient ascent from a random start may stop at a weaker spike. Set algorithm=amp, "
                "which starts at the principal components, or raise hidden_units."
            )
    for spike in others:
        # variances (1 - zeta²) (1 + lambda_b) / d / (1 - V lambda_b alpha E[g'])² of the units, and the
        # mean norm of k Gaussian numbers, s sqrt(2) Gamma((k + 1) / 2) / Gamma(k / 2)   (boltzmann 13)
        k, strength = len(phase.units), strengths[spike]
        chance = sum(
            (1 - unit.overlap**2) * (1 + strength) / d / (1 - unit.V * strength * unit.slope) ** 2
            for unit in phase.units
        )
        overlap[spike] = float(np.sqrt(2 * chance / k)) * gamma((k + 1) / 2) / gamma(k / 2)
    return overlap, ""


def _trapped(
    phase: Phase, parameters: BoltzmannParameters, ratio: float, others: list[int]
) -> bool:
    """Return True if a unit that has learned a weaker spike would stay there."""
    weakest = min(unit.spike for unit in phase.units)
    for spike in others:
        unit = unit_state(
            parameters.strengths[spike], ratio, parameters.weight_decay, partner=phase.shared
        )
        if unit.V * weakest * unit.slope < 1:
            return True
    return False


@lru_cache(maxsize=4096)
def drawn_components(
    spikes: tuple[float, ...], samples: int, dimension: int, components: int, draws: int = 64
) -> np.ndarray:
    """Draw cosines of each spike with the span of the leading components, shape (draws, spikes)."""
    # Householder rotations reduce the covariance to a chain of blocks   (boltzmann 10); leading
    # components are concentrated on the first blocks
    r, d, n = len(spikes), dimension, samples
    # number of blocks: the Airy scale (n d / (sqrt(n) + sqrt(d))²)^(1/3) at the edge of the spectrum
    depth = (n * d / (np.sqrt(n) + np.sqrt(d)) ** 2) ** (1 / 3)
    blocks = min(round(7 * depth + 10), min(n, d) // r)
    cosines = np.empty((draws, r))
    for draw in range(draws):
        # use the same random numbers at every size, which makes curves smooth
        rng = random_stream("principal components", r, draw)
        vectors = _leading(_chain(spikes, n, d, blocks, rng), components)
        cosines[draw] = np.linalg.norm(vectors[:r], axis=1)
    return cosines


def _chain(
    spikes: tuple[float, ...], n: int, d: int, blocks: int, rng: np.random.Generator
) -> np.ndarray:
    """Lower bands (2 r, blocks r) of X^T X in the basis of the block chain (boltzmann 10)."""
    r = len(spikes)
    common, start, rest = rng.standard_normal((3, r, r))
    normals = rng.standard_normal((blocks, 2, r, r))
    # R factor of a Gaussian matrix with N rows: chi_(N - i) on the diagonal, normal above (Bartlett)
    depth = r * np.arange(blocks)[:, None] + np.arange(r)
    R = _triangles(np.swapaxes(normals[:, 0], 1, 2), n - depth)
    L = np.swapaxes(_triangles(normals[:, 1], d - r - depth), 1, 2)
    # the first block contains the spikes, U Lambda^(1/2) + Z with U^T U / n = I + O(n^(-1/2))
    correlations = np.sqrt(n) * (np.tril(common, -1) + np.tril(common, -1).T)
    U = np.linalg.cholesky(n * np.eye(r) + correlations).T
    first = U * np.sqrt(spikes) + start
    below = _triangles(rest[None], n - r - np.arange(r)[None])[0]
    R[0] = np.linalg.cholesky(first.T @ first + below.T @ below).T
    diagonal = np.swapaxes(R, 1, 2) @ R
    diagonal[1:] += np.swapaxes(L[:-1], 1, 2) @ L[:-1]
    below_diagonal = np.swapaxes(np.swapaxes(R[:-1], 1, 2) @ L[:-1], 1, 2)
    bands = np.zeros((2 * r, blocks * r))
    for row in range(r):
        for column in range(r):
            if row >= column:
                bands[row - column, column::r] = diagonal[:, row, column]
            bands[r + row - column, column : (blocks - 1) * r : r] = below_diagonal[:, row, column]
    return bands


def _triangles(normals: np.ndarray, degrees: np.ndarray) -> np.ndarray:
    """Turn normal numbers (blocks, r, r) into upper triangles with chi variables on the diagonal."""
    places, kept = np.arange(normals.shape[1]), np.maximum(degrees, 1)
    triangles = np.triu(normals, 1)
    # chi² = k (1 - 2 / (9 k) + z (2 / (9 k))^(1/2))³ (Wilson and Hilferty)
    share = 2 / (9 * kept)
    root = np.maximum(1 - share + normals[:, places, places] * np.sqrt(share), 0)
    triangles[:, places, places] = np.sqrt(kept * root**3)
    return triangles


def _leading(bands: np.ndarray, count: int) -> np.ndarray:
    """Eigenvectors of a banded matrix for the largest eigenvalues."""
    size = bands.shape[1]
    chosen = (max(size - count, 0), size - 1)
    from scipy.linalg import eig_banded

    return np.asarray(eig_banded(bands, lower=True, select="i", select_range=chosen)[1])
