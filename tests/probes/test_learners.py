"""Learners of the probe: the perceptron's gradient, the leave-one-out ridge, own learners."""

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge
from sklearn.neighbors import KNeighborsRegressor

from solvable.errors import InvalidData, InvalidParameter
from solvable.probes.kernel import RidgeKernel
from solvable.probes.learners import BUILT_IN, Task, check_learner, make_learner, predictions
from solvable.probes.multilayer import MultilayerPerceptron
from solvable.probes.named_objects import remember

TASK = Task("numbers", 5, 1, 2, 1, 2, 0, 3)


@pytest.mark.parametrize("classes", [False, True])
def test_gradients_are_those_of_the_loss(classes):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 4))
    y = rng.integers(0, 3, 40) if classes else rng.standard_normal((40, 2))
    model = MultilayerPerceptron((7, 6), classes=classes, steps=1, step_size=0.0).fit(X, y)
    rows, wanted = model._prepared(X, y)
    rows, wanted = rows.astype(float), wanted.astype(float)
    model.weights_ = [w.astype(float) + 0.01 * rng.standard_normal(w.shape) for w in model.weights_]
    # the squared error is a mean over outputs, its slope a sum over them
    scale = 1.0 if classes else wanted.shape[1]
    gradients = model._gradients(rows, wanted)
    for w, gradient in zip(model.weights_, gradients, strict=True):
        place = tuple(rng.integers(0, size) for size in w.shape)
        before, step = w[place], 1e-6
        w[place] = before + step
        above = model._loss(rows, wanted)
        w[place] = before - step
        below = model._loss(rows, wanted)
        w[place] = before
        assert gradient[place] == pytest.approx(scale * (above - below) / (2 * step), abs=1e-6)


def test_the_perceptron_is_reproducible():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((300, 3))
    first, second = (
        MultilayerPerceptron((16,), steps=200, seed=4).fit(X, X[:, 0] ** 2) for _ in range(2)
    )
    assert np.array_equal(first.predict(X), second.predict(X))


@pytest.mark.parametrize("kind", ["rbf", "random-features"])
def test_the_ridge_has_the_smallest_leave_one_out_error(kind):
    rng = np.random.default_rng(2)
    X = rng.standard_normal((60, 4))
    y = X[:, 0] ** 2 + rng.standard_normal(60)
    model = RidgeKernel(kind).fit(X, y)

    def left_out(ridge):
        lifted = model._lifted(X)
        gram = model._kernel(X) if kind == "rbf" else lifted @ lifted.T
        errors = []
        for i in range(60):
            rest = np.arange(60) != i
            fit = KernelRidge(alpha=ridge, kernel="precomputed")
            fit.fit(gram[np.ix_(rest, rest)], y[rest] - y.mean())
            errors.append(float(fit.predict(gram[i : i + 1, rest])[0]) - (y[i] - y.mean()))
        return np.mean(np.square(errors))

    best = left_out(model.ridge_)
    assert best <= left_out(3 * model.ridge_)
    assert best <= left_out(model.ridge_ / 3)


def test_more_rows_than_random_features_give_the_same_solution(monkeypatch):
    rng = np.random.default_rng(3)
    X, fresh = rng.standard_normal((80, 3)), rng.standard_normal((10, 3))
    y = X[:, 0] + 0.1 * rng.standard_normal(80)
    monkeypatch.setattr("solvable.probes.kernel.RANDOM_FEATURES", 50)
    primal = RidgeKernel("random-features").fit(X, y)
    lifted = primal._lifted(X)
    weights = np.linalg.solve(
        lifted.T @ lifted + primal.ridge_ * np.eye(50), lifted.T @ (y - y.mean())
    )
    assert primal.predict(fresh) == pytest.approx(
        primal._lifted(fresh) @ weights + y.mean(), rel=1e-5
    )


@pytest.mark.parametrize("name", [n for n, built in BUILT_IN.items() if "numbers" in built.kinds])
def test_every_built_in_regressor_fits_and_predicts(name):
    rng = np.random.default_rng(4)
    X = rng.standard_normal((400, 5))
    learner = make_learner(name, TASK)
    if isinstance(learner, MultilayerPerceptron):
        learner.set_params(steps=100)
    learner.fit(X, X[:, 0] ** 2 + 0.1 * rng.standard_normal(400))
    assert predictions(learner, X[:50], TASK).shape == (50,)


def test_estimators_are_cloned_and_seeded():
    given = KNeighborsRegressor(3)
    made = make_learner(remember(given), TASK)
    assert made is not given
    assert made.n_neighbors == 3


class Silent:
    def fit(self, X, y):
        return self

    def predict(self, X):
        return self.values(len(X))


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (lambda n: np.zeros((n, 3)), "shape"),
        (lambda n: np.full(n, np.nan), "not finite"),
    ],
)
def test_wrong_predictions_are_one_line(values, words):
    learner = Silent()
    learner.values = values
    with pytest.raises(InvalidData, match=words):
        predictions(learner, np.zeros((4, 5)), TASK)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nosuch", "allowed: mlp"),
        ("cnn", "does not predict numbers"),
        ("no_such_module:thing", "cannot be imported"),
        ("json:nothing", "cannot be imported"),
    ],
)
def test_unknown_learners_are_refused_before_anything_is_measured(name, words):
    with pytest.raises(InvalidParameter, match=words):
        check_learner(name, "numbers")


@pytest.mark.parametrize(
    ("value", "words"),
    [(3.0, "without fit"), (lambda a, b, c: a, "3 arguments"), (dict, "without fit")],
)
def test_objects_that_are_no_learners_are_refused(value, words):
    with pytest.raises(InvalidParameter, match=words):
        make_learner(remember(value), TASK)


@pytest.mark.torch
def test_a_torch_module_is_trained_by_the_recipe(monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setattr("solvable.probes.torch_recipe.STEPS", 1500)

    def network(inputs, outputs):
        return torch.nn.Sequential(
            torch.nn.Linear(inputs, 32), torch.nn.ReLU(), torch.nn.Linear(32, outputs)
        )

    rng = np.random.default_rng(5)
    X = rng.standard_normal((500, 5))
    y = X[:, 0] ** 2
    learner = make_learner(remember(network), TASK).fit(X, y)
    again = make_learner(remember(network), TASK).fit(X, y)
    found = predictions(learner, X, TASK)
    assert np.mean((found - y) ** 2) < 0.5 * y.var()
    assert found == pytest.approx(predictions(again, X, TASK), abs=1e-5)
