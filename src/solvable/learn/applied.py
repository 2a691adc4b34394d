"""Predictions of a fitted model for new rows, with probabilities, and its error on these rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from solvable.data import Preparation, load_new
from solvable.data.target import Target
from solvable.errors import InvalidData, InvalidParameter
from solvable.learn.calibration import Calibration
from solvable.learn.fold_fits import outputs_of
from solvable.learn.row_errors import digest_of, error_on, of_classes
from solvable.learn.training_range import Outside, TrainingRange, outside_of


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
    probabilities : ndarray or None
        Calibrated probability of each class, shape (n, C), in the order of ``target.classes``; None for
        numbers, and for models without calibration.
    outside : Outside or None
        Rows and columns outside the range of the training rows; None if the model has no such range.
    """

    target: Target
    predicted: np.ndarray
    treatments: tuple[str, ...]
    error: dict[str, Any] | None
    row_names: np.ndarray | None = None
    probabilities: np.ndarray | None = None
    outside: Outside | None = None


def applied(fitted: Any, preparation: Preparation, notes: Mapping[str, Any], data: Any) -> Applied:
    """Prepare new rows in the same way as the training rows, and predict their target."""
    target = preparation.target
    assert target is not None
    new = load_new(data, preparation)
    try:
        known, outside = None, None
        if notes.get("range"):  # models of earlier versions have none
            known = TrainingRange.from_dict(notes["range"], new.X.shape[1], len(target.classes))
        X = new.X if known is None or notes.get("times") else known.inputs(new.X)
        with threadpool_limits(limits=1):
            raw = np.asarray(fitted.predict(X))
            outputs = outputs_of(fitted, X) if notes.get("calibration") else None
        codes, probabilities = raw, None
        if outputs is not None:
            probabilities = _calibration(notes["calibration"]).probabilities(outputs)
        if known is not None:
            if not notes.get("times"):  # a trend in time leaves the range, and was tested so
                codes = known.predicted(raw)
            limited = int(np.count_nonzero(codes != raw))
            outside = outside_of(known, new.X, preparation.parts, limited)
            if probabilities is not None:
                probabilities = known.probabilities(probabilities, new.X)
        predicted = target.decode(codes)
        error = error_on(new, codes, target, notes)
    except (ValueError, TypeError, IndexError, KeyError, AttributeError) as reason:
        raise InvalidData(
            f"the stored model is damaged ({type(reason).__name__}: {reason}). Fit the model again with "
            "`solvable learn`."
        ) from reason
    if error is not None:
        if target.classes and new.y is not None:
            some = None if probabilities is None else probabilities[new.labelled]
            error |= of_classes(codes[new.labelled], new.y[new.labelled], some)
        error["training_rows"] = digest_of(new.X) == notes.get("data_fingerprint")
    said = outside.sentences(target.name) if outside is not None else []
    treatments = (*new.treatments, *said)
    return Applied(target, predicted, treatments, error, new.row_names, probabilities, outside)


def _calibration(fields: Any) -> Calibration:
    try:
        return Calibration.from_dict(fields)
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidData(
            f"the calibration stored with the model is damaged ({error!r}). Fit the model again."
        ) from error


def probability_columns(found: Applied) -> dict[str, np.ndarray]:
    """Return one named column of probabilities per class, for a table of predictions."""
    if found.probabilities is None:
        reason = (
            f"the model predicts the number {found.target.name!r}"
            if found.target.kind == "regression"
            else "the model was stored without calibration"
        )
        raise InvalidParameter(
            f"there are no probabilities, because {reason}; allowed: models of classes, fitted with this "
            "version of `solvable learn`. Leave out --probabilities."
        )
    return {
        f"probability of {label}": found.probabilities[:, place]
        for place, label in enumerate(found.target.classes)
    }
