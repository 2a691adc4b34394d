"""Running studies: the same numbers on any workers, resume, failures, bad directories."""

import csv
import sqlite3
import subprocess
import sys

import numpy as np
import pytest

from solvable.errors import (
    InvalidParameter,
    StorageFailed,
    StudyBusy,
    StudyConflict,
    StudyTooNew,
)
from solvable.study import Store, Study, load, run_study


def test_results_do_not_depend_on_the_number_of_workers(toy, tmp_path, content):
    study = Study(toy, {"samples": [10, 20, 40], "shift": [0.0, 1.0]}, 3)
    one = run_study(study, tmp_path / "one", workers=1)
    two = run_study(study, tmp_path / "two", workers=2)
    assert one.complete
    assert content(tmp_path / "one") == content(tmp_path / "two")
    assert [r["metrics"] for r in one.records] == [r["metrics"] for r in two.records]


def test_records_points_verdicts_and_teachers(toy, tmp_path):
    study = Study(toy, {"samples": [10, 20]}, 2)
    result = run_study(study, tmp_path, workers=1)
    again = load(tmp_path, toy)
    assert [point.parameters["samples"] for point in again.points] == [10, 20]
    assert again.points[0].values("draws").shape == (2, 3)
    assert np.isnan(again.points[0].mean("nothing"))
    assert again.verdicts == result.verdicts
    assert again.verdicts[0].status == "holds"
    record = again.records[0]
    assert record["prediction"] == {"error": pytest.approx(0.1)}
    assert record["library"]
    assert record["seconds"] >= 0
    assert record["peak_memory"] > 1e6
    for task in study.tasks:
        # The teacher is the first thing drawn from the stream of the task.
        expected = task.stream().standard_normal(3)
        np.testing.assert_array_equal(again.teacher(task.identity)["first"], expected)


def test_csv_holds_every_number(toy, tmp_path):
    result = run_study(Study(toy, {"samples": [10, 20]}, 2), tmp_path, workers=1)
    with (tmp_path / "records.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 4
    for row, record in zip(rows, result.records, strict=True):
        assert float(row["error"]) == record["metrics"]["error"]
        assert float(row["draws[2]"]) == record["metrics"]["draws"][2]
        assert row["nothing"] == ""
        assert float(row["predicted.error"]) == record["prediction"]["error"]


def test_finished_tasks_are_not_run_again(toy, tmp_path, monkeypatch):
    log = tmp_path / "log"
    monkeypatch.setenv("TOY_LOG", str(log))
    study = Study(toy, {"samples": [10, 20]}, 2)
    run_study(study, tmp_path / "run", workers=1)
    run_study(study, tmp_path / "run", workers=1)
    assert len(log.read_text().splitlines()) == 4


def test_a_failing_task_leaves_the_others_alone(toy, tmp_path):
    study = Study(toy, {"fault": [0.0, 0.5, 1.0]}, 4)
    result = run_study(study, tmp_path, workers=1)
    assert not result.complete
    assert result.missing == len(result.failures)
    assert 4 <= result.missing < 8
    assert {failure.error for failure in result.failures} == {"ArithmeticError: asked to fail"}
    assert len(result.points) >= 1


def test_progress_counts_up_and_estimates(toy, tmp_path):
    seen = []
    study = Study(toy, {"pause": [0.01]}, 5)
    run_study(study, tmp_path, workers=1, progress=lambda *words: seen.append(words))
    assert [done for done, _, _ in seen] == [0, 1, 2, 3, 4, 5]
    assert seen[0][2] is None
    assert seen[-1][1:] == (5, 0.0)
    assert 0 < seen[1][2] < 5


def test_another_study_is_refused(toy, tmp_path):
    run_study(Study(toy, {"samples": 10}), tmp_path, workers=1)
    with pytest.raises(StudyConflict, match="holds another study") as error:
        run_study(Study(toy, {"samples": 11}), tmp_path, workers=1)
    assert "samples [10] there, [11] asked" in str(error.value)


def test_files_of_another_program_are_not_overwritten(toy, tmp_path):
    (tmp_path / "records.csv").write_text("mine")
    with pytest.raises(StudyConflict, match=r"records\.csv"):
        run_study(Study(toy), tmp_path, workers=1)
    assert (tmp_path / "records.csv").read_text() == "mine"


def test_a_newer_store_is_refused(toy, tmp_path):
    study = Study(toy)
    run_study(study, tmp_path, workers=1)
    connection = sqlite3.connect(tmp_path / "study.sqlite")
    connection.execute("PRAGMA user_version = 999")
    connection.commit()
    connection.close()
    with pytest.raises(StudyTooNew, match="newer"):
        run_study(study, tmp_path, workers=1)
    with pytest.raises(StudyTooNew):
        load(tmp_path, toy)


@pytest.mark.parametrize("damage", [b"not a database at all", b""])
def test_a_damaged_store_is_named(toy, tmp_path, damage):
    study = Study(toy)
    run_study(study, tmp_path, workers=1)
    path = tmp_path / "study.sqlite"
    path.write_bytes(damage + path.read_bytes()[5000:])
    with pytest.raises(StorageFailed, match=r"study\.sqlite") as error:
        load(tmp_path, toy)
    assert "\n" not in str(error.value)


def test_a_missing_store_is_named(tmp_path, toy):
    with pytest.raises(StorageFailed, match="study"):
        load(tmp_path, toy)


def test_only_one_writer(toy, tmp_path):
    study = Study(toy)
    with Store(tmp_path, study), pytest.raises(StudyBusy, match="another process"):
        run_study(study, tmp_path, workers=1)
    assert run_study(study, tmp_path, workers=1).complete


@pytest.mark.parametrize("workers", [0, -1, 1.5, "2", True])
def test_bad_workers(toy, tmp_path, workers):
    with pytest.raises(InvalidParameter, match="workers"):
        run_study(Study(toy), tmp_path, workers=workers)


FULL = """
import resource, sys
from toy_systems import system
from solvable.errors import StorageFailed
from solvable.study import Study, run_study
study = Study(system, {"samples": list(range(2, 60))}, 20)
if len(sys.argv) > 2:
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
    import signal
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
try:
    print(run_study(study, sys.argv[1], workers=1).missing)
except StorageFailed as error:
    print("failed:", error)
"""


def test_a_full_disk_is_one_error_and_a_resume(tmp_path, content, toy):
    """A limit on the size of files stands for the full disk."""

    def go(*words):
        done = subprocess.run(
            [sys.executable, "-c", FULL, *words], capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    # The plan alone takes about 400 kB here: the disk fills up while results come in.
    said = go(str(tmp_path / "full"), "700000")
    assert said.startswith("failed:")
    assert "resume" in said
    assert len(said.splitlines()) == 1
    assert 0 < len(load(tmp_path / "full", toy).records) < 58 * 20
    assert go(str(tmp_path / "full")) == "0"
    assert go(str(tmp_path / "whole")) == "0"
    assert content(tmp_path / "full") == content(tmp_path / "whole")
