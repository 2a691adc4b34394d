"""Passages cover their document within the window, and marks are the best matches of MaxSim."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
import pytest

pytest.importorskip("bm25s", reason="the extra `retrieval` is not installed")

from solvable.retrieve.passages import (
    OVERLAP,
    Lexical,
    marked,
    searchable,
    snippet,
    split_spans,
    without_span,
)


def word_starts(text):
    return np.array([one.start() for one in re.finditer(r"\S+", text)])


def test_every_word_is_in_a_passage_and_no_passage_is_longer_than_the_window():
    rng = np.random.default_rng(0)
    for count, size in ((1, 5), (50, 50), (51, 50), (1000, 120), (30, 1)):
        text = " ".join("w" * int(rng.integers(1, 9)) + str(i) for i in range(count))
        spans = split_spans(text, word_starts(text), size)
        words = [text[a:b].split() for a, b in spans]
        assert max(map(len, words)) <= size
        assert {word for part in words for word in part} == set(text.split())
        for left, right in pairwise(words):
            # What two passages have in common is at the end of one and the beginning of the other.
            common = len(set(left) & set(right))
            assert common == min(OVERLAP, size // 8)
            assert left[len(left) - common :] == right[:common]


def test_tokens_count_and_not_words():
    text = "one two three four"
    # three tokens per word
    offsets = np.array([start + shift for start in word_starts(text) for shift in (0, 1, 2)])
    assert [text[a:b] for a, b in split_spans(text, offsets, 6)] == ["one two", "three four"]


def test_texts_without_spaces_are_split_and_texts_without_words_are_not():
    text = "x" * 1000
    spans = split_spans(text, np.arange(1000), 100)
    assert spans[0][0] == 0
    assert spans[-1][1] == 1000
    assert max(b - a for a, b in spans) <= 100
    assert split_spans(" \n", np.array([], dtype=int), 10) == []


def test_marks_are_the_best_tokens_for_each_token_of_the_query():
    axes = np.eye(6)
    query = "the fast car"
    places = np.array([[0, 0], [0, 3], [4, 8], [9, 12]])
    text = "A quick automobile, of course"
    spans = np.array([[0, 0], [0, 1], [2, 7], [8, 12], [12, 18], [18, 19], [20, 22], [23, 29]])
    tokens = np.stack([axes[5], axes[4], axes[1], axes[2], axes[0], axes[0], axes[3], axes[3]])
    vectors = np.stack([axes[5], axes[3], axes[1], 0.6 * axes[2] + 0.8 * axes[4]])
    found = marked((query, vectors, places), (text, tokens, spans))
    # "fast" and "quick" are equal; "car" is nearest to "A", which BM25 does not know, and "the" is
    # no word to mark.
    assert [text[a:b] for a, b in found] == ["quick"]
    vectors[3] = axes[2]
    # a part of a word marks the whole word
    found = marked((query, vectors, places), (text, tokens, spans))
    assert [text[a:b] for a, b in found] == ["quick", "automobile"]
    assert marked(("the", vectors[:2], places[:2]), (text, tokens, spans)) == []


def test_snippets_hold_the_most_marks():
    text = " ".join(f"word{i}" for i in range(200))
    marks = [
        (text.index(word), text.index(word) + len(word))
        for word in ("word9 ", "word150", "word155")
    ]
    shown, moved = snippet(text, marks, 100)
    assert len(shown) <= 104
    assert [shown[a:b] for a, b in moved] == ["word150", "word155"]
    assert shown.startswith("… word")
    assert shown.endswith(" …")
    assert snippet("short", [(0, 5)], 100) == ("short", [(0, 5)])


def test_bm25_is_that_of_bm25s():
    import bm25s

    rng = np.random.default_rng(0)
    texts = [
        " ".join(rng.choice(["cat", "dog", "runs", "the", "tree", "tall"], 12)) for _ in range(40)
    ]
    held = Lexical.of(texts)
    index = bm25s.BM25()
    index.index(bm25s.tokenize(texts, stopwords="en", show_progress=False), show_progress=False)
    for query in ("cat", "tall dog runs", "cat cat"):
        np.testing.assert_allclose(held.scores(query), index.get_scores(query.split()), rtol=1e-5)
        best = held.best(query, 5)
        assert (np.diff(held.scores(query)[best]) <= 0).all()
        assert held.scores(query)[best[-1]] >= np.sort(held.scores(query))[-5]
    again = Lexical(held.arrays, held.words, 40)
    np.testing.assert_array_equal(again.scores("dog"), held.scores("dog"))
    with pytest.raises(ValueError, match="do not divide"):
        Lexical(held.arrays | {"word_starts": held.arrays["word_starts"][::-1]}, held.words, 40)


def test_bm25_of_texts_without_words_gives_zero():
    assert not Lexical.of(["the", "!"]).scores("cat the").any()
    assert searchable("the !") == []


def test_a_span_is_taken_out():
    text = " ".join(map(str, range(60)))
    query, rest = without_span(text, np.random.default_rng(1))
    assert 6 <= len(query.split()) <= 14
    assert query in text
    assert sorted(query.split() + rest.split()) == sorted(text.split())
