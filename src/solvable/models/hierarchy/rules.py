"""Rules of a random grammar: which tuples of symbols each symbol may become, at each level."""

from __future__ import annotations

from typing import Literal

import numpy as np

from solvable.errors import InvalidParameter, quoted
from solvable.teachers.first_layer import freeze

Ensemble = Literal["first", "uniform", "latin"]
"""How the rules are drawn; see :class:`~solvable.models.hierarchy.target.RandomHierarchy`."""

LARGEST_TUPLES = 62
"""Base-2 logarithm of the largest number V^s of tuples; their numbers are 64-bit integers."""

LARGEST_STRING = 20
"""Base-2 logarithm of the largest number s^L of leaves."""

LARGEST_TABLES = 27
"""Base-2 logarithm of the largest number of symbols in the rules of all levels."""


def check_sizes(
    vocabulary: int, rules: int, branching: int, depth: int, classes: int, ensemble: Ensemble
) -> None:
    """Refuse sizes for which no grammar with one parent per tuple exists, and rules beyond memory."""
    V, m, s = vocabulary, rules, branching
    if _power_exceeds(s, depth, LARGEST_STRING):
        raise InvalidParameter(
            f"depth is {quoted(depth)} with branching {quoted(s)}, and strings have branching^depth "
            f"symbols; allowed: at most 2^{LARGEST_STRING} = {2**LARGEST_STRING} symbols."
        )
    if _power_exceeds(V, s, LARGEST_TUPLES):
        raise InvalidParameter(
            f"vocabulary is {quoted(V)} with branching {s}, which gives vocabulary^branching tuples; "
            f"allowed: at most 2^{LARGEST_TUPLES}."
        )
    check_existence(V, m, s, depth, classes, ensemble)
    if (classes + (depth - 1) * V) * m * s > 2**LARGEST_TABLES:
        raise InvalidParameter(
            f"the rules of all levels have {(classes + (depth - 1) * V) * m * s} symbols; allowed: at "
            f"most 2^{LARGEST_TABLES}. Lower vocabulary, classes or rules."
        )


def check_existence(
    vocabulary: int, rules: int, branching: int, depth: int, classes: int, ensemble: Ensemble
) -> None:
    """Refuse sizes for which no grammar with one parent per tuple exists."""
    V, m, s = vocabulary, rules, branching
    # Levels below the first one, whose parents are symbols, exist from depth 2 on.
    for name, symbols in [("classes", classes), ("vocabulary", V)][: min(depth, 2)]:
        if symbols * m > V**s:
            raise InvalidParameter(
                f"rules is {quoted(m)} for {name} = {quoted(symbols)}, but there are only {V}^{s} = "
                f"{V**s} tuples, and each has one parent; allowed: rules of at most "
                f"{V**s // symbols}, the number of tuples over {name}."
            )
    if ensemble == "first" and classes * m % V:
        raise InvalidParameter(
            f"with ensemble=first the {classes * m} tuples below the label are shared equally among "
            f"{V} first symbols; allowed: classes times rules divisible by vocabulary, or "
            "ensemble=uniform."
        )
    if ensemble == "latin" and (s != 2 or m != V or classes != V):
        raise InvalidParameter(
            f"ensemble=latin was given vocabulary {V}, rules {m}, branching {s} and classes {classes}; "
            "allowed: branching 2, and rules and classes equal to vocabulary."
        )


def _power_exceeds(base: int, exponent: int, limit: int) -> bool:
    """Return whether base^exponent is above 2^limit; no large power is computed."""
    return exponent > limit or base.bit_length() > limit + 1 or base**exponent > 2**limit


def draw_rules(
    parents: int, rules: int, vocabulary: int, branching: int, ensemble: Ensemble,
    rng: np.random.Generator,
) -> np.ndarray:  # fmt: skip
    """Draw the rules of one level, shape (parents, rules, branching); no tuple has two parents."""
    V, m, s = vocabulary, rules, branching
    # R(a) = {tuples of parent a}: m of the V^s tuples each, disjoint  (hierarchy 1)
    if ensemble == "latin":
        # parent of (a, b): a permutation of (a + b) mod V
        shift = rng.permutation(V)[:, None]
        first = np.broadcast_to(np.arange(V), (V, V))
        table = np.stack([first, (shift - first) % V], axis=-1)
    elif ensemble == "uniform":
        table = digits(rng.choice(V**s, parents * m, replace=False), V, s)
    else:
        # Each first symbol gets the same number of tails, and all tuples are dealt to the parents.
        tails = [rng.choice(V ** (s - 1), parents * m // V, replace=False) for _ in range(V)]
        numbers = np.concatenate([a * V ** (s - 1) + tail for a, tail in enumerate(tails)])
        table = digits(rng.permutation(numbers), V, s)
    return freeze(table.reshape(parents, m, s).astype(symbol_type(V)))


def zipf_law(rules: int, exponent: float) -> np.ndarray:
    """Probabilities of the rules of one symbol, f_k ~ k^-(1 + a), shape (rules,)."""
    law = np.arange(1.0, rules + 1) ** -(1 + exponent)
    return np.asarray(law / law.sum())


def symbol_type(vocabulary: int) -> type[np.signedinteger]:
    """Return the smallest signed integer type that contains every symbol."""
    for kind in (np.int8, np.int16, np.int32):
        if vocabulary - 1 <= np.iinfo(kind).max:
            return kind
    return np.int64


def digits(numbers: np.ndarray, base: int, length: int) -> np.ndarray:
    """Write numbers in a base, most significant digit first, shape (..., length)."""
    places = base ** np.arange(length - 1, -1, -1, dtype=np.int64)
    return np.asarray(numbers[..., None] // places % base)


def tuple_numbers(strings: np.ndarray, vocabulary: int, branching: int) -> np.ndarray:
    """Number of each s-tuple of consecutive symbols in base V, shape (n, length / s), int64."""
    n, length = strings.shape
    tuples = strings.reshape(n, length // branching, branching)
    numbers = tuples[..., 0].astype(np.int64)
    for place in range(1, branching):
        numbers *= vocabulary
        numbers += tuples[..., place]
    return numbers
