"""Training examples of the three phases, and test sets with the quality of a ranking on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from solvable.arrays import random_stream
from solvable.models.late_interaction.scoring import ndcg
from solvable.retrieve.corpus import Corpus, Pair, Split, split
from solvable.retrieve.encoder import encode
from solvable.retrieve.maxsim import maxsim
from solvable.retrieve.passages import Lexical, standardised, without_span
from solvable.retrieve.request import TrainRequest
from solvable.retrieve.students import minilm_folder

DISTRACTORS = 700
"""Largest number of documents that are added to the relevant ones of the test queries."""

HARD_RANKS = (3, 30)
"""Ranks of BM25, counted from 0, of hard negatives; the first ones are too often relevant too."""

CANDIDATES = 8
"""Number of documents per query of the distillation phase, the positive included."""


class Example(NamedTuple):
    """A query with its documents, the positive first, and their teacher scores."""

    query: str
    documents: tuple[str, ...]
    domain: str
    scores: tuple[float, ...] = ()


class HeldOut(NamedTuple):
    """Queries and documents; query number i is answered by document number i alone."""

    queries: tuple[str, ...]
    documents: tuple[str, ...]


class Materials(NamedTuple):
    """Examples of each phase and the test sets."""

    unsupervised: list[Example]
    supervised: list[Example]
    distillation: list[Example]
    tests: dict[str, HeldOut]


def prepare(corpus: Corpus[Pair], held_out: Sequence[str], request: TrainRequest) -> Materials:
    """Make the examples, the same for all seeds, from a corpus without near duplicates."""
    parts = split(corpus, held_out, request.tested)
    rng = random_stream(0, "materials", corpus.fingerprint[:16])
    pairs = parts.training
    spans = [_cloze(pair, rng) for pair in pairs]
    unsupervised = [one for one in spans if one is not None][: request.unsupervised]
    lexical = Lexical.of([pair.document for pair in pairs])
    order = rng.permutation(len(pairs))
    mined = order[: request.supervised]
    supervised = [
        Example(pairs[i].query, (pairs[i].document, *negatives), pairs[i].domain)
        for i, negatives in zip(mined, _hard_negatives(pairs, mined, lexical, rng), strict=True)
    ]
    chosen = order[: request.distilled]
    return Materials(
        unsupervised,
        [one for one in supervised if len(one.documents) > 1],
        _distillation(pairs, chosen, lexical, rng),
        _tests(parts, request.tested),
    )


def _cloze(pair: Pair, rng: np.random.Generator) -> Example | None:
    """Return a span of a document as a query for the rest of the document."""
    # inverse cloze task: the span stays in the document with probability 0.1, so that equal words
    # count too
    query, rest = without_span(pair.document, rng)
    removed = rng.random() < 0.9
    if len(rest.split()) < 4:
        return None
    document = rest if removed else " ".join(pair.document.split())
    return Example(query, (document,), pair.domain)


def _hard_negatives(
    pairs: Sequence[Pair], chosen: np.ndarray, lexical: Lexical, rng: np.random.Generator
) -> list[tuple[str, ...]]:
    """Return three hard negatives per pair: those of the corpus, or ranks 4 to 30 of BM25."""
    number = 3
    best = [lexical.best(pairs[i].query, HARD_RANKS[1]) for i in chosen]
    found: list[tuple[str, ...]] = []
    for i, row in zip(chosen, best, strict=True):
        if len(pairs[i].negatives) >= number:
            found.append(pairs[i].negatives[:number])
            continue
        # The positive is never a negative, whatever its rank.
        ranks = [j for j in row[HARD_RANKS[0] :] if j != i]
        drawn = rng.permutation(len(ranks))[:number]
        texts = (*pairs[i].negatives, *(pairs[ranks[k]].document for k in drawn))
        found.append(texts[:number] if len(texts) >= number else ())
    return found


def _distillation(
    pairs: Sequence[Pair], chosen: np.ndarray, lexical: Lexical, rng: np.random.Generator
) -> list[Example]:
    """Return queries with the positive, candidates of several ranks and teacher scores."""
    best = [lexical.best(pairs[i].query, HARD_RANKS[1]) for i in chosen]
    given, listed = [], []
    for i, row in zip(chosen, best, strict=True):
        pair = pairs[i]
        if len(pair.scores) >= CANDIDATES:
            documents = (pair.document, *pair.negatives)[:CANDIDATES]
            given.append(Example(pair.query, documents, pair.domain, pair.scores[:CANDIDATES]))
            continue
        others = [j for j in row if j != i]
        drawn = rng.permutation(len(others))[: CANDIDATES - 1]
        if len(drawn) == CANDIDATES - 1:
            listed.append((i, [i, *(others[k] for k in drawn)]))
    return given + (_taught(pairs, listed, lexical) if listed else [])


def _taught(
    pairs: Sequence[Pair], listed: Sequence[tuple[int, list[int]]], lexical: Lexical
) -> list[Example]:
    """Return examples with the scores of a teacher: BM25 plus twice the cosine of MiniLM."""
    from sentence_transformers import SentenceTransformer

    teacher = SentenceTransformer(str(minilm_folder()))
    teacher.max_seq_length = 64
    needed = sorted({j for _, row in listed for j in row})
    place = {j: position for position, j in enumerate(needed)}
    options: dict[str, Any] = {"normalize_embeddings": True, "show_progress_bar": False}
    documents = teacher.encode([pairs[j].document for j in needed], **options)
    queries = teacher.encode([pairs[i].query for i, _ in listed], **options)
    examples = []
    for (i, row), query in zip(listed, queries, strict=True):
        cosines = documents[[place[j] for j in row]] @ query
        lexical_scores = lexical.scores(pairs[i].query)[row]
        scores = standardised(lexical_scores) + 2 * standardised(cosines)
        texts = tuple(pairs[j].document for j in row)
        examples.append(Example(pairs[i].query, texts, pairs[i].domain, tuple(scores.tolist())))
    return examples


def _tests(parts: Split, tested: int) -> dict[str, HeldOut]:
    """Return the test sets: the relevant documents and others of the same domains."""
    sets = {"in domain": (parts.inside, parts.training)}
    if parts.outside:
        sets["out of domain"] = (parts.outside[:tested], parts.outside[tested:])
    return {
        name: HeldOut(
            tuple(pair.query for pair in pairs),
            tuple(pair.document for pair in (*pairs, *others[:DISTRACTORS])),
        )
        for name, (pairs, others) in sets.items()
    }


def evaluate(model: object, test: HeldOut) -> np.ndarray:
    """Return nDCG at 10 of each test query under a ``MultiVectorEncoder``."""
    documents = encode(model, test.documents, "document")
    queries = encode(model, test.queries, "query")
    return ndcg(maxsim(queries, documents), np.arange(len(queries)))
