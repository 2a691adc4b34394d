"""The files of a directory that ``solvable diagnose`` writes."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from solvable.errors import InvalidData, InvalidParameter, StorageFailed, StudyConflict

if TYPE_CHECKING:
    from solvable.report.diagnose_result import Diagnosed

REPORT = "report.html"
RESULT = "result.json"

FORMAT = "solvable-diagnose-1"
"""Mark of a result of ours."""


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


def default_directory(name: str, fingerprint: str) -> Path:
    """Where results go unless said otherwise.

    Parameters
    ----------
    name : str
        File of weights.
    fingerprint : str
        Of :func:`fingerprint_of`.

    Returns
    -------
    Path
        Another one for other weights or another request.

    Examples
    --------
    >>> default_directory("models/my model.safetensors", "0123456789abcdef").as_posix()
    'solvable-runs/diagnose-my-model-01234567'
    """
    stem = re.sub(r"[^A-Za-z0-9]+", "-", Path(name).stem).strip("-")[:40] or "weights"
    return Path("solvable-runs") / f"diagnose-{stem}-{fingerprint[:8]}"


@contextmanager
def reserved(directory: Path, fingerprint: str) -> Iterator[None]:
    """Make a directory for results; refuse one in which something else would be overwritten.

    Parameters
    ----------
    directory : Path
        Need not exist; it is made, and removed again if nothing was written.
    fingerprint : str
        Of :func:`fingerprint_of`: the same may be written again.

    Raises
    ------
    InvalidParameter
        If it is a file.
    StudyConflict
        If it holds other results, or files of these names that are not ours.
    StorageFailed
        If it cannot be written.
    """
    if directory.exists() and not directory.is_dir():
        raise InvalidParameter(
            f"--output is {str(directory)!r}, a file; allowed: a directory, new or of these weights."
        )
    taken = [one for one in (REPORT, RESULT) if (directory / one).exists()]
    if taken and _fingerprint_in(directory / RESULT) != fingerprint:
        raise StudyConflict(
            f"{directory}: holds {' and '.join(taken)} of other weights or another request, which "
            "would be overwritten. Use another directory with --output, or move it away."
        )
    try:
        directory.mkdir(parents=True, exist_ok=True)
        probe = directory / f".{os.getpid()}.part"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise StorageFailed(
            f"{directory} cannot be written ({error.strerror or error}). Choose a directory that can "
            "be written to with --output."
        ) from error
    try:
        yield
    finally:
        # Only an empty directory can be removed so; one with results stays.
        with suppress(OSError):
            directory.rmdir()


def _fingerprint_in(path: Path) -> str | None:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    ours = isinstance(content, dict) and content.get("format") == FORMAT
    return str(content.get("fingerprint")) if ours else None


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
    from solvable.report import diagnose_words as words

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
        From :func:`reserved`.

    Returns
    -------
    DiagnoseFiles
        The files.

    Raises
    ------
    StorageFailed
        If one cannot be written.
    """
    from solvable.report.diagnose_html import render_diagnose_report
    from solvable.report.files import write_atomically

    files = DiagnoseFiles(directory / REPORT, directory / RESULT)
    # The numbers first: they mark the directory as ours if the page should fail.
    write_atomically(files.result, (json.dumps(content, allow_nan=False) + "\n").encode())
    render_diagnose_report(found, files.report, command=content["command"])
    return files
