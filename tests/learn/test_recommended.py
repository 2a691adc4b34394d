"""The recommended method, and the balanced error and AUC where one class has nearly all rows."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score, roc_auc_score

from solvable.data import load
from solvable.learn import Request, learn, words
from solvable.learn.competitors import LEARNED, SIMPLEST, Method
from solvable.learn.fold_fits import Measured
from solvable.learn.scoring import Losses, score_methods
from solvable.learn.tables import method_table


def methods_of(keys):
    return [Method(key, key, key, "", lambda: None) for key in keys]


def fits_of(predictions, scores=None):
    return {
        key: [Measured(key, 0, 10, np.asarray(one), scores=None if scores is None else scores[key])]
        for key, one in predictions.items()
    }


def test_the_smallest_error_is_recommended_and_the_others_are_told_apart():
    # Squared errors of 400 rows that differ only by noise, and of one method twice as large
    rng = np.random.default_rng(0)
    y = rng.standard_normal(400)
    noise = rng.standard_normal(400)
    predictions = {
        LEARNED: y + 0.5 * noise,
        "ridge": y + 0.5 * noise + 0.02 * rng.standard_normal(400),
        "rbf": y + 0.499 * noise,
        "trees": y + 0.7 * noise,
        "constant": np.zeros(400),
    }
    losses = Losses(y, np.zeros(400, dtype=int), regression=True)

    def scored():
        return score_methods(methods_of(predictions), fits_of(predictions), losses)

    assert [score.key for score in scored() if score.recommended] == ["rbf"]
    # It is better than the learned features by a small but certain amount.
    assert [score.key for score in scored() if score.tied] == ["ridge"]
    predictions["rbf"] = y + 0.52 * noise
    predictions["ridge"] = y + 0.5 * noise + 0.001 * rng.standard_normal(400)
    named = {score.key: score for score in scored()}
    best = min((LEARNED, "ridge"), key=lambda key: named[key].error)
    assert [key for key, score in named.items() if score.recommended] == [best]
    assert [key for key, score in named.items() if score.tied] == list({LEARNED, "ridge"} - {best})


def test_of_two_equal_errors_the_simpler_method_is_recommended():
    y = np.arange(40) % 2
    wrong = [np.where(np.arange(40) < k, 1 - y, y) for k in (4, 4, 4, 8)]
    predictions = dict(zip([LEARNED, "trees", "rbf", "ridge"], wrong, strict=True))
    predictions["rbf"] = np.where(np.arange(40) >= 36, 1 - y, y)  # other rows, as many
    predictions["constant"] = np.zeros(40, dtype=int)
    losses = Losses(y, np.zeros(40, dtype=int), regression=False)
    scores = score_methods(methods_of(predictions), fits_of(predictions), losses)
    assert [score.key for score in scores if score.recommended] == ["rbf"]
    assert {score.key for score in scores if score.tied} == {LEARNED, "trees", "ridge"}
    assert SIMPLEST.index("ridge") < SIMPLEST.index("rbf") < SIMPLEST.index(LEARNED)


def test_the_constant_is_recommended_where_nothing_beats_it():
    rng = np.random.default_rng(1)
    y = rng.standard_normal(100)
    predictions = {LEARNED: rng.standard_normal(100), "constant": np.zeros(100)}
    losses = Losses(y, np.zeros(100, dtype=int), regression=True)
    scores = score_methods(methods_of(predictions), fits_of(predictions), losses)
    assert [score.key for score in scores if score.recommended] == ["constant"]
    assert not any(score.tied for score in scores)


@pytest.fixture(scope="module")
def rare(tmp_path_factory, without_learning_curve):
    """Table with 30 of 640 rows in the second class, and the result of learning."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((640, 6))
    strength = X[:, 0] + X[:, 1] * X[:, 2] + 0.8 * rng.standard_normal(640)
    y = np.where(strength > np.sort(strength)[-31], "rare", "common")
    path = tmp_path_factory.mktemp("rare") / "rare.csv"
    lines = [
        ",".join([*(f"{cell:.5f}" for cell in row), label]) for row, label in zip(X, y, strict=True)
    ]
    path.write_text("\n".join(["a,b,c,d,e,f,y", *lines]))
    data = load(str(path), target="y")
    with without_learning_curve():
        return data, learn(data, Request(folds=3))


def test_balanced_error_and_area_are_those_of_scikit_learn(rare):
    data, found = rare
    score = found.chosen
    expected = 1 - balanced_accuracy_score(data.y, found.predictions)
    assert score.balanced_error == pytest.approx(expected)
    truth = np.array([0, 0, 1, 1, 1, 0])
    outputs = np.array([0.1, 0.4, 0.3, 0.9, 0.8, 0.2])
    y = np.concatenate([truth, np.zeros(40, dtype=int)])
    predictions = {LEARNED: np.zeros(46, dtype=int), "constant": np.zeros(46, dtype=int)}
    ranks = {LEARNED: np.concatenate([outputs, np.linspace(-1, 0, 40)]), "constant": np.zeros(46)}
    losses = Losses(y, np.zeros(46, dtype=int), regression=False)
    first, last = score_methods(
        methods_of(predictions), fits_of(predictions, ranks), losses, ["no", "yes"]
    )
    assert first.auc == pytest.approx(roc_auc_score(y, ranks[LEARNED]))
    assert last.auc == pytest.approx(0.5)
    assert first.never == ("yes",)


