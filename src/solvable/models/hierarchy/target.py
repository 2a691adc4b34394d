r"""The random hierarchy model: labelled strings of a random grammar."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from solvable.arrays import check_integer
from solvable.errors import InvalidData, InvalidParameter
from solvable.models.hierarchy.derivations import (
    CHUNK_STRINGS,
    LabelledStrings,
    apply_rules,
    checked_strings,
    expand_down,
    parse_levels,
    stream_of,
)
from solvable.models.hierarchy.exact import ExactLaws
from solvable.models.hierarchy.ranks import LARGEST_INT64, checked_ranks, choices_of, ranks_of
from solvable.models.hierarchy.rules import symbol_type


class RandomHierarchy(ExactLaws, LabelledStrings):
    r"""Grammar in which a label produces a string of symbols by random rules, level by level.

    Each symbol of a level becomes one of :math:`m` tuples of :math:`s` symbols of the next one, from the
    label (level 0) to the :math:`s^L` leaves. No tuple has two parents, so that the label is a function
    of the string; tuples with the same parent are synonyms. arXiv:2307.02129; arXiv:2601.19756,
    Definition 3; derivations/hierarchy (1), (2).

    Parameters
    ----------
    vocabulary, rules, branching, depth : int
        Numbers :math:`V\ge2` of symbols of each level, :math:`m\ge1` of rules of each symbol,
        :math:`s\ge2` of symbols in a tuple, and :math:`L\ge1` of levels below the label.
    classes : int
        Number :math:`n_c` of labels; 0 means as many as symbols.
    ensemble : {"first", "uniform", "latin"}
        "uniform": tuples drawn without replacement from all :math:`V^s`. "first": the same, but each
        symbol is equally often the first of a tuple. "latin": the parent of :math:`(a, b)` is a
        permutation of :math:`a+b` modulo :math:`V`, so that no single symbol depends on the label.
    zipf, zipf_levels : float, and tuple of int
        Exponent :math:`a\ge0` of the probabilities :math:`f_k\propto k^{-(1+a)}` of the rules of a
        symbol at these levels (empty: the leaves); 0 means that all rules are equally likely.
    seed : int
        Seed of the rules.

    Examples
    --------
    >>> target = RandomHierarchy(vocabulary=4, rules=2, branching=2, depth=3, seed=0)
    >>> X, y = target.sample(5, rng=0)
    >>> X.shape, y.shape
    ((5, 8), (5,))
    >>> bool((target.classify(X) == y).all())
    True
    >>> target.n_strings
    512
    """

    def sample(
        self, n: int, rng: np.random.Generator | int, *, replace: bool = True
    ) -> tuple[np.ndarray, np.ndarray]:
        """Draw strings, shape (n, s ** L) in the smallest integer type, and their labels, shape (n,).

        Without `replace` strings are different, and all rules must be equally likely.
        """
        generator = stream_of(rng, "samples")
        self._check_count(n)
        if not replace:
            return self._sample_different(n, generator)
        X = np.empty((n, self.n_leaves), dtype=symbol_type(self.vocabulary))
        y = np.empty(n, dtype=np.int64)
        for start in range(0, n, CHUNK_STRINGS):
            levels = self._draw_chunk(min(CHUNK_STRINGS, n - start), generator)
            y[start : start + CHUNK_STRINGS] = levels[0][:, 0]
            X[start : start + CHUNK_STRINGS] = levels[-1]
        return X, y

    def _draw_levels(self, n: int, rng: np.random.Generator) -> list[np.ndarray]:
        self._check_count(n)
        starts = range(0, n, CHUNK_STRINGS)
        chunks = [self._draw_chunk(min(CHUNK_STRINGS, n - start), rng) for start in starts]
        return [np.concatenate(parts) for parts in zip(*chunks, strict=True)]

    def _draw_chunk(self, n: int, rng: np.random.Generator) -> list[np.ndarray]:
        labels = rng.integers(0, self.n_classes, size=(n, 1))
        return expand_down(labels, self.tables, self.laws, rng)

    def _sample_different(self, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        if self.zipf:
            raise InvalidParameter(
                "replace is False and zipf is above 0; allowed: zipf=0, or replace=True."
            )
        if n > self.n_strings:
            raise InvalidParameter(
                f"n is {n} and replace is False; allowed: at most the {self.n_strings} different strings "
                "of this grammar, or replace=True."
            )
        if self.n_strings <= LARGEST_INT64:
            return self.unrank(rng.choice(self.n_strings, n, replace=False))
        # So many strings exist that hardly any is drawn twice.
        X, y = self.sample(n, rng)
        while True:
            # As bytes, rows are compared eight times faster than by `axis=0`.
            _, first = np.unique(X.view(f"S{X[0].nbytes}"), return_index=True)
            if first.size == n:
                return X, y
            kept = np.sort(first)
            more, labels = self.sample(n - kept.size, rng)
            X, y = np.concatenate([X[kept], more]), np.concatenate([y[kept], labels])

    def unrank(self, ranks: np.ndarray | Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
        """Return the strings with these numbers, shape (n, s ** L), and their labels, shape (n,).

        A number from 0 to ``n_strings - 1`` contains the label, then the chosen rules in base m, from
        the label down and left to right; it is a Python integer where 64 bits do not suffice.
        """
        numbers = checked_ranks(ranks, self.n_strings)
        X = np.empty((numbers.size, self.n_leaves), dtype=symbol_type(self.vocabulary))
        y = np.empty(numbers.size, dtype=np.int64)
        for start in range(0, numbers.size, CHUNK_STRINGS):
            part = slice(start, start + CHUNK_STRINGS)
            y[part], choices = choices_of(numbers[part], self.rules, self.branching, self.depth)
            symbols = y[part, None]
            for table, chosen in zip(self.tables, choices, strict=True):
                symbols = apply_rules(symbols, table, chosen)
            X[part] = symbols
        return X, y

    def rank(self, X: np.ndarray) -> np.ndarray:
        """Return the number of each string, the inverse of :meth:`unrank`.

        >>> target = RandomHierarchy(32, 8, 2, 6)
        >>> X, y = target.unrank([target.n_strings - 1])
        >>> target.rank(X) == target.n_strings - 1
        array([ True])
        """
        levels, choices = self._parsed(X)
        return ranks_of(levels[0][:, 0], choices, self.rules, self.n_classes)

    def parse(self, X: np.ndarray) -> list[np.ndarray]:
        """Return the symbols of every level, label first, shape (n, s ** l) each."""
        return self._parsed(X)[0]

    def _labels(self, X: np.ndarray) -> np.ndarray:
        return self.parse(X)[0][:, 0].astype(np.int64)

    def contains(self, X: np.ndarray) -> np.ndarray:
        """Return which strings are of the grammar, shape (n,)."""
        strings = checked_strings(X, self.vocabulary, self.n_leaves)
        return parse_levels(strings, self.parents)[2]

    def _parsed(self, X: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray]]:
        strings = checked_strings(X, self.vocabulary, self.n_leaves)
        levels, choices, valid = parse_levels(strings, self.parents)
        if not valid.all():
            raise InvalidData(
                f"{int((~valid).sum())} of {valid.size} strings are not of this grammar, first row "
                f"{int(np.argmin(valid))}; allowed: strings that `sample` draws. `contains` marks them."
            )
        return levels, choices

    def swap_synonyms(
        self,
        X: np.ndarray,
        level: int,
        rng: np.random.Generator | int,
        *,
        position: int | None = None,
    ) -> np.ndarray:
        """Replace tuples of a level by random synonyms, and redraw what is below them.

        `position` is that of the parent whose tuple is replaced; default all. Symbols above do not
        change.

        >>> target = RandomHierarchy(8, 4, 2, 3)
        >>> X, y = target.sample(5, rng=0)
        >>> bool((target.classify(target.swap_synonyms(X, level=2, rng=1)) == y).all())
        True
        """
        check_integer("level", level, 1, self.depth)
        levels, generator = self.parse(X), stream_of(rng, "changes")
        return self._redrawn(levels[-1], levels[level - 1], level - 1, generator, position)

    def _redrawn(
        self,
        strings: np.ndarray,
        symbols: np.ndarray,
        level: int,
        rng: np.random.Generator,
        position: int | None,
    ) -> np.ndarray:
        """Return the strings after drawing all or one of these symbols of a level down to the leaves."""
        drawn = expand_down(symbols, self.tables[level:], self.laws[level:], rng)[-1]
        if position is None:
            return drawn
        check_integer("position", position, 0, self.branching**level - 1)
        width = self.n_leaves // self.branching**level
        changed = strings.copy()
        part = slice(position * width, (position + 1) * width)
        changed[:, part] = drawn[:, part]
        return changed
