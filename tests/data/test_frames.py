"""Data frames of pandas, polars and Arrow, and pairs X, y, give the table of their CSV file."""

from __future__ import annotations

import datetime
import io
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as arrow
import pytest

from solvable.data import load, load_new
from solvable.data.dataset import Dataset
from solvable.errors import InvalidData, InvalidParameter, SolvableError
from solvable.learn.learning import fingerprint_of
from solvable.learn.request import Request

pandas = pytest.importorskip("pandas")

ROWS = 40


@pytest.fixture
def frame() -> Any:
    rng = np.random.default_rng(0)
    gappy = rng.integers(0, 9, ROWS).astype(object)
    gappy[[3, 8]] = None
    truth = (rng.random(ROWS) < 0.5).astype(object)
    truth[5] = None
    return pandas.DataFrame(
        {
            "size": rng.standard_normal(ROWS),
            "count": rng.integers(0, 9, ROWS),
            "flag": rng.random(ROWS) < 0.5,
            "gappy": pandas.array(gappy, dtype="Int64"),
            "truth": pandas.array(truth, dtype="boolean"),
            "colour": rng.choice(["red", "blue", " green "], ROWS),
            "shape": pandas.Categorical(rng.choice(["round", "flat"], ROWS)),
            "seen": pandas.date_range("2024-01-01", periods=ROWS, freq="9h"),
            "born": pandas.date_range("2020-02-27", periods=ROWS),
            "label": rng.choice(["no", "yes"], ROWS),
        }
    )


def same(left: Dataset, right: Dataset) -> None:
    np.testing.assert_array_equal(left.X, right.X)
    np.testing.assert_array_equal(left.y, right.y)
    assert left.preparation == right.preparation
    # Equal digests of data and request mean equal fits.
    assert fingerprint_of(left, Request()) == fingerprint_of(right, Request())


def test_frames_give_the_answer_of_their_csv_file(frame: Any, tmp_path: Any) -> None:
    frame.to_csv(tmp_path / "frame.csv", index=False)
    expected = load(tmp_path / "frame.csv", target="label")
    polars = pytest.importorskip("polars")
    for other in (
        frame,
        frame.convert_dtypes(dtype_backend="pyarrow"),
        polars.from_pandas(frame),
        arrow.Table.from_pandas(frame),
        frame.astype({"colour": "category", "size": "Float64"}),
    ):
        same(load(other, target="label"), expected)
    same(load(frame.drop(columns="label"), frame["label"]), load(frame, target="label"))
    new = load_new(frame[::-1], expected.preparation)
    np.testing.assert_array_equal(new.X, expected.X[::-1])
    assert new.y is not None
    np.testing.assert_array_equal(new.y, expected.y[::-1])


def test_arrays_and_labels(frame: Any) -> None:
    X, y = frame[["size", "count"]].to_numpy(), frame["label"].to_numpy()
    data = load(X, y, target="risk")
    assert (data.columns, data.target, data.name) == (("x0", "x1"), "risk", "X, y")
    images = load(np.random.default_rng(0).random((ROWS, 3, 4)), y.tolist())
    assert (images.image_shape, images.target) == ((3, 4), "y")
    objects = load(frame[["size", "colour"]].to_numpy(object), frame[["count"]])
    assert objects.target == "count"
    assert objects.columns == ("x0", "x1=blue", "x1=green", "x1=red")


def test_categories_of_numbers_stay_categories_and_texts_of_numbers_do_not(frame: Any) -> None:
    frame["grade"] = pandas.Categorical(frame["count"])
    frame["code"] = frame["count"].astype(str)
    data = load(frame, target="label")
    assert {"code", "grade=1", "grade=2"} <= set(data.columns)
    assert any("'code': texts that are numbers" in note for note in data.treatments)
    assert load(frame, target="grade").kind == "classification"
    frame[""] = pandas.cut(frame["size"], 3)
    assert sum(name.startswith("unnamed 12=(") for name in load(frame, target="label").columns) == 3


def test_objects_are_read_as_from_a_csv_file() -> None:
    frame = pandas.DataFrame(
        {
            "mixed": [1, "x", None, 2.0] * 5,
            "money": [Decimal("1.5"), Decimal("NaN"), Decimal(2), None] * 5,
            "huge": [10**25 + i for i in range(20)],
            "day": [datetime.date(9999, 12, 1 + i) for i in range(20)],
            "lists": [[1]] * 20,
            3: range(0, 40, 2),
            "y": [0, 1] * 10,
        }
    )
    data = load(frame, target="y")
    assert set(data.table.texts) == {"mixed", "day"}
    assert data.table.column("mixed")[:4].tolist() == ["1", "x", None, "2"]
    assert data.table.column("day")[0] == "9999-12-01"
    np.testing.assert_array_equal(data.table.column("money")[:4], [1.5, np.nan, 2, np.nan])
    assert "3" in data.table
    assert "dropped column 'lists': it holds values of type list" in data.treatments


def test_float32_frames_stay_float32() -> None:
    frame = pandas.DataFrame(np.random.default_rng(0).random((20, 3), dtype=np.float32))
    assert load(frame, np.arange(20.0) ** 0.5).X.dtype == np.float32


BAD: dict[str, tuple[Any, type[SolvableError], str]] = {
    "rows": (lambda f: (f[:0],), InvalidData, "10 columns and no rows"),
    "names": (
        lambda f: (f.rename(columns={"size": "count"}),),
        InvalidData,
        "column name 'count' occurs 2 times",
    ),
    "lazy": (
        lambda f: (pytest.importorskip("polars").from_pandas(f[["size"]]).lazy(),),
        InvalidParameter,
        "LazyFrame, whose rows are not computed yet.*collect",
    ),
    "no target": (lambda f: (f[["size"]],), InvalidData, "target 'label' is not a column"),
    "no y": (lambda f: (f[["size"]].to_numpy(),), InvalidParameter, "data is X without y"),
    "dict": (lambda f: ({"a": [1]},), InvalidParameter, "data is a dict; allowed"),
    "ragged": (lambda f: ([[1], [1, 2]], [0, 1]), InvalidParameter, "cannot be read"),
    "short": (lambda f: (f[["size"]], [0, 1]), InvalidData, "y has 2 values, and X has 40 rows"),
    "wide": (lambda f: (f[["size"]], f[["flag", "count"]]), InvalidData, "y has 2 columns"),
    "order": (lambda f: (f[["size"]], f["label"][::-1]), InvalidData, "same index in another"),
    "leak": (lambda f: (f, f["label"]), InvalidData, "X has a column of this name"),
    "file": (lambda f: ("iris", f["label"]), InvalidParameter, "y is given with 'iris'"),
    "lists": (lambda f: (f[["size"]], [[1]] * 39 + [[1, 2]]), SolvableError, "y "),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_read_is_refused_in_one_line(frame: Any, case: str) -> None:
    make, kind, message = BAD[case]
    with pytest.raises(kind, match=message) as caught:
        load(*make(frame), target="label")
    assert "\n" not in str(caught.value)


def test_csv_text_is_not_taken_for_data() -> None:
    with pytest.raises(InvalidParameter, match="StringIO"):
        load(io.StringIO("a,b\n1,2\n"))
