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
        r"""Return the law of a symbol given its parent.

        .. math:: P_l(a, b) = \sum_k f_k\, 1[\text{child of rule } k \text{ of } a \text{ is } b]

        Parameters
        ----------
        level : int
            Level of the symbol, from 1 (just below the label) to L (the leaves).
        position : int
            Position of the symbol in its tuple, from 0 to s - 1.

        Returns
        -------
        ndarray of shape (parents, V)
            Row a is the law given the parent a; at level 1 parents are the n_c labels.

        Raises
        ------
        InvalidParameter
            If the level or position does not exist.

        Notes
        -----
        derivations/hierarchy (3).

        Examples
        --------
        >>> from solvable.models.hierarchy.target import RandomHierarchy
        >>> RandomHierarchy(4, 2, 2, 2).transition(2).sum(axis=1)
        array([1., 1., 1., 1.])
        """
        check_integer("level", level, 1, self.depth)
        check_integer("position", position, 0, self.branching - 1)
        table, law = self.tables[level - 1], self.laws[level - 1]
        return transition_matrix(table, law, position, self.vocabulary)

    def label_posterior(self, level: int, path: Sequence[int] | None = None) -> np.ndarray:
        r"""Return the law of the label given one tuple, for every tuple of a level.

        .. math:: q_\mu \propto P_1P_2\cdots P_{l-1}e_{\nu(\mu)}

        The symbol :math:`\nu(\mu)` is the parent of the tuple :math:`\mu`, and :math:`P_k` are the
        matrices of :meth:`transition` along the path from the label to it.

        Parameters
        ----------
        level : int
            Level of the tuples, from 1 to L.
        path : sequence of int, optional
            Positions (0 to s - 1) of the symbols on the way from the label to the parent, level - 1
            numbers; default the first tuple of the string.

        Returns
        -------
        ndarray of shape (parents * m, n_c)
            Row r is the law given tuple r of ``tables[level - 1].reshape(-1, s)``, whose parent is
            r // m. Synonyms have equal rows. Rows of tuples that never occur at this place are NaN.

        Raises
        ------
        InvalidParameter
            If the level or path does not exist.

        Notes
        -----
        derivations/hierarchy (3), exact also for unequal probabilities of the rules.

        Examples
        --------
        >>> from solvable.models.hierarchy.target import RandomHierarchy
        >>> RandomHierarchy(4, 2, 2, 2).label_posterior(2).shape
        (8, 4)
        """
        joint = path_matrix(self.tables, self.laws, self._path(level, path), self.vocabulary)
        return np.repeat(label_law(joint), self.rules, axis=0)

    def patch_probabilities(self, level: int, path: Sequence[int] | None = None) -> np.ndarray:
        """Return the probability of each tuple of a level at one place of the string.

        Parameters
        ----------
        level : int
            Level of the tuples, from 1 to L.
        path : sequence of int, optional
            Place of the tuple, as for :meth:`label_posterior`.

        Returns
        -------
        ndarray of shape (parents * m,)
            Probabilities in the order of ``tables[level - 1].reshape(-1, s)``; their sum is 1.

        Raises
        ------
        InvalidParameter
            If the level or path does not exist.
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
        r"""Return the covariance of the last leaf and an earlier one.

        .. math:: C(\mu,\nu) = P(x_d=\mu, x_j=\nu) - P(x_d=\mu)\,P(x_j=\nu)

        Parameters
        ----------
        levels : int
            Height of the lowest common ancestor of the two leaves above the leaves, from 1 to L.
        position : int, optional
            Position of the earlier leaf, from 0; default the nearest to the last leaf.
        whole_tuple : bool
            True if :math:`\nu` is the whole tuple of the earlier leaf; then `levels` is at least 2.

        Returns
        -------
        ndarray of shape (V, V), or (V, V * m) for tuples
            Rows are symbols of the last leaf. Tuples are in the order of ``tables[-1].reshape(-1, s)``.

        Raises
        ------
        InvalidParameter
            If no such pair of leaves exists.

        Notes
        -----
        Exact for this grammar. Its mean square over grammars is the plateau of arXiv:2406.00048
        (derivations/hierarchy 13).

        Examples
        --------
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
        r"""Return the exact law of every symbol given independent evidence on the leaves.

        Beliefs go up, :math:`\psi(a)=\sum_kf_k\prod_ib_i(r_i^{a,k})`, and laws come down: the law of
        a rule is that of its parent times :math:`f_k\prod_ib_i(r_i^{a,k})/\psi(a)`.

        Parameters
        ----------
        evidence : array-like of shape (n, d, V)
            Likelihood of what was observed at a leaf, for each symbol of the leaf; at least 0. A leaf of
            which nothing is known has the same number for all symbols.
        downward : bool
            True for laws given all leaves. False for laws given only the leaves below the symbol,
            where all symbols are equally likely before: the upward messages.

        Returns
        -------
        laws : list of ndarray
            Shape (n, s ** l, symbols) for each level l = 0 ... L; the label first.
        log_likelihood : ndarray of shape (n,)
            Logarithm of the mean of the product of the likelihoods over strings of the grammar.

        Raises
        ------
        InvalidData
            If the evidence has another shape, NaN or negative numbers, or no string can give it.

        Notes
        -----
        derivations/hierarchy (24), (25). Time O(n d V m), memory O(n d V) for the results. If the product
        of the beliefs in a tuple underflows (below 1e-308), the tuple counts as impossible.

        Examples
        --------
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
        """Return the exact law of every symbol of strings with masked leaves.

        Parameters
        ----------
        X : ndarray of shape (n, s ** L)
            Strings whose masked leaves are -1.

        Returns
        -------
        list of ndarray
            Shape (n, s ** l, symbols) for each level l = 0 ... L; the label first.

        Raises
        ------
        InvalidData
            If a symbol is not in the vocabulary, or no string of the grammar agrees with a row.

        Examples
        --------
        >>> from solvable.models.hierarchy.target import RandomHierarchy
        >>> target = RandomHierarchy(4, 2, 2, 2)
        >>> X, y = target.sample(1, rng=0)
        >>> X[0, 0] = -1
        >>> bool(target.posterior(X)[0][0, 0, y[0]] > 0)
        True
        """
        return self._propagate(*self._masked_evidence(X), "all")[0]

    def label_probabilities(self, X: np.ndarray) -> np.ndarray:
        """Return the exact law of the label of strings with masked leaves (-1), shape (n, n_c).

        Parameters
        ----------
        X : ndarray of shape (n, s ** L)
            Strings whose masked leaves are -1.

        Returns
        -------
        ndarray of shape (n, n_c)
            Probabilities of the labels.

        Raises
        ------
        InvalidData
            If a symbol is not in the vocabulary, or no string of the grammar agrees with a row.
        """
        return self._propagate(*self._masked_evidence(X), "root")[0][0][:, 0]

    def next_token_law(self, X: np.ndarray, levels: int | None = None) -> np.ndarray:
        r"""Return the exact law of the last leaf given the leaves just before it.

        Parameters
        ----------
        X : ndarray of shape (n, s ** L)
            Strings. The last leaf and the leaves before the context are not used, and may be -1.
        levels : int, optional
            Height :math:`\ell` of the context, from 0 to L: the :math:`s^\ell-1` leaves before the last
            one; default all.

        Returns
        -------
        ndarray of shape (n, V)
            Probabilities of the symbols of the last leaf.

        Raises
        ------
        InvalidData, InvalidParameter
            If a symbol is not in the vocabulary, no string agrees with a row, or `levels` is out of
            range.

        Examples
        --------
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
        r"""Return the evidence of noisy leaves (arXiv:2402.16991): symbols that are random at a rate.

        The observed symbol has likelihood :math:`1-\epsilon+\epsilon/V`, each other one
        :math:`\epsilon/V`.

        Parameters
        ----------
        X : ndarray of shape (n, s ** L)
            Strings; masked leaves (-1) have no evidence.
        epsilon : float
            Noise, from 0 (none) to 1 (nothing is known).
        rng : Generator or int, optional
            Source of the noise: each observed symbol is a random one with probability epsilon. Without
            it the observed symbols are those of X, as for the mean belief of derivations/hierarchy (17).

        Returns
        -------
        ndarray of shape (n, s ** L, V)
            Evidence for :meth:`belief_propagation`.

        Raises
        ------
        InvalidData, InvalidParameter
            If a symbol is not in the vocabulary or epsilon is out of range.
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
