"""Parameters of a random hierarchy, their checks, and the rules that they define."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

import numpy as np

from solvable.arrays import check_integer, check_real, is_integer, random_stream
from solvable.errors import InvalidParameter, quoted, unknown_choice
from solvable.models.hierarchy.derivations import Parents, check_count, checked_strings
from solvable.models.hierarchy.encodings import one_hot, tuple_symbols
from solvable.models.hierarchy.ranks import count_strings
from solvable.models.hierarchy.rules import Ensemble, check_sizes, draw_rules, symbol_type, zipf_law

LEAST = {"vocabulary": 2, "rules": 1, "branching": 2, "depth": 1, "seed": 0}
"""Smallest value of each whole number."""


@dataclass(frozen=True)
class Definition:
    """Parameters and rules of :class:`~solvable.models.hierarchy.target.RandomHierarchy`."""

    vocabulary: int = 8
    rules: int = 4
    branching: int = 2
    depth: int = 3
    classes: int = 0
    ensemble: Ensemble = "first"
    zipf: float = 0.0
    zipf_levels: tuple[int, ...] = ()
    seed: int = 0

    def __post_init__(self) -> None:
        for name, low in LEAST.items():
            check_integer(name, getattr(self, name), low)
            # Integers of NumPy would overflow in counts.
            object.__setattr__(self, name, int(getattr(self, name)))
        if not is_integer(self.classes, 0) or self.classes == 1:
            raise InvalidParameter(
                f"classes is {quoted(self.classes)}; allowed: 0, which means as many as symbols, or an "
                "integer of at least 2."
            )
        object.__setattr__(self, "classes", int(self.classes))
        if self.ensemble not in get_args(Ensemble):
            raise InvalidParameter(unknown_choice("ensemble", self.ensemble, get_args(Ensemble)))
        check_real("zipf", self.zipf, 0.0)
        object.__setattr__(self, "zipf_levels", self._checked_levels())
        check_sizes(
            self.vocabulary, self.rules, self.branching, self.depth, self.n_classes, self.ensemble
        )

    def _check_count(self, n: int) -> None:
        """Refuse a number of strings that is below 1 or does not fit into memory."""
        check_count(n, self.n_leaves * np.dtype(symbol_type(self.vocabulary)).itemsize + 8)

    def _checked_levels(self) -> tuple[int, ...]:
        """Return the levels of unequal rules as integers."""
        levels = tuple(self.zipf_levels) if np.iterable(self.zipf_levels) else (None,)
        if not all(is_integer(level, 1, self.depth) for level in levels):
            raise InvalidParameter(
                f"zipf_levels is {quoted(self.zipf_levels)}; allowed: levels from 1 to {self.depth}."
            )
        return tuple(int(level) for level in levels)

    @property
    def n_classes(self) -> int:
        """Number of labels."""
        return self.classes or self.vocabulary

    @property
    def n_leaves(self) -> int:
        """Length of a string, :math:`d=s^L`."""
        return int(self.branching**self.depth)

    @property
    def n_strings(self) -> int:
        r"""Number of different strings, :math:`n_c m^{(s^L-1)/(s-1)}`, exactly."""
        return count_strings(self.n_classes, self.rules, self.branching, self.depth)

    @cached_property
    def tables(self) -> tuple[np.ndarray, ...]:
        """Rules of each level, label first: shape (parents, rules, branching) each, read only."""
        rng = random_stream(self.seed, "random hierarchy")
        parents = [self.n_classes] + [self.vocabulary] * (self.depth - 1)
        return tuple(
            draw_rules(n, self.rules, self.vocabulary, self.branching, self.ensemble, rng)
            for n in parents
        )

    @cached_property
    def laws(self) -> tuple[np.ndarray | None, ...]:
        """Probabilities of the rules of each level, shape (rules,); None where all are equal."""
        chosen = set(self.zipf_levels or (self.depth,)) if self.zipf else set()
        law = zipf_law(self.rules, self.zipf)
        return tuple(law if level in chosen else None for level in range(1, self.depth + 1))

    @cached_property
    def parents(self) -> tuple[Parents, ...]:
        """Parent of every tuple of each level, label first."""
        return tuple(Parents(table, self.vocabulary) for table in self.tables)

    def encode(
        self,
        X: np.ndarray,
        encoding: Literal["one-hot", "standardised", "tuples"] = "one-hot",
        *,
        channels_first: bool = False,
    ) -> np.ndarray:
        """Return strings as vectors in float32, shape (n, d, V); that of a masked leaf (-1) is constant.

        "standardised" vectors have mean 0 and norm 1; "tuples" are unit vectors of s-tuples of leaves,
        shape (n, d / s, V^s). `channels_first` exchanges the last two axes, as for convolutions in
        torch.

        >>> from solvable.targets import RandomHierarchy
        >>> target = RandomHierarchy(4, 2, 2, 2)
        >>> X, _ = target.sample(3, rng=0)
        >>> target.encode(X).shape, target.encode(X, "tuples", channels_first=True).shape
        ((3, 4, 4), (3, 16, 2))
        """
        kinds = ("one-hot", "standardised", "tuples")
        if encoding not in kinds:
            raise InvalidParameter(unknown_choice("encoding", encoding, kinds))
        strings = checked_strings(X, self.vocabulary, self.n_leaves, masked=True)
        if encoding == "tuples":
            strings = tuple_symbols(strings, self.vocabulary, self.branching)
            vectors = one_hot(strings, self.vocabulary**self.branching, standardise=False)
        else:
            vectors = one_hot(strings, self.vocabulary, standardise=encoding == "standardised")
        return np.ascontiguousarray(np.swapaxes(vectors, 1, 2)) if channels_first else vectors
