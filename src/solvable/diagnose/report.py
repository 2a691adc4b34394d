"""Output files of ``solvable diagnose``: all numbers as JSON, and a self-contained HTML page."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple

from solvable.answers.page import write_page
from solvable.answers.result_directory import RESULT, ResultDirectory
from solvable.data.weights.stored import Weights
from solvable.diagnose import view, words
from solvable.diagnose.attention import words as attention
from solvable.diagnose.change_factors import FOLDER, write_adapter
from solvable.diagnose.diagnosed import Diagnosed
from solvable.errors import InvalidData
from solvable.paths import whole_directory
from solvable.plots.csv_text import csv_text
from solvable.plots.files import write_atomically

REPORT, ROWS = "report.html", "rows.csv"

FORMAT = "solvable-diagnose-1"  # file name that marks a directory as a result of this program

DIRECTORY = ResultDirectory(
    "diagnose", "weights", FORMAT, (REPORT, RESULT, ROWS, FOLDER)
)  # directory of the results


class DiagnoseFiles(NamedTuple):
    """Paths of the files that were written."""

    report: Path  # HTML page
    result: Path  # JSON file with the numbers
    rows: Path  # CSV file with a row per matrix

    def to_dict(self) -> dict[str, str]:
        """Return the paths as text."""
        return {name: str(path) for name, path in self._asdict().items()}


def reserved_directory(
    directory: Path | None,
    weights: Weights,
    initial: Weights | None,
    request: str,
    kind: ResultDirectory = DIRECTORY,
) -> tuple[Path, str]:
    """Return the directory of the results (default: named after the file) and the fingerprint."""
    total = hashlib.sha256(f"{kind.format} {request}".encode())
    for path in (*weights.files, *(initial.files if initial else ())):
        try:
            with path.open("rb") as stream:
                total.update(hashlib.file_digest(stream, "sha256").digest())
        except OSError as error:
            raise InvalidData(
                f"{path} cannot be read ({error.strerror or error}); pass a file of weights."
            ) from error
    fingerprint = total.hexdigest()
    directory = directory or kind.default(weights.name, fingerprint)
    kind.reserve(directory, fingerprint)
    return directory, fingerprint


def content_of(found: Diagnosed, *, command: str, fingerprint: str) -> dict[str, Any]:
    """Return all results as plain values for JSON."""
    return {
        "format": FORMAT,
        "command": command,
        "fingerprint": fingerprint,
        "file": found.name,
        "initial": found.initial or None,
        "seed": found.seed,
        "complete": found.complete,
        "quick": found.quick,
        "alarms": words.alarms(found),
        "seconds": found.seconds,
        "versions": dict(found.versions),
        "phases": {phase.name: len(rows) for phase, rows in words.counts(found)},
        "not_fitted": len(found.refused),
        "matrices": [row.to_dict() for row in found.matrices],
        "heads": [row.to_dict() for row in found.heads],
        "needed_ranks": None if found.needed is None else asdict(found.needed),
        "attention": attention.sentences(found),
        "integers": [row.name for row in found.integers],
        "notes": list(found.notes),
        "vectors": [{"name": row.name, "shape": list(row.shape)} for row in found.vectors],
    }


def write_files(
    found: Diagnosed,
    directory: Path,
    *,
    command: str,
    fingerprint: str,
    changed: tuple[Weights, Weights] | None = None,
) -> tuple[DiagnoseFiles, dict[str, Any]]:
    """Write the numbers and the page, and an adapter of changed weights; return files and numbers."""
    with whole_directory(directory) as draft:
        if changed:
            found = replace(found, notes=(*found.notes, *write_adapter(*changed, draft)))
        content = content_of(found, command=command, fingerprint=fingerprint)
        # The JSON file is written first: if the program is killed here, it marks the directory as ours.
        write_atomically(draft / RESULT, (json.dumps(content, allow_nan=False) + "\n").encode())
        write_atomically(draft / ROWS, table_text(view.rows(found)).encode())
        write_page(view.page(found, command), draft / REPORT)
    return DiagnoseFiles(*(directory / name for name in (REPORT, RESULT, ROWS))), content


def table_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """Write records as CSV; names of arrays come from files and must not run as formulas."""
    return csv_text(rows[0] if rows else ["matrix"], (row.values() for row in rows))
