"""Streams yield the rows of the table in memory, for any chunk size and start."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvable.arrays import ArraySource, Source
from solvable.data import Preparation, from_arrays, load, open_stream
from solvable.data.raw_data import TablePart
from solvable.data.stream import LabelledSource, PartStream
from solvable.errors import InvalidData, InvalidParameter

N = 157
RNG = np.random.default_rng(2)
X = RNG.standard_normal((N, 3)).astype(np.float32)
Y = RNG.standard_normal(N)


def collect(source: LabelledSource, rows: int, start: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return all rows, after a check that slices are consecutive and full."""
    blocks, labels = [], []
    low = start
    for part, block, y in source.chunks(rows, start):
        assert part == slice(low, min(low + rows, source.n_samples))
        assert block.shape == (part.stop - part.start, source.n_columns)
        assert y.shape == block.shape[:1]
        assert block.dtype == source.dtype
        blocks.append(np.array(block))
        labels.append(np.array(y))
        low = part.stop
    assert low == source.n_samples
    if not blocks:
        return np.empty((0, source.n_columns)), np.empty(0)
    return np.concatenate(blocks), np.concatenate(labels)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Equal tables as row groups, pairs of arrays and shards."""
    arrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    base = tmp_path_factory.mktemp("streams")
    table = arrow.table({f"x{i}": X[:, i] for i in range(3)} | {"y": Y})
    one = base / "one.parquet"
    parquet.write_table(table, one, row_group_size=20)
    several, pairs, shards = base / "several", base / "pairs", base / "shards"
    for folder in (several, pairs, shards):
        folder.mkdir()
    for i, (low, high) in enumerate([(0, 50), (50, 51), (51, N)]):
        parquet.write_table(table.slice(low, high - low), several / f"{i}.parquet", 30)
        np.save(pairs / f"X{i}.npy", X[low:high])
        np.save(pairs / f"y{i}.npy", Y[low:high])
        np.savez(shards / f"{i}.npz", X=X[low:high], y=Y[low:high])
    single = base / "single"
    single.mkdir()
    np.save(single / "X.npy", X)
    np.save(single / "y.npy", Y)
    return {"one": one, "several": several, "pairs": pairs, "shards": shards, "single": single}


KINDS = ("one", "several", "pairs", "shards", "single")


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=20, deadline=None)
@given(rows=st.integers(1, 2 * N), start=st.integers(0, N))
def test_any_chunk_size_from_any_row(
    folders: dict[str, Path], kind: str, rows: int, start: int
) -> None:
    stream = open_stream(folders[kind])
    assert (stream.n_samples, stream.n_columns, stream.dtype) == (N, 3, np.float32)
    blocks, labels = collect(stream, rows, start)
    np.testing.assert_array_equal(blocks, X[start:])
    np.testing.assert_array_equal(labels, Y[start:])


@pytest.mark.parametrize("kind", KINDS)
def test_a_stream_equals_the_table_in_memory(folders: dict[str, Path], kind: str) -> None:
    data = load(folders[kind])
    stream = open_stream(folders[kind])
    blocks, labels = collect(stream, 33)
    np.testing.assert_array_equal(blocks, data.X)
    np.testing.assert_array_equal(labels, data.y)
    assert stream.preparation.columns == data.columns
    # A stream can be read repeatedly.
    np.testing.assert_array_equal(collect(stream, 8)[0], data.X)


@given(rows=st.integers(1, 40), done=st.integers(0, 10))
@settings(max_examples=25, deadline=None)
def test_resuming_gives_the_very_chunks_of_an_unbroken_run(
    folders: dict[str, Path], rows: int, done: int
) -> None:
    stream = open_stream(folders["one"])
    whole = list(stream.chunks(rows))
    done = min(done, len(whole) - 1)
    rest = list(stream.chunks(rows, whole[done][0].start))
    assert [part for part, _, _ in rest] == [part for part, _, _ in whole[done:]]
    for (_, left, _), (_, right, _) in zip(rest, whole[done:], strict=True):
        np.testing.assert_array_equal(left, right)


class CountingPart:
    """Part that counts how often it is read."""

    def __init__(self, part: TablePart, reads: list[int], number: int) -> None:
        self.part, self.reads, self.number = part, reads, number
        self.n_rows, self.columns = part.n_rows, part.columns

    def read(self, columns: Any = None) -> Any:
        self.reads.append(self.number)
        return self.part.read(columns)


def test_parts_before_the_start_are_not_read_and_no_part_twice() -> None:
    data = load("wine")
    reads: list[int] = []
    parts = []
    for number, low in enumerate(range(0, 178, 20)):
        rows = slice(low, min(low + 20, 178))
        values = np.array(data.class_labels, dtype=object)[data.y[rows]]
        parts.append(CountingPart(TablePart(data.table.rows(rows), values), reads, number))
    stream = PartStream(tuple(parts), tuple(p.n_rows for p in parts), data.preparation)
    blocks, labels = collect(stream, 7, start=101)
    assert reads == [5, 6, 7, 8]
    np.testing.assert_array_equal(blocks, data.X[101:])
    np.testing.assert_array_equal(labels, data.y[101:])
    reads.clear()
    chunks = stream.chunks(7)
    next(chunks)
    assert reads == [0]


def test_from_arrays() -> None:
    stream = from_arrays(X, Y)
    for rows, start in [(1, 0), (50, 0), (50, 50), (1000, 3), (5, N)]:
        blocks, labels = collect(stream, rows, start)
        np.testing.assert_array_equal(blocks, X[start:])
        np.testing.assert_array_equal(labels, Y[start:])
    _, block, y = next(stream.chunks(10))
    assert np.shares_memory(block, X)
    assert np.shares_memory(y, Y)
    for bad in [(X, Y[:-1]), (X[0], Y), (X, Y[:, None]), ([[1.0]], [1.0])]:
        with pytest.raises(InvalidData, match="allowed: \\(n, d\\) and \\(n,\\)"):
            from_arrays(*bad)


def test_chunks_agree_with_the_source_without_labels() -> None:
    source: Source = ArraySource(X)
    pairs = zip(source.chunks(40), from_arrays(X, Y).chunks(40), strict=True)
    for (rows, block), (labelled_rows, labelled_block, _) in pairs:
        assert rows == labelled_rows
        np.testing.assert_array_equal(block, labelled_block)


def test_both_follow_the_protocol(folders: dict[str, Path]) -> None:
    assert isinstance(from_arrays(X, Y), LabelledSource)
    assert isinstance(open_stream(folders["one"]), LabelledSource)


@pytest.mark.parametrize(("rows", "start"), [(0, 0), (-1, 0), (5, -1), (5, N + 1)])
def test_chunks_that_are_none(folders: dict[str, Path], rows: int, start: int) -> None:
    for stream in (from_arrays(X, Y), open_stream(folders["one"])):
        with pytest.raises(InvalidParameter, match=f"rows is {rows} and start is {start}"):
            next(iter(stream.chunks(rows, start)))


def mapped_rows(array: np.ndarray) -> bool:
    while array is not None and not isinstance(array, np.memmap):
        array = array.base
    return array is not None


def test_arrays_on_disk_are_not_loaded(folders: dict[str, Path]) -> None:
    for _, block, _ in open_stream(folders["single"]).chunks(50):
        assert mapped_rows(block)


READ_ROWS = """
import pickle, sys
stream = pickle.load(open(sys.argv[1], "rb"))
print(repr(float(sum(block.sum(dtype="f8") for _, block, _ in stream.chunks(40, 20)))))
"""


def test_streams_travel_to_other_processes(folders: dict[str, Path], tmp_path: Path) -> None:
    for kind in KINDS:
        stream = open_stream(folders[kind])
        next(stream.chunks(10))
        copy = pickle.loads(pickle.dumps(stream))
        np.testing.assert_array_equal(collect(copy, 50)[0], X)
    (tmp_path / "stream").write_bytes(pickle.dumps(open_stream(folders["one"])))
    answer = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", READ_ROWS, str(tmp_path / "stream")],
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
    )
    remote = float(answer.stdout)
    assert remote == pytest.approx(X[20:].sum(dtype=np.float64), rel=1e-12)


def test_arrays_on_disk_travel_as_paths(tmp_path: Path) -> None:
    big = np.zeros((50_000, 20))
    big[:, 0] = np.arange(50_000) / 7
    np.save(tmp_path / "X.npy", big)
    np.save(tmp_path / "y.npy", big[:, 0])
    stream = open_stream(tmp_path, keep=["x1"])
    assert len(pickle.dumps(stream)) < 10_000
    assert len(stream.parts) > 2
    (_, block, _), *_ = pickle.loads(pickle.dumps(stream)).chunks(100, 20_000)
    np.testing.assert_array_equal(block[:, 0], big[20_000:20_100, 0])


def test_blocks_are_in_row_order(folders: dict[str, Path]) -> None:
    for kind in KINDS:
        for _, block, _ in open_stream(folders[kind]).chunks(33):
            assert block.flags.c_contiguous


def write(path: Path, columns: dict[str, Any], rows: int) -> Path:
    arrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(arrow.table(columns), path, row_group_size=rows)
    return path


@pytest.fixture
def short_head(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fit preparations on the first 20 rows."""
    monkeypatch.setattr("solvable.data.stream.HEAD_ROWS", 20)


