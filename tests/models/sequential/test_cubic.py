"""Predictions for cubic first layers, and the settings without a prediction."""

import numpy as np
import pytest

from solvable.arrays import random_stream
from solvable.errors import InvalidParameter
from solvable.frame.points import NO_PREDICTION
from solvable.models.sequential.measure import measure
from solvable.models.sequential.parameters import SequentialParameters
from solvable.models.sequential.predict import predict


def compare(**setting: object) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Predicted overlaps (NaN without a prediction), and means and standard errors of measured ones."""
    parameters = SequentialParameters(degree=3, test_samples=50, **setting)  # type: ignore[arg-type]
    runs = [measure(parameters, random_stream("cubic", k)) for k in range(6)]
    measured = np.array([run["squared_overlap"] for run in runs], dtype=float)
    predicted = np.array(predict(parameters)["squared_overlap"], dtype=float)
    return predicted, measured.mean(axis=0), measured.std(axis=0, ddof=1) / np.sqrt(len(runs))


def test_features_below_half_their_threshold_are_predicted() -> None:
    predicted, mean, error = compare(dimension=12, features=3, decay=0.2, samples=7_000)
    known = np.isfinite(predicted)
    assert known.any()
    assert (np.abs(mean - predicted) < 3 * error + 0.03)[known].all()


@pytest.mark.slow
def test_features_far_above_all_thresholds_are_predicted() -> None:
    predicted, mean, error = compare(dimension=12, features=2, samples=250_000)
    assert (predicted > 0.8).all()
    assert (np.abs(mean - predicted) < 3 * error + 0.03).all()


def test_a_population_larger_than_its_only_feature_leaves_it_unknown() -> None:
    # For one tensor of twelve inputs the population operator is as large as the spike.
    prediction = predict(SequentialParameters(dimension=12, degree=3, features=1, samples=150_000))
    assert prediction["squared_overlap"] == [None]


def test_one_feature_between_leaves_the_others_unknown() -> None:
    parameters = SequentialParameters(dimension=12, degree=3, features=3, samples=60_000)
    prediction = predict(parameters)
    assert prediction["squared_overlap"] == [None, None, None]
    assert prediction["normalised_mse"] is None
    assert "above three thresholds of all features" in str(prediction[NO_PREDICTION])


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ({"dimension": 50, "features": 4}, "dimension 12 to 40"),
        ({"dimension": 11, "features": 2}, "dimension is 11 .*dimension 12 to 40"),
        ({"dimension": 14, "features": 2, "correction": "none"}, "correction=wick"),
    ],
)
def test_a_cubic_layer_without_a_law_is_refused_in_one_line(
    setting: dict[str, object], reason: str
) -> None:
    with pytest.raises(InvalidParameter, match=reason):
        predict(SequentialParameters(degree=3, **setting))  # type: ignore[arg-type]
