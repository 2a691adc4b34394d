"""Conventions of scikit-learn that every classifier of strings keeps.

`check_estimator` cannot be used: its samples are real numbers, not strings of symbols.
"""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import log_loss

from solvable.errors import InvalidData, InvalidParameter
from solvable.models.hierarchy.grammar.learner.convolutional import (
    FullyConnectedNetwork,
    HierarchicalCNN,
)
from solvable.models.hierarchy.grammar.learner.kernel import KernelClassifier, LazyCNNClassifier
from solvable.models.hierarchy.grammar.learner.transformer import TransformerClassifier
from solvable.models.hierarchy.target import RandomHierarchy

TARGET = RandomHierarchy(vocabulary=4, rules=2, branching=2, depth=2, seed=0)
NETWORKS = [
    HierarchicalCNN(width=16, max_epochs=30, random_state=1),
    HierarchicalCNN(width=16, max_epochs=30, shared=False, random_state=1),
    FullyConnectedNetwork(width=16, max_epochs=30, random_state=1),
    pytest.param(
        TransformerClassifier(width=16, heads=2, max_epochs=30, random_state=1),
        marks=pytest.mark.torch,
    ),
]
LEARNERS = [*NETWORKS, LazyCNNClassifier(random_state=1), KernelClassifier(random_state=1)]
every = pytest.mark.parametrize("model", LEARNERS, ids=lambda model: type(model).__name__)


@pytest.fixture(autouse=True)
def _torch_where_needed(request):
    if request.node.get_closest_marker("torch"):
        pytest.importorskip("torch")


@pytest.fixture(scope="module")
def data():
    X, y = TARGET.sample(120, 0)
    for array in (X, y):
        array.flags.writeable = False
    return X, y


@every
def test_parameters_are_kept_and_copied(model):
    copied = clone(model)
    assert copied.get_params() == model.get_params()
    assert clone(model).set_params(branching=3).branching == 3
    assert not any(name.endswith("_") for name in vars(copied))


@every
def test_the_same_seed_gives_the_same_fit_also_after_pickling(model, data):
    X, y = data
    first = clone(model).fit(X, y)
    second = clone(model).fit(X, y)
    np.testing.assert_array_equal(first._outputs(X.astype(int)), second._outputs(X.astype(int)))
    again = pickle.loads(pickle.dumps(first)).predict(X)
    np.testing.assert_array_equal(again, first.predict(X))
    refitted = first.fit(X, y)
    np.testing.assert_array_equal(refitted._outputs(X.astype(int)), second._outputs(X.astype(int)))


@every
def test_labels_of_any_kind_and_whole_floats(model, data):
    X, y = data
    names = np.array(["d", "a", "c", "b"])
    plain, named = clone(model).fit(X, y), clone(model).fit(X.astype(float), names[y])
    assert set(named.predict(X)) <= set(names)
    assert list(named.classes_) == ["a", "b", "c", "d"]
    assert plain.n_features_in_ == named.n_features_in_ == 4
    assert plain.depth_ == 2
    assert plain.vocabulary_ == 4


@every
def test_two_labels(model, data):
    X, y = data
    two = clone(model).fit(X, y > 1)
    assert two.score(X, y > 1) >= 0.5


@every
def test_nothing_is_predicted_before_the_fit(model, data):
    with pytest.raises(NotFittedError):
        clone(model).predict(data[0])


@every
def test_bad_strings_are_refused_in_one_line(model, data):
    X, y = data
    model = clone(model)
    for bad, pattern in (
        (X[:, :3], "have 3 symbols, which is no power of branching = 2"),
        (X[:, :1], "have 1 symbols, which is no power of branching = 2"),
        (X + 0.5, "allowed: whole numbers"),
        (X.astype(int) - 2, "symbols from -2 to"),
        (X.astype(int) + 10**15, r"symbol 100\d+; allowed: symbols below"),
        (X[:, 0], r"got 1D array instead; allowed: shape \(n, d\)"),
        (None, "got scalar array"),
        (np.where(X == 0, np.nan, X), "NaN; allowed: finite numbers"),
        (csr_array(X), "Sparse data"),
    ):
        with pytest.raises(InvalidData, match=pattern) as caught:
            model.fit(bad, y)
        assert "\n" not in str(caught.value)
    with pytest.raises(ValueError, match=r"numeric values|could not convert"):
        model.fit(np.full(X.shape, "a"), y)
    with pytest.raises(ValueError, match="inconsistent numbers"):
        model.fit(X, y[:-1])
    with pytest.raises(ValueError, match="continuous"):
        model.fit(X, y + 0.5)
    with pytest.raises(InvalidData, match="several types; allowed: one"):
        model.fit(X, np.array([*"ab", *range(118)], dtype=object))
    with pytest.raises(InvalidParameter, match="branching is 1"):
        clone(model).set_params(branching=1).fit(X, y)
    with pytest.raises(InvalidParameter, match="vocabulary is 1"):
        clone(model).set_params(vocabulary=1).fit(X, y)
    with pytest.raises(InvalidParameter, match=r"vocabulary is 10+; allowed: an integer from 2 to"):
        clone(model).set_params(vocabulary=10**9).fit(X, y)
    with pytest.raises(InvalidData, match="symbols from 0 to 3"):
        clone(model).set_params(vocabulary=3).fit(X, y)
    model.fit(X, y)
    with pytest.raises(ValueError, match="4 features"):
        model.predict(np.tile(X, 2))
    with pytest.raises(InvalidData, match="Give vocabulary if a symbol may be missing"):
        model.predict(X.astype(int) + 1)


@every
def test_symbols_and_masks_that_training_lacks(model, data):
    X, y = data
    model = clone(model).set_params(vocabulary=6).fit(X, y)
    masked = X.astype(int)
    masked[:, -1] = -1
    assert model.predict(masked).shape == model.predict(np.full_like(X, 5)).shape == y.shape
    # With the last leaf masked in training too, the label is predicted above chance.
    assert clone(model).fit(masked, y).score(masked, y) > 0.35


@pytest.mark.parametrize("model", NETWORKS, ids=lambda model: type(model).__name__)
def test_probabilities_and_their_loss(model, data):
    X, y = data
    model = clone(model).fit(X, y)
    probabilities = model.predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-12)
    np.testing.assert_array_equal(model.classes_[probabilities.argmax(axis=1)], model.predict(X))
    assert model.loss(X, y) == pytest.approx(log_loss(y, probabilities), rel=1e-5)
    assert len(model.loss_curve_) == model.n_iter_
    assert model.loss_curve_[-1] < model.loss_curve_[0]
    for wrong in (y + 9, y[:-1]):
        with pytest.raises(InvalidData, match="did not occur in training"):
            model.loss(X, wrong)
