"""Building of an index, and changes of one: passages, vectors, BM25, and the ranking that wins."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from solvable.arrays import random_stream
from solvable.errors import InvalidParameter, quoted
from solvable.retrieve.corpus import Corpus, check_memory
from solvable.retrieve.documents import Document
from solvable.retrieve.folder_encoder import load_model, unit
from solvable.retrieve.index import FORMAT, RANKINGS, Index, passage_text
from solvable.retrieve.passages import Lexical, searchable, split_spans, without_span
from solvable.retrieve.students import token_starts

WIDTH = 96
"""Dimension of stored token vectors: projected to the largest principal components of 96 of the
384 dimensions of MiniLM, and rounded to 8 bits, nDCG@10 on the documentation changed by 0.003."""

PART = 256
"""Number of passages per call of the encoder."""

Report = Callable[[int, int, float | None], None]


class Encoded(NamedTuple):
    """A document with its passages: their places, their token vectors as 8-bit integers, and texts."""

    document: Document
    spans: np.ndarray
    tokens: Sequence[np.ndarray]
    texts: np.ndarray | None  # vectors of whole passages, if the model has them


def encoded_in(index: Index) -> list[Encoded]:
    """Return the documents of an index."""
    content, arrays = index.content, index.arrays
    rows = np.split(arrays["vectors"], arrays["starts"][1:-1])
    documents = zip(content["identities"], content["documents"], content["titles"], strict=True)
    texts = arrays.get("texts")
    return [
        Encoded(
            Document(*one), arrays["spans"][a:b], rows[a:b], None if texts is None else texts[a:b]
        )
        for one, (a, b) in zip(documents, pairwise(arrays["firsts"]), strict=True)
    ]


class Encoding:
    """Projection and scale of token vectors, found on the first passages that are encoded."""

    def __init__(self, encoder: Any, projection: Any = None, scale: float = 0.0) -> None:
        self.encoder, self.projection, self.scale = encoder, projection, scale

    def rounded(self, tokens: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Return token vectors as 8-bit integers."""
        if not self.scale:
            whole = np.concatenate(tokens)
            # Few tokens do not show the directions of documents that are added later.
            if whole.shape[1] > WIDTH and len(whole) > 10 * whole.shape[1]:
                _, vectors = np.linalg.eigh(whole.T.astype(np.float64) @ whole)
                self.projection = vectors[:, -WIDTH:].astype(np.float32)
                whole = unit(whole @ self.projection)
            self.scale = max(float(np.abs(whole).max()), 1e-6) / 127
        if self.projection is not None:
            tokens = [unit(one @ self.projection) for one in tokens]
        return [(one / self.scale).round().clip(-127, 127).astype(np.int8) for one in tokens]

    def encode(self, documents: Sequence[Document], report: Report | None = None) -> list[Encoded]:
        """Split documents into passages, and encode these."""
        spans = [*map(np.array, self._split(documents))]
        owners = np.repeat(np.arange(len(spans)), [len(one) for one in spans])
        places = np.concatenate(spans)
        # a byte per dimension and token, twice while they are joined; 1,000 for texts and their vectors
        needed = 2.0 * len(places) * (self.encoder.window * WIDTH + 1000)
        check_memory(f"an index of {len(documents):,} documents", needed)
        tokens: list[Any] = [None] * len(owners)
        texts: list[Any] = [None] * len(owners)
        # In a random order the first passages are typical, and so is their time.
        order = random_stream(0, "order of passages").permutation(len(owners))
        started = perf_counter()
        for first in range(0, len(order), PART):
            part = order[first : first + PART]
            rows = [
                passage_text(documents[owners[i]].title, documents[owners[i]].text, places[i])
                for i in part
            ]
            vectors, whole = self.encoder.both(rows, "document")
            for place, number in enumerate(self.rounded(vectors)):
                tokens[part[place]] = number
            for place, i in enumerate(part if whole is not None else ()):
                texts[i] = whole[place].astype(np.float16)
            if report is not None:
                done = first + len(part)
                left = (perf_counter() - started) / done * (len(order) - done)
                report(done, len(order), left)
        bounds = pairwise(np.cumsum([0, *map(len, spans)]))
        return [
            Encoded(one, held, tokens[a:b], None if texts[a] is None else np.stack(texts[a:b]))
            for one, held, (a, b) in zip(documents, spans, bounds, strict=True)
        ]

    def _split(self, documents: Sequence[Document]) -> list[list[tuple[int, int]]]:
        tokenizer, window = self.encoder.tokenizer, self.encoder.window
        found = []
        for first in range(0, len(documents), 1024):
            some = documents[first : first + 1024]
            titles = token_starts(tokenizer, [one.title for one in some])
            offsets = token_starts(tokenizer, [one.text for one in some])
            for one, title, starts in zip(some, titles, offsets, strict=True):
                size = max(window - len(title), window // 2, 1)
                found.append(split_spans(one.text, starts, size))
        return found


def assemble(rows: Sequence[Encoded], encoding: Encoding, fingerprint: str) -> Index:
    """Return an index of encoded documents, ranked by the model alone."""
    passages = [one for row in rows for one in row.tokens]
    arrays = {
        "vectors": np.concatenate(passages),
        "starts": np.cumsum([0, *map(len, passages)]).astype(np.int64),
        "firsts": np.cumsum([0, *(len(row.spans) for row in rows)]).astype(np.int64),
        "spans": np.concatenate([row.spans for row in rows]).astype(np.int64),
    }
    if encoding.projection is not None:
        arrays["projection"] = encoding.projection
    if rows[0].texts is not None:
        arrays["texts"] = np.concatenate([row.texts for row in rows if row.texts is not None])
    documents = [row.document for row in rows]
    lexical = Lexical.of([f"{one.title} {one.text}" for one in documents])
    content: dict[str, Any] = {
        "format": FORMAT,
        "identities": [one.identity for one in documents],
        "documents": [one.text for one in documents],
        "titles": [one.title for one in documents],
        "words": lexical.words,
        "scale": encoding.scale,
        "model": encoding.encoder.model,
        "ranking": "model",
        "ndcg": {},
        "tested": "",
        "fingerprint": fingerprint,
    }
    return Index(arrays | lexical.arrays, content, encoding.encoder)


def build_index(
    corpus: Corpus[Document], model: Path | None = None, *, progress: Report | None = None
) -> Index:
    """Encode documents, choose the ranking that finds more, and enough candidates for it."""
    encoding = Encoding(load_model(model))
    rows = encoding.encode(corpus.pairs, progress)
    return _ranked(assemble(rows, encoding, corpus.fingerprint), rows, encoding)


def change_index(
    index: Index,
    added: Sequence[Document] = (),
    deleted: Sequence[str] = (),
    *,
    whole_files: bool = False,
    progress: Report | None = None,
) -> tuple[Index, int, int]:
    """Delete documents by id or file and add others; return the index and both numbers.

    An added document replaces the one of its id; with ``whole_files`` those of its file.
    """
    # The id of a section is its file and line.
    files = {name: name.rpartition(":")[0] for name in index.identities}
    for name in deleted:
        if name not in files and name not in files.values():
            raise InvalidParameter(
                f"the index has no document {quoted(name)}; allowed: ids or files of its documents, "
                f"such as {quoted(index.identities[0])}."
            )
    gone = {*deleted, *(one.identity for one in added)}
    if whole_files:
        gone |= {one.identity.rpartition(":")[0] for one in added}
    encoding = Encoding(index.encoder, index.arrays.get("projection"), index.content["scale"])
    rows = [
        row
        for row in encoded_in(index)
        if row.document.identity not in gone and files[row.document.identity] not in gone - {""}
    ]
    removed = len(index) - len(rows)
    if not rows and not added:
        raise InvalidParameter("no document would be left; allowed: to delete some of them.")
    rows += encoding.encode(added, progress) if added else []
    text = repr((index.content["fingerprint"], sorted(gone), list(added)))
    fingerprint = hashlib.sha256(text.encode()).hexdigest()
    made = assemble(rows, encoding, fingerprint)
    if not index.content["ndcg"]:
        return _ranked(made, rows, encoding), removed, len(added)
    made.content.update({key: index.content[key] for key in ("ranking", "ndcg", "tested")})
    return made, removed, len(added)


def _ranked(index: Index, rows: Sequence[Encoded], encoding: Encoding) -> Index:
    """Choose the ranking that finds more."""
    content = index.content
    content["ndcg"], content["tested"] = compared(index, rows, encoding)
    better = content["ndcg"].get("hybrid", 1.0) >= content["ndcg"].get("model", 0.0)
    content["ranking"] = "hybrid" if better else "model"
    return index


def compared(
    index: Index, rows: Sequence[Encoded], encoding: Encoding
) -> tuple[dict[str, float], str]:
    """Return nDCG at 10 of each ranking, and the held-out queries in words; empty below ten queries.

    The queries are those of the corpus, at most 200. If it has none, each is a span of 6 to 14 words
    that is removed from its document, in at most 64 documents and a quarter of all, among 1,000.
    """
    rng = random_stream(0, "held-out queries")
    documents = [row.document for row in rows]
    asked = [i for i, one in enumerate(documents) if searchable(one.query)]
    if len(asked) >= 10:
        relevant = [asked[i] for i in rng.permutation(len(asked))[:200]]
        queries, trial = [documents[i].query for i in relevant], index
        what = f"{len(queries)} queries of the corpus"
    else:
        order = rng.permutation(len(rows))[:1000]
        pairs = [
            (i, *without_span(documents[i].text, rng)) for i in order[: min(64, len(order) // 4)]
        ]
        pairs = [one for one in pairs if len(one[2]) > 3 * len(one[1])]
        if len(pairs) < 10:
            return {}, ""
        queries, relevant = [query for _, query, _ in pairs], list(range(len(pairs)))
        changed = [documents[i]._replace(text=rest) for i, _, rest in pairs]
        others = [rows[i] for i in order if i not in {one[0] for one in pairs}]
        trial = assemble(encoding.encode(changed) + others, encoding, "")
        what = f"{len(queries)} spans taken out of their document"
    found = gains(trial, queries, relevant)
    return {ranking: float(values.mean()) for ranking, values in found.items()}, what


def gains(index: Index, queries: Sequence[str], relevant: Sequence[int]) -> dict[str, np.ndarray]:
    """Return nDCG at 10 of each query by ranking; one document is relevant for each query."""
    tokens, texts = index.encoder.both(queries, "query")
    found = {ranking: np.zeros(len(queries)) for ranking in RANKINGS}
    for place, query in enumerate(queries):
        vectors, text = index.projected(tokens[place]), None if texts is None else texts[place]
        for ranking, values in found.items():
            best, _, _ = index.best(query, vectors, text, 10, ranking=ranking)
            for rank in np.flatnonzero(best == relevant[place]):
                values[place] = 1 / np.log2(rank + 2)
    return found


def gains_untrained(queries: Sequence[str], documents: Sequence[str]) -> dict[str, np.ndarray]:
    """Return the gains of an index without training; query number i is answered by document i."""
    encoding = Encoding(load_model(None))
    rows = encoding.encode([Document(str(i), text) for i, text in enumerate(documents)])
    return gains(assemble(rows, encoding, ""), queries, range(len(queries)))
