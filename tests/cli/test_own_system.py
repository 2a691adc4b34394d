from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from solvable.study import Study, run_study

HERE = Path(__file__).parent
PACKAGE = HERE / "own_system_package"
PAGE = HERE.parents[1] / "docs" / "how-to-own-system.md"


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Return an environment in which pip installed the package of the how-to page, without network."""
    source = tmp_path_factory.mktemp("source") / "package"
    shutil.copytree(PACKAGE, source, ignore=shutil.ignore_patterns("__pycache__"))
    target = tmp_path_factory.mktemp("target")
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps",
         "--no-build-isolation", "--disable-pip-version-check", "--target", target, source],
        check=True,
        timeout=120,
    )  # fmt: skip
    path = os.pathsep.join(filter(None, (str(target), os.environ.get("PYTHONPATH"))))
    return os.environ | {"PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1"}


@pytest.fixture
def solvable(forks, installed, tmp_path):
    """Return a function that runs the program where the package is installed."""

    def call(*words):
        environment = {name: value for name, value in installed.items() if name != "COLUMNS"}
        return forks.run([*words], tmp_path, environment, timeout=120)

    return call


def test_a_system_of_another_package_is_a_first_class_citizen(solvable, installed, tmp_path):
    listed = subprocess.run(
        [sys.executable, "-m", "solvable", "list", "--json"],
        env=installed,
        capture_output=True,
        text=True,
        check=True,
    )
    assert {
        "name": "spiked-covariance",
        "title": "Principal components of a spiked covariance",
        "package": "spiked-covariance 1.0",
    } in json.loads(listed.stdout)["systems"]

    words = ("spiked-covariance", "--output", "run", "--workers", "1", "--json")
    run = solvable("run", *words)
    assert run.returncode == 0, run.stderr
    told = json.loads(run.stdout)
    assert [one["status"] for one in told["verdicts"]] == ["holds"]
    assert len(told["records"]) == 6 * 20
    assert (tmp_path / "run" / "figures" / "overlap.svg").exists()
    assert "spiked covariance" in (tmp_path / "run" / "report.html").read_text()

    theory = solvable("theory", "spiked-covariance", "--json")
    # At g = d / n = 1/2 and s = 1: (1 - 1/2) / (1 + 1/2).
    assert json.loads(theory.stdout)["prediction"]["squared_overlap"] == pytest.approx(1 / 3)
    assert "baik2005" in solvable("cite", "spiked-covariance").stdout


@pytest.mark.parametrize(
    ("language", "name"), [("python", "spiked_covariance.py"), ("toml", "pyproject.toml")]
)
def test_the_page_shows_the_package(language, name):
    assert (PACKAGE / name).read_text("utf-8") in blocks(language)


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text("utf-8"), re.M | re.S)


def shown_after(command):
    """Return the lines that the page shows below a command."""
    (session,) = blocks("console")
    below = session.split(f"$ {command}\n")[1]
    return below.split("\n$ ")[0].strip("\n").splitlines()


@pytest.mark.parametrize("command", ["theory", "run"])
def test_the_page_shows_what_the_program_prints(solvable, command):
    # One worker prints the same text without further processes.
    workers = ["--workers", "1"] if command == "run" else []
    printed = solvable(command, "spiked-covariance", *workers).stdout
    shown = shown_after(f"solvable {command} spiked-covariance")
    # Builds of LAPACK may differ in the last digits of eigenvectors: compare three digits.
    assert [words(line) for line in printed.strip("\n").splitlines()] == [words(x) for x in shown]


def words(line):
    return re.sub(r"(\d\.\d\d)\d+", r"\1", line).split()


def test_the_page_runs_without_installing(tmp_path):
    code = next(one for one in blocks("python") if "run_study" in one)
    shutil.copy(PACKAGE / "spiked_covariance.py", tmp_path)
    answer = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert answer.stdout.startswith("overlap-above-threshold holds"), answer.stderr


@pytest.mark.slow
def test_a_right_theory_passes_its_own_verdict_in_99_of_100_seeds(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(PACKAGE))
    system = import_module("spiked_covariance").system
    statuses = []
    for seed in range(100):
        study = Study(system, system.presets["quick"].grid, replicates=20, seed=seed)
        statuses.append(run_study(study, tmp_path / str(seed), workers=1).verdicts[0].status)
    assert statuses.count("holds") >= 99
