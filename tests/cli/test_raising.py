"""A system whose code raises in every place, in real processes: each error loses only its own row."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from collections import Counter

import pytest

SYSTEM = '''\
"""A system with an error in each kind of its functions."""

from __future__ import annotations

import os

from solvable.plots.figure import Region
from solvable.systems.base import (
    Agreement, Axis, Claim, Figure, Finding, Panel, Parameters, Series, System, Trace,
)


class FragileParameters(Parameters):
    samples: int = 10
    """Number n of samples."""
    kind: str = "plain"
    """Kind of the target."""


def measure(parameters, rng):
    if parameters.kind == "lost" and rng.random() < 0.5 and "FIXED" not in os.environ:
        raise ArithmeticError("a replicate was lost\\nsecond line")
    return {"error": 0.5 + 0.01 * rng.standard_normal()}


def predict(parameters):
    return {"error": 0.5 / (parameters.samples != 20)}


def broken(points):
    return Finding([][len(points)], 1.0, 0.1)


def panel(curves):
    raise RuntimeError("\\x1b[31mno panel\\x1b[0m\\nsecond line")


def polygon(curves):
    line = Series("s", [1, 2], [1, 2])
    return [Figure("polygon", "T", "x", "y", [line], regions=[Region("r", ["no corners"])])]


system = System(
    name="fragile", title="A fragile system", version="1", parameters=FragileParameters,
    measure=measure, predict=predict, axis=Axis("samples", "samples n"),
    claims=[
        Claim("broken", "It is so.", "derived", "Noise.", broken),
        Agreement("error", "The error is predicted.", metric="error", source="derived", within=0.02,
                  because="Noise."),
    ],
    panels=[panel, polygon, Panel("error", "Errors", "error", [Trace("error")])],
)
'''

STUDY = ("run", "fragile", "--preset", "none", "--seeds", "8", "--workers", "1")
RAISED = "ZeroDivisionError: float division by zero"


@pytest.fixture(scope="module")
def fragile(terminal_in, forks, tmp_path_factory):
    """Return a terminal where the system is installed, with the output of `run --json`."""
    site = tmp_path_factory.mktemp("fragile")
    (site / "fragile_system.py").write_text(SYSTEM)
    info = site / "fragile_system-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: fragile-system\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[solvable.systems]\nfragile = fragile_system:system\n")
    terminal = terminal_in.func(forks, site, tmp_path_factory.mktemp("here"))
    words = (*STUDY, "--set", "samples=10,20,40", "kind=plain,lost", "--output", "run", "--json")
    terminal.answer = terminal(*words)
    return terminal


def errors_of(answer):
    """Return part, name and text of each error in the JSON output."""
    return [(one["part"], one["name"], one["error"]) for one in json.loads(answer)["errors"]]


def test_a_run_judges_draws_and_writes_what_did_not_raise(fragile):
    answer = fragile.answer
    assert answer.returncode == 1, answer.stderr
    assert "Traceback" not in answer.stderr
    assert "\x1b" not in answer.stderr
    told = json.loads(answer.stdout)
    assert {one["claim"]: one["status"] for one in told["verdicts"]} == {
        "broken": "error",
        "error": "holds",
    }
    assert told["verdicts"][0]["reason"] == "IndexError: list index out of range"
    kept = [one["parameters"]["kind"] for one in told["records"]]
    lost = 48 - len(kept)
    assert kept.count("plain") == 24
    assert 0 < lost < 24
    assert (
        f"{lost} of 48 tasks raised an error; the same run command tries them again"
        in answer.stderr
    )
    errors = errors_of(answer.stdout)
    assert [one[0] for one in errors].count("task") == lost
    assert [one[0] for one in errors].count("prediction") == 2
    assert ("claim", "broken", "IndexError: list index out of range") in errors
    assert ("panel", "panel", "RuntimeError: no panel") in errors
    # This error appears only in the drawing library.
    assert [one for one in errors if one[:2] == ("panel", "polygon")]
    assert [part for part, *_ in errors].count("theory line") == 2
    page = (fragile.cwd / "run" / "report.html").read_text("utf-8")
    for text in (RAISED, "RuntimeError: no panel", "IndexError: list index", 'data-status="error"'):
        assert text in page
    drawn = {path.name for path in (fragile.cwd / "run" / "figures").glob("*.svg")}
    assert drawn == {"panel.svg", "polygon.svg", "error-kind-plain.svg", "error-kind-lost.svg"}
    rows = list(csv.DictReader((fragile.cwd / "run" / "records.csv").read_text().splitlines()))
    assert len(rows) == len(kept)
    assert {row["predicted.no prediction"] for row in rows} == {"", f"error: {RAISED}"}


def test_verify_and_report_carry_the_errors(fragile):
    verified = fragile("verify", "run", "--power")
    assert verified.returncode == 1
    assert "Traceback" not in verified.stderr
    assert "error: broken: IndexError: list index out of range" in verified.stdout
    assert "1 claim holds, 0 fail; 1 raised an error." in verified.stdout
    assert f"2 failed: {RAISED}" in verified.stderr
    verified = fragile("verify", "run", "--power", "--json")
    drawn = ("panel", "theory line")
    judged = [one for one in errors_of(fragile.answer.stdout) if one[0] not in drawn]
    assert Counter(errors_of(verified.stdout)) == Counter(judged)
    assert [row["status"] for row in json.loads(verified.stdout)["power"]] == ["error", "holds"]
    made = fragile("report", "run", "--json")
    assert made.returncode == 1
    assert Counter(errors_of(made.stdout)) == Counter(errors_of(fragile.answer.stdout))
    assert "claim broken raised IndexError" in made.stderr


def test_tasks_that_raised_run_again_and_alone(fragile):
    words = (*STUDY, "--set", "samples=10,20,40", "kind=plain,lost", "--output", "run", "--json")
    environment = fragile.environment | {"FIXED": "1"}
    again = subprocess.run(
        [sys.executable, "-m", "solvable", *words],
        cwd=fragile.cwd, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    before, after = json.loads(fragile.answer.stdout), json.loads(again.stdout)
    assert len(after["records"]) == 48
    assert {one["task"]: one["metrics"] for one in before["records"]}.items() <= {
        one["task"]: one["metrics"] for one in after["records"]
    }.items()
    assert "task" not in {one["part"] for one in after["errors"]}


def test_theory_prints_the_other_points(fragile):
    answer = fragile("theory", "fragile", "--set", "samples=10,20,40")
    assert answer.returncode == 1
    assert f"error: {RAISED}" in answer.stdout
    assert "1 of 3 predictions raised an error" in answer.stderr
    told = json.loads(fragile("theory", "fragile", "--set", "samples=10,20", "--json").stdout)
    assert told[0]["prediction"] == pytest.approx({"error": 0.5})
    assert told[1]["prediction"] == {"no prediction": f"error: {RAISED}"}
    alone = fragile("theory", "fragile", "--set", "samples=20")
    assert alone.returncode == 1
    assert f"error: {RAISED}" in alone.stdout
