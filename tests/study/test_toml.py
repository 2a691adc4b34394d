from __future__ import annotations

import math
import tomllib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvable.errors import InvalidParameter
from solvable.study.toml import format_study, parse_study

HEADER = {"system": "toy", "version": "1", "preset": None, "replicates": 2, "seed": 0}

text = st.text(st.characters(exclude_categories=["Cs"]))  # TOML files cannot contain surrogates
scalar = st.one_of(
    st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), text
)


@given(st.dictionaries(text.filter(bool), st.lists(scalar | st.lists(scalar), min_size=1)))
@settings(max_examples=100, deadline=None)
def test_values_survive(grid):
    written = format_study(HEADER, grid)
    assert parse_study(written).grid == grid
    assert tomllib.loads(written)["grid"] == grid


def test_numbers_keep_every_bit():
    values = [0.1, 1 / 3, 5e-324, math.nextafter(1, 2), 1.7976931348623157e308, 1e22]
    read = parse_study(format_study(HEADER, {"x": values})).grid["x"]
    assert [one.hex() for one in read] == [one.hex() for one in values]


def test_header():
    read = parse_study(format_study(HEADER, {}))
    assert read.model_dump() == {**HEADER, "grid": {}, "points": []}


@pytest.mark.parametrize("value", [None, {"a": 1}, [None], object()])
def test_values_that_toml_cannot_hold(value):
    with pytest.raises(InvalidParameter, match=r"size takes the value .* cannot hold"):
        format_study(HEADER, {"size": [value]})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("system = ", "not valid TOML"),
        ("", "entry 'system': Field required"),
        ("system = 3", "entry 'system'"),
        ('system = "a"\nreplicates = "3"', "entry 'replicates'"),
        ('system = "a"\nreplicates = 2.0', "entry 'replicates'"),
        ('system = "a"\nsamples = 3', "entry 'samples'.*allowed entries: system, version"),
    ],
)
def test_bad_files(text, message):
    with pytest.raises(InvalidParameter, match=message) as caught:
        parse_study(text)
    assert "\n" not in str(caught.value)
