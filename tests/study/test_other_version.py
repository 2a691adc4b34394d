"""Interpreters with another version of the library, and those that give no answer."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import sys
import time
from pathlib import Path

import pytest

import solvable
from solvable.errors import InvalidParameter
from solvable.study import other_version
from solvable.study.comparison_versions import Judgement, Shift, VersionComparison, tables
from solvable.study.results import load


def script(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    home = tmp_path_factory.mktemp("other")
    stored = Path(__file__).parents[1] / "stored" / "quadratic-network.sqlite.gz"
    (home / "study.sqlite").write_bytes(gzip.decompress(stored.read_bytes()))
    return load(home)


def judged(run, python):
    points = [dict(point.parameters) for point in run.points]
    return other_version.judged_by(str(python), run.directory, run.system.name, points)


def test_a_script_that_hangs_is_ended_with_what_it_started(run, tmp_path, monkeypatch):
    monkeypatch.setattr(other_version, "SECONDS", 0.5)
    # without `exec`: the shell waits for a program that keeps the output open
    python = script(tmp_path / "python", f"sleep 60 & echo $! > {tmp_path}/pid; wait")
    start = time.monotonic()
    with pytest.raises(InvalidParameter, match=r"no answer in 0.5 seconds"):
        judged(run, python)
    assert time.monotonic() - start < 30
    pid = int((tmp_path / "pid").read_text())
    for _ in range(100):
        state = Path(f"/proc/{pid}/stat")
        if not state.exists() or " Z " in state.read_text():
            break
        time.sleep(0.05)
    else:
        pytest.fail("the program that the script started still runs")


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({"verdicts": [1]}, "no list of verdicts"),
        ({"verdicts": [{"claim": "rank"}]}, "no list of verdicts"),
        ({"verdicts": [], "predictions": []}, "no prediction for each point"),
        ({"verdicts": [], "predictions": [1]}, "no prediction for each point"),
    ],
)
def test_json_of_another_form_is_refused(run, tmp_path, answer, message):
    python = script(tmp_path / "python", f"cat <<'END'\n{json.dumps(answer)}\nEND")
    with pytest.raises(InvalidParameter, match=message):
        judged(run, python)


def test_a_message_of_several_lines_is_whole(run, tmp_path):
    python = script(
        tmp_path / "python",
        "echo 'warning' >&2; echo 'solvable: the run is too new' >&2; echo 'for it.' >&2; exit 2",
    )
    with pytest.raises(InvalidParameter, match=r"this run: the run is too new for it"):
        judged(run, python)


def test_the_installed_library_does_not_leak_into_the_other(run, tmp_path, monkeypatch):
    source = Path(solvable.__file__).parents[1]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(source), str(tmp_path)]))
    monkeypatch.chdir(source)  # a directory with solvable/
    python = script(tmp_path / "python", 'echo "$PYTHONPATH in $(pwd)" >&2; exit 1')
    with pytest.raises(InvalidParameter) as caught:
        judged(run, python)
    assert str(source) not in str(caught.value)
    assert str(tmp_path) in str(caught.value)


def test_paths_of_interpreters(tmp_path, monkeypatch):
    script(tmp_path / "mine", "true")
    monkeypatch.chdir(tmp_path)
    assert other_version.interpreter(Path("./mine")) == str(tmp_path / "mine")
    assert other_version.interpreter("sh") == shutil.which("sh")
    # the link itself: Python finds its environment by it
    (tmp_path / "link").symlink_to(sys.executable)
    assert other_version.interpreter("link") == str(tmp_path / "link")


def test_what_one_version_lacks_is_counted_below_what_moved(run):
    shifts = (Shift({}, "rank", 1.0, 3.0, 2.0, -1.5), Shift({}, "new", None, 1.0, None, None))
    before = Judgement("old", [], [{"no prediction": "TypeError: [red]\x1b[2J"}])
    after = Judgement("now", [], [{"rank": 3.0}])
    found = VersionComparison(run, before, after, shifts)
    assert [table.title for table in tables(found)][:3] == [
        "Verdicts",
        "Predictions that differ",
        "Added or gone",
    ]
    text = found._repr_html_()
    assert "+200 %" in text
    assert "TypeError: [red]" in text
    assert "\x1b" not in text
