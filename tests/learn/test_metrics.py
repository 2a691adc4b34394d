"""Metrics that the user chooses: against scikit-learn, their standard errors, the choice by them."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import metrics as reference

from solvable.data import load
from solvable.errors import InvalidParameter
from solvable.learn.fold_fits import Measured
from solvable.learn.metrics import check_metric, choose, interval_of, roc_of, scored_methods
from solvable.learn.request import METRICS, Request

ROWS, FOLDS = 600, 3


def fits_of(predicted, folds, outputs=None):
    return [
        Measured(
            "method",
            fold,
            0,
            predicted[folds == fold],
            scores=None if outputs is None else outputs[folds == fold],
        )
        for fold in range(FOLDS)
    ]


@pytest.fixture(scope="module")
def classes():
    rng = np.random.default_rng(0)
    folds = rng.permutation(ROWS) % FOLDS
    y = (rng.random(ROWS) < 0.3).astype(np.int64)
    outputs = y - 0.5 + rng.standard_normal(ROWS)
    return y, folds, outputs, (outputs > 0).astype(np.int64)


def scored(metric, y, folds, fits, clusters=None):
    return scored_methods(metric, {"ridge": fits}, y, folds, clusters)["ridge"]


def test_values_are_those_of_scikit_learn(classes):
    y, folds, outputs, predicted = classes
    fits = fits_of(predicted, folds, outputs)
    areas = [reference.roc_auc_score(y[folds == f], outputs[folds == f]) for f in range(FOLDS)]
    expected = {
        "accuracy": reference.accuracy_score(y, predicted),
        "balanced-accuracy": reference.balanced_accuracy_score(y, predicted),
        "auc": np.mean(areas),
    }
    for metric, value in expected.items():
        assert scored(metric, y, folds, fits).value == pytest.approx(value)
    true = y + 0.1 * outputs
    numbers = fits_of(outputs, folds)
    assert scored("r2", true, folds, numbers).value == pytest.approx(
        reference.r2_score(true, outputs)
    )
    assert scored("mae", true, folds, numbers).value == pytest.approx(
        reference.mean_absolute_error(true, outputs)
    )


def test_the_log_loss_is_that_of_the_best_logistic_function(classes):
    y, folds, outputs, predicted = classes
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=1e6).fit(outputs[:, None], y)
    best = reference.log_loss(y, model.predict_proba(outputs[:, None]))
    found = scored("log-loss", y, folds, fits_of(predicted, folds, outputs)).value
    assert best < found < best + 0.02


def test_three_classes_have_an_area_and_a_log_loss():
    rng = np.random.default_rng(1)
    y, folds = rng.integers(3, size=ROWS), np.arange(ROWS) % FOLDS
    outputs = np.eye(3)[y] + rng.standard_normal((ROWS, 3))
    fits = fits_of(outputs.argmax(axis=1), folds, outputs)
    expected = np.mean(
        [
            reference.roc_auc_score(y[folds == f] == c, outputs[folds == f, c])
            for f in range(FOLDS)
            for c in range(3)
        ]
    )
    assert scored("auc", y, folds, fits).value == pytest.approx(expected)
    assert 0.5 < scored("log-loss", y, folds, fits).value < np.log(3)


def test_standard_errors_of_the_jackknife():
    # Mean over 40 samples of the squared standard error, whose scatter is about 20 % each.
    rng = np.random.default_rng(2)
    folds, found, clustered = np.arange(ROWS) % FOLDS, [], []
    for _ in range(40):
        y = np.zeros(ROWS, dtype=np.int64)
        wrong = (rng.random(ROWS) < 0.2).astype(np.int64)
        found.append(scored("accuracy", y, folds, fits_of(wrong, folds)).error ** 2)
        pairs = np.repeat(wrong[: ROWS // 2], 2)
        fits = fits_of(pairs, folds)
        clustered.append(scored("accuracy", y, folds, fits, np.arange(ROWS) // 2).error ** 2)
    expected = 0.2 * 0.8 / ROWS
    assert np.mean(found) == pytest.approx(expected, rel=0.15)
    # Rows that come in equal pairs are half as many.
    assert np.mean(clustered) == pytest.approx(2 * expected, rel=0.15)


def test_the_simplest_method_within_a_standard_error_is_chosen(classes):
    y, folds, outputs, predicted = classes
    rng = np.random.default_rng(3)
    slightly = outputs + 0.02 * rng.standard_normal(ROWS)
    worse = outputs + 2 * rng.standard_normal(ROWS)
    nothing = np.zeros(ROWS)
    for metric in ("auc", "log-loss"):
        measured = {
            "trees": fits_of(predicted, folds, outputs),
            "rbf": fits_of(predicted, folds, slightly),
            "ridge": fits_of(predicted, folds, worse),
            "constant": fits_of(np.zeros(ROWS), folds, nothing),
        }
        found = scored_methods(metric, measured, y, folds)
        assert choose(metric, found) == "rbf"
        low, high = interval_of(metric, found["rbf"])
        assert METRICS[metric].range[0] <= low < found["rbf"].value < high
        noise = fits_of(predicted, folds, rng.standard_normal(ROWS))
        unrelated = measured | {"trees": noise, "rbf": noise, "ridge": noise}
        assert choose(metric, scored_methods(metric, unrelated, y, folds)) == "constant"


def test_metrics_of_the_wrong_kind_are_refused():
    with pytest.raises(InvalidParameter, match=r"metric is mae, .* 'species' holds classes"):
        check_metric("mae", load("iris"))
    with pytest.raises(InvalidParameter, match=r"metric is 'f2'; allowed: accuracy"):
        Request(metric="f2")
    failed = [Measured("trees", fold, 0, np.empty(0), failure="no") for fold in range(FOLDS)]
    y, folds = np.arange(ROWS) % 2, np.arange(ROWS) % FOLDS
    assert scored_methods("auc", {"trees": failed}, y, folds) == {}


def test_the_roc_curve_has_the_mean_area_of_the_folds(classes):
    y, folds, outputs, guess = classes
    roc = roc_of(fits_of(guess, folds, outputs), y, folds)
    areas = [reference.roc_auc_score(y[folds == f], outputs[folds == f]) for f in range(FOLDS)]
    assert roc.area == pytest.approx(np.mean(areas))
    assert roc.lower < roc.area < roc.upper
    # On a grid of 0.01 the trapezoid misses at most half a step of each rate.
    assert np.trapezoid(roc.true_positives, roc.false_positives) == pytest.approx(
        roc.area, abs=0.005
    )
    assert roc.true_positives[-1] == pytest.approx(1.0)
    assert np.all(np.diff(roc.true_positives) >= 0)
    assert roc_of(fits_of(guess, folds), y, folds) is None
    three = np.where(np.arange(len(y)) % 3, y, 2)
    assert roc_of(fits_of(guess, folds, outputs), three, folds) is None
