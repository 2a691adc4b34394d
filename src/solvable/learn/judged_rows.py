"""Judge a fitted model on rows of another file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from threadpoolctl import threadpool_limits

from solvable.data.dataset import Dataset, NewData
from solvable.errors import InvalidData
from solvable.learn.calibration import deviation_of
from solvable.learn.fold_fits import outputs_of
from solvable.learn.row_errors import error_on, of_classes
from solvable.learn.training_range import outside_of

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
    known = found.range
    X = test.X if known is None or found.in_time else known.inputs(test.X)
    with threadpool_limits(limits=1):
        codes = raw = found.model.predict(X)
        outputs = None if found.reliability is None else outputs_of(found.model, X)
    if known is not None and not found.in_time:
        codes = known.predicted(raw)
    error = error_on(test, codes, target, {"variance": deviation and deviation**2})
    assert error is not None
    error["notes"] = list(test.treatments)
    if known is not None:
        outside = outside_of(known, test.X, dataset.preparation.parts, int(np.sum(codes != raw)))
        error["notes"] += outside.sentences(target.name)
    trained = np.column_stack([dataset.as_new, dataset.y]).astype(np.float64)
    rows = np.column_stack([test.X, test.y])[test.labelled].astype(np.float64)
    seen = {row.tobytes() for row in trained + 0.0}
    error["copies"] = sum(row.tobytes() in seen for row in rows + 0.0)
    if outputs is not None and found.reliability is not None:
        usable = test.labelled & (test.y >= 0)
        probabilities = found.reliability.calibration.probabilities(outputs[usable])
        if known is not None:
            probabilities = known.probabilities(probabilities, test.X[usable])
        if usable.any() and probabilities.shape[1] == len(found.class_labels):
            true = test.y[usable].astype(np.int64)
            error |= of_classes(np.asarray(codes)[usable], true, probabilities)
            error["deviation"], error["chance"] = deviation_of(probabilities, true)
    return error
