"""BM25, passages of documents, and the words of a passage that match a query."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from solvable.fitting.described_arrays import checked

OVERLAP = 12
"""Number of words that a passage repeats of the passage before it."""


@cache
def _module() -> Any:
    return import_module("bm25s")


def _words(texts: Sequence[str], **options: Any) -> Any:
    return _module().tokenize(list(texts), stopwords="en", show_progress=False, **options)


def searchable(text: str) -> list[str]:
    """Return the words of a text by which BM25 finds it, without the commonest ones."""
    (words,) = _words([text], return_ids=False)
    return list(words)


class Lexical:
    """BM25 over documents: for each word, its score in the documents that have it."""

    def __init__(
        self, arrays: Mapping[str, np.ndarray], words: Sequence[str], documents: int
    ) -> None:
        self.words, self._count = list(words), documents
        self.arrays = {key: arrays[key] for key in arrays if key.startswith("word_")}
        data = checked(arrays["word_scores"], (None,), "f")
        checked(arrays["word_documents"], (len(data),), "iu", 0, documents - 1)
        starts = checked(arrays["word_starts"], (len(words) + 1,), "iu", 0, len(data))
        if starts[0] != 0 or starts[-1] != len(data) or (np.diff(starts.astype(int)) < 0).any():
            raise ValueError(f"the words of BM25 do not divide {len(data)} entries")
        self._places = {word: place for place, word in enumerate(self.words)}

    @classmethod
    def of(cls, documents: Sequence[str]) -> Lexical:
        """Return BM25 over these documents."""
        tokens = _words(documents)
        if not any(tokens.ids):
            zero = np.zeros(1, np.int64)
            empty = {"word_scores": zero[:0] * 0.0, "word_documents": zero[:0], "word_starts": zero}
            return cls(empty, [], len(documents))
        index = _module().BM25()
        index.index(tokens, show_progress=False)
        held = index.scores
        arrays = {
            "word_scores": held["data"],
            "word_documents": held["indices"],
            "word_starts": np.asarray(held["indptr"]),
        }
        # The library gives the empty word a number without a column.
        return cls(arrays, list(index.vocab_dict)[: len(held["indptr"]) - 1], len(documents))

    def scores(self, query: str) -> np.ndarray:
        """Return the score of every document."""
        total = np.zeros(self._count, np.float32)
        starts = self.arrays["word_starts"]
        for word in searchable(query):
            if word in self._places:
                held = slice(*starts[self._places[word] : self._places[word] + 2])
                total[self.arrays["word_documents"][held]] += self.arrays["word_scores"][held]
        return total

    def best(self, query: str, count: int) -> np.ndarray:
        """Return the numbers of the best documents, best first."""
        return np.argsort(-self.scores(query), kind="stable")[:count]


def standardised(values: np.ndarray) -> np.ndarray:
    """Return values with mean 0 and standard deviation 1."""
    values = np.asarray(values, dtype=np.float64)
    return (values - values.mean()) / max(float(values.std()), 1e-9)


def split_spans(text: str, offsets: np.ndarray, size: int) -> list[tuple[int, int]]:
    """Return the passages of a text as places (first, end) of at most ``size`` tokens each.

    ``offsets`` holds the first character of each token.
    """
    # A word without spaces, as in Chinese or in encoded data, is cut every 60 characters.
    words = [match.span() for match in re.finditer(r"\S{1,60}", text)]
    if not words:
        return []
    starts = np.array([first for first, _ in words])
    owners = np.searchsorted(starts, offsets, side="right") - 1
    # number of tokens before each word, and at the end
    before = np.concatenate([[0], np.cumsum(np.bincount(owners.clip(0), minlength=len(words)))])
    spans, first = [], 0
    while True:
        end = int(np.searchsorted(before, before[first] + size, side="right")) - 1
        end = max(end, first + 1)
        spans.append((words[first][0], words[end - 1][1]))
        if end >= len(words):
            return spans
        # Some words are repeated, at most an eighth of a passage.
        most = np.searchsorted(before, before[end] - size // 8)
        first = max(end - OVERLAP, int(most), first + 1)


def marked(
    query: tuple[str, np.ndarray, np.ndarray], passage: tuple[str, np.ndarray, np.ndarray]
) -> list[tuple[int, int]]:
    """Return the words of a passage that match words of a query best, as sorted places.

    Both are a text, the unit vectors of its tokens, and the place (first, end) of each token; a place
    of no length stands for a token without text, such as a marker of sentences.
    """
    # Equal words have cosines of 0.8 and more, words of the same kind above 0.5.
    least = 0.5
    (asked, vectors, places), (text, tokens, spans) = query, passage
    ours, theirs = _words_of(asked, places), _words_of(text, spans)
    kept = [i for i, word in enumerate(ours) if word]
    if not kept:
        return []
    # per token of the query, the best token of the passage: the terms of MaxSim
    similar = vectors[kept] @ tokens.T
    best = similar.argmax(axis=1)
    found = {
        theirs[j] for j, height in zip(best, similar.max(axis=1), strict=True) if height > least
    }
    return sorted(word for word in found if word is not None)


def _words_of(text: str, places: np.ndarray) -> list[tuple[int, int] | None]:
    """Return for each token the word that has it, or None for very common words and punctuation."""
    known = set(searchable(text))
    words = [one.span() for one in re.finditer(r"\w+", text)]
    firsts = [first for first, _ in words]
    found: list[tuple[int, int] | None] = []
    for first, end in places.tolist():
        place = int(np.searchsorted(firsts, first, side="right")) - 1
        span = words[place] if place >= 0 and end > first else (0, 0)
        fits = span[1] > first and text[slice(*span)].lower() in known
        found.append(span if fits else None)
    return found


def snippet(
    text: str, marks: Sequence[tuple[int, int]], length: int = 320
) -> tuple[str, list[tuple[int, int]]]:
    """Return the part of a text with most marks, and the marks in it."""
    if len(text) <= length:
        return text, list(marks)
    starts = [0, *(max(first - length // 8, 0) for first, _ in marks)]
    inside = [sum(start <= a and b <= start + length for a, b in marks) for start in starts]
    start = starts[inside.index(max(inside))]
    # whole words only
    first = 0 if start == 0 else text.find(" ", start) + 1
    end = text.rfind(" ", first, first + length) if first + length < len(text) else len(text)
    end = end if end > first else first + length
    before, after = "… " * (first > 0), " …" * (end < len(text))
    moved = [
        (a - first + len(before), b - first + len(before))
        for a, b in marks
        if first <= a < b <= end
    ]
    return before + text[first:end] + after, moved


def without_span(text: str, rng: np.random.Generator) -> tuple[str, str]:
    """Return a random span of 6 to 14 words, and the text without it."""
    words = text.split()
    length = int(rng.integers(6, 15))
    first = int(rng.integers(0, max(len(words) - length, 1)))
    rest = [*words[:first], *words[first + length :]]
    return " ".join(words[first : first + length]), " ".join(rest)
