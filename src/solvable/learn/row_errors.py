"""Error of predictions on rows whose target is known, and its sentence."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from solvable.data.dataset import NewData
from solvable.data.target import Target
from solvable.fitting.intervals import mean_interval, wilson_interval
from solvable.learn.calibration import log_loss
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


def of_classes(
    codes: np.ndarray, true: np.ndarray, probabilities: np.ndarray | None
) -> dict[str, float]:
    """Return balanced error, log loss and (for two classes) AUC on rows of known classes."""
    from sklearn.metrics import roc_auc_score

    known = true >= 0
    codes, true = codes[known], true[known].astype(np.int64)
    classes = np.unique(true)
    if not len(classes):
        return {}
    wrong = [float(np.mean(codes[true == one] != one)) for one in classes]
    found = {"balanced_error": float(np.mean(wrong))}
    if probabilities is not None:
        rows = probabilities[known]
        found["log_loss"] = log_loss(rows, true)
        if rows.shape[1] == 2 == len(classes):
            found["auc"] = float(roc_auc_score(true, rows[:, 1]))
    return found


def class_sentence(error: Mapping[str, Any]) -> str:
    """State balanced error, AUC and log loss, as far as they are known; "" for numbers."""
    parts = []
    if "balanced_error" in error:
        parts.append(f"balanced error {100 * error['balanced_error']:.1f} %")
    if "auc" in error:
        parts.append(f"AUC {error['auc']:.3f}")
    if "log_loss" in error:
        parts.append(f"log loss {format_number(error['log_loss'], 3)}")
    text = ", ".join(parts)
    return f"{text[0].upper()}{text[1:]}." if text else ""


def error_sentence(error: dict[str, Any], target: Target) -> str:
    """State the error on new rows in one or two sentences."""
    rows = f"{error['rows']} rows with a known {target.name!r}"
    if "wrong" in error:
        value, interval = percents(error["wrong"], error["lower"], error["upper"])
        text = f"{value} of the predictions for {rows} are wrong (95 % interval: {interval})."
        text = " ".join(filter(None, [text, class_sentence(error)]))
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
