"""The files of a directory that ``solvable diagnose`` writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from solvable.errors import InvalidData
from solvable.study.result_directory import RESULT, ResultDirectory

if TYPE_CHECKING:
    from solvable.diagnose.result import Diagnosed

REPORT = "report.html"

FORMAT = "solvable-diagnose-1"
"""Mark of a result of ours."""

DIRECTORY = ResultDirectory("diagnose", "weights", FORMAT, (REPORT, RESULT))
"""Where results go."""


class DiagnoseFiles(NamedTuple):
    """Files that were written.

    Parameters
    ----------
    report, result : Path
        The page and the numbers.
    """

    report: Path
    result: Path

    def to_dict(self) -> dict[str, str]:
        """Paths as text."""
        return {name: str(path) for name, path in self._asdict().items()}


def fingerprint_of(weights: Path, initial: Path | None, seed: int) -> str:
    """Fingerprint of the files and the request.

    Parameters
    ----------
    weights, initial : Path or None
        Files; their content counts, not their names.
    seed : int
        Of the bootstraps.

    Returns
    -------
    str
        Of 64 letters.

    Raises
    ------
    InvalidData
        If a file cannot be read.
    """
    import hashlib

    total = hashlib.sha256(f"{FORMAT} {seed}".encode())
    for path in (weights, initial):
        if path is None:
            continue
        try:
            with path.open("rb") as stream:
                total.update(hashlib.file_digest(stream, "sha256").digest())
        except OSError as error:
            raise InvalidData(
                f"{path} cannot be read ({error.strerror or error}); pass a file of weights."
            ) from error
    return total.hexdigest()


def content_of(found: Diagnosed, *, command: str, fingerprint: str) -> dict[str, Any]:
    """Everything that was found, for JSON.

    Parameters
    ----------
    found : Diagnosed
        Result.
    command : str
        What repeats it.
    fingerprint : str
        Of :func:`fingerprint_of`.

    Returns
    -------
    dict
        With a row per matrix under ``matrices``.
    """
    from solvable.diagnose import words

    return {
        "format": FORMAT,
        "command": command,
        "fingerprint": fingerprint,
        "file": found.name,
        "initial": found.initial or None,
        "seed": found.seed,
        "complete": found.complete,
        "seconds": found.seconds,
        "versions": dict(found.versions),
        "phases": {phase.name: len(rows) for phase, rows in words.counts(found)},
        "not_fitted": len(found.refused),
        "matrices": [one.to_dict() for one in found.matrices],
        "vectors": [{"name": one.name, "shape": list(one.shape)} for one in found.vectors],
    }


def write_files(found: Diagnosed, content: dict[str, Any], directory: Path) -> DiagnoseFiles:
    """Write the numbers and the page.

    Parameters
    ----------
    found : Diagnosed
        Result.
    content : dict
        Of :func:`content_of`.
    directory : Path
        Reserved by :data:`DIRECTORY`.

    Returns
    -------
    DiagnoseFiles
        The files.

    Raises
    ------
    StorageFailed
        If one cannot be written.
    """
    from solvable.diagnose.html import render_diagnose_report
    from solvable.plots.files import write_atomically

    files = DiagnoseFiles(directory / REPORT, directory / RESULT)
    # The numbers first: they mark the directory as ours if the page should fail.
    write_atomically(files.result, (json.dumps(content, allow_nan=False) + "\n").encode())
    render_diagnose_report(found, files.report, command=content["command"])
    return files
