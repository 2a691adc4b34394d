"""Belief propagation: exact laws of all symbols of a derivation given evidence on its leaves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np

from solvable.errors import InvalidData
from solvable.models.hierarchy.posteriors import Law, rule_law

Given = Literal["all", "below", "root"]
"""Evidence of the laws: all leaves, the leaves below the symbol, or all leaves for the root alone."""

CHUNK_NUMBERS = 1 << 16
"""Numbers in the largest array of one level of a chunk of strings, so that it fits into the cache."""


def propagate(
    tables: Sequence[np.ndarray],
    laws: Sequence[Law],
    prior: np.ndarray,
    n: int,
    evidence: Callable[[slice], np.ndarray],
    vocabulary: int,
    given: Given = "all",
) -> tuple[list[np.ndarray], np.ndarray]:
    """Return the laws of all symbols, root first, of n strings, and their log-likelihoods."""
    # `prior` is the law of the root, and `evidence(rows)` returns likelihoods of leaves, shape
    # (rows, d, V). Laws of level l have shape (n, s^l, symbols). They are given all leaves; with "below",
    # given the leaves below the symbol only, if all symbols are equally likely before; with "root" only
    # the law of the root is returned.
    branching = tables[0].shape[2]
    sizes = [*(len(table) for table in tables), vocabulary]
    kept = 1 if given == "root" else len(sizes)
    results = [np.empty((n, branching**level, sizes[level])) for level in range(kept)]
    logs = np.empty(n)
    rules = max(table.shape[0] * table.shape[1] for table in tables)
    rows = max(1, CHUNK_NUMBERS // (rules * branching ** (len(tables) - 1)))
    for start in range(0, n, rows):
        part = slice(start, min(start + rows, n))
        # Symbols come first within a chunk, so that rules are gathered as whole rows.
        leaves = np.moveaxis(np.asarray(evidence(part), dtype=np.float64), -1, 0)
        levels, weights, scale = upward(leaves, tables, laws)
        joint = prior[:, None, None] * levels[0]
        total = joint.sum(axis=0)
        _check_possible(total[:, 0], start)
        logs[part] = scale + np.log(total[:, 0])
        if given != "below":
            levels[0] = joint / total
        if given == "all":
            levels = downward(levels[0], weights, tables, vocabulary)
        for out, level in zip(results, levels, strict=False):
            out[part] = np.moveaxis(level, 0, -1)
    return results, logs


def _check_possible(likelihoods: np.ndarray, start: int) -> None:
    """Refuse evidence that no string of the grammar can give."""
    bad = likelihoods <= 0
    if bad.any():
        raise InvalidData(
            f"the evidence of row {start + int(np.argmax(bad))} has probability 0 under this grammar; "
            "allowed: evidence that at least one string can give. Mask the leaves that are wrong."
        )


def upward(
    leaves: np.ndarray, tables: Sequence[np.ndarray], laws: Sequence[Law]
) -> tuple[list[np.ndarray], list[np.ndarray], np.ndarray]:
    """Beliefs of each level given the leaves below, (symbols, n, s^l); weights of rules; log scale."""
    # The weights of the rules of one level have shape (parents, rules, n, s^(l-1)).
    beliefs, scale = _normalised(leaves)
    levels = [beliefs]
    weights: list[np.ndarray] = []
    for table, law in zip(reversed(tables), reversed(laws), strict=True):
        branching = table.shape[2]
        shape = (len(levels[0]), leaves.shape[1], -1, branching)
        children = np.moveaxis(levels[0].reshape(shape), -1, 0).copy()
        # psi(a) = sum_k f_k prod_i b_i(child i of rule k of a)  (hierarchy 24)
        weight = children[0][table[:, :, 0]]
        for place in range(1, branching):
            weight *= children[place][table[:, :, place]]
        weight *= rule_law(law, table.shape[1])[:, None, None]
        beliefs, more = _normalised(weight.sum(axis=1))
        scale = scale + more
        levels.insert(0, beliefs)
        weights.insert(0, weight)
    return levels, weights, scale


def _normalised(messages: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Messages of shape (symbols, n, k) that sum to 1 over symbols, and the log of their sums."""
    total = messages.sum(axis=0)
    # Impossible messages stay 0, and the likelihood at the root becomes 0.
    total[total <= 0] = 1
    return messages / total, np.log(total).sum(axis=1)


def downward(
    root: np.ndarray, weights: Sequence[np.ndarray], tables: Sequence[np.ndarray], vocabulary: int
) -> list[np.ndarray]:
    """Laws of the symbols of each level given all leaves, shape (symbols, n, s^l), root first."""
    levels = [root]
    for weight, table in zip(weights, tables, strict=True):
        total = weight.sum(axis=1)
        share = np.divide(levels[-1], total, out=np.zeros_like(total), where=total > 0)
        # P(rule k of a | leaves) = P(a | leaves) f_k prod_i b_i(child i) / psi(a)  (hierarchy 25)
        chosen = (weight * share[:, None]).reshape(-1, *weight.shape[2:])
        children = np.zeros((vocabulary, *weight.shape[2:], table.shape[2]))
        for place in range(table.shape[2]):
            # P(child i = c | leaves): the sum over the rules whose child i is c
            symbols = table[:, :, place].ravel()
            order = np.argsort(symbols, kind="stable")
            present, starts = np.unique(symbols[order], return_index=True)
            children[present, ..., place] = np.add.reduceat(chosen[order], starts, axis=0)
        levels.append(children.reshape(vocabulary, root.shape[1], -1))
    return levels


def leaf_likelihoods(X: np.ndarray, hit: float, miss: float, vocabulary: int) -> np.ndarray:
    """Likelihood of each symbol of each leaf, (n, d, V): `hit` for its symbol, `miss` for others."""
    # All symbols of a masked leaf (-1) have likelihood 1.
    rows = np.full((vocabulary + 1, vocabulary), miss)
    np.fill_diagonal(rows, hit)
    rows[-1] = 1.0
    return np.asarray(rows[X])
