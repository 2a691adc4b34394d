"""Exact inference in a random hierarchy: laws of symbols, with or without evidence on the leaves."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from solvable.arrays import check_integer, is_integer, is_real
from solvable.errors import InvalidData, InvalidParameter, quoted
from solvable.models.hierarchy.definition import Definition
from solvable.models.hierarchy.derivations import as_array, checked_strings, stream_of
from solvable.models.hierarchy.inference import Given, leaf_likelihoods, propagate
from solvable.models.hierarchy.posteriors import (
    label_law,
    leaf_covariance,
    path_matrix,
    rule_law,
    transition_matrix,
)
from solvable.models.hierarchy.rules import digits


class ExactLaws(Definition):
    """Methods of :class:`~solvable.models.hierarchy.target.RandomHierarchy` that infer exactly."""

    def transition(self, level: int, position: int = 0) -> np.ndarray:
        """Return the law of a symbol given its parent, shape (parents, V); level 1 is below the label.

        >>> from solvable.models.hierarchy.target import RandomHierarchy
        >>> RandomHierarchy(4, 2, 2, 2).transition(2).sum(axis=1)
        array([1., 1., 1., 1.])
        """
        check_integer("level", level, 1, self.depth)
        check_integer("position", position, 0, self.branching - 1)
        table, law = self.tables[level - 1], self.laws[level - 1]
        return transition_matrix(table, law, position, self.vocabulary)

    def label_posterior(self, level: int, path: Sequence[int] | None = None) -> np.ndarray:
        """Return the law of the label given each tuple of a level, shape (parents * m, n_c).

        `path` contains the positions of the symbols from the label to the parent; default the first
        tuple. Row r belongs to tuple r of ``tables[level - 1].reshape(-1, s)``, whose parent is r // m;
        it is NaN if the tuple never occurs at this place.

        >>> from solvable.models.hierarchy.target import RandomHierarchy
        >>> RandomHierarchy(4, 2, 2, 2).label_posterior(2).shape
        (8, 4)
        """
        joint = path_matrix(self.tables, self.laws, self._path(level, path), self.vocabulary)
        return np.repeat(label_law(joint), self.rules, axis=0)

    def patch_probabilities(self, level: int, path: Sequence[int] | None = None) -> np.ndarray:
        """Return the probability of each tuple of a level at one place, shape (parents * m,).

        `path` and the order of the tuples are those of :meth:`label_posterior`.
        """
        joint = path_matrix(self.tables, self.laws, self._path(level, path), self.vocabulary)
        law = rule_law(self.laws[level - 1], self.rules)
        return np.outer(joint.mean(axis=0), law).ravel()

    def _path(self, level: int, path: Sequence[int] | None) -> list[int]:
        """Return the positions on the way to the parent of a tuple, after checking them."""
        check_integer("level", level, 1, self.depth)
        places = [0] * (level - 1) if path is None else list(path) if np.iterable(path) else [-1]
        last = self.branching - 1
        if len(places) != level - 1 or not all(is_integer(place, 0, last) for place in places):
            allowed = f"{level - 1} positions from 0 to {last}"
            raise InvalidParameter(f"path is {quoted(path)} for level {level}; allowed: {allowed}.")
        return places

    def token_covariance(
        self, levels: int, position: int | None = None, *, whole_tuple: bool = False
    ) -> np.ndarray:
        """Return the covariance of the last leaf (rows) and an earlier one, shape (V, V) or (V, V * m).

        `levels` is the height of their common ancestor above the leaves, and `position` that of the
        earlier leaf; default the nearest one. With `whole_tuple` the columns are the tuples of the
        earlier leaf, in the order of ``tables[-1].reshape(-1, s)``.

        >>> from solvable.models.hierarchy.target import RandomHierarchy
        >>> C = RandomHierarchy(8, 8, 2, 3).token_covariance(2)  # all tuples occur
        >>> bool(abs(C).max() < 1e-12)
        True
        """
        check_integer("levels", levels, 1 + whole_tuple, self.depth)
        place = self.n_leaves - 1 - self.branching ** (levels - 1) if position is None else position
        check_integer("position", place, 0, self.n_leaves - 2)
        path = digits(np.array(place), self.branching, self.depth).tolist()
        above = self.depth - levels
        last = self.branching - 1
        if set(path[:above]) - {last} or path[above] == last:
            raise InvalidParameter(
                f"position is {place}, which has another common ancestor with the last leaf than "
                f"levels = {levels}; allowed: {self.n_leaves - self.branching**levels} to "
                f"{self.n_leaves - self.branching ** (levels - 1) - 1}."
            )
        prior = self._last_ancestor_law(above)
        stop = -1 if whole_tuple else None
        covariance = leaf_covariance(
            self.tables[above:], self.laws[above:], prior, path[above:stop], self.vocabulary
        )
        if not whole_tuple:
            return covariance
        return np.kron(covariance, rule_law(self.laws[-1], self.rules)[None])

    def _last_ancestor_law(self, level: int) -> np.ndarray:
        """Law of the last symbol of a level, above the last leaf."""
        path = [self.branching - 1] * level
        return path_matrix(self.tables, self.laws, path, self.vocabulary).mean(axis=0)

    def belief_propagation(
        self, evidence: np.ndarray, *, downward: bool = True
    ) -> tuple[list[np.ndarray], np.ndarray]:
        """Return the exact law of every symbol given independent evidence on the leaves.

        `evidence`, shape (n, d, V), contains the likelihood of what was observed at a leaf, for each
        symbol. Laws have shape (n, s ** l, symbols) for each level l, label first; they are given all
        leaves, or without `downward` only the leaves below the symbol. The second result, shape (n,),
        is the log of the mean likelihood over strings. A product of beliefs below 1e-308 counts as
        impossible.

        >>> from solvable.models.hierarchy.target import RandomHierarchy
        >>> target = RandomHierarchy(4, 2, 2, 3)
        >>> X, y = target.sample(3, rng=0)
        >>> laws, _ = target.belief_propagation(target.noisy_evidence(X, epsilon=0.1))
        >>> [law.shape for law in laws]
        [(3, 1, 4), (3, 2, 4), (3, 4, 4), (3, 8, 4)]
        """
        given = as_array(evidence, "the likelihoods")
        if given.dtype.kind not in "iuf" or given.shape[1:] != (self.n_leaves, self.vocabulary):
            raise InvalidData(
                f"the evidence has shape {given.shape} and type {given.dtype}; allowed: numbers of "
                f"shape (n, {self.n_leaves}, {self.vocabulary})."
            )
        if not (np.isfinite(given).all() and (given >= 0).all()):
            raise InvalidData(
                "the evidence has negative numbers, NaN or infinity; allowed: likelihoods of at least 0."
            )
        return self._propagate(len(given), lambda rows: given[rows], "all" if downward else "below")

    def _propagate(
        self, n: int, evidence: Callable[[slice], np.ndarray], given: Given, above: int = 0
    ) -> tuple[list[np.ndarray], np.ndarray]:
        """Propagate beliefs below the last symbol of a level."""
        tables, laws, prior = self.tables[above:], self.laws[above:], self._last_ancestor_law(above)
        return propagate(tables, laws, prior, n, evidence, self.vocabulary, given)

    def posterior(self, X: np.ndarray) -> list[np.ndarray]:
        """Return the exact law of every symbol of strings with masked leaves (-1), label first.

        >>> from solvable.models.hierarchy.target import RandomHierarchy
        >>> target = RandomHierarchy(4, 2, 2, 2)
        >>> X, y = target.sample(1, rng=0)
        >>> X[0, 0] = -1
        >>> bool(target.posterior(X)[0][0, 0, y[0]] > 0)
        True
        """
        return self._propagate(*self._masked_evidence(X), "all")[0]

    def label_probabilities(self, X: np.ndarray) -> np.ndarray:
        """Return the exact law of the label of strings with masked leaves (-1), shape (n, n_c)."""
        return self._propagate(*self._masked_evidence(X), "root")[0][0][:, 0]

    def next_token_law(self, X: np.ndarray, levels: int | None = None) -> np.ndarray:
        """Return the exact law of the last leaf given the s^levels - 1 leaves before it, shape (n, V).

        The last leaf and the leaves before this context are not used, and may be -1.

        >>> from solvable.models.hierarchy.target import RandomHierarchy
        >>> target = RandomHierarchy(8, 4, 2, 3)
        >>> X, _ = target.sample(200, rng=0)
        >>> [round(float((target.next_token_law(X, l) > 0).sum(axis=1).mean()), 1) for l in range(4)]
        [8.0, 4.0, 2.5, 1.9]
        """
        height = self.depth if levels is None else levels
        check_integer("levels", height, 0, self.depth)
        strings = checked_strings(X, self.vocabulary, self.n_leaves, masked=True)
        if height == 0:
            return np.tile(self._last_ancestor_law(self.depth), (len(strings), 1))
        context = strings[:, -(self.branching**height) :].copy()
        context[:, -1] = -1
        n, evidence = self._masked_evidence(context, context.shape[1])
        # The leaves before the context are integrated out by the law of the context's root.
        laws, _ = self._propagate(n, evidence, "all", self.depth - height)
        return laws[-1][:, -1]

    def _masked_evidence(
        self, X: np.ndarray, length: int = 0
    ) -> tuple[int, Callable[[slice], np.ndarray]]:
        """Return the number of strings, and a function of their rows that gives likelihoods."""
        strings = checked_strings(X, self.vocabulary, length or self.n_leaves, masked=True)
        return len(strings), lambda rows: leaf_likelihoods(strings[rows], 1, 0, self.vocabulary)

    def noisy_evidence(
        self, X: np.ndarray, epsilon: float, rng: np.random.Generator | int | None = None
    ) -> np.ndarray:
        """Return the evidence of noisy leaves, shape (n, d, V); masked leaves (-1) have none.

        With `rng` each symbol is first replaced by a random one with probability epsilon.
        """
        if not is_real(epsilon) or not 0 <= epsilon <= 1:
            raise InvalidParameter(f"epsilon is {epsilon}; allowed: a number from 0 to 1.")
        strings = checked_strings(X, self.vocabulary, self.n_leaves, masked=True)
        miss = float(epsilon) / self.vocabulary
        if rng is not None:
            generator = stream_of(rng, "noise")
            redrawn = (generator.random(strings.shape) < epsilon) & (strings >= 0)
            strings = strings.copy()
            strings[redrawn] = generator.integers(0, self.vocabulary, int(redrawn.sum()))
        return leaf_likelihoods(strings, 1 - float(epsilon) + miss, miss, self.vocabulary)
