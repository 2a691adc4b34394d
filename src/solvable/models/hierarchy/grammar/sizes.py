"""Sizes of a random grammar, as the theory uses them: numbers only, however large."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import log10
from typing import Any, NotRequired, TypedDict, get_args

import numpy as np

from solvable.arrays import check_integer, is_real
from solvable.errors import InvalidParameter, quoted, unknown_choice
from solvable.models.hierarchy.rules import Ensemble, check_existence


class Sizes(TypedDict):
    """Keyword arguments of the theory; `classes` 0 means as many as symbols."""

    vocabulary: int
    rules: int
    branching: int
    depth: int
    classes: NotRequired[int]
    ensemble: NotRequired[Ensemble]


class SparseSizes(Sizes):
    """The same with the number of blanks per symbol, by default 0, for statistics of labels."""

    blanks: NotRequired[int]


LARGEST_LOGARITHM = 290.0
"""Largest decimal logarithm of a number of samples or tuples; products of these stay finite."""

LARGEST_DEPTH = 1_000
"""Largest depth and branching; lists of this length are cheap, and V^s is finite."""


def check_number(name: str, value: Any, low: float, high: float = 1e290) -> None:
    """Refuse all but a real number from low to high."""
    # Python compares numbers exactly, so that integers beyond floats need no conversion.
    if not is_real(value) or not low <= value <= high:
        raise InvalidParameter(
            f"{name} is {quoted(value)}; allowed: a number from {low:g} to {high:g}."
        )


@dataclass(frozen=True)
class GrammarSizes:
    """Checked sizes of a grammar, and numbers that follow from them level by level."""

    vocabulary: int
    rules: int
    branching: int
    depth: int
    classes: int = 0
    ensemble: Ensemble = "first"
    blanks: int = 0

    def __post_init__(self) -> None:
        for name, low in (("vocabulary", 2), ("rules", 1)):
            check_integer(name, getattr(self, name), low)
        check_integer("branching", self.branching, 2, LARGEST_DEPTH)
        check_integer("depth", self.depth, 1, LARGEST_DEPTH)
        check_integer("classes", self.classes, 0)
        check_integer("classes", self.n_classes, 2)
        check_integer("blanks", self.blanks, 0)
        if self.ensemble not in get_args(Ensemble):
            raise InvalidParameter(
                unknown_choice("ensemble", self.ensemble, list(get_args(Ensemble)))
            )
        places = log10(self.blanks + 1)
        largest = max(
            2 * self.depth * (log10(self.rules) + places) + 3 * log10(self.vocabulary),
            self.branching * (log10(self.vocabulary) + places),
        )
        if largest > LARGEST_LOGARITHM:
            raise InvalidParameter(
                f"V³ m^(2 L) or V^s, with blanks V³ (m (s_0 + 1))^(2 L) or (V (s_0 + 1))^s, is "
                f"10^{largest:.0f} with vocabulary {quoted(self.vocabulary)}, rules "
                f"{quoted(self.rules)}, branching {self.branching}, depth {self.depth} and blanks "
                f"{quoted(self.blanks)}; allowed: at most 10^{LARGEST_LOGARITHM:.0f}."
            )
        check_existence(
            self.vocabulary, self.rules, self.branching, self.depth, self.n_classes, self.ensemble
        )

    @property
    def n_classes(self) -> int:
        """Number of labels."""
        return self.classes or self.vocabulary

    @property
    def scarce(self) -> bool:
        """True if fewer tuples than symbols are below the label, so that grammars differ too much."""
        # Frequencies of symbols are then those of a few draws. Signal, noise and correlations that rest
        # on their mean are off by up to a factor of 10, and are not a number (NaN).
        # From n_c m = V on, signal and noise are right within 3 %.
        few = self.n_classes * self.rules < self.vocabulary
        return self.ensemble == "uniform" and self.depth > 1 and few

    @cached_property
    def parents(self) -> np.ndarray:
        """Number of parents of the tuples of each level l = 1 ... L, shape (L,)."""
        return np.array([self.n_classes] + [self.vocabulary] * (self.depth - 1), dtype=float)

    @cached_property
    def tuples(self) -> np.ndarray:
        """Number of tuples of each level l = 1 ... L, shape (L,)."""
        return self.parents * self.rules

    @cached_property
    def arrangements(self) -> float:
        """Number of ways to place the symbols of a tuple among their blanks, (s_0 + 1)^s."""
        return (self.blanks + 1.0) ** self.branching

    @cached_property
    def chances(self) -> np.ndarray:
        """Mean probability that the first patch of a level is a given arrangement of a tuple, (L,)."""
        # p_l = (s_0 + 1)^-(l - 1) / (N_l m (s_0 + 1)^s) (hierarchy 34)
        filled = (self.blanks + 1.0) ** -np.arange(self.depth)
        return np.asarray(filled / (self.tuples * self.arrangements))

    @cached_property
    def per_symbol(self) -> np.ndarray:
        """Mean number of tuples that have a given symbol at a given position, shape (L,)."""
        return self.tuples / self.vocabulary

    @cached_property
    def exclusions(self) -> np.ndarray:
        """Exclusions of each level and position of a tuple, shape (L, s)."""
        # Two different rules of a level share the symbol at a position with probability 1/V - (1 - 1/V)
        # times this number, since tuples are drawn without replacement.
        V = float(self.vocabulary)
        if self.ensemble != "first":
            # sigma = 1 / (V^s - 1) (hierarchy 4)
            return np.full((self.depth, self.branching), 1 / (V**self.branching - 1))
        # The first symbols have equal frequencies: sigma = 1 / (N m - 1) for them, and
        # sigma = (N m / V - 1) / ((N m - 1) (V^(s - 1) - 1)) for the others (hierarchy 4)
        first = 1 / (self.tuples - 1)
        others = (self.per_symbol - 1) * first / (V ** (self.branching - 1) - 1)
        columns = [first] + [others] * (self.branching - 1)
        return np.stack(columns, axis=1)

    @cached_property
    def contractions(self) -> np.ndarray:
        """Mean factors of the square of a signed measure from each level's parents to its symbols."""
        # Shape (L, s), one for each position; the measure has sum zero, in units of the mean frequency.
        # c = (V / (N m)) (1 - 1/V) (1 + sigma) (hierarchy 4)
        return (1 - 1 / self.vocabulary) * (1 + self.exclusions) / self.per_symbol[:, None]

    @cached_property
    def brackets(self) -> np.ndarray:
        """Squares of the centred joint law of the last and another symbol of a tuple, by level, (L,)."""
        # The unit is (1 - 1/V)², and the result is the mean over grammars. The entry of each level
        # takes the unequal frequencies of its parents, at the ends of their tuples, into account.
        # B_l = <u²> (1 + sigma) / (N_l m) - sigma (hierarchy 13)
        excluded = self.exclusions[:, -1]
        return self.unevenness[:-1] * (1 + excluded) / self.tuples - excluded

    @cached_property
    def unevenness(self) -> np.ndarray:
        """Mean square of frequencies of the last symbol of levels 0 ... L, in units of their mean."""
        squares = [1.0]
        for count, excluded in zip(self.tuples, self.exclusions[:, -1], strict=True):
            # <u²> = 1 + (V - 1) B_l one level down (hierarchy 13)
            bracket = squares[-1] * (1 + excluded) / count - excluded
            squares.append(1 + (self.vocabulary - 1) * max(float(bracket), 0.0))
        return np.array(squares)
