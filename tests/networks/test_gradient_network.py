"""Networks trained by gradient descent, against explicit steps, closed forms, scikit-learn's rules."""

import pickle
import sys
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.utils.estimator_checks import parametrize_with_checks

from solvable.arrays import random_stream
from solvable.errors import InvalidData, InvalidParameter, NotConverged
from solvable.networks.base import stratified_split
from solvable.networks.gradient_network import GradientNetworkClassifier, GradientNetworkRegressor
from solvable.networks.gradient_training import TrainingSettings, train_network

SETTINGS = TrainingSettings(
    widths=(5,),
    activation="tanh",
    loss="squared",
    optimiser="sgd",
    step_size=0.1,
    momentum=0.0,
    weight_decay=0.0,
    batch_size=None,
    max_epochs=1,
    patience=50,
    device="cpu",
    seed=0,
)
NONE = np.empty(0, dtype=int)


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


def sample(n=60, d=3, seed=0):
    rng = random_stream(seed, "gradient network test")
    X = rng.standard_normal((n, d))
    return X, X[:, 0] - np.abs(X[:, 1])


@pytest.mark.torch
@parametrize_with_checks(
    [
        GradientNetworkClassifier((20,), max_epochs=50),
        GradientNetworkClassifier((20,), loss="squared", optimiser="sgd", max_epochs=30),
        GradientNetworkRegressor((50,), batch_size=16, max_epochs=100),
    ]
)
def test_scikit_learn_conventions(estimator, check):
    pytest.importorskip("torch")
    check(estimator)


def initial(sizes, seed=0):
    """Draw again the initial weights of a network with saturating activations."""
    rng = random_stream(seed, "initial weights")
    return [rng.standard_normal(shape) / np.sqrt(shape[0]) for shape in pairwise(sizes)]


@pytest.mark.torch
def test_one_step_is_the_gradient_written_out(torch):
    X, y = sample()
    Y = np.stack([y, X[:, 2] ** 2], axis=1)
    found = train_network(X, Y, np.arange(60), NONE, SETTINGS)
    W, A = initial([3, 5, 2])
    hidden = np.tanh(X @ W)
    residual = hidden @ A - Y
    error = 2 * residual / 60
    back = error @ A.T * (1 - hidden**2)
    close = {"atol": 2e-7, "rtol": 1e-5}
    np.testing.assert_allclose(found.weights[0], W - 0.1 * X.T @ back, **close)
    np.testing.assert_allclose(found.weights[1], A - 0.1 * hidden.T @ error, **close)
    np.testing.assert_allclose(found.biases[0], -0.1 * back.sum(axis=0), **close)
    np.testing.assert_allclose(found.biases[1], -0.1 * error.sum(axis=0), **close)
    expected = np.mean(np.sum(residual**2, axis=1))
    assert found.history[0].training_loss == pytest.approx(expected, rel=1e-5)


@pytest.mark.torch
def test_cross_entropy_of_two_classes_is_that_of_one_output(torch):
    # softmax over (f, -f) / 2 is the sigmoid of f: equal losses, so equal gradients.
    X, y = sample()
    signs = np.where(y > 0, 1.0, -1.0)[:, None]
    settings = replace(SETTINGS, widths=(), loss="cross-entropy", max_epochs=1)
    one = train_network(X, signs, np.arange(60), NONE, settings)
    (W,) = initial([3, 1])
    margins = (signs * (X @ W))[:, 0]
    assert one.history[0].training_loss == pytest.approx(np.mean(np.log1p(np.exp(-margins))), 1e-5)
    slope = -signs[:, 0] / (1 + np.exp(margins)) / 60
    np.testing.assert_allclose(one.weights[0][:, 0], W[:, 0] - 0.1 * X.T @ slope, atol=1e-6)


@pytest.mark.torch
def test_a_linear_network_tends_to_least_squares(torch):
    X, y = sample()
    settings = replace(SETTINGS, widths=(), step_size="auto", max_epochs=600, patience=600)
    found = train_network(X, y[:, None], np.arange(60), NONE, settings)
    design = np.column_stack([X, np.ones(60)])
    exact = np.linalg.lstsq(design, y, rcond=None)[0]
    np.testing.assert_allclose(found.weights[0][:, 0], exact[:3], atol=1e-4)
    assert found.biases[0][0] == pytest.approx(exact[3], abs=1e-4)
    # The step size is 1 / E |(x, 1)|² over the first rows.
    assert found.step_size == pytest.approx(1 / np.mean(np.sum(design[:32] ** 2, axis=1)), rel=1e-5)


@pytest.mark.torch
@pytest.mark.parametrize("widths", [(50,), (200, 200)])
def test_the_automatic_step_of_gradient_descent_never_overshoots(torch, widths):
    X, y = sample(200)
    settings = replace(
        SETTINGS, widths=widths, activation="relu", step_size="auto", max_epochs=60, patience=60
    )
    losses = [
        one.training_loss
        for one in train_network(X, y[:, None], np.arange(200), NONE, settings).history
    ]
    assert np.all(np.diff(losses) < 1e-7)
    assert losses[-1] < 0.5 * losses[0]


