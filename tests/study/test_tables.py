from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from solvable.plots.numbers import format_with_error
from solvable.study.tables import (
    LONGEST_LIST,
    MetricTable,
    counts_line,
    format_value,
    long_metrics,
    metric_tables,
    raw_rows,
    raw_table,
    varying_parameters,
    verdict_rows,
)
from solvable.study.tables import verdict_summary as summary
from solvable.systems.base import Claim, Finding, NotTestable, Point, Verdict

NAN = float("nan")


def table(tables: list[MetricTable], name: str) -> MetricTable:
    return next(one for one in tables if one.name == name)


def test_verdicts_as_text(verdicts: list[Verdict]) -> None:
    holds, fails, untestable = verdict_rows(verdicts)
    assert holds.measured == "0.0131 ± 0.0042"
    assert (holds.expected, holds.tolerance, holds.replicates) == ("0", "± 0.05", "3")
    assert (fails.status, fails.expected, fails.replicates) == ("fails", "−0.375", "–")
    assert untestable.reason == "add --set dimension=30"
    assert {untestable.measured, untestable.expected, untestable.tolerance} == {"–"}


@pytest.mark.parametrize(
    ("kind", "expected", "tolerance"),
    [
        ("equal", "0.5", "± 0.1"),
        ("at least", "at least 0.5", "− 0.1"),
        ("at most", "at most 0.5", "+ 0.1"),
    ],
)
def test_a_one_sided_claim_says_so(kind: str, expected: str, tolerance: str) -> None:
    finding = Finding(0.7, 0.5, 0.1, kind=kind)  # type: ignore[arg-type]
    claim = Claim("c", "It is so.", "derived", "A reason.", lambda points: finding)
    row = verdict_rows([claim.verdict([])])[0]
    assert (row.expected, row.tolerance) == (expected, tolerance)
    # The printed rule must be the rule of the verdict.
    assert row.status == ("fails" if kind in ("equal", "at most") else "holds")


def test_counts_name_every_status(verdicts: list[Verdict]) -> None:
    assert summary(verdicts) == {
        "holds": 1, "holds weakly": 0, "fails": 1, "not testable": 1, "error": 0,
    }  # fmt: skip
    assert set(summary([]).values()) == {0}


def test_a_claim_that_cannot_be_tested_gives_its_reason() -> None:
    claim = Claim("c", "It is so.", "derived", "", lambda points: NotTestable("one n only"))
    assert verdict_rows([claim.verdict([])])[0].reason == "one n only"


def test_only_what_varies_names_a_row(points: list[Point]) -> None:
    assert varying_parameters(points) == ["samples"]
    assert varying_parameters(points[:1]) == []
    assert varying_parameters([]) == []
    assert [row["samples"] for row in table(metric_tables(points), "").settings][:2] == [
        "1500",
        "4000",
    ]


def test_a_parameter_that_some_points_lack_varies() -> None:
    apart = [Point({"d": 1}, [], {}), Point({"d": 1, "q": 2}, [], {})]
    assert varying_parameters(apart) == ["q"]


def test_cells_hold_mean_standard_error_and_prediction(points: list[Point]) -> None:
    numbers = table(metric_tables(points), "")
    column = numbers.columns.index("normalised_mse")
    for point, cells in zip(points, numbers.cells, strict=True):
        mean, error = point.mean("normalised_mse"), point.standard_error("normalised_mse")
        assert cells[column].measured == format_with_error(float(mean), float(error))
        assert cells[column].predicted == "0.5"
    assert numbers.replicates == ["3"] * len(points)


def test_measured_metrics_come_before_what_only_theory_knows(points: list[Point]) -> None:
    assert table(metric_tables(points), "").columns == ("normalised_mse", "threshold_samples")
    cells = table(metric_tables(points), "").cells[0]
    assert (cells[1].measured, cells[1].predicted) == ("–", "2000")


def test_a_list_is_a_table_of_its_own(points: list[Point]) -> None:
    overlaps = table(metric_tables(points), "squared_overlap")
    assert overlaps.columns == ("1", "2", "3")
    mean, error = points[2].mean("squared_overlap"), points[2].standard_error("squared_overlap")
    assert overlaps.cells[2][1].measured == format_with_error(mean[1], error[1])
    # A prediction of None.
    assert overlaps.cells[2][2].predicted == "–"


def test_long_lists_are_counted_not_shown(points: list[Point]) -> None:
    assert long_metrics(points) == {"spectrum": 40}
    assert "spectrum" not in [one.name for one in metric_tables(points)]
    full = [Point({}, [{"a": [1.0] * LONGEST_LIST}], {})]
    assert long_metrics(full) == {}
    assert len(metric_tables(full)[0].columns) == LONGEST_LIST


