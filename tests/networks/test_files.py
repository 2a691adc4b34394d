"""Models in files: the same bits, and refusal of truncated, changed and hostile files."""

import json
import math
import pickle
import struct

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from solvable.errors import InvalidData, InvalidParameter, StorageFailed
from solvable.fitting.described_arrays import from_words, plain, write_described
from solvable.learners import (
    Block,
    NeuralLoFiClassifier,
    NeuralLoFiRegressor,
    NeuralLoFiTransformer,
    load_model,
    save_model,
)
from solvable.networks.files import FORMAT, model_notes

SHAPE = (4, 4, 2)
CONVOLUTIONAL = [
    Block(None, 8, patch=3),
    Block(3, 8, "tanh", patch=3, pooling=2, first_moment=True),
    Block(3, math.inf, whitening="centred"),
]
KERNELS = [Block(None, math.inf, "erf"), Block("auto", math.inf), Block(2, math.inf)]
FINITE = [Block(2, 20), Block(3, 15, whitening="std")]


def sample():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((90, 32))
    return X, X[:, 0] * X[:, 1] + X[:, 2]


def labels(kind, y):
    if kind is NeuralLoFiRegressor:
        return y
    return np.array(["low", "middle", "high"])[np.digitize(y, [-0.5, 0.5])]


def digest(path):
    with safe_open(path, framework="numpy") as stream:
        return stream.metadata()["digest"]


