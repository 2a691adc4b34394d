"""Contract of the classifiers of strings.

scikit-learn's `check_estimator` fits Gaussian columns, which are no symbols, and any number of columns,
while these classifiers need s^L. Those of its checks that make sense for strings are repeated here.
"""

import pickle

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score

from solvable.errors import InvalidData, InvalidParameter
from solvable.models.hierarchy.grammar.learner.count_cluster import CountClusterClassifier
from solvable.models.hierarchy.grammar.learner.layerwise import LayerwiseRBFClassifier
from solvable.models.hierarchy.grammar.learner.strings import depth_of, symbol_codes
from solvable.models.hierarchy.target import RandomHierarchy

TARGET = RandomHierarchy(6, 3, 2, 2, seed=0)
X, Y = TARGET.sample(400, rng=0)
FRESH, FRESH_Y = TARGET.sample(300, rng=1)
X.setflags(write=False)
Y.setflags(write=False)
NAMES = np.array(["adverb", "noun", "particle", "pronoun", "verb", "zero"])
MODELS = [
    CountClusterClassifier(),
    CountClusterClassifier(positions="first"),
    LayerwiseRBFClassifier(),
    LayerwiseRBFClassifier(mode="features", n_features=100, positions="shared", rules=3),
]
every = pytest.mark.parametrize("model", MODELS, ids=repr)


@every
def test_fit_predict_and_probabilities(model):
    model = clone(model)
    assert is_classifier(model)
    assert model.fit(X, Y) is model
    assert model.n_features_in_ == 4
    assert model.depth_ == 2
    np.testing.assert_array_equal(model.classes_, np.arange(6))
    probabilities = model.predict_proba(FRESH)
    assert probabilities.shape == (300, 6)
    assert probabilities.min() >= 0
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    np.testing.assert_array_equal(model.predict(FRESH), np.argmax(probabilities, axis=1))
    assert model.score(FRESH, FRESH_Y) > 0.5


@every
def test_clone_pickle_and_second_fit_give_the_same_predictions(model):
    first = clone(model).fit(X, Y)
    expected = first.predict_proba(FRESH)
    assert clone(first).get_params() == model.get_params()
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(first)).predict_proba(FRESH), expected)
    first.fit(FRESH, FRESH_Y)
    np.testing.assert_array_equal(first.fit(X, Y).predict_proba(FRESH), expected)


@every
def test_labels_may_have_any_values(model):
    number = clone(model).fit(X, Y).predict(FRESH)
    words = clone(model).fit(X, NAMES[Y]).predict(FRESH)
    np.testing.assert_array_equal(words, NAMES[number])


@every
def test_whole_floats_and_rows_one_by_one_give_the_same(model):
    fitted = clone(model).fit(X.astype(float), Y)
    expected = fitted.predict(FRESH)
    np.testing.assert_array_equal(clone(model).fit(X, Y).predict(FRESH), expected)
    single = [fitted.predict(row[None])[0] for row in FRESH[:20]]
    np.testing.assert_array_equal(single, expected[:20])


@every
def test_symbols_that_were_not_seen_and_masked_symbols_are_accepted(model):
    strings = FRESH.astype(np.int64)
    strings[:, 0] = 17
    strings[:, -1] = -1
    assert clone(model).fit(X, Y).predict(strings).shape == (300,)
    masked = X.astype(np.int64)
    masked[:, -1] = -1
    fitted = clone(model).fit(masked, Y)
    np.testing.assert_array_equal(fitted.symbols_, np.arange(6))


@every
def test_two_classes(model):
    assert clone(model).fit(X, Y < 3).score(FRESH, FRESH_Y < 3) > 0.6


@every
def test_few_strings_per_class_are_accepted_without_a_warning(model):
    assert clone(model).fit(X[:7], Y[:7]).classes_.size == 4


@every
def test_bad_input_is_refused_in_one_line(model):
    fitted = clone(model).fit(X, Y)
    with pytest.raises(NotFittedError):
        clone(model).predict(X)
    for strings, message in (
        (X[:, :2], "2 features"),
        (np.where(X == 0, np.nan, X), "NaN"),
        (X + 0.5, "whole numbers"),
        (X[0], "2D"),
    ):
        with pytest.raises(InvalidData, match=message) as caught:
            fitted.predict(strings)
        assert "\n" not in str(caught.value)
    for strings, labels, message in (
        (np.where(X == 0, np.nan, X), Y, "NaN"),
        (X[:, :3], Y, "no power of branching = 2"),
        (X, Y[:-1], "inconsistent"),
        (X, np.zeros(400), "at least 2 classes"),
        (X, Y + 0.5, "continuous"),
        (X, np.where(Y == 0, np.nan, Y), "NaN"),
        (np.full_like(X, -1), Y, "masked"),
        (X[:0], Y[:0], "minimum of 1"),
        (None, Y, "scalar array"),
    ):
        with pytest.raises(InvalidData, match=message) as caught:
            clone(model).fit(strings, labels)
        assert "\n" not in str(caught.value)
    with pytest.raises(InvalidParameter, match="branching is 1"):
        clone(model).set_params(branching=1).fit(X, Y)


def test_cross_validation_runs():
    assert cross_val_score(CountClusterClassifier(), X, Y, cv=3).shape == (3,)


def test_depth_and_codes():
    assert [depth_of(n, 3) for n in (3, 9, 27)] == [1, 2, 3]
    with pytest.raises(InvalidData, match="no power"):
        depth_of(1, 2)
    codes = symbol_codes(np.array([[5, 2, 9, -1]]), np.array([2, 5]))
    np.testing.assert_array_equal(codes, [[1, 0, 2, 2]])
