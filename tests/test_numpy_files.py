"""Crafted, truncated and compressed files of arrays: one error line, little memory, one pass."""

from __future__ import annotations

import gzip
import io
import json
import struct
import tracemalloc
import zipfile
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from solvable import numpy_files
from solvable.arrays import as_source
from solvable.data import load
from solvable.data.weights.opening import iter_weights
from solvable.diagnose.matrices_of_file import diagnose_whole
from solvable.errors import InvalidData, MemoryLimitExceeded, SolvableError
from solvable.numpy_files import npz_members, open_npy, shape_fault

HEADERS = [
    "[[[[",
    "{'descr':'<f4','fortran_order':False,'shape':(3,False)}",
    "{'descr':'<f4','fortran_order':False,'shape':(2**20,3)}",
    "{'descr':'<i8','fortran_order':False,'shape':(4611686018427387904,8,0)}",
    "{'descr':'<f4','fortran_order':True,'shape':(-2,-3)}",
    "{'descr':'<f4','fortran_order':False,'shape':" + str((1,) * 200) + "}",
    "{'descr':[[]],'fortran_order':False,'shape':(2,2)}",
    "{'descr':'|O','fortran_order':False,'shape':(2,2)}",
    "{'descr':None,'fortran_order':0,'shape':'x'}",
    "{'descr':'<f8','fortran_order':False,'shape':(99999999999,3)}",
    "-" * 5000 + "1",
    "\0\0",
]


def npy(header, data=bytes(64)):
    text = header.encode("latin1")
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + data


def safetensors(header):
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + bytes(64)


@pytest.mark.parametrize("header", HEADERS)
def test_a_crafted_header_is_one_error_on_every_road(tmp_path, header):
    path = tmp_path / "w.npy"
    path.write_bytes(npy(header))
    with zipfile.ZipFile(tmp_path / "w.npz", "w") as archive:
        archive.writestr("X.npy", npy(header))
    tracemalloc.start()
    for road in (
        lambda: open_npy(path),
        lambda: open_npy(path, mapped=False),
        lambda: as_source(path),
        lambda: [one.read() for one in iter_weights(path)],
        lambda: [one.read() for one in iter_weights(tmp_path / "w.npz")],
        lambda: load(path, target="x0"),
        lambda: load(tmp_path / "w.npz"),
    ):
        with pytest.raises(InvalidData):
            road()
    assert tracemalloc.get_traced_memory()[1] < 5e6
    tracemalloc.stop()


@pytest.mark.parametrize(
    "shape", [[2, True], [2.0, 4], ["2", 4], [2**50, 0, 2**50], [1] * 40, {}, None]
)
def test_a_shape_of_safetensors_is_whole_numbers(tmp_path, shape):
    path = tmp_path / "w.safetensors"
    size = 0 if isinstance(shape, list) and 0 in shape else 32
    path.write_bytes(
        safetensors({"w": {"dtype": "F32", "shape": shape, "data_offsets": [0, size]}})
    )
    (stored,) = iter_weights(path)
    with pytest.raises(InvalidData):
        stored.read()


def test_a_name_with_half_a_character_can_be_written(tmp_path):
    path = tmp_path / "w.safetensors"
    path.write_bytes(
        safetensors({"a\udfffb": {"dtype": "F32", "shape": [4, 4], "data_offsets": [0, 64]}})
    )
    (stored,) = iter_weights(path)
    assert stored.name.encode() == b"ab"
    assert stored.read().shape == (4, 4)


def test_shapes_of_arrays_that_exist_are_fine():
    for shape in [(), (0,), (3, 0, 5), (2**40, 3)]:
        assert shape_fault(shape, 8) == ""


@given(st.binary(max_size=300), st.sampled_from(["npy", "npz", "safetensors"]), st.booleans())
@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_random_bytes_and_random_changes_raise_nothing_else(tmp_path, noise, ending, change):
    stream = io.BytesIO()
    values = np.arange(12.0).reshape(3, 4)
    if ending == "safetensors":
        stream.write(safetensors({"w": {"dtype": "F32", "shape": [4, 4], "data_offsets": [0, 64]}}))
    else:
        (np.save if ending == "npy" else np.savez_compressed)(stream, values)
    whole = bytearray(stream.getvalue())
    if change:
        for place, value in zip(noise[::2], noise[1::2], strict=False):
            whole[place % len(whole)] = value
    path = tmp_path / f"w.{ending}"
    path.write_bytes(whole if change else whole[:10] + noise)
    with suppress(SolvableError):
        for one in iter_weights(path):
            one.read()
    if ending != "safetensors":
        with suppress(SolvableError):
            load(path, target="x0")


def test_archives_unpack_within_the_limit(tmp_path, monkeypatch):
    path = tmp_path / "zeros.npz"
    X = np.zeros((3000, 1000))
    X[:, 3] = np.arange(3000) % 7
    np.savez_compressed(path, X=X, y=np.arange(3000) % 2)
    assert path.stat().st_size < 1e5
    monkeypatch.setattr(numpy_files, "available_bytes", lambda: 4e7)
    tracemalloc.start()
    with pytest.raises(MemoryLimitExceeded, match=r"unpacks to .* half of the memory"):
        load(path)
    row = diagnose_whole(path).rows[0]
    assert row.phase == "not fitted"
    assert "half of the memory" in row.reason
    assert tracemalloc.get_traced_memory()[1] < 5e6
    tracemalloc.stop()
    monkeypatch.setattr(numpy_files, "available_bytes", lambda: 1e9)
    assert load(path, target="y").table.n_rows == 3000


def test_packed_text_unpacks_within_the_limit(tmp_path, monkeypatch):
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(b"a,y\n" + b"1,2\n" * 2_000_000))
    monkeypatch.setattr(numpy_files, "available_bytes", lambda: 4e7)
    with pytest.raises(MemoryLimitExceeded, match=r"as a table of .* unpacks to"):
        load(path, target="y")


def test_a_method_that_unpacks_a_block_whole_is_refused(tmp_path):
    stream = io.BytesIO()
    np.save(stream, np.zeros((10, 10)))
    with zipfile.ZipFile(tmp_path / "w.npz", "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("w.npy", stream.getvalue())
    (member,) = npz_members(tmp_path / "w.npz")
    with pytest.raises(InvalidData, match="packed in a way"):
        member.read()


def test_a_file_that_takes_the_name_of_another_is_read_again(tmp_path):
    path = tmp_path / "w.npz"
    for value in (1.0, 2.0):
        np.savez(path, w=np.full((3, 3), value))
        assert npz_members(path)[0].read()[0, 0] == value


def test_many_small_arrays_take_one_pass(tmp_path, monkeypatch):
    opened, inside = [], numpy_files.zipfile.ZipFile._RealGetContents

    def counted(archive):
        opened.append(archive)
        return inside(archive)

    monkeypatch.setattr(numpy_files.zipfile.ZipFile, "_RealGetContents", counted)
    for count in (3, 40):
        path = tmp_path / f"{count}.npz"
        np.savez(path, **{f"w{i}": np.full((6, 5), float(i)) for i in range(count)})
        opened.clear()
        found = diagnose_whole(path, progress=lambda done, total, left: None)
        assert len(found.rows) == count
        # The directory of an archive is read once for any number of arrays.
        assert len(opened) == 1
