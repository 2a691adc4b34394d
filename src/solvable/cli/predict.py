"""``solvable predict``: apply a fitted model to new rows."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path

from solvable.cli.settings import Flag


def predict(
    model: Path,
    data: str,
    /,
    *,
    output: Path | None = None,
    probabilities: Flag = False,
    json: Flag = False,
) -> int:
    """Predict new rows with a model of `solvable learn`.

    For example:
      solvable predict solvable-runs/learn-wine-1a2b3c4d/model.safetensors new.csv
      solvable predict model.safetensors new.csv --output predicted.csv
      solvable predict model.safetensors new.csv > predicted.csv
      solvable predict model.safetensors new.csv --probabilities

    Columns are matched by name and prepared in the same way as the training rows.
    If the new rows have the target column, the error is printed too. Rows outside
    the range of the training rows are counted, with the columns that leave it.

    Parameters
    ----------
    model
        File model.safetensors, or the directory that contains this file.
    data
        File, folder or name of a data set, as for `solvable learn`; also an
        image, or a folder of images without classes.
    probabilities
        Add a column with the calibrated probability of each class.
    output
        New CSV file for the predictions.
    json
        Print a JSON object of predictions, error and treatments.
    """
    import numpy as np

    from solvable.cli.terminal import note, write, write_json
    from solvable.errors import InvalidParameter, quoted
    from solvable.learn.applied import probability_columns
    from solvable.learn.prediction import apply_model
    from solvable.learn.row_errors import error_sentence
    from solvable.learn.tables import columns_as_csv
    from solvable.paths import printable
    from solvable.plots.files import write_atomically

    if output is not None and output.exists():
        raise InvalidParameter(
            f"--output is {quoted(str(output))}, a file that exists; allowed: a new file. Choose another "
            "name or remove the file."
        )
    found = apply_model(model / "model.safetensors" if model.is_dir() else model, data)
    count = len(found.predicted)
    columns = {"row": np.arange(1, count + 1), "predicted": found.predicted}
    if found.row_names is not None:
        columns["file"] = found.row_names
    if probabilities:
        columns |= probability_columns(found)
    if output is not None:
        write_atomically(output, columns_as_csv(columns).encode())
    if json:
        numbers = found.predicted.tolist()
        treatments = list(found.treatments)
        result = {"predictions": numbers, "error": found.error, "treatments": treatments}
        result["outside"] = found.outside and asdict(found.outside)
        if probabilities and found.probabilities is not None:
            result |= {"classes": found.target.classes}
            result |= {"probabilities": found.probabilities.tolist()}
        write_json(result)
        return 0
    if output is not None:
        write(f"{count} predictions of {found.target.name!r} are in {output}")
    elif sys.stdout.isatty():
        shown = (
            20  # largest number of rows printed on a terminal; a pipe or a file receives all rows
        )
        first = {name: column[:shown] for name, column in columns.items()}
        sys.stdout.write(printable(columns_as_csv(first)))
        if count > shown:
            note(f"... and {count - shown} more; --output FILE.csv writes all predictions.")
    else:
        sys.stdout.write(columns_as_csv(columns))
    if found.error is not None:
        # Standard output contains only the CSV rows, unless the rows are written to a file.
        (note if output is None else write)(error_sentence(found.error, found.target))
    for treatment in found.treatments:
        note(f"- {treatment}")
    return 0
