"""The blend of methods: weights, nested predictions, its choice, and its file."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from solvable.data import load
from solvable.errors import InvalidData
from solvable.fitting.described_arrays import read_described, write_described
from solvable.learn import Request, feature_words, learn, trees, words
from solvable.learn.blend import (
    Blend,
    blend_of,
    blended,
    fitted_blend,
    weights_of,
    without_chance,
)
from solvable.learn.competitors import BLEND, LEARNED, methods
from solvable.learn.design import Design
from solvable.learn.fold_fits import Measured, outputs_of
from solvable.learn.scoring import Losses, score_methods
from solvable.learn.stored_models import FORMAT, load_fitted, save_fitted

KEYS = ("ridge", "rbf", "trees")


def fits_of(predictions, folds):
    return {
        key: [Measured(key, fold, 10, one[folds == fold], rows=10) for fold in np.unique(folds)]
        for key, one in predictions.items()
    }


def noisy_methods(rows, deviations, seed):
    """Return a target, and predictions with independent errors of given deviations."""
    rng = np.random.default_rng(seed)
    y = rng.standard_normal(rows)
    noise = rng.standard_normal((len(deviations), rows))
    return y, {key: y + s * e for key, s, e in zip(KEYS, deviations, noise, strict=False)}


def test_two_weights_are_the_closed_form_within_a_tenth():
    # The mean w r_1 + (1 - w) r_2 has the smallest square at w = r_2.(r_2 - r_1) / |r_2 - r_1|².
    for seed in range(20):
        rng = np.random.default_rng(seed)
        first, second = rng.standard_normal((2, 50)) * rng.uniform(0.5, 2, (2, 1))
        second = second + rng.uniform(0, 1) * first
        gap = second - first
        best = float(np.clip(second @ gap / (gap @ gap), 0, 1))
        found = weights_of({"ridge": first[:, None], "rbf": second[:, None]})
        assert sum(found.values()) == pytest.approx(1)
        # The loss is convex in w, so the best tenth is next to the best weight.
        assert abs(found.get("ridge", 0.0) - best) < 0.1 + 1e-9


def test_at_most_three_methods_have_a_weight():
    rng = np.random.default_rng(0)
    keys = ("ridge", "rbf", "nngp", "trees", "metric-kernel")
    found = weights_of({key: rng.standard_normal((300, 2)) for key in keys})
    assert len(found) == 3
    assert list(found.values()) == sorted(found.values(), reverse=True)


def test_independent_errors_are_averaged_and_the_blend_is_better():
    y, predictions = noisy_methods(400, (0.6, 0.6), 1)
    folds = np.arange(400) % 4
    blend = blend_of(fits_of(predictions, folds), y, folds, classes=0)
    assert blend.weights == pytest.approx({"ridge": 0.5, "rbf": 0.5}, abs=0.11)
    # The mean of two independent errors of variance 0.36 has variance 0.18, standard error 0.013.
    assert blend.squared * np.var(y) == pytest.approx(0.18, abs=0.04)
    assert blend.picked * np.var(y) == pytest.approx(0.36, abs=0.08)
    assert blend.is_better


def test_a_fold_is_predicted_with_weights_from_the_other_folds():
    y, predictions = noisy_methods(90, (0.5, 0.7, 0.9), 2)
    folds = np.arange(90) % 3
    before = blend_of(fits_of(predictions, folds), y, folds, classes=0)
    # In fold 1 the worst method becomes perfect, which changes the weights of the other folds only.
    changed = predictions | {"trees": np.where(folds == 1, y, predictions["trees"])}
    after = blend_of(fits_of(changed, folds), y, folds, classes=0)
    others = {
        key: (one - y)[folds != 1][:, None] for key, one in predictions.items()
    }  # residuals without fold 1
    expected = sum(w * changed[key][folds == 1] for key, w in weights_of(others).items())
    np.testing.assert_allclose(after.fits[1].predicted, expected, atol=1e-12)
    assert after.weights["trees"] > before.weights.get("trees", 0)
    # With given weights, as on the learning curve
    fits = fits_of({key: predictions[key] for key in before.weights}, folds)
    given = blended(before.weights, fits, y, folds, classes=0)
    mean = sum(w * predictions[key] for key, w in before.weights.items())
    for fit in given:
        np.testing.assert_allclose(fit.predicted, mean[folds == fit.fold], atol=1e-12)


def test_one_good_method_is_not_blended():
    y, predictions = noisy_methods(60, (0.0, 3.0), 3)
    folds = np.arange(60) % 3
    assert blend_of(fits_of(predictions, folds), y, folds, classes=0) is None
    failed = [replace(fit, failure="too wide") for fit in fits_of(predictions, folds)["rbf"]]
    fits = fits_of(predictions, folds) | {"rbf": failed}
    assert blend_of(fits, y, folds, classes=0) is None


def test_the_blend_is_named_where_it_is_better_and_the_sentence_has_its_weights():
    y, predictions = noisy_methods(300, (0.6, 0.6), 4)
    predictions |= {LEARNED: y + 0.9 * predictions["ridge"], "constant": np.zeros(300)}
    folds = np.arange(300) % 3
    fits = fits_of(predictions, folds)
    blend = blend_of(fits, y, folds, classes=0)
    compared = [one for one in methods(Design(True, "columns")) if one.key in fits]
    compared.insert(-1, blend.method(compared))
    losses = Losses(y, folds, regression=True)
    for better, named in ((True, BLEND), (False, "ridge")):
        scores = score_methods(compared, fits | {BLEND: blend.fits}, losses, blended=better)
        (chosen,) = [score for score in scores if score.recommended]
        assert (chosen.key == BLEND) == (named == BLEND)
    scores = score_methods(compared, fits | {BLEND: blend.fits}, losses, blended=True)
    chosen = next(score for score in scores if score.key == BLEND)
    found = SimpleNamespace(chosen=chosen, methods=scores, learned=scores[0], metric="")
    found.is_regression, found.n_samples = True, 300
    first = words.recommendation(found)
    weights = {key: f"({100 * w:.0f} %)" for key, w in blend.weights.items()}
    assert f"a linear model {weights['ridge']}" in first
    assert f"a Gaussian kernel {weights['rbf']}" in first
    assert first.startswith("Use a blend of ")
    assert "of the single methods, a " in first
    lucky = [replace(one, error=0.9 * chosen.error) if one.key == "rbf" else one for one in scores]
    found.methods = lucky
    sentence = words.recommendation(found)
    assert "a Gaussian kernel has " in sentence
    assert f"the smallest of {len(predictions) - 1} errors is partly luck" in sentence
    assert feature_words.owner_sentence(found).endswith("the blend does not use them.")
    found.chosen = replace(chosen, phrase=f"{chosen.phrase} and learned features (10 %)")
    assert feature_words.owner_sentence(found).endswith("a part of the blend.")
    assert "(a blend) is fitted to all 300 rows" in words.reason_sentences(found)[-1]


@pytest.fixture(scope="module")
def small_trees():
    """Try a single setting of the trees, for speed."""
    effort = trees.Effort(120, (trees.Setting(3, 5),), 0.3, 3, 2, "")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trees, "effort_for", lambda *size: effort)
        yield


@pytest.fixture(scope="module", params=[0, 2, 3])
def stored(request, tmp_path_factory, small_trees):
    """Blend of a kernel, trees and a network for numbers, two or three classes, with its file."""
    classes = request.param
    rng = np.random.default_rng(5)
    X = rng.standard_normal((120, 4))
    y = X[:, 0] + (X[:, 1] > 0) + 0.3 * rng.standard_normal(120)
    if classes:
        y = np.searchsorted(np.quantile(y, np.arange(1, classes) / classes), y)
    compared = {one.key: one for one in methods(Design(not classes, "columns"))}
    folds, fits = np.arange(120) % 2, {}
    for key in KEYS:
        fits[key] = []
        for fold in (0, 1):
            model = compared[key].make().fit(X[folds != fold], y[folds != fold])
            rows = X[folds == fold]
            scores = outputs_of(model, rows) if classes else None
            fits[key].append(Measured(key, fold, 60, model.predict(rows), scores=scores, rows=60))
    weights = {"rbf": 0.5, "trees": 0.3, "ridge": 0.2}
    models = {key: compared[key].make().fit(X, y) for key in KEYS}
    model = fitted_blend(weights, models, fits, y, folds, classes=classes, columns=4)
    path = save_fitted(model, tmp_path_factory.mktemp("blend") / "model.safetensors")
    return classes, X, y, model, path, Blend(weights, fits["rbf"], 1.0, 2.0), models


def test_a_stored_blend_predicts_the_same(stored):
    classes, X, y, model, path, blend, models = stored
    other, _ = load_fitted(path)
    fresh = np.random.default_rng(6).standard_normal((50, 4))
    if not classes:
        mean = sum(w * models[key].predict(fresh) for key, w in blend.weights.items())
        np.testing.assert_allclose(model.predict(fresh), mean, rtol=1e-9)
        np.testing.assert_allclose(other.predict(fresh), mean, rtol=1e-9)
        return
    shares = model.predict_proba(fresh)
    np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-9)
    np.testing.assert_allclose(other.predict_proba(fresh), shares, rtol=1e-9)
    np.testing.assert_array_equal(other.predict(fresh), shares.argmax(axis=1))
    # Log odds of the probabilities, in the shape of other classifiers
    odds = np.exp(other.decision_function(fresh))
    np.testing.assert_allclose(
        odds / (1 + odds), shares[:, 1] if classes == 2 else shares, rtol=1e-9
    )
    assert np.mean(model.predict(X) == y) > 0.8


def test_a_damaged_blend_is_one_clear_line(stored, tmp_path):
    *_, path, _, _ = stored
    arrays, content = read_described(path, (FORMAT,), "learn")
    nested = {**content, "model": {**content["model"], "members": [content] * 3}}
    without = {key: value for key, value in arrays.items() if key != "weights"}
    for number, parts in enumerate([(arrays, nested), (without, content)]):
        damaged = write_described(tmp_path / f"{number}.safetensors", *parts)
        with pytest.raises(InvalidData, match="does not describe a model") as raised:
            load_fitted(damaged)
        assert "\n" not in str(raised.value)


def test_a_method_far_behind_is_stopped_and_close_ones_are_not():
    y, predictions = noisy_methods(400, (0.3, 0.32), 3)
    folds = np.arange(len(y)) % 5
    # An independent error would have a weight in the blend.
    predictions["trees"] = y + 2 * (predictions["rbf"] - y)
    first = {key: fits[:2] for key, fits in fits_of(predictions, folds).items()}
    stopped = without_chance(first, y, folds, classes=0)
    assert list(stopped) == ["trees"]
    squares = {key: np.sum((one - y)[folds < 2] ** 2) for key, one in predictions.items()}
    ratio = squares["trees"] / min(squares.values())
    assert f"{ratio:.3g} times the smallest" in stopped["trees"]
    # A single huge error, however large, is no evidence.
    predictions["trees"] = predictions["rbf"] + 100.0 * (np.arange(len(y)) == 5)
    first = {key: fits[:2] for key, fits in fits_of(predictions, folds).items()}
    assert not without_chance(first, y, folds, classes=0)


def test_a_stopped_method_is_not_fitted_further_and_the_named_one_is():
    rng = np.random.default_rng(6)
    X = rng.standard_normal((300, 8))
    y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(300)
    found = learn(load(X, y))
    stopped = [score for score in found.methods if "stopped after 2 folds" in score.remark]
    assert stopped
    assert all(score.error is None and not score.recommended for score in stopped)
    assert found.chosen.error is not None
    assert learn(load(X, y), Request(metric="r2")).methods[0].error == pytest.approx(
        found.methods[0].error
    )
