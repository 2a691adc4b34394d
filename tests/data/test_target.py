"""Kinds of target columns, their encoding, and refusals."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from solvable.data.target import Target, TargetValues, decide_target, finite_numbers, fit_target
from solvable.errors import InvalidData


def text(*values: str | None) -> np.ndarray:
    return np.array(values, dtype=object)


@pytest.mark.parametrize(
    ("column", "kind", "classes"),
    [
        (text("b", "a", "b", "a"), "binary", ("a", "b")),
        (text(*"abcabc"), "classification", ("a", "b", "c")),
        (np.array([0, 1, 1, 0]), "binary", ("0", "1")),
        (np.array([-1.0, 1.0, 1.0, -1.0]), "binary", ("-1", "1")),
        (np.array([0.5, 1.5, 0.5, 1.5]), "binary", ("0.5", "1.5")),
        (np.arange(100) % 10, "classification", tuple("0123456789")),
        (np.arange(30.0), "regression", ()),
        (np.arange(100) % 21, "regression", ()),
        (np.arange(100) / 3, "regression", ()),
        (np.array([1, 2, 3]), "regression", ()),
    ],
)
def test_kind_by_the_values(column: np.ndarray, kind: str, classes: tuple[str, ...]) -> None:
    target, notes = fit_target("y", column)
    assert (target.kind, target.classes) == (kind, classes)
    # A sentence reports that whole numbers are read as classes.
    assert bool(notes) == (kind == "classification" and column.dtype != object)


def test_classes_of_numbers_are_in_numerical_order() -> None:
    target, _ = fit_target("y", np.array([10, 9, 2, 10, 9, 2]), "classification")
    assert target.classes == ("2", "9", "10")
    np.testing.assert_array_equal(target.encode(np.array([10, 2, 9])), [2, 0, 1])


def test_task_overrides_the_values() -> None:
    column = np.arange(100) % 10
    assert fit_target("y", column, "regression")[0].kind == "regression"
    assert fit_target("y", np.array([1, 2, 1, 2]), "regression")[0].kind == "regression"
    assert fit_target("y", np.array([1, 2, 1, 2]), "binary")[0].kind == "binary"
    assert fit_target("y", np.array([1.5, 2.5, 3.5] * 2), "classification")[0].classes == (
        "1.5",
        "2.5",
        "3.5",
    )


@pytest.mark.parametrize(
    ("column", "task", "message"),
    [
        (np.ones(9), "auto", "'y' is 1 in all 9 rows"),
        (text("a", "a"), "auto", "'y' is a in all 2 rows"),
        (text("a"), "auto", "1 rows with a value"),
        (np.empty(0), "auto", "0 rows with a value"),
        (np.array([1.0, np.inf, 2.0]), "auto", "infinite in 1 rows, first in row 2"),
        (text(*"aabbc"), "auto", "takes 3 distinct values in 5 rows"),
        (np.array([0, 0, 1]), "auto", "'y' has fewer than two classes .* single row: '1'"),
        (text(*map(str, range(300))), "auto", "more than 100 distinct values"),
        (text(*"aaaaab"), "auto", "'y' has fewer than two classes .* single row: 'b'"),
        (np.array([0, 0, 0, 0, 1.5, 2]), "classification", "single row: '1.5', '2'"),
        (np.arange(300.0), "classification", "more than 100 distinct values .* task to regression"),
        (np.arange(9) % 3, "binary", "3 values; allowed with the task binary: 2"),
        (text("1", "2", "x"), "regression", r"holds 'x' \(and 0 more"),
        (np.arange(9.0), "regresion", "Did you mean 'regression'"),
    ],
)
def test_refused(column: np.ndarray, task: Any, message: str) -> None:
    with pytest.raises(InvalidData, match=message):
        fit_target("y", column, task)


@pytest.mark.parametrize(
    ("column", "classes", "note"),
    [
        (text(*"aaabbbc"), ("a", "b"), "1 row of class 'c', the only one of its class"),
        (text(*"aaabbbccd"), ("a", "b", "c"), "1 row of class 'd', the only one of its class"),
        (
            text(*"aaabbbbbcde"),
            ("a", "b"),
            "3 rows of classes 'c', 'd', 'e', each the only one of its class",
        ),
        (
            np.array([3.0] * 9 + [1.0] * 9 + [2.0, 7.0]),
            ("1", "3"),
            "2 rows of classes '2', '7', each the only one of its class",
        ),
    ],
)
def test_the_only_row_of_a_class_is_set_aside(
    column: np.ndarray, classes: tuple[str, ...], note: str
) -> None:
    target, notes = fit_target("y", column)
    assert target.classes == classes
    assert target.kind == ("binary" if len(classes) == 2 else "classification")
    assert notes[0] == f"set aside {note}"
    singles = [value for value in column if (column == value).sum() == 1]
    assert np.count_nonzero(target.encode(column) == -1) == len(singles)


def test_unseen_labels_have_no_code() -> None:
    words, _ = fit_target("y", text("a", "b", "a", "b"))
    np.testing.assert_array_equal(words.encode(text("b", "z", "a")), [1, -1, 0])
    numbers, _ = fit_target("y", np.array([0, 5, 0, 5]))
    np.testing.assert_array_equal(numbers.encode(np.array([5, 3, -1, 9, 0])), [1, -1, -1, -1, 0])
    # The same labels as text, and numbers where the classes are words
    np.testing.assert_array_equal(numbers.encode(text("5", "x")), [1, -1])
    np.testing.assert_array_equal(words.encode(np.array([1.0, 2.0])), [-1, -1])


def test_regression_refuses_text_only_where_it_is_none() -> None:
    target, _ = fit_target("y", np.array([1.5, 2.5, 4.0]))
    np.testing.assert_array_equal(target.encode(text("1.5", "3")), [1.5, 3])
    with pytest.raises(InvalidData, match="'x'"):
        target.encode(text("x"))
    with pytest.raises(InvalidData, match="infinite"):
        finite_numbers("y", np.array([-np.inf]))


LABELS = st.one_of(
    st.lists(st.integers(-50, 50), min_size=2, max_size=30),
    st.lists(st.floats(-1e9, 1e9), min_size=2, max_size=30),
    st.lists(st.text(min_size=1, max_size=3), min_size=2, max_size=30),
)


@given(LABELS)
def test_codes_decode_to_the_labels(labels: list[Any]) -> None:
    doubled = labels * 2
    textual = isinstance(labels[0], str)
    column = np.array(doubled, dtype=object if textual else None)
    # With every value doubled, no class has a single row and at most 30 values are distinct, so only
    # a constant is refused.
    assume(len(set(labels)) > 1)
    target, _ = fit_target("y", column, "classification")
    back = target.decode(target.encode(column))
    assert back.tolist() == doubled if textual else np.array_equal(back.astype(float), column)
    assert Target.from_dict(json.loads(json.dumps(target.to_dict()))) == target


@given(st.lists(st.integers(0, 130), min_size=2, max_size=200), st.integers(1, 199))
def test_parts_decide_like_the_whole(values: list[int], cut: int) -> None:
    column = np.array(values, dtype=np.float64)
    whole = TargetValues.of("y", column)
    merged = TargetValues.of("y", column[:cut]).merge(TargetValues.of("y", column[cut:]))
    assert merged.n_rows == whole.n_rows
    if len(set(values)) <= 100:
        assert merged.counts == whole.counts
    for task in ("auto", "classification", "regression"):
        assert outcome(whole, task) == outcome(merged, task)


def outcome(values: TargetValues, task: Any) -> object:
    try:
        return decide_target(values, task)
    except InvalidData as error:
        return str(error).split(" distinct values")[0]


def test_a_damaged_target_is_refused() -> None:
    with pytest.raises(InvalidData, match="kind of target is 'ranking'"):
        Target.from_dict({"name": "y", "kind": "ranking", "classes": []})
