"""Tables, their parts and the choice of a target."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from solvable.data import Table
from solvable.data.array_files import load_npy
from solvable.data.raw_data import (
    PART_ROWS,
    RawData,
    Stretch,
    TablePart,
    array_parts,
    choose_target,
    stretches,
    target_of,
    typed_column,
)
from solvable.data.readers import join, read_raw
from solvable.data.table import (
    as_text,
    from_columns,
    missing_mask,
    number_text,
    stack_rows,
    unknown_column,
)
from solvable.errors import InvalidData
from solvable.plots.words import quoted_names

WORDS = np.array(["red", None, "blue"], dtype=object)
TABLE = Table(np.arange(6.0).reshape(3, 2), ("a", "b"), {"w": WORDS}, ("a", "w", "b"))


def test_columns_by_name() -> None:
    assert TABLE.n_rows == 3
    assert "w" in TABLE
    assert "c" not in TABLE
    np.testing.assert_array_equal(TABLE.column("b"), [1, 3, 5])
    assert TABLE.column("w") is WORDS
    with pytest.raises(InvalidData, match="column 'c' is not a column; allowed: 'a', 'w', 'b'"):
        TABLE.column("c")


def test_selection_and_removal() -> None:
    some = TABLE.select(["b", "w"])
    assert some.order == ("b", "w")
    np.testing.assert_array_equal(some.numeric, [[1], [3], [5]])
    assert TABLE.without("w").order == ("a", "b")
    assert TABLE.without("w").numeric is TABLE.numeric
    rest = TABLE.without("a")
    assert rest.order == ("w", "b")
    np.testing.assert_array_equal(rest.column("b"), TABLE.column("b"))


def test_slices_are_views_and_masks_choose() -> None:
    assert np.shares_memory(TABLE.rows(slice(1, 3)).numeric, TABLE.numeric)
    chosen = TABLE.rows(np.array([True, False, True]))
    assert chosen.column("w").tolist() == ["red", "blue"]
    assert TABLE.rows(np.array([2, 0])).column("a").tolist() == [4, 0]


def test_columns_must_agree() -> None:
    with pytest.raises(InvalidData, match=r"columns have \[2, 3\] rows"):
        Table(np.zeros((3, 1)), ("a",), {"w": WORDS[:2]})
    with pytest.raises(InvalidData, match="'a' occurs 2 times; allowed: each name once"):
        Table(np.zeros((3, 2)), ("a", "a"))
    with pytest.raises(InvalidData, match=r"'a' occurs 3 times \(also 'b'\)"):
        Table(np.zeros((3, 5)), tuple("aabba"))
    with pytest.raises(InvalidData, match=r"'b' has shape \(2,\); allowed: 3 rows"):
        from_columns({"a": np.zeros(3), "b": np.zeros(2)})


def test_stacked_rows_are_matched_by_name() -> None:
    other = TABLE.select(["b", "w", "a"])
    both = stack_rows([TABLE, other])
    assert both.order == TABLE.order
    np.testing.assert_array_equal(both.numeric, np.vstack([TABLE.numeric, TABLE.numeric]))
    assert both.column("w").tolist() == WORDS.tolist() * 2
    assert stack_rows([TABLE]) is TABLE
    with pytest.raises(InvalidData, match="different columns: 'w' is missing in some"):
        stack_rows([TABLE, TABLE.without("w")])


def test_a_column_that_is_text_in_one_part_is_text_in_all() -> None:
    numbers = from_columns({"a": np.array([1.0, np.nan, 0.5])})
    words = from_columns({"a": np.array(["x", None], dtype=object)})
    for tables in ([numbers, words], [words, numbers]):
        stacked = stack_rows(tables)
        assert stacked.numeric_names == ()
        assert sorted(map(str, stacked.column("a"))) == ["0.5", "1", "None", "None", "x"]


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_text_of_a_number_reads_back(value: float) -> None:
    assert float(number_text(value)) == value
    assert as_text(np.array([value]))[0] == number_text(value)


def test_missing() -> None:
    np.testing.assert_array_equal(missing_mask(WORDS), [False, True, False])
    np.testing.assert_array_equal(missing_mask(np.array([1.0, np.nan])), [False, True])
    np.testing.assert_array_equal(missing_mask(np.array([1, 2])), [False, False])


def test_sentences() -> None:
    assert quoted_names(["a"]) == "'a'"
    assert quoted_names("abcdef") == "'a', 'b', 'c', 'd', 'e' and 1 more"
    assert "Did you mean 'Price'" in unknown_column("target", "PRICE", ["Price", "size"])
    assert "Did you mean" not in unknown_column("target", "q", ["Price", "size"])


@given(n=st.integers(1, 3 * PART_ROWS))
def test_stretches_cover_all_rows(n: int) -> None:
    parts = stretches(TablePart(Table(np.zeros((n, 1)), ("a",)), np.zeros(n)))
    assert sum(part.n_rows for part in parts) == n
    assert all(0 < part.n_rows <= PART_ROWS for part in parts)
    spans = [part.span for part in parts if isinstance(part, Stretch)]
    assert all(left.stop == right.start for left, right in pairwise(spans))


def test_stretches_of_one_array_join_without_a_copy() -> None:
    X = np.arange(2.0 * PART_ROWS + 20).reshape(-1, 2)
    parts, _ = array_parts(X, X[:, 0])
    assert len(parts) == 2
    table, values = join(RawData(parts, "y"))
    assert np.shares_memory(table.numeric, X)
    assert values is not None
    assert np.shares_memory(values, X)
    np.testing.assert_array_equal(target_of(parts[1]), X[PART_ROWS:, 0])
    np.testing.assert_array_equal(parts[1].read(["x1"])[0].numeric[:, 0], X[PART_ROWS:, 1])
    assert parts[1].columns == ("x0", "x1")
    # Parts in another order, or of several arrays, have no common whole.
    assert RawData((parts[0], TablePart(table)), "y").whole is None


def test_parts_with_text_in_one_join_as_text() -> None:
    raw = RawData(
        (
            TablePart(from_columns({"a": np.ones(2)}), np.array([1.0, 2.0])),
            TablePart(from_columns({"a": np.zeros(1)}), np.array(["x"], dtype=object)),
        ),
        "y",
    )
    table, values = join(raw)
    assert table.n_rows == 3
    assert values is not None
    assert values.tolist() == ["1", "2", "x"]
    bare = RawData(tuple(TablePart(part.table) for part in raw.parts), "")  # type: ignore[attr-defined]
    assert join(bare)[1] is None


def test_typed_columns() -> None:
    assert typed_column(np.array([b"x ", b"NA"]), "c").tolist() == ["x", None]
    assert typed_column(np.array([True]), "c").dtype == bool
    for column in (np.array([1j]), np.array(["2020"], "M8[Y]"), np.array([object()])):
        with pytest.raises(InvalidData, match="column 'c' has entries of type"):
            typed_column(column, "c")


@pytest.mark.parametrize("names", [["a", "y"], ["Y", "a"], ["a", "Target"], ["class", "a"]])
def test_a_target_by_its_usual_name(names: list[str]) -> None:
    found, notes = choose_target(names, None, required=True, where="t")
    assert found != "a"
    assert "by its name" in notes[0]
    assert choose_target(names, None, required=False, where="t") == ("", ())


def test_a_target_that_cannot_be_told() -> None:
    for names in (["a", "b"], ["y", "label"]):
        with pytest.raises(InvalidData, match="target of t is not known"):
            choose_target(names, None, required=True, where="t")
    assert choose_target(["a"], "z", required=False, where="t") == ("", ())
    with pytest.raises(InvalidData, match="target 'z' is not a column"):
        choose_target(["a"], "z", required=True, where="t")


def test_an_empty_array_on_disk(tmp_path: Path) -> None:
    np.save(tmp_path / "X.npy", np.zeros((0, 3)))
    with pytest.raises(InvalidData, match="at least one row"):
        read_raw(tmp_path / "X.npy", required=False)
    assert load_npy(tmp_path / "X.npy", mapped=False).shape == (0, 3)
