"""The index: recall and scores of the candidate stage, and files that are damaged or do not match."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from solvable.errors import InvalidData, InvalidParameter, MemoryLimitExceeded
from solvable.retrieve import index as index_module
from solvable.retrieve.corpus import Corpus, Pair
from solvable.retrieve.functions import search_documents
from solvable.retrieve.index import Index, build_index, read_index, write_index
from solvable.retrieve.students import Description, save_student

WORDS = 3000


class Words:
    """Encoder whose words are noisy unit vectors, as those of a contextual model."""

    def __init__(self, noise: float = 0.3) -> None:
        rng = np.random.default_rng(0)
        self.described = Description("tiny", dimension=32)
        self.vectors = rng.standard_normal((WORDS, 32)).astype(np.float32)
        self.noise, self.rng = noise, rng

    def encode(self, texts, task):
        rows = [self.vectors[[int(word) % WORDS for word in text.split()]] for text in texts]
        rows = [row + self.noise * self.rng.standard_normal(row.shape) for row in rows]
        return [
            (row / np.linalg.norm(row, axis=1, keepdims=True)).astype(np.float32) for row in rows
        ]


def corpus_of(count, length=50, seed=1):
    rng = np.random.default_rng(seed)
    # Zipf frequencies, as of words
    shares = 1 / np.arange(10, WORDS + 10)
    texts = rng.choice(WORDS, (count, length), p=shares / shares.sum())
    pairs = [
        Pair(
            f"d{i}", " ".join(map(str, text[rng.permutation(length)[:8]])), " ".join(map(str, text))
        )
        for i, text in enumerate(texts)
    ]
    return Corpus("words", tuple(pairs))


@pytest.fixture(scope="module")
def index():
    original = index_module.load_encoder
    index_module.load_encoder = lambda path: (Words(), {})
    try:
        yield build_index(corpus_of(3000), Path("unused"))
    finally:
        index_module.load_encoder = original


def test_candidates_contain_the_exact_best(index):
    assert index.content["recall"] >= 0.99
    assert index.content["candidates"] < len(index) / 2
    # Other queries than those by which the number of candidates was chosen.
    queries = [pair.query for pair in corpus_of(60, seed=7).pairs]
    assert index.recall(index.encoder.encode(queries, "query")) >= 0.98


def test_candidates_have_exact_scores(index):
    (tokens,) = index.encoder.encode(["5 80 700 42"], "query")
    chosen, scores = index.best(tokens, 10)
    exact, reference = index.best(tokens, 10, exact=True)
    np.testing.assert_allclose(scores[0], reference[0], atol=1e-3)
    assert set(exact[:3]) <= set(chosen)
    assert (np.diff(scores) <= 0).all()


def test_a_search_is_fast(index):
    (tokens,) = index.encoder.encode([corpus_of(1).pairs[0].query], "query")
    started = time.process_time()
    for _ in range(5):
        index.best(tokens, 10)
    # 50 ms are allowed with 10,000 documents, of which these are a third; CPU time, on a shared machine.
    assert (time.process_time() - started) / 5 < 0.05


def test_results_have_identity_and_text(index):
    (hits,) = search_documents(index, "5 80 700 42", top=3)
    assert len(hits) == 3
    assert hits[0].document.split()
    assert hits[0].identity.startswith("d")


@pytest.mark.parametrize(
    ("queries", "top", "message"),
    [
        (" ", 3, "a query is empty"),
        ([], 3, "a query is empty"),
        ("5", 0, "top is 0"),
        ("5", 1001, "1001"),
    ],
)
def test_bad_requests_are_refused(index, queries, top, message):
    with pytest.raises(InvalidParameter, match=message):
        search_documents(index, queries, top=top)


def test_indexes_larger_than_memory_are_refused(monkeypatch):
    monkeypatch.setattr(index_module, "load_encoder", lambda path: (Words(), {}))
    monkeypatch.setattr(index_module, "available_bytes", lambda: 1e5)
    with pytest.raises(MemoryLimitExceeded, match="Index parts of the corpus"):
        build_index(corpus_of(100), Path("unused"))


@pytest.fixture
def stored(index, tmp_path, monkeypatch):
    """Return the directory of an index whose model file has a tokenizer of four bytes."""
    described = Description("static", dimension=32)
    arrays = {
        "tokenizer": np.arange(4, dtype=np.uint8),
        "table": np.ones((3, 2), np.float32),
        "head": np.ones((32, 2), np.float32),
    }
    model = save_student(tmp_path / "model.safetensors", described, arrays)
    content = index.content | {"model": index_module.identity_of(described, arrays)}
    write_index(Index(index.arrays, content, None), model, tmp_path / "index")
    monkeypatch.setattr(index_module, "StaticEncoder", lambda described, arrays: Words())
    return tmp_path / "index"


def test_a_stored_index_gives_the_same_results(index, stored):
    (tokens,) = index.encoder.encode(["5 80 700 42"], "query")
    np.testing.assert_array_equal(read_index(stored).best(tokens, 10)[0], index.best(tokens, 10)[0])


@pytest.mark.parametrize("name", ["index.safetensors", "model.safetensors"])
def test_truncated_files_are_refused(stored, name):
    path = stored / name
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(InvalidData, match="is truncated"):
        read_index(stored)


def test_changed_vectors_are_refused(stored):
    path = stored / "index.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(InvalidData, match="digest does not match"):
        read_index(stored)


@pytest.mark.parametrize(
    ("dimension", "message"), [(32, "is not the model that encoded"), (16, "has 16 dimensions")]
)
def test_another_model_is_refused(stored, dimension, message):
    arrays = {
        "tokenizer": np.zeros(4, np.uint8),
        "table": np.ones((3, 2), np.float32),
        "head": np.ones((dimension, 2), np.float32),
    }
    save_student(stored / "model.safetensors", Description("static", dimension=dimension), arrays)
    with pytest.raises(InvalidData, match=message):
        read_index(stored)


def test_a_directory_of_something_else_is_refused(tmp_path):
    with pytest.raises(InvalidData, match=r"index.safetensors does not exist"):
        read_index(tmp_path)
    with pytest.raises(InvalidParameter, match="is not a directory"):
        read_index(tmp_path / "missing")
