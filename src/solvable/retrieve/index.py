"""A multi-vector index: token vectors on disk, a candidate stage, and exact MaxSim of candidates."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from shutil import copyfile
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from solvable.arrays import random_stream
from solvable.errors import InvalidData, InvalidParameter, MemoryLimitExceeded
from solvable.fitting.described_arrays import read_described, write_described
from solvable.memory import available_bytes, gigabytes
from solvable.pages.result_directory import RESULT, ResultDirectory
from solvable.paths import whole_directory
from solvable.plots.files import write_atomically
from solvable.retrieve.corpus import Corpus
from solvable.retrieve.encoder import TorchEncoder, load_encoder
from solvable.retrieve.maxsim import Blocks, pack
from solvable.retrieve.students import StaticEncoder, identity_of, read_student

FORMAT = "solvable-retrieve-index-1"  # name and version of the index
VECTORS, MODEL = "index.safetensors", "model.safetensors"

DIRECTORY = ResultDirectory("retrieve-index", "corpus", FORMAT, (RESULT, VECTORS, MODEL))
"""Output directory: its name, and checks that it may be replaced."""

RECALL = 0.99
"""Smallest share of the exact ten best documents that the candidates contain, on queries of the corpus.

Queries of others are harder: they had a recall of 0.95 where those of the corpus had 0.98.
"""

PROBES = 32
"""Number of nearest centroids per query token whose documents are candidates."""


class Hit(NamedTuple):
    """A document with its score for a query."""

    identity: str
    score: float
    document: str


class Index:
    """Token vectors of documents with the model that encodes queries.

    Parameters
    ----------
    arrays : dict of str to ndarray
        Token vectors ``vectors`` of shape (tokens, dimension), ``starts`` of the documents, ``centroids``
        of shape (centroids, dimension), and for each centroid the documents with a token near it
        (``list_starts``, ``list_documents``).
    content : dict
        Identities and texts of the documents, the number of ``candidates``, and the measured ``recall``.
    encoder : object
        ``encode(texts, "query")`` returns one array (tokens, dimension) per text.
    """

    def __init__(
        self, arrays: dict[str, np.ndarray], content: dict[str, Any], encoder: Any
    ) -> None:
        self.arrays, self.content, self.encoder = arrays, content, encoder
        self.identities: list[str] = content["identities"]
        self.documents: list[str] = content["documents"]

    def __len__(self) -> int:
        return len(self.identities)

    @cached_property
    def _blocks(self) -> Blocks:
        return Blocks(self.arrays["vectors"], self.arrays["starts"])

    def search(
        self, queries: Sequence[str], top: int = 10, *, exact: bool = False
    ) -> list[list[Hit]]:
        """Return the best documents of each query, by exact MaxSim of all or of the candidates."""
        tokens = self.encoder.encode(queries, "query")
        found = []
        for one in tokens:
            best, scores = self.best(one, top, exact=exact)
            found.append(
                [
                    Hit(self.identities[i], float(score), self.documents[i])
                    for i, score in zip(best, scores, strict=True)
                ]
            )
        return found

    def best(
        self, tokens: np.ndarray, top: int, *, exact: bool = False
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return numbers and scores of the best documents for the token vectors of a query."""
        if exact or self.content["candidates"] >= len(self):
            chosen, scores = np.arange(len(self)), self._blocks.scores([tokens])[0]
        else:
            chosen = self.candidates(tokens, max(self.content["candidates"], 4 * top))
            scores = self._scores(tokens, chosen)
        # Equal scores are in the order of the documents.
        order = np.lexsort((chosen, -scores))[:top]
        return chosen[order], scores[order]

    def candidates(self, tokens: np.ndarray, count: int) -> np.ndarray:
        """Return the documents with the largest MaxSim to the centroids of their tokens."""
        lists, starts = self.arrays["list_documents"], self.arrays["list_starts"]
        similar = tokens.astype(np.float32) @ self.arrays["centroids"].T
        probes = min(PROBES, similar.shape[1])
        near = np.argpartition(-similar, probes - 1, axis=1)[:, :probes]
        total = np.zeros(len(self), dtype=np.float32)
        for row, columns in zip(similar, near, strict=True):
            ordered = columns[np.argsort(row[columns])]
            # A document without a token near these centroids is bounded by the farthest of them.
            bound = np.full(len(self), row[ordered[0]], dtype=np.float32)
            for column in ordered:
                bound[lists[starts[column] : starts[column + 1]]] = row[column]
            total += bound
        if count >= len(self):
            return np.arange(len(self))
        return np.argpartition(-total, count)[:count]

    def _scores(self, tokens: np.ndarray, chosen: np.ndarray) -> np.ndarray:
        """Return the exact MaxSim of some documents."""
        starts = self.arrays["starts"]
        lengths = starts[chosen + 1] - starts[chosen]
        firsts = np.cumsum(lengths) - lengths
        rows = np.repeat(starts[chosen] - firsts, lengths) + np.arange(lengths.sum())
        similar = self.arrays["vectors"][rows].astype(np.float32) @ tokens.T.astype(np.float32)
        return np.maximum.reduceat(similar, firsts, axis=0).sum(axis=1)

    def recall(self, tokens: Sequence[np.ndarray]) -> float:
        """Return the share of the exact ten best documents that the candidates contain."""
        shares = []
        for one in tokens:
            exact, scores = self.best(one, 10, exact=True)
            held = np.isin(exact, self.candidates(one, self.content["candidates"]))
            # A document without similarity to the query is not missed.
            shares.append(held[scores > 0].mean() if (scores > 0).any() else 1.0)
        return float(np.mean(shares))


