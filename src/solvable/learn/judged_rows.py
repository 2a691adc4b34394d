"""Judge a fitted model on rows of another file."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from threadpoolctl import threadpool_limits

from solvable.data.dataset import Dataset, NewData
from solvable.data.target import Target
from solvable.errors import InvalidData
from solvable.fitting.intervals import mean_interval, wilson_interval
from solvable.learn.calibration import deviation_of, log_loss
from solvable.learn.fold_fits import outputs_of
from solvable.plots.numbers import format_number
from solvable.plots.words import percents

if TYPE_CHECKING:
    from solvable.learn.results import Learned


def check_test(test: NewData, dataset: Dataset) -> None:
    """Raise :class:`InvalidData` if no row has a target."""
    if test.y is None or not test.labelled.any():
        raise InvalidData(
            f"the rows to test have no value of the target {dataset.target!r}; allowed: at least one row "
            "with this column. Use `solvable predict` for rows without target."
        )


def judged(found: Learned, test: NewData, dataset: Dataset) -> dict[str, Any]:
    """Return the error of the model fitted to all rows, on rows of another file."""
    target = dataset.preparation.target
    assert target is not None
    assert test.y is not None
    deviation = found.target_deviation
    with threadpool_limits(limits=1):
        codes = found.model.predict(test.X)
        outputs = None if found.reliability is None else outputs_of(found.model, test.X)
    error = error_on(test, codes, target, {"variance": deviation and deviation**2})
    assert error is not None
    error["notes"] = list(test.treatments)
    known = np.column_stack([dataset.X, dataset.y]).astype(np.float64)
    rows = np.column_stack([test.X, test.y])[test.labelled].astype(np.float64)
    seen = {row.tobytes() for row in known + 0.0}
    error["copies"] = sum(row.tobytes() in seen for row in rows + 0.0)
    if outputs is not None and found.reliability is not None:
        usable = test.labelled & (test.y >= 0)
        probabilities = found.reliability.calibration.probabilities(outputs[usable])
        if usable.any() and probabilities.shape[1] == len(found.class_labels):
            true = test.y[usable].astype(np.int64)
            error["log_loss"] = log_loss(probabilities, true)
            error["deviation"], error["chance"] = deviation_of(probabilities, true)
    return error


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
