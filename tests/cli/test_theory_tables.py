"""Predictions along a grid in the terminal: no line is wrapped and no number is missing."""

from __future__ import annotations

import json
import re

from rich.console import Console

from solvable.plots.numbers import format_number
from solvable.study.predictions import grid_tables


def blocks_of(printed):
    """Return the rows of each table of a grid as words; empty lines separate tables."""
    _, *blocks = printed.split("\n\n")
    return [[re.split(r"  +", line) for line in block.splitlines()] for block in blocks]


def agrees(turned, answers):
    """Check that tables with a column per point contain every number and word of the predictions."""
    numbers = {
        name: [one["prediction"].get(name) for one in answers]
        for name, value in answers[0]["prediction"].items()
        if not isinstance(value, list)
    }
    assert len(numbers) > 12
    for table in turned:
        assert [row[0] for row in table] == ["sample_ratio", "noise", *numbers]
    found = {row[0]: [] for row in turned[0]}
    for table in turned:
        for name, *cells in table:
            found[name] += cells
    for name in ("sample_ratio", "noise"):
        assert found[name] == [format_number(one["parameters"][name]) for one in answers]
    for name, values in numbers.items():
        assert found[name] == [format_number(value) for value in values]


WIDE = ("theory", "quadratic-network", "--set", "sample_ratio=0.4,0.5,0.6", "noise=0.5,1")


def test_a_wide_grid_has_a_row_per_quantity_and_folds_nothing(solvable):
    answers = json.loads(solvable(*WIDE, "--json").stdout)
    for width, shares in ((80, [3, 3]), (120, [6])):
        solvable.environment["COLUMNS"] = str(width)
        ended = solvable(*WIDE)
        assert (ended.returncode, ended.stderr) == (0, "")
        assert max(map(len, ended.stdout.splitlines())) <= width
        turned = [one for one in blocks_of(ended.stdout) if one[1][0] == "noise"]
        assert [len(one[0]) - 1 for one in turned] == shares
        agrees(turned, answers)


def test_lists_of_a_grid_are_whole_in_json_and_shortened_in_the_table(solvable):
    words = ("theory", "quadratic-network", "--set", "sample_ratio=0.1,0.2,0.5")
    answers = json.loads(solvable(*words, "--json").stdout)
    assert [len(one["prediction"]["eigenvalues"]) for one in answers] == [100] * 3
    solvable.environment["COLUMNS"] = "80"
    printed = solvable(*words).stdout
    assert max(map(len, printed.splitlines())) <= 80
    numbers, *lists = blocks_of(printed)
    assert numbers[0] == ["sample_ratio", "0.1", "0.2", "0.5"]
    # Values common to all points appear once, above the tables.
    assert "noise=0.5" in printed
    assert "noise" not in [row[0] for row in numbers]
    for name in ("spectral_phase", "finite_size_rank_fraction"):
        (row,) = [row for row in numbers if row[0] == name]
        assert row[1:] == [format_number(one["prediction"][name]) for one in answers]
    (table,) = [one for one in lists if one[0] == ["eigenvalues (first 8 of 100)"]]
    assert table[1] == ["sample_ratio", *"12345678"]
    for row, one in zip(table[2:], answers, strict=True):
        shown = [format_number(value, 3) for value in one["prediction"]["eigenvalues"][:8]]
        assert row == [str(one["parameters"]["sample_ratio"]), *shown]


def test_a_narrow_window_breaks_a_grid_into_tables(solvable):
    solvable.environment["COLUMNS"] = "20"
    ended = solvable("theory", "probe", "--set", "samples=10,40,160")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert max(map(len, ended.stdout.splitlines()[1:])) <= 20
    first, _, *spectra = blocks_of(ended.stdout)
    assert first == [["samples", "error"], ["10", "0.1"], ["40", "0.025"], ["160", "0.00625"]]
    # Only two of the three points fit next to each other.
    assert [one[-9] for one in spectra] == [["samples", "10", "40"], ["samples", "160"]]
    assert [one[-8] for one in spectra] == [["1", "2", "2"], ["1", "2"]]


def shown(points, width):
    """Return the rows of each table of a grid over n as words."""
    console = Console(width=width)
    found = []
    for table in grid_tables(["n"], points, width):
        with console.capture() as captured:
            console.print(table)
        found.append([line.split() for line in captured.get().splitlines()])
    return found


def test_lists_of_different_lengths_leave_gaps():
    points = [({"n": 1}, {"list": [0.5, 0.25]}), ({"n": 2}, {"list": [0.75]}), ({"n": 3}, {})]
    (upright,) = shown(points, 80)
    assert upright == [["list"], ["n", "1", "2"], ["1", "0.5", "0.25"], ["2", "0.75"], ["3"]]
    turned = shown(points, 8)
    assert [one[1] for one in turned] == [["n", "1"], ["n", "2"], ["n", "3"]]
    assert [one[2:] for one in turned] == [
        [["1", "0.5"], ["2", "0.25"]],
        [["1", "0.75"], ["2"]],
        [["1"], ["2"]],
    ]


def test_a_table_turns_only_when_its_window_is_a_column_too_narrow():
    points = [({"n": n}, {"phase": "bulk+spikes", "error": 0.5}) for n in (1, 20)]
    # Columns of 2, 11 and 5 characters, and two gaps of 2.
    assert shown(points, 22)[0][0] == ["n", "phase", "error"]
    turned = shown(points, 21)
    assert [one[0] for one in turned] == [["n", "1"], ["n", "20"]]
    assert turned[1][1:] == [["phase", "bulk+spikes"], ["error", "0.5"]]
