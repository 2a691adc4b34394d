from __future__ import annotations

import csv
import json
import os
import re
import shutil
import signal
import sqlite3
import sys
import time
import tomllib
from collections import Counter
from importlib import import_module
from types import SimpleNamespace

import pytest

from solvable.study.grid import task_stream
from solvable.study.snapshot import read

FIELDS = {
    "task", "system", "version", "parameters", "replicate", "metrics", "prediction", "library",
    "numpy", "dtype", "seconds", "cpu_seconds", "peak_memory",
}  # fmt: skip

DETERMINISTIC = ("task", "parameters", "replicate", "metrics", "prediction")


def deterministic(text):
    return [{name: one[name] for name in DETERMINISTIC} for one in json.loads(text)["records"]]


def key_of(task):
    """Return the key of the random stream of a task, which the probe logs."""
    key = task_stream(task).bit_generator.state["state"]["key"]
    return "-".join(str(int(part)) for part in key)


def wait_for(condition, seconds=30.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition was not met in time"
        time.sleep(0.02)


@pytest.fixture
def here(solvable, call, monkeypatch):
    """Return a function that calls the program here, in the directory of `solvable`, without pauses."""
    monkeypatch.setenv("PROBE_LOG", str(solvable.log))
    monkeypatch.setattr(import_module("probe_system"), "time", SimpleNamespace(sleep=id))
    return call


def test_run_prints_records_and_verdicts_as_json(finished):
    answer = json.loads(finished.answer.stdout)
    assert set(answer) == {"records", "verdicts", "errors", "unjudged"}
    assert answer["errors"] == []
    assert len(answer["records"]) == 3 * 4
    for record in answer["records"]:
        assert set(record) == FIELDS
        assert set(record["metrics"]) <= set(record["prediction"])
        assert isinstance(record["metrics"]["error"], float)
        assert len(record["metrics"]["draws"]) == 3
    (verdict,) = answer["verdicts"]
    assert verdict["claim"] == "error-is-variance"
    assert verdict["status"] == "holds"
    assert verdict["kind"] == "equal"
    assert verdict["replicates"] == 12


def test_run_directory_holds_all_files(finished):
    directory = finished.cwd / "run"
    shown = sorted(str(p.relative_to(directory)) for p in directory.rglob("[!.]*") if p.is_file())
    assert shown == [
        "figures/error.pdf", "figures/error.svg", "records.csv", "report.html", "study.sqlite",
        "study.toml",
    ]  # fmt: skip
    asked = tomllib.loads((directory / "study.toml").read_text())
    assert asked["preset"] == "quick"
    assert asked["grid"] == {"samples": [10, 40, 160]}
    with (directory / "records.csv").open() as file:
        assert len(list(csv.DictReader(file))) == 12
    report = (directory / "report.html").read_text()
    assert "Mean of Gaussian samples" in report
    assert "solvable run probe" in report


def test_run_in_a_pipe_shows_a_table_and_no_progress(call, tmp_path):
    words = ("--set", "samples=20", "--seeds", 2, "--workers", 1)
    status, printed, error = call("run", "probe", *words)
    assert status == 0, error
    assert "\x1b" not in printed + error
    assert "error-is-variance" in printed
    assert re.search(r"\d claims? holds?", printed)
    note = error.strip()
    assert "\n" not in note
    assert "1 point x 2 replicates, " in note
    # The default directory has the name of the study, and the output shows its path.
    (directory,) = (tmp_path / "solvable-runs").iterdir()
    assert directory.name.startswith("probe-")
    assert f"solvable-runs/{directory.name}/report.html" in printed


@pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals")
def test_run_on_a_terminal_shows_time_left(solvable):
    import pty

    ours, theirs = pty.openpty()
    process = solvable.start(
        "run", "probe", "--set", "pause=0.6", "--seeds", 1, "--workers", 1, "--json", stderr=theirs
    )
    os.close(theirs)
    seen = b""
    while True:
        try:
            read = os.read(ours, 4096)
        except OSError:  # on Linux, the end of a pseudo-terminal is an error
            break
        if not read:
            break
        seen += read
    os.close(ours)
    printed, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    shown = seen.decode()
    assert "estimating time left" in shown
    assert "s left" in shown
    assert "/3" in shown
    assert len(json.loads(printed)["records"]) == 3


def test_quiet_prints_nothing(call):
    words = ("--seeds", 2, "--workers", 1, "--quiet")
    assert call("run", "probe", "--set", "samples=20", *words) == (0, "", "")


def test_a_finished_study_is_not_run_again(finished, call, monkeypatch):
    monkeypatch.chdir(finished.cwd)
    monkeypatch.setenv("PROBE_LOG", str(finished.log))
    before = len(finished.logged())
    status, printed, error = call("run", "probe", "--output", "run", "--json")
    assert status == 0
    assert "12 of 12 tasks are finished already" in error
    assert printed == finished.answer.stdout
    assert len(finished.logged()) == before == 12


def test_two_workers_give_the_same_numbers_as_one(finished, call, site, monkeypatch):
    # Workers are separate processes and import the probe themselves.
    monkeypatch.setenv("PYTHONPATH", str(site), prepend=os.pathsep)
    words = ("--output", "both", "--workers", 2, "--json")
    status, printed, error = call("run", "probe", *words)
    assert status == 0, error
    assert deterministic(printed) == deterministic(finished.answer.stdout)


@pytest.mark.parametrize(
    "words",
    [
        ("--seed", "1"),
        ("--seeds", "5"),
        ("--set", "samples=10,40"),
        ("--preset", "slow"),
    ],
)
def test_another_study_is_refused(finished, call, words):
    status, printed, error = call("run", "probe", "--output", finished.cwd / "run", *words)
    assert status == 2
    assert printed == ""
    assert "holds another study" in error
    # The first line describes the study.
    assert len(error.splitlines()) == 2


def test_a_failing_claim_exits_with_1(call, tmp_path):
    status, printed, _ = call("run", "probe", "--set", "bias=3", "--seeds", 2, "--workers", 1)
    assert status == 1
    assert "fails" in printed
    assert "The squared error is s² / n." in printed
    assert "0 claims hold, 1 fails." in printed
    (directory,) = (tmp_path / "solvable-runs").iterdir()
    assert call("verify", directory)[0] == 1


def test_failed_tasks_are_printed_and_exit_with_1(call):
    words = ("--seeds", 8, "--workers", 1, "--json", "--output", "run")
    status, printed, error = call("run", "probe", "--set", "fault=0.5", *words)
    assert status == 1
    done = len(json.loads(printed)["records"])
    assert 0 < done < 24
    assert f"{24 - done} failed: ArithmeticError: the probe was asked to fail" in error
    assert "fault=0.5" in error


def test_a_study_without_any_result_says_so(call):
    status, printed, error = call(
        "run", "probe", "--set", "samples=10", "fault=1", "--seeds", 1, "--workers", 1,
        "--output", "run",
    )  # fmt: skip
    assert status == 1
    assert "not testable" in printed
    assert "report " not in printed
    assert "1 failed: ArithmeticError" in error
    status, _, error = call("report", "run")
    assert status == 2
    assert "no task has finished" in error


def test_scientific_notation_and_lists(call):
    status, printed, _ = call(
        "run", "probe", "--preset", "none", "--set", "samples=1e1,2e1", "widths=[3,4],[5]",
        "--workers", 1, "--json", "--quiet", "--output", "run",
    )  # fmt: skip
    assert status == 0
    found = {
        (one["parameters"]["samples"], tuple(one["parameters"]["widths"]))
        for one in json.loads(printed)["records"]
    }
    assert found == {(10, (3, 4)), (10, (5,)), (20, (3, 4)), (20, (5,))}


def test_sigterm_ends_a_run_like_ctrl_c(solvable):
    process = solvable.start("run", "probe", "--preset", "slow", "--output", "run", "--workers", 2)
    wait_for(lambda: len(solvable.logged()) >= 3)
    process.terminate()
    _, error = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "The same command resumes" in error
    assert "leaked" not in error


def test_ctrl_c_keeps_finished_tasks_and_resumes(solvable, here):
    words = ("run", "probe", "--preset", "slow", "--output", "run", "--json", "--workers")
    process = solvable.start(*words, 2)
    wait_for(lambda: len(solvable.logged()) >= 6)
    # A terminal sends Ctrl-C to the whole process group, including workers.
    os.killpg(process.pid, signal.SIGINT)
    printed, error = process.communicate(timeout=60)
    assert process.returncode == 130
    assert printed == ""
    kept = int(error.split("interrupted; ")[1].split()[0])
    assert 1 <= kept < 30
    assert "The same command resumes" in error
    assert "Traceback" not in error
    assert "leaked" not in error

    committed = {key_of(one["identity"]) for one in read(solvable.cwd / "run").tasks}
    assert len(committed) == kept

    _, _, error = here("verify", "run")
    assert f"{30 - kept} of 30 tasks have not been run" in error

    status, printed, error = here(*words, 1)
    assert status == 0, error
    assert f"{kept} of 30 tasks are finished already" in error
    assert len(json.loads(printed)["records"]) == 30
    begun = Counter(solvable.logged())
    assert len(begun) == 30
    assert {begun[key] for key in committed} == {1}


def test_kill_9_keeps_finished_tasks_and_resumes(solvable, here):
    words = ("run", "probe", "--set", "pause=0.1", "--workers", 1, "--output", "run", "--json")
    process = solvable.start(*words)
    wait_for(lambda: len(solvable.logged()) >= 4)
    process.kill()
    process.communicate(timeout=60)
    status, printed, error = here(*words)
    assert status == 0, error
    assert "of 12 tasks are finished already" in error
    assert len(solvable.logged()) <= 12 + 1
    _, whole, _ = here(*words[:-3], "--output", "whole", "--json")
    assert deterministic(printed) == deterministic(whole)


def test_a_busy_directory_is_refused(solvable, here):
    process = solvable.start("run", "probe", "--preset", "slow", "--workers", 1, "--output", "run")
    wait_for(lambda: len(solvable.logged()) >= 1)
    status, _, error = here("run", "probe", "--preset", "slow", "--output", "run")
    process.kill()
    process.communicate(timeout=60)
    assert status == 2
    assert "another process is running a study there" in error


def test_a_newer_study_is_refused(finished, call, tmp_path):
    (tmp_path / "newer").mkdir()
    path = tmp_path / "newer" / "study.sqlite"
    path.write_bytes((finished.cwd / "run" / "study.sqlite").read_bytes())
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    for words in (("run", "probe", "--output", "newer"), ("verify", "newer"), ("report", "newer")):
        status, printed, error = call(*words)
        assert (status, printed) == (2, "")
        assert "newer" in error.splitlines()[-1]
        assert "newer checkout" in error.splitlines()[-1]


def test_results_are_printed_although_the_report_cannot_be_written(call, tmp_path):
    words = ("run", "probe", "--set", "samples=20", "--seeds", 2, "--workers", 1, "--output", "run")
    assert call(*words, "--quiet")[0] == 0
    shutil.rmtree(tmp_path / "run" / "figures")
    (tmp_path / "run" / "figures").write_text("a file in the way")
    status, printed, error = call(*words)
    assert status == 2
    assert re.search(r"\d claims? holds?", printed)
    last = error.splitlines()[-1]
    assert last.startswith("solvable: ")
    assert "figures" in last


@pytest.mark.parametrize("name", ["report.html", "figures", "records.csv", "study.sqlite"])
def test_files_of_others_are_never_overwritten(call, tmp_path, name):
    (tmp_path / "mine").mkdir()
    path = tmp_path / "mine" / name
    path.mkdir() if name == "figures" else path.write_text("mine")
    status, printed, error = call("run", "probe", "--output", "mine", "--quiet")
    assert (status, printed) == (2, "")
    assert len(error.splitlines()) == 1
    assert name in error
    if name != "figures":
        assert path.read_text() == "mine"


def test_a_dry_run_measures_nothing_that_it_keeps(solvable):
    answer = solvable("run", "probe", "--dry-run", "--output", "planned")
    assert answer.returncode == 0, answer.stderr
    assert "probe: 3 points x 4 replicates = 12 tasks, 0 done." in answer.stdout
    assert "Expected: about" in answer.stdout
    assert re.search(
        r"(likely|perhaps|unlikely|no)(, weakly| \(.*\))* +error-is-variance", answer.stdout
    )
    assert not (solvable.cwd / "planned").exists()
    told = json.loads(solvable("run", "probe", "--dry-run", "--json").stdout)
    assert (told["tasks"], told["claims"][0]["claim"]) == (12, "error-is-variance")
    assert all(type(row["testable"]) is bool for row in told["claims"])


def test_a_dry_run_shows_what_a_replicate_raises(solvable):
    answer = solvable("run", "probe", "--dry-run", "--set", "fault=1")
    assert answer.returncode == 0
    assert "A replicate raised an error: ArithmeticError" in answer.stdout


def test_numbers_that_no_claim_judges_are_shown(solvable):
    command = ("run", "probe", "--seeds", "1", "--workers", "1")
    answer = solvable(*command)
    assert "No claim covers these records. Measured and predicted numbers:" in answer.stdout
    rows = json.loads(solvable(*command, "--json").stdout)["unjudged"]
    assert rows
    assert {"metric", "setting", "measured", "predicted", "distance"} <= set(rows[0])


def test_settings_that_are_no_grid_come_from_a_file(solvable):
    (solvable.cwd / "settings.csv").write_text("samples\n20\n3e1\n")
    answer = solvable(
        "run", "probe", "--points", "settings.csv", "--seeds", "1", "--workers", "1", "--json"
    )
    points = {record["parameters"]["samples"] for record in json.loads(answer.stdout)["records"]}
    assert points == {20, 30}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "a first row with distinct names"),
        ("a,a\n1,2\n", "a first row with distinct names"),
        ("a,b\n1,\n", "row 2: 2 cells"),
        ("a,b\n1\n", "row 2: 1 cells"),
        ("a\n" + 200_000 * "1", "cannot be read"),
        (None, "cannot be read"),
    ],
)
def test_a_file_without_settings_is_refused(solvable, text, words):
    if text is not None:
        (solvable.cwd / "settings.csv").write_text(text)
    answer = solvable("run", "probe", "--points", "settings.csv", "--workers", "1")
    assert answer.returncode == 2
    assert words in answer.stderr


def test_the_settings_of_a_stored_study_are_taken_again(solvable):
    (solvable.cwd / "settings.csv").write_text("samples,noise\n20,0.5\n30,1.0\n")
    words = ("--seeds", "1", "--workers", "1", "--json", "--output", "run")
    first = solvable("run", "probe", "--points", "settings.csv", *words)
    again = solvable("run", "probe", "--points", "run/study.toml", *words)
    assert json.loads(first.stdout)["records"] == json.loads(again.stdout)["records"]
    (solvable.cwd / "grid.toml").write_text('system = "probe"\n')
    refused = solvable("run", "probe", "--points", "grid.toml")
    assert (refused.returncode, "has no entry `points`" in refused.stderr) == (2, True)
