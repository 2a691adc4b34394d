from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from solvable.errors import InvalidData
from solvable.forecast import LearningCurve


def test_replicates_are_gathered_by_size_in_any_order():
    curve = LearningCurve([200, 100, 200, 400, 100, 200], [0.2, 0.5, 0.1, 0.05, 0.3, 0.3])
    np.testing.assert_array_equal(curve.sizes, [100, 200, 400])
    np.testing.assert_array_equal(curve.counts, [2, 3, 1])
    np.testing.assert_allclose(curve.means, [0.4, 0.2, 0.05], rtol=1e-12)
    np.testing.assert_allclose(curve.variances[:2], [0.02, 0.01], rtol=1e-12)
    assert np.isnan(curve.variances[2])


def test_the_curve_is_a_copy_and_read_only():
    errors = np.array([0.3, 0.2])
    curve = LearningCurve([1, 2], errors)
    errors[0] = 9
    assert curve.errors[0] == pytest.approx(0.3)
    with pytest.raises(ValueError, match="read-only"):
        curve.errors[0] = 1


def test_up_to_keeps_the_smallest_sizes_and_their_names():
    curve = LearningCurve([4, 1, 2, 1], [0.1, 0.4, 0.3, 0.5], ("a", "a", "b", "b"))
    early = curve.up_to(2)
    np.testing.assert_array_equal(early.samples, [1, 2, 1])
    assert early.replicates == ("a", "b", "b")


@given(st.permutations(range(6)))
def test_the_order_of_the_rows_does_not_matter(order):
    samples, errors = np.array([1, 1, 2, 2, 4, 4]), np.array([0.5, 0.4, 0.3, 0.35, 0.2, 0.1])
    curve, mixed = LearningCurve(samples, errors), LearningCurve(samples[order], errors[order])
    np.testing.assert_allclose(mixed.means, curve.means, rtol=1e-14)
    np.testing.assert_allclose(mixed.variances, curve.variances, rtol=1e-12)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (([1, 2], [0.1]), ["(2,)", "(1,)", "one sample size per error"]),
        (([], []), ["(0,)"]),
        (([[1, 2]], [[0.1, 0.2]]), ["(1, 2)", "(m,)"]),
        (([0, 2], [0.1, 0.2]), ["0 at place 1 of 2", "above 0"]),
        (([1, -2], [0.1, 0.2]), ["-2 at place 2", "above 0"]),
        (([1, 2], [0.1, -0.2]), ["-0.2 at place 2", "at least 0", "not a score"]),
        (([1, 2], [0.1, np.nan]), ["nan at place 2", "finite"]),
        (([1, np.inf], [0.1, 0.2]), ["inf", "finite"]),
        (([1, 2], ["a", "b"]), ["errors cannot be read as numbers"]),
        (([1, 2], [0.1, 0.2], ("a",)), ["1 entries for 2 errors"]),
        (([1, 1], [0.1, 0.2], ("a", "a")), ["'a' has two errors at n = 1"]),
    ],
)
def test_rubbish_is_refused_with_what_was_seen(arguments, said):
    with pytest.raises(InvalidData) as caught:
        LearningCurve(*arguments)
    for part in said:
        assert part in str(caught.value)


@pytest.fixture
def write(tmp_path):
    def write(text: str | bytes):
        path = tmp_path / "curve.csv"
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    return write


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("n,error,replicate\n10,0.5,a\n20,0.25,a\n10,0.7,b\n20,0.35,b\n", ("a", "a", "b", "b")),
        ("Samples;NMSE;Seed\n10;0.5;a\n20;0.25;a\n10;0.7;b\n20;0.35;b\n", ("a", "a", "b", "b")),
        ("﻿n\terror\n10\t5e-1\n20\t.25\n\n10\t0.7\r\n20\t0.35", None),
        ("n,a,b\n10,0.5,0.7\n20,0.25,0.35\n", ("a", "b", "a", "b")),
        ("10,20\n0.5,0.25\n0.7,0.35\n", ("2", "3", "2", "3")),
        ("seed,1e1,20\na,0.5,0.25\nb,0.7,0.35\n", ("a", "b", "a", "b")),
        ('"n","error"\n"10","0.5"\n10,0.7\n20,0.25\n20,0.35\n', None),
    ],
)
def test_long_and_wide_files_hold_the_same_curve(write, text, names):
    curve = LearningCurve.from_csv(write(text))
    np.testing.assert_array_equal(curve.sizes, [10, 20])
    np.testing.assert_allclose(curve.means, [0.6, 0.3], rtol=1e-14)
    assert curve.replicates == names


