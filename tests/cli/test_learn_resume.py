"""`solvable learn` resumes after it was killed, with the numbers of an uninterrupted run."""

from __future__ import annotations

import json
import os
import signal
import time

import numpy as np
import pytest

from solvable.data import load
from solvable.learn import Request, learn
from solvable.learn.fold_fits import measure_all
from solvable.learn.plan import Plan
from solvable.learn.stored_fits import KeptFits


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 4))
    y = np.where(X[:, 0] * X[:, 1] + X[:, 2] > 0, "up", "down")
    lines = [
        ",".join([*(f"{cell:.5f}" for cell in row), label]) for row, label in zip(X, y, strict=True)
    ]
    path = tmp_path / "table.csv"
    path.write_text("\n".join([",".join([*"abcd", "y"]), *lines]))
    return path


def words(table, output):
    options = ["--target", "y", "--folds", "2", "--workers", "1", "--output", str(output)]
    return ["learn", str(table), *options]


def without_times(output):
    content = json.loads((output / "result.json").read_text())

    def stripped(value):
        if isinstance(value, dict):
            return {
                key: stripped(one)
                for key, one in value.items()
                if key not in ("seconds", "command")
            }
        return [stripped(one) for one in value] if isinstance(value, list) else value

    return stripped(content)


def same(left, right):
    """Compare numbers up to rounding, and everything else exactly."""
    if isinstance(left, dict):
        assert left.keys() == right.keys()
        for key in left:
            same(left[key], right[key])
    elif isinstance(left, list):
        assert len(left) == len(right)
        for pair in zip(left, right, strict=True):
            same(*pair)
    elif isinstance(left, float):
        assert left == pytest.approx(right, rel=1e-12)
    else:
        assert left == right


def test_a_run_that_was_killed_goes_on(solvable, tmp_path, table):
    whole = tmp_path / "whole"
    assert solvable(*words(table, whole)).returncode == 0
    output, kept = tmp_path / "killed", tmp_path / ".killed.part"
    with solvable.start(*words(table, output)) as process:
        deadline = time.monotonic() + 120
        while len(list(kept.glob("*.safetensors"))) < 4 and time.monotonic() < deadline:
            assert process.poll() is None
            time.sleep(0.002)
        os.kill(process.pid, signal.SIGKILL)
    done = {path.name: path.stat().st_mtime_ns for path in kept.glob("*.safetensors")}
    assert len(done) >= 4
    assert not output.exists()
    # One file is truncated, as by a full disk.
    cut = kept / sorted(done)[0]
    cut.write_bytes(cut.read_bytes()[:100])
    again = solvable(*words(table, output))
    assert again.returncode == 0
    assert "an earlier run are read from" in again.stderr + again.stdout
    same(without_times(output), without_times(whole))
    assert not kept.exists()


def test_all_that_a_fit_gave_is_found_again(tmp_path, table):
    data = load(str(table), target="y")
    plan = Plan(data, Request(folds=2))
    kept = KeptFits(tmp_path / "kept", "fingerprint")
    # The model of all rows is stored with its fit, also if it is no network.
    plan.tasks += plan.later_tasks(["trees"])
    measured = measure_all(plan.tasks, workers=1, keeper=kept)
    calls = []
    found = measure_all(
        plan.tasks, workers=1, keeper=kept, progress=lambda *numbers: calls.append(numbers)
    )
    assert calls == [(len(plan.tasks), len(plan.tasks), None)]  # no fit was left
    by_key = {(fit.method, fit.fold, fit.training_rows): fit for fit in found}
    assert len(by_key) == len(measured) == len(plan.tasks)
    for fit in measured:
        other = by_key[fit.method, fit.fold, fit.training_rows]
        np.testing.assert_array_equal(other.predicted, fit.predicted)
        assert other.n_significant == fit.n_significant
        assert (other.unseen is None) == (fit.unseen is None)
        if fit.unseen is not None:
            np.testing.assert_array_equal(other.unseen.signal, fit.unseen.signal)
        if fit.model is not None:
            np.testing.assert_allclose(other.model.predict(data.X), fit.model.predict(data.X))
    # Fits of another table, request or version are not used.
    assert KeptFits(tmp_path / "kept", "other").find(plan.tasks[0]) is None
    assert learn(data, Request(folds=2), keeper=kept).learned.error is not None
    kept.remove()
    assert not kept.folder.exists()
