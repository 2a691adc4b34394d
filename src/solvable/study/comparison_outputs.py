"""Files of a comparison: report, figures, differences as CSV."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path
from typing import NamedTuple

from solvable.answers.page import write_page
from solvable.answers.result_directory import RESULT, ResultDirectory
from solvable.paths import whole_directory
from solvable.plots.csv_text import csv_text
from solvable.plots.figure import Figure
from solvable.plots.files import Pictures, try_all, write_atomically, write_figures
from solvable.plots.frames import flat_rows
from solvable.study.compare import Comparison, rows
from solvable.study.comparison_answer import answer
from solvable.study.comparison_figures import overlaid, single
from solvable.study.differences import Difference

REPORT, FIGURES, DIFFERENCES = "report.html", "figures", "comparison.csv"
FORMAT = "solvable-compare-1"  # mark of a directory of `solvable compare`

NAMES = [one.name for one in fields(Difference) if one.name != "parameters"]
"""Columns of the CSV file, before those of parameters."""

DIRECTORY = ResultDirectory("compare", "runs", FORMAT, (RESULT, REPORT, FIGURES, DIFFERENCES))
"""Output directory, with checks that it may be replaced."""


class ComparisonFiles(NamedTuple):
    """Paths of the files that were written."""

    report: Path
    differences: Path
    figures: list[Path]


def fingerprint(directories: Iterable[Path]) -> str:
    """Identify the compared runs by their directories, in order."""
    names = "\n".join(str(path.resolve()) for path in directories)
    return hashlib.sha256(names.encode("utf-8", "surrogateescape")).hexdigest()


def write_comparison(found: Comparison, directory: Path) -> ComparisonFiles:
    """Write the files of a comparison; they appear in one step, and replace those of the same runs."""
    mark = fingerprint(result.directory for result in found.results)
    DIRECTORY.reserve(directory, mark)
    figures, drawn, notes = _pictured(found)
    with whole_directory(directory) as draft:
        # The result is written first: it marks the directory if the program is stopped here.
        content = {
            "format": FORMAT,
            "fingerprint": mark,
            "runs": [
                {"label": label, "directory": str(result.directory)}
                for label, result in zip(found.labels, found.results, strict=True)
            ],
            "broken": [{"claim": claim, "run": run} for claim, run in found.broken],
        }
        write_atomically(draft / RESULT, (json.dumps(content, indent=2) + "\n").encode())
        table = flat_rows(rows(found), arrays=True)
        names = list(dict.fromkeys([*NAMES, *(name for row in table for name in row)]))
        text = csv_text(names, ([row.get(name) for name in names] for row in table))
        write_atomically(draft / DIFFERENCES, text.encode())
        written = write_figures(figures, draft / FIGURES, drawn=drawn)
        pictures = {figure.name: made for figure, made in zip(figures, drawn, strict=True)}
        write_page(answer(found, figures, notes), draft / REPORT, drawn=pictures)
    moved = [directory / path.relative_to(draft) for path in written]
    return ComparisonFiles(directory / REPORT, directory / DIFFERENCES, moved)


def _pictured(found: Comparison) -> tuple[list[Figure], list[Pictures], list[str]]:
    """Draw the figures; return them with a sentence for each that is missing."""
    notes = [
        f"{label}: {fault.part} {fault.name} raised an error: {fault.error}"
        for label, result in zip(found.labels, found.results, strict=True)
        for fault in result.faults
    ]
    lonely = single(found.labels, found.results)
    notes += [f"Only {run} has the figure: {title}" for run, title in lonely]
    figures, drawn = [], []
    wanted = overlaid(found.labels, found.results)
    for figure, made in zip(wanted, try_all(wanted), strict=True):
        if isinstance(made, str):
            notes.append(f"{figure.title} could not be drawn: {made}")
        else:
            figures.append(figure)
            drawn.append(made)
    return figures, drawn, notes
