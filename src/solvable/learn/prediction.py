"""A stored model applied to new rows, and what is known of its error on them."""

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
from solvable.learn.intervals import mean_interval, wilson_interval
from solvable.learn.learning import digest_of
from solvable.networks.files import load_model, model_notes
from solvable.plots.numbers import format_number
from solvable.plots.words import percents


@dataclass(frozen=True, eq=False)
class Applied:
    """Predictions of new rows."""

    target: Target
    predicted: np.ndarray  # one value of the target, a class or a number, per row
    treatments: tuple[str, ...]  # what was done to the rows
    error: dict[str, Any] | None  # on the rows whose target is known; None if there are none
    row_names: np.ndarray | None = None  # file of each row, where each has its own


def apply_model(path: Path, data: str) -> Applied:
    """Treat new rows as the training rows were, and predict them."""
    fitted, preparation, notes = _load(path)
    target = preparation.target
    new = load_new(data, preparation)
    with threadpool_limits(limits=1):
        codes = fitted.predict(new.X)
    error = _error(new, codes, target, notes)
    if error is not None:
        error["training_rows"] = digest_of(new.X) == notes.get("data_fingerprint")
    return Applied(target, target.decode(codes), tuple(new.treatments), error, new.row_names)


def _load(path: Path) -> tuple[Any, Any, dict[str, Any]]:
    """Model, preparation of its columns, and what else was stored with it."""
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
    if new.y is None or not new.labelled.any():
        return None
    y, predicted = new.y[new.labelled], codes[new.labelled]
    if target.kind == "regression":
        squared = (predicted - y) ** 2
        rows = {"rows": len(y), "root_mean_square": float(np.sqrt(squared.mean()))}
        if len(y) < 2 or not notes.get("variance"):
            return rows
        # In units of the variance of the training rows, as `solvable learn` tells it.
        value, lower, upper = mean_interval(squared / float(notes["variance"]), positive=True)
        return rows | {"unexplained_variance": value, "lower": lower, "upper": upper}
    value, lower, upper = wilson_interval(int(np.count_nonzero(predicted != y)), len(y))
    return {"rows": len(y), "wrong": value, "lower": lower, "upper": upper}


def error_sentence(error: dict[str, Any], target: Target) -> str:
    """The error on new rows in a sentence or two."""
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
