"""Weights of objects in Python, without torch: dictionaries and networks of scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from solvable import diagnose_weights
from solvable.data.weights.opening import open_weights
from solvable.errors import InvalidParameter


def fitted():
    X = np.random.default_rng(0).standard_normal((60, 6))
    model = MLPClassifier((8, 5), solver="lbfgs", max_iter=5, tol=1.0, random_state=0)
    return X, X[:, 0] > 0, model


@pytest.mark.filterwarnings("ignore:lbfgs failed")
def test_networks_of_scikit_learn_also_in_a_pipeline():
    X, y, model = fitted()
    whole = make_pipeline(StandardScaler(), model).fit(X, y)
    for source in (whole, whole[-1]):
        opened = open_weights(source)
        assert opened.name == "MLPClassifier"
        assert [stored.shape for stored in opened.arrays] == [(6, 8), (8, 5), (5, 1)]
        np.testing.assert_array_equal(opened.arrays[1].read(), whole[-1].coefs_[1])


def test_nested_dictionaries_have_joined_names():
    tree = {"params": {"dense": {"kernel": np.ones((2, 3)), "bias": [1.0, 2.0]}}, "text": "no"}
    opened = open_weights(tree)
    names = [stored.name for stored in opened.arrays]
    assert names[0] == "params/dense/kernel"
    assert "text" in names


def test_the_change_since_another_object_is_diagnosed():
    rng = np.random.default_rng(1)
    start = {"w": rng.standard_normal((40, 60))}
    after = {"w": start["w"] + 0.1 * rng.standard_normal((40, 60))}
    (row,) = diagnose_weights(after, initial=start, workers=1).matrices
    assert row.initial is not None
    assert row.initial.relative_change == pytest.approx(0.1, rel=0.1)


@pytest.mark.parametrize("source", [{}, 3, None, [1.0], fitted()[2]])
def test_other_objects_are_refused(source):
    with pytest.raises(InvalidParameter, match="a fitted MLPClassifier"):
        diagnose_weights(source)
