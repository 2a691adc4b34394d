"""Exact laws of a drawn grammar by dense matrices, independent of the formulas of the library."""

import numpy as np

from solvable.models.hierarchy.target import RandomHierarchy


def grammars(count, vocabulary, rules, branching, depth, classes=0, ensemble="first"):
    return [
        RandomHierarchy(vocabulary, rules, branching, depth, classes, ensemble, seed=seed)
        for seed in range(count)
    ]


def transition(table, position, vocabulary):
    """P(symbol at a position | parent), shape (parents, V)."""
    parents, rules, _ = table.shape
    matrix = np.zeros((parents, vocabulary))
    np.add.at(
        matrix, (np.repeat(np.arange(parents), rules), table[:, :, position].ravel()), 1 / rules
    )
    return matrix


def joint_laws(grammar):
    """P(label, first symbol) of levels 0 ... L - 1."""
    laws = [np.eye(grammar.n_classes) / grammar.n_classes]
    for table in grammar.tables[:-1]:
        laws.append(laws[-1] @ transition(table, 0, grammar.vocabulary))
    return laws


def label_laws(joint):
    """P(label | symbol) of the symbols that occur, one column each, and P(symbol)."""
    frequency = joint.sum(axis=0)
    occurs = frequency > 0
    return joint[:, occurs] / frequency[occurs], frequency[occurs]


def mean_square_difference(columns):
    """Mean squared distance of two different columns."""
    n = columns.shape[1]
    total = 2 * n * (columns**2).sum() - 2 * (columns.sum(axis=1) ** 2).sum()
    return total / (n * (n - 1))


def token_covariances(grammar):
    """Mean square of correlations of the last leaf with others, by level of their branches."""
    V, s, L = grammar.vocabulary, grammar.branching, grammar.depth
    steps = [[transition(t, p, V) for p in range(s)] for t in grammar.tables]
    weights = np.full(grammar.n_classes, 1 / grammar.n_classes)
    means = []
    for level in range(1, L + 1):
        table, squares, paths, last = grammar.tables[level - 1], [], [np.eye(V)], np.eye(V)
        for below in range(level, L):
            paths = [path @ steps[below][p] for path in paths for p in range(s)]
            last = last @ steps[below][s - 1]
        for i in range(s - 1):
            joint = np.zeros((V, V))
            pairs = (table[:, :, i].ravel(), table[:, :, s - 1].ravel())
            np.add.at(joint, pairs, np.repeat(weights, grammar.rules) / grammar.rules)
            covariance = (joint - np.outer(joint.sum(axis=1), joint.sum(axis=0))) @ last
            squares += [((path.T @ covariance) ** 2).mean() for path in paths]
        means.append(np.mean(squares))
        weights = weights @ steps[level - 1][s - 1]
    return np.array(means)


def compatible_counts(grammar, steps, count, rng):
    """Numbers of last leaves that fit the leaves before, below ancestors `steps` levels up."""
    tables = grammar.tables[grammar.depth - steps :]
    symbol = rng.integers(0, len(tables[0]), count)
    possible = np.ones((count, len(tables[0])), dtype=bool)
    for table in tables:
        drawn = table[symbol, rng.integers(0, grammar.rules, count)]
        fits = (table[None, :, :, :-1] == drawn[:, None, None, :-1]).all(axis=3)
        below = np.zeros((count, grammar.vocabulary), dtype=bool)
        strings, parents, rules = np.nonzero(fits & possible[:, :, None])
        below[strings, table[parents, rules, -1]] = True
        symbol, possible = drawn[:, -1], below
    return possible.sum(axis=1)
