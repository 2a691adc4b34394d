"""Copies of weights: changed arrays in the type that was read, everything else byte for byte."""

from __future__ import annotations

import json
import struct
import zipfile

import numpy as np
import pytest
from safetensors.numpy import save_file

from solvable.data.weights.opening import open_weights
from solvable.data.weights.stored import Weights
from solvable.data.weights.writing.copies import check_writable, write_copy
from solvable.data.weights.writing.replacement import Factors, stored_bytes
from solvable.errors import InvalidData, InvalidParameter


def matrix(seed=0, shape=(6, 4)):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def read_all(path):
    return {stored.name: stored.read() for stored in open_weights(path).arrays}


def halved(path, folder, name="w"):
    """Halve one array in a copy; check that the others are the same."""
    before = read_all(path)
    there = write_copy(path, folder, {name: lambda entries: entries / 2})
    after = read_all(there)
    assert after.keys() == before.keys()
    for key, array in before.items():
        np.testing.assert_array_equal(after[key], array / 2 if key == name else array)
        assert after[key].dtype == array.dtype
    # Another opening of the original: the copy did not touch it.
    np.testing.assert_array_equal(read_all(path)[name], before[name])
    return there


def bfloat16_file(path):
    """Write a safetensors file with bfloat16 by hand, as NumPy lacks the type."""
    entries = {"w": stored_bytes(matrix(), "BF16", "w"), "b": stored_bytes(matrix(1), "BF16", "b")}
    table, place = {"__metadata__": {"format": "pt", "heads": "2"}}, 0
    for name, data in entries.items():
        where = [place, place + len(data)]
        table[name] = {"dtype": "BF16", "shape": [6, 4], "data_offsets": where}
        place += len(data)
    text = json.dumps(table).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(entries.values()))


def test_safetensors_keep_header_and_other_bytes(tmp_path):
    path = tmp_path / "m.safetensors"
    bfloat16_file(path)
    there = halved(path, tmp_path / "out")
    old, new = path.read_bytes(), there.read_bytes()
    begin = len(old) - 2 * 48
    assert (new[:begin], new[-48:]) == (old[:begin], old[-48:])
    assert new[begin:-48] != old[begin:-48]


def test_safetensors_with_factors(tmp_path):
    path = tmp_path / "m.safetensors"
    bfloat16_file(path)
    left, right = matrix(2, (6, 1)), matrix(3, (1, 4))
    there = write_copy(path, tmp_path / "out", {"w": lambda entries: Factors(left, right)})
    opened = open_weights(there)
    assert [(one.name, one.dtype) for one in opened.arrays] == [
        ("w.left", "BF16"), ("w.right", "BF16"), ("b", "BF16"),
    ]  # fmt: skip
    found = read_all(there)
    np.testing.assert_allclose(found["w.left"], left, rtol=2.0**-8)
    np.testing.assert_array_equal(found["b"], read_all(path)["b"])
    assert dict(opened.settings)["m.safetensors"] == {"format": "pt", "heads": "2"}


def test_bfloat16_is_rounded_to_even():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    values = np.concatenate([matrix(0, (1000,)), np.float32([1 + 2**-8, 1 + 3 * 2**-8, 0, -0.0])])
    assert stored_bytes(values, "BF16", "w") == values.astype(ml_dtypes.bfloat16).tobytes()
    for kind, dtype in (("F8_E5M2", "float8_e5m2"), ("F8_E4M3", "float8_e4m3fn")):
        ours = np.frombuffer(
            stored_bytes(values[:1000], kind, "w"), dtype=getattr(ml_dtypes, dtype)
        )
        theirs = values[:1000].astype(getattr(ml_dtypes, dtype))
        np.testing.assert_array_equal(ours.astype(np.float32), theirs.astype(np.float32))


def test_entries_too_large_for_a_type_are_refused():
    with pytest.raises(InvalidData, match="too large for F16"):
        stored_bytes(np.array([1e6]), "F16", "w")


def test_a_hub_folder_keeps_index_shards_and_configuration(tmp_path):
    folder = tmp_path / "hub"
    folder.mkdir()
    shards = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]
    save_file({"a": matrix(0), "b": matrix(1)}, folder / shards[0])
    save_file({"w": matrix(2), "a": matrix(3)}, folder / shards[1])
    places = {"a": shards[0], "b": shards[0], "w": shards[1]}
    index = json.dumps({"metadata": {}, "weight_map": places})
    (folder / "model.safetensors.index.json").write_text(index)
    (folder / "config.json").write_text("{}")
    (folder / "pytorch_model.bin").write_bytes(b"other weights, which stay out")
    there = halved(folder, tmp_path / "out")
    assert {one.name for one in there.iterdir()} == {
        *shards, "model.safetensors.index.json", "config.json",
    }  # fmt: skip
    assert (there / shards[0]).read_bytes() == (folder / shards[0]).read_bytes()


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_npz_keeps_members_order_and_packing(tmp_path, save):
    path = tmp_path / "m.npz"
    save(path, a=np.arange(3), w=np.asfortranarray(matrix()), t=np.array(["text"]))
    there = halved_npz(path, tmp_path / "out")
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(there) as new:
        pairs = list(zip(old.infolist(), new.infolist(), strict=True))
        for before, after in pairs:
            assert (before.filename, before.compress_type) == (after.filename, after.compress_type)
            if before.filename != "w.npy":
                assert old.read(before) == new.read(after)
    assert np.load(there)["w"].flags.f_contiguous
    left, right = matrix(2, (6, 1)), matrix(3, (1, 4))
    there = write_copy(path, tmp_path / "factors", {"w": lambda entries: Factors(left, right)})
    np.testing.assert_array_equal(
        np.load(there)["w.left"] @ np.load(there)["w.right"], left @ right
    )


