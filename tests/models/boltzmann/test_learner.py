"""Boltzmann machine as a scikit-learn transformer."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

from solvable.errors import InvalidParameter
from solvable.learners import BoltzmannMachine


def spiked(n, d, spikes, seed):
    rng = np.random.default_rng(seed)
    directions = np.linalg.qr(rng.standard_normal((d, len(spikes))))[0]
    signs = rng.choice([-1.0, 1.0], (n, len(spikes)))
    return (signs * np.sqrt(spikes)) @ directions.T + rng.standard_normal((n, d)), signs


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"n_components": 2, "solver": "gradient", "max_iter": 100},
        {"units": "gaussian"},
        {"weight_decay": 1.0},
    ],
)
def test_conventions(parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_estimator(BoltzmannMachine(**parameters), on_skip=None, on_fail="raise")


def test_hidden_units_are_the_latent_signs():
    X, signs = spiked(1_200, 200, [6.0, 3.0], 0)
    for solver in ("amp", "gradient"):
        machine = BoltzmannMachine(2, solver=solver, random_state=0).fit(3 * X + 5)
        assert machine.stable_
        assert machine.solver_ == solver
        assert machine.gradient_norm_ < 1e-3
        assert machine.norm_[0] > machine.norm_[1]
        means = machine.transform(3 * X + 5)
        agreement = np.abs(means.T @ signs) / len(X)
        assert np.diag(agreement).min() > 0.75
        assert agreement[0, 1] < 0.15
    assert list(machine.get_feature_names_out()) == ["boltzmannmachine0", "boltzmannmachine1"]


def test_both_solvers_find_one_maximum():
    X, _ = spiked(600, 150, [3.0], 1)
    one, two = (
        BoltzmannMachine(solver=solver, random_state=1, tol=1e-9).fit(X)
        for solver in ("amp", "gradient")
    )
    np.testing.assert_allclose(np.abs(one.components_), np.abs(two.components_), atol=1e-5)
    assert one.replicon_ == pytest.approx(two.replicon_, rel=1e-4)
    assert one.score(X) == pytest.approx(two.score(X), rel=1e-6)


def test_noise_has_no_stable_maximum_but_for_weight_decay():
    X = np.random.default_rng(2).standard_normal((300, 200))
    with pytest.warns(ConvergenceWarning, match="message passing did not converge"):
        plain = BoltzmannMachine(random_state=0).fit(X)
    assert not plain.stable_
    # edge of the noise: (1 + (200 / 300)^(1/2))² = 3.3
    decayed = BoltzmannMachine(weight_decay=3.0, random_state=0).fit(X)
    assert decayed.stable_
    assert decayed.norm_[0] == 0
    assert not decayed.transform(X).any()


@pytest.mark.parametrize("decay", [0.0, 0.4])
def test_normal_units_are_principal_components(decay):
    X, _ = spiked(900, 60, [4.0, 2.0], 3)
    machine = BoltzmannMachine(2, units="gaussian", weight_decay=decay, random_state=0).fit(X)
    reference = PCA(2).fit((X - X.mean(axis=0)) / X.std(axis=0))
    directions = machine.components_ / np.linalg.norm(machine.components_, axis=1, keepdims=True)
    np.testing.assert_allclose(
        np.abs(np.sum(directions * reference.components_, axis=1)), 1, atol=1e-8
    )
    variances = reference.explained_variance_ * 899 / 900
    np.testing.assert_allclose(machine.norm_, 1 - 1 / (variances - decay), rtol=1e-6)
    assert machine.gradient_norm_ < 1e-8
    assert machine.stable_
    if decay == 0:
        # likelihood of probabilistic PCA with noise variance 1, relative to noise alone
        W = machine.components_.T / np.sqrt(60)
        precision = np.eye(60) - W @ W.T
        rows = (X - machine.mean_) / machine.scale_
        expected = -0.5 * np.sum((rows @ precision) * rows, axis=1) + 0.5 * np.sum(rows**2, axis=1)
        expected += 0.5 * np.linalg.slogdet(precision)[1]
        np.testing.assert_allclose(machine.score_samples(X), expected, atol=1e-8)


def test_ordinary_data():
    X, y = load_wine(return_X_y=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for units in ("rademacher", "gaussian"):
            machine = BoltzmannMachine(2, units=units, random_state=0)
            pipeline = make_pipeline(clone(machine), LogisticRegression()).fit(X[::2], y[::2])
            assert pipeline.score(X[1::2], y[1::2]) > 0.9
            # better than independent features on held-out samples
            assert machine.fit(X[::2]).stable_
            assert machine.score(X[1::2]) > 1


def test_the_score_of_held_out_samples_is_near_that_of_the_truth():
    X, _ = spiked(2_000, 50, [4.0], 4)
    machine = BoltzmannMachine(standardise=False, random_state=0).fit(X[:1_000])
    rng = np.random.default_rng(5)
    # score of the truth: E log cosh(sqrt(lambda) x) - lambda / 2 at x = sqrt(lambda) u + z
    truth = np.mean(np.log(np.cosh(2 * (2 + rng.standard_normal(100_000))))) - 2
    assert truth - 0.15 < machine.score(X[1_000:]) < truth + 0.1
    assert machine.score(X[:1_000]) > machine.score(X[1_000:])


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"n_components": 0}, "n_components"),
        ({"n_components": 40}, "n_components"),
        ({"weight_decay": -1.0}, "weight_decay"),
        ({"weight_decay": float("nan")}, "weight_decay"),
        ({"units": "bernoulli"}, "rademacher"),
        ({"solver": "cd"}, "amp"),
        ({"max_iter": 0}, "max_iter"),
    ],
)
def test_bad_parameters_are_refused(parameters, words):
    X = np.random.default_rng(0).standard_normal((20, 5))
    with pytest.raises(InvalidParameter, match=words) as refused:
        BoltzmannMachine(**parameters).fit(X)
    assert "\n" not in str(refused.value)