@pytest.mark.parametrize("blocks", [CONVOLUTIONAL, KERNELS, FINITE, None])
@pytest.mark.parametrize("kind", [NeuralLoFiClassifier, NeuralLoFiRegressor, NeuralLoFiTransformer])
@pytest.mark.filterwarnings("ignore::solvable.errors.NoFeatureFound")
def test_models_are_read_back_bit_by_bit(tmp_path, kind, blocks):
    X, y = sample()
    y = labels(kind, y)
    model = kind(blocks, image_shape=SHAPE if blocks is CONVOLUTIONAL else None, random_state=3)
    model.fit(X, y)
    path = save_model(model, tmp_path / "model.safetensors")
    again = load_model(path)
    assert type(again) is kind
    assert again.get_params() == model.get_params()
    np.testing.assert_array_equal(again.transform(X), model.transform(X))
    if kind is not NeuralLoFiTransformer:
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
        for name in ("penalty", "criterion", "degrees_of_freedom"):
            assert getattr(again.readout_, name) == getattr(model.readout_, name)
    if kind is NeuralLoFiClassifier:
        assert again.classes_.dtype == model.classes_.dtype
        np.testing.assert_array_equal(again.classes_, model.classes_)
    for one, other in zip(again.filters_, model.filters_, strict=True):
        for key, value in vars(other).items():
            np.testing.assert_array_equal(getattr(one, key), value)
    # A model that is stored again has the same content: both files have the same digest.
    assert digest(save_model(again, tmp_path / "again")) == digest(path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["again", "model.safetensors"]


@pytest.mark.parametrize(
    "classes", [np.array([3, 7]), np.array([False, True]), np.array([0.5, 2.0])]
)
def test_classes_keep_their_type(tmp_path, classes):
    X, y = sample()
    given_ = classes[(y > 0).astype(int)]
    if classes.dtype == float:
        given_ = np.round(given_)
    model = NeuralLoFiClassifier(FINITE, random_state=0).fit(X, given_)
    again = load_model(save_model(model, tmp_path / "m"))
    assert again.predict(X).dtype == model.predict(X).dtype
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_notes_and_names_are_stored_with_the_model(tmp_path):
    pandas = pytest.importorskip("pandas")
    X, y = sample()
    table = pandas.DataFrame(X, columns=[f"column {i}" for i in range(32)])
    model = NeuralLoFiRegressor(FINITE, random_state=0).fit(table, y)
    notes = {"columns": ["ä", "b"], "deep": {"x": [1, 2.5, None, True]}, "none": float("nan")}
    path = save_model(model, tmp_path / "m", notes=notes)
    assert model_notes(path) == {**notes, "none": "nan"}
    again = load_model(path)
    np.testing.assert_array_equal(again.predict(table), model.predict(table))
    with pytest.raises(ValueError, match="feature names"):
        again.predict(table.rename(columns={"column 0": "other"}))
    assert model_notes(save_model(model, tmp_path / "n")) == {}


def test_generators_do_not_go_into_files(tmp_path):
    X, y = sample()
    model = NeuralLoFiRegressor(FINITE, random_state=np.random.RandomState(0)).fit(X, y)
    again = load_model(save_model(model, tmp_path / "m"))
    assert again.random_state is None
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    X, y = sample()
    model = NeuralLoFiClassifier(FINITE, random_state=0).fit(X[:, :6], y > 0)
    return save_model(model, tmp_path_factory.mktemp("stored") / "model").read_bytes()


def refused(path, match="truncated|changed|digest|format|program|JSON|describe"):
    with pytest.raises(InvalidData, match=match) as caught:
        load_model(path)
    assert str(path) in str(caught.value)


@settings(
    max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(position=st.floats(0, 1, exclude_max=True), flip=st.integers(1, 255))
def test_a_changed_byte_anywhere_is_noticed(stored, tmp_path, position, flip):
    data = bytearray(stored)
    data[int(position * len(data))] ^= flip
    (tmp_path / "m").write_bytes(bytes(data))
    refused(tmp_path / "m")


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(share=st.floats(0, 1, exclude_max=True))
def test_a_file_that_was_cut_is_noticed(stored, tmp_path, share):
    (tmp_path / "m").write_bytes(stored[: int(share * len(stored))])
    refused(tmp_path / "m")


def test_bytes_behind_the_end_are_noticed(stored, tmp_path):
    (tmp_path / "m").write_bytes(stored + b"\0")
    refused(tmp_path / "m")


class Bomb:
    fired = False

    def __reduce__(self):
        return (_fire, ())


def _fire():
    Bomb.fired = True


def test_files_of_other_kinds(stored, tmp_path):
    path = tmp_path / "m"
    refused(path, "does not exist")
    for data in (b"", b"text,of,a,table\n1,2,3\n", pickle.dumps(Bomb()), b"\xff" * 4096):
        path.write_bytes(data)
        refused(path)
    assert not Bomb.fired
    np.savez(tmp_path / "m.npz", x=np.ones(3))
    refused(tmp_path / "m.npz")
    save_file({"weights": np.ones(3)}, path)
    refused(path, "another program")
    refused(tmp_path)


def test_a_header_that_claims_the_world_is_refused(tmp_path):
    path = tmp_path / "m"
    path.write_bytes(struct.pack("<Q", 2**62) + b"{}")
    refused(path)
    header = {"x": {"dtype": "F64", "shape": [2**40], "data_offsets": [0, 2**43]}}
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text)
    refused(path)


def parts(stored, tmp_path):
    """Arrays and description of the stored model."""
    path = tmp_path / "original"
    path.write_bytes(stored)
    size = struct.unpack("<Q", stored[:8])[0]
    return load_file(path), json.loads(json.loads(stored[8 : 8 + size])["__metadata__"]["solvable"])


def without(key):
    def change(arrays, content):
        del content[key]

    return change


def with_(key, value):
    def change(arrays, content):
        content[key] = value

    return change


def drop_array(arrays, content):
    arrays.pop("layers.1.directions")


def other_layer(arrays, content):
    content["layers"][1]["kind"] = "builtins.eval"


def other_block(arrays, content):
    content["parameters"]["blocks"][0]["reduce"] = -4


def unknown_parameter(arrays, content):
    content["parameters"]["__class__"] = "os.system"


@pytest.mark.parametrize(
    "change",
    [
        with_("format", "solvable-lofi-99"),
        with_("estimator", "os.system"),
        with_("estimator", ["NeuralLoFiClassifier"]),
        with_("layers", {"a": 1}),
        with_("layers", 3),
        with_("filters", None),
        with_("parameters", None),
        with_("n_features_in", "many"),
        with_("classes", {"values": [0, 1], "dtype": "|O"}),
        with_("classes", {"values": [0, 1], "dtype": "nonsense"}),
        with_("readout", 7),
        without("layers"),
        without("readout"),
        without("parameters"),
        drop_array,
        other_layer,
        other_block,
        unknown_parameter,
    ],
)
def test_hostile_descriptions_with_a_digest_that_fits_are_refused(stored, tmp_path, change):
    # A file with a valid digest may hold other numbers, but cannot run code or cause a traceback.
    arrays, content = parts(stored, tmp_path)
    assert content["format"] == FORMAT
    change(arrays, content)
    with pytest.raises(InvalidData):
        load_model(write_described(tmp_path / "m", arrays, content))


@pytest.mark.parametrize("content", [[], "text", 3, None])
def test_descriptions_that_are_no_mapping_are_refused(stored, tmp_path, content):
    arrays, _ = parts(stored, tmp_path)
    with pytest.raises(InvalidData):
        load_model(write_described(tmp_path / "m", arrays, content))


def test_what_is_no_fitted_model_is_not_stored(tmp_path):
    for model in (NeuralLoFiRegressor(), "model", None):
        with pytest.raises(InvalidParameter, match="a fitted"):
            save_model(model, tmp_path / "m")
    assert not list(tmp_path.iterdir())


def test_a_write_that_fails_leaves_the_old_file(stored, tmp_path, monkeypatch):
    from solvable.fitting import described_arrays

    path = tmp_path / "m"
    path.write_bytes(stored)
    model = load_model(path)

    def fail(*_):
        raise OSError("no space left")

    monkeypatch.setattr(described_arrays.os, "replace", fail)
    with pytest.raises(StorageFailed, match="no space left"):
        save_model(model, path)
    assert path.read_bytes() == stored
    assert [p.name for p in tmp_path.iterdir()] == ["m"]
    with pytest.raises(StorageFailed, match="could not be written"):
        save_model(model, tmp_path / "missing" / "m")


def test_infinities_survive_as_words():
    assert plain({"width": math.inf, "k": (1, np.int64(2))}) == {"width": "inf", "k": [1, 2]}
    assert from_words({"width": "inf", "k": 2}) == {"width": math.inf, "k": 2}
