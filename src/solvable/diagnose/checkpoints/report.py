"""Files of a series of checkpoints: page, numbers as JSON, and rows as CSV."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from solvable.answers.page import write_page
from solvable.answers.result_directory import RESULT, ResultDirectory
from solvable.data.weights.stored import Weights
from solvable.diagnose.checkpoints import view
from solvable.diagnose.checkpoints.history import DiagnosedCheckpoints
from solvable.diagnose.checkpoints.series import Series
from solvable.diagnose.report import reserved_directory, table_text
from solvable.paths import whole_directory
from solvable.plots.files import write_atomically

FORMAT = "solvable-checkpoints-1"  # marks a directory as a result of this program

REPORT, ROWS = "report.html", "rows.csv"

DIRECTORY = ResultDirectory("checkpoints", "weights", FORMAT, (REPORT, RESULT, ROWS))


def reserve(series: Series, output: Path | None, request: str) -> tuple[Path, str]:
    """Return the directory of the results and the fingerprint of files and request."""
    files = tuple(path for part in series.checkpoints for path in part.weights.files)
    labels = " ".join(part.label for part in series.checkpoints)
    whole = Weights(series.name, (), files)
    return reserved_directory(output, whole, None, f"{request} {labels}", DIRECTORY)


def write_files(
    found: DiagnosedCheckpoints, directory: Path, *, command: str, fingerprint: str
) -> tuple[dict[str, str], dict[str, Any]]:
    """Write page, numbers and rows; return their paths and the numbers."""
    content = {"format": FORMAT, "command": command, "fingerprint": fingerprint}
    content |= {"answer": view.answer(found)} | _finite(found.to_dict())
    with whole_directory(directory) as draft:
        # The JSON file marks the directory as ours if the program is stopped here.
        write_atomically(draft / RESULT, (json.dumps(content, allow_nan=False) + "\n").encode())
        write_atomically(draft / ROWS, table_text(view.rows(found)).encode())
        write_page(view.page(found, command), draft / REPORT)
    names = {"report": REPORT, "rows": ROWS, "result": RESULT}
    return {name: str(directory / file) for name, file in names.items()}, content


def _finite(value: Any) -> Any:
    """Replace numbers that JSON does not have by null."""
    if isinstance(value, dict):
        return {name: _finite(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
