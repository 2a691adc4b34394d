"""Preparation of training rows and of later rows in the same way."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from solvable.data import Preparation, Table, Target
from solvable.data.cells import first_odd_cell
from solvable.data.columns import (
    MEDIAN_ROWS,
    column_statistics,
    describe,
    describe_gaps,
    numbers_the_rows,
    refuse_infinite,
    text_reason,
)
from solvable.data.table import from_columns
from solvable.errors import InvalidData

RNG = np.random.default_rng(0)


def text(*values: str | None) -> np.ndarray:
    return np.array(values, dtype=object)


def mixed_table() -> Table:
    return from_columns(
        {
            "size": np.array([1.0, 2.0, np.nan, 10.0]),
            "colour": text("red", "blue", None, "red"),
            "unit": np.full(4, 7.0),
            "weight": np.array([0.5, 0.25, 0.5, 1.5]),
        }
    )


def test_numbers_then_ones_for_texts() -> None:
    preparation = Preparation.fit(mixed_table())
    assert preparation.columns == ("size", "weight", "colour=blue", "colour=red")
    np.testing.assert_array_equal(
        preparation.transform(mixed_table()),
        [[1, 0.5, 0, 1], [2, 0.25, 1, 0], [2, 0.5, 0, 0], [10, 1.5, 0, 1]],
    )
    assert preparation.treatments == (
        "dropped column 'unit': constant",
        "column 'colour': text, replaced by 2 columns of 0 and 1",
        "column 'size': 1 of 4 values missing, replaced by 2, the median of the training rows",
    )


def test_columns_are_told_together_where_they_are_many() -> None:
    assert describe([("a", "constant"), ("b", "constant")], [("c", ("x",))]) == (
        "dropped 2 columns 'a', 'b': constant",
        "column 'c': text, replaced by 1 column of 0 and 1",
    )
    (sentence,) = describe_gaps("abcdef", np.ones(6, dtype=int), 10, [1.0] * 6)
    assert sentence == (
        "6 columns ('a', 'b', 'c', 'd', 'e' and 1 more) have 6 missing values, replaced by the "
        "medians of the training rows"
    )


def test_a_cell_that_keeps_a_column_from_being_numbers_is_named() -> None:
    column = text("1", "2", "3 m", "4", None)
    assert first_odd_cell(column) == (2, "3 m")
    assert first_odd_cell(text("a", "b", "3")) is None
    reason = "text, although most cells are numbers: '3 m' in row 3 is not"
    assert text_reason(column) == reason


def test_later_rows_get_the_median_of_the_training_rows() -> None:
    preparation = Preparation.fit(mixed_table().rows(slice(0, 2)), varying=["unit"])
    later = preparation.transform(mixed_table().rows(slice(2, 4)))
    assert later[0, 0] == 1.5


def test_columns_are_matched_by_name_and_extra_ones_ignored() -> None:
    preparation = Preparation.fit(mixed_table())
    shuffled = mixed_table().select(["weight", "colour", "size", "unit"])
    extra = from_columns({"new": np.arange(4.0)} | {n: shuffled.column(n) for n in shuffled.order})
    np.testing.assert_array_equal(
        preparation.transform(extra), preparation.transform(mixed_table())
    )
    assert preparation.report(extra)[0] == "ignored columns that the model does not use: 'new'"
    without = mixed_table().without("unit")
    assert preparation.transform(without).shape == (4, 4)


def test_missing_columns_are_named() -> None:
    preparation = Preparation.fit(mixed_table())
    renamed = from_columns({"Size": np.arange(4.0), "colour": text(*"abcd")})
    with pytest.raises(
        InvalidData, match=r"2 of 3 columns .* 'size', 'weight'; .* Is 'Size' the same as 'size'\?"
    ):
        preparation.transform(renamed)


def test_unseen_texts_have_the_shares_of_the_training_rows() -> None:
    preparation = Preparation.fit(mixed_table())
    shares = preparation.transform(mixed_table())[:, 2:].mean(axis=0)
    later = from_columns({"size": np.ones(2), "weight": np.ones(2), "colour": text("green", "red")})
    np.testing.assert_array_equal(preparation.transform(later)[:, 2:], [shares, [0, 1]])
    assert "'green'" in preparation.report(later)[0]


def test_numbers_as_texts_and_texts_as_numbers() -> None:
    preparation = Preparation.fit(
        from_columns({"a": np.array([1.0, 2.5, 1.0, 4.0]), "grade": text("1", "1", "x", "x")})
    )
    # The only cell of the column looks like a number, but the column is text as in training.
    one = from_columns({"a": np.array([3.0]), "grade": np.array([1.0])})
    np.testing.assert_array_equal(preparation.transform(one), [[3, 1, 0]])
    blank = from_columns({"a": text(None), "grade": np.array([np.nan])})
    np.testing.assert_array_equal(preparation.transform(blank), [[1.75, 0, 0]])
    with pytest.raises(InvalidData, match="column 'a' contains text \\('b' in row 2\\)"):
        preparation.transform(from_columns({"a": text(None, "b"), "grade": text("1", "x")}))


def test_infinite_values_are_refused_with_their_row() -> None:
    table = from_columns({"a": np.array([1.0, 2.0, -np.inf]), "b": np.array([1.0, 2.0, 3.0])})
    with pytest.raises(InvalidData, match="'a' is infinite, first in row 3"):
        Preparation.fit(table)
    preparation = Preparation.fit(table.rows(slice(0, 2)))
    with pytest.raises(InvalidData, match="first in row 13"):
        preparation.transform(table, first_row=10)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            {"a": text("x", "x", "x"), "b": text(*"pqr")},
            "no column is usable .*'a': constant; 'b': a different text in every row",
        ),
        ({"a": np.ones(3), "b": np.full(3, np.nan)}, "no column is usable .*'a': constant"),
        ({"a": np.ones(3), "b": text(*"pqr")}, "no column is usable"),
        ({}, "there is no column other than the target"),
    ],
)
def test_nothing_to_learn_from(columns: dict[str, np.ndarray], message: str) -> None:
    with pytest.raises(InvalidData, match=message):
        Preparation.fit(from_columns(columns))


def test_identifiers_are_dropped_unless_kept() -> None:
    n = 60
    table = from_columns(
        {
            "key": RNG.permutation(n) + 1000.0,
            "length": RNG.standard_normal(n),
            "income": RNG.permutation(10**6)[:n].astype(float),
            "name": text(*(f"person{i}" for i in range(n))),
        }
    )
    preparation = Preparation.fit(table)
    assert preparation.numeric_names == ("length", "income")
    assert dict(preparation.dropped) == {
        "key": "a different whole number in every row, as in an identifier",
        "name": "a different text in every row, as in an identifier",
    }
    assert Preparation.fit(table, keep=["key"]).numeric_names == ("key", "length", "income")
    with pytest.raises(InvalidData, match="keep is 'kye'"):
        Preparation.fit(table, keep=["kye"])


def test_an_identifier_is_found_in_a_third_of_its_rows() -> None:
    # A preparation is fitted to training rows only, so a random part of 1..n must be detected too.
    identifier = np.arange(3000.0)
    part = RNG.permutation(identifier)[:1000]
    assert numbers_the_rows(identifier)
    assert numbers_the_rows(part)
    assert not numbers_the_rows(part + 0.5)
    assert not numbers_the_rows(np.append(part, part[0]))
    assert not numbers_the_rows(np.append(part, np.nan))
    assert not numbers_the_rows(np.arange(5.0))


def test_few_random_measurements_are_taken_for_an_identifier() -> None:
    # Among 100 draws from m whole numbers 4950 / m pairs are equal on average. A column of draws is
    # dropped only if no pair is equal although 7 or more are expected, with probability exp(-7).
    draws = RNG.integers(0, 700, size=(4000, 100)).astype(float)
    wrong = sum(numbers_the_rows(row) for row in draws)
    # Binomial with mean 4000 exp(-7.07) = 3.4 and standard deviation 1.8.
    assert wrong <= 3.4 + 5 * 1.8


def test_a_single_counting_column_is_data() -> None:
    table = from_columns({"x": np.arange(50.0)})
    assert Preparation.fit(table).columns == ("x",)
    assert numbers_the_rows(table.column("x"))


@pytest.mark.parametrize(
    ("column", "reason"),
    [
        (text(*["a", "b"] * 10), ""),
        (text(*["a", None] * 10), ""),
        (text(*["a"] * 9), "constant"),
        (text(None, None), "no value"),
        (text(*(f"t{i % 30}" for i in range(300))), "nearly every text occurs once"),
        (text(*"aabcde"), "5 distinct values in 6 rows"),
        (text(*(str(i) for i in range(50)), "12 m"), "'12 m' in row 51"),
        (text(*(f"t{i}" for i in range(40))), "a different text"),
    ],
)
def test_texts_that_become_columns(column: np.ndarray, reason: str) -> None:
    assert text_reason(column) == "" if reason == "" else reason in text_reason(column)


def test_constant_pixels_stay_in_the_picture() -> None:
    images = np.zeros((30, 4))
    images[:, 1] = RNG.random(30)
    images[:, 2] = np.arange(30)
    table = Table(images, tuple("abcd"))
    preparation = Preparation.fit(table, image_shape=(2, 2))
    assert preparation.columns == tuple("abcd")
    assert preparation.treatments == (
        "2 pixels are constant and were kept for the pictures of directions",
    )
    assert Preparation.fit(table).columns == ("b",)


def test_many_gaps_are_told_in_one_sentence() -> None:
    X = RNG.random((20, 8))
    X[3] = np.nan
    table = Table(X, tuple("abcdefgh"))
    assert [s.split(",")[0] for s in Preparation.fit(table).treatments] == ["8 columns ('a'"]
    assert "8 missing values" in Preparation.fit(table).report(table)[0]


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        (np.uint8, "float32"),
        (np.float16, "float32"),
        (np.float32, "float32"),
        (np.int64, "float64"),
        (np.float64, "float64"),
        (bool, "float32"),
    ],
)
def test_dtype_is_the_smallest_that_is_exact(dtype: Any, expected: str) -> None:
    X = np.array([[0, 1], [1, 1], [1, 0]]).astype(dtype)
    preparation = Preparation.fit(Table(X, ("a", "b")))
    prepared = preparation.transform(Table(X, ("a", "b")))
    assert prepared.dtype == expected == preparation.dtype
    np.testing.assert_array_equal(prepared, X)


def test_nothing_is_copied_if_nothing_is_to_be_done() -> None:
    X = RNG.random((50, 3))
    X.flags.writeable = False
    table = Table(X, ("a", "b", "c"))
    assert Preparation.fit(table).transform(table) is X


def test_gaps_are_filled_in_a_copy() -> None:
    X = RNG.random((50, 3)).astype(np.float32)
    X[7, 1] = np.nan
    X.flags.writeable = False
    table = Table(X, ("a", "b", "c"))
    prepared = Preparation.fit(table).transform(table)
    assert prepared.dtype == np.float32
    assert prepared[7, 1] == np.median(np.delete(X[:, 1], 7))


def test_what_overflows_float32_is_refused() -> None:
    preparation = Preparation.fit(Table(RNG.random((9, 2), dtype=np.float32), ("a", "b")))
    later = Table(np.array([[1.0, 2.0], [3.0, 1e300]]), ("a", "b"))
    with pytest.raises(InvalidData, match="'b' is infinite, first in row 2"):
        preparation.transform(later)


def test_statistics_equal_numpy_over_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("solvable.data.columns.BLOCK_ENTRIES", 40)
    X = RNG.standard_normal((57, 5))
    X[RNG.random(X.shape) < 0.2] = np.nan
    found = column_statistics(X)
    np.testing.assert_array_equal(found.n_missing, np.isnan(X).sum(axis=0))
    np.testing.assert_array_equal(found.low, np.nanmin(X, axis=0))
    np.testing.assert_array_equal(found.high, np.nanmax(X, axis=0))
    np.testing.assert_allclose(found.medians, np.nanmedian(X, axis=0))
    X[56, 4] = np.inf
    with pytest.raises(InvalidData, match="'e' is infinite, first in row 57"):
        refuse_infinite(X, "abcde")


def test_medians_of_long_columns_are_those_of_spaced_rows() -> None:
    X = RNG.standard_normal((3 * MEDIAN_ROWS, 1))
    # The median of m draws has standard error sqrt(pi / (2 m)).
    error = np.sqrt(np.pi / 2 / MEDIAN_ROWS)
    assert abs(column_statistics(X).medians[0] - np.median(X)) < 4 * error


CELLS = st.one_of(
    # Columns whose values are all below 1e-60 are refused.
    st.floats(-1e6, 1e6).map(lambda value: value if abs(value) > 1e-50 else 0.0),
    st.just(np.nan),
)
WORDS = st.sampled_from(["a", "b", "c", None])


@settings(deadline=None)
@given(
    X=arrays(np.float64, st.tuples(st.integers(2, 12), st.integers(1, 4)), elements=CELLS),
    words=st.lists(WORDS, min_size=12, max_size=12),
    order=st.randoms(use_true_random=False),
)
def test_invariances(X: np.ndarray, words: list[str | None], order: Any) -> None:
    columns = {f"x{i}": X[:, i] for i in range(X.shape[1])} | {"word": text(*words[: len(X)])}
    table = from_columns(columns)
    varies = any(len(np.unique(x[~np.isnan(x)])) > 1 for x in X.T)
    if not varies and text_reason(table.column("word")):
        with pytest.raises(InvalidData, match="no column is usable"):
            Preparation.fit(table)
        return
    preparation = Preparation.fit(table)
    prepared = preparation.transform(table)
    assert prepared.shape == (len(X), len(preparation.columns))
    assert np.isfinite(prepared).all()
    # Columns are matched by name, rows are independent, and JSON does not change the result.
    names = list(columns)
    order.shuffle(names)
    np.testing.assert_array_equal(preparation.transform(table.select(names)), prepared)
    rows = np.array(order.sample(range(len(X)), len(X)))
    np.testing.assert_array_equal(preparation.transform(table.rows(rows)), prepared[rows])
    restored = Preparation.from_dict(json.loads(json.dumps(preparation.to_dict())))
    assert restored == preparation
    np.testing.assert_array_equal(restored.transform(table), prepared)


def test_target_and_image_shape_travel() -> None:
    target = Target("y", "binary", ("no", "yes"))
    preparation = Preparation.fit(
        Table(RNG.random((9, 4)), tuple("abcd")), target=target, image_shape=(2, 2)
    )
    restored = Preparation.from_dict(json.loads(json.dumps(preparation.to_dict())))
    assert (restored.target, restored.image_shape) == (target, (2, 2))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 3}, "format 3; allowed: 1 or 2"),
        ({"medians": []}, "0 medians for 2 columns"),
        ({"medians": ["x", "y"]}, "damaged"),
        ({"dtype": "object"}, "damaged"),
        ({"categories": [["a"]]}, "damaged"),
        ({"numeric_names": None}, "damaged"),
        ({"target": {"name": "y"}}, "damaged"),
    ],
)
def test_damaged_dictionaries_are_refused(change: dict[str, Any], message: str) -> None:
    fields = Preparation.fit(Table(RNG.random((9, 2)), ("a", "b"))).to_dict()
    with pytest.raises(InvalidData, match=message):
        Preparation.from_dict(fields | change)
    del fields["medians"]
    with pytest.raises(InvalidData, match="damaged"):
        Preparation.from_dict(fields)
