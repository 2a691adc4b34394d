"""Table and files of ``solvable diagnose --quick``."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from solvable.data.weights.stored import Weights
from solvable.diagnose.quick_result import QuickRow
from solvable.pages.result_directory import RESULT, ResultDirectory
from solvable.paths import whole_directory
from solvable.plots import tables
from solvable.plots.files import write_atomically
from solvable.plots.numbers import MISSING, format_number
from solvable.plots.prose import Part, section
from solvable.plots.tables import Cell, Table
from solvable.plots.words import counted, listed

FORMAT = "solvable-quick-1"  # marks a directory as a result of this program

ROWS = "rows.csv"

DIRECTORY = ResultDirectory("quick", "weights", FORMAT, (ROWS, RESULT))

_NUMBERS = ("norm", "largest", "stable_rank", "edge", "beyond", "exponent")


def quick_text(weights: Weights, rows: Sequence[QuickRow], files: dict[str, str]) -> list[Part]:
    """Print a table of all measured matrices, and the reasons for missing numbers."""
    measured = [row for row in rows if row.norm is not None]
    table = Table(
        tables.Column("matrix", wrap=False),
        tables.Column("size", wrap=False),
        *(tables.Column(name.replace("_", " "), right=True, wrap=False) for name in _NUMBERS),
    )
    for row in measured:
        size = " x ".join(map(str, row.shape))
        table.add(row.name, size, *(_cell(getattr(row, name)) for name in _NUMBERS))
    text = (
        f"{weights.name}: {counted(len(measured), 'matrix', 'matrices')} measured, nothing tested."
    )
    parts: list[Part] = [Cell(text, "bold")]
    if measured:
        legend = (
            "largest: largest singular value; edge: upper edge of a bulk of noise, if one fits; beyond: "
            "singular values above it; exponent: power law of the largest squared singular values, if no "
            "bulk fits. Neither was tested against other laws: without --quick they are."
        )
        parts += ["", table, "", Cell(legend, "dim")]
    answers = {
        "How were the weights read?": list(weights.notes),
        "Which numbers are missing?": _reasons(rows),
    }
    for title, sentences in answers.items():
        parts += section(title, sentences, single=True) if sentences else []
    return [*parts, "", *(f"{name:<8} {path}" for name, path in files.items())]


def _cell(value: float | None) -> str:
    return MISSING if value is None else format_number(value, 3)


def _reasons(rows: Sequence[QuickRow]) -> list[str]:
    reasons: dict[str, list[str]] = {}
    for row in rows:
        if row.reason:
            reasons.setdefault(row.reason, []).append(row.name)
    return [f"{listed(names)}: {reason}" for reason, names in reasons.items()]


def write_quick(
    weights: Weights, rows: Sequence[QuickRow], directory: Path, fingerprint: str, seconds: float
) -> tuple[dict[str, str], dict[str, Any]]:
    """Write the rows as CSV and JSON; return the paths and the content."""
    content = {
        "format": FORMAT,
        "fingerprint": fingerprint,
        "file": weights.name,
        "seconds": seconds,
        "notes": list(weights.notes),
        "matrices": [row.to_dict() for row in rows],
    }
    stream = io.StringIO()
    names = ["name", "shape", "dtype", *_NUMBERS, "n_tail", "reason"]
    writer = csv.DictWriter(stream, names, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow(row.to_dict() | {"shape": "x".join(map(str, row.shape))})
    with whole_directory(directory) as draft:
        write_atomically(draft / RESULT, (json.dumps(content, allow_nan=False) + "\n").encode())
        write_atomically(draft / ROWS, stream.getvalue().encode())
    return {"rows": str(directory / ROWS), "result": str(directory / RESULT)}, content
