"""Overlap of spikes with a given number of eigenvectors, near the edges of a finite spectrum."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

import numpy as np

from solvable.arrays import random_stream
from solvable.spectra._spectrum_end import EdgeArrow

Ranking: TypeAlias = Literal["centre", "permuted", "modulus"]
"""Order in which a learner takes eigenvectors."""

DRAWS = 128
"""number of random spectra in the average; the error is 0.02 where overlaps fluctuate most"""


MOST = 16
"""number of spikes at an end that are treated jointly; other spikes are treated one by one"""


@dataclass(frozen=True)
class EdgeSpikes:
    """Spikes near the edge at one end of the spectrum."""

    arrow: EdgeArrow
    excess: np.ndarray
    near: np.ndarray  # spikes that couple to single eigenvalues of the noise
    scatter: np.ndarray  # variance of each entry of the spikes' block
    scale: float  # spacing l of the noise eigenvalues at the edge
    edge: float  # distance of the edge from the centre of the spectrum
    margin: float  # error of the learner's edge; eigenvalues within this distance count as noise
    # expected squared component of each spike in one eigenvector at the other end
    other: np.ndarray | float = 0.0
    ranking: Ranking = "centre"

    def rank(self, beyond: np.ndarray, outmost: float, permuted: np.ndarray) -> np.ndarray:
        """Key that ranks eigenvalues at a distance beyond the edge, for all draws."""
        if self.ranking == "modulus":
            return self.edge + beyond
        if self.ranking == "permuted":
            return beyond - permuted[:, None]
        # distance beyond an edge with margin, else from the centre
        # In a skewed bulk, a spike beyond the shorter end ranks after all values of the longer end.
        clear = beyond - self.margin
        return np.where(clear > 0, outmost + clear, self.edge + beyond)


def nearest(excess: np.ndarray) -> np.ndarray:
    """The sixteen spikes closest to their threshold, in their original order."""
    # Spikes are sorted so that each spike gets the same draws at all sample sizes: curves are smooth.
    return np.sort(np.argsort(np.abs(excess), kind="stable")[:MOST])


def span_overlaps(
    upper: EdgeSpikes, lower: EdgeSpikes, *, n_directions: int, n_features: int, draws: int = DRAWS
) -> list[np.ndarray]:
    """Mean squared overlap of spikes near their threshold with the span of the first eigenvectors."""
    sides = (upper, lower)
    # Each other spike beyond the threshold takes one direction.
    taken = [np.delete(side.excess, side.near) > 0 for side in sides]
    slots = max(n_directions - int(np.concatenate(taken).sum()), 1)
    single = int(np.clip(min(slots, MOST) + 8, 1, max(n_features // 3, 1)))
    found = [_eigenpairs(side, single, end, draws) for end, side in enumerate(sides)]
    outmost = max(side.edge + side.margin for side in sides)
    # Another draw of the noise is the spectrum with permuted labels.
    edges = np.roll(_edge_points(single, draws)[0][:, :, 0], 1, axis=1)
    ranks = [
        side.rank(at, outmost, side.scale * edge)
        for side, (at, _), edge in zip(sides, found, edges, strict=True)
    ]
    places = np.concatenate(ranks, axis=1)
    # If there are more directions than computed eigenvalues, the remaining directions overlap by chance.
    shown = min(slots, places.shape[1] if slots <= MOST else single)
    rank = places.shape[1] - shown
    cut = np.partition(places, rank, axis=1)[:, rank, None, None]
    chance = min((slots - shown) / n_features, 1.0)
    overlaps = []
    kept = [at >= cut[:, 0] for at in ranks]
    shares = [w * k[:, None, :] for (_, w), k in zip(found, kept, strict=True)]
    # number of kept eigenvectors, without their parts along the spikes
    noise = [
        float(k.sum(axis=1).mean() - s.sum(axis=(1, 2)).mean())
        for k, s in zip(kept, shares, strict=True)
    ]
    for side, share, opposite in zip(sides, shares, reversed(noise), strict=True):
        mean = np.full(side.excess.size, np.nan)
        held = np.mean(np.sum(share, axis=2), axis=0)
        held = held + (np.zeros(side.excess.size) + side.other)[side.near] * opposite
        mean[side.near] = held + (1 - held) * chance
        overlaps.append(mean)
    return overlaps


def _eigenpairs(
    side: EdgeSpikes, single: int, end: int, draws: int
) -> tuple[np.ndarray, np.ndarray]:
    """Distances beyond the edge, and weights on the spikes, for all draws."""
    points, normal = _edge_points(single, draws)
    p = side.near.size
    heights, metric, couplings = (
        values[side.near] for values in side.arrow.without(airy_depth(single), side.scale)
    )
    block, rows = normal[end, :, :p, :p], normal[end, :, :p, MOST:]
    H = np.zeros((draws, p + single, p + single))
    # random symmetric block with these variances around the heights
    H[:, :p, :p] = (block + block.transpose(0, 2, 1)) / np.sqrt(2)
    H[:, :p, :p] *= np.sqrt(side.scatter)
    spikes, inner = np.arange(p), np.arange(p, p + single)
    H[:, spikes, spikes] = H[:, spikes, spikes] / np.sqrt(2) + heights
    H[:, :p, p:] = np.sqrt(couplings)[:, None] * rows
    H[:, p:, :p] = H[:, :p, p:].transpose(0, 2, 1)
    H[:, inner, inner] = side.scale * points[end]
    root = np.ones(p + single)
    root[:p] = metric**-0.5
    values, vectors = np.linalg.eigh(H * root[:, None] * root)
    return values, vectors[:, :p] ** 2 / metric[:, None]


def airy_depth(count: int) -> float:
    """Depth t below the edge that contains N(t) = (2 / 3 pi) t^(3/2) points, for a given N."""
    return float((1.5 * np.pi * count) ** (2 / 3))


@lru_cache(maxsize=8)
def _edge_points(count: int, draws: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw both ends of GOE spectra on the scale of the Airy process, and Gaussian couplings to them."""
    size = 4 * count + 60
    rng = random_stream("edge ensemble", count)
    root = rng.standard_normal((draws, size, size))
    root = root + root.transpose(0, 2, 1)
    root /= np.sqrt(2 * size)
    values = np.linalg.eigvalsh(root)
    ends = np.stack([values[:, ::-1][:, :count], -values[:, :count]])
    # N F(lambda) = (2 / 3 pi) t^(3/2) for the semicircle distribution F; beyond the edge the same scale
    inside = np.clip(ends, -2, 2)
    above = size * (np.arccos(inside / 2) - inside / 4 * np.sqrt(4 - inside**2)) / np.pi
    t = (1.5 * np.pi * above) ** (2 / 3)
    points = np.where(ends > 2, size ** (2 / 3) * (ends - 2), -t)
    return points, rng.standard_normal((2, draws, MOST, MOST + count))
