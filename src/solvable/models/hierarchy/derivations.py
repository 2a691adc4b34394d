"""Derivations of a grammar: draw, number and parse them, all strings at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from solvable.arrays import check_integer, is_integer, random_stream
from solvable.errors import InvalidData, InvalidParameter, MemoryLimitExceeded, quoted
from solvable.memory import available_bytes, gigabytes
from solvable.models.hierarchy.rules import tuple_numbers

CHUNK_STRINGS = 1 << 14
"""Strings that are drawn at a time, so that one level fits into the cache."""


LISTED_TUPLES = 1 << 20
"""Up to this many tuples the parent of each is listed; otherwise the sorted tuples are searched."""

LEAST_CHECKED = 10**8
"""Samples of fewer bytes are drawn without a look at the free memory, which takes time."""


def stream_of(rng: np.random.Generator | int, purpose: str) -> np.random.Generator:
    """Return a generator, made from the seed and the purpose if a seed is given."""
    if isinstance(rng, np.random.Generator):
        return rng
    if is_integer(rng, 0):
        return random_stream(int(rng), purpose)
    raise InvalidParameter(
        f"rng is {quoted(rng)}; allowed: a seed of at least 0 or a NumPy Generator."
    )


def check_count(n: int, bytes_each: int) -> None:
    """Refuse a number of samples that is below 1 or does not fit into memory."""
    check_integer("n", n, 1)
    needed = min(int(n), 2**62) * bytes_each
    if needed > LEAST_CHECKED and needed > (free := available_bytes()):
        raise MemoryLimitExceeded(
            f"n is {quoted(n)}, and so many samples need {gigabytes(needed)}; allowed: samples that fit "
            f"into the {gigabytes(free)} that are free. Draw fewer at a time."
        )


def as_array(values: Any, name: str) -> np.ndarray:
    """Return values as an array; refuse rows of different lengths."""
    try:
        return np.asarray(values)
    except ValueError as error:
        raise InvalidData(
            f"{name} have rows of different lengths; allowed: equal lengths."
        ) from error


class LabelledStrings:
    """Methods that targets of strings share; L is the depth, and w the places of one tuple."""

    def sample_tree(self, n: int, rng: np.random.Generator | int) -> list[np.ndarray]:
        """Draw strings with the symbols of all levels, shape (n, w ** l) for level l: the label first.

        >>> from solvable.targets import RandomHierarchy
        >>> [symbols.shape for symbols in RandomHierarchy(4, 2, 3, 2).sample_tree(5, rng=0)]
        [(5, 1), (5, 3), (5, 9)]
        """
        return self._draw_levels(n, stream_of(rng, "samples"))

    def classify(self, X: np.ndarray) -> np.ndarray:
        """Return the label of each string of the model, shape (n,)."""
        return self._labels(X)

    def _draw_levels(self, n: int, rng: np.random.Generator) -> list[np.ndarray]:
        raise NotImplementedError

    def _labels(self, X: np.ndarray) -> np.ndarray:
        raise NotImplementedError


def expand_down(
    symbols: np.ndarray,
    tables: Sequence[np.ndarray],
    laws: Sequence[np.ndarray | None],
    rng: np.random.Generator,
) -> list[np.ndarray]:
    """Draw the symbols of all levels below symbols of shape (n, k), which are the first entry."""
    levels = [symbols]
    for table, law in zip(tables, laws, strict=True):
        choices = draw_choices(levels[-1].shape, table.shape[1], law, rng)
        levels.append(apply_rules(levels[-1], table, choices))
    return levels


def draw_choices(
    shape: tuple[int, ...], rules: int, law: np.ndarray | None, rng: np.random.Generator
) -> np.ndarray:
    """Draw numbers of rules, uniform or with these probabilities."""
    if law is None:
        kind = np.uint8 if rules <= 256 else np.uint16 if rules <= 65_536 else np.int64
        return rng.integers(0, rules, size=shape, dtype=kind)
    bounds = np.cumsum(law)[:-1]
    return np.searchsorted(bounds, rng.random(shape), side="right")


def apply_rules(symbols: np.ndarray, table: np.ndarray, choices: np.ndarray) -> np.ndarray:
    """Replace each symbol of shape (n, k) by the tuple of its chosen rule, shape (n, k s)."""
    parents, rules, branching = table.shape
    rows = symbols.astype(np.intp)
    rows *= rules
    rows += choices
    tuples = np.take(table.reshape(parents * rules, branching), rows, axis=0)
    return tuples.reshape(len(symbols), symbols.shape[1] * branching)


class Parents:
    """The parent of each tuple of one level, and the number of its rule; -1 where there is none."""

    def __init__(self, table: np.ndarray, vocabulary: int) -> None:
        parents, self.rules, self.branching = table.shape
        self.vocabulary = vocabulary
        numbers = tuple_numbers(table.reshape(parents, -1), vocabulary, self.branching).ravel()
        self.row_of: np.ndarray | None = None
        if vocabulary**self.branching <= LISTED_TUPLES:
            self.row_of = np.full(vocabulary**self.branching, -1, dtype=np.int32)
            self.row_of[numbers] = np.arange(numbers.size)
        self.order = np.argsort(numbers)
        self.numbers = numbers[self.order]

    def rows(self, strings: np.ndarray) -> np.ndarray:
        """Row (parent times rules plus rule) of each tuple of the strings, shape (n, k); -1 for none."""
        asked = tuple_numbers(strings, self.vocabulary, self.branching)
        if self.row_of is not None:
            return np.take(self.row_of, asked)
        places = np.minimum(np.searchsorted(self.numbers, asked), self.numbers.size - 1)
        return np.where(self.numbers[places] == asked, self.order[places], -1)


def parse_levels(
    strings: np.ndarray, parents: Sequence[Parents]
) -> tuple[list[np.ndarray], list[np.ndarray], np.ndarray]:
    """Parse from the leaves up: symbols and rules of each level, label first, and which are valid."""
    # Invalid parts have parent 0; the last array, shape (n,), is False for their strings.
    kind = strings.dtype
    levels: list[np.ndarray] = [strings]
    choices: list[np.ndarray] = []
    valid = np.ones(len(strings), dtype=bool)
    for table in reversed(parents):
        rows = table.rows(levels[0])
        valid &= (rows >= 0).all(axis=1)
        above, rule = np.divmod(np.maximum(rows, 0), table.rules)
        levels.insert(0, above.astype(kind if len(levels) < len(parents) else np.int64))
        choices.insert(0, rule)
    return levels, choices, valid


def checked_strings(
    X: np.ndarray, vocabulary: int, length: int, *, masked: bool = False
) -> np.ndarray:
    """Return strings as integers, after checking shape and symbols; -1 is allowed with `masked`."""
    strings = as_array(X, "the strings")
    if strings.ndim != 2 or strings.shape[1] != length:
        raise InvalidData(
            f"the strings have shape {strings.shape}; allowed: (n, {length}), one column per leaf."
        )
    low = -1 if masked else 0
    allowed = f"whole numbers from 0 to {vocabulary - 1}" + ", -1 for a masked leaf" * masked
    if strings.dtype.kind == "f" and (np.abs(strings) < 2**31).all():
        whole = strings.astype(np.int64)
        strings = whole if np.array_equal(whole, strings) else strings
    if strings.dtype.kind not in "iu":
        raise InvalidData(
            f"the strings have type {strings.dtype} and are not whole numbers; allowed: {allowed}."
        )
    if strings.size and (strings.min() < low or strings.max() >= vocabulary):
        raise InvalidData(
            f"the strings contain symbols from {strings.min()} to {strings.max()}; allowed: {allowed}."
        )
    return strings.astype(np.int64) if strings.dtype.kind == "u" else strings