def test_a_rare_class_is_not_hidden_by_the_error(rare):
    data, found = rare
    constant = next(score for score in found.methods if score.key == "constant")
    assert constant.error < 0.05
    assert constant.balanced_error == pytest.approx(0.5)
    # With 30 rows against 610 the AUC has a standard error of 0.054.
    assert found.learned.auc > 0.5 + 4 * 0.054
    # By the error, no method would be recommended.
    assert not any(score.beats_constant for score in found.methods)
    (chosen,) = [score for score in found.methods if score.recommended]
    said = words.recommendation(found)
    assert said.startswith(f"Use {chosen.phrase}: ")
    assert f"AUC on held-out rows is {chosen.auc:.3f}; " in said
    assert chosen.auc == max(score.auc for score in found.methods)
    assert found.model.predict(data.X).shape == data.y.shape
    assert "These methods never predict 'rare': " in " ".join(words.class_sentences(found))
    assert "balanced" in [column.name for column in method_table(found).columns]


@pytest.mark.usefixtures("no_learning_curve")
def test_equal_classes_have_neither(tmp_path):
    found = learn(load("iris"), Request(folds=2))
    assert all(score.balanced_error is None and score.auc is None for score in found.methods)
    assert not words.class_sentences(found)
    assert words.recommendation(found).startswith("Use ")


@pytest.mark.usefixtures("no_learning_curve")
@pytest.mark.parametrize("columns", [300, pytest.param(1501, marks=pytest.mark.slow)])
def test_a_wide_table_is_learned_as_well_as_by_its_best_rival(tmp_path, columns):
    # Genes are correlated within modules; 60 are shifted by half a standard deviation in one class.
    rng = np.random.default_rng(1)
    y = rng.integers(2, size=150)
    modules = rng.standard_normal((150, 20)) @ rng.standard_normal((20, columns))
    X = 0.4 * modules + rng.standard_normal((150, columns))
    X[:, :60] += 0.5 * (2 * y - 1)[:, None] * rng.choice([-1, 1], 60)
    path = tmp_path / "wide.csv"
    head = ",".join([*(f"g{j}" for j in range(columns)), "kind"])
    labels = np.array(["sick", "well"])[y]
    rows = (
        ",".join([*map("{:.5g}".format, row), label]) for row, label in zip(X, labels, strict=True)
    )
    path.write_text("\n".join([head, *rows]) + "\n")
    found = learn(load(path, target="kind"), Request(folds=3))
    # The kernel with column weights is a feature learner too, and finds the 60 shifted columns.
    others = [
        s.error for s in found.methods[1:] if s.key != "metric-kernel" and s.error is not None
    ]
    rival = min(others)
    assert found.learned.error <= rival + np.sqrt(rival * (1 - rival) / 150)
    best = min(s.error for s in found.methods if s.error is not None)
    assert best < 0.25  # 0.5 by chance
    chosen = next(score for score in found.methods if score.recommended)
    assert words.recommendation(found).startswith(f"Use {chosen.phrase}: ")
    assert chosen.error <= best + np.sqrt(best * (1 - best) / 150)


def test_a_method_worse_than_the_constant_is_not_called_not_clearly_worse():
    # Two rows with huge errors leave the difference from the best uncertain.
    rng = np.random.default_rng(0)
    y, noise = rng.standard_normal((2, 200))
    predictions = {LEARNED: y + 0.3 * noise, "rbf": y + 0.3 * noise, "constant": np.zeros(200)}
    predictions["ridge"] = y + 0.3 * rng.standard_normal(200)
    predictions["ridge"][:2] = 60.0
    losses = Losses(y, np.zeros(200, dtype=int), regression=True)
    scored = score_methods(methods_of(predictions), fits_of(predictions), losses)
    named = {score.key: score for score in scored}
    assert named["ridge"].error > named["constant"].error
    assert named["ridge"].difference_lower < 0
    assert named["ridge"].verdict == "worse"
    assert not named["ridge"].tied
    assert named["rbf"].tied or named["rbf"].recommended


def test_where_wrong_predictions_tie_with_the_constant_the_log_loss_decides(no_learning_curve):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((240, 2))
    # The second class has probability 0.02 or 0.46, so it is never the most probable.
    y = np.where(rng.random(240) < np.where(X[:, 0] > 0, 0.46, 0.02), "yes", "no")
    found = learn(load(X, y), Request(folds=3))
    assert not any(score.beats_constant for score in found.methods)
    assert found.metric == "log-loss"
    assert found.chosen.key != "constant"
    assert "so the log loss" in words.reason_sentences(found)[0]
    assert "log loss on held-out rows is" in words.recommendation(found)
    assert found.reliability.log_loss < found.reliability.constant_log_loss
