"""``solvable predict``: a fitted model applied to new rows."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from solvable.cli.settings import Flag

if TYPE_CHECKING:
    import numpy as np

    from solvable.data import NewData
    from solvable.data.target import Target


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
        File, folder or name of a data set, as for `solvable learn`.
    output
        CSV file for the predictions; it must not exist.
    json
        Print {"predictions", "error", "treatments"}.
    """
    import numpy as np
    from threadpoolctl import threadpool_limits

    from solvable.cli.terminal import note, write, write_json
    from solvable.data import load_new
    from solvable.learn.learning import digest_of
    from solvable.learn.tables import csv_text

    _check_output(output)
    path = model / "model.safetensors" if model.is_dir() else model
    fitted, preparation, notes = _load(path)
    target = preparation.target
    new = load_new(data, preparation)
    with threadpool_limits(limits=1):
        codes = fitted.predict(new.X)
    predicted = target.decode(codes)
    columns: dict[str, np.ndarray] = {"row": np.arange(1, len(codes) + 1), "predicted": predicted}
    error = _error(new, codes, target, notes)
    if error is not None:
        error["training_rows"] = digest_of(new.X) == notes.get("data_fingerprint")
    if output is not None:
        from solvable.plots.files import write_atomically

        write_atomically(output, csv_text(columns).encode())
    if json:
        numbers = predicted.tolist()
        write_json({"predictions": numbers, "error": error, "treatments": list(new.treatments)})
        return 0
    for treatment in new.treatments:
        note(f"- {treatment}")
    if output is None:
        _show(columns)
    else:
        write(f"{len(codes)} predictions of {target.name!r}: {output}")
    if error is not None:
        # Beside predictions on standard output, what is said of them is no row.
        (note if output is None else write)(_sentence(error, target))
    return 0


def _check_output(output: Path | None) -> None:
    from solvable.errors import InvalidParameter

    if output is not None and output.exists():
        raise InvalidParameter(
            f"--output is {str(output)!r}, which exists; allowed: a new file. Choose another name or "
            "remove it."
        )


def _load(path: Path) -> tuple[Any, Any, dict[str, Any]]:
    from solvable.data import Preparation
    from solvable.errors import InvalidData
    from solvable.networks.files import load_model, model_notes

    fitted = load_model(path)
    notes = model_notes(path)
    if "preparation" not in notes or not hasattr(fitted, "predict"):
        raise InvalidData(
            f"{path} is a model without the preparation of its columns, which `solvable learn` "
            "stores with it. Use it from Python: solvable.learners.load_model."
        )
    preparation = Preparation.from_dict(notes["preparation"])
    if preparation.target is None or len(preparation.columns) != fitted.n_features_in_:
        raise InvalidData(
            f"{path}: the preparation gives {len(preparation.columns)} columns and the model takes "
            f"{fitted.n_features_in_}. Fit the model anew."
        )
    return fitted, preparation, notes


def _error(
    new: NewData, codes: np.ndarray, target: Target, notes: dict[str, Any]
) -> dict[str, Any] | None:
    """Error on the rows whose target is known."""
    import numpy as np

    from solvable.learn.intervals import mean_interval, wilson_interval

    if new.y is None or not new.labelled.any():
        return None
    y, predicted = new.y[new.labelled], codes[new.labelled]
    if target.kind == "regression":
        squared = (predicted - y) ** 2
        rows = {"rows": len(y), "root_mean_square": float(np.sqrt(squared.mean()))}
        if len(y) < 2 or not notes.get("variance"):
            return rows
        value, lower, upper = mean_interval(squared / float(notes["variance"]))
        return rows | {"unexplained_variance": value, "lower": lower, "upper": upper}
    value, lower, upper = wilson_interval(int(np.count_nonzero(predicted != y)), len(y))
    return {"rows": len(y), "wrong": value, "lower": lower, "upper": upper}


def _sentence(error: dict[str, Any], target: Target) -> str:
    from solvable.learn.words import percents
    from solvable.plots.numbers import format_number

    rows = f"{error['rows']} rows with a known {target.name!r}"
    if "wrong" in error:
        value, interval = percents(error["wrong"], error["lower"], error["upper"])
        said = f"Wrong on {value} of {rows} (95 % interval: {interval})."
    else:
        typical = format_number(error["root_mean_square"], 3)
        said = f"Typical error (root mean square) {typical} on {rows}"
        if "lower" not in error:
            return f"{said}."
        shares = (error[name] for name in ("unexplained_variance", "lower", "upper"))
        value, interval = percents(*shares)
        said += f": {value} of the variance of the training rows (95 % interval: {interval})."
    if error["training_rows"]:
        said += (
            " These are the rows that the model was fitted to, so this is no error on new rows: that is "
            "what `solvable learn` told."
        )
    return said


def _show(columns: dict[str, Any]) -> None:
    from solvable.cli.terminal import note
    from solvable.learn.tables import csv_text

    if not sys.stdout.isatty():
        sys.stdout.write(csv_text(columns))
        return
    shown = 20  # on a terminal; a pipe and a file get all
    sys.stdout.write(csv_text({name: column[:shown] for name, column in columns.items()}))
    left = len(columns["row"]) - shown
    if left > 0:
        note(f"... and {left} more; --output FILE.csv writes them all.")
