"""Models and indices whose content was changed and whose digest matches: refused, or used as they are."""

from __future__ import annotations

import copy
import random
import re
from types import SimpleNamespace

import numpy as np
import pytest

from solvable.data import load
from solvable.errors import InvalidData, SolvableError
from solvable.fitting.described_arrays import read_described, write_described
from solvable.learn.competitors import methods
from solvable.learn.design import Design
from solvable.learn.prediction import apply_model
from solvable.learn.stored_models import load_fitted, save_fitted
from solvable.learners import Block, NeuralLoFiClassifier, load_model, save_model
from solvable.retrieve import index as index_module
from solvable.retrieve import students
from solvable.retrieve.build import build_index
from solvable.retrieve.corpus import Corpus
from solvable.retrieve.documents import Document
from solvable.retrieve.index import read_index, write_index
from solvable.retrieve.students import Description, save_student

VALUES = (
    None, True, -1, 0, 3, 10**9, 10**400, 1e308, -0.5, "nan", "inf", "x", "", [], [1, "a"], {}, {"a": 1},
)  # fmt: skip


def leaves(value, path=()):
    """Return the paths of all values in nested dictionaries and lists."""
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    found = []
    for key, entry in inner:
        found.append((*path, key))
        if isinstance(entry, dict | list):
            found += leaves(entry, (*path, key))
    return found