def build_index(
    corpus: Corpus, model: Path, *, progress: Callable[[int, int, float | None], None] | None = None
) -> Index:
    """Encode the documents of a corpus, and choose enough candidates for a recall of 0.99."""
    encoder, weights = load_encoder(model)
    described = encoder.described
    documents = [pair.document for pair in corpus.pairs]
    needed = 14.0 * len(documents) * described.length("document") * described.dimension
    if needed > (free := available_bytes()):
        raise MemoryLimitExceeded(
            f"an index of {len(documents):,} documents needs up to {gigabytes(needed)}, and "
            f"{gigabytes(free)} are free. Index parts of the corpus."
        )
    vectors, starts = pack(_encoded(encoder, documents, progress))
    centroids, nearest = _clustered(vectors)
    list_starts, list_documents = _lists(nearest, starts, len(centroids))
    arrays = {
        "vectors": vectors.astype(np.float16),
        "starts": starts,
        "centroids": centroids,
        "list_starts": list_starts,
        "list_documents": list_documents,
    }
    content: dict[str, Any] = {
        "format": FORMAT,
        "identities": [pair.identity for pair in corpus.pairs],
        "documents": documents,
        "model": identity_of(described, weights),
        "dimension": described.dimension,
        "candidates": min(400, len(documents)),
        "recall": 1.0,
        "fingerprint": corpus.fingerprint,
    }
    index = Index(arrays, content, encoder)
    tests = [pair.query or " ".join(pair.document.split()[:10]) for pair in corpus.pairs]
    chosen = random_stream(0, "test queries").permutation(len(tests))[:100]
    tokens = encoder.encode([tests[i] for i in chosen], "query")
    while True:
        content["recall"] = index.recall(tokens)
        if content["recall"] >= RECALL or content["candidates"] == len(index):
            return index
        content["candidates"] = min(2 * content["candidates"], len(index))


def _encoded(
    encoder: StaticEncoder | TorchEncoder,
    documents: Sequence[str],
    progress: Callable[[int, int, float | None], None] | None,
) -> list[np.ndarray]:
    """Encode documents in parts, and report each part."""
    from time import perf_counter

    started, size, rows = perf_counter(), 512, []
    for first in range(0, len(documents), size):
        rows += encoder.encode(documents[first : first + size], "document")
        if progress is not None:
            left = (perf_counter() - started) / len(rows) * (len(documents) - len(rows))
            progress(len(rows), len(documents), left)
    return rows


