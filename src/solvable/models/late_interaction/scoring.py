"""Scores of token sets: the sum of maxima (MaxSim), the pooled score, and the nDCG of a ranking."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from solvable.errors import InvalidData

DOCUMENT_TOKENS, QUERY_TOKENS = 1024, 512
"""Tokens of a chunk of :func:`maxsim_matrix`: its similarities take 2 MB and stay in the cache."""


def similarities(queries: np.ndarray, documents: np.ndarray, factor: np.ndarray) -> np.ndarray:
    """Return all <W q_i, W d_j>, shape (n, K, L_d, L_q), for a factor W of shape (k, d)."""
    n, candidates, length, _ = documents.shape
    left = queries @ factor.T
    right = (documents @ factor.T).reshape(n, candidates * length, -1)
    return (right @ left.transpose(0, 2, 1)).reshape(n, candidates, length, -1)


def maxsim(queries: np.ndarray, documents: np.ndarray, factor: np.ndarray) -> np.ndarray:
    """Return the score of each candidate, shape (n, K)."""
    # s(Q, D) = sum_i max_j <W q_i, W d_j>   (late-interaction 1)
    _check(queries, documents, factor)
    return np.asarray(similarities(queries, documents, factor).max(axis=2).sum(axis=2))


def pooled(queries: np.ndarray, documents: np.ndarray, factor: np.ndarray) -> np.ndarray:
    """Return the score of each candidate by mean-pooled documents, shape (n, K)."""
    # (1 / L_d) sum_ij <W q_i, W d_j>   (late-interaction 2)
    _check(queries, documents, factor)
    query = queries.sum(axis=1) @ factor.T
    document = documents.mean(axis=2) @ factor.T
    return np.asarray(np.einsum("nk,nck->nc", query, document))


@dataclass(frozen=True)
class TokenSets:
    """Sets of tokens of different sizes, without padding."""

    tokens: np.ndarray
    """Tokens of all sets, one set after the other; shape (total, d)."""
    lengths: np.ndarray
    """Number of tokens of each set, at least 1; shape (n,)."""

    def __post_init__(self) -> None:
        if self.tokens.ndim != 2 or self.lengths.sum() != len(self.tokens):
            raise InvalidData(
                f"tokens have shape {self.tokens.shape} and the lengths add up to "
                f"{self.lengths.sum()}; allowed: shape (sum of lengths, d)."
            )
        if (self.lengths < 1).any():
            raise InvalidData(
                f"set {int(np.argmax(self.lengths < 1))} has no token; allowed: at least 1 token."
            )

    @classmethod
    def of(
        cls, sets: TokenSets | np.ndarray | Sequence[np.ndarray], mask: np.ndarray | None = None
    ) -> TokenSets:
        """Return the sets of a list of (L, d) arrays, or of an array (n, L, d) and a mask (n, L)."""
        if isinstance(sets, TokenSets):
            return sets
        if not isinstance(sets, np.ndarray):
            if not len(sets):
                raise InvalidData("there are 0 sets of tokens; allowed: at least 1.")
            lengths = np.array([len(tokens) for tokens in sets])
            return cls(np.concatenate([np.asarray(tokens) for tokens in sets]), lengths)
        if sets.ndim != 3 or (mask is not None and mask.shape != sets.shape[:2]):
            shape = None if mask is None else mask.shape
            raise InvalidData(
                f"sets have shape {sets.shape} and the mask {shape}; allowed: (n, L, d) and (n, L)."
            )
        if mask is None:
            return cls(sets.reshape(-1, sets.shape[2]), np.full(len(sets), sets.shape[1]))
        return cls(sets[mask.astype(bool)], mask.astype(bool).sum(axis=1))

    @property
    def starts(self) -> np.ndarray:
        """Position of the first token of each set, shape (n,)."""
        return np.asarray(np.cumsum(self.lengths) - self.lengths)

    def means(self) -> np.ndarray:
        """Mean-pooled vector of each set, shape (n, d)."""
        return np.asarray(np.add.reduceat(self.tokens, self.starts) / self.lengths[:, None])


def maxsim_matrix(
    queries: TokenSets | np.ndarray | Sequence[np.ndarray],
    documents: TokenSets | np.ndarray | Sequence[np.ndarray],
) -> np.ndarray:
    """Return the scores sum_i max_j <q_i, d_j> of queries and documents, float32 (late-interaction 1)."""
    # Tokens are TokenSets, an array (n, L, d) or a list of arrays (L, d). Documents are scored in
    # chunks of similar length, so the memory is that of the scores and one chunk.
    left, right = TokenSets.of(queries), TokenSets.of(documents)
    if left.tokens.shape[1] != right.tokens.shape[1]:
        raise InvalidData(
            f"tokens of queries have {left.tokens.shape[1]} dimensions and those of documents "
            f"{right.tokens.shape[1]}; allowed: equally many."
        )
    tokens = np.asarray(left.tokens, dtype=np.float32)
    starts, ends = right.starts, right.starts + right.lengths - 1
    scores = np.empty((len(right.lengths), len(left.lengths)), dtype=np.float32)
    blocks = list(_blocks(left.lengths, QUERY_TOKENS))
    order = np.argsort(right.lengths, kind="stable")
    for block in _blocks(right.lengths[order], DOCUMENT_TOKENS):
        chosen = order[block]
        longest = right.lengths[chosen].max()
        # The last token of a document stands for its padding: a repeated token changes no maximum.
        places = np.minimum(starts[chosen, None] + np.arange(longest), ends[chosen, None])
        keys = right.tokens[places.ravel()].astype(np.float32, copy=False)
        for part in blocks:
            first = left.starts[part]
            query = tokens[first[0] : first[-1] + left.lengths[part][-1]]
            best = (keys @ query.T).reshape(len(chosen), longest, len(query)).max(axis=1)
            scores[chosen, part] = np.add.reduceat(best, first - first[0], axis=1)
    return scores.T


def ndcg(scores: np.ndarray, relevant: np.ndarray, *, depth: int = 10) -> np.ndarray:
    """Return the nDCG of each query, with tied documents at their mean rank (late-interaction 3)."""
    # `relevant` is the index of the one relevant document of each query, or gains of shape (n,
    # documents). With its mean rank a constant scorer gains nothing from the order of the documents.
    scores, relevant = np.asarray(scores, np.float64), np.asarray(relevant)
    if scores.ndim != 2 or not np.isfinite(scores).all():
        raise InvalidData(
            f"scores have shape {scores.shape}; allowed: finite scores of shape (n, documents)."
        )
    if relevant.shape not in {scores.shape[:1], scores.shape}:
        raise InvalidData(
            f"scores have shape {scores.shape} and relevant {relevant.shape}; allowed: "
            f"{scores.shape[:1]} or {scores.shape}."
        )
    if relevant.ndim == 1:
        if (relevant < 0).any() or (relevant >= scores.shape[1]).any():
            raise InvalidData(
                f"relevant has indices from {relevant.min()} to {relevant.max()}; allowed: 0 to "
                f"{scores.shape[1] - 1}."
            )
        own = np.take_along_axis(scores, relevant[:, None], axis=1)
        rank = ((scores > own).sum(axis=1) + (scores >= own).sum(axis=1) - 1) / 2
        return np.asarray(_gain(rank, depth))
    from scipy.stats import rankdata

    if (relevant < 0).any() or not (relevant > 0).any(axis=1).all():
        raise InvalidData(
            "a query has no relevant document or a negative gain; allowed: gains of at least 0, one "
            "of each query above 0."
        )
    reached = relevant * _gain(rankdata(-scores, axis=1) - 1, depth)
    best = -np.sort(-relevant.astype(np.float64), axis=1)
    # sum_{rho_c < k} g_c / log2(rho_c + 2), over its largest value   (late-interaction 3)
    ideal = best @ _gain(np.arange(scores.shape[1]), depth)
    return np.asarray(reached.sum(axis=1) / ideal)


def _gain(rank: np.ndarray, depth: int) -> np.ndarray:
    """Return 1 / log2(rho + 2) for ranks below the depth, else 0."""
    return np.where(rank < depth, 1 / np.log2(rank + 2), 0.0)


def _blocks(lengths: np.ndarray, most: int) -> Iterator[slice]:
    """Split sets into runs of at most this many tokens, or of one longer set."""
    start, total = 0, 0
    for place, length in enumerate(lengths.tolist()):
        if total and total + length > most:
            yield slice(start, place)
            start, total = place, 0
        total += length
    yield slice(start, len(lengths))


def _check(queries: np.ndarray, documents: np.ndarray, factor: np.ndarray) -> None:
    """Check that queries (n, L_q, d), documents (n, K, L_d, d) and factor (k, d) fit."""
    shapes = queries.shape, documents.shape, factor.shape
    fits = [len(shape) for shape in shapes] == [3, 4, 2] and shapes[0][0] == shapes[1][0]
    if not fits or len({shape[-1] for shape in shapes}) != 1:
        raise InvalidData(
            f"queries have shape {shapes[0]}, documents {shapes[1]} and the factor {shapes[2]}; "
            "allowed: (n, L_q, d), (n, K, L_d, d) and (k, d)."
        )
