"""One stored run judged by two versions of the library."""

from __future__ import annotations

import shutil
import sys
from dataclasses import replace

import pytest

import solvable
from solvable.errors import InvalidParameter
from solvable.frame.registry import load
from solvable.study import Study, run_study
from solvable.study.comparison_versions import compare_versions, line
from solvable.study.results import StudyResult


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    output = tmp_path_factory.mktemp("versions") / "run"
    grid = {
        "target": ["marchenko-pastur", "power-law"], "dimension": 20, "sample_ratio": 0.6,
        "noise": 0.5,
    }  # fmt: skip
    # the report and its figures, which take longer than the run, are not read here
    return run_study(Study(load("quadratic-network"), grid, replicates=3), output, workers=1)


def scaled(run: StudyResult, factor: float) -> StudyResult:
    """Return the run as if another version had predicted another error."""
    points = [
        (identity, parameters, {**prediction, "test_error": factor * prediction["test_error"]})
        for identity, parameters, prediction in run.snapshot.points
    ]
    return StudyResult(run.directory, run.system, replace(run.snapshot, points=points))


def test_the_same_version_differs_nowhere(run):
    found = solvable.compare(run)
    assert found.shifts == ()
    assert found.changed == []
    assert found.broken == []
    assert "0 predictions at 0 of 2 points differ" in line(found)


def test_a_prediction_that_moved_is_shown_in_standard_errors(run):
    found = compare_versions(scaled(run, 0.8))
    assert [shift.metric for shift in found.shifts] == ["test_error", "test_error"]
    for shift in found.shifts:
        assert shift.relative == pytest.approx(0.25)  # from 0.8 to 1 times the prediction
        point = next(p for p in run.points if p.parameters == shift.parameters)
        moved = 0.2 * point.prediction["test_error"] / point.standard_error("test_error")
        assert shift.standard_errors == pytest.approx(float(moved))
    text = repr(found) + found._repr_html_()
    assert "+25 %" in text
    assert "target=power-law" in text
    assert len(found.to_dataframe()) == 2


def test_a_claim_that_held_and_fails_now_is_broken(run):
    found = compare_versions(run)
    before = [{**row, "status": "holds"} for row in found.before.verdicts]
    after = [{**row, "status": "fails"} for row in found.after.verdicts]
    found = replace(
        found,
        before=found.before._replace(verdicts=before),
        after=found.after._replace(verdicts=after),
    )
    assert sorted(found.broken) == sorted(row["claim"] for row in before)


def test_another_interpreter_judges_a_copy(run):
    before = {path: path.stat().st_mtime_ns for path in run.directory.rglob("*")}
    found = solvable.compare(run, python=sys.executable)
    assert found.shifts == ()
    assert found.changed == []
    assert {path: path.stat().st_mtime_ns for path in run.directory.rglob("*")} == before


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo rubbish", "cannot judge this run: rubbish"),
        ("echo '[]'", "cannot judge this run"),
        ("echo 'No module named solvable' >&2; exit 1", "No module named solvable .exit status 1"),
    ],
)
def test_an_interpreter_without_an_answer_is_refused(run, tmp_path, script, message):
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\n{script}\n")
    python.chmod(0o755)
    with pytest.raises(InvalidParameter, match=message):
        solvable.compare(run, python=python)


def test_bad_input(run, tmp_path):
    with pytest.raises(InvalidParameter, match="no program that can be run"):
        solvable.compare(run, python=tmp_path / "nothing")
    with pytest.raises(InvalidParameter, match="python is given with 2 runs"):
        solvable.compare(run, run, python=sys.executable)
    with pytest.raises(InvalidParameter, match="0 runs given"):
        solvable.compare()
    other = tmp_path / "run"
    shutil.copytree(run.directory, other)
    assert solvable.compare(other).broken == []
