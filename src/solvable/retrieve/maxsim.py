"""Exact MaxSim scores in NumPy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

BLOCK_TOKENS = 8192
"""Number of document tokens per block, whose similarities to a query stay in the cache."""


class Blocks:
    """Token vectors of documents in blocks of similar length, for exact MaxSim with all of them."""

    def __init__(self, vectors: np.ndarray, starts: np.ndarray) -> None:
        lengths = np.diff(starts)
        order = np.argsort(lengths, kind="stable")
        self.count = len(lengths)
        self._blocks: list[tuple[np.ndarray, np.ndarray]] = []
        first = 0
        while first < len(order):
            # Documents in the order of their length: the last of a block is the longest.
            last = first + 1
            while last < len(order) and (last + 1 - first) * lengths[order[last]] <= BLOCK_TOKENS:
                last += 1
            members = order[first:last]
            # Shorter documents repeat their last token, which changes no maximum.
            steps = np.arange(lengths[members].max())[:, None]
            rows = starts[members] + np.minimum(steps, lengths[members] - 1)
            self._blocks.append((members, vectors[rows].astype(np.float32)))
            first = last

    def scores(self, queries: Sequence[np.ndarray]) -> np.ndarray:
        """Return the MaxSim of each query with each document, shape (queries, documents)."""
        found = np.empty((len(queries), self.count), dtype=np.float32)
        for first in range(0, len(queries), 16):
            some = queries[first : first + 16]
            tokens = np.concatenate(some).astype(np.float32)
            starts = np.cumsum([0, *map(len, some[:-1])])
            for members, vectors in self._blocks:
                length, number, dimension = vectors.shape
                # s(Q, D) = sum_i max_j <q_i, d_j>; positions come first, so that the maximum runs
                # over whole contiguous arrays.
                similar = vectors.reshape(-1, dimension) @ tokens.T
                best = similar.reshape(length, -1).max(axis=0).reshape(number, -1)
                found[first : first + 16, members] = np.add.reduceat(best, starts, axis=1).T
        return found


def pack(rows: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Concatenate token vectors, and return them with the first row of each document."""
    starts = np.concatenate([[0], np.cumsum([len(one) for one in rows])]).astype(np.int64)
    return np.concatenate(list(rows)), starts


def maxsim(queries: Sequence[np.ndarray], documents: Sequence[np.ndarray]) -> np.ndarray:
    """Return the MaxSim of lists of token vectors, shape (queries, documents)."""
    return Blocks(*pack(documents)).scores(queries)
