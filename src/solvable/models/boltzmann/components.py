"""Principal components of spiked data at a finite size: the exact law of their overlaps, drawn."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from solvable.arrays import random_stream


@lru_cache(maxsize=4096)
def drawn_components(
    spikes: tuple[float, ...], samples: int, dimension: int, components: int, draws: int = 64
) -> np.ndarray:
    """Cosine of each spike with the span of the leading components, shape (draws, spikes).

    Rotations of samples and of the space beside the spikes leave a chain of blocks (Householder), of
    which the leading components fill the beginning alone.
    """
    r, d, n = len(spikes), dimension, samples
    # They reach (n d / (sqrt(n) + sqrt(d))^2)^(1/3) blocks deep where they are at the edge (Airy).
    depth = (n * d / (np.sqrt(n) + np.sqrt(d)) ** 2) ** (1 / 3)
    blocks = min(round(7 * depth + 10), min(n, d) // r)
    rng = random_stream("principal components", r)
    found = np.empty((draws, r))
    for draw in range(draws):
        vectors = _leading(_chain(spikes, n, d, blocks, rng), components)
        found[draw] = np.linalg.norm(vectors[:r], axis=1)
    return found


def _chain(
    spikes: tuple[float, ...], n: int, d: int, blocks: int, rng: np.random.Generator
) -> np.ndarray:
    """Lower bands of X^T X in the basis of the chain, shape (2 r, blocks r)."""
    r = len(spikes)
    # R of a Gaussian matrix of N rows: chi_(N - i) on the diagonal, normal above it (Bartlett)
    depth = r * np.arange(blocks)[:, None] + np.arange(r)
    R = np.triu(rng.standard_normal((blocks, r, r)), 1)
    L = np.tril(rng.standard_normal((blocks, r, r)), -1)
    places = np.arange(r)
    R[:, places, places] = np.sqrt(rng.chisquare(np.maximum(n - depth, 1)))
    L[:, places, places] = np.sqrt(rng.chisquare(np.maximum(d - r - depth, 1)))
    # The first block holds the spikes: U Lambda^(1/2) + Z, with U^T U / n = 1 up to n^(-1/2)
    common = np.sqrt(n) * rng.standard_normal((r, r))
    U = np.linalg.cholesky(n * np.eye(r) + np.tril(common, -1) + np.tril(common, -1).T).T
    first = U * np.sqrt(spikes) + rng.standard_normal((r, r))
    rest = np.triu(rng.standard_normal((r, r)), 1)
    rest[places, places] = np.sqrt(rng.chisquare(np.maximum(n - r - places, 1)))
    R[0] = np.linalg.cholesky(first.T @ first + rest.T @ rest).T
    diagonal = np.swapaxes(R, 1, 2) @ R
    diagonal[1:] += np.swapaxes(L[:-1], 1, 2) @ L[:-1]
    beside = np.swapaxes(np.swapaxes(R[:-1], 1, 2) @ L[:-1], 1, 2)
    bands = np.zeros((2 * r, blocks * r))
    for row in range(r):
        for column in range(r):
            if row >= column:
                bands[row - column, column::r] = diagonal[:, row, column]
            bands[r + row - column, column : (blocks - 1) * r : r] = beside[:, row, column]
    return bands


def _leading(bands: np.ndarray, count: int) -> np.ndarray:
    """Eigenvectors of the largest eigenvalues of a banded matrix."""
    size = bands.shape[1]
    chosen = (max(size - count, 0), size - 1)
    if len(bands) == 2:
        from scipy.linalg import eigh_tridiagonal

        return np.asarray(
            eigh_tridiagonal(bands[0], bands[1, :-1], select="i", select_range=chosen)[1]
        )
    from scipy.linalg import eig_banded

    return np.asarray(eig_banded(bands, lower=True, select="i", select_range=chosen)[1])
