"""Apply a stored model to new rows, and compute the model's error if their target is known."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from solvable.data import Preparation, load_new
from solvable.data.dataset import NewData
from solvable.data.target import Target
from solvable.errors import InvalidData
from solvable.fitting.intervals import mean_interval, wilson_interval
from solvable.learn.learning import digest_of
from solvable.learn.results import Learned
from solvable.networks.files import load_model, model_notes
from solvable.plots.numbers import format_number
from solvable.plots.words import percents


@dataclass(frozen=True, eq=False)
class Applied:
    """Predictions for new rows.

    Parameters
    ----------
    target : Target
        Name, kind and classes of the predicted column.
    predicted : ndarray
        Predicted class or number of each row, shape (n,).
    treatments : tuple of str
        Sentences about the preparation of the rows.
    error : dict or None
        Error on the rows with a known target; None if there is no such row.
    row_names : ndarray of str or None
        File name of each row, if each row was read from a file of its own.
    """

    target: Target
    predicted: np.ndarray
    treatments: tuple[str, ...]
    error: dict[str, Any] | None
    row_names: np.ndarray | None = None


def apply_model(model: Path | Learned, data: Any) -> Applied:
    """Prepare new rows in the same way as the training rows, and predict their target."""
    if isinstance(model, Learned):
        fitted, preparation, notes = model.model, model.preparation, notes_of(model)
    else:
        fitted, preparation, notes = _load(model)
    target = preparation.target
    new = load_new(data, preparation)
    with threadpool_limits(limits=1):
        codes = fitted.predict(new.X)
    error = _error(new, codes, target, notes)
    if error is not None:
        error["training_rows"] = digest_of(new.X) == notes.get("data_fingerprint")
    return Applied(target, target.decode(codes), tuple(new.treatments), error, new.row_names)


def notes_of(found: Learned) -> dict[str, Any]:
    """Return the data stored with the model: preparation of new rows and measured error."""
    score = found.learned
    return {
        "preparation": found.preparation.to_dict(),
        "name": found.name,
        "rows": found.n_samples,
        "error": [score.error, score.lower, score.upper],
        "variance": None if found.target_deviation is None else found.target_deviation**2,
        "data_fingerprint": found.data_fingerprint,
        "versions": dict(found.versions),
    }


def _load(path: Path) -> tuple[Any, Any, dict[str, Any]]:
    """Load the model, the preparation of its columns, and everything else stored with it."""
    fitted = load_model(path)
    notes = model_notes(path)
    if "preparation" not in notes or not hasattr(fitted, "predict"):
        raise InvalidData(
            f"{path} holds a model without the preparation of its columns; allowed: a model stored by "
            "`solvable learn`. Load this one from Python with solvable.learners.load_model."
        )
    preparation = Preparation.from_dict(notes["preparation"])
    if preparation.target is None or len(preparation.columns) != fitted.n_features_in_:
        raise InvalidData(
            f"{path}: the preparation gives {len(preparation.columns)} columns, but the model needs "
            f"{fitted.n_features_in_}. Fit the model again with `solvable learn`."
        )
    return fitted, preparation, notes


def _error(
    new: NewData, codes: np.ndarray, target: Target, notes: dict[str, Any]
) -> dict[str, Any] | None:
    if new.y is None or not new.labelled.any():
        return None
    y, predicted = new.y[new.labelled], codes[new.labelled]
    if target.kind == "regression":
        squared = (predicted - y) ** 2
        rows = {"rows": len(y), "root_mean_square": float(np.sqrt(squared.mean()))}
        if len(y) < 2 or not notes.get("variance"):
            return rows
        # The error is in units of the target's variance in the training rows, as in `solvable learn`.
        value, lower, upper = mean_interval(squared / float(notes["variance"]), positive=True)
        return rows | {"unexplained_variance": value, "lower": lower, "upper": upper}
    value, lower, upper = wilson_interval(int(np.count_nonzero(predicted != y)), len(y))
    return {"rows": len(y), "wrong": value, "lower": lower, "upper": upper}


def error_sentence(error: dict[str, Any], target: Target) -> str:
    """State the error on new rows in one or two sentences."""
    rows = f"{error['rows']} rows with a known {target.name!r}"
    if "wrong" in error:
        value, interval = percents(error["wrong"], error["lower"], error["upper"])
        text = f"{value} of the predictions for {rows} are wrong (95 % interval: {interval})."
    else:
        typical = format_number(error["root_mean_square"], 3)
        text = f"The typical error (root mean square) is {typical} on {rows}"
        if "lower" not in error:
            return f"{text}."
        shares = (error[name] for name in ("unexplained_variance", "lower", "upper"))
        value, interval = percents(*shares)
        text += f". Variance not explained: {value} (95 % interval: {interval})."
    if error["training_rows"]:
        text += (
            " The model was fitted to these rows, so this is a training error. `solvable learn` printed "
            "the error on unseen rows."
        )
    return text