@pytest.mark.torch
def test_validation_rows_decide_only_when_to_stop(torch):
    X, y = sample()
    spoiled = y.copy()
    spoiled[40:] = 50.0
    kept, apart = np.arange(40), np.arange(40, 60)
    settings = replace(
        SETTINGS, widths=(100,), optimiser="adam", step_size=0.03, max_epochs=1000, patience=5
    )
    honest = train_network(X, y[:, None], kept, apart, settings)
    other = train_network(X, spoiled[:, None], kept, apart, settings)
    shared = min(len(honest.history), len(other.history))
    assert [one.training_loss for one in honest.history[:shared]] == [
        one.training_loss for one in other.history[:shared]
    ]
    assert "has not fallen for 5 epochs" in honest.stopped_reason
    best = min(honest.history, key=lambda one: one.validation_loss)
    assert honest.best_epoch == best.number == len(honest.history) - 5
    # The kept weights are those of the best epoch, not of the last.
    hidden = np.tanh(X[apart] @ honest.weights[0] + honest.biases[0])
    outputs = hidden @ honest.weights[1] + honest.biases[1]
    loss = np.mean((outputs[:, 0] - y[apart]) ** 2)
    assert loss == pytest.approx(best.validation_loss, rel=1e-5)


@pytest.mark.torch
def test_the_seed_decides(torch):
    X, y = sample()
    fits = [
        GradientNetworkRegressor((30,), max_epochs=5, random_state=seed).fit(X, y).predict(X)
        for seed in (1, 1, 2)
    ]
    np.testing.assert_array_equal(fits[0], fits[1])
    assert np.abs(fits[0] - fits[2]).max() > 0.01
    before = torch.get_rng_state()
    GradientNetworkRegressor((5,), max_epochs=2).fit(X, y)
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.torch
def test_labels_may_have_any_scale(torch):
    X, y = sample()
    model = GradientNetworkRegressor((20,), max_epochs=20)
    reference = model.fit(X, y).predict(X)
    other = model.fit(X, 1e4 * y - 3e5).predict(X)
    np.testing.assert_allclose(other, 1e4 * reference - 3e5, rtol=1e-3)


def test_validation_rows_hold_the_same_fraction_of_every_class():
    groups = np.repeat([0, 1, 2], [100, 50, 10])
    kept, apart = stratified_split(groups, 0.2, np.random.default_rng(0))
    np.testing.assert_array_equal(np.bincount(groups[apart]), [20, 10, 2])
    np.testing.assert_array_equal(np.sort(np.concatenate([kept, apart])), np.arange(160))


@pytest.mark.torch
@pytest.mark.parametrize("loss", ["cross-entropy", "squared"])
@pytest.mark.parametrize("classes", [2, 10])
def test_digits_are_learned(torch, loss, classes):
    X, y = load_digits(return_X_y=True)
    rows = random_stream(0, "digits").permutation(len(X))
    y = y % 2 if classes == 2 else y
    model = GradientNetworkClassifier((200,), loss=loss, max_epochs=40, scaling="global")
    model.fit(X[rows[:1000]], y[rows[:1000]])
    # 797 test digits: standard error at most 0.8 percentage points at 5 %; ridge has 8.7 % (even, odd).
    assert model.score(X[rows[1000:]], y[rows[1000:]]) > 0.95


@pytest.mark.torch
def test_a_fitted_network_predicts_and_travels_without_torch(torch, monkeypatch):
    X, y = sample()
    model = GradientNetworkRegressor((10,), max_epochs=3).fit(X, y)
    expected = model.predict(X)
    monkeypatch.setitem(sys.modules, "torch", None)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), expected)
    assert expected.dtype == np.float64


@pytest.mark.torch
@pytest.mark.parametrize(("widths", "step_size"), [((50, 50), 10.0), ((50, 50), 1e30)])
def test_divergence_is_reported(torch, widths, step_size):
    X, y = sample()
    model = GradientNetworkRegressor(
        widths, optimiser="sgd", step_size=step_size, batch_size=None, activation="square"
    )
    with pytest.raises(NotConverged, match="Lower step_size") as caught:
        model.fit(X, y)
    assert caught.value.diagnostics["epoch"] >= 1


def test_missing_torch_names_the_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    X, y = sample()
    with pytest.raises(InvalidParameter, match=r'pip install "solvable\[torch\]"'):
        GradientNetworkRegressor().fit(X, y)
    with pytest.raises(InvalidParameter, match=r'pip install "solvable\[torch\]"'):
        GradientNetworkClassifier().fit(X, y > 0)


@pytest.mark.torch
def test_unknown_devices_are_refused(torch):
    with pytest.raises(InvalidParameter, match="device is 'tpu9'"):
        GradientNetworkRegressor(device="tpu9").fit(*sample())


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ({"widths": 100}, "widths is 100"),
        ({"widths": (10, 0)}, r"widths is \(10, 0\)"),
        ({"activation": "rely"}, "Did you mean 'relu'"),
        ({"activation": "step"}, "activation is 'step'"),
        ({"optimiser": "adm"}, "Did you mean 'adam'"),
        ({"step_size": 0}, "step_size is 0"),
        ({"step_size": "automatic"}, "or 'auto'"),
        ({"momentum": 1.0}, "momentum is 1.0"),
        ({"weight_decay": -1}, "weight_decay is -1"),
        ({"batch_size": 0}, "batch_size is 0.*or None"),
        ({"max_epochs": 2.5}, "max_epochs is 2.5"),
        ({"patience": 0}, "patience is 0"),
        ({"validation": 0.95}, "validation is 0.95"),
        ({"scaling": "column"}, "Did you mean 'columns'"),
        ({"loss": "hinge"}, "loss is 'hinge'"),
    ],
)
def test_bad_settings(setting, words):
    X, y = sample()
    with pytest.raises(InvalidParameter, match=words):
        GradientNetworkClassifier(**setting).fit(X, y > 0)


def test_one_class_is_refused():
    with pytest.raises(InvalidData, match="at least two classes"):
        GradientNetworkClassifier().fit(np.eye(3), np.ones(3))
