"""Boosted trees are tuned on training rows only, with bounded cost."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from solvable.data import load
from solvable.data.dataset import Split
from solvable.errors import InvalidData
from solvable.learn.design import Design
from solvable.learn.fold_fits import Task, measure
from solvable.learn.folds import deal_folds
from solvable.learn.scoring import score_methods
from solvable.learn.trees import TreesClassifier, TreesRegressor, effort_for


def steps_and_noise(rows, seed, noise=0.3):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, 6))
    return X, (X[:, 0] > 0.5) * 2.0 - (X[:, 1] > 0) * (X[:, 2] > 0) + noise * rng.standard_normal(
        rows
    )


@pytest.mark.parametrize(("rows", "models"), [(150, 3), (2000, 1)])
def test_they_are_those_of_scikit_learn_with_the_size_and_number_chosen(rows, models):
    from sklearn.ensemble import HistGradientBoostingRegressor

    X, y = steps_and_noise(rows, 1)
    mine = TreesRegressor(3).fit(X, y)
    fresh, _ = steps_and_noise(200, 2)
    dealt = deal_folds(models, np.arange(rows), None, seed=3)
    z, predicted = (y - y.mean()) / y.std(), []
    # The mean of the models of three folds, or one model of all rows
    for fold, model in enumerate(mine.models_):
        inside = dealt != fold if models > 1 else dealt == 0
        plain = HistGradientBoostingRegressor(
            learning_rate=0.1, max_leaf_nodes=mine.setting_.leaves, max_iter=model.n_iter_,
            min_samples_leaf=mine.setting_.least, max_features=mine.setting_.share,
            l2_regularization=float(models > 1), early_stopping=False, random_state=3,
        ).fit(X[inside], z[inside])  # fmt: skip
        predicted.append(y.mean() + y.std() * plain.predict(fresh))
    assert len(predicted) == models
    expected = np.mean(predicted, axis=0)
    np.testing.assert_allclose(mine.predict(fresh), expected, atol=1e-6)
    outputs = mine.as_arrays()(fresh)[:, 0]  # the same trees as arrays
    np.testing.assert_allclose(y.mean() + y.std() * outputs, expected, atol=1e-6)


def test_they_reach_the_noise_on_a_target_of_steps():
    X, y = steps_and_noise(3000, 3)
    fresh, truth = steps_and_noise(2000, 4)
    error = np.mean((TreesRegressor().fit(X, y).predict(fresh) - truth) ** 2)
    # The variance of the noise is 0.09, with a standard error of 0.003.
    assert 0.08 < error < 0.11


def test_few_trees_are_grown_on_noise():
    rng = np.random.default_rng(5)
    X, y = rng.standard_normal((300, 8)), rng.standard_t(3, 300)
    model = TreesRegressor().fit(X, y)
    assert np.var(model.predict(X)) < 0.25 * np.var(y)


def test_rare_classes_and_any_seed():
    rng = np.random.default_rng(6)
    X = rng.standard_normal((40, 3))
    y = np.array([5] * 38 + [7, 9])
    for seed in range(2):
        model = TreesClassifier(2**40 + seed).fit(X, y)
        assert set(model.predict(X)) <= {5, 7, 9}


@pytest.mark.parametrize(
    ("rows", "columns", "outputs", "leaves", "word"),
    [
        (300, 12, 3, (3, 8, 8, 31), ""),
        (16_000, 50, 1, (3, 8, 31), ""),
        (1400, 70, 10, (8, 31), "two sizes"),
        (4000, 700, 10, (16,), "only their number tuned"),
    ],
)
def test_what_is_tried_falls_with_the_size(rows, columns, outputs, leaves, word):
    effort = effort_for(rows, columns, outputs)
    assert tuple(setting.leaves for setting in effort.settings) == leaves
    assert effort.rows == rows
    assert word in effort.word


def test_fewer_rows_of_a_large_table_and_a_word():
    effort = effort_for(20_000, 3072, 10)
    assert effort.rows == 1302
    with pytest.raises(InvalidData, match="more than a minute per fold"):
        effort_for(100, 60_001, 1)


def test_what_was_not_done_in_full_is_told(monkeypatch):
    from solvable.learn import trees
    from solvable.learn.competitors import LEARNED, methods
    from solvable.learn.scoring import Losses

    monkeypatch.setattr(
        trees,
        "effort_for",
        lambda *_: trees.Effort(60, (trees.Setting(16, 3),), 0.3, 5, 1, "less was tried"),
    )
    design = Design(True, "columns")
    compared = [one for one in methods(design) if one.key in ("trees", "ridge")]
    X, y = steps_and_noise(200, 7)
    split = Split(X[:150], y[:150], X[150:], y[150:], load("iris").preparation)
    fits = {one.key: [measure(Task(one.key, 0, split, design, 150))] for one in compared}
    losses = Losses(y, np.where(np.arange(200) < 150, -1, 0), regression=True)
    # Errors of ridge replace those of learned features.
    learned = replace(compared[0], key=LEARNED)
    scores = score_methods([learned, *compared], fits | {LEARNED: fits["ridge"]}, losses)
    by_key = {score.key: score for score in scores}
    assert by_key["trees"].training_rows == 60
    assert by_key["trees"].remark == (
        "fitted to 60 of 150 training rows, to limit time; less was tried"
    )
    assert by_key["trees"].verdict is not None


def test_a_table_too_wide_is_left_out_with_the_reason(monkeypatch):
    from solvable.learn import trees

    def refuse(*size):
        raise InvalidData("trees on many columns")

    monkeypatch.setattr(trees, "effort_for", refuse)
    X, y = steps_and_noise(60, 8)
    split = Split(X[:40], y[:40], X[40:], y[40:], load("iris").preparation)
    fit = measure(Task("trees", 0, split, Design(True, "columns"), 40))
    assert fit.failure == "trees on many columns"
