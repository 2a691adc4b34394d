"""Number all derivations of a grammar, and draw different ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from solvable.errors import InvalidParameter

PERMUTED = 5_000_000
"""Up to this many derivations all of them are permuted to draw some without replacement."""


def count_strings(classes: int, rules: int, branching: int, depth: int) -> int:
    """Number of derivations, which is that of different strings; exact (hierarchy 2)."""
    # P_max = n_c m^((s^L - 1) / (s - 1))
    return int(classes) * int(rules) ** count_choices(branching, depth)


def count_choices(branching: int, depth: int) -> int:
    """Number of rules that a derivation chooses."""
    return (branching**depth - 1) // (branching - 1)


def ranks_of(labels: np.ndarray, choices: Sequence[np.ndarray], rules: int) -> np.ndarray:
    """Number of each derivation: the label, then its rules in base m, top-down and left to right."""
    flat = np.concatenate([level.reshape(len(labels), -1) for level in choices], axis=1)
    exact = int(labels.max(initial=0) + 1) * rules ** flat.shape[1] <= 2**62
    total = labels.astype(np.int64 if exact else object)
    for column in flat.T:
        total = total * rules + column.astype(total.dtype)
    return np.asarray(total)


def choices_of(
    ranks: np.ndarray, rules: int, branching: int, depth: int
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Labels and rules of the derivations with these numbers; the inverse of :func:`ranks_of`."""
    sizes = [branching**level for level in range(depth)]
    digits = np.empty((len(ranks), sum(sizes)), dtype=np.int64)
    rest = ranks
    for place in range(sum(sizes) - 1, -1, -1):
        digits[:, place] = (rest % rules).astype(np.int64)
        rest = rest // rules
    return rest.astype(np.int64), np.split(digits, np.cumsum(sizes)[:-1], axis=1)


def different_ranks(n: int, total: int, rng: np.random.Generator) -> np.ndarray:
    """Draw n different numbers below a total of at most 2^62, in random order."""
    if n > total:
        raise InvalidParameter(
            f"{n} different strings were asked for and the grammar has {total}; allowed: at most "
            "that many, or replace=True."
        )
    if total <= PERMUTED or 3 * n > total:
        return np.asarray(rng.permutation(total)[:n])
    found = np.empty(0, dtype=np.int64)
    while found.size < n:
        more = rng.integers(0, total, size=int(1.2 * (n - found.size)) + 16)
        found = np.unique(np.concatenate([found, more]))
    return np.asarray(rng.permutation(found)[:n])