@pytest.mark.usefixtures("short_head")
def test_what_comes_after_the_first_rows_is_asked_for(tmp_path: Path) -> None:
    columns = {
        "step": [0.0] * 60 + [1.0] * 40,
        "unit": [3.0] * 100,
        "late": [None] * 90 + [2.0] * 10,
        "size": [i / 7 for i in range(100)],
        "word": ["a"] * 50 + ["b"] * 50,
        "free": ["t0", "t1"] * 20 + [f"t{i}" for i in range(60)],
        "y": [["no", "yes"][i % 2] for i in range(100)],
    }
    path = write(tmp_path / "t.parquet", columns, 10)
    stream = open_stream(path)
    assert stream.preparation.columns == (
        *("step", "late", "size", "word=a", "word=b"),
        *("free=t0", "free=t1"),  # the most frequent texts of the first rows
    )
    assert dict(stream.preparation.dropped) == {"unit": "constant"}
    blocks, labels = collect(stream, 9)
    np.testing.assert_array_equal(blocks[:, 0], columns["step"])
    np.testing.assert_array_equal(blocks[:, 4], [0] * 50 + [1] * 50)
    np.testing.assert_array_equal(labels, np.arange(100) % 2)
    assert stream.target.classes == ("no", "yes")
    assert "medians and identifiers are determined by the first 20 rows" in stream.treatments


