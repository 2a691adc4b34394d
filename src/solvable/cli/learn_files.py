"""The files of a directory that ``solvable learn`` writes."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from solvable.errors import InvalidParameter, StorageFailed, StudyConflict

if TYPE_CHECKING:
    from solvable.analysis import Learned
    from solvable.data import Dataset

REPORT = "report.html"
RESULT = "result.json"
MODEL = "model.safetensors"
PREDICTIONS = "predictions.csv"
FIGURES = "figures"

FORMAT = "solvable-learn-1"
"""Mark of a result of ours."""


class LearnFiles(NamedTuple):
    """Files that were written.

    Parameters
    ----------
    report, result, model, predictions : Path
        The page, the numbers, the fitted model, and the predictions for rows when they were unseen.
    figures : list of Path
        SVG and PDF files.
    """

    report: Path
    result: Path
    model: Path
    predictions: Path
    figures: list[Path]

    def to_dict(self) -> dict[str, Any]:
        """Paths as text."""
        paths = {name: str(getattr(self, name)) for name in self._fields[:-1]}
        return paths | {"figures": [str(path) for path in self.figures]}


def default_directory(name: str, fingerprint: str) -> Path:
    """Where results go unless said otherwise.

    Parameters
    ----------
    name : str
        Data set: a name or a path.
    fingerprint : str
        Of data and request.

    Returns
    -------
    Path
        Another one for other data or another request.

    Examples
    --------
    >>> default_directory("tables/my data.csv", "0123456789abcdef").as_posix()
    'solvable-runs/learn-my-data-01234567'
    """
    stem = re.sub(r"[^A-Za-z0-9]+", "-", Path(name).stem).strip("-")[:40] or "data"
    return Path("solvable-runs") / f"learn-{stem}-{fingerprint[:8]}"


@contextmanager
def reserved(directory: Path, fingerprint: str) -> Iterator[None]:
    """Make a directory for results; refuse one in which something else would be overwritten.

    Parameters
    ----------
    directory : Path
        Need not exist; it is made, and removed again if nothing was written.
    fingerprint : str
        Of data and request: the same may be written again.

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
            f"--output is {str(directory)!r}, a file; allowed: a directory, new or of this data set."
        )
    taken = [
        one for one in (REPORT, RESULT, MODEL, PREDICTIONS, FIGURES) if (directory / one).exists()
    ]
    if taken and _fingerprint_in(directory / RESULT) != fingerprint:
        raise StudyConflict(
            f"{directory}: holds {', '.join(taken)} of other data or another request, which would be "
            "overwritten. Use another directory with --output, or move it away."
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


def write_files(found: Learned, dataset: Dataset, directory: Path, *, command: str) -> LearnFiles:
    """Write report, numbers, model, predictions and figures.

    Parameters
    ----------
    found : Learned
        Result.
    dataset : Dataset
        What was learned from.
    directory : Path
        From :func:`reserved`.
    command : str
        What repeats it.

    Returns
    -------
    LearnFiles
        The files.

    Raises
    ------
    StorageFailed
        If one cannot be written.
    """
    from solvable.learners import save_model
    from solvable.report import write_figures
    from solvable.report.files import write_atomically
    from solvable.report.learn_figures import learn_figures
    from solvable.report.learn_html import render_learn_report
    from solvable.report.learn_pictures import write_pictures

    files = LearnFiles(
        directory / REPORT, directory / RESULT, directory / MODEL, directory / PREDICTIONS, []
    )
    # The numbers first: they mark the directory as ours if the rest should fail.
    content = {"format": FORMAT, "command": command} | found.to_dict()
    write_atomically(files.result, (json.dumps(content, indent=2, allow_nan=False) + "\n").encode())
    save_model(found.model, files.model, notes=_notes(found, dataset))
    write_atomically(files.predictions, _predictions(found, dataset).encode())
    files.figures.extend(write_figures(learn_figures(found), directory / FIGURES))
    files.figures.extend(write_pictures(found, directory / FIGURES))
    render_learn_report(found, files.report, command=command, model=str(files.model))
    return files


def _notes(found: Learned, dataset: Dataset) -> dict[str, Any]:
    """What travels with the model: all that is needed to treat new rows alike."""
    score = found.learned
    return {
        "preparation": dataset.preparation.to_dict(),
        "name": found.name,
        "rows": found.n_samples,
        "error": [score.error, score.lower, score.upper],
        "variance": None if found.target_deviation is None else found.target_deviation**2,
        "data_fingerprint": found.data_fingerprint,
        "versions": dict(found.versions),
    }


def _predictions(found: Learned, dataset: Dataset) -> str:
    """Predictions for every row by the model that had not seen it, as CSV."""
    import numpy as np

    from solvable.cli.predictions import csv_text

    target = dataset.preparation.target
    assert target is not None
    shown = found.predictions if found.is_regression else found.predictions.astype(np.int64)
    return csv_text(
        {
            "row": found.rows + 1,
            "target": target.decode(dataset.y[found.rows]),
            "predicted": target.decode(shown),
            "fold": found.row_folds + 1,
        }
    )