def _clustered(vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return centroids of the token vectors, and the number of each token's nearest centroid."""
    # A static student has one vector per word, so that equal rows are clustered once.
    rounded = np.ascontiguousarray(vectors, dtype=np.float16)
    rows = rounded.view(np.dtype((np.void, rounded.itemsize * rounded.shape[1]))).ravel()
    _, firsts, inverse, counts = np.unique(
        rows, return_index=True, return_inverse=True, return_counts=True
    )
    distinct = vectors[firsts].astype(np.float32)
    number = min(len(distinct), int(np.clip(8 * np.sqrt(len(vectors)), 64, 8192)))
    # Frequent vectors are the likeliest starts; two steps of Lloyd's algorithm follow.
    rng = random_stream(0, "centroids")
    shares = counts / counts.sum()
    centroids = distinct[rng.choice(len(distinct), number, replace=False, p=shares)]
    for _ in range(2):
        nearest = _nearest(distinct, centroids)
        places = (counts.astype(np.float32), (nearest, np.arange(len(distinct))))
        members = csr_array(places, shape=(number, len(distinct)))
        mass = members.sum(axis=1)
        moved = members @ distinct / np.maximum(mass, 1)[:, None]
        centroids = np.where(mass[:, None] > 0, moved, centroids).astype(np.float32)
    return centroids, _nearest(distinct, centroids)[inverse]


def _nearest(vectors: np.ndarray, centroids: np.ndarray) -> np.ndarray:
    """Return the number of the nearest centroid of each vector."""
    # argmin |v - c|² = argmax v c - |c|² / 2
    half_squares = (centroids**2).sum(axis=1) / 2
    found = [
        np.argmax(vectors[first : first + 1024] @ centroids.T - half_squares, axis=1)
        for first in range(0, len(vectors), 1024)
    ]
    return np.concatenate(found)


def _lists(nearest: np.ndarray, starts: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return for each centroid the documents with a token whose nearest centroid it is."""
    documents = len(starts) - 1
    owners = np.repeat(np.arange(documents), np.diff(starts))
    keys = np.unique(nearest.astype(np.int64) * documents + owners)
    list_starts = np.searchsorted(keys, np.arange(count + 1) * documents)
    return list_starts.astype(np.int64), (keys % documents).astype(np.int32)


def write_index(index: Index, model: Path, directory: Path) -> None:
    """Write the index with a copy of its model; the files appear in one atomic step."""
    summary = {key: index.content[key] for key in ("format", "fingerprint", "model", "recall")}
    summary |= {"documents": len(index), "candidates": index.content["candidates"]}
    with whole_directory(directory) as draft:
        text = json.dumps(summary, indent=2) + "\n"
        write_atomically(draft / RESULT, text.encode())
        copyfile(model, draft / MODEL)
        write_described(draft / VECTORS, index.arrays, index.content)


def read_index(directory: Path) -> Index:
    """Read an index with its model, and check that they belong together."""
    if not directory.is_dir():
        raise InvalidParameter(
            f"{directory} is not a directory; allowed: one that `solvable retrieve index` wrote."
        )
    arrays, content = read_described(directory / VECTORS, (FORMAT,), "solvable retrieve index")
    described, weights = read_student(directory / MODEL)
    seen = arrays["vectors"].shape[1]
    if described.dimension != seen and described.mode == "multi":
        raise InvalidData(
            f"{directory}: the model has {described.dimension} dimensions and the index {seen}. "
            "Build the index again with this model."
        )
    if content["model"] != identity_of(described, weights):
        raise InvalidData(
            f"{directory}: {MODEL} is not the model that encoded the documents. Build the index "
            "again with this model."
        )
    kind = StaticEncoder if described.student == "static" else TorchEncoder
    return Index(arrays, content, kind(described, weights))
