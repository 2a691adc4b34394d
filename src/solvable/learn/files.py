"""Write the files in the output directory of ``solvable learn``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from solvable.answers.page import write_page
from solvable.answers.result_directory import RESULT, ResultDirectory
from solvable.answers.sections import figures_of
from solvable.data.dataset import Dataset
from solvable.learn.answer import answer
from solvable.learn.dealt_rows import check_rows
from solvable.learn.figures import write_pictures
from solvable.learn.learning import fingerprint_of
from solvable.learn.metrics import check_metric
from solvable.learn.request import Request
from solvable.learn.results import Learned
from solvable.learn.stored_fits import KeptFits
from solvable.learn.stored_models import save_fitted
from solvable.learn.tables import columns_as_csv, shares_as_csv
from solvable.paths import whole_directory
from solvable.plots.files import write_atomically, write_figures

REPORT = "report.html"
MODEL = "model.safetensors"
PREDICTIONS = "predictions.csv"
DIRECTIONS = "directions.csv"
FIGURES = "figures"

FORMAT = "solvable-learn-1"  # file that marks a directory as a result of `solvable learn`

DIRECTORY = ResultDirectory(
    "learn", "data", FORMAT, (REPORT, RESULT, MODEL, PREDICTIONS, DIRECTIONS, FIGURES)
)
"""Output directory: its name, and checks that it may be replaced."""


def kept_folder(directory: Path) -> Path:
    """Hidden folder next to the output directory that stores an unfinished run's completed fits."""
    place = directory.absolute()
    return place.parent / f".{place.name}.part"


def reserve(dataset: Dataset, request: Request, output: Path | None) -> tuple[Path, KeptFits]:
    """Reserve the output directory, and return it with the store of completed fits."""
    check_rows(dataset)
    check_metric(request.metric, dataset)
    fingerprint, _ = fingerprint_of(dataset, request)
    directory = output or DIRECTORY.default(dataset.name, fingerprint)
    DIRECTORY.reserve(directory, fingerprint)
    return directory, KeptFits(kept_folder(directory), fingerprint)


class LearnFiles(NamedTuple):
    """Paths of the files that were written."""

    report: Path
    result: Path
    model: Path
    predictions: Path  # predictions of each row by a model that had not seen the row
    figures: list[Path]

    def to_dict(self) -> dict[str, Any]:
        """Return the paths as text."""
        paths = {name: str(getattr(self, name)) for name in self._fields[:-1]}
        return paths | {"figures": [str(path) for path in self.figures]}


def write_files(found: Learned, dataset: Dataset, directory: Path, *, command: str) -> LearnFiles:
    """Write report, numbers, model, predictions and figures; they appear in one atomic step."""
    names = (REPORT, RESULT, MODEL, PREDICTIONS)
    shown = answer(found, command=command, model=str(directory / MODEL))
    with whole_directory(directory) as draft:
        # The result is written first: it marks the directory if the program is stopped here.
        content = {"format": FORMAT, "command": command} | found.to_dict()
        numbers = json.dumps(content, indent=2, allow_nan=False) + "\n"
        write_atomically(draft / RESULT, numbers.encode())
        save_fitted(found.model, draft / MODEL, notes=found.notes)
        write_atomically(draft / PREDICTIONS, _predictions(found, dataset).encode())
        write_atomically(draft / DIRECTIONS, shares_as_csv(found).encode())
        figures = write_figures(figures_of(shown), draft / FIGURES)
        figures += write_pictures(found, draft / FIGURES)
        write_page(shown, draft / REPORT)
    moved = [directory / path.relative_to(draft) for path in figures]
    report, result, model, predictions = (directory / name for name in names)
    return LearnFiles(report, result, model, predictions, moved)


def _predictions(found: Learned, dataset: Dataset) -> str:
    """Write the prediction of every row by a model that had not seen the row, as CSV."""
    target = dataset.preparation.target
    assert target is not None
    shown = found.predictions if found.is_regression else found.predictions.astype(np.int64)
    columns = {
        "row": dataset.row_numbers(found.rows),
        "target": target.decode(dataset.y[found.rows]),
        "predicted": target.decode(shown),
        "fold": found.row_folds + 1,
    }
    if dataset.row_names is not None:
        columns["file"] = dataset.row_names[found.rows]
    return columns_as_csv(columns)