def test_an_empty_cell_of_a_wide_file_is_a_replicate_that_was_not_run(write):
    curve = LearningCurve.from_csv(write("n,a,b\n10,0.5,0.7\n20,0.25,\n"))
    np.testing.assert_array_equal(curve.counts, [2, 1])


def test_columns_can_be_named(write):
    path = write("rows,depth,test mse,train mse\n10,3,0.5,0.1\n20,3,0.3,0.2\n")
    curve = LearningCurve.from_csv(path, samples="rows", error="Test MSE")
    np.testing.assert_allclose(curve.errors, [0.5, 0.3])


RUBBISH = [
    ("", ["is empty"]),
    ("  \n\n", ["is empty"]),
    ('"', ["is empty"]),
    ("n,error\n1," + "9" * 200_000, ["not CSV"]),
    ("n,error\n", ["0 rows"]),
    ("n,error\n10,abc\n", ["line 2, column 'error'", "'abc' is not a number"]),
    ("n,error\n10,\n", ["line 2", "the cell is empty"]),
    ("n,error\n10,nan\n", ["line 2", "'nan'", "at least 0"]),
    ("n,error\n10,inf\n", ["'inf'"]),
    ("n,error\n10,0.5\n-20,0.4\n", ["line 3, column 'n'", "'-20'", "above 0"]),
    ("n,error\n0,0.5\n", ["'0'", "above 0"]),
    ("n,error\n10,-0.5\n", ["'-0.5'", "at least 0"]),
    ("n,error\n1_000,0.5\n", ["'1_000' is not a number"]),
    ("n;error\n10;0,5\n", ["'0,5' is not a number", "decimal point"]),
    ("n,error\n10,0,5\n", ["line 2", "3 cells, but the header has 2"]),
    ("n,error,error\n10,0.5,0.6\n", ["two columns are named 'error'"]),
    ("n,N,error\n10,10,0.5\n", ["two columns are named 'n'"]),
    ("n,samples,error\n10,10,0.5\n", ["'n', 'samples'", "allowed: one"]),
    ("n,error,mse\n10,0.5,0.6\n", ["'error', 'mse'", "allowed: one"]),
    ("n,,error\n10,1,0.5\n", ["column 2 has no name"]),
    ("x,y\n1,2\n", ["no column of sample sizes", "'x', 'y'"]),
    ("n,replicate\n1,2\n", ["no column of errors"]),
    ("n\n1\n", ["no column of errors"]),
    ("n,error,depth\n10,0.5,3\n", ["'depth'", "are ambiguous"]),
    ("n,error,replicate\n10,0.5,a\n10,0.6,a\n", ["'a' has two errors at n = 10"]),
    ("10,20\nx,0.25\n", ["line 2, column '10'", "'x' is not a number"]),
    ("-10,20\n1,0.25\n", ["'-10'", "above 0"]),
    ("10,20\n,\n1,2", None),
    ("n,a,b\n10,,\n20,,\n", ["no errors below the header"]),
    (b"\xff\xfe\x00n", ["not UTF-8 text"]),
    (b"n,error\n1,\x00\n", ["NUL"]),
]


@pytest.mark.parametrize(("text", "said"), RUBBISH)
def test_rubbish_in_a_file_is_one_clear_error(write, text, said):
    path = write(text)
    if said is None:
        assert LearningCurve.from_csv(path).counts.tolist() == [1, 1]
        return
    with pytest.raises(InvalidData) as caught:
        LearningCurve.from_csv(path)
    for part in said:
        assert part in str(caught.value)


def test_a_missing_file_and_a_directory_are_clear_errors(tmp_path):
    with pytest.raises(InvalidData, match="no such file"):
        LearningCurve.from_csv(tmp_path / "none.csv")
    with pytest.raises(InvalidData, match="cannot be read"):
        LearningCurve.from_csv(tmp_path)
    (tmp_path / "c.csv").write_text("n,error\n1,2\n")
    with pytest.raises(InvalidData, match="no column 'e'; allowed: 'n', 'error'"):
        LearningCurve.from_csv(tmp_path / "c.csv", error="e")


@given(st.binary(max_size=60) | st.text("n,error;\t\n\r\"'0123456789.-e \u2028", max_size=60))
def test_no_file_causes_a_traceback(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "any.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    try:
        curve = LearningCurve.from_csv(path)
    except InvalidData:
        return
    assert curve.samples.size >= 1
