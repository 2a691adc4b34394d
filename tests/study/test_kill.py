"""``kill -9`` at any moment loses no finished task, repeats none, and changes no number."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent / "toy_package"

pytestmark = pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs process groups")


def committed(directory):
    """Return rows of finished tasks and predictions; none before the store exists."""
    if not (directory / "study.sqlite").exists():
        return {}
    connection = sqlite3.connect(directory / "study.sqlite")
    try:
        if not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            return {}
        return dict(connection.execute("SELECT * FROM results UNION ALL SELECT * FROM predictions"))
    finally:
        connection.close()


def running(session):
    """Return the processes of a session, without zombies."""
    command = ["ps", "-o", "stat=", "-s", str(session)]
    found = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    return [line for line in found.split() if not line.startswith("Z")]


class Sitting:
    """A process that runs the study until it is killed."""

    def __init__(self, directory, workers):
        self.process = subprocess.Popen(
            [
                sys.executable,
                "-W",
                "error",
                PACKAGE / "run_toy.py",
                directory,
                str(workers),
                "0.02",
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def wait_for(self, condition):
        while not condition() and self.process.poll() is None:
            time.sleep(0.002)

    def kill(self, group):
        """Kill the process, or its group; return True if it was still running."""
        alive = self.process.poll() is None
        if group:
            os.killpg(self.process.pid, signal.SIGKILL)
        elif alive:
            self.process.kill()
        printed = self.process.communicate(timeout=30)[0] if group else ""
        assert "Traceback" not in printed
        self.process.wait(30)
        self.process.stdout.close()
        return alive


def kill_many_times(toys, logs, directory, kills, rng):
    """Kill and resume until this many kills hit a running study."""
    hits = 0
    before = {}
    names = {toys.key_of(task.stream()): task.identity for task in _study().tasks}
    while hits < kills:
        log = logs / "begun.log"
        log.unlink(missing_ok=True)
        workers, group = rng.choice([1, 2]), rng.random() < 0.7
        sitting = Sitting(directory, workers)
        if rng.random() < 0.3:
            time.sleep(rng.uniform(0.0, 1.0))  # kill during imports, or while the store is created
        else:
            tasks = rng.randrange(1, 4)
            sitting.wait_for(lambda: len(toys.notes(logs, "begun")) >= tasks)  # noqa: B023
            time.sleep(rng.uniform(0.0, 0.05))
        hits += sitting.kill(group)
        deadline = time.monotonic() + 20
        while running(sitting.process.pid):  # workers end after their parent
            assert time.monotonic() < deadline, "a worker outlived the run"
            time.sleep(0.02)
        after = committed(directory)
        assert before.items() <= after.items(), "a finished task was lost or changed"
        begun = {names[name] for name in toys.notes(logs, "begun")}
        assert not begun & before.keys(), "a finished task was run again"
        if len(after) == 32:
            return hits
        before = after
    return hits


def _study():
    from run_toy import study

    return study(0.02)


def finish_and_compare(toys, logs, tmp_path, rows_of_tables, kills, seed):
    rng = random.Random(seed)
    whole, hits, rounds = tmp_path / "whole", 0, 0
    subprocess.run(
        [sys.executable, PACKAGE / "run_toy.py", whole, "1", "0.02"], check=True, timeout=60
    )
    expected = rows_of_tables(whole)
    assert len(expected["results"]) == 24
    while hits < kills:
        directory = tmp_path / f"killed-{rounds}"
        hits += kill_many_times(toys, logs, directory, kills - hits, rng)
        before = committed(directory)
        (logs / "begun.log").unlink(missing_ok=True)
        command = [sys.executable, PACKAGE / "run_toy.py", directory, "2", "0.02"]
        subprocess.run(command, check=True, timeout=60)
        assert len(toys.notes(logs, "begun")) == 24 - len(
            [one for one in expected["tasks"] if one[0] in before]
        )
        assert rows_of_tables(directory) == expected
        left = sorted(path.name for path in directory.iterdir())
        assert left == [".study.lock", "records.csv", "study.sqlite", "study.toml"]
        rounds += 1
    return rounds


@pytest.mark.slow
def test_a_run_killed_at_random_moments_loses_and_repeats_nothing(
    toys, logs, tmp_path, rows_of_tables
):
    finish_and_compare(toys, logs, tmp_path, rows_of_tables, kills=4, seed=1)


@pytest.mark.slow
def test_a_run_killed_a_hundred_times(toys, logs, tmp_path, rows_of_tables):
    assert finish_and_compare(toys, logs, tmp_path, rows_of_tables, kills=100, seed=2) > 5


def test_a_run_killed_before_each_statement_of_its_store(tmp_path):
    ended = subprocess.run(
        [sys.executable, PACKAGE / "kill_at_statements.py", tmp_path],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    # Statements: the lock, eight tables, the plan, two predictions, two tasks, closing the log.
    assert int(ended.stdout) > 30
