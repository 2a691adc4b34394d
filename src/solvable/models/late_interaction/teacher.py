r"""The teacher of late interaction: Gaussian tokens scored by a kernel of power-law strengths."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import get_args

import numpy as np

from solvable.arrays import check_integer, check_positive, check_real, random_stream
from solvable.errors import InvalidData, InvalidParameter, unknown_choice
from solvable.models.late_interaction.parameters import LabelKind
from solvable.models.late_interaction.scoring import maxsim
from solvable.teachers.first_layer import draw_directions, freeze

CHUNK_NUMBERS = 4_000_000
"""Number of token coordinates that are drawn at a time."""


@dataclass(frozen=True)
class RetrievalSample:
    """Queries, their candidate documents and the teacher's scores."""

    queries: np.ndarray  # tokens, (n, L_q, d)
    documents: np.ndarray  # tokens, (n, K, L_d, d)
    scores: np.ndarray  # teacher's scores with noise, (n, K)


@dataclass(frozen=True)
class LateInteractionTeacher:
    r"""Queries and documents of Gaussian tokens, scored by late interaction with a known kernel.

    .. math::
        s(Q,D)=\sum_{i=1}^{L_q}\max_{j\le L_d}q_i^\top S^\star d_j,\qquad
        S^\star=\sum_{k=1}^rk^{-a}v_kv_k^\top,

    with tokens :math:`q_i,d_j\sim N(0,I_d)` and orthonormal :math:`v_k`.
    Source: derivations/late-interaction (1), (4).

    Examples
    --------
    >>> teacher = LateInteractionTeacher(dimension=20, rank=3, decay=1.0)
    >>> teacher.strengths.round(3)
    array([1.   , 0.5  , 0.333])
    >>> sample = teacher.sample(5, candidates=8, rng=0)
    >>> sample.queries.shape, sample.documents.shape, sample.scores.shape
    ((5, 4, 20), (5, 8, 8, 20), (5, 8))
    >>> teacher.squared_overlap(teacher.kernel).round(6)
    array([1., 1., 1.])
    """

    dimension: int = 30
    r"""Dimension :math:`d\ge2` of a token."""
    rank: int = 6
    """Number :math:`r` of directions, from 1 to d."""
    decay: float = 0.5
    r"""Exponent :math:`a\ge0` of the strengths."""
    query_tokens: int = 4
    document_tokens: int = 8
    r"""Numbers :math:`L_q\ge1` and :math:`L_d\ge1` of tokens."""
    normalise: bool = False
    r"""Rescale each token to length :math:`\sqrt d`."""
    copies: float = 0.0
    """Probability, from 0 to 1, that a token of a document is a copy of a random token of the query."""
    score_noise: float = 0.0
    """Standard deviation of Gaussian noise on each score, at least 0."""
    weak_temperature: float = 1.0
    r"""Temperature :math:`\beta>0` of :meth:`weak_positives`."""
    seed: int = 0
    """Seed of the directions."""

    def __post_init__(self) -> None:
        check_integer("dimension", self.dimension, 2)
        check_integer("rank", self.rank, 1, self.dimension)
        check_integer("query_tokens", self.query_tokens, 1)
        check_integer("document_tokens", self.document_tokens, 1)
        check_integer("seed", self.seed, 0)
        check_real("decay", self.decay, 0.0)
        check_real("copies", self.copies, 0.0)
        check_real("score_noise", self.score_noise, 0.0)
        check_positive(weak_temperature=self.weak_temperature)
        if self.copies > 1:
            raise InvalidParameter(f"copies is {self.copies}; allowed: 0 to 1.")

    @cached_property
    def strengths(self) -> np.ndarray:
        r"""Strengths :math:`\lambda_k=k^{-a}`, shape (r,)."""
        return freeze(np.arange(1, self.rank + 1) ** -float(self.decay))

    @cached_property
    def directions(self) -> np.ndarray:
        """Columns :math:`v_k`, shape (d, r)."""
        key = (self.seed, "teacher", "late interaction")
        return draw_directions(self.dimension, self.rank, "orthonormal", *key)

    @cached_property
    def factor(self) -> np.ndarray:
        r"""Matrix :math:`W` of shape (r, d) with :math:`W^\top W=S^\star`."""
        return freeze(np.sqrt(self.strengths)[:, None] * self.directions.T)

    @cached_property
    def kernel(self) -> np.ndarray:
        r"""Kernel :math:`S^\star`, shape (d, d)."""
        return freeze(self.factor.T @ self.factor)

    def sample(self, n: int, *, candidates: int, rng: np.random.Generator | int) -> RetrievalSample:
        """Draw queries with candidate documents and scores.

        Parameters
        ----------
        n : int
            Number of queries, at least 1.
        candidates : int
            Number :math:`K` of documents of each query, at least 1.
        rng : Generator or int
            Source of the random numbers, or a seed.

        Returns
        -------
        RetrievalSample
            Tokens of queries (n, L_q, d) and documents (n, K, L_d, d), and scores (n, K).
        """
        check_integer("n", n, 1)
        check_integer("candidates", candidates, 1)
        generator = random_stream(rng, "samples") if isinstance(rng, int) else rng
        queries = self._tokens(generator, n, self.query_tokens)
        documents = self._tokens(generator, n, candidates, self.document_tokens)
        if self.copies > 0:
            # d_j is q_i for a random i with probability `copies`   (late-interaction 4)
            shape = documents.shape[:-1]
            copied = generator.random(shape) < self.copies
            source = generator.integers(0, self.query_tokens, shape)
            documents[copied] = queries[np.nonzero(copied)[0], source[copied]]
        scores = maxsim(queries, documents, self.factor)
        if self.score_noise > 0:
            scores = scores + self.score_noise * generator.standard_normal(scores.shape)
        return RetrievalSample(queries, documents, scores)

    def chunks(
        self, n: int, *, candidates: int, rng: np.random.Generator
    ) -> Iterator[RetrievalSample]:
        """Draw `n` queries as samples that each fit into little memory."""
        numbers = self.dimension * (self.query_tokens + candidates * self.document_tokens)
        rows = max(1, CHUNK_NUMBERS // numbers)
        for start in range(0, n, rows):
            yield self.sample(min(rows, n - start), candidates=candidates, rng=rng)

    def weak_positives(self, scores: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        r"""Draw one candidate of each query with probability softmax(:math:`z/\beta`), shape (n,)."""
        # z are the scores of a query with mean 0 and variance 1   (late-interaction 5). The largest of
        # z / beta plus Gumbel noise has the probabilities of the softmax.
        z = standardised(scores) / self.weak_temperature
        return np.asarray(np.argmax(z + rng.gumbel(size=z.shape), axis=1))

    def squared_overlap(self, kernel: np.ndarray) -> np.ndarray:
        """Squared overlap of each direction with the learned direction of the same rank, shape (r,).

        If all strengths are equal (decay 0), with the span of the r learned directions.
        """
        found = np.linalg.eigh((kernel + kernel.T) / 2)[1][:, ::-1][:, : self.rank]
        squares = (self.directions.T @ found) ** 2
        return np.asarray(np.diag(squares) if self.decay > 0 else squares.sum(axis=1))

    def _tokens(self, rng: np.random.Generator, *shape: int) -> np.ndarray:
        tokens = rng.standard_normal((*shape, self.dimension))
        if self.normalise:
            tokens *= np.sqrt(self.dimension) / np.linalg.norm(tokens, axis=-1, keepdims=True)
        return tokens


def document_scores(
    queries: np.ndarray, documents: np.ndarray, strengths: np.ndarray
) -> np.ndarray:
    """Scores of tokens given by their coordinates along the teacher's directions, shape (n, K)."""
    return maxsim(queries, documents, np.diag(np.sqrt(strengths)))


def standardised(scores: np.ndarray) -> np.ndarray:
    """Scores of each query with mean 0 and variance 1."""
    centred = scores - scores.mean(axis=1, keepdims=True)
    deviation = centred.std(axis=1, keepdims=True)
    return np.asarray(centred / np.where(deviation > 0, deviation, 1.0))


def label_weights(
    scores: np.ndarray, label: LabelKind, rng: np.random.Generator | None = None
) -> np.ndarray:
    """Weights y of the candidates of each query, of sum 0, shape (n, K)   (late-interaction 5)."""
    # scores: the scores minus their mean; top-1: 1 for the best candidate minus 1/K for all;
    # random-negative: 1 for the best and -1 for a random other one, drawn from `rng`; runner-up: 1 for
    # the best and -1 for the second.
    scores = np.asarray(scores, dtype=np.float64)
    if label not in get_args(LabelKind):
        raise InvalidParameter(unknown_choice("label", label, list(get_args(LabelKind))))
    if scores.ndim != 2 or scores.shape[1] < 2 or not np.isfinite(scores).all():
        raise InvalidData(f"scores have shape {scores.shape}; allowed: (n, K), K >= 2, finite.")
    if label == "scores":
        return np.asarray(scores - scores.mean(axis=1, keepdims=True))
    n, candidates = scores.shape
    rows = np.arange(n)
    order = np.argsort(-scores, axis=1)
    weights = np.zeros(scores.shape)
    weights[rows, order[:, 0]] = 1.0
    if label == "top-1":
        return weights - 1 / candidates
    place = np.ones(n, dtype=np.int64)
    if label == "random-negative":
        if rng is None:
            raise InvalidParameter("rng is None; allowed for random-negative: a Generator.")
        place = np.asarray(rng.integers(1, candidates, n))
    weights[rows, order[rows, place]] = -1.0
    return weights