def test_fewer_rows_of_a_wide_table_are_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("solvable.data.stream.HEAD_ENTRIES", 60)
    columns = {f"x{i}": [(i + j) / 7 for j in range(50)] for i in range(3)}
    path = write(tmp_path / "t.parquet", columns | {"y": [i / 3 for i in range(50)]}, 10)
    told = "medians and identifiers are determined by the first 20 rows"
    assert told in open_stream(path).treatments


@pytest.mark.usefixtures("short_head")
def test_missing_targets_and_values(tmp_path: Path) -> None:
    target = [None if i % 7 == 0 or 30 <= i < 40 else i / 3 for i in range(100)]
    columns = {"a": [None if i % 5 == 2 else float(i**2 % 17) for i in range(100)], "y": target}
    path = write(tmp_path / "t.parquet", columns, 10)
    stream = open_stream(path)
    keep = np.array([value is not None for value in target])
    assert stream.n_samples == keep.sum()
    median = stream.preparation.medians[0]
    expected = np.array([median if v is None else v for v in columns["a"]])[keep]
    for rows, start in [(7, 0), (100, 0), (3, 41)]:
        blocks, labels = collect(stream, rows, start)
        np.testing.assert_array_equal(blocks[:, 0], expected[start:])
        np.testing.assert_array_equal(labels, [v for v in target if v is not None][start:])
    assert "rows: target missing" in stream.treatments[1]


