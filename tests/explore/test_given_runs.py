"""Runs that are given to a page: of other versions, of other systems, and with hostile names."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import solvable
from solvable.cli.app import main
from solvable.errors import SolvableError, StudyConflict, StudyTooNew
from solvable.explore.lines import Lines, theory_figures
from solvable.explore.runs import Run, Runs, run_of
from solvable.study import Study, run_study
from solvable.systems.base import Axis, Panel, Parameters, System, Trace

HOSTILE = '<img src=x onerror="window.harm=1">\x1b[31m\nrun'


class Mean(Parameters):
    """Parameters of a mean."""

    samples: int = 4
    """Number of samples."""
    noise: float = 1.0
    """Standard deviation."""


class Older(Mean):
    """Parameters of an older version, one more than today."""

    bias: float = 0.5
    """Shift of all samples."""


def mean_system(version: str, scale: float = 1.0, parameters: Any = Mean) -> System:
    """Return a version of a system, whose prediction has its own scale."""

    def measure(setting: Any, rng: np.random.Generator) -> dict[str, Any]:
        return {"square": float(rng.normal(0, setting.noise, setting.samples).mean() ** 2)}

    def predict(setting: Any) -> dict[str, Any]:
        return {"square": scale * setting.noise**2 / setting.samples}

    return System(
        name="mean", title="A mean", version=version, parameters=parameters, measure=measure,
        predict=predict, axis=Axis("samples", "samples"),
        panels=[Panel("square", "Mean", "square", [Trace("square", "mean")])],
    )  # fmt: skip


NOW = mean_system("2")


def measured(system: System, directory: Path) -> Path:
    """Run a system without a report, and return the directory."""
    run_study(Study(system, {"samples": [4, 8]}, 2, preset=None), directory, workers=1)
    return directory


def drawn(lines: Lines) -> dict[str, int]:
    """Return the number of values of each kind of series."""
    return {series.kind: len(series.x) for series in lines.figures[0].series}


@pytest.mark.parametrize("version", ["1", "10"])
def test_a_run_of_another_version_has_predictions_of_this_one(tmp_path: Path, version: str) -> None:
    directory = measured(mean_system(version, scale=9.0), tmp_path / "run")
    found = run_of(NOW, directory)
    assert found is not None
    squares = [point.prediction["square"] for point in found.points]
    assert squares == pytest.approx([0.25, 0.125])
    square = solvable.load(directory, system=NOW).points[0].prediction["square"]
    assert square == pytest.approx(9 * 0.25)
    lines = theory_figures(NOW, {}, found)
    assert lines.left_out == 0
    assert drawn(lines)["points"] == 2


def test_a_run_without_todays_parameters_is_refused_in_one_line(tmp_path: Path) -> None:
    directory = measured(mean_system("1", parameters=Older), tmp_path / "run")
    with pytest.raises(StudyConflict, match=r"version 1 of mean made this run.*'bias'; allowed"):
        run_of(NOW, directory)
    # A parameter that this version has in addition is at its default.
    longer = mean_system("3", parameters=Older)
    lines = theory_figures(longer, {}, run_of(longer, measured(NOW, tmp_path / "other")))
    assert drawn(lines)["points"] == 2
    assert theory_figures(longer, {"bias": 0.7}, run_of(longer, tmp_path / "other")).left_out == 2


def test_a_run_in_a_newer_format_is_refused(tmp_path: Path) -> None:
    directory = measured(NOW, tmp_path / "run")
    store = sqlite3.connect(directory / "study.sqlite")
    store.execute("PRAGMA user_version = 99")
    store.close()
    with pytest.raises(StudyTooNew, match="from a newer checkout"):
        run_of(NOW, directory)


def test_a_run_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SolvableError, match="no such file"):
        run_of(NOW, tmp_path)
    with pytest.raises(SolvableError, match="no such file"):
        Run("given", tmp_path, NOW).result()


def test_a_run_of_another_system_with_a_hostile_name_is_refused_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    measured(NOW, Path(HOSTILE))
    assert main(["explore", "matrix-sensing", HOSTILE]) == 2
    error = capsys.readouterr().err
    assert "solvable explore mean '<img" in error
    assert error.count("\n") == 1
    assert "\x1b" not in error
    found = solvable.load(HOSTILE, system=NOW)
    assert run_of(NOW, found) is found
    pytest.importorskip("dash", reason="the extra 'explore' is not installed")
    from solvable.explore.app import Explorer

    explorer = Explorer(NOW, {}, Runs(NOW, tmp_path, found))
    (label,) = explorer.labels().values()
    explorer.close()
    assert "<img src=x" in label  # the browser test shows that the page draws it as text
    assert "\x1b" not in label


def test_a_run_ends_with_its_page(tmp_path: Path) -> None:
    program = (
        "import sys, time\n"
        "from pathlib import Path\n"
        "from solvable.explore.runs import Runs\n"
        "from solvable.frame.registry import load\n"
        "run = Runs(load('matrix-sensing'), Path(sys.argv[1])).start({'dimension': 150}, 100)\n"
        "print(run.process.pid, flush=True)\n"
        "time.sleep(100)\n"
    )
    page = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert page.stdout is not None
    with page.stdout as stream:
        place = Path("/proc") / stream.readline().strip()
    until = time.monotonic() + 60
    while not list(tmp_path.glob("*/study.sqlite")) and time.monotonic() < until:
        time.sleep(0.05)
    assert place.exists()
    page.kill()
    page.wait()
    while is_running(place) and time.monotonic() < until:
        time.sleep(0.05)
    ended = not is_running(place)
    if not ended:
        os.kill(int(place.name), signal.SIGKILL)
    assert ended


def is_running(place: Path) -> bool:
    """Return True for a process that has not ended; a zombie waits for a parent that reads it."""
    try:
        return "\nState:\tZ" not in (place / "status").read_text()
    except OSError:
        return False


def test_a_run_that_is_damaged_under_its_page_is_named(tmp_path: Path) -> None:
    directory = measured(NOW, tmp_path)
    run = Run("given", directory, NOW, _result=run_of(NOW, directory))
    assert run.progress()[2].startswith("4 of 4 tasks finished")
    (directory / "study.sqlite").write_bytes(b"no database" * 100)
    done, total, words = run.progress()
    assert (done, total) == (run._result.planned, run._result.planned)  # type: ignore[union-attr]
    assert words.startswith("The points shown were read before the run was damaged: ")
