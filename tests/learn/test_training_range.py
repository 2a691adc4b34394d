"""Rows outside the range of training: named, with limited predictions and moved probabilities."""

from __future__ import annotations

import json

import numpy as np
import pytest

from solvable.data import load
from solvable.errors import InvalidData
from solvable.learn import Request, learn
from solvable.learn.applied import applied
from solvable.learn.training_range import TrainingRange, outside_of


def test_distances_are_in_widths_of_the_range():
    X = np.array([[0.0, 5.0], [2.0, 5.0]])
    known = TrainingRange.of(X, np.array([1.0, 3.0]), 0)
    new = np.array([[3.0, 5.0], [-1.0, 5.0], [1.0, 6.0]])
    np.testing.assert_allclose(known.distances(new), [[0.5, 0], [0.5, 0], [0, 0.2]])
    np.testing.assert_allclose(known.inputs(np.array([[9.0, 9.0]])), [[4.0, 5.0]])
    assert known.limits == pytest.approx((0.5, 3.5))
    np.testing.assert_allclose(known.predicted(np.array([-9.0, 2.0, 9.0])), [0.5, 2, 3.5])


def test_probabilities_move_to_the_shares_of_the_classes():
    known = TrainingRange.of(np.array([[0.0], [1.0]] * 2), np.array([0, 0, 0, 1]), 2)
    sure = np.tile([0.0, 1.0], (3, 1))
    moved = known.probabilities(sure, np.array([[0.5], [1.5], [9.0]]))
    np.testing.assert_allclose(moved, [[0, 1], [0.375, 0.625], [0.75, 0.25]])


def test_columns_of_one_text_count_once_and_near_rows_do_not():
    known = TrainingRange.of(np.array([[0.0, 0, 1], [1.0, 1, 0]]), np.array([0.0, 1.0]), 0)
    new = np.array([[1.05, 0, 1], [2.0, 0, 1], [0.5, 3, 1]])
    found = outside_of(known, new, [("size", ("size",)), ("town", ("town=a", "town=b"))])
    assert found.rows == (2, 3)
    assert [(name, count) for name, count, _ in found.columns] == [("town", 1), ("size", 1)]
    said = " ".join(found.sentences("y"))
    assert "2 of 3 rows (67 %) lie outside" in said
    assert "'size' (1 row, up to 1 widths away)" in said
    assert outside_of(known, new[:1], [("size", ("size",)), ("t", ("a", "b"))]).sentences("y") == []


@pytest.fixture(scope="module")
def squares(without_learning_curve):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 3))
    with without_learning_curve():
        return X, learn(load(X, X[:, 0] ** 2 + 0.1 * rng.standard_normal(120)), Request(folds=2))


def test_absurd_rows_get_predictions_within_the_range_of_training(squares):
    X, found = squares
    new = np.array(X[:20])
    new[3] = 1e6
    new[4, 1] = 40.0
    told = found.applied(new)
    low, high = found.range.limits
    assert ((told.predicted >= low) & (told.predicted <= high)).all()
    assert told.outside.rows == (4, 5)
    assert any("2 of 20 rows (10 %) lie outside" in one for one in told.treatments)
    # Other rows are predicted as if these were not there.
    inside = np.delete(np.arange(20), [3, 4])
    np.testing.assert_allclose(told.predicted[inside], found.model.predict(X[:20])[inside])


def test_the_range_is_stored_with_the_model_and_a_damaged_one_is_refused(squares):
    X, found = squares
    notes = json.loads(json.dumps(found.notes))
    again = TrainingRange.from_dict(notes["range"], 3, 0)
    np.testing.assert_array_equal(again.high, X.max(axis=0))
    told = applied(found.model, found.preparation, notes, X[:5])
    np.testing.assert_array_equal(told.predicted, found.applied(X[:5]).predicted)
    notes["range"]["low"] = [0.0]
    with pytest.raises(InvalidData, match="damaged"):
        applied(found.model, found.preparation, notes, X[:5])
    del notes["range"]  # models of earlier versions
    assert applied(found.model, found.preparation, notes, X[:5]).outside is None


def test_a_trend_in_time_may_leave_the_range(no_learning_curve):
    import pandas as pd

    rng = np.random.default_rng(1)
    day = np.arange(120.0)
    frame = pd.DataFrame({"day": day, "copy": day, "y": day + rng.standard_normal(120)})
    found = learn(load(frame, target="y", time="day", keep=["copy"]), Request(folds=2))
    assert found.in_time
    assert found.chosen.error < 0.01
    later = pd.DataFrame({"copy": [300.0]})
    told = found.applied(later)
    assert told.predicted[0] == pytest.approx(300, rel=0.05)
    assert told.outside.rows == (1,)
