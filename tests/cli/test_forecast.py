from __future__ import annotations

import json

import numpy as np
import pytest

from solvable.arrays import random_stream

SIZES = np.array([100, 200, 400, 800, 1600])


@pytest.fixture
def curve(tmp_path):
    rng = random_stream("cli forecast", 0)
    rows = [
        f"{n},{(0.05 + 2 * n**-0.6) * (1 + 0.02 * rng.standard_normal()):.6f},{seed}"
        for n in SIZES
        for seed in range(4)
    ]
    (tmp_path / "curve.csv").write_text("\n".join(["n,error,seed", *rows]) + "\n")
    return "curve.csv"


def test_the_tables_and_the_verdict(call, curve):
    status, printed, error = call("forecast", curve)
    assert (status, error) == (0, "")
    rows = [line.split() for line in printed.splitlines()]
    assert ["n", "error", "lower", "upper"] in rows
    (two,) = [row for row in rows if row[:1] == ["3200"]]
    mean, lower, upper = map(float, two[1:4])
    assert lower < 0.05 + 2 * 3200**-0.6 < upper
    assert lower < mean < upper
    assert any(row[:1] == ["6400"] for row in rows)
    assert "the mean error is predicted to be" in printed
    assert "exponent" not in printed
    assert "The data do not decide" in printed or "better than" in printed
    assert max(map(len, printed.splitlines())) <= 100
    status, detailed, _ = call("forecast", curve, "--details")
    assert status == 0
    assert "exponent" in detailed
    assert "first_threshold" in detailed


def test_json_has_what_is_asked_for(call, curve):
    status, printed, _ = call(
        "forecast", curve, "--at", "5e3", "1e4", "--factor", "2", "--confidence", ".5",
        "--of", "measurement", "--json",
    )  # fmt: skip
    assert status == 0
    told = json.loads(printed)
    assert [one["samples"] for one in told["predictions"]] == pytest.approx(
        [3200.0, 5000.0, 10_000.0]
    )
    assert told["confidence"] == pytest.approx(0.5)
    assert (told["of"], told["files"]) == ("measurement", [])
    assert told["scores"].keys() == {"power law", "cascade"}


def test_output_writes_numbers_and_figure(call, curve, tmp_path):
    status, printed, _ = call("forecast", curve, "--output", "out")
    assert status == 0
    assert printed.splitlines()[-3:] == [
        "out/forecast.json", "out/forecast.svg", "out/forecast.pdf",
    ]  # fmt: skip
    told = json.loads((tmp_path / "out" / "forecast.json").read_text())
    assert len(told["predictions"]) == 2
    drawn = (tmp_path / "out" / "forecast.svg").read_text()
    assert drawn.startswith("<?xml")
    # The command is deterministic.
    assert call("forecast", curve, "--output", "out") == (0, printed, "")
    assert json.loads((tmp_path / "out" / "forecast.json").read_text()) == told
    assert (tmp_path / "out" / "forecast.svg").read_text() == drawn


def test_the_figure_shows_what_was_measured_and_both_ends(curve, tmp_path):
    from solvable.forecast import LearningCurve, forecast
    from solvable.forecast.view import forecast_figure
    from solvable.plots.recording_backend import record

    found = forecast(LearningCurve.from_csv(tmp_path / curve), resamples=100, band_points=8)
    figure = forecast_figure(found, "curve")
    middle, ends, points = figure.series
    np.testing.assert_array_equal(points.x, SIZES)
    assert len(ends.x) == 2 * len(middle.x) + 1
    assert np.isnan(ends.y[8])
    assert (np.array(ends.y[:8]) < middle.y).all()
    assert (np.array(middle.y) < ends.y[9:]).all()
    assert figure.y_scale == "log"
    assert record(figure)


REFUSED = [
    ("", ["is empty"]),
    ("hello", ["rows below the header"]),
    ("n,error\n1,x\n", ["line 2, column 'error'", "'x' is not a number"]),
    ("n,error\n-1,0.5\n", ["'-1'", "above 0"]),
    ("n,error\n1,nan\n", ["'nan'"]),
    ("n,error\n1,0.5\n", ["refused", "1 distinct sample size"]),
    ("n,error,error\n1,0.5,1\n", ["two columns are named 'error'"]),
    ("n,error\n1,.1\n2,.2\n4,.3\n8,.4\n", ["refused", "the error rises"]),
    ("n,error\n1,.5\n2,.5\n4,.5\n8,.5\n", ["refused", "no fall"]),
]


@pytest.mark.parametrize(("text", "said"), REFUSED)
@pytest.mark.parametrize("json_too", [False, True])
def test_rubbish_is_one_line_and_exits_with_2(call, tmp_path, text, said, json_too):
    (tmp_path / "bad.csv").write_text(text)
    status, printed, error = call("forecast", "bad.csv", *(["--json"] if json_too else []))
    assert (status, printed) == (2, "")
    assert error.startswith("solvable: bad.csv")
    assert len(error.splitlines()) == 1
    for part in said:
        assert part in error


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "forecast needs CURVE"),
        (["none.csv"], "none.csv: no such file"),
        (["curve.csv", "--at", "0"], "at holds 0"),
        (["curve.csv", "--at", "many"], "--at"),
        (["curve.csv", "--factor", "-1"], "factor"),
        (["curve.csv", "--confidence", "2"], "confidence is 2"),
        (["curve.csv", "--of", "median"], "--of"),
        (["curve.csv", "--seed", "-1"], "seed is -1"),
        (["curve.csv", "--output", "curve.csv"], "'curve.csv', a file"),
    ],
)
def test_bad_words_are_one_line_and_exit_with_2(call, curve, words, said):
    status, printed, error = call("forecast", *words)
    assert (status, printed) == (2, "")
    assert said in error
    assert len(error.splitlines()) == 1


def test_help_teaches_by_example(call):
    status, printed, _ = call("forecast", "--help")
    assert status == 0
    assert "solvable forecast curve.csv" in printed
