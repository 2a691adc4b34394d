"""An index: token vectors of passages, vectors of texts and BM25, and the search in them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from shutil import copyfile
from typing import Any, NamedTuple

import numpy as np

from solvable.answers.result_directory import RESULT, ResultDirectory
from solvable.errors import InvalidParameter
from solvable.fitting.described_arrays import (
    checked,
    checked_number,
    read_described,
    valid_content,
    write_described,
)
from solvable.paths import whole_directory
from solvable.plots.files import write_atomically
from solvable.retrieve.folder_encoder import restore_model, unit
from solvable.retrieve.maxsim import Blocks
from solvable.retrieve.passages import Lexical, marked, standardised

FORMAT = "solvable-retrieve-index-2"  # name and version of the index
VECTORS, MODEL = "index.safetensors", "model.safetensors"

DIRECTORY = ResultDirectory("retrieve-index", "corpus", FORMAT, (RESULT, VECTORS, MODEL))
"""Output directory: its name, and checks that it may be replaced."""

EXACT = 2_500
"""Largest number of documents of an index whose searches score all of them."""

CANDIDATES = 200
"""Number of best documents of each cheap score, vectors of texts and BM25, that get all scores."""

POOL = 100
"""Number of best documents of each score over which the scores of a sum are standardised."""

RANKINGS = ("model", "hybrid", "bm25")
MODELS = ("minilm", "folder", "file")


class Hit(NamedTuple):
    """A document with its score for a query, and its best passage."""

    identity: str
    score: float
    document: str
    title: str
    passage: str
    marks: tuple[tuple[int, int], ...]  # places of matching words in the passage


class Index:
    """Passages of documents with their vectors, and the model that encodes queries.

    Parameters
    ----------
    arrays : dict of str to ndarray
        Token vectors as 8-bit integers, where the passages begin in them, and the arrays of BM25.
    content : dict
        Ids, titles and texts of the documents, the words of BM25, and the ranking.
    encoder : object
        Model that encodes queries.
    """

    def __init__(
        self, arrays: dict[str, np.ndarray], content: dict[str, Any], encoder: Any
    ) -> None:
        self.arrays, self.content, self.encoder = arrays, content, encoder
        self.identities: list[str] = content["identities"]
        self.documents: list[str] = content["documents"]
        self.lexical = Lexical(arrays, content["words"], len(self.documents))
        # Owners of passages, and vectors of texts in the type of the products.
        self._owners = np.repeat(np.arange(len(self)), np.diff(arrays["firsts"]))
        held = arrays.get("texts")
        self._texts = None if held is None else held.astype(np.float32)

    def __len__(self) -> int:
        return len(self.identities)

    @cached_property
    def _blocks(self) -> Blocks:
        return Blocks(self.arrays["vectors"], self.arrays["starts"])

    def search(
        self,
        queries: Sequence[str],
        top: int = 10,
        *,
        exact: bool = False,
        ranking: str | None = None,
    ) -> list[list[Hit]]:
        """Return the best documents of each query, by the scores of all or of the candidates."""
        tokens, texts = self.encoder.both(queries, "query")
        found = []
        for place, query in enumerate(queries):
            vectors = self.projected(tokens[place])
            text = None if texts is None else texts[place]
            best, scores, passages = self.best(
                query, vectors, text, top, exact=exact, ranking=ranking
            )
            rows = zip(best, scores, passages, strict=True)
            asked = query, vectors, self.encoder.places(query, "query")
            found.append([self._hit(asked, *row) for row in rows])
        return found

    def projected(self, tokens: np.ndarray) -> np.ndarray:
        """Return token vectors of the model as those of the index."""
        if "projection" not in self.arrays:
            return tokens.astype(np.float32)
        return unit(tokens @ self.arrays["projection"]).astype(np.float32)

    def best(
        self,
        query: str,
        tokens: np.ndarray,
        text: np.ndarray | None,
        top: int,
        *,
        exact: bool = False,
        ranking: str | None = None,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return numbers, scores and best passages of the best documents for an encoded query."""
        ranking = ranking or self.content["ranking"]
        words = None if ranking == "model" else self.lexical.scores(query)
        whole = self._of_documents(text)
        if ranking == "bm25" and words is not None:
            chosen = self._pool([words], top)
            total, passages = words[chosen], self._maxima(tokens, chosen)[1]
        else:
            chosen = np.arange(len(self))
            if whole is not None and len(self) > EXACT and not exact:
                chosen = self._pool([whole, words], max(CANDIDATES, 4 * top))
            late, passages = self._maxima(tokens, chosen)
            parts = [late, *(part[chosen] for part in (whole, words) if part is not None)]
            total = late
            if len(parts) > 1:
                pool = self._pool(parts, max(POOL, top))
                chosen, passages = chosen[pool], passages[pool]
                # score = sum over the parts of (part - mean of the pool) / deviation in the pool
                total = np.sum([standardised(part[pool]) for part in parts], axis=0)
        # Equal scores are in the order of the documents.
        order = np.lexsort((chosen, -total))[:top]
        return chosen[order], total[order], passages[order]

    @staticmethod
    def _pool(parts: Sequence[np.ndarray | None], count: int) -> np.ndarray:
        """Return the sorted numbers of the best documents of each score."""
        held = [part for part in parts if part is not None]
        count = min(count, len(held[0]))
        best = [np.argpartition(-part, count - 1)[:count] for part in held]
        return np.unique(np.concatenate(best))

    def _of_documents(self, text: np.ndarray | None) -> np.ndarray | None:
        """Return the largest cosine of a text to a passage of each document."""
        if text is None or self._texts is None:
            return None
        return np.maximum.reduceat(
            self._texts @ text.astype(np.float32), self.arrays["firsts"][:-1]
        )

    def _maxima(self, tokens: np.ndarray, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the largest MaxSim of a passage of each of some documents, and the passage."""
        firsts = self.arrays["firsts"]
        if len(chosen) == len(self):
            passages = np.arange(len(self._owners))
            scores = self._blocks.scores([tokens])[0]
        else:
            passages, _ = _ranges(firsts, chosen)
            rows, begun = _ranges(self.arrays["starts"], passages)
            similar = self.arrays["vectors"][rows].astype(np.float32) @ tokens.T
            scores = np.maximum.reduceat(similar, begun, axis=0).sum(axis=1)
        # The best passage of each document: the last in the order of documents, then of scores.
        owners = self._owners[passages]
        order = np.lexsort((scores, owners))
        last = order[np.append(np.flatnonzero(np.diff(owners[order])), len(order) - 1)]
        return scores[last] * self.content["scale"], passages[last]

    def answer(self) -> str:
        """Return the ranking of searches and why, in one sentence."""
        name = {"hybrid": "the sum of model and BM25", "model": "the model alone"}
        held = self.content["ndcg"]
        if not held:
            return (
                f"Searches rank by {name['hybrid']}; the documents are too few to compare rankings."
            )
        return (
            f"Searches rank by {name[self.content['ranking']]}: nDCG@10 {held['hybrid']:.3f} for the "
            f"sum, {held['model']:.3f} for the model and {held['bm25']:.3f} for BM25, on "
            f"{self.content['tested']}."
        )

    def _hit(self, query: Any, number: int, score: float, passage: int) -> Hit:
        title, span = self.content["titles"][number], self.arrays["spans"][passage]
        whole = passage_text(title, self.documents[number], span)
        text = passage_text("", self.documents[number], span)
        held = self.arrays["vectors"][slice(*self.arrays["starts"][passage : passage + 2])]
        places = self.encoder.places(whole, "document")
        marks: list[tuple[int, int]] = []
        # A dense model has one vector per text, and nothing to mark.
        if len(query[1]) == len(query[2]) and len(places) == len(held):
            # Tokens of the title have no place in the text.
            inside = np.maximum(places - (len(whole) - len(text)), 0)
            tokens = held.astype(np.float32) * self.content["scale"]
            marks = marked(query, (text, tokens, inside))
        return Hit(
            self.identities[number], float(score), self.documents[number], title, text, tuple(marks)
        )


def passage_text(title: str, document: str, span: Sequence[int]) -> str:
    """Return a passage below the title of its document."""
    return f"{title}\n" * bool(title) + document[span[0] : span[1]]


def _ranges(starts: np.ndarray, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of some groups, and the place of the first row of each group in them."""
    lengths = starts[chosen + 1] - starts[chosen]
    firsts = np.cumsum(lengths) - lengths
    return np.repeat(starts[chosen] - firsts, lengths) + np.arange(lengths.sum()), firsts


def write_index(index: Index, model: Path | None, directory: Path) -> None:
    """Write the index, with a copy of a model file; the files appear in one atomic step."""
    held = ("format", "fingerprint", "model", "ranking", "ndcg")
    summary = {key: index.content[key] for key in held} | {"documents": len(index)}
    with whole_directory(directory) as draft:
        text = json.dumps(summary, indent=2) + "\n"
        write_atomically(draft / RESULT, text.encode())
        if model is not None and model.is_file():
            copyfile(model, draft / MODEL)
        write_described(draft / VECTORS, index.arrays, index.content)


def read_index(directory: Path) -> Index:
    """Read an index with its model, and check that they belong together."""
    if not directory.is_dir():
        raise InvalidParameter(
            f"{directory} is not a directory; allowed: one that `solvable retrieve index` wrote."
        )
    arrays, content = read_described(directory / VECTORS, (FORMAT,), "solvable retrieve index")
    with valid_content(directory / VECTORS, "an index", "Build the index again."):
        _check_content(arrays, content)
        index = Index(arrays, content, None)
        described = {key: str(value) for key, value in content["model"].items()}
    index.encoder = restore_model(described, directory / MODEL)
    return index


def _check_content(arrays: Mapping[str, np.ndarray], content: Mapping[str, Any]) -> None:
    """Raise unless types, shapes and ranges of an index fit together."""
    count = len(content["documents"])
    for name in ("identities", "documents", "titles", "words"):
        if not all(isinstance(text, str) for text in content[name]):
            raise TypeError(f"{name} are no texts")
        if name != "words" and (len(content[name]) != count or not count):
            raise ValueError(f"{len(content[name])} {name} for {count} documents")
    checked_number(content["scale"], 0)
    for value in content["ndcg"].values():
        checked_number(value, 0, 1)
    if content["ranking"] not in RANKINGS or content["model"]["kind"] not in MODELS:
        raise ValueError("the ranking or the model is unknown")
    tokens, dimension = checked(arrays["vectors"], (None, None), "i").shape
    passages = len(checked(arrays["spans"], (None, 2), "iu", 0))
    _check_bounds("firsts", arrays["firsts"], count, passages)
    _check_bounds("starts", arrays["starts"], passages, tokens)
    if "projection" in arrays:
        checked(arrays["projection"], (None, dimension), "f")
    if "texts" in arrays:
        checked(arrays["texts"], (passages, None), "f")


def _check_bounds(name: str, bounds: np.ndarray, count: int, last: int) -> None:
    """Raise unless the bounds divide the entries into this many groups of at least one."""
    steps = np.diff(checked(bounds, (count + 1,), "iu", 0, last).astype(np.int64))
    if not count or bounds[0] != 0 or bounds[-1] != last or steps.min() < 1:
        raise ValueError(f"{name} do not divide {last} entries")
