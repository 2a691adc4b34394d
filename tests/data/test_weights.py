"""Arrays in files of weights: all types, bounded memory, truncated and hostile files."""

from __future__ import annotations

import json
import tracemalloc
import zipfile

import numpy as np
import pytest
from safetensors.numpy import save_file

from solvable.data.weights.opening import iter_weights
from solvable.data.weights.safetensors_file import eight_bits
from solvable.errors import InvalidData


def raw(path, header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return path


def read_all(path):
    return {one.name: one.read() for one in iter_weights(path)}


@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", "i8", "i4", "i2", "i1", "u1", "u2", "?"])
@pytest.mark.parametrize("ending", ["safetensors", "npz", "npy"])
def test_every_type_comes_back_as_it_was(tmp_path, dtype, ending):
    values = np.array([[0, 1, 2], [3, 1, 0]]).astype(dtype)
    path = tmp_path / f"w.{ending}"
    if ending == "safetensors":
        save_file({"w": values}, path)
    elif ending == "npz":
        np.savez_compressed(path, w=values)
    else:
        np.save(path, values)
    found = read_all(path)
    np.testing.assert_array_equal(found["w"].astype(float), values.astype(float))


def test_bfloat16_is_the_upper_half_of_single_precision(tmp_path):
    values = np.array([1.0, -2.5, 3.140625, 0.0], dtype=np.float32)
    data = (values.view(np.uint32) >> 16).astype("<u2").tobytes()
    header = {"w": {"dtype": "BF16", "shape": [2, 2], "data_offsets": [0, 8]}}
    (found,) = iter_weights(raw(tmp_path / "w.safetensors", header, data))
    np.testing.assert_array_equal(found.read().ravel(), values)
    assert found.precision == 2.0**-7


def test_eight_bit_types_have_their_published_ranges():
    four, five = eight_bits(4, 7), eight_bits(5, 15)
    assert (np.nanmax(four), four[1]) == (448.0, 2.0**-9)
    assert (five[np.isfinite(five)].max(), five[1]) == (57344.0, 2.0**-16)
    assert np.isnan(four[[127, 255]]).all()
    assert np.isinf(five[[124, 252]]).all()
    assert (four[56], five[60], four[184]) == (1.0, 1.0, -1.0)


def test_torch_writes_what_is_read(tmp_path):
    torch = pytest.importorskip("torch")
    torch_file = pytest.importorskip("safetensors.torch")
    values = torch.randn(3, 4).to(torch.bfloat16)
    torch_file.save_file({"w": values}, tmp_path / "w.safetensors")
    np.testing.assert_array_equal(read_all(tmp_path / "w.safetensors")["w"], values.float().numpy())


@pytest.mark.parametrize("ending", ["safetensors", "npz"])
def test_memory_is_bounded_by_the_largest_array(tmp_path, ending):
    arrays = {f"w{i}": np.full((500, 250), float(i)) for i in range(20)}
    path = tmp_path / f"w.{ending}"
    if ending == "npz":
        np.savez(path, **arrays)
    else:
        save_file(arrays, path)
    tracemalloc.start()
    total = 0.0
    for one in iter_weights(path):
        total += float(one.read()[0, 0])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert total == pytest.approx(190.0)
    # The file has twenty arrays of one megabyte each.
    assert peak < 4e6


@pytest.mark.parametrize(
    "entry",
    [
        {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 10**15]},
        {"dtype": "F32", "shape": [10**9, 10**9], "data_offsets": [0, 16]},
        {"dtype": "F32", "shape": [-2, -2], "data_offsets": [0, 16]},
        {"dtype": "F32", "shape": [2, 2], "data_offsets": [-16, 0]},
        {"dtype": "C64", "shape": [2, 1], "data_offsets": [0, 16]},
        {"dtype": "F32", "shape": "2x2", "data_offsets": [0, 16]},
        {"dtype": "F32"},
        "nothing",
        None,
    ],
)
def test_a_hostile_entry_fails_alone(tmp_path, entry):
    good = {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]}
    path = raw(tmp_path / "w.safetensors", {"bad": entry, "good": good}, bytes(16))
    bad, fine = iter_weights(path)
    with pytest.raises(InvalidData):
        bad.read()
    assert fine.read().shape == (2, 2)


@pytest.mark.parametrize("header", [b"{", b"[1]", b"\xff\xfe", b"[" * 100_000])
def test_a_damaged_header_is_told(tmp_path, header):
    with pytest.raises(InvalidData, match="header"):
        list(iter_weights(raw(tmp_path / "w.safetensors", header)))


@pytest.mark.parametrize("content", [b"", b"abc", b"\xff" * 40])
@pytest.mark.parametrize("ending", ["safetensors", "npz", "npy"])
def test_what_is_no_such_file_is_told(tmp_path, content, ending):
    path = tmp_path / f"w.{ending}"
    path.write_bytes(content)
    with pytest.raises(InvalidData, match=r"w\."):
        list(iter_weights(path))


def test_a_file_cut_at_any_place_raises_nothing_else(tmp_path):
    whole = {}
    for ending in ("safetensors", "npz", "npy"):
        path = tmp_path / f"w.{ending}"
        values = np.arange(60.0).reshape(6, 10)
        if ending == "safetensors":
            save_file({"w": values}, path)
        elif ending == "npz":
            np.savez_compressed(path, w=values)
        else:
            np.save(path, values)
        whole[ending] = path.read_bytes()
    for ending, data in whole.items():
        for cut in range(0, len(data) - 1, 37):
            path = tmp_path / f"cut.{ending}"
            path.write_bytes(data[:cut])
            with pytest.raises(InvalidData):
                read_all(path)


def test_python_objects_are_refused(tmp_path):
    objects = np.empty(2, dtype=object)
    np.save(tmp_path / "w.npy", objects, allow_pickle=True)
    np.savez(tmp_path / "w.npz", bad=objects, good=np.ones((2, 2)))
    (one,) = iter_weights(tmp_path / "w.npy")
    with pytest.raises(InvalidData, match="run code"):
        one.read()
    bad, good = iter_weights(tmp_path / "w.npz")
    with pytest.raises(InvalidData, match="run code"):
        bad.read()
    assert good.read().sum() == 4


def test_a_member_that_promises_more_than_it_holds_is_refused(tmp_path):
    np.save(tmp_path / "w.npy", np.ones((2, 2)))
    data = (tmp_path / "w.npy").read_bytes().replace(b"(2, 2)", b"(2,9999999999)"[:14])
    with zipfile.ZipFile(tmp_path / "w.npz", "w") as archive:
        archive.writestr("w.npy", data)
    with pytest.raises(InvalidData):
        read_all(tmp_path / "w.npz")


@pytest.mark.parametrize("name", ["w.pt", "w.pkl", "missing.npz"])
def test_other_files_are_refused_with_what_to_do(tmp_path, name):
    if "missing" not in name:
        (tmp_path / name).write_bytes(b"x")
    with pytest.raises(InvalidData, match=r"safetensors|torch\.save\(model\.state_dict"):
        list(iter_weights(tmp_path / name))
