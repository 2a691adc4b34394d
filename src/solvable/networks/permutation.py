"""Permutation tests of the strongest direction of a filter and of its first moments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from solvable.arrays import Array, as_on, to_numpy
from solvable.networks.significance import Product, largest_outside
from solvable.operators.signals import SignalOperators, side_by_side

DRAWS = 99
"""Number of permutations; a direction stronger than in all of them is significant at the 1 % level."""

KEPT_DRAWS = 19
"""Number of permutations; a direction stronger than in all of them is kept (5 % level)."""

SCALE = 5
"""Number of permutations in a batch; the first batch gives the typical null strength of each signal."""


@dataclass(frozen=True)
class Permutations:
    """Moments of the features with permuted labels."""

    rows: Callable[[], Array]  # function that returns the features, shape (n, P)
    weights: Callable[
        [Sequence[int]], np.ndarray
    ]  # label weights of the given draws: one column per signal, draw by draw

    def product(self, draws: Sequence[int]) -> Product:
        """Product with the second moments of several draws, one column per draw and signal."""
        return side_by_side(self.rows(), self.weights(draws))

    def first_moments(self, draws: Sequence[int]) -> np.ndarray:
        """Label-weighted means of the features, shape (draws, P, signals)."""
        rows, weights = self.rows(), self.weights(draws)
        weights = weights - weights.mean(axis=0)
        means = to_numpy(rows.T @ as_on(weights, rows)).astype(np.float64) / len(weights)
        return np.moveaxis(means.reshape(len(means), len(draws), -1), 1, 0)


def draws_exceeded(
    signals: SignalOperators, permuted: Permutations, linear: np.ndarray, seed: int
) -> int:
    """Count the permutations, up to ``DRAWS``, before one gives an equally strong direction."""
    number = signals.n_signals
    strengths = [
        largest_outside(signals.centred(signal, single=True), linear, 1, seed)[0]
        for signal in range(number)
    ]
    with np.errstate(divide="ignore"):
        measured = np.log(strengths)
    known = np.isfinite(measured)  # a class without rows has no strength
    if not known.any():
        return 0
    drawn = np.empty((0, number))
    for first in range(0, DRAWS, SCALE):
        draws = range(first, min(first + SCALE, DRAWS))
        largest = largest_outside(permuted.product(draws), linear, number * len(draws), seed)
        with np.errstate(divide="ignore"):
            drawn = np.vstack([drawn, np.log(largest).reshape(-1, number)])
        table = drawn[:, known]
        # One test for all signals: the largest ratio, each signal relative to its first draws.
        usual = table[:SCALE].mean(axis=0)
        as_strong = (table - usual).max(axis=1) >= (measured[known] - usual).max()
        if as_strong.any():
            return int(np.argmax(as_strong))
        if len(table) in (SCALE, 10, 20) and _is_beyond_doubt(measured[known], table):
            break
    return DRAWS


def linear_ratios(moments: np.ndarray, drawn: np.ndarray) -> tuple[np.ndarray, int, np.ndarray]:
    """Ratios of the first moments (P, S) to those of draws (B, P, S): singular values, and lengths."""
    sizes = np.linalg.svd(moments, compute_uv=False)
    largest = np.sqrt(np.maximum(np.linalg.eigvalsh(drawn.transpose(0, 2, 1) @ drawn)[:, -1], 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        # Keep singular values above the first KEPT_DRAWS; the second result counts those above all.
        ratios = sizes[sizes > largest[:KEPT_DRAWS].max()] / largest.mean()
        lengths = np.linalg.norm(drawn, axis=1).mean(axis=0)
        by_signal = np.where(lengths > 0, np.linalg.norm(moments, axis=0) / lengths, 0.0)
    return np.asarray(ratios), int(np.sum(sizes > largest.max())), np.asarray(by_signal)


def _is_beyond_doubt(measured: np.ndarray, drawn: np.ndarray) -> bool:
    """Return True if the draws so far decide the test, so that no more draws are needed."""
    from scipy.special import stdtr

    # Log null strengths have standard deviations of 0.1 to 0.6, the largest for labels with heavy tails.
    # Prior: six draws with standard deviation 0.25. Stop if p of t = (x - m) / (s sqrt(1 + 1 / B)) times
    # the number of signals is below 3e-4; over 48 tables without signal this stopped 0.2 % of 5,760.
    count = len(drawn)
    freedom = 6 + count - 1
    variance = (6 * 0.25**2 + (count - 1) * drawn.var(axis=0, ddof=1).mean()) / freedom
    distance = (measured - drawn.mean(axis=0)).max() / np.sqrt(variance * (1 + 1 / count))
    return bool(measured.size * stdtr(freedom, -distance) < 3e-4)