def test_what_was_not_measured_is_left_out_of_the_mean() -> None:
    metrics = [{"a": 1.0, "b": None}, {"a": None, "b": None}, {"a": 3.0, "b": NAN}, {}]
    cells = metric_tables([Point({}, metrics, {"a": None})])[0].cells[0]
    # Standard error of the mean of 1 and 3: sqrt(2) / sqrt(2) = 1.
    assert [cell.measured for cell in cells] == ["2.0 ± 1.0", "–"]


def test_lists_of_unequal_length_and_missing_lists_are_filled_with_dashes() -> None:
    metrics = [{"a": [1.0, 2.0]}, {"a": [3.0]}, {"a": None}]
    shown = metric_tables([Point({}, metrics, {}), Point({}, [{}], {"a": [0.5]})])[0]
    assert shown.columns == ("1", "2")
    assert [cell.measured for cell in shown.cells[0]] == ["2.0 ± 1.0", "2"]
    assert [cell.measured for cell in shown.cells[1]] == ["–", "–"]
    assert [cell.predicted for cell in shown.cells[1]] == ["0.5", "–"]


def test_words_are_counted_where_numbers_have_a_mean() -> None:
    metrics = [
        {"phase": "bulk", "error": 1.0},
        {"phase": "spikes", "error": 3.0},
        {"phase": "spikes", "error": None},
        {"phase": None, "error": "diverged"},
    ]
    points = [Point({}, metrics, {"phase": "spikes"}), Point({}, metrics[1:3], {"phase": None})]
    shown = metric_tables(points)[0]
    assert shown.columns == ("phase", "error")
    assert [cell.measured for cell in shown.cells[0]] == [
        "spikes (2), bulk (1)",
        "1 (1), 3 (1), diverged (1)",
    ]
    assert shown.cells[1][0].measured == "spikes"
    assert [cells[0].predicted for cells in shown.cells] == ["spikes", "–"]
    assert long_metrics(points) == {}


def test_one_replicate_has_no_error() -> None:
    assert metric_tables([Point({}, [{"a": 0.25}], {})])[0].cells[0][0].measured == "0.25"


def test_a_study_without_points_has_no_tables() -> None:
    assert metric_tables([]) == []
    assert long_metrics([]) == {}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (60, "60"),
        (0.1 + 0.2, "0.3"),
        (True, "True"),
        ("tanh", "tanh"),
        (None, "–"),
        ((1, 2.5), "1, 2.5"),
        ([[1, 2], [3]], "1, 2, 3"),
        (np.float64(0.125), "0.125"),
    ],
)
def test_values_of_parameters(value: object, text: str) -> None:
    assert format_value(value) == text


def test_counts_separate_failures_from_what_other_settings_test(verdicts):
    assert counts_line(verdicts) == "1 claim holds, 1 fails; 1 needs other settings."
    noisy = replace(
        verdicts[2], reason="too noisy for a tolerance of 1: run at least 2 more replicates"
    )
    weak = replace(verdicts[0], notices=0.5)
    assert counts_line([weak, verdicts[0], noisy]) == (
        "2 claims hold (1 weakly), 0 fail; 1 needs more replicates."
    )


def test_numbers_that_no_claim_judges_have_a_distance_in_standard_errors():
    metrics = [{"a": 1.0, "b": [0.0, 2.0], "c": 5.0}, {"a": 3.0, "b": [0.0, 4.0], "c": 5.0}]
    point = Point({"n": 7}, metrics, {"a": 4.0, "b": [None, 3.0], "word": "phase"})
    other = Point({"n": 8}, [{"a": 1.0}], {"a": 2.0})
    rows = raw_rows([point, other])
    assert [(row.metric, row.setting) for row in rows] == [
        ("a", "n=7"),
        ("a", "n=8"),
        ("b[2]", "n=7"),
    ]
    assert rows[0].distance == pytest.approx(-2.0)  # 2 ± 1 for 4
    assert rows[1].distance is None  # one replicate has no error
    assert rows[2].distance == pytest.approx(0.0)
    text = raw_table(rows).to_text()
    assert "−2.0" in text or "-2.0" in text


def test_digits_of_a_verdict_end_at_a_thousandth_of_the_tolerance(verdicts):
    exact = replace(
        verdicts[0], measured=1 + 2.86e-11, standard_error=6.2e-12, expected=1.0, tolerance=0.05
    )
    assert verdict_rows([exact])[0].measured == "1 ± 0"
    near = replace(exact, measured=0.98765432, standard_error=6.2e-12)
    assert verdict_rows([near])[0].measured == "0.9877 ± 0"
    wide = replace(exact, measured=0.98765432, standard_error=6.2e-4)
    assert verdict_rows([wide])[0].measured == "0.98765 ± 0.00062"
