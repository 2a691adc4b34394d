"""`kill -9` at any moment: nothing finished is lost or counted twice, and the numbers stay."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from solvable.study import Study, load, run_study

SCRIPT = """
import sys
from toy_systems import system
from solvable.study import Study, run_study
study = Study(system, {"samples": [10, 20, 30], "pause": [0.02]}, int(sys.argv[2]))
result = run_study(study, sys.argv[1], workers=int(sys.argv[3]))
print(result.missing)
"""


def start(directory, replicates, workers):
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(directory), str(replicates), str(workers)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def kill_and_resume(directory, replicates, workers, kills, seed):
    rng = np.random.default_rng(seed)
    for _ in range(kills):
        process = start(directory, replicates, workers)
        # From before the store exists to past the first results.
        time.sleep(rng.uniform(0.3, 2.0))
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    process = start(directory, replicates, workers)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert out.strip() == "0"


@pytest.mark.parametrize("workers", [1, 2])
def test_killed_runs_resume_to_the_same_store(toy, tmp_path, content, workers):
    replicates = 12
    kill_and_resume(tmp_path / "killed", replicates, workers, kills=3, seed=workers)
    study = Study(toy, {"samples": [10, 20, 30], "pause": [0.02]}, replicates)
    run_study(study, tmp_path / "whole", workers=1)
    assert content(tmp_path / "killed") == content(tmp_path / "whole")


@pytest.mark.slow
def test_killed_many_times(toy, tmp_path, content):
    replicates = 60
    kill_and_resume(tmp_path / "killed", replicates, 2, kills=40, seed=9)
    study = Study(toy, {"samples": [10, 20, 30], "pause": [0.02]}, replicates)
    run_study(study, tmp_path / "whole", workers=2)
    assert content(tmp_path / "killed") == content(tmp_path / "whole")


def test_ctrl_c_keeps_what_is_finished(toy, tmp_path, content):
    process = start(tmp_path / "stopped", 40, 2)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        time.sleep(0.1)
        if (tmp_path / "stopped" / "study.sqlite").exists():
            try:
                if len(load(tmp_path / "stopped", toy).records) >= 2:
                    break
            except Exception:  # the store is being made
                continue
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    left = int(out)
    assert 0 < left < 118
    assert len(load(tmp_path / "stopped", toy).records) == 120 - left
    assert start(tmp_path / "stopped", 40, 2).communicate(timeout=60)[0].strip() == "0"
