"""Verdicts and predictions of another version of the library, in its own interpreter."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from solvable.errors import InvalidParameter, quoted, shortened
from solvable.paths import printable

SCRIPT = """
import json, sys
from importlib.metadata import version
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
print(json.dumps({"version": version("solvable"), "predictions": found}, default=plain))
"""
"""Predicts the points of a run; needs nothing that a version of the library lacks."""


class OtherAnswer(NamedTuple):
    """Answers of another version."""

    version: str
    verdicts: list[Mapping[str, Any]]
    predictions: list[Mapping[str, Any] | None]


def judged_by(
    python: str | Path, directory: Path, system: str, points: Sequence[Mapping[str, Any]]
) -> OtherAnswer:
    """Judge a copy of a run with another interpreter, so that the run itself stays as it is."""
    found = shutil.which(str(python))
    if found is None:
        raise InvalidParameter(
            f"{quoted(str(python))} is no program that can be run; allowed: the Python interpreter of an "
            "environment with another version of solvable, such as other/bin/python."
        )
    with tempfile.TemporaryDirectory(prefix="solvable-compare-") as home:
        # the store without what is derived from it
        for name in ("study.sqlite", "study.sqlite-wal", "study.toml"):
            if (directory / name).exists():
                shutil.copy2(directory / name, Path(home) / name)
        words = [found, "-m", "solvable", "verify", home, "--json"]
        verdicts = _answer(words, "", python, "verdicts")["verdicts"]
    asked = json.dumps({"system": system, "points": [dict(point) for point in points]})
    answer = _answer([found, "-c", SCRIPT], asked, python, "predictions")
    return OtherAnswer(str(answer.get("version", "?")), verdicts, answer["predictions"])


def _answer(words: Sequence[str], text: str, python: str | Path, key: str) -> dict[str, Any]:
    """Return the JSON that a call of the other interpreter prints."""
    seconds = 600
    try:
        done = subprocess.run(
            words, input=text, capture_output=True, text=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        raise InvalidParameter(
            f"{quoted(str(python))} gave no answer in {seconds} seconds. Compare a run of fewer points."
        ) from None
    except OSError as error:
        raise InvalidParameter(
            f"{quoted(str(python))} cannot be run ({error.strerror}); allowed: a Python interpreter."
        ) from error
    try:
        found = json.loads(done.stdout)
        if isinstance(found[key], list):
            return dict(found)
    except (ValueError, KeyError, TypeError):
        pass
    lines = printable(done.stderr.strip() or done.stdout.strip()).splitlines() or ["no output"]
    raise InvalidParameter(
        f"{quoted(str(python))} cannot judge this run: {shortened(lines[-1])} (exit status "
        f"{done.returncode}). It needs a version of solvable that reads the run and has its system."
    )
