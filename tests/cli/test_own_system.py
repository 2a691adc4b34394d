from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PACKAGE = HERE / "own_system_package"
PAGE = HERE.parents[1] / "docs" / "how-to-own-system.md"


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """An environment with the package of the how-to page installed by pip, without network."""
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


def solvable(environment, cwd, *words):
    return subprocess.run(
        [sys.executable, "-m", "solvable", *words],
        env=environment,
        cwd=cwd,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )


def test_a_system_of_another_package_is_a_first_class_citizen(installed, tmp_path):
    listed = solvable(installed, tmp_path, "list", "--json")
    assert {
        "name": "spiked-covariance",
        "title": "Principal components of a spiked covariance",
        "package": "spiked-covariance 1.0",
    } in json.loads(listed.stdout)["systems"]

    run = solvable(installed, tmp_path, "run", "spiked-covariance", "--output", "run", "--json")
    assert run.returncode == 0, run.stderr
    told = json.loads(run.stdout)
    assert [one["status"] for one in told["verdicts"]] == ["holds"]
    assert len(told["records"]) == 6 * 8
    assert (tmp_path / "run" / "figures" / "overlap.svg").exists()
    assert "spiked covariance" in (tmp_path / "run" / "report.html").read_text()

    theory = solvable(installed, tmp_path, "theory", "spiked-covariance", "--json")
    # At g = d / n = 1/2 and s = 1: (1 - 1/2) / (1 + 1/2).
    assert json.loads(theory.stdout)["prediction"]["squared_overlap"] == pytest.approx(1 / 3)
    assert "baik2005" in solvable(installed, tmp_path, "cite", "spiked-covariance").stdout


@pytest.mark.parametrize(
    ("language", "name"), [("python", "spiked_covariance.py"), ("toml", "pyproject.toml")]
)
def test_the_page_shows_the_package(language, name):
    blocks = re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text("utf-8"), re.M | re.S)
    assert (PACKAGE / name).read_text("utf-8") in blocks


def test_the_page_shows_what_the_program_prints(installed, tmp_path):
    """Each console block of the page: the commands work, and print the lines shown."""
    sessions = re.findall(r"^```console\n(.*?)^```$", PAGE.read_text("utf-8"), re.M | re.S)
    shown = [line for session in sessions for line in session.splitlines()]
    theory = shown.index("$ solvable theory spiked-covariance")
    expected = []
    for line in shown[theory + 1 :]:
        if line.startswith("$"):
            break
        expected.append(line)
    printed = solvable(installed, tmp_path, "theory", "spiked-covariance").stdout
    assert printed.strip().splitlines() == expected
