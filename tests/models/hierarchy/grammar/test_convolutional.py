"""The hierarchical CNN: formulas in loops, gradients by differences, scaling in width."""

from __future__ import annotations

import numpy as np
import pytest

from solvable.arrays import random_stream
from solvable.errors import InvalidParameter, NotConverged
from solvable.models.hierarchy.grammar.learner.convolutional import (
    FullyConnectedNetwork,
    HierarchicalCNN,
)
from solvable.models.hierarchy.target import RandomHierarchy

TARGET = RandomHierarchy(vocabulary=6, rules=3, branching=2, depth=3, seed=0)


def untrained(n=40, **settings):
    """Model with its initial weights in double precision, and its data."""
    X, y = TARGET.sample(n, 0)
    model = HierarchicalCNN(**{"width": 5, "learning_rate": 0.0, "max_epochs": 1} | settings).fit(
        X, y
    )
    model.weights_ = [weights.astype(float) for weights in model.weights_]
    model.readout_ = model.readout_.astype(float)
    return model, X, y


@pytest.mark.parametrize("shared", [True, False])
def test_outputs_are_those_of_the_formula(shared):
    model, X, _ = untrained(shared=shared, random_state=0)
    V = 6
    for string, outputs in zip(X[:5], model._outputs(X[:5]), strict=True):
        # One-hot leaves with mean 0 and variance 1 over uniform symbols.
        states = [(np.eye(V)[a] - 1 / V) / np.sqrt((1 - 1 / V) / V) for a in string]
        for weights in model.weights_:
            pairs = [np.concatenate(states[i : i + 2]) for i in range(0, len(states), 2)]
            groups = [0] * len(pairs) if shared else range(len(pairs))
            states = [
                np.maximum(weights[group].T @ pair / np.sqrt(len(pair)), 0)
                for group, pair in zip(groups, pairs, strict=True)
            ]
        np.testing.assert_allclose(model.readout_.T @ states[0] / 5, outputs, rtol=1e-5)


@pytest.mark.parametrize("kind", ["shared", "local", "fully connected"])
def test_gradients_are_differences_of_the_loss(kind):
    model, X, y = untrained(shared=kind == "shared", random_state=1)
    if kind == "fully connected":
        model = FullyConnectedNetwork(width=5, learning_rate=0.0, max_epochs=1, random_state=1)
        model.fit(X, y)
        model.weights_ = [weights.astype(float) for weights in model.weights_]
        model.readout_ = model.readout_.astype(float)
    _, gradients = model._gradients(X.astype(int), y)
    rng = random_stream(0)
    for array, gradient in zip([*model.weights_, model.readout_], gradients, strict=True):
        direction = rng.standard_normal(array.shape)
        losses = []
        for sign in (1, -1):
            array += sign * 1e-5 * direction
            losses.append(model.loss(X, y))
            array -= sign * 1e-5 * direction
        slope = (losses[0] - losses[1]) / 2e-5
        assert np.sum(gradient * direction) == pytest.approx(slope, rel=1e-4, abs=1e-8)


def test_local_weights_that_are_equal_give_the_shared_network():
    shared, X, _ = untrained(random_state=0)
    local, _, _ = untrained(shared=False, random_state=0)
    local.readout_ = shared.readout_
    local.weights_ = [
        np.repeat(weights, len(groups), axis=0)
        for weights, groups in zip(shared.weights_, local.weights_, strict=True)
    ]
    np.testing.assert_allclose(local._outputs(X), shared._outputs(X), rtol=1e-6)


def test_features_move_by_the_same_amount_at_any_width():
    X, y = TARGET.sample(64, 0)
    widths = np.array([32, 96, 288])
    moves = []
    for width in widths:
        change = []
        for seed in range(6):
            start, moved = (
                HierarchicalCNN(width=width, learning_rate=rate, max_epochs=8, random_state=seed)
                .fit(X, y)
                .hidden(X, 1)
                for rate in (0.0, 0.2)
            )
            change.append(np.linalg.norm(moved - start) / np.linalg.norm(start))
        moves.append(np.mean(change))
    # In the tangent-kernel scaling the slope would be -1/2.
    slope = np.polyfit(np.log(widths), np.log(moves), 1)[0]
    assert abs(slope) < 0.1
    assert min(moves) > 0.1


def test_hidden_activations_have_one_row_per_parent():
    model, X, _ = untrained()
    assert [model.hidden(X, level).shape for level in (3, 2, 1)] == [
        (40, 4, 5),
        (40, 2, 5),
        (40, 1, 5),
    ]
    last = model.hidden(X, 1)[:, 0] @ model.readout_ / 5
    np.testing.assert_allclose(last, model._outputs(X))
    for level in (0, 4):
        with pytest.raises(InvalidParameter, match="level is"):
            model.hidden(X, level)


def test_long_inputs_are_passed_in_parts():
    model, _, _ = untrained()
    X, _ = TARGET.sample(5000, 1)
    np.testing.assert_allclose(
        model.predict_proba(X)[4000:], model.predict_proba(X[4000:]), rtol=1e-6
    )


def test_training_stops_at_its_loss():
    X, y = TARGET.sample(600, 0)
    model = HierarchicalCNN(stop_loss=0.3, random_state=0).fit(X, y)
    assert model.loss_curve_[-1] <= 0.3 < model.loss_curve_[-2]
    assert model.n_iter_ < 200
    assert not model.validation_curve_


def test_weights_of_the_best_validation_loss_are_kept():
    rng = random_stream(0)
    X, _ = TARGET.sample(300, 0)
    y = rng.integers(0, 2, 300)  # labels without signal, on which training overfits
    settings = {"validation_fraction": 0.3, "stop_loss": 0.0, "random_state": 0}
    model = HierarchicalCNN(max_epochs=40, **settings).fit(X, y)
    best = int(np.argmin(model.validation_curve_))
    assert model.validation_curve_[-1] > model.validation_curve_[best] + 0.1
    # The validation strings are those that the seed chooses first.
    apart = random_stream(0, "order of the strings").permutation(300)[:90]
    assert model.loss(X[apart], y[apart]) == pytest.approx(model.validation_curve_[best], rel=1e-5)


@pytest.mark.filterwarnings("ignore:overflow encountered", "ignore:invalid value encountered")
def test_divergence_is_reported():
    X, y = TARGET.sample(200, 0)
    with pytest.raises(NotConverged, match=r"diverged in epoch .*Lower learning_rate"):
        HierarchicalCNN(learning_rate=1e6, random_state=0).fit(X, y)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("width", 0), ("batch_size", 0), ("max_epochs", 0.5), ("stop_loss", -1), ("momentum", 1.0),
        ("learning_rate", np.inf), ("validation_fraction", 1.0), ("random_state", "x"),
        ("shared", "x"),
    ],
)  # fmt: skip
def test_bad_settings(name, value):
    X, y = TARGET.sample(20, 0)
    with pytest.raises(InvalidParameter, match=f"{name} is"):
        HierarchicalCNN(**{name: value}).fit(X, y)
