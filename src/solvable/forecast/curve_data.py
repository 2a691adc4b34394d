"""Learning curves in memory: data frames, dictionaries, and results of scikit-learn's learning_curve."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from solvable.errors import InvalidData
from solvable.forecast.curve_file import Columns, TextTable, columns_of


def columns_in_memory(data: Any) -> Columns:
    """Return sample sizes, errors, names of replicates and notes."""
    if isinstance(data, tuple | list) and len(data) in (2, 3, 5):
        return _of_scores(data)
    if isinstance(data, Mapping):
        pairs = [(str(name), list(np.atleast_1d(values))) for name, values in data.items()]
    elif hasattr(data, "columns") or hasattr(data, "column_names"):
        import narwhals.stable.v2 as nw

        frame = nw.from_native(data, eager_only=True)
        pairs = [(str(name), frame[name].to_list()) for name in frame.columns]
    else:
        raise InvalidData(
            f"the curve is a {type(data).__name__}; allowed: a path, a data frame, a dictionary of "
            "columns, or (sizes, scores) of learning_curve."
        )
    lengths = {len(values) for _, values in pairs}
    if len(lengths) != 1 or lengths == {0}:
        raise InvalidData(
            f"the columns of the curve have {sorted(lengths)} entries; allowed: equal numbers, above 0."
        )
    rows = [[_text(value) for value in row] for row in zip(*(v for _, v in pairs), strict=True)]
    numbered = list(enumerate(rows, start=1))
    return columns_of(
        TextTable("the curve", [name for name, _ in pairs], numbered), None, None, None
    )


def _text(value: Any) -> str:
    """Write a value as in a file; a missing one is empty."""
    if value is None or value != value:
        return ""
    return value.strip() if isinstance(value, str) else repr(float(value))


def _of_scores(data: Any) -> Columns:
    """Return the errors behind (sizes, scores) or (sizes, training scores, test scores, ...)."""
    try:
        sizes = np.asarray(data[0], dtype=float)
        scores = np.asarray(data[1] if len(data) == 2 else data[2], dtype=float)
    except (TypeError, ValueError) as error:
        raise InvalidData(
            f"sizes and scores cannot be read ({error}); allowed: numbers."
        ) from error
    scores = scores[:, None] if scores.ndim == 1 else scores
    if sizes.ndim != 1 or scores.ndim != 2 or len(scores) != len(sizes):
        raise InvalidData(
            f"sizes have shape {sizes.shape} and scores {scores.shape}; allowed: (k,) and (k, folds)."
        )
    present = np.isfinite(scores)
    if (scores[present] <= 0).all():
        errors, note = -scores, "Scores are negative losses; their sign was changed."
    elif (scores[present] <= 1).all():
        errors, note = 1 - scores, "Errors are 1 minus the scores."
    else:
        raise InvalidData(
            f"scores hold {scores[present].max():g}; allowed: scores of at most 1, or negative losses "
            "as of scikit-learn. Give errors as a dictionary with n and error."
        )
    places = np.argwhere(present)
    return (
        [float(sizes[place]) for place, _ in places],
        [float(errors[place, fold]) for place, fold in places],
        tuple(f"fold {fold + 1}" for _, fold in places),
        (note,),
    )
