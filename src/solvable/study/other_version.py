"""Verdicts and predictions of another version of the library, in its own interpreter."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from solvable.errors import InvalidParameter, quoted, shortened
from solvable.paths import printable

SCRIPT = """
import json, sys, tomllib
from importlib.metadata import version
from pathlib import Path
import solvable
from solvable.frame import registry
asked = json.load(sys.stdin)
system = registry.load(asked["system"])
found = []
for parameters in asked["points"]:
    try:
        found.append(system.predict(system.parameters(**parameters)))
    except Exception as error:
        found.append({"no prediction": f"{type(error).__name__}: {error}"})
plain = lambda value: value.tolist() if hasattr(value, "tolist") else str(value)
source = Path(solvable.__file__).parents[2] / "pyproject.toml"  # a checkout knows its own version
own = tomllib.loads(source.read_text())["project"]["version"] if source.is_file() else None
answer = {"version": own or version("solvable"), "file": solvable.__file__, "predictions": found}
print(json.dumps(answer, default=plain))
"""
"""Predicts the points of a run; needs nothing that a version of the library lacks."""

SECONDS = 600.0
"""Longest time of each of the two calls of the other interpreter."""


class OtherAnswer(NamedTuple):
    """Answers of another version."""

    label: str
    verdicts: list[Mapping[str, Any]]
    predictions: list[Mapping[str, Any]]


def interpreter(python: str | Path) -> str:
    """Return the absolute path of an interpreter, given by its path or by a name on PATH."""
    # a path loses its leading "./", so the working directory comes before PATH;
    # links stay, as the interpreter of an environment finds it by its own path
    found = shutil.which(os.path.abspath(python)) or shutil.which(str(python))
    if found is None:
        raise InvalidParameter(
            f"{quoted(str(python))} is no program that can be run; allowed: the Python interpreter of an "
            "environment with another version of solvable, such as other/bin/python."
        )
    return os.path.abspath(found)


def judged_by(
    python: str, directory: Path, system: str, points: Sequence[Mapping[str, Any]]
) -> OtherAnswer:
    """Judge a copy of a run with another interpreter, so that the run itself stays as it is."""
    with tempfile.TemporaryDirectory(prefix="solvable-compare-") as home:
        # the store without what is derived from it
        for name in ("study.sqlite", "study.sqlite-wal", "study.toml"):
            if (directory / name).exists():
                shutil.copy2(directory / name, Path(home) / name)
        asked = json.dumps({"system": system, "points": [dict(point) for point in points]})
        judged = _answer([python, "-m", "solvable", "verify", home, "--json"], "", home)
        answer = _answer([python, "-c", SCRIPT], asked, home)
    verdicts, predictions = _mappings(judged, "verdicts"), _mappings(answer, "predictions")
    if verdicts is None or not all(
        isinstance(row.get(name), str) for row in verdicts for name in ("claim", "status")
    ):
        raise _refusal(python, "no list of verdicts")
    if predictions is None or len(predictions) != len(points):
        raise _refusal(python, "no prediction for each point")
    import solvable

    label = f"other {printable(str(answer.get('version', '?')))}"
    if answer.get("file") == solvable.__file__:
        label += " (same files)"
    return OtherAnswer(label, verdicts, predictions)


def _mappings(answer: Mapping[str, Any], name: str) -> list[Mapping[str, Any]] | None:
    """Return a list of mappings of an answer; None if it is anything else."""
    rows = answer.get(name)
    good = isinstance(rows, list) and all(isinstance(row, dict) for row in rows)
    return rows if good else None


def _environment(home: str) -> tuple[dict[str, str], str]:
    """Return variables and working directory with which the other library is imported, not this one."""
    paths = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    kept = [path for path in paths if not (Path(path) / "solvable").is_dir()]
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(kept), "PYTHONIOENCODING": "utf-8"}
    variables.pop("PYTHONHOME", None)
    # Python imports from the working directory first
    return variables, home if Path("solvable").is_dir() else os.getcwd()


def _answer(words: Sequence[str], text: str, home: str) -> dict[str, Any]:
    """Return the JSON that a call of the other interpreter prints."""
    variables, place = _environment(home)
    try:
        process = subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
            env=variables,
            cwd=place,
            start_new_session=True,
        )
    except OSError as error:
        raise InvalidParameter(
            f"{quoted(words[0])} cannot be run ({error.strerror}); allowed: a Python interpreter."
        ) from error
    with process:
        try:
            printed, errors = process.communicate(text, timeout=SECONDS)
        except BaseException as error:
            _kill(process)
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            raise InvalidParameter(
                f"{quoted(words[0])} gave no answer in {SECONDS:g} seconds. Compare a run of fewer "
                "points."
            ) from None
    try:
        found = json.loads(printed)
    except ValueError:
        found = None
    if isinstance(found, dict):
        return found
    raise _refusal(words[0], f"{_reason(errors, printed)} (exit status {process.returncode})")


def _kill(process: subprocess.Popen[str]) -> None:
    """End the interpreter and what it started; a script that wraps it would else leave it running."""
    if hasattr(os, "killpg"):
        os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()


def _reason(errors: str, printed: str) -> str:
    """Return the message of the program, which may fill several lines, or the last line."""
    lines = printable(errors.strip() or printed.strip()).splitlines() or ["no output"]
    own = [place for place, words in enumerate(lines) if words.startswith("solvable: ")]
    return shortened(" ".join(lines[own[-1] :]).removeprefix("solvable: ") if own else lines[-1])


def _refusal(python: str, reason: str) -> InvalidParameter:
    return InvalidParameter(
        f"{quoted(python)} cannot judge this run: {reason}. It needs a version of solvable that reads "
        "the run and has its system."
    )
