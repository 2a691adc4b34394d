"""Equal tables in every format, and their preparation for training and new data."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvable.data import Preparation, load, load_new, open_stream
from solvable.data.dataset import Dataset
from solvable.errors import InvalidData

arrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

Columns = dict[str, list[float | str | None]]

VALUES = st.one_of(st.none(), st.floats(-1e6, 1e6), st.integers(-5, 5).map(float))


def write_csv(path: Path, columns: Columns) -> Path:
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(columns)
        for row in zip(*columns.values(), strict=True):
            writer.writerow(["" if value is None else value for value in row])
    return path


def write_npz(path: Path, columns: Columns) -> Path:
    arrays = {}
    for name, values in columns.items():
        if any(isinstance(value, str) for value in values):
            arrays[name] = np.array([value or "" for value in values])
        else:
            arrays[name] = np.array(values, dtype=np.float64)
    np.savez(path, **arrays)
    return path


def write_parquet(path: Path, columns: Columns, rows: int | None = None) -> Path:
    parquet.write_table(arrow.table(columns), path, row_group_size=rows)
    return path


def same(left: Dataset, right: Dataset) -> None:
    np.testing.assert_array_equal(left.X, right.X)
    np.testing.assert_array_equal(left.y, right.y)
    for name in ("kind", "class_labels", "columns", "target", "preparation"):
        assert getattr(left, name) == getattr(right, name)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_csv_npz_and_parquet_agree(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    n = data.draw(st.integers(4, 15))
    column = st.lists(VALUES, min_size=n, max_size=n)
    words = data.draw(st.lists(st.sampled_from(["red", "blue", None]), min_size=n, max_size=n))
    # The first cell is a text, so that every format reads the column as text.
    columns: Columns = {
        "a": data.draw(column),
        "b": data.draw(column),
        "word": ["red", *words[1:]],
        "c": [float(i % 3) for i in range(n)],
        "label": data.draw(st.lists(st.sampled_from(["yes", "no"]), min_size=n, max_size=n)),
    }
    folder = tmp_path_factory.mktemp("agree")
    paths = [
        write_csv(folder / "t.csv", columns),
        write_npz(folder / "t.npz", columns),
        write_parquet(folder / "t.parquet", columns, rows=3),
    ]
    results = []
    for path in paths:
        try:
            results.append(load(path, target="label"))
        except InvalidData as error:
            results.append(str(error))
    if isinstance(results[0], str):
        assert results == [results[0]] * 3
    else:
        for result in results[1:]:
            assert isinstance(result, Dataset)
            same(results[0], result)


def test_parquet_types(tmp_path: Path) -> None:
    import datetime
    import decimal

    columns = {
        "int": arrow.array([1, None, 3, 5] * 5),
        "flag": arrow.array([True, None, False, True] * 5),
        "price": arrow.array([decimal.Decimal("1.5"), None, decimal.Decimal(2), None] * 5),
        "level": arrow.array(["low", "high", None, "low"] * 5).dictionary_encode(),
        "day": arrow.array([datetime.date(2020, 1, 1 + i % 2) for i in range(20)]),
        "list": arrow.array([[1], [2], [3], [4]] * 5),
        "nothing": arrow.nulls(20),
        "y": arrow.array([0.5, 1.5, 2.5, 3.5] * 5, arrow.float32()),
    }
    parquet.write_table(arrow.table(columns), tmp_path / "t.parquet")
    data = load(tmp_path / "t.parquet")
    assert data.columns == (
        "int",
        "flag",
        "price",
        "level=high",
        "level=low",
        "day=2020-01-01",
        "day=2020-01-02",
        "price: missing",
    )
    np.testing.assert_array_equal(data.X[1], [3, 1, 1.75, 1, 0, 0, 1, 1])
    told = "\n".join(data.treatments)
    assert "dropped column 'list': it holds values of type list" in told
    assert "dropped column 'nothing': no value in any row" in told
    with pytest.raises(InvalidData, match="target 'list' holds values of type list"):
        load(tmp_path / "t.parquet", target="list")


def test_float32_stays_float32(tmp_path: Path) -> None:
    X = np.random.default_rng(0).standard_normal((30, 2), dtype=np.float32)
    table = {"a": X[:, 0], "b": X[:, 1], "y": X[:, 0].astype(np.float64)}
    parquet.write_table(arrow.table(table), tmp_path / "t.parquet")
    data = load(tmp_path / "t.parquet")
    assert data.X.dtype == np.float32
    np.testing.assert_array_equal(data.X, X)


def test_bad_parquet(tmp_path: Path) -> None:
    path = write_parquet(tmp_path / "a.parquet", {"a": [1.0, 2.0, 3.0], "y": [1.0, 0.5, 2.0]})
    whole = path.read_bytes()
    (tmp_path / "cut.parquet").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "text.parquet").write_text("a,y\n1,2\n")
    (tmp_path / "empty.parquet").write_bytes(b"")
    for name in ("cut", "text", "empty"):
        with pytest.raises(InvalidData, match="damaged or not a Parquet file"):
            load(tmp_path / f"{name}.parquet")
    garbled = bytearray(whole)
    garbled[4:60] = b"\xff" * 56
    (tmp_path / "garbled.parquet").write_bytes(garbled)
    with pytest.raises(InvalidData, match="damaged in row group 0"):
        load(tmp_path / "garbled.parquet")
    none = arrow.table({"a": arrow.array([], arrow.float64()), "y": arrow.array([], arrow.int8())})
    parquet.write_table(none, tmp_path / "none.parquet")
    with pytest.raises(InvalidData, match="has no rows"):
        load(tmp_path / "none.parquet")
    with pytest.raises(InvalidData, match=r"target 'Y' is not a column; .* Did you mean 'y'"):
        load(path, target="Y")
    twice = arrow.Table.from_arrays([arrow.array([1.0]), arrow.array([2.0])], ["a", "a"])
    parquet.write_table(twice, tmp_path / "twice.parquet")
    with pytest.raises(InvalidData, match="'a' occurs 2 times"):
        load(tmp_path / "twice.parquet", target="a")


def test_parquet_files_that_differ(tmp_path: Path) -> None:
    write_parquet(tmp_path / "a.parquet", {"a": [1.0], "y": [1.0]})
    write_parquet(tmp_path / "b.parquet", {"a": ["x"], "y": [1.0]})
    with pytest.raises(InvalidData, match=r"b.parquet and a.parquet differ in 'a'"):
        load(tmp_path)
    with pytest.raises(InvalidData, match="differ in 'a'"):
        open_stream([tmp_path / "a.parquet", tmp_path / "b.parquet"], "y")


TRAINING: Columns = {
    "id": [float(i) for i in range(40)],
    "size": [None if i == 3 else (i * 7 % 11) / 2 + i // 8 for i in range(40)],
    "colour": [["red", "blue"][i % 2] for i in range(40)],
    "unit": [1.0] * 40,
    "price": [["low", "high"][i % 3 == 0] for i in range(40)],
}


def test_every_treatment_is_told(tmp_path: Path) -> None:
    columns = TRAINING | {"price": [None, *TRAINING["price"][1:]]}
    data = load(write_csv(tmp_path / "t.csv", columns), target="price")
    assert data.n_samples == 39
    assert data.columns == ("size", "colour=blue", "colour=red")
    assert data.treatments == (
        "dropped 1 of 40 rows: target 'price' missing (an empty cell, NA, N/A, NaN, null, None or ?, "
        "which are no classes)",
        "dropped column 'id': a different whole number in every row, as in an identifier",
        "dropped column 'unit': constant",
        "column 'colour': text, replaced by 2 columns of 0 and 1",
        "column 'size': 1 of 39 values missing, replaced by "
        f"{np.median([v for v in TRAINING['size'][1:] if v is not None]):.6g}, "
        "the median of the training rows",
    )


def test_split_learns_medians_from_the_training_rows_alone(tmp_path: Path) -> None:
    data = load(write_csv(tmp_path / "t.csv", TRAINING), target="price")
    train, test = np.arange(10, 40), np.arange(10)
    part = data.split(train, test)
    sizes = [v for v in TRAINING["size"][10:] if isinstance(v, float)]
    assert part.X_test[3, 0] == np.median(sizes) != data.X[3, 0]
    np.testing.assert_array_equal(part.y_test, data.y[:10])
    np.testing.assert_array_equal(part.X_train, data.X[10:])
    mask = np.zeros(40, dtype=bool)
    mask[train] = True
    np.testing.assert_array_equal(data.split(mask, ~mask).X_test, part.X_test)


def test_new_data_are_treated_as_the_training_rows(tmp_path: Path) -> None:
    data = load(write_csv(tmp_path / "t.csv", TRAINING), target="price")
    preparation = Preparation.from_dict(json.loads(json.dumps(data.preparation.to_dict())))
    again = load_new(tmp_path / "t.csv", preparation)
    np.testing.assert_array_equal(again.X, data.X)
    np.testing.assert_array_equal(again.y, data.y)
    assert again.labelled.all()
    new: Columns = {
        "note": ["x", "y", "z"],
        "price": ["low", None, "middle"],
        "colour": ["green", "red", None],
        "size": [2.0, None, 4.0],
    }
    median = preparation.medians[0]
    shares = data.X[:, 1:].mean(axis=0)
    for path in (
        write_csv(tmp_path / "new.csv", new),
        write_npz(tmp_path / "new.npz", new),
        write_parquet(tmp_path / "new.parquet", new),
    ):
        rows = load_new(path, preparation)
        np.testing.assert_array_equal(rows.X, [[2, *shares], [median, 0, 1], [4, 0, 0]])
        np.testing.assert_array_equal(rows.y, [data.class_labels.index("low"), -1, -1])
        np.testing.assert_array_equal(rows.labelled, [True, False, True])
        told = "\n".join(rows.treatments)
        assert "ignored columns that the model does not use: 'note'" in told
        assert (
            "texts not seen in training, encoded by the shares of the training rows: 'green'"
            in told
        )
        assert "column 'size': 1 of 3 values missing" in told
        assert "target 'price' is missing in 1 of 3 rows" in told
        assert "1 rows have a class not seen in training ('middle')" in told


def test_new_data_without_target(tmp_path: Path) -> None:
    data = load(write_csv(tmp_path / "t.csv", TRAINING), target="price")
    bare: Columns = {"size": [2.0], "colour": ["red"]}
    rows = load_new(write_csv(tmp_path / "bare.csv", bare), data.preparation)
    np.testing.assert_array_equal(rows.X, [[2, 0, 1]])
    assert rows.y is None
    assert not rows.labelled.any()
    with pytest.raises(InvalidData, match=r"1 of 2 columns .* 'colour'"):
        load_new(write_csv(tmp_path / "less.csv", {"size": [2.0]}), data.preparation)


def test_new_data_in_regression(tmp_path: Path) -> None:
    columns: Columns = {"a": [i / 7 for i in range(20)], "y": [i / 3 for i in range(20)]}
    data = load(write_csv(tmp_path / "t.csv", columns))
    assert "column 'y' is the target, chosen by its name" in data.treatments
    new = write_csv(tmp_path / "new.csv", {"a": [1.0, 2.0], "y": [None, 5.0]})
    rows = load_new(new, data.preparation)
    np.testing.assert_array_equal(rows.y, [np.nan, 5])
    np.save(tmp_path / "X.npy", np.ones((3, 1)))
    with pytest.raises(InvalidData, match="'a'; columns of the data: 'x0'"):
        load_new(tmp_path / "X.npy", data.preparation)


def test_the_target_must_be_known(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "t.csv", TRAINING)
    with pytest.raises(
        InvalidData, match=r"is not known; allowed: .* columns \('id', .*--target COLUMN"
    ):
        load(path)
    with pytest.raises(InvalidData, match="Did you mean 'price'"):
        load(path, target="prize")
    with pytest.raises(InvalidData, match=r"'c' has fewer than two classes .* single row: 'no'"):
        load(write_csv(path, {"a": [1.0, 2.0, 3.0, 4.0], "c": ["no", *["yes"] * 3]}), target="c")


def test_keep_holds_in_a_split(tmp_path: Path) -> None:
    data = load(write_csv(tmp_path / "t.csv", TRAINING), target="price", keep=["id"])
    assert data.columns[0] == "id"
    part = data.split(np.arange(30), np.arange(30, 40))
    assert part.preparation.columns[0] == "id"
