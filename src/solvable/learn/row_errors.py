"""Error of predictions on rows whose target is known, and its sentence."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from solvable.data.dataset import NewData
from solvable.data.target import Target
from solvable.fitting.intervals import mean_interval, wilson_interval
from solvable.plots.numbers import format_number
from solvable.plots.words import percents


def digest_of(X: np.ndarray) -> str:
    """Return the digest of the inputs as float64, so that equal numbers of any type agree."""
    values = np.ascontiguousarray(X, dtype=np.float64)
    return hashlib.blake2b(values.data, digest_size=8).hexdigest()


def error_on(
    new: NewData, codes: np.ndarray, target: Target, notes: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Return the error on the rows with a known target; None if there is no such row."""
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
    if error.get("training_rows"):
        text += (
            " The model was fitted to these rows, so this is a training error. `solvable learn` printed "
            "the error on unseen rows."
        )
    return text
