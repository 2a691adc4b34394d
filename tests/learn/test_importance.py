"""Columns that the recommended model uses: importance, effects and interactions of planted tables."""

from __future__ import annotations

import numpy as np
import pytest

from solvable.arrays import random_stream
from solvable.data import load
from solvable.data.dataset import Split
from solvable.learn import Request, feature_words, learn
from solvable.learn.answer import figures
from solvable.learn.importance import (
    effects_of,
    explained,
    groups_of,
    importance_of,
    interactions_of,
    predicting,
)


def planted(seed=0, rows=400):
    rng = random_stream("importance", seed)
    X = rng.standard_normal((rows, 5))
    y = 2 * X[:, 0] + X[:, 1] * X[:, 2] + 0.3 * rng.standard_normal(rows)
    return X, y


def truth(X):
    return 2 * X[:, 0] + X[:, 1] * X[:, 2]


def test_losses_are_those_of_the_formula():
    X, y = planted(rows=3000)
    data = load(X, y)
    split = Split(X[:0], y[:0], X, y, data.preparation)
    variance = float(np.var(y))
    skill = 1 - float(np.mean((truth(X) - y) ** 2)) / variance
    groups = groups_of(data.X, data.preparation)
    assert groups == [(f"x{i}",) for i in range(5)]
    found = importance_of([(truth, split)] * 5, groups, skill=skill, scale=variance, seed=0)
    # Shuffling x_0 adds 2 * 4 to the mean squared error, x_1 or x_2 adds 2; the skill is 5 over variance.
    expected = {"x0": 8 / 5, "x1": 2 / 5, "x2": 2 / 5}
    named = {one.columns[0]: one for one in found if one.named}
    assert set(named) == set(expected)
    for name, value in expected.items():
        assert abs(named[name].lost - value) < 4 * named[name].error
    assert found[0].columns == ("x0",)
    assert all(one.lost == pytest.approx(0, abs=1e-9) for one in found[3:])


def test_interactions_are_those_of_the_formula():
    X, y = planted(rows=3000)
    data = load(X, y)
    groups = [("x0",), ("x1",), ("x2",)]
    (only,) = interactions_of(truth, X, data.preparation, groups, 0)
    assert (only.first, only.second) == (("x1",), ("x2",))
    # x_1 x_2 has variance 1 of 5; 150 rows give it within about a quarter.
    assert only.share == pytest.approx(1 / 5, rel=0.5)


def test_effects_of_numbers_and_texts():
    rng = np.random.default_rng(0)
    size, town = rng.standard_normal(90), rng.choice(["a", "b", "c"], 90)
    columns = {"size": size, "town": town.astype(object)}
    data = load(from_frame(columns), np.where(town == "b", 5.0, 0.0) + size**2)
    places = {name: i for i, name in enumerate(data.columns)}

    def predict(X):
        return 5 * X[:, places["town=b"]] + X[:, places["size"]] ** 2

    square, step = effects_of(predict, data.X, data.preparation, [("size",), ("town",)], (), 0)
    at = np.array(square.numbers)
    np.testing.assert_allclose(np.diff(square.means), np.diff(at**2), atol=1e-9)
    assert step.values == ("a", "b", "c")
    np.testing.assert_allclose(np.diff(step.means), [5, -5], atol=1e-9)


def from_frame(columns):
    import pandas as pd

    return pd.DataFrame(columns)


def test_correlated_columns_are_shuffled_together():
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((2, 300))
    data = load(np.column_stack([a, b, np.exp(a)]), a + b)
    assert groups_of(data.X, data.preparation) == [("x0", "x2"), ("x1",)]


@pytest.fixture(scope="module")
def found(without_learning_curve):
    X, y = planted(rows=150)
    with without_learning_curve():
        return learn(load(X, y), Request(folds=3))


def test_the_named_model_is_explained_by_the_planted_columns(found):
    named = {one.columns for one in found.explained.importance if one.named}
    assert ("x0",) in named
    assert named <= {("x0",), ("x1",), ("x2",)}
    said = " ".join(feature_words.importance_sentences(found))
    assert "Along 'x0', the mean prediction of 'y' is −" in said
    assert {one.name for one in figures(found)} >= {"learn-effect-1", "learn-predictions"}
    assert found.to_dict()["explained"]["importance"][0]["columns"] == ["x0"]


def test_correlated_columns_move_together():
    rng = np.random.default_rng(2)
    a = rng.standard_normal(200)
    X = np.column_stack([a, -a, rng.standard_normal(200)])
    data = load(X, a)
    (effect,) = effects_of(lambda X: X[:, 0] - X[:, 1], X, data.preparation, [("x0", "x1")], (), 0)
    np.testing.assert_allclose(effect.means, 2 * np.array(effect.numbers), atol=1e-9)


def test_without_skill_there_is_nothing_to_explain():
    X, y = planted(rows=60)
    data = load(X, y)
    model = predicting(data, None)
    options = {"labels": (), "scale": 1.0, "seed": 0}
    assert explained([], model, X, data.preparation, skill=1.0, **options).importance == ()
    split = Split(X, y, X, y, data.preparation)
    assert (
        explained([(truth, split)], truth, X, data.preparation, skill=0.0, **options).effects == ()
    )
