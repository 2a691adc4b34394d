"""Public tables that come with the tests of scikit-learn, as CSV files."""

from __future__ import annotations

import csv
import gzip
import shlex
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

import pytest


@pytest.fixture
def bundled_csv(tmp_path: Path) -> Callable[[int, int], Path]:
    """Write a table of OpenML as CSV, given its number and how many rows it has."""

    def write(number: int, n_rows: int) -> Path:
        folder = files("sklearn.datasets.tests.data.openml") / f"id_{number}"
        (packed,) = (file for file in folder.iterdir() if file.name.endswith(".arff.gz"))
        lines = gzip.decompress(packed.read_bytes()).decode().splitlines()
        lines = [line for line in lines if line and not line.startswith("%")]
        start = next(i for i, line in enumerate(lines) if line.lower() == "@data")
        attributes = [line for line in lines[:start] if line.lower().startswith("@attribute")]
        names = [shlex.split(line)[1] for line in attributes]
        quote = "'" if lines[start + 1].startswith("'") else '"'
        rows = list(csv.reader(lines[start + 1 :], quotechar=quote, strict=True))
        assert len(rows) == n_rows
        assert {len(row) for row in rows} == {len(names)}
        path = tmp_path / f"openml-{number}.csv"
        with path.open("w", newline="") as stream:
            csv.writer(stream).writerows([names, *rows])
        return path

    return write