@pytest.mark.usefixtures("short_head")
def test_infinite_values_far_down_are_found_when_read(tmp_path: Path) -> None:
    values = [float(i % 9) for i in range(100)]
    values[77] = float("inf")
    path = write(tmp_path / "t.parquet", {"a": values, "y": [i / 3 for i in range(100)]}, 10)
    stream = open_stream(path)
    with pytest.raises(InvalidData, match="'a' is infinite, first in row 78"):
        collect(stream, 30)
    infinite = [*[i / 3 for i in range(99)], float("inf")]
    path = write(tmp_path / "u.parquet", {"a": values, "y": infinite}, 10)
    with pytest.raises(InvalidData, match="target 'y' is infinite"):
        open_stream(path)


def test_an_earlier_preparation_is_used_again(tmp_path: Path) -> None:
    first = write(tmp_path / "a.parquet", {"a": [1.0, 2, 6], "w": [1.0, 1, 2], "y": [1.0, 5, 3]}, 2)
    stream = open_stream(first, task="regression")
    columns = {"w": [9.0, 8], "a": [None, 7.0], "more": ["x", "z"], "y": [4.0, 4.0]}
    later = open_stream(
        write(tmp_path / "b.parquet", columns, 1), "y", preparation=stream.preparation
    )
    blocks, labels = collect(later, 1)
    np.testing.assert_array_equal(blocks, [[2, 9], [7, 8]])
    np.testing.assert_array_equal(labels, [4, 4])
    bare = Preparation.fit(load("wine").table)
    with pytest.raises(InvalidParameter, match="the preparation has no target"):
        open_stream("wine", preparation=bare)


def test_named_sets_and_csv_are_streams_too(tmp_path: Path) -> None:
    wine = load("wine")
    np.testing.assert_array_equal(collect(open_stream("wine"), 50)[0], wine.X)
    (tmp_path / "t.csv").write_text("a,y\n" + "\n".join(f"{i / 3},{i / 7}" for i in range(9)))
    assert collect(open_stream(tmp_path / "t.csv"), 4)[0].shape == (9, 1)


def test_paths_that_are_no_stream(tmp_path: Path) -> None:
    for paths in ([], [tmp_path / "a.npz"]):
        with pytest.raises(InvalidParameter, match="one or more Parquet files"):
            open_stream(paths)
    with pytest.raises(InvalidParameter, match="no file or folder"):
        open_stream(tmp_path / "a.parquet")


MEMORY = """
import resource, sys
import pyarrow.parquet
from solvable.data import open_stream
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
stream = open_stream(sys.argv[1])
rows = sum(len(y) for _, X, y in stream.chunks(4096))
print(rows, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.slow
def test_memory_is_that_of_a_row_group(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    path = tmp_path / "big.parquet"
    rng = np.random.default_rng(0)
    schema = arrow.schema([(f"x{i}", arrow.float32()) for i in range(100)])
    schema = schema.append(arrow.field("y", arrow.float64()))
    with parquet.ParquetWriter(path, schema) as writer:
        for _ in range(60):
            block = rng.standard_normal((10_000, 100), dtype=np.float32)
            columns = {f"x{i}": block[:, i] for i in range(100)}
            writer.write_table(arrow.table(columns | {"y": block[:, 0] / 3.0}, schema=schema))
    done = subprocess.run(
        [sys.executable, "-c", MEMORY, str(path)], capture_output=True, text=True, check=True
    )
    rows, kilobytes = map(int, done.stdout.split())
    assert rows == 600_000
    # The table has 240 MB. Opening keeps the first 100,000 rows (40 MB) and blocks of 4 million
    # entries with one or two copies; reading keeps a row group of 4 MB.
    assert kilobytes < 220_000
