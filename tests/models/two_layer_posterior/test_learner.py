"""Langevin ensembles: the sampler against exact posteriors, and scikit-learn conventions."""

import warnings
from functools import partial

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from solvable.arrays import random_stream
from solvable.errors import InvalidData, InvalidParameter, NotConverged
from solvable.learners import LangevinEnsemble
from solvable.models.two_layer_posterior.langevin import (
    Noise,
    Posterior,
    effective_samples,
    largest_curvature,
    run_langevin,
    value_and_slope,
)
from solvable.operators.activations import derivative, evaluate


def problem(P, d, networks, width, seed, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X, theta = rng.standard_normal((P, d)), rng.standard_normal((networks, width, d + 1))
    y = np.sin(2 * X[:, 0]) + 0.3 * X[:, -1]
    return X.astype(dtype), y.astype(dtype), theta.astype(dtype)


def energy(posterior, theta):
    """Compute U of each network directly (two-layer-posterior 1)."""
    d = posterior.X.shape[1]
    v, b = theta[..., :d], theta[..., d]
    hidden = evaluate(posterior.activation, np.einsum("pd,kid->kpi", posterior.X, v) / d**0.5)
    f = posterior.scale * np.einsum("kpi,ki->kp", hidden, b)
    data = np.sum((f - posterior.y) ** 2, axis=1) / (2 * posterior.kappa)
    return data + np.sum(theta**2, axis=(1, 2)) / 2


@pytest.mark.parametrize("activation", ["erf", "tanh", "relu"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_activations_and_slopes(activation, dtype):
    h = np.linspace(-6, 6, 1_201).astype(dtype)
    value, slope = value_and_slope(activation, h.copy())
    tolerance = 5e-7 if dtype == np.float32 else 1e-12
    np.testing.assert_allclose(value, evaluate(activation, h), atol=tolerance)
    np.testing.assert_allclose(slope, derivative(activation, h), atol=tolerance)
    assert value.dtype == slope.dtype == dtype


@pytest.mark.parametrize("activation", ["erf", "tanh", "relu"])
def test_gradient_is_that_of_the_energy(activation):
    X, y, theta = problem(37, 4, 3, 6, 0)
    posterior = Posterior(X, y, 0.3, 0.4, activation)
    gradient, errors = posterior.gradient(theta)
    outputs = posterior.outputs(theta)
    np.testing.assert_allclose(errors, np.mean((outputs - y[:, None]) ** 2, axis=0))
    rng = np.random.default_rng(1)
    for _ in range(5):
        direction = rng.standard_normal(theta.shape)
        up, down = (energy(posterior, theta + sign * 1e-6 * direction) for sign in (1, -1))
        np.testing.assert_allclose(
            (up - down) / 2e-6, np.sum(gradient * direction, axis=(1, 2)), rtol=2e-6
        )


def test_blocks_of_rows_and_single_networks_change_nothing():
    X, y, theta = problem(3_000, 5, 2, 90, 2)
    whole = Posterior(X, y, 0.3, 0.1, "erf")
    assert len(whole._blocks(theta, 3_000)) > 1
    found = whole.gradient(theta)[0]
    for k in range(2):
        alone = Posterior(X, y, 0.3, 0.1, "erf").gradient(theta[k : k + 1])[0]
        np.testing.assert_allclose(found[k : k + 1], alone, rtol=1e-10)


def test_curvature_is_the_largest_eigenvalue_of_the_hessian():
    X, y, theta = problem(60, 2, 1, 3, 3)
    posterior = Posterior(X, y, 0.2, 0.5, "tanh")
    flat = np.eye(theta.size).reshape(-1, *theta.shape[1:])
    hessian = np.array(
        [
            (posterior.gradient(theta + 1e-5 * e)[0] - posterior.gradient(theta - 1e-5 * e)[0])
            for e in flat[:, None]
        ]
    ).reshape(theta.size, -1)
    largest = np.abs(np.linalg.eigvalsh(hessian / 2e-5)).max()
    found = largest_curvature(posterior, theta, Noise(random_stream(0), theta), rounds=60)
    # averaged over displacements of 0.1 per coordinate, about the length of a step
    assert found == pytest.approx(largest, rel=0.1)


def test_a_frozen_first_layer_has_its_gaussian_posterior():
    # One hidden unit of scale s and one input that is 0: f = 0, and the posterior is the prior.
    X, y = np.zeros((4, 1)), np.ones(4)
    theta = np.random.default_rng(4).standard_normal((200, 5, 2))
    seen = []
    run = run_langevin(
        Posterior(X, y, 0.5, 1.0, "erf"), theta, random_stream(4), steps=400, observe=seen.append
    )
    values = np.array(seen).reshape(len(seen), -1)
    assert stats.kstest(values[-1], "norm").pvalue > 0.01
    # (two-layer-posterior 16) is exact for a Gaussian; the plain scheme has variance 1 / (1 - step /
    # 2).
    assert run.step == pytest.approx(0.2)
    spread = values.var() - 1
    assert abs(spread) < 4 * np.sqrt(2 / values[0].size / 4)


@pytest.mark.parametrize("seed", [0, 1])
def test_two_weights_have_the_posterior_of_a_grid(seed):
    # N = 1, d = 1: the density of (v, b) is integrated on a grid.
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((12, 1))
    y = 1.2 * np.tanh(1.5 * X[:, 0]) + 0.3 * rng.standard_normal(12)
    posterior = Posterior(X, y, 0.4, 1.0, "tanh")
    axis = np.linspace(-7, 7, 281)
    grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 1, 2)
    density = np.exp(-energy(posterior, grid) + energy(posterior, grid).min())
    density /= density.sum()
    points = grid[:, 0]
    expected = [density @ function(points) for function in MOMENTS]
    theta, seen = rng.standard_normal((400, 1, 2)), []
    run_langevin(posterior, theta, random_stream(seed), steps=3_000, observe=seen.append)
    draws = np.array(seen)[:, :, 0]
    for function, value in zip(MOMENTS, expected, strict=True):
        by_network = function(draws).mean(axis=0)
        error = by_network.std(ddof=1) / len(by_network) ** 0.5
        # 3.3 standard errors of six comparisons, and 1 % of the step
        assert abs(by_network.mean() - value) < 3.3 * error + 0.01 * abs(value)


MOMENTS = (
    lambda z: z[..., 0] * z[..., 1],
    lambda z: z[..., 0] ** 2,
    lambda z: np.tanh(0.7 * z[..., 0]) * z[..., 1],
)


def test_many_lazy_units_are_ridge_regression_with_their_kernel():
    # With many units the first layer hardly moves, and a readout alone is ridge regression.
    X, y, _ = problem(25, 3, 1, 1, 5)
    width, kappa = 1_500, 0.5
    model = LangevinEnsemble(
        3, width=width, kappa=kappa, steps=1_200, standardise=False, random_state=0
    ).fit(X, y)
    left = 1 + 2 * np.sum(X**2, axis=1) / 3
    kernel = 2 / np.pi * np.arcsin((2 * X @ X.T / 3) / np.sqrt(np.outer(left, left)))
    expected = kernel @ np.linalg.solve(kernel + kappa * np.eye(25), y)
    mean, spread = model.predict(X, return_std=True)
    assert np.sqrt(np.mean((mean - expected) ** 2)) < 0.12
    variance = np.diag(kernel - kernel @ np.linalg.solve(kernel + kappa * np.eye(25), kernel))
    assert np.mean(spread**2) == pytest.approx(np.mean(variance), rel=0.2)
    assert model.virial_ == pytest.approx(1, abs=0.1)


def test_a_halved_step_changes_averages_little_and_a_large_step_warns():
    X, y, _ = problem(150, 5, 1, 1, 6)
    fit = partial(LangevinEnsemble, 6, width=30, kappa=0.1, random_state=0)
    found = fit(steps=1_500).fit(X, y)
    halved = fit(steps=3_000, step_size=found.step_size_ / 2).fit(X, y)
    assert found.training_error_ == pytest.approx(halved.training_error_, rel=0.06)
    assert found.step_error_ < 0.02
    with pytest.warns(ConvergenceWarning, match="lower step_size"):
        fit(steps=300, step_size=4 * found.step_size_).fit(X, y)
    with pytest.raises(NotConverged, match="Lower step_size"):
        fit(steps=300, step_size=40 * found.step_size_).fit(X, y)


def test_a_short_run_warns():
    X, y, _ = problem(150, 5, 1, 1, 7)
    with pytest.warns(ConvergenceWarning, match="raise steps"):
        LangevinEnsemble(2, width=60, kappa=1e-3, steps=60, random_state=0).fit(X, y)


@pytest.mark.parametrize("rho", [0.0, 0.8, 0.95])
def test_effective_samples_of_an_autoregression(rho):
    rng, length, chains = np.random.default_rng(8), 4_000, 5
    series = np.zeros((length, chains))
    series[0] = rng.standard_normal(chains) / np.sqrt(1 - rho**2)
    for step in range(1, length):
        series[step] = rho * series[step - 1] + rng.standard_normal(chains)
    count, error = effective_samples(series)
    # tau = (1 + rho) / (1 - rho)
    assert abs(count - length * chains * (1 - rho) / (1 + rho)) < 3 * error


def test_separated_chains_count_once_each():
    series = np.random.default_rng(9).standard_normal((1_000, 4)) * 0.01 + np.arange(4)
    assert effective_samples(series)[0] < 10


@pytest.mark.parametrize(
    "parameters", [{}, {"activation": "relu", "readout": "mean-field", "networks": 1}]
)
def test_conventions(parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = LangevinEnsemble(**({"networks": 2, "width": 20, "steps": 200} | parameters))
        check_estimator(model, on_skip=None, on_fail="raise")


def test_real_features_are_learnt():
    X, y = load_diabetes(return_X_y=True)
    model = LangevinEnsemble(4, width=40, kappa=0.5, steps=600, random_state=0)
    scores = cross_val_score(model, X, y, cv=3)
    linear = cross_val_score(make_pipeline(StandardScaler(), Ridge(10)), X, y, cv=3)
    assert scores.mean() > linear.mean() - 0.03
    search = GridSearchCV(clone(model).set_params(steps=200), {"kappa": [0.3, 1.0]}, cv=2)
    assert search.fit(X, y).best_score_ > 0.3


def test_results_depend_on_the_seed_alone():
    X, y, _ = problem(40, 3, 1, 1, 10)
    fit = partial(LangevinEnsemble, 2, width=10, steps=100, random_state=3)
    first, second = fit().fit(X, y), fit().fit(X, y)
    np.testing.assert_array_equal(first.weights_, second.weights_)
    assert first.weights_.shape == (10, 2, 10, 3) or first.weights_.shape[1:] == (2, 10, 3)


@pytest.mark.torch
def test_tensors_are_worked_on_where_they_are():
    torch = pytest.importorskip("torch")
    X, y, theta = problem(50, 3, 2, 8, 11)
    host = Posterior(X, y, 0.3, 0.4, "erf").gradient(theta)[0]
    there = Posterior(*map(torch.as_tensor, (X, y)), 0.3, 0.4, "erf").gradient(
        torch.as_tensor(theta)
    )
    np.testing.assert_allclose(there[0].numpy(), host, rtol=1e-9)
    model = LangevinEnsemble(2, width=20, kappa=0.3, steps=400, random_state=0)
    tensors = torch.as_tensor(X, dtype=torch.float32), torch.as_tensor(y)
    model.fit(*tensors)
    assert model.weights_.dtype == torch.float32
    mean = model.predict(tensors[0])
    assert isinstance(mean, torch.Tensor)
    again = clone(model).fit(*tensors).predict(tensors[0])
    assert torch.equal(mean, again)
    host_mean = clone(model).fit(X, y).predict(X)
    assert np.corrcoef(mean.numpy(), host_mean)[0, 1] > 0.95
    with pytest.raises(InvalidData, match="labels"):
        model.fit(tensors[0], tensors[1][:-1])


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"activation": "gelu"}, "erf"),
        ({"readout": "ntk"}, "mean-field"),
        ({"kappa": 0.0}, "kappa is 0"),
        ({"width": 0}, "width is 0"),
        ({"steps": 1}, "steps is 1"),
        ({"step_size": -1.0}, "step_size"),
    ],
)
def test_bad_parameters_are_refused(parameters, words):
    with pytest.raises(InvalidParameter, match=words):
        LangevinEnsemble(**parameters).fit(np.eye(4), np.arange(4.0))
