"""Shares in training time, gradients in the hidden subspace, and the rest that two starts share."""

import json

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.linear_model import SGDRegressor

import solvable
from solvable.arrays import random_stream
from solvable.errors import InvalidParameter
from solvable.probes.learners import BUILT_IN, Task, make_learner
from solvable.probes.multilayer import MultilayerPerceptron
from solvable.probes.named_objects import remember
from solvable.probes.observed import fit_observed, gradient_inside
from solvable.probes.system import ProbeParameters, measure
from solvable.probes.targets import FAMILIES, make_subject
from solvable.probes.view import notes

TASK = Task("numbers", 6, 1, 2, 1, 2, 0, 3)


class TwoWaves:
    """A target of two orthogonal features that span three directions."""

    directions = np.eye(6)[:, :3]

    def sample(self, n, rng):
        X = rng.standard_normal((n, 6))
        return X, self.clean(X)

    def clean(self, X):
        return X[:, 0] ** 2 + 0.5 * X[:, 1] * X[:, 2]

    def parts(self, X):
        return ("feature 1", "feature 2"), np.column_stack([X[:, 0] ** 2, X[:, 1] * X[:, 2]])


class Planted:
    """After t of 100 steps: t % of feature 1, and (t %)² of feature 2."""

    def fit(self, X, y, observe=None):
        for self.step in range(1, 101):
            if observe is not None:
                observe(self.step)
        return self

    def predict(self, X):
        t = self.step / 100
        return t * X[:, 0] ** 2 + t**2 * 0.5 * X[:, 1] * X[:, 2]


class Unlucky:
    """The target, 0.6 of a function that the rows decide, and 0.8 of one that the start decides."""

    def __init__(self, random_state=None):
        self.random_state = random_state

    def get_params(self, deep=True):
        return {"random_state": self.random_state}

    def set_params(self, random_state):
        self.random_state = random_state
        return self

    def fit(self, X, y):
        return self

    def predict(self, X):
        signs = random_stream(self.random_state).choice([-1.0, 1.0], (2**5,))
        cell = (X[:, 1:] > 0) @ (2 ** np.arange(5))
        return X[:, 0] ** 2 + 0.6 * np.sign(X[:, 4]) + 0.8 * np.sign(X[:, 3]) * signs[cell]


def test_planted_shares_in_time_and_the_steps_at_one_half():
    found = solvable.probe(Planted(), TwoWaves(), samples=100, seeds=1, steps=[20, 50, 80, 200])
    rows = [row for row in found.table if row["step"] is not None]
    assert [row["step"] for row in rows] == [20, 20, 50, 50, 80, 80]  # 200 is not reached
    shares = [row["learned_share"] for row in rows]
    assert shares == pytest.approx([0.2, 0.04, 0.5, 0.25, 0.8, 0.64], abs=1e-9)
    # between 50 and 80 steps, linear in the logarithm: 25 of 39 parts
    halves = {row["feature"]: row["half_steps"] for row in found.half_steps}
    assert halves["feature 1"] == pytest.approx(50, rel=1e-6)
    assert halves["feature 2"] == pytest.approx(50 * 1.6 ** (25 / 39), rel=1e-6)
    assert "On 100 rows Planted learns half of feature 1 at 50" in str(found)
    series = found.figure_data("steps-Planted").series
    assert len(series) == 2
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert {row["samples"] for row in plain["half_steps"]} == {100}


@pytest.mark.parametrize("name", [n for n, b in BUILT_IN.items() if n.startswith("mlp")])
def test_observation_does_not_change_a_network(name):
    X = np.random.default_rng(0).standard_normal((200, 6))
    seen = []
    models = [make_learner(name, TASK).set_params(steps=60) for _ in range(2)]
    fit_observed(
        models[0], X, X[:, 0], (1, 7, 60), lambda step: seen.append(models[0].predict(X)[0])
    )
    fit_observed(models[1], X, X[:, 0], (), lambda step: pytest.fail("observed"))
    assert models[0].predict(X) == pytest.approx(models[1].predict(X), abs=1e-12)
    assert len(np.unique(np.round(seen, 9))) == 3


def test_trees_in_time_are_ensembles_of_as_many_trees():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((300, 6))
    y = X[:, 0] ** 2 + rng.standard_normal(300)
    model, seen = GradientBoostingRegressor(n_estimators=20, random_state=0), {}
    fit_observed(model, X, y, (5, 12, 50), lambda step: seen.update({step: model.predict(X)}))
    assert sorted(seen) == [5, 12]
    fewer = GradientBoostingRegressor(n_estimators=5, random_state=0).fit(X, y)
    assert seen[5] == pytest.approx(fewer.predict(X), abs=1e-10)
    assert model.n_estimators_ == 20


