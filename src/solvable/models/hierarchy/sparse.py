r"""The sparse random hierarchy model: symbols of a random grammar at random places among blanks."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from solvable.arrays import check_integer
from solvable.errors import InvalidData, InvalidParameter, quoted
from solvable.models.hierarchy.derivations import LabelledStrings, check_count, checked_strings
from solvable.models.hierarchy.ranks import count_choices
from solvable.models.hierarchy.rules import LARGEST_STRING, symbol_type
from solvable.models.hierarchy.target import RandomHierarchy


@dataclass(frozen=True)
class SparseRandomHierarchy(LabelledStrings):
    r"""Strings of a random grammar with blanks, which say nothing about the label.

    Each symbol of a tuple lies at a random one of :math:`s_0+1` places of its own, and the other places
    are blank. A blank becomes blanks only, so that a string has :math:`(s(s_0+1))^L` places, and

    .. math:: P(\text{a place of level } l \text{ is not blank})=(s_0+1)^{-l} .

    Moving a symbol among its places does not change the label.

    Sources: arXiv:2404.10727, the variant in which each symbol has places of its own;
    derivations/hierarchy (34).

    Examples
    --------
    >>> from solvable.targets import RandomHierarchy
    >>> target = SparseRandomHierarchy(RandomHierarchy(vocabulary=4, rules=2, depth=2, seed=0), blanks=1)
    >>> X, y = target.sample(3, rng=0)
    >>> X.shape, target.blank, (X != target.blank).sum(axis=1)
    ((3, 16), 4, array([4, 4, 4]))
    >>> bool((target.classify(X) == y).all())
    True
    """

    grammar: RandomHierarchy = field(default_factory=RandomHierarchy)
    """Grammar of the symbols; its :math:`V` symbols are 0 to V - 1, and the blank is V."""
    blanks: int = 1
    """Number :math:`s_0` of blanks per symbol, at least 0; without blanks the strings are those of the
    grammar."""

    def __post_init__(self) -> None:
        if not isinstance(self.grammar, RandomHierarchy):
            raise InvalidParameter(
                f"grammar is {quoted(self.grammar)}; allowed: a RandomHierarchy."
            )
        check_integer("blanks", self.blanks, 0)
        object.__setattr__(self, "blanks", int(self.blanks))
        if self.n_leaves > 2**LARGEST_STRING:
            raise InvalidParameter(
                f"blanks is {self.blanks}, which gives strings of {self.n_leaves} places; allowed: at "
                f"most 2^{LARGEST_STRING} places."
            )

    @property
    def blank(self) -> int:
        """Number of the blank, which is that of the symbols of the grammar."""
        return self.grammar.vocabulary

    @property
    def patch(self) -> int:
        r"""Number of places of one tuple, :math:`s(s_0+1)`."""
        return self.grammar.branching * (self.blanks + 1)

    @property
    def n_leaves(self) -> int:
        r"""Length of a string, :math:`(s(s_0+1))^L`."""
        return int(self.patch**self.grammar.depth)

    @property
    def n_strings(self) -> int:
        r"""Number of different strings, that of the grammar times :math:`(s_0+1)^{s+\dots+s^L}`."""
        symbols = self.grammar.branching * count_choices(self.grammar.branching, self.grammar.depth)
        return int(self.grammar.n_strings * (self.blanks + 1) ** symbols)

    def sample(self, n: int, rng: np.random.Generator | int) -> tuple[np.ndarray, np.ndarray]:
        """Draw strings, shape (n, (s (s_0 + 1)) ** L), V for a blank, and their labels, shape (n,)."""
        levels = self.sample_tree(n, rng)
        return levels[-1], levels[0][:, 0]

    def _draw_levels(self, n: int, rng: np.random.Generator) -> list[np.ndarray]:
        kind = symbol_type(self.blank + 1)
        check_count(n, 2 * self.n_leaves * np.dtype(kind).itemsize + 8)
        levels = self.grammar.sample_tree(n, rng)
        if not self.blanks:
            return levels
        places, width = np.zeros((n, 1), dtype=np.int64), self.blanks + 1
        for level, symbols in enumerate(levels[1:], start=1):
            # The place of a symbol: a random one of the s_0 + 1 of its own in the patch of its parent.
            places = np.repeat(places * self.patch, self.grammar.branching, axis=1)
            places += width * (np.arange(symbols.shape[1]) % self.grammar.branching)
            places += rng.integers(0, width, size=symbols.shape)
            sparse = np.full((n, self.patch**level), self.blank, dtype=kind)
            np.put_along_axis(sparse, places, symbols.astype(kind), axis=1)
            levels[level] = sparse
        return levels

    def without_blanks(self, X: np.ndarray) -> np.ndarray:
        """Return the strings of the grammar, shape (n, s ** L), whose symbols lie among blanks."""
        strings = checked_strings(X, self.blank + 1, self.n_leaves)
        filled = strings != self.blank
        valid, level = np.ones(len(strings), dtype=bool), filled
        for _ in range(self.grammar.depth):
            # Each symbol of a tuple has one filled place, and all symbols of a tuple are there or none.
            counts = level.reshape(len(strings), -1, self.grammar.branching, self.blanks + 1).sum(3)
            level = counts.any(axis=2)
            valid &= (counts == level[:, :, None]).all(axis=(1, 2))
        valid &= level[:, 0]
        if not valid.all():
            raise InvalidData(
                f"{int((~valid).sum())} of {valid.size} strings have their symbols at other places, "
                f"first row {int(np.argmin(valid))}; allowed: strings that `sample` draws."
            )
        return strings[filled].reshape(len(strings), -1)

    def _labels(self, X: np.ndarray) -> np.ndarray:
        return self.grammar.classify(self.without_blanks(X))

    def patch_rows(self, level: int, patches: np.ndarray) -> np.ndarray:
        """Return the number of each patch of a level among the tuples with the places of their symbols.

        It is the row of the tuple in ``grammar.tables[level - 1].reshape(-1, s)`` times
        :math:`(s_0+1)^s`, plus the places as a number in base :math:`s_0+1`; -1 for a blank.
        """
        check_integer("level", level, 1, self.grammar.depth)
        s, width = self.grammar.branching, self.blanks + 1
        split = patches.reshape(len(patches), s, width)
        places = (split != self.blank).argmax(axis=2)
        symbols = np.take_along_axis(split, places[:, :, None], axis=2)[:, :, 0]
        blank = (symbols == self.blank).any(axis=1)
        rows = self.grammar.parents[level - 1].rows(np.where(blank[:, None], 0, symbols))[:, 0]
        arrangement = places @ (width ** np.arange(s - 1, -1, -1))
        return np.where(blank, -1, rows * width**s + arrangement)
