"""Langevin networks with two hidden layers: gradient, observed quantities, prior, and `scale`."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.special import erf

from solvable.arrays import random_stream
from solvable.errors import InvalidParameter
from solvable.models.two_layer_posterior.deep_langevin import DeepPosterior
from solvable.models.two_layer_posterior.deep_observer import DeepObserver, plant_second_layer
from solvable.models.two_layer_posterior.langevin import run_langevin
from solvable.models.two_layer_posterior.measure import draw_target
from solvable.models.two_layer_posterior.parameters import CurseParameters
from solvable.scale.question import scale_network
from solvable.scale.words import winner_sentences

SMALL = {"dimension": 4, "width_ratio": 6.0, "second_width_ratio": 5.0, "scaled_samples": 8.0}


def problem(samples=30, networks=2, dtype=np.float64, **values):
    setting = CurseParameters(**SMALL | values)
    rng = np.random.default_rng(3)
    target = draw_target(setting, rng)
    X, y = target.sample(samples, rng, dtype)
    widths = (setting.width, setting.second_width)
    scale = setting.second_width**-0.5
    posterior = DeepPosterior(X, y, widths, setting.kappa, scale, setting.activation)
    theta = rng.standard_normal((networks, 1, posterior.size)).astype(dtype)
    return setting, target, posterior, theta, rng


def direct_outputs(posterior, theta, X):
    """Compute the outputs unit by unit."""
    first, second = posterior.widths
    d = X.shape[1]
    V = theta[0, : first * d].reshape(first, d)
    Z = theta[0, first * d : first * d + second * first].reshape(second, first)
    b = theta[0, first * d + second * first :]
    act = erf if posterior.activation == "erf" else np.tanh
    lower = np.array([act(X @ v / np.sqrt(d)) for v in V])
    upper = np.array([act(z @ lower / np.sqrt(first)) for z in Z])
    return posterior.scale * b @ upper


@pytest.mark.parametrize("activation", ["erf", "tanh"])
def test_gradient_is_that_of_minus_the_log_posterior(activation):
    _, _, posterior, theta, rng = problem(activation=activation)
    pull, error = posterior.gradient(theta)
    direction = rng.standard_normal(theta.shape[1:])

    def energy(state):
        left = direct_outputs(posterior, state, posterior.X) - posterior.y
        return left @ left / (2 * posterior.kappa) + np.sum(state**2) / 2

    for k in range(2):
        found = energy(theta[k] + 1e-5 * direction) - energy(theta[k] - 1e-5 * direction)
        assert np.sum(pull[k] * direction) == pytest.approx(found / 2e-5, rel=1e-5)
        left = direct_outputs(posterior, theta[k], posterior.X) - posterior.y
        assert error[k] == pytest.approx(np.mean(left**2), rel=1e-10)


def test_observed_quantities_are_those_of_samples():
    setting, target, posterior, theta, rng = problem(networks=2)
    seen = DeepObserver(setting, target, posterior, rng)
    theta *= 1.5
    theta[1] = plant_second_layer(seen, theta[1])
    seen(theta)
    X, y = target.sample(200_000, rng)
    outputs = np.array([direct_outputs(posterior, state, X) for state in theta])
    metrics = seen.metrics()
    for name, f in zip(("alignment_prior", "alignment_planted"), outputs, strict=True):
        error = np.std(f * y) / np.sqrt(y.size)
        # 60 draws across the direction add their own scatter
        assert metrics[name] == pytest.approx(np.mean(f * y), abs=4 * error + 0.06)
    assert metrics["alignment_planted"] > 0.2
    assert metrics["test_error"] == pytest.approx(np.mean((outputs - y) ** 2), rel=0.15)
    # slopes of the second layer along the direction, E h_i(x) w*.x
    V, Z, _ = posterior.weights(theta)
    lower = erf(X[:50_000] @ V[1].T / np.sqrt(4))
    slopes = seen.slopes(theta)[2][1]
    drawn = (X[:50_000] @ target.direction) @ lower / 50_000 / np.sqrt(setting.width)
    np.testing.assert_allclose(slopes, drawn, atol=4 / np.sqrt(50_000 * setting.width))
    planted = np.abs(Z[1] @ slopes) > 3 * np.sqrt(slopes @ slopes)
    assert metrics["second_outliers"] >= planted.sum() / 2


def test_under_the_prior_few_units_are_outliers():
    setting, target, posterior, theta, rng = problem(networks=2)
    seen = DeepObserver(setting, target, posterior, rng)
    for _ in range(200):
        seen(rng.standard_normal(theta.shape))
    metrics = seen.metrics()
    expected = 0.0027 * setting.second_width
    error = np.sqrt(expected / 400)
    assert metrics["second_outliers"] == pytest.approx(expected, abs=4 * error)
    series = np.array(seen.alignments)
    assert abs(series.mean()) < 4 * series.std() / 20


def test_one_large_temperature_is_sampled_from_any_start():
    # virial theorem, docs/derivations/two-layer-posterior (17): <theta.grad U> per weight is 1
    _, _, posterior, theta, _ = problem(samples=20, networks=20, dtype=np.float32)
    run = run_langevin(posterior, theta, random_stream("virial", 0), steps=600)
    assert run.virial == pytest.approx(1, abs=0.02)
    assert run.step_error < 0.04


def test_scale_predicts_the_exponents_that_the_claims_expect():
    # at widths of order d the number of samples grows as d, whatever the layers
    found = scale_network(layers="erf:1,erf:1", target="he3")
    assert found.exponent == Fraction(1)
    # The first layer specialises below the width of the second, with M ~ sqrt(N1 / d) neurons, and
    # the second layer above it.
    narrow = scale_network(layers="erf:2,erf:3", target="he3")
    wide = scale_network(layers="erf:3,erf:2", target="he3")
    (winner,) = (winner for winner in narrow.winners if winner.name == "Sp(1)-GP")
    assert "GP-Sp(1)" in {other.name for other in wide.winners}
    assert "d^(1/2) neurons specialise" in " ".join(winner_sentences(narrow, winner))


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"second_width_ratio": 0.2}, "at least 2 units"),
        ({"activation": "relu", "degree": 2}, "erf or tanh"),
    ],
)
def test_second_layers_that_cannot_be_run_are_refused(values, words):
    with pytest.raises(InvalidParameter, match=words):
        CurseParameters(**SMALL | values)