def halved_npz(path, folder):
    there = write_copy(path, folder, {"w": lambda entries: entries / 2})
    np.testing.assert_array_equal(np.load(there)["w"], np.load(path)["w"] / 2)
    return there


def test_npy(tmp_path):
    np.save(tmp_path / "w.npy", matrix())
    halved(tmp_path / "w.npy", tmp_path / "out")


@pytest.mark.parametrize("outside", [False, True])
def test_onnx(tmp_path, outside):
    onnx = pytest.importorskip("onnx")
    from onnx import TensorProto, helper, numpy_helper
    from onnx.reference import ReferenceEvaluator

    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Add", ["h", "b"], ["y"])],
        "g",
        [info("x", TensorProto.FLOAT, [2, 6])],
        [info("y", TensorProto.FLOAT, [2, 4])],
        [numpy_helper.from_array(matrix(), "w"), numpy_helper.from_array(matrix(1, (4,)), "b")],
    )
    path = tmp_path / "m.onnx"
    extra = {"save_as_external_data": True, "location": "data", "size_threshold": 0}
    onnx.save(helper.make_model(graph), path, **(extra if outside else {}))
    there = halved(path, tmp_path / "out")
    x = matrix(2, (2, 6))
    (found,) = ReferenceEvaluator(str(there)).run(None, {"x": x})
    np.testing.assert_allclose(found, x @ matrix() / 2 + matrix(1, (4,)), rtol=1e-5)
    # The graph with factors gives the same outputs, and needs no change of the program.
    left, right = matrix(3, (6, 1)), matrix(4, (1, 4))
    there = write_copy(path, tmp_path / "factors", {"w": lambda entries: Factors(left, right)})
    onnx.checker.check_model(str(there))
    (found,) = ReferenceEvaluator(str(there)).run(None, {"x": x})
    np.testing.assert_allclose(found, x @ left @ right + matrix(1, (4,)), rtol=1e-4, atol=1e-5)


def test_hdf5_and_keras(tmp_path):
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "m.h5"
    with h5py.File(path, "w") as file:
        file.attrs["backend"] = "x"
        file.create_dataset("w", data=matrix().astype(np.float16), compression="gzip")
        file["conv/kernel"] = matrix(1, (3, 3, 2, 5))
        file["model_weights/b"] = matrix(2)
    halved(path, tmp_path / "out")
    there = halved(path, tmp_path / "filters", "conv/kernel")
    with h5py.File(there) as file:
        np.testing.assert_array_equal(file["conv/kernel"][()], matrix(1, (3, 3, 2, 5)) / 2)
        assert file.attrs["backend"] == "x"
    with zipfile.ZipFile(tmp_path / "m.keras", "w") as archive:
        archive.writestr("config.json", "{}")
        archive.write(path, "model.weights.h5")
    there = halved(tmp_path / "m.keras", tmp_path / "keras")
    with zipfile.ZipFile(there) as archive:
        assert archive.read("config.json") == b"{}"


@pytest.mark.torch
@pytest.mark.parametrize("zipped", [True, False])
def test_torch_keeps_other_entries_and_ties(tmp_path, zipped):
    torch = pytest.importorskip("torch")
    w = torch.from_numpy(matrix()).to(torch.bfloat16)
    state = {"w": w, "tied": w, "b": torch.arange(3)}
    whole = {"state_dict": state, "epoch": 3, "optimizer": {"step": torch.tensor(5.0)}}
    path = tmp_path / "m.pt"
    torch.save(whole, path, _use_new_zipfile_serialization=zipped)
    there = write_copy(path, tmp_path / "out", {"w": lambda entries: entries / 2})
    assert zipfile.is_zipfile(there) == zipped
    found = torch.load(there, weights_only=True)
    assert (found["epoch"], float(found["optimizer"]["step"])) == (3, 5.0)
    new = found["state_dict"]
    assert new["w"].data_ptr() == new["tied"].data_ptr()
    assert torch.equal(new["w"], w / 2)
    assert torch.equal(torch.load(path, weights_only=True)["state_dict"]["w"], w)
    left, right = matrix(2, (6, 1)), matrix(3, (1, 4))
    there = write_copy(path, tmp_path / "factors", {"w": lambda entries: Factors(left, right)})
    new = torch.load(there, weights_only=True)["state_dict"]
    assert list(new) == ["w.left", "w.right", "tied", "b"]
    assert new["w.left"].dtype == torch.bfloat16


def test_what_cannot_be_written_is_one_line(tmp_path):
    (tmp_path / "m.npy").write_bytes(b"")
    weights = Weights("m", (), (tmp_path / "m.gguf",), source=tmp_path / "m.gguf")
    with pytest.raises(InvalidData, match="a GGUF file, which is not written") as caught:
        check_writable(weights, factors=False)
    assert "\n" not in str(caught.value)
    for ending, reason in (("h5", "place and shape"), ("npy", "holds one array")):
        weights = Weights("m", (), (tmp_path / f"m.{ending}",), source=tmp_path / f"m.{ending}")
        assert check_writable(weights, factors=False) == weights.source
        with pytest.raises(InvalidData, match=reason):
            check_writable(weights, factors=True)
    with pytest.raises(InvalidParameter, match="Save the weights first"):
        check_writable(open_weights({"w": matrix()}), factors=False)
