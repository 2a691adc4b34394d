"""Dry runs: expected tasks, time and memory, and the claims that could be tested."""

from dataclasses import replace

import numpy as np
import pytest

from solvable.errors import InvalidParameter
from solvable.frame.registry import load
from solvable.study import Study, dry_run, rehearsal, run_study
from solvable.study.rehearsal import sentences

SYSTEM = load("kernel-staircase")
GRID = {"dimension": [12], "samples": [60, 120, 240]}


@pytest.fixture(scope="module")
def found():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rehearsal, "TRIAL_SECONDS", 600.0)  # a busy machine makes as many trials
        return dry_run(Study(SYSTEM, GRID, 6), workers=1)


def test_tasks_time_and_memory_are_expected(found):
    assert (found.tasks, found.done, found.workers) == (18, 0, 1)
    each = [np.mean([t.seconds for t in found.trials if t.place == k]) for k in range(3)]
    assert found.seconds == pytest.approx(6 * sum(each))
    assert len(found.trials) == 3 * rehearsal.MOST_TRIALS  # they take milliseconds
    assert found.memory > 1e7
    assert {trial.place for trial in found.trials} == {0, 1, 2}


def test_replicates_scatter_around_the_prediction_as_the_trials_do(found):
    for place in range(3):
        rows = [study[place] for study in found.simulated]
        errors = np.concatenate([point.values("error").ravel() for point in rows])
        expected = np.broadcast_to(rows[0].prediction["error"], rows[0].values("error").shape)
        deviations = errors - np.concatenate([expected.ravel() for _ in rows])
        assert all(point.replicates == 6 for point in rows)
        # six replicates share their entries' scatter in each of the simulated studies
        error = 1.25 * np.median(np.abs(deviations)) / 0.67 / np.sqrt(6 * rehearsal.SIMULATED)
        assert abs(np.median(deviations)) < 3 * error


def test_claims_say_how_certainly_they_are_tested(found):
    # Of 24 studies with six replicates, one could test `error`, and ten could test `learned`.
    rows = {row.claim: row for row in found.expectations}
    assert set(rows) == {claim.name for claim in SYSTEM.claims}
    assert rows["error"].share < 1
    assert 0 < rows["learned"].share < 1
    many = dry_run(Study(SYSTEM, GRID, 100), workers=1)
    assert all(row.answer == "likely" for row in many.expectations)
    claims = many.to_json()["claims"]
    assert {type(row["testable"]) for row in claims} == {bool}
    assert all(row["notices"] is not None for row in claims if row["testable"])


def test_one_replicate_tests_nothing():
    found = dry_run(Study(SYSTEM, GRID, 1), workers=1)
    assert all(row.answer == "no" for row in found.expectations)
    assert any("replicate" in line for line in sentences(found))


def test_a_claim_at_the_limit_of_its_noise_is_uncertain(monkeypatch):
    found = dry_run(Study(SYSTEM, GRID, 4), workers=1)
    claim = next(claim for claim in SYSTEM.claims if claim.name == "error")
    # A tolerance so narrow that half of the simulated studies scatter too much for it.
    errors = [study[0].standard_error("error").max() for study in found.simulated]
    narrow = replace(claim, within=float(np.median(errors)) * 2, relative=False)
    monkeypatch.setattr(type(SYSTEM), "claims", property(lambda self: (narrow,)))
    (row,) = found.expectations
    assert 0 < row.share < 1
    assert f"({len(row.tested)} of {rehearsal.SIMULATED})" in row.answer
    assert sentences(found)[-1].startswith("About ")


def test_finished_tasks_count(tmp_path):
    study = Study(SYSTEM, {"dimension": [12], "samples": [60]}, 3)
    run_study(study, tmp_path, workers=1)
    found = dry_run(Study(SYSTEM, {"dimension": [12], "samples": [60]}, 6), tmp_path, workers=1)
    assert (found.tasks, found.done) == (6, 3)


def test_a_replicate_that_takes_too_long_is_given_up(monkeypatch):
    monkeypatch.setattr(rehearsal, "TRIAL_SECONDS", 0.0)
    found = dry_run(Study(SYSTEM, GRID, 2), workers=1)
    assert (found.trials, found.seconds, found.expectations) == ([], None, [])
    assert "takes more than" in sentences(found)[-1]


def test_a_size_beyond_the_budget_is_refused():
    study = Study(load("matrix-sensing"), {"dimension": [100_000]}, 2)
    with pytest.raises(InvalidParameter, match="allowed"):
        dry_run(study)
