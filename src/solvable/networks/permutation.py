"""Whether the strongest direction of a filter is told from chance, by permuted labels."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from solvable.networks.significance import largest_outside
from solvable.operators.signals import SignalOperators

DRAWS = 99
"""Permutations of the labels of which none may have as strong a direction: a level of 1 %."""


def stands_out(
    signals: SignalOperators,
    permuted: Callable[[int], SignalOperators],
    linear: np.ndarray,
    seed: int,
) -> bool:
    """Whether the strongest direction of any signal exceeds that of all permutations of the labels."""

    def logarithms(operators: SignalOperators) -> np.ndarray:
        strengths = [
            largest_outside(operators.centred(signal, single=True), linear, seed)
            for signal in range(operators.n_signals)
        ]
        with np.errstate(divide="ignore"):
            return np.log(strengths)

    measured = logarithms(signals)
    known = np.isfinite(measured)  # a class without rows has no strength
    if not known.any():
        return False
    scale, drawn = 5, []
    for draw in range(DRAWS):
        drawn.append(logarithms(permuted(draw))[known])
        table = np.array(drawn)
        # One test for all signals: the largest of their ratios, each over its own first draws.
        usual = table[:scale].mean(axis=0)
        if np.any((table - usual).max(axis=1) >= (measured[known] - usual).max()):
            return False
        if len(table) in (scale, 10, 20) and _is_beyond_doubt(measured[known], table):
            return True
    return True


def _is_beyond_doubt(measured: np.ndarray, drawn: np.ndarray) -> bool:
    """Whether no more draws are needed, by the scatter of those at hand."""
    from scipy.special import stdtr

    # Logarithms of the null scatter by .1 to .6, most in tables whose labels have heavy tails; the
    # prior is six draws that scatter by .25. With t = (x - m) / (s sqrt(1 + 1 / B)), p times the
    # number of signals below 3e-4: over 48 tables without signal, .2 % of 5,760 draws.
    count = len(drawn)
    freedom = 6 + count - 1
    variance = (6 * 0.25**2 + (count - 1) * drawn.var(axis=0, ddof=1).mean()) / freedom
    distance = (measured - drawn.mean(axis=0)).max() / np.sqrt(variance * (1 + 1 / count))
    return bool(measured.size * stdtr(freedom, -distance) < 3e-4)
