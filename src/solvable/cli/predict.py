"""``solvable predict``: a fitted model applied to new rows."""

from __future__ import annotations

import sys
from pathlib import Path

from solvable.cli.settings import Flag


def predict(model: Path, data: str, /, *, output: Path | None = None, json: Flag = False) -> int:
    """Predict new rows with a model of `solvable learn`.

    For example:
      solvable predict solvable-runs/learn-wine-1a2b3c4d/model.safetensors new.csv
      solvable predict model.safetensors new.csv --output predicted.csv
      solvable predict model.safetensors new.csv > predicted.csv

    Columns are found by their names and treated as the training rows were. If
    the target is among them, the error is told too.

    Parameters
    ----------
    model
        File model.safetensors, or the directory that holds it.
    data
        File, folder or name of a data set, as for `solvable learn`; also an
        image, or a folder of images without classes.
    output
        CSV file for the predictions; it must not exist.
    json
        Print {"predictions", "error", "treatments"}.
    """
    import numpy as np

    from solvable.cli.terminal import note, write, write_json
    from solvable.errors import InvalidParameter, quoted
    from solvable.learn.prediction import apply_model, error_sentence
    from solvable.learn.tables import columns_as_csv
    from solvable.paths import printable
    from solvable.plots.files import write_atomically

    if output is not None and output.exists():
        raise InvalidParameter(
            f"--output is {quoted(str(output))}, which exists; allowed: a new file. Choose another "
            "name or remove it."
        )
    found = apply_model(model / "model.safetensors" if model.is_dir() else model, data)
    count = len(found.predicted)
    columns = {"row": np.arange(1, count + 1), "predicted": found.predicted}
    if found.row_names is not None:
        columns["file"] = found.row_names
    if output is not None:
        write_atomically(output, columns_as_csv(columns).encode())
    if json:
        numbers = found.predicted.tolist()
        treatments = list(found.treatments)
        write_json({"predictions": numbers, "error": found.error, "treatments": treatments})
        return 0
    for treatment in found.treatments:
        note(f"- {treatment}")
    if output is not None:
        write(f"{count} predictions of {found.target.name!r}: {output}")
    elif sys.stdout.isatty():
        shown = 20  # on a terminal; a pipe and a file get all
        first = {name: column[:shown] for name, column in columns.items()}
        sys.stdout.write(printable(columns_as_csv(first)))
        if count > shown:
            note(f"... and {count - shown} more; --output FILE.csv writes them all.")
    else:
        sys.stdout.write(columns_as_csv(columns))
    if found.error is not None:
        # Beside predictions on standard output, what is said of them is no row.
        (note if output is None else write)(error_sentence(found.error, found.target))
    return 0
