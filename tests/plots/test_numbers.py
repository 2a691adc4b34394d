from __future__ import annotations

import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from solvable.plots.numbers import format_duration, format_number, format_with_error

SUPERSCRIPTS = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
finite = st.floats(min_value=-1e200, max_value=1e200).filter(lambda x: x == 0 or abs(x) > 1e-200)


def read(text: str) -> float:
    """Return the number that a text shows."""
    number, _, power = text.replace("−", "-").partition(" × 10")
    return (
        float(number) * 10.0 ** int(power.translate(SUPERSCRIPTS) or 0) if power else float(number)
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (-0.0, "0"),
        (1.0, "1"),
        (-3, "−3"),
        (999999, "999999"),
        (1e6, "1 × 10⁶"),
        (123456.7, "123457"),
        (0.00012345, "0.0001234"),
        (0.000012345, "1.234 × 10⁻⁵"),
        (9999.6, "10000"),
        (0.99996, "1"),
        (math.pi, "3.142"),
        (float("inf"), "∞"),
        (-float("inf"), "−∞"),
        (float("nan"), "–"),
        (None, "–"),
    ],
)
def test_numbers(value: float | None, text: str) -> None:
    assert format_number(value) == text


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (0.93127, 0.0123, "0.931 ± 0.012"),
        (0.93127, 0.0996, "0.93 ± 0.10"),
        (-0.51, 0.0123, "−0.510 ± 0.012"),
        (410950.0, 1234.0, "411000 ± 1200"),
        (1.2345e8, 2.1e6, "(1.234 ± 0.021) × 10⁸"),
        (0.0, 0.01, "0.000 ± 0.010"),
        (-1e-9, 0.01, "0.000 ± 0.010"),
        (0.001, 5.0, "0.0 ± 5.0"),
        (0.5, 0.0, "0.5 ± 0"),
        (0.0307200412108988, 1.2e-19, "0.03072 ± 0"),
        (0.5, float("inf"), "0.5 ± ∞"),
        (0.5, float("nan"), "0.5"),
        (0.5, None, "0.5"),
        (None, 0.1, "–"),
        (float("nan"), 0.1, "–"),
    ],
)
def test_values_with_errors(value: float | None, error: float | None, text: str) -> None:
    assert format_with_error(value, error) == text


@given(finite)
def test_four_digits_are_kept(value: float) -> None:
    assert read(format_number(value)) == pytest.approx(value, rel=5.1e-4, abs=0)


@given(finite, st.floats(1e-150, 1e150))
def test_value_and_error_are_rounded_alike(value: float, error: float) -> None:
    text = format_with_error(value, error)
    inner, _, power = text.replace("−", "-").removeprefix("(").partition(")")
    shown_value, shown_error = inner.split(" ± ")
    if error <= np.finfo(float).eps * abs(value):
        assert shown_error == "0"
        return
    if " × " in inner:
        # The error is near the precision of a double.
        assert abs(value) / error > 1e12
        return
    scale = 10.0 ** int(power.removeprefix(" × 10").translate(SUPERSCRIPTS) or 0)
    # The error has two digits: rounding changes it by at most 5 %, at 1.05 and 9.95.
    assert float(shown_error) * scale == pytest.approx(error, rel=0.051)
    assert float(shown_value) * scale == pytest.approx(value, rel=1e-12, abs=0.051 * error)
    if "." in shown_error:
        decimals = [len(one.partition(".")[2]) for one in (shown_value, shown_error)]
        assert decimals[0] == decimals[1]


@given(finite, st.floats(0, 1e150))
def test_no_minus_stands_before_zero(value: float, error: float) -> None:
    assert not re.search(r"−0(\.0*)?( |\)|$)", format_with_error(value, error))


@pytest.mark.parametrize("word", ["bulk+spikes", "VIa", "nan", "-3"])
def test_words_stay_as_they_are(word: str) -> None:
    assert format_number(word) == word


def test_durations_are_in_the_unit_that_a_reader_wants():
    assert [format_duration(seconds) for seconds in (8.2, 59.6, 125, 12_000)] == [
        "8 s",
        "1 min 00 s",
        "2 min 05 s",
        "3 h 20 min",
    ]
