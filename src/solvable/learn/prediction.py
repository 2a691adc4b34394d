"""Apply a stored model to new rows, and compute the model's error if their target is known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from solvable.data import Preparation
from solvable.errors import InvalidData
from solvable.learn.applied import Applied, applied
from solvable.learn.results import Learned
from solvable.learn.stored_models import load_fitted


def apply_model(model: Path | Learned, data: Any) -> Applied:
    """Prepare new rows in the same way as the training rows, and predict their target."""
    return model.applied(data) if isinstance(model, Learned) else applied(*_load(model), data)


def _load(path: Path) -> tuple[Any, Preparation, dict[str, Any]]:
    """Load the model, the preparation of its columns, and everything else stored with it."""
    fitted, notes = load_fitted(path)
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
