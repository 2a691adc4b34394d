"""The fully connected network: formula, number of layers, and blindness to the order of leaves."""

from __future__ import annotations

import numpy as np
import pytest

from solvable.arrays import random_stream
from solvable.errors import InvalidParameter
from solvable.models.hierarchy.grammar.learner.convolutional import FullyConnectedNetwork
from solvable.models.hierarchy.target import RandomHierarchy

TARGET = RandomHierarchy(vocabulary=4, rules=2, branching=2, depth=3, seed=0)


@pytest.mark.parametrize("layers", [None, 1, 2])
def test_outputs_are_those_of_the_formula(layers):
    X, y = TARGET.sample(20, 0)
    model = FullyConnectedNetwork(width=7, layers=layers, max_epochs=2, random_state=0).fit(X, y)
    assert len(model.weights_) == (layers or 3)
    state = (np.eye(4)[X].reshape(20, -1) - 1 / 4) / np.sqrt(3 / 16)
    for weights in model.weights_:
        state = np.maximum(state @ weights[0] / np.sqrt(state.shape[1]), 0)
    np.testing.assert_allclose(model._outputs(X.astype(int)), state @ model.readout_ / 7, atol=1e-5)


def test_the_order_of_leaves_does_not_matter():
    X, y = TARGET.sample(200, 0)
    order = random_stream(0).permutation(8)
    plain = FullyConnectedNetwork(width=32, max_epochs=1, random_state=0).fit(X, y)
    moved = FullyConnectedNetwork(width=32, max_epochs=1, random_state=0).fit(X[:, order], y)
    # Rows of the first weights in the same order give the same network.
    moved.weights_ = [weights.copy() for weights in plain.weights_]
    moved.weights_[0] = plain.weights_[0].reshape(1, 8, 4, 32)[:, order].reshape(1, 32, 32)
    moved.readout_ = plain.readout_
    np.testing.assert_allclose(moved.predict_proba(X[:, order]), plain.predict_proba(X), rtol=1e-5)


def test_bad_number_of_layers():
    X, y = TARGET.sample(20, 0)
    with pytest.raises(InvalidParameter, match="layers is 0"):
        FullyConnectedNetwork(layers=0).fit(X, y)
