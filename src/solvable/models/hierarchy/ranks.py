"""Number all derivations of a grammar, and draw different ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from solvable.arrays import is_integer
from solvable.errors import InvalidData
from solvable.models.hierarchy.derivations import as_array

LARGEST_INT64 = 2**62
"""Numbers below this one are kept as 64-bit integers, larger ones as Python integers."""


def count_strings(classes: int, rules: int, branching: int, depth: int) -> int:
    """Number of derivations, which is that of different strings; exact (hierarchy 2)."""
    # P_max = n_c m^((s^L - 1) / (s - 1))
    return int(classes) * int(rules) ** count_choices(branching, depth)


def count_choices(branching: int, depth: int) -> int:
    """Number of rules that a derivation chooses."""
    return int((branching**depth - 1) // (branching - 1))


def rank_type(total: int) -> type:
    """Type of the numbers below a total: 64-bit integers, or Python integers where these overflow."""
    return np.int64 if total <= LARGEST_INT64 else object


def checked_ranks(ranks: np.ndarray | Sequence[int], total: int) -> np.ndarray:
    """Return numbers of derivations in their type, after checking that they are below the total."""
    numbers = as_array(ranks, "the ranks")
    whole = numbers.dtype.kind in "iu" or all(is_integer(one, -1) for one in numbers.flat)
    if not whole or numbers.ndim != 1:
        raise InvalidData(
            f"the ranks have shape {numbers.shape} and type {numbers.dtype}; allowed: a vector of "
            "whole numbers."
        )
    if numbers.size and (numbers.min() < 0 or numbers.max() >= total):
        raise InvalidData(
            f"the ranks reach from {written(numbers.min())} to {written(numbers.max())}; allowed: 0 "
            f"to {written(total - 1)}."
        )
    return np.asarray(numbers.astype(rank_type(total)))


def ranks_of(
    labels: np.ndarray, choices: Sequence[np.ndarray], rules: int, classes: int
) -> np.ndarray:
    """Number of each derivation: the label, then its rules in base m, top-down and left to right."""
    numbers = np.concatenate(choices, axis=1)
    scale = rules ** numbers.shape[1]
    numbers = numbers.astype(np.int64)
    # Join neighbouring digits until one is left: few passes, and short Python integers in most of them.
    base = rules
    while numbers.shape[1] > 1:
        if numbers.shape[1] % 2:
            numbers = np.concatenate([np.zeros_like(numbers[:, :1]), numbers], axis=1)
        if min(base * base, scale) > LARGEST_INT64:
            numbers = numbers.astype(object)
        numbers = numbers[:, ::2] * base + numbers[:, 1::2]
        base = base * base
    return np.asarray(labels.astype(rank_type(classes * scale)) * scale + numbers[:, 0])


def choices_of(
    ranks: np.ndarray, rules: int, branching: int, depth: int
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Labels and rules of the derivations with these numbers; the inverse of :func:`ranks_of`."""
    # The numbers have the type rank_type.
    places = count_choices(branching, depth)
    labels = ranks // rules**places
    numbers = (ranks - labels * rules**places)[:, None]
    for step in range((places - 1).bit_length() - 1, -1, -1):
        # base of the halves of a number of 2^(step + 1) digits
        base = rules ** (2**step)
        if numbers.dtype == object and base * base <= LARGEST_INT64:
            numbers = numbers.astype(np.int64)
        if numbers.dtype == object or base <= LARGEST_INT64:
            high = numbers // base
            numbers = np.stack([high, numbers - high * base], axis=-1)
        else:
            numbers = np.stack([np.zeros_like(numbers), numbers], axis=-1)
        numbers = numbers.reshape(len(ranks), -1)
    sizes = np.cumsum([branching**level for level in range(depth)])
    digits = numbers[:, numbers.shape[1] - places :].astype(np.int64)
    return labels.astype(np.int64), np.split(digits, sizes[:-1], axis=1)


def written(number: int) -> str:
    """Write a whole number, or its order of magnitude if it is long."""
    if number < 10**12:
        return str(number)
    return f"about 10^{int((number.bit_length() - 1) * np.log10(2))}"
