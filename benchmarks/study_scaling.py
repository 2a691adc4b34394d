"""Measure the wall time of a 40-task study on two workers over that on one; the bound is 0.6.

Run it alone on at least two cores: ``python benchmarks/study_scaling.py [REPEATS]``. Tasks take
about 0.3 s of CPU time each (a fixed number of small matrix products); start-up of workers is included.
On a contended machine, wall seconds per task are above CPU seconds per task. The line for tasks that only
wait for 0.3 s measures the overhead of the engine: start-up, dispatch, commits.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import ClassVar

import numpy as np

from solvable.study import Study, StudyResult, run_study
from solvable.systems.base import Parameters, Preset, System

TASKS = 40
LIMIT = 0.6


class WorkParameters(Parameters):
    rounds: int = 100
    """Number of matrix products per task."""
    wait: float = 0.0
    """Seconds for which a task sleeps."""


class Work(System):
    """Multiply matrices that fit into the cache."""

    name = "work"
    title = "Matrix products"
    version = "1"
    parameters = WorkParameters
    presets: ClassVar = {"quick": Preset("one point", {}, replicates=TASKS)}

    def measure(self, parameters, rng):
        matrix = rng.standard_normal((200, 200)) / np.sqrt(200)
        time.sleep(parameters.wait)
        product = matrix
        for _ in range(parameters.rounds):
            product = matrix @ product
        return {"norm": float(np.linalg.norm(product))}

    def predict(self, parameters):
        return {"norm": 1.0}


def timed(
    rounds: int, replicates: int, workers: int, wait: float = 0.0
) -> tuple[float, StudyResult]:
    """Return the wall seconds of a new study, start-up of worker processes included, and its result."""
    from joblib.externals.loky import get_reusable_executor

    directory = Path(tempfile.mkdtemp(prefix="study-scaling-"))
    try:
        begun = time.perf_counter()
        study = Study(Work(), {"rounds": rounds, "wait": wait}, replicates)
        result = run_study(study, directory, workers=workers)
        return time.perf_counter() - begun, result
    finally:
        shutil.rmtree(directory)
        get_reusable_executor().shutdown(wait=True)


def per_task(result: StudyResult, name: str) -> float:
    """Return the mean of a provenance column over tasks."""
    return float(np.mean([record[name] for record in result.records]))


def main(repeats: int) -> int:
    """Print the ratio of each repeat; return 1 if the best ratio is above the limit."""
    timed(100, 3, 1)  # imports and first calls
    rounds = int(0.3 / per_task(timed(200, 5, 1)[1], "cpu_seconds") * 200)
    print(f"{TASKS} tasks, {rounds} products each; load {os.getloadavg()[0]:.2f}")
    waits = [timed(0, TASKS, workers, 0.3)[0] for workers in (1, 2)]
    print(f"tasks that wait: {waits[0]:.2f} s, {waits[1]:.2f} s, ratio {waits[1] / waits[0]:.3f}")
    ratios = []
    for _ in range(repeats):
        one, alone = timed(rounds, TASKS, 1)
        two, both = timed(rounds, TASKS, 2)
        assert [r["metrics"] for r in alone.records] == [r["metrics"] for r in both.records]
        ratios.append(two / one)
        print(
            f"one worker {one:.2f} s ({per_task(alone, 'cpu_seconds'):.3f} s CPU, "
            f"{per_task(alone, 'seconds'):.3f} s wall per task); "
            f"two workers {two:.2f} s ({per_task(both, 'cpu_seconds'):.3f}, "
            f"{per_task(both, 'seconds'):.3f}); ratio {two / one:.3f}; "
            f"load {os.getloadavg()[0]:.2f}"
        )
    print(f"best ratio {min(ratios):.3f}, limit {LIMIT}")
    return int(min(ratios) > LIMIT)


if __name__ == "__main__":
    raise SystemExit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 3))
