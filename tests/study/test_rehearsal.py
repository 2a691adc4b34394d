"""Dry runs: expected tasks, time and memory, and the claims that could be tested."""

import numpy as np
import pytest

from solvable.errors import InvalidParameter
from solvable.frame.registry import load
from solvable.study import Study, dry_run, rehearsal, run_study
from solvable.study.rehearsal import answer_to, sentences

SYSTEM = load("kernel-staircase")
GRID = {"dimension": [12], "samples": [60, 120, 240]}


@pytest.fixture(scope="module")
def found():
    return dry_run(Study(SYSTEM, GRID, 6), workers=1)


def test_tasks_time_and_memory_are_expected(found):
    assert (found.tasks, found.done, found.workers) == (18, 0, 1)
    each = [np.mean([t.seconds for t in found.trials if t.place == k]) for k in range(3)]
    assert found.seconds == pytest.approx(6 * sum(each))
    assert found.memory > 1e7
    assert {trial.place for trial in found.trials} == {0, 1, 2}


def test_replicates_have_the_predicted_mean(found):
    for point in found.points:
        assert point.replicates == 6
        np.testing.assert_allclose(point.mean("error"), point.prediction["error"])
        assert point.standard_error("error") > 0


def test_claims_say_what_they_would_notice(found):
    answers = {verdict.claim: answer_to(verdict) for verdict in found.verdicts}
    assert set(answers) == {claim.name for claim in SYSTEM.claims}
    assert answers["error"] == "yes"
    claims = found.to_json()["claims"]
    assert all(row["notices"] is not None for row in claims if row["testable"] == "yes")


def test_one_replicate_tests_nothing():
    found = dry_run(Study(SYSTEM, GRID, 1), workers=1)
    assert all(answer_to(verdict) == "no" for verdict in found.verdicts)
    assert any("replicate" in line for line in sentences(found))


def test_finished_tasks_count(tmp_path):
    study = Study(SYSTEM, {"dimension": [12], "samples": [60]}, 3)
    run_study(study, tmp_path, workers=1)
    found = dry_run(Study(SYSTEM, {"dimension": [12], "samples": [60]}, 6), tmp_path, workers=1)
    assert (found.tasks, found.done) == (6, 3)


def test_a_replicate_that_takes_too_long_is_given_up(monkeypatch):
    monkeypatch.setattr(rehearsal, "TRIAL_SECONDS", 0.0)
    found = dry_run(Study(SYSTEM, GRID, 2), workers=1)
    assert (found.trials, found.seconds, found.verdicts) == ([], None, [])
    assert "takes more than" in sentences(found)[-1]


def test_a_size_beyond_the_budget_is_refused():
    study = Study(load("matrix-sensing"), {"dimension": [100_000]}, 2)
    with pytest.raises(InvalidParameter, match="allowed"):
        dry_run(study)
