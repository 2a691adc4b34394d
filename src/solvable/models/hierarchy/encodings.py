"""Numbers that networks read instead of symbols: one-hot vectors of leaves or of tuples."""

from __future__ import annotations

from typing import Any

import numpy as np

from solvable.errors import InvalidData
from solvable.models.hierarchy.rules import tuple_numbers

MASKED = -1
"""Symbol of a masked leaf."""


def one_hot(
    X: np.ndarray, vocabulary: int, *, standardise: bool = True, blanks: bool = False,
    dtype: Any = np.float32,
) -> np.ndarray:  # fmt: skip
    """Vector of each symbol, shape (n, d, V); the vector of a masked leaf (-1) is constant V^-1/2."""
    # With `standardise` the vectors of symbols have mean 0 and norm 1. The vector of a masked leaf is
    # then orthogonal to them. With `blanks` the symbol V is a blank, whose vector is zero.
    highest = vocabulary - 1 + blanks
    symbols = np.asarray(X)
    if symbols.dtype.kind not in "iu" or (
        symbols.size and (symbols.min() < MASKED or symbols.max() > highest)
    ):
        raise InvalidData(
            f"the symbols have type {symbols.dtype} and are not all in the vocabulary; allowed: "
            f"integers from 0 to {highest}, and {MASKED} for a masked leaf."
        )
    vectors = np.eye(vocabulary)
    if standardise:
        # x -> (x - 1/V) (1 - 1/V)^-1/2
        vectors = (vectors - 1 / vocabulary) / np.sqrt(1 - 1 / vocabulary)
    # The row of a masked leaf is the last one, so that -1 finds it.
    masked = np.full((1, vocabulary), vocabulary**-0.5)
    rows = [vectors, np.zeros((1, vocabulary)), masked]
    return np.asarray(np.concatenate(rows).astype(dtype)[symbols])


def tuple_symbols(X: np.ndarray, vocabulary: int, branching: int) -> np.ndarray:
    """Replace each s-tuple of leaves by its number below V^s, shape (n, d / s)."""
    # A tuple with a masked leaf becomes -1, and the result is a string over V^s symbols.
    strings = np.asarray(X)
    numbers = tuple_numbers(strings, vocabulary, branching)
    masked = (strings == MASKED).reshape(*numbers.shape, branching).any(axis=-1)
    return np.where(masked, MASKED, numbers)
