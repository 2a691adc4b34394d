"""Files that `learn` writes in addition to its report."""

from __future__ import annotations

import csv
import errno
import io

import numpy as np
import pytest

from solvable.data import load
from solvable.errors import StorageFailed
from solvable.learn import Request, learn
from solvable.learn.files import write_files


def test_rows_of_predictions_are_those_of_the_file(tmp_path, monkeypatch) -> None:
    rng = np.random.default_rng(8)
    size = rng.standard_normal(80)
    cells = [
        "" if i % 3 == 1 else "tall" if size[i] > 0 else "short" for i in range(80)
    ]  # some rows have no target
    lines = [f"{size[i]:.6f},{cells[i]}" for i in range(80)]
    path = tmp_path / "people.csv"
    path.write_text("\n".join(["size,kind", *lines]) + "\n")
    dataset = load(path, target="kind")
    found = learn(dataset, Request(folds=2, rows=40))
    with monkeypatch.context() as full:

        def no_space(*_, **__):
            raise OSError(errno.ENOSPC, "No space left on device")

        full.setattr("solvable.learn.files.write_page", no_space)
        with pytest.raises(StorageFailed, match="No space left"):
            write_files(found, dataset, tmp_path / "out", command="solvable learn people.csv")
    # With a full disk no result is left.
    assert [one.name for one in tmp_path.iterdir()] == ["people.csv"]
    files = write_files(found, dataset, tmp_path / "out", command="solvable learn people.csv")
    assert all(one.is_file() for one in (files.report, files.result, files.model, *files.figures))
    rows = list(csv.DictReader(io.StringIO(files.predictions.read_text())))
    assert len(rows) == 40
    assert [row["target"] for row in rows] == [cells[int(row["row"]) - 1] for row in rows]
