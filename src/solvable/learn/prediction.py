"""Apply a stored model to new rows, and compute the model's error if their target is known."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from solvable.data import Preparation, load_new
from solvable.data.target import Target
from solvable.errors import InvalidData, InvalidParameter
from solvable.learn.calibration import Calibration
from solvable.learn.fold_fits import outputs_of
from solvable.learn.judged_rows import digest_of, error_on
from solvable.learn.results import Learned
from solvable.networks.files import load_model, model_notes


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
    """

    target: Target
    predicted: np.ndarray
    treatments: tuple[str, ...]
    error: dict[str, Any] | None
    row_names: np.ndarray | None = None
    probabilities: np.ndarray | None = None


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
        outputs = outputs_of(fitted, new.X) if notes.get("calibration") else None
    probabilities = None
    if outputs is not None:
        probabilities = _calibration(notes["calibration"]).probabilities(outputs)
    error = error_on(new, codes, target, notes)
    if error is not None:
        error["training_rows"] = digest_of(new.X) == notes.get("data_fingerprint")
    predicted, treatments = target.decode(codes), tuple(new.treatments)
    return Applied(target, predicted, treatments, error, new.row_names, probabilities)


def notes_of(found: Learned) -> dict[str, Any]:
    """Return the data stored with the model: preparation of new rows and measured error."""
    score = found.learned
    return {
        "preparation": found.preparation.to_dict(),
        "name": found.name,
        "rows": found.n_samples,
        "error": [score.error, score.lower, score.upper],
        "calibration": found.reliability and found.reliability.calibration.to_dict(),
        "variance": None if found.target_deviation is None else found.target_deviation**2,
        "data_fingerprint": found.data_fingerprint,
        "versions": dict(found.versions),
    }


def _calibration(fields: Any) -> Calibration:
    try:
        return Calibration.from_dict(fields)
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidData(
            f"the calibration stored with the model is damaged ({error!r}). Fit the model again."
        ) from error


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
