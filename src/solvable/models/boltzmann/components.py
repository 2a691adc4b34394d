"""Overlaps of principal components of spiked data at a finite size, from their exact distribution."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from solvable.arrays import random_stream


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
