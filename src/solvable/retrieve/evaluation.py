"""Quality of a ranking: nDCG at 10 per query, with ties at their mean rank."""

from __future__ import annotations

import numpy as np

from solvable.retrieve.encoder import encode
from solvable.retrieve.materials import HeldOut, Lexical
from solvable.retrieve.maxsim import maxsim

CUT = 10
"""Number of first ranks that count."""


def ndcg(scores: np.ndarray, relevant: np.ndarray) -> np.ndarray:
    """Return nDCG at 10 of each query with one relevant document, from scores (queries, documents)."""
    # nDCG = 1 / log2(rank + 2) for a rank below 10, counted from 0. Tied documents have their mean
    # rank, so that equal scores for all documents earn nothing.
    own = np.take_along_axis(scores, relevant[:, None], axis=1)
    better, least = (scores > own).sum(axis=1), (scores >= own).sum(axis=1) - 1
    ranks = (better + least) / 2
    return np.where(ranks < CUT, 1 / np.log2(ranks + 2), 0.0)


def lexical_baseline(test: HeldOut) -> np.ndarray:
    """Return nDCG at 10 of each test query under BM25."""
    lexical = Lexical(test.documents)
    scores = np.stack([lexical.scores(query) for query in test.queries])
    return ndcg(scores, np.arange(len(test.queries)))


def evaluate(model: object, test: HeldOut) -> np.ndarray:
    """Return nDCG at 10 of each test query under a ``MultiVectorEncoder``."""
    documents = encode(model, test.documents, "document")
    queries = encode(model, test.queries, "query")
    return ndcg(maxsim(queries, documents), np.arange(len(queries)))
