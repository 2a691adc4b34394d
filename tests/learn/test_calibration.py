"""Calibrated probabilities: against scikit-learn, and on outputs of known probability."""

from __future__ import annotations

import json

import numpy as np
import pytest

from solvable.learn.calibration import Calibration, deviation_of, log_loss, reliability_of


def test_two_classes_are_calibrated_as_by_scikit_learn():
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.frozen import FrozenEstimator
    from sklearn.linear_model import RidgeClassifier

    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 3))
    y = (X[:, 0] + rng.standard_normal(300) > 0.5).astype(int)
    model = RidgeClassifier().fit(X, y)
    expected = CalibratedClassifierCV(FrozenEstimator(model), method="sigmoid").fit(X, y)
    mine = Calibration.fit(model.decision_function(X), y)
    found = mine.probabilities(model.decision_function(X))
    np.testing.assert_allclose(found, expected.predict_proba(X), atol=2e-3)
    assert Calibration.from_dict(json.loads(json.dumps(mine.to_dict()))) == mine


def test_true_probabilities_are_found_again():
    rng = np.random.default_rng(1)
    output = 3 * rng.standard_normal(6000)
    truth = 1 / (1 + np.exp(-output / 2 - 0.3))
    y = (rng.random(6000) < truth).astype(int)
    parts = [slice(i, None, 4) for i in range(4)]
    told = reliability_of([output[part] for part in parts], [y[part] for part in parts], 2)
    # Standard errors of slope and intercept are about 0.02 and 0.03.
    assert told.calibration.slopes[0] == pytest.approx(0.5, abs=0.08)
    assert told.calibration.intercepts[0] == pytest.approx(0.3, abs=0.12)
    assert told.deviation < 3 * told.chance
    entropy = -np.mean(truth * np.log(truth) + (1 - truth) * np.log(1 - truth))
    assert told.log_loss == pytest.approx(entropy, rel=0.05)
    assert told.log_loss < told.constant_log_loss < np.log(2) + 0.01


def test_wrong_probabilities_deviate_by_more_than_chance():
    rng = np.random.default_rng(2)
    y = (rng.random(2000) < 0.5).astype(int)
    overconfident = np.where(rng.random(2000) < 0.5, 0.05, 0.95)
    deviation, chance = deviation_of(np.column_stack([1 - overconfident, overconfident]), y)
    assert deviation == pytest.approx(0.45, abs=0.05)
    assert deviation > 5 * chance


def test_many_classes():
    rng = np.random.default_rng(3)
    y = rng.integers(3, size=900)
    outputs = np.eye(3)[y] + 0.5 * rng.standard_normal((900, 3))
    told = reliability_of(np.array_split(outputs, 3), np.array_split(y, 3), 3)
    found = told.calibration.probabilities(outputs)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    assert (found.argmax(axis=1) == y).mean() > 0.8
    assert told.log_loss < 0.6 < told.constant_log_loss
    assert told.log_loss == pytest.approx(log_loss(found, y), rel=0.1)


def test_extreme_outputs():
    y = np.arange(40) % 2
    separated = Calibration.fit(np.where(y, 1e9, -1e9), y)
    found = separated.probabilities(np.array([1e9, -1e9]))
    assert 0.9 < found[0, 1] < 1
    constant = Calibration.fit(np.zeros(40), (np.arange(40) < 10).astype(int))
    assert constant.probabilities(np.zeros(1))[0, 1] == pytest.approx(0.25, abs=0.03)
    assert reliability_of([np.zeros(5)] * 2, [np.zeros(5, int)] * 2, 2) is None
    with pytest.raises(ValueError, match="1 slopes and 0 intercepts"):
        Calibration.from_dict({"slopes": [1.0], "intercepts": []})