def mutated(arrays, content, rng):
    """Return arrays and content with one change; the format stays."""
    arrays, content = dict(arrays), copy.deepcopy(content)
    if arrays and rng.random() < 0.5:
        name = rng.choice(sorted(arrays))
        array = arrays[name]
        kind = rng.randrange(8)
        if kind == 0:
            del arrays[name]
        elif kind == 1:
            arrays[name] = array.reshape(-1)
        elif kind == 2:
            arrays[name] = array[: len(array) // 2] if array.ndim else array
        elif kind == 3:
            arrays[name] = np.full(array.shape, np.nan)
        elif kind == 4:
            arrays[name] = np.full(array.shape, rng.choice((-1, 10**9)), dtype=np.int64)
        elif kind == 5:
            arrays[name] = np.zeros(array.shape, dtype=array.dtype)
        elif kind == 6:
            arrays[name] = array.T.copy()
        else:
            arrays[name] = np.zeros((0,) * array.ndim, dtype=array.dtype)
        return arrays, content
    *path, last = rng.choice([path for path in leaves(content) if path != ("format",)])
    place = content
    for key in path:
        place = place[key]
    if rng.random() < 0.2:
        del place[last]
    else:
        place[last] = rng.choice(VALUES)
    return arrays, content


def tried(function, *arguments):
    """Return the result and no message, or None and the message of a refusal."""
    try:
        return function(*arguments), ""
    except SolvableError as error:
        return None, str(error)


def rows():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 4))
    return X, X[:, 0] ** 2 + X[:, 1]


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Write a small model of every kind."""
    folder = tmp_path_factory.mktemp("models")
    X, y = rows()
    paths = []
    for regression in (True, False):
        for method in methods(Design(regression, "columns")):
            labels = y if regression else (y > 0).astype(np.int64) + (y > 1)
            path = folder / f"{method.key}-{regression}.safetensors"
            with np.errstate(all="ignore"):
                paths.append(save_fitted(method.make().fit(X, labels), path))
    network = NeuralLoFiClassifier([Block(width=20), Block(width=np.inf)], random_state=0)
    return [*paths, save_model(network.fit(X, y > 0), folder / "network.safetensors")]


@pytest.mark.filterwarnings("ignore")
def test_a_changed_model_is_refused_or_predicts_numbers(models, tmp_path):
    rng, X = random.Random(0), rows()[0][:5]
    refused = 0
    for path in models:
        form = read_described(path, ("solvable-learn-model-1", "solvable-lofi-2"), "test")
        for number in range(30):
            changed = write_described(tmp_path / f"{number}.safetensors", *mutated(*form, rng))
            load = load_model if "network" in path.name else load_fitted
            found, said = tried(load, changed)
            assert "\n" not in said
            refused += bool(said)
            if said:
                continue
            model = found[0] if isinstance(found, tuple) else found
            with np.errstate(all="ignore"):
                predicted = np.asarray(model.predict(X[:, : model.n_features_in_]))
            assert predicted.shape == (5,)
            assert predicted.dtype.kind != "f" or np.isfinite(predicted).all()
    assert refused > 10 * len(models)


def test_changed_notes_are_refused_or_predict(tmp_path):
    rng = random.Random(0)
    lines = [f"{k % 7},{'ab'[k % 2]},2020-01-{k % 28 + 1:02d},{k % 5 + 0.5}" for k in range(60)]
    (tmp_path / "d.csv").write_text("n,t,when,y\n" + "\n".join(lines))
    data = load(str(tmp_path / "d.csv"), target="y")
    method = next(one for one in methods(Design(True, "columns")) if one.key == "constant")
    notes = {"preparation": data.preparation.to_dict(), "error": {"rmse": 1.0}}
    path = save_fitted(method.make().fit(data.X, data.y), tmp_path / "m.safetensors", notes=notes)
    arrays, content = read_described(path, ("solvable-learn-model-1",), "test")
    refused = 0
    for number in range(200):
        _, inside = mutated({}, content["notes"], rng)
        changed = write_described(
            tmp_path / f"{number}.safetensors", arrays, content | {"notes": inside}
        )
        found, said = tried(apply_model, changed, str(tmp_path / "d.csv"))
        assert "\n" not in said
        refused += bool(said)
        assert said or len(found.predicted) == 60
    assert refused > 30


class Words:
    """Tokenizer of whole words that are numbers."""

    def no_padding(self):
        pass

    def enable_truncation(self, length):
        self.length = length

    def token_to_id(self, word):
        return 0

    def no_truncation(self):
        self.length = 10**6

    def encode(self, text, add_special_tokens):
        words = list(re.finditer(r"\d+", text))[: self.length]
        ids, places = [int(one[0]) for one in words], [one.span() for one in words]
        return SimpleNamespace(ids=ids, offsets=places)

    def encode_batch(self, texts, add_special_tokens):
        return [self.encode(text, add_special_tokens) for text in texts]


@pytest.fixture
def stored_index(tmp_path, monkeypatch):
    """Write an index of 40 documents with a static student."""
    pytest.importorskip("bm25s", reason="the extra `retrieval` is not installed")
    monkeypatch.setattr(students, "load_tokenizer", lambda content: Words())
    rng = np.random.default_rng(0)
    arrays = {
        "tokenizer": np.zeros(4, np.uint8),
        "table": rng.standard_normal((30, 6)).astype(np.float32),
        "head": rng.standard_normal((8, 6)).astype(np.float32),
    }
    model = save_student(tmp_path / "m.safetensors", Description("static", dimension=8), arrays)
    texts = [" ".join(map(str, rng.integers(0, 30, 6))) for _ in range(40)]
    corpus = Corpus(
        "c", tuple(Document(f"d{k}", text, "", text[:5]) for k, text in enumerate(texts))
    )
    write_index(build_index(corpus, model), model, tmp_path / "index")
    return tmp_path / "index"


@pytest.mark.retrieval
def test_a_changed_index_is_refused_or_gives_numbers(stored_index):
    rng = random.Random(0)
    path = stored_index / index_module.VECTORS
    form = read_described(path, (index_module.FORMAT,), "test")
    assert len(read_index(stored_index).search(["1 2"])[0]) == 10
    refused = 0
    for _ in range(300):
        write_described(path, *mutated(*form, rng))
        index, said = tried(read_index, stored_index)
        assert "\n" not in said
        refused += bool(said)
        if index is None:
            continue
        for hits in index.search(["1 2 3", "4"], exact=bool(rng.randrange(2))):
            assert 0 < len(hits) <= 10
            assert all(isinstance(hit.document, str) for hit in hits)
            assert np.isfinite([hit.score for hit in hits]).all()
    assert refused > 150


@pytest.mark.retrieval
@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("starts", lambda array: array[::-1].copy(), "starts do not divide"),
        ("vectors", lambda array: array.astype(np.float32), "type float32"),
        ("word_documents", lambda array: array + 40, "above 79|above 39"),
        ("word_scores", lambda array: array * np.float32("nan"), "NaN or infinity"),
        ("firsts", lambda array: array[:3], "shape"),
        ("spans", lambda array: array - 1, "below 0"),
    ],
)
def test_content_that_does_not_fit_is_named(stored_index, name, change, words):
    path = stored_index / index_module.VECTORS
    arrays, content = read_described(path, (index_module.FORMAT,), "test")
    write_described(path, arrays | {name: change(arrays[name])}, content)
    with pytest.raises(InvalidData, match=words):
        read_index(stored_index)
