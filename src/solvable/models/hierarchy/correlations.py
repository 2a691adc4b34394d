"""Measured covariances of tokens, and the error that the number of samples causes."""

from __future__ import annotations

import numpy as np

CHUNK_NUMBERS = 1 << 20
"""Pairs of tokens that are counted at a time."""


def pair_covariances(X: np.ndarray, target: np.ndarray, vocabulary: int) -> np.ndarray:
    """Covariance C(mu, nu) of a token (rows) and of each column of X, shape (columns, V, V)."""
    # `target` has shape (n,) and contains the token of each row.
    n, columns = X.shape
    cells = vocabulary * vocabulary
    counts = np.zeros(columns * cells, dtype=np.int64)
    offsets = cells * np.arange(columns)
    rows = max(1, CHUNK_NUMBERS // max(columns, 1))
    for start in range(0, n, rows):
        part = slice(start, start + rows)
        places = offsets + vocabulary * target[part, None].astype(np.int64) + X[part]
        counts += np.bincount(places.ravel(), minlength=counts.size)
    joint = counts.reshape(columns, vocabulary, vocabulary) / n
    return np.asarray(joint - joint.sum(axis=2, keepdims=True) * joint.sum(axis=1, keepdims=True))


def last_token_covariances(
    X: np.ndarray, vocabulary: int, branching: int
) -> tuple[np.ndarray, ...]:
    """Covariances of the last token and earlier ones, by the height of their common ancestor."""
    # Entry l - 1 has shape (s^l - s^(l-1), V, V): the earlier tokens whose lowest common ancestor with
    # the last token is l levels above the leaves, from left to right.
    length = X.shape[1]
    covariances = pair_covariances(X[:, :-1], X[:, -1], vocabulary)
    parts = []
    width = 1
    while width < length:
        parts.append(covariances[length - width * branching : length - width])
        width *= branching
    return tuple(parts)


def covariance_by_height(X: np.ndarray, vocabulary: int, branching: int) -> list[float]:
    """Root mean square of C(mu, nu) over symbols and earlier tokens, for each common ancestor."""
    # The list runs from a common ancestor just above the leaves to the label.
    parts = last_token_covariances(X, vocabulary, branching)
    return [float(np.sqrt(np.mean(part**2))) for part in parts]
