"""Folders as model hubs lay them out: shards, an index, one file, and what is no folder of weights."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from solvable import diagnose_weights
from solvable.data.weights.opening import open_weights
from solvable.errors import InvalidData

FIRST, SECOND = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"
PLACES = {"a.weight": FIRST, "b.weight": SECOND}


def matrix(seed=0, shape=(3, 4)):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def write_index(folder, places, name="model.safetensors.index.json"):
    (folder / name).write_text(json.dumps({"metadata": {}, "weight_map": places}))


@pytest.fixture
def sharded(tmp_path):
    """Two shards and their index; the second shard has an array that the index does not list."""
    save_file({"a.weight": matrix(0)}, tmp_path / FIRST)
    save_file({"b.weight": matrix(1), "stray": matrix(2)}, tmp_path / SECOND)
    write_index(tmp_path, PLACES)
    return tmp_path


def test_shards_are_joined_by_their_index(sharded):
    (sharded / "config.json").write_text(json.dumps({"num_attention_heads": 3}))
    opened = open_weights(sharded)
    assert [stored.name for stored in opened.arrays] == ["a.weight", "b.weight"]
    np.testing.assert_array_equal(opened.arrays[1].read(), matrix(1))
    assert opened.files == (sharded / FIRST, sharded / SECOND)
    assert dict(opened.settings)["config.json"]["num_attention_heads"] == 3
    assert opened.notes == ("Arrays that the index does not list there are not read: 1.",)


def test_shards_without_an_index_must_be_complete(sharded):
    (sharded / "model.safetensors.index.json").unlink()
    assert len(open_weights(sharded).arrays) == 3
    (sharded / FIRST).unlink()
    with pytest.raises(InvalidData, match="1 of 2 shards"):
        open_weights(sharded)


@pytest.mark.parametrize(
    ("places", "words"),
    [
        (PLACES | {"c": "gone.safetensors"}, "of which 1 is missing: gone.safetensors"),
        (PLACES | {"c": "../other/secret.safetensors"}, "is outside the folder"),
        (PLACES | {"c": "/etc/passwd"}, "is outside the folder"),
        (PLACES | {"c": "..\\secret.safetensors"}, "is outside the folder"),
        (PLACES | {"c": 3}, "a file name is no text"),
        ({}, "it lists no array"),
        ([], "it lists no array"),
    ],
)
def test_an_index_that_points_elsewhere_is_refused(sharded, places, words):
    write_index(sharded, places)
    with pytest.raises(InvalidData, match=r"index.json") as caught:
        open_weights(sharded)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, '{"weight_map": 1}'])
def test_a_damaged_index_is_refused(sharded, text):
    (sharded / "model.safetensors.index.json").write_text(text)
    with pytest.raises(InvalidData, match="damaged index"):
        open_weights(sharded)


def test_an_array_that_its_shard_lacks_fails_alone(sharded):
    write_index(sharded, PLACES | {"c": FIRST})
    *good, bad = open_weights(sharded).arrays
    assert [stored.read().shape for stored in good] == [(3, 4), (3, 4)]
    with pytest.raises(InvalidData, match="which does not hold it"):
        bad.read()


def test_a_truncated_shard_is_refused(sharded):
    whole = (sharded / SECOND).read_bytes()
    (sharded / SECOND).write_bytes(whole[:-60])
    with pytest.raises(InvalidData, match=f"{SECOND} is cut: it has {len(whole) - 60} bytes of"):
        open_weights(sharded)


def test_one_file_is_chosen_and_the_others_are_named(tmp_path):
    save_file({"w": matrix()}, tmp_path / "model.safetensors")
    save_file({"v": matrix()}, tmp_path / "other.safetensors")
    (tmp_path / "optimizer.pt").write_bytes(b"x")
    opened = open_weights(tmp_path)
    assert [stored.name for stored in opened.arrays] == ["w"]
    assert opened.notes == (
        "The folder's weights are those in model.safetensors.",
        "Other files in the folder are not read: other.safetensors.",
    )
    (tmp_path / "model.safetensors").rename(tmp_path / "third.safetensors")
    with pytest.raises(InvalidData, match=r"2 files of weights: other.safetensors and third"):
        open_weights(tmp_path)


def test_shards_may_be_links_as_in_the_cache_of_a_hub(sharded, tmp_path_factory):
    model = tmp_path_factory.mktemp("models--one")
    blobs, revision = model / "blobs", model / "snapshots" / "abc"
    blobs.mkdir()
    revision.parent.mkdir()
    sharded = sharded.rename(revision)
    for name in (FIRST, SECOND):
        (sharded / name).rename(blobs / name)
        (sharded / name).symlink_to(Path("..", "..", "blobs", name))
    assert len(open_weights(sharded).arrays) == 2
    (blobs / FIRST).unlink()
    (sharded / FIRST).unlink()
    (sharded / FIRST).symlink_to(sharded / FIRST)
    # Python 3.13 does not follow a link to itself, so that the file counts as missing.
    with pytest.raises(InvalidData, match=r"points elsewhere|is missing"):
        open_weights(sharded)


def test_a_link_out_of_the_folder_is_refused(sharded, tmp_path_factory):
    other = tmp_path_factory.mktemp("other")
    (sharded / SECOND).rename(other / SECOND)
    (sharded / SECOND).symlink_to(other / SECOND)
    with pytest.raises(InvalidData, match=r"a link to .* is outside the folder"):
        open_weights(sharded)


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ([], "it has no file"),
        (["notes.txt"], "it has notes.txt"),
        (["saved_model.pb"], "TensorFlow SavedModel"),
        (["_CHECKPOINT_METADATA"], "orbax"),
        (["model.ckpt.index", "model.ckpt.data-00000-of-00001"], "TensorFlow checkpoint"),
    ],
)
def test_what_is_no_folder_of_weights_is_named(tmp_path, files, words):
    for name in files:
        (tmp_path / name).write_bytes(b"x")
    with pytest.raises(InvalidData, match=r"allowed: ") as caught:
        open_weights(tmp_path)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("w.pkl", "a pickle"),
        ("w.joblib", "pass the object"),
        ("w.msgpack", "flax"),
        ("w.tflite", "TensorFlow Lite"),
        ("w.pt2", "exported program"),
        ("w.xyz", "no format of weights"),
    ],
)
def test_other_formats_are_named_with_what_to_do(tmp_path, name, words):
    (tmp_path / name).write_bytes(b"x")
    with pytest.raises(InvalidData, match=r"allowed: \.safetensors") as caught:
        open_weights(tmp_path / name)
    assert words in str(caught.value)


def test_names_are_printable_and_occur_once(tmp_path):
    names = ["fine", "fi\x1b[31mne\n\t", "fi[31mne"]
    save_file({name: matrix() for name in names}, tmp_path / "w.safetensors")
    arrays = open_weights(tmp_path / "w.safetensors").arrays
    assert sorted(stored.name for stored in arrays) == ["fi[31mne", "fi[31mne", "fine"]
    refused = 0
    for stored in arrays:
        try:
            stored.read()
        except InvalidData as error:
            refused += "an earlier array has the same name" in str(error)
    assert refused == 1
    text = b'{"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},'
    text += b'"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'
    (tmp_path / "w.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + bytes(4))
    with pytest.raises(InvalidData, match="a name occurs twice"):
        open_weights(tmp_path / "w.safetensors")


def test_integers_empty_and_broken_entries_are_counted_not_fitted(tmp_path):
    arrays = {
        "ids": np.arange(40)[None],
        "mask": np.ones((4, 4), dtype=bool),
        "step": np.array(3),
        "scale": np.array(1.5),
        "none": np.zeros((0, 5)),
        "nan": np.full((40, 50), np.nan),
        "small": matrix(0, (3, 60)),
    }
    np.savez(tmp_path / "w.npz", **arrays)
    found = diagnose_weights(tmp_path / "w.npz", workers=1)
    assert [row.name for row in found.integers] == ["ids", "mask", "step"]
    assert [row.name for row in found.vectors] == ["scale"]
    reasons = {row.name: row.reason for row in found.matrices}
    assert "the matrix is empty" in reasons["none"]
    assert "2000 of 2000 entries are not finite" in reasons["nan"]
    small = next(row for row in found.matrices if row.name == "small")
    values = np.linalg.svd(arrays["small"], compute_uv=False)
    np.testing.assert_allclose(small.largest, values[0])
    np.testing.assert_allclose(small.norm, np.linalg.norm(values))
    np.testing.assert_allclose(small.stable_rank, (values**2).sum() / values[0] ** 2)
    assert "skipped: 3 arrays of integers" in str(found)
