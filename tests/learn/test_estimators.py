"""Estimators for tables: conventions of scikit-learn, data frames, a time limit, and stored models."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import cross_val_score
from sklearn.utils.estimator_checks import check_estimator

import solvable
from solvable.errors import InvalidData, InvalidParameter
from solvable.learners import TableClassifier, TableRegressor

FEW = "at least 20 rows are needed"
NOT_MET = {
    "check_n_features_in_after_fitting": FEW,
    "check_regressors_no_decision_function": FEW,
    "check_classifier_data_not_an_array": FEW,
    "check_fit2d_1sample": FEW,
    "check_fit2d_1feature": FEW,
    "check_classifiers_train": "calibrated probabilities may favour another class near the boundary",
}
"""Checks of scikit-learn that do not apply, and why."""


@pytest.mark.slow
@pytest.mark.parametrize("kind", [TableRegressor, TableClassifier])
def test_conventions_of_scikit_learn(kind, no_learning_curve):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_estimator(kind(folds=2), expected_failed_checks=NOT_MET)


def frame(rows=80, seed=0):
    rng = np.random.default_rng(seed)
    size, town = rng.standard_normal(rows), rng.choice(["a", "b"], rows)
    size[::9] = np.nan
    return pd.DataFrame({"size": size, "town": town})


def test_classes_of_any_kind_are_predicted_from_frames(no_learning_curve, tmp_path):
    X = frame()
    y = pd.Series(np.where(X.town == "a", 7, -3), name="label")
    model = TableClassifier(folds=2).fit(X, y)
    assert model.classes_.tolist() == [-3, 7]
    assert list(model.feature_names_in_) == ["size", "town"]
    new = frame(seed=1)
    assert (model.predict(new) == np.where(new.town == "a", 7, -3)).all()
    shares = model.predict_proba(new)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert ((shares[:, 1] > 0.5) == (new.town == "a")).all()
    with pytest.raises(ValueError, match="feature names"):
        model.predict(new.rename(columns={"town": "place"}))
    path = model.save(tmp_path / "model.safetensors")
    told = solvable.predict_rows(Path(path), new)
    assert (model.classes_[told.predicted.astype(int)] == model.predict(new)).all()


def test_numbers_are_those_of_the_command(no_learning_curve):
    rng = np.random.default_rng(2)
    X = rng.standard_normal((60, 3))
    y = X[:, 0] + 0.1 * rng.standard_normal(60)
    model = TableRegressor(folds=2).fit(X, y)
    found = solvable.learn_features(X, y, folds=2, workers=1)
    np.testing.assert_allclose(model.predict(X), found.predict(X))
    assert cross_val_score(TableRegressor(folds=2), X, y, cv=2).min() > 0.9
    with pytest.raises(InvalidData, match="at least 20"):
        TableRegressor().fit(X[:9], y[:9])
    with pytest.raises(InvalidParameter, match="seconds is 0"):
        TableRegressor(seconds=0).fit(X, y)


def test_a_time_limit_leaves_out_slow_methods():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((60, 3))
    model = TableRegressor(folds=2, seconds=1e-9).fit(X, X[:, 0])
    missing = [score for score in model.learned_.methods if score.error is None]
    assert "boosted trees, tuned" in {score.title for score in missing}
    assert all("time limit" in score.remark for score in missing)
    assert model.learned_.chosen.key == "learned-features"


@pytest.mark.parametrize("kind", [TableRegressor, TableClassifier])
def test_weights_of_rows_are_refused(kind):
    X = np.random.default_rng(0).standard_normal((40, 2))
    y = X[:, 0] if kind is TableRegressor else X[:, 0] > 0
    with pytest.raises(ValueError, match="sample_weight is given"):
        kind().fit(X, y, sample_weight=np.ones(40))
    with pytest.raises(TypeError, match="unexpected arguments weight"):
        kind().fit(X, y, weight=1)
