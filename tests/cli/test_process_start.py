"""The command as a process: closed streams, Python without docstrings, and signals while it starts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from solvable.cli import main

COMMAND = [sys.executable, "-m", "solvable"]


def test_a_closed_standard_output_does_not_stop_a_run(tmp_path):
    words = ["run", "kernel-staircase", "--seeds", "1", "--workers", "1", "--output"]
    for closed in (">&-", "2>&-", "<&- >&- 2>&-"):
        out = tmp_path / closed.replace(">", "")
        shell = f'exec "$@" {closed}'
        done = subprocess.run(
            ["sh", "-c", shell, "sh", *COMMAND, *words, str(out)],
            check=False,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        assert "Traceback" not in done.stderr
        assert (out / "report.html").is_file()
        # No file took the number of a closed stream, so that nothing was written into it.
        assert (out / "study.sqlite").read_bytes()[:15] == b"SQLite format 3"


@pytest.mark.parametrize("words", ["list", "theory kernel-staircase", "list --help", "run --help"])
def test_python_without_docstrings_and_assertions(words):
    done = subprocess.run(
        [sys.executable, "-OO", "-m", "solvable", *words.split()],
        check=False,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_the_command_starts_is_one_line(number):
    # The interpreter itself takes the first 0.03 s on a quiet machine, before any code of this package.
    begun, ended = [], []
    for delay in (0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4):
        process = subprocess.Popen(
            [*COMMAND, "theory", "quadratic-network"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        _wait_for_handler(process.pid, number)
        begun.append(time.monotonic())
        time.sleep(delay - 0.1)
        process.send_signal(number)
        ended.append((process.communicate()[1], process.returncode))
    assert set(ended) <= {("solvable: interrupted.\n", 130), ("", 0)}
    assert ("solvable: interrupted.\n", 130) in ended


def _wait_for_handler(pid: int, number: int) -> None:
    """Wait until a process handles a signal, as soon as the package is imported."""
    for _ in range(2000):
        with open(f"/proc/{pid}/status") as stream:
            caught = next(line for line in stream if line.startswith("SigCgt:"))
        mask = int(caught.split()[1], 16)
        # Python handles SIGINT from its start; SIGTERM is handled by the package alone.
        if mask >> (signal.SIGTERM - 1) & 1:
            return
        time.sleep(0.002)
    os.kill(pid, signal.SIGKILL)
    raise AssertionError(f"signal {number} is not handled")


def test_too_little_memory_is_no_error_of_the_program(monkeypatch, capsys):
    monkeypatch.setattr("solvable.cli.app._call", lambda words: np.ones(10**15).size)
    assert main(["list"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("solvable: not enough memory: Unable to allocate")
    assert "fewer --workers" in said
    assert "please report" not in said
