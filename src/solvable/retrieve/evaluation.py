"""Quality of a ranking: nDCG at 10 of each test query."""

from __future__ import annotations

import numpy as np

from solvable.models.late_interaction.scoring import ndcg
from solvable.retrieve.encoder import encode
from solvable.retrieve.materials import HeldOut, Lexical
from solvable.retrieve.maxsim import maxsim


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
