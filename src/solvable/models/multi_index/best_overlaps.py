"""Bayes-optimal overlaps of a sum of even links, by state evolution of all directions together."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from solvable.arrays import random_stream
from solvable.errors import InvalidParameter
from solvable.message_passing.channels import AdditiveChannel
from solvable.message_passing.evolution import StateEvolution, state_evolution
from solvable.message_passing.sum_channel import SumChannel

INFORMED = 0.95
"""Squared overlap with the true directions at which state evolution and message passing start."""


@dataclass(frozen=True)
class SumEvolution:
    """Fixed points of state evolution, and their potential, for all directions of a sum."""

    channel: AdditiveChannel
    draws: int = 64  # cavity means at which the information is averaged

    @cached_property
    def _output(self) -> SumChannel:
        return SumChannel(self.channel)

    @cached_property
    def _normals(self) -> np.ndarray:
        """Latin hypercube of standard normal numbers with second moment 1, shape (draws, p)."""
        from scipy.special import ndtri

        column = ndtri((np.arange(self.draws) + 0.5) / self.draws)
        column /= np.sqrt(np.mean(column**2))
        rng = random_stream("sum evolution")
        return np.stack([rng.permutation(column) for _ in range(self.channel.n_directions)], axis=1)

    def information(self, overlaps: np.ndarray) -> tuple[np.ndarray, float]:
        """Information about each direction, and the mean log evidence of a label."""
        return self._output.information(overlaps, self._normals)

    def fixed_point(
        self, ratio: float, start: np.ndarray, *, tolerance: float = 3e-4, most: int = 60
    ) -> tuple[np.ndarray, float]:
        """Iterate state evolution from these overlaps; return the fixed point and its potential."""
        q = np.array(start, dtype=float)
        for _ in range(most):
            # q = alpha E[g²] / (1 + alpha E[g²])   (multi-index 33)
            E, log_evidence = self.information(q)
            new = ratio * E / (1 + ratio * E)
            new[q == 0] = 0.0  # overlap 0 is a fixed point of even links
            change = np.abs(new - q).max()
            q = new
            if change < tolerance:
                break
        q[q < 10 * tolerance] = 0.0  # near a threshold the iteration is slow
        # potential alpha E[log p(y | omega)] + sum_k (q_k + log(1 - q_k)) / 2   (multi-index 34)
        return q, ratio * log_evidence + float(np.sum(q + np.log1p(-q))) / 2

    def gain(self, ratio: float, q: np.ndarray, k: int) -> float:
        """Factor by which one step of state evolution multiplies a small overlap of direction k."""
        small = 1e-3
        E = self.information(np.where(np.arange(q.size) == k, small, q))[0][k]
        return float(ratio * E / small)

    def best(self, ratio: float, start: np.ndarray) -> np.ndarray:
        """Overlaps of largest potential among those that leave out the weakest directions.

        `start` holds overlaps of at least those at this ratio, such as those at a larger ratio.
        """
        q, potential = self.fixed_point(ratio, start)
        found = np.flatnonzero(q)
        if not found.size or self.gain(ratio, q, int(found[-1])) > 1:
            return q
        # A jump may lose several directions at once.
        counts = sorted({*range(1, min(found.size, 3) + 1), found.size})
        for count in counts:
            fewer = q.copy()
            fewer[found[-count:]] = 0.0
            other, rival = self.fixed_point(ratio, fewer)
            if rival > potential:
                q, potential = other, rival
        return q


@dataclass(frozen=True)
class BestOverlaps:
    """Bayes-optimal overlaps on a descending grid of sample ratios, from the potential."""

    channel: AdditiveChannel
    ratios: np.ndarray  # sample ratios n/d, descending
    overlaps: np.ndarray  # squared overlaps q_k, shape (ratios, p)
    # ratio n/d above which the best estimator has a positive overlap; NaN if outside the grid
    threshold_ratio: np.ndarray

    def at(self, sample_ratio: float) -> np.ndarray:
        """Overlaps at a ratio within the grid, interpolated; shape (p,)."""
        x = np.log(sample_ratio)
        grid = np.log(self.ratios[::-1])
        if not grid[0] - 1e-9 <= x <= grid[-1] + 1e-9:
            raise InvalidParameter(
                f"sample_ratio is {sample_ratio:g}; allowed: {self.ratios[-1]:g} to {self.ratios[0]:g}."
            )
        # log(1 - q) is nearly linear in log(n/d) above the threshold
        found = [np.interp(x, grid, column[::-1]) for column in np.log1p(-self.overlaps).T]
        q = -np.expm1(found)
        return np.where(sample_ratio < self.threshold_ratio, 0.0, q)


STEP = 1.5
"""Factor between two sample ratios of the grid."""


@lru_cache(maxsize=32)
def best_overlaps(channel: AdditiveChannel, top: int) -> BestOverlaps:
    """Compute the Bayes-optimal overlaps at n/d = STEP^top and below, until every overlap is 0."""
    evolution = SumEvolution(channel)
    ratios, rows = [], []
    q = np.full(channel.n_directions, INFORMED)
    threshold = np.full(q.size, np.nan)
    for power in range(top, -40, -1):
        ratio = STEP**power
        before, q = q, evolution.best(ratio, q)
        ratios.append(ratio)
        rows.append(q)
        for k in np.flatnonzero((before > 0) & (q == 0)):
            if len(rows) > 1:
                threshold[k] = _threshold(evolution, ratio, q, before, int(k))
        if not q.any():
            break
    return BestOverlaps(channel, np.array(ratios), np.array(rows), threshold)


def _threshold(
    evolution: SumEvolution, low: float, lower: np.ndarray, start: np.ndarray, k: int
) -> float:
    """Ratio between `low` and the next of the grid at which the overlap of direction k becomes 0."""
    high = STEP * low
    gains = [
        evolution.gain(high, np.where(np.arange(start.size) >= k, 0.0, start), k),
        evolution.gain(low, lower, k),
    ]
    if gains[0] > 1 > gains[1]:
        # The overlap rises from 0 where the gain passes 1.
        share = np.log(gains[0]) / np.log(gains[0] / gains[1])
        return float(high * STEP**-share)
    for _ in range(5):  # The overlap jumps, where the potential of another fixed point is larger.
        middle = float(np.sqrt(low * high))
        low, high = (low, middle) if evolution.best(middle, start)[k] else (middle, high)
    return float(np.sqrt(low * high))


@lru_cache(maxsize=16)
def _alone(channel: AdditiveChannel) -> tuple[StateEvolution, ...]:
    nodes = 60 if channel.n_directions <= 16 else 11
    return tuple(
        state_evolution(AdditiveChannel((link,), (a,), channel.noise), nodes)
        for link, a in zip(channel.links, channel.amplitudes, strict=True)
    )


def oracle_overlaps(channel: AdditiveChannel, sample_ratio: float) -> np.ndarray:
    """Best overlap of each direction if all other directions are known; shape (p,)."""
    # The other terms are subtracted: y - sum_{j != k} a_j sigma(z_j) = a_k sigma(z_k) + sqrt(Delta) xi
    # (multi-index 35). Known directions never raise the error of the best estimator.
    return np.array([evolution.best_overlap(sample_ratio) for evolution in _alone(channel)])
