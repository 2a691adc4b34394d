"""Bayes-optimal overlaps of a sum of even links, by state evolution of all directions together."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from solvable.arrays import random_stream
from solvable.inference.curve import Curve
from solvable.inference.outputs import Output
from solvable.inference.priors import Gaussian, Prior
from solvable.message_passing.channels import AdditiveChannel
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
        self, ratio: float, start: np.ndarray, *, tolerance: float = 1e-3, most: int = 60
    ) -> tuple[np.ndarray, float]:
        """Iterate state evolution from these overlaps; return the fixed point and its potential."""
        q = np.array(start, dtype=float)
        for _ in range(most):
            # q = alpha E[g²] / (1 + alpha E[g²])   (multi-index 34)
            E, log_evidence = self.information(q)
            new = ratio * E / (1 + ratio * E)
            new[q == 0] = 0.0  # overlap 0 is a fixed point of even links
            # relative to 1 - q, since errors near q = 1 are proportional to it
            change = np.abs((new - q) / (1.0001 - new)).max()
            q = new
            if change < tolerance:
                break
        q[q < 3 * tolerance] = 0.0  # near a threshold the iteration is slow
        # potential alpha E[log p(y | omega)] + sum_k (q_k + log(1 - q_k)) / 2   (multi-index 35)
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
        # At a jump the weakest direction is lost, or all directions of equal amplitude at once.
        for count in {1, found.size}:
            fewer = q.copy()
            fewer[found[-count:]] = 0.0
            other, rival = self.fixed_point(ratio, fewer)
            if rival > potential:
                q, potential = other, rival
        return q


STEP = 1.5
"""Factor between two sample ratios of the grid."""


@dataclass(frozen=True)
class BestOverlaps:
    """Bayes-optimal overlaps on a descending grid of sample ratios."""

    ratios: np.ndarray  # sample ratios n/d, descending
    overlaps: np.ndarray  # squared overlaps q_k, shape (ratios, p)
    # ratio n/d above which the best estimator has a positive overlap, NaN if it is not on the grid
    threshold_ratio: np.ndarray
    onset: np.ndarray  # overlap just above the threshold; 0 where the overlap rises continuously

    def at(self, sample_ratio: float) -> np.ndarray:
        """Overlaps at a ratio that is at most the largest of the grid, interpolated; shape (p,)."""
        found = np.zeros(self.threshold_ratio.size)
        x, grid = np.log(sample_ratio), np.log(self.ratios[::-1])
        for k, column in enumerate(self.overlaps.T):
            positive = column[::-1] > 0
            places, values = grid[positive], column[::-1][positive]
            if np.isfinite(self.threshold_ratio[k]):
                if sample_ratio <= self.threshold_ratio[k]:
                    continue
                places = np.append(np.log(self.threshold_ratio[k]), places)
                values = np.append(self.onset[k], values)
            if values.size:
                # log(1 - q) is nearly linear in log(n/d) above the threshold
                found[k] = -np.expm1(np.interp(x, places, np.log1p(-values)))
        return found


@lru_cache(maxsize=32)
def best_overlaps(channel: AdditiveChannel, top: int) -> BestOverlaps:
    """Compute the Bayes-optimal overlaps at n/d = STEP^top and below, until every overlap is 0."""
    evolution = SumEvolution(channel)
    ratios, rows = [], []
    q = np.full(channel.n_directions, INFORMED)
    threshold, onset = np.full((2, q.size), np.nan)
    for power in range(top, -40, -1):
        ratio = STEP**power
        before, q = q, evolution.best(ratio, q)
        ratios.append(ratio)
        rows.append(q)
        for k in np.flatnonzero((before > 0) & (q == 0)):
            if len(rows) > 1:
                threshold[k], onset[k] = _onset(evolution, ratio, q, before, int(k))
        if not q.any():
            break
    # The best estimator is at least as good as second moments; quadrature errors may suggest otherwise.
    threshold = np.minimum(threshold, channel.moments.weak_recovery_ratio)
    return BestOverlaps(np.array(ratios), np.array(rows), threshold, onset)


def _onset(
    evolution: SumEvolution, low: float, lower: np.ndarray, start: np.ndarray, k: int
) -> tuple[float, float]:
    """Ratio above `low` at which the best overlap of direction k becomes positive, and its value."""
    high = STEP * low
    without = np.where(np.arange(start.size) >= k, 0.0, start)
    gains = evolution.gain(high, without, k), evolution.gain(low, lower, k)
    if gains[0] > 1 > gains[1]:
        # The overlap rises from 0 where the gain passes 1.
        share = np.log(gains[0]) / np.log(gains[0] / gains[1])
        return float(high * STEP**-share), 0.0
    value = float(start[k])
    for _ in range(5):  # The overlap jumps, where the potential of another fixed point is larger.
        middle = float(np.sqrt(low * high))
        q = evolution.best(middle, start)
        low, high, value = (low, middle, float(q[k])) if q[k] else (middle, high, value)
    return float(np.sqrt(low * high)), value


GAUSSIAN = Gaussian()


def direction_output(channel: AdditiveChannel, k: int = 0) -> Output:
    """Output of direction k, in units of its amplitude, if all other directions are known."""
    # y - sum_{j != k} a_j sigma(z_j) = a_k sigma(z_k) + sqrt(Delta) xi   (multi-index 36)
    return Output.from_link(channel.links[k], noise=channel.noise / channel.amplitudes[k] ** 2)


@lru_cache(maxsize=256)
def direction_curve(
    channel: AdditiveChannel, k: int = 0, prior: Prior = GAUSSIAN, nodes: int | None = None
) -> Curve:
    """Fixed points of direction k, whose entries have a prior, if all other directions are known."""
    return Curve(prior, direction_output(channel, k), nodes)


def oracle_overlaps(channel: AdditiveChannel, sample_ratio: float) -> np.ndarray:
    """Best overlap of each direction if all other directions are known; shape (p,)."""
    # Known directions never raise the error of the best estimator. With 11 nodes overlaps have errors up
    # to 0.02.
    nodes = None if channel.n_directions <= 16 else 11
    curves = (direction_curve(channel, k, nodes=nodes) for k in range(channel.n_directions))
    return np.array([curve.overlap(sample_ratio, "best") for curve in curves])


def weighted_error(channel: AdditiveChannel, overlaps: np.ndarray) -> float:
    """Weighted error sum_k a_k² (1 - rho_k²) of the subspace."""
    return float(np.array(channel.amplitudes) ** 2 @ (1 - overlaps))  # (multi-index 23)


@lru_cache(maxsize=16)
def _oracle_errors(channel: AdditiveChannel) -> tuple[np.ndarray, np.ndarray]:
    """Sample ratios and weighted errors of the oracle bound."""
    ratios = np.geomspace(1e-2, 1e6, 241)
    errors = np.array([weighted_error(channel, oracle_overlaps(channel, r)) for r in ratios])
    return ratios[errors > 0], errors[errors > 0]


def oracle_ratio(channel: AdditiveChannel, error: np.ndarray | float) -> np.ndarray:
    """Sample ratio at which the oracle bound has this weighted error."""
    ratios, errors = _oracle_errors(channel)
    return np.exp(np.interp(-np.log(error), -np.log(errors), np.log(ratios)))
