"""Exact laws of the symbols of a grammar, from products of transition matrices."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

Law = np.ndarray | None
"""Probabilities of the rules of a level, shape (rules,); None where all rules are equally likely."""


def rule_law(law: Law, rules: int) -> np.ndarray:
    """Probabilities of the rules of each symbol, shape (rules,)."""
    return np.full(rules, 1 / rules) if law is None else law


def transition_matrix(table: np.ndarray, law: Law, position: int, vocabulary: int) -> np.ndarray:
    """Law of the child symbol at a position given its parent, shape (parents, V)."""
    parents, rules, _ = table.shape
    matrix = np.zeros((parents, vocabulary))
    # P(a, b) = sum_k f_k 1[child of rule k of a is b]  (hierarchy 3)
    places = (np.arange(parents)[:, None], table[:, :, position])
    np.add.at(matrix, places, rule_law(law, rules))
    return matrix


def path_matrix(
    tables: Sequence[np.ndarray], laws: Sequence[Law], path: Sequence[int], vocabulary: int
) -> np.ndarray:
    """Law of the symbol at the end of a path of positions, given the symbol at its start."""
    product = np.eye(len(tables[0]) if tables else vocabulary)
    for table, law, position in zip(tables, laws, path, strict=False):
        # P_1 P_2 ... P_(l-1)  (hierarchy 3)
        product = product @ transition_matrix(table, law, position, vocabulary)
    return product


def label_law(joint: np.ndarray) -> np.ndarray:
    """Law of the label given a symbol, shape (symbols, n_c); NaN for symbols that never occur there."""
    # `joint` has shape (n_c, symbols) and is proportional to the joint law.
    total = joint.sum(axis=0)
    return np.divide(joint, total, out=np.full(joint.shape, np.nan), where=total > 0).T


def pair_law(
    table: np.ndarray, law: Law, prior: np.ndarray, first: int, second: int, vocabulary: int
) -> np.ndarray:
    """Joint law of the children at two positions, shape (V, V), for a parent of the law `prior`."""
    joint = np.zeros((vocabulary, vocabulary))
    weights = prior[:, None] * rule_law(law, table.shape[1])
    np.add.at(joint, (table[:, :, first], table[:, :, second]), weights)
    return joint


def leaf_covariance(
    tables: Sequence[np.ndarray], laws: Sequence[Law], prior: np.ndarray, path: Sequence[int],
    vocabulary: int,
) -> np.ndarray:  # fmt: skip
    """Covariance C(mu, nu) of the last leaf (rows) and of the leaf at the end of a path, shape (V, V)."""
    # `tables` begin with those of the lowest common ancestor, whose law is `prior`. A path that ends
    # above the leaves gives the covariance of the last leaf and of the symbol at the end of the path.
    last = tables[0].shape[2] - 1
    joint = pair_law(tables[0], laws[0], prior, last, path[0], vocabulary)
    right = path_matrix(tables[1:], laws[1:], [last] * (len(tables) - 1), vocabulary)
    left = path_matrix(tables[1:], laws[1:], path[1:], vocabulary)
    # P(mu, nu) = sum_bc right(b, mu) P(b, c) left(c, nu), minus the product of its marginals
    joint = right.T @ joint @ left
    return np.asarray(joint - joint.sum(axis=1)[:, None] * joint.sum(axis=0))
