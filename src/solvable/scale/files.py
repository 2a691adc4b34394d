"""Files that ``solvable scale`` writes: the answer as JSON, and pictures."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from solvable.answers.result_directory import RESULT, ResultDirectory
from solvable.paths import whole_directory
from solvable.plots.figure import Figure
from solvable.plots.files import draw_all, write_atomically, write_figures

FORMAT = "solvable-scale-2"  # marks a file as a result of this command

FIGURES = tuple(
    f"{name}.{kind}"
    for name in ("phase-diagram", "phase-line", "coordinates", "coordinates-corrected")
    for kind in ("svg", "pdf")
)

DIRECTORY = ResultDirectory("scale", "network", FORMAT, (RESULT, *FIGURES))


def write_files(
    answer: Mapping[str, Any],
    figures: Sequence[Figure],
    directory: Path | None,
    *,
    title: str,
    command: str,
    request: Sequence[object],
) -> list[Path]:
    """Write the numbers and the pictures; the default directory is named after title and request."""
    fingerprint = hashlib.sha256(f"{FORMAT} {tuple(request)!r}".encode()).hexdigest()
    directory = directory or DIRECTORY.default(title, fingerprint)
    DIRECTORY.check(directory, fingerprint)
    head = {"format": FORMAT, "command": command, "fingerprint": fingerprint}
    content = {**head, "version": version("solvable"), **answer}
    with whole_directory(directory) as draft:
        # The numbers are written first, because their file marks the directory if drawing fails.
        text = json.dumps(content, allow_nan=False) + "\n"
        write_atomically(draft / RESULT, text.encode())
        pictures = write_figures(figures, draft, drawn=draw_all(figures))
    return [directory / RESULT, *(directory / path.relative_to(draft) for path in pictures)]