def test_a_step_of_partial_fit_is_a_pass_over_the_rows():
    X = np.random.default_rng(2).standard_normal((50, 6))
    model, passes = SGDRegressor(random_state=0), {}
    fit_observed(model, X, X[:, 0], (1, 4), lambda step: passes.update({step: model.t_ - 1}))
    assert passes == {1: 50, 4: 200}


def test_a_learner_that_cannot_be_observed_has_its_end_alone():
    found = solvable.probe("spectral", samples=200, seeds=1, steps=100, workers=1,
                           settings={"dimension": 10, "features": 2})  # fmt: skip
    assert found.in_time == []
    assert "cannot be: spectral." in notes(found)[-1]
    assert found.half_samples


def test_the_gradient_inside_a_subspace_is_exact_for_quadratic_functions():
    X = np.random.default_rng(3).standard_normal((400, 6))
    directions = np.random.default_rng(4).standard_normal((6, 2))  # neither unit nor orthogonal
    basis = np.linalg.svd(directions)[0]
    z = X @ basis

    def function(rows):
        u = rows @ basis
        return u[:, 0] * u[:, 1] + 3 * u[:, 4] ** 2

    inside, chance = gradient_inside(function, X, directions)
    wanted = np.sum(z[:, :2] ** 2) / (np.sum(z[:, :2] ** 2) + np.sum((6 * z[:, 4]) ** 2))
    assert inside == pytest.approx(wanted, rel=1e-8)
    assert chance == pytest.approx(1 / 3)
    assert np.isnan(gradient_inside(lambda rows: np.zeros(len(rows)), X, directions)[0])


@pytest.mark.torch
def test_differences_are_the_gradients_of_autograd():
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(6, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
    X = np.random.default_rng(5).standard_normal((500, 6)).astype(np.float32)
    rows = torch.tensor(X, requires_grad=True)
    module(rows).sum().backward()
    exact = np.sum(rows.grad.numpy()[:, :3] ** 2) / np.sum(rows.grad.numpy() ** 2)

    def function(inputs):
        with torch.no_grad():
            return module(torch.as_tensor(inputs, dtype=torch.float32)).double().numpy()[:, 0]

    assert gradient_inside(function, X, np.eye(6)[:, :3])[0] == pytest.approx(exact, rel=0.01)


@pytest.mark.parametrize(
    ("target", "settings"),
    [
        ("sequential-recovery", {"degree": 1, "dimension": 12, "features": 3}),
        ("sequential-recovery", {"inputs": "gaussian", "degree": 2, "dimension": 6, "features": 3}),
        ("hierarchical-multi-index", {"dimension": 20, "features": 4}),
        ("quadratic-network", {"dimension": 16, "target": "marchenko-pastur", "width_ratio": 0.25}),
        ("compositional-target", {"dimension": 12, "degree": 1, "features": 4}),
    ],
)
def test_the_gradient_of_a_target_lies_in_its_subspace(target, settings):
    assert target in FAMILIES
    subject = make_subject(target, json.dumps(settings), 1)
    X, _ = subject.sample(200, random_stream(1))
    inside, chance = gradient_inside(subject.clean, X, subject.directions)
    assert inside == pytest.approx(1, abs=1e-6)
    assert 0 < chance <= 1


def test_the_common_part_of_the_rests_of_two_starts():
    learner, target = remember(Unlucky()), remember(TwoWaves())
    asked = ProbeParameters(learner=learner, target=target, samples=50, refit=True)
    common = [measure(asked, np.random.default_rng(seed))["common_rest"] for seed in range(12)]
    # 0.36 of the variance; random signs in 32 cells add a mean of 0 and a deviation of 0.64 / sqrt(32)
    error = np.std(common, ddof=1) / np.sqrt(12)
    assert np.mean(common) == pytest.approx(0.36, abs=3 * error)
    assert error < 0.06


def test_a_second_fit_of_a_deterministic_learner_is_the_same():
    asked = ProbeParameters(learner="rbf-kernel", settings='{"dimension": 10, "features": 2}',
                            samples=100, refit=True)  # fmt: skip
    assert measure(asked, np.random.default_rng(0))["common_rest"] == pytest.approx(1)


@pytest.mark.parametrize("steps", [0, [10, -1]])
def test_bad_steps_are_one_line(steps):
    with pytest.raises(InvalidParameter, match="steps"):
        solvable.probe("mlp", steps=steps)


def test_one_number_stands_for_thirty_steps_up_to_it():
    asked = MultilayerPerceptron((4,), steps=40)
    found = solvable.probe(asked, TwoWaves(), samples=60, seeds=1, steps=40)
    steps = sorted({row["step"] for row in found.table if row["step"]})
    assert (steps[0], steps[-1]) == (1, 40)
    assert 15 < len(steps) <= 30
