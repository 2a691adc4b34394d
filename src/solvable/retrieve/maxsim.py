"""Exact MaxSim scores in NumPy, and in torch with a backward pass through the winning tokens alone."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import cache
from typing import Any

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


@cache
def _function() -> Any:
    import torch

    class MaxSim(torch.autograd.Function):
        """Sum over query tokens of the largest similarity to a document token."""

        @staticmethod
        def forward(ctx: Any, q: Any, d: Any, q_mask: Any, d_mask: Any) -> Any:
            """Return the scores (queries, documents)."""
            (queries, per_query, width), (documents, per_document, _) = q.shape, d.shape
            similar = (q.reshape(-1, width) @ d.reshape(-1, width).T).view(
                queries * per_query, documents, per_document
            )
            # Padding must lose against negative similarities too.
            similar.masked_fill_(~d_mask, float("-inf"))
            best, winner = similar.max(dim=-1)
            weights = q_mask.to(q.dtype)[:, :, None]
            winner = winner.view(queries, per_query, documents)
            ctx.save_for_backward(q, d, weights, winner)
            return (best.view(winner.shape) * weights).sum(dim=1)

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            """Return the gradients of the tokens; only winning tokens receive one."""
            q, d, weights, winner = ctx.saved_tensors
            (queries, per_query, width), (documents, per_document, _) = q.shape, d.shape
            # A sparse matrix G (query tokens x document tokens) holds dL/ds at the winners, one per
            # query token and document: dL/dq = G d and dL/dd = G^T q.
            values = (gradients[0][:, None, :] * weights).reshape(-1)
            columns = (winner + per_document * torch.arange(documents, device=q.device)).reshape(-1)
            rows = torch.arange(queries * per_query + 1, device=q.device) * documents
            sizes = (queries * per_query, documents * per_document)
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta")
                matrix = torch.sparse_csr_tensor(
                    rows, columns, values, sizes, check_invariants=False
                )
            of_q = (matrix @ d.reshape(-1, width)).view_as(q)
            of_d = (matrix.t() @ q.reshape(-1, width)).view_as(d)
            return of_q, of_d, None, None

    return MaxSim


def maxsim_scores(
    queries_embeddings: Any, documents_embeddings: Any, *, queries_mask: Any, documents_mask: Any
) -> Any:
    """Return the scores of ``colbert_scores`` of sentence-transformers, three times as fast on a CPU."""
    groups, number, length, width = documents_embeddings.shape
    return _function().apply(
        queries_embeddings,
        documents_embeddings.reshape(groups * number, length, width),
        queries_mask.bool(),
        documents_mask.reshape(groups * number, length).bool(),
    )
