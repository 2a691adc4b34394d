"""Message passing: exact regression, state evolution, failures."""

import numpy as np
import pytest
from posteriors import messages_of, posterior_given

from solvable.errors import InvalidParameter, NotConverged
from solvable.inference import Gaussian, Output
from solvable.inference.curve import Curve
from solvable.inference.smooth import Noisy
from solvable.links import make_link
from solvable.message_passing import AdditiveChannel, Start, message_passing
from solvable.message_passing.channels import additive_output
from solvable.message_passing.loop import GaussianSensors, gaussian_denoiser


def problem(formula, noise, *, d, ratio, seed, **options):
    output = additive_output(AdditiveChannel((make_link(formula, **options),), (1.0,), noise))
    rng = np.random.default_rng(seed)
    X, w = rng.standard_normal((round(ratio * d), d)), rng.standard_normal((d, 1))
    w *= np.sqrt(d) / np.linalg.norm(w)
    sensors = GaussianSensors(X)
    y = output.sample(sensors.forward(w), rng)
    return output, sensors, posterior_given(output, y), w


def evolution_of(formula, noise):
    return Curve(Gaussian(), Output.from_link(make_link(formula), noise=noise))


def overlap(h, w):
    return float(np.sum(h * w) ** 2 / np.sum(h**2) / np.sum(w**2))


@pytest.mark.parametrize("ratio", [0.5, 1.0, 4.0])
def test_linear_labels_give_ridge_regression(ratio):
    d, noise = 300, 0.4
    _, sensors, outputs, _ = problem("z", noise, d=d, ratio=ratio, seed=1)
    found = message_passing(
        sensors, messages_of(outputs), Start.nothing(sensors, round(ratio * d)), tolerance=1e-9
    )
    X, y = sensors.inputs / np.sqrt(d), outputs.labels
    exact = np.linalg.solve(X.T @ X + noise * np.eye(d), X.T @ y)
    # the precision is empirical, so only the direction is exact
    assert np.corrcoef(exact, found.estimate[:, 0])[0, 1] > 0.9999
    assert found.variance[0, 0] == pytest.approx(
        1 - evolution_of("z", noise).overlap(ratio), abs=0.02
    )
    assert found.residual <= 1e-9


@pytest.mark.parametrize(
    ("formula", "noise", "ratio"), [("relu", 0.1, 1.0), ("tanh", 0.3, 2.0), ("sign(z)", 0.2, 1.5)]
)
def test_labels_with_the_sign_follow_state_evolution(formula, noise, ratio):
    overlaps = []
    for seed in range(8):
        _, sensors, outputs, w = problem(formula, noise, d=400, ratio=ratio, seed=seed)
        found = message_passing(
            sensors, messages_of(outputs), Start.nothing(sensors, round(ratio * 400))
        )
        overlaps.append(overlap(found.estimate, w))
    error = np.std(overlaps, ddof=1) / np.sqrt(8)
    expected = evolution_of(formula, noise).overlap(ratio)
    assert np.mean(overlaps) == pytest.approx(expected, abs=3 * error + 0.01)


def test_the_first_step_from_nothing_is_the_linear_estimator():
    _, sensors, outputs, _ = problem("relu", 0.1, d=500, ratio=1.0, seed=3)
    first = message_passing(
        sensors, messages_of(outputs), Start.nothing(sensors, 500), damping=0.0, keep=True
    ).history[0]
    # linear estimator sum_i m(y_i) x_i
    labels = outputs(np.zeros((500, 1)), np.eye(1)).mean
    linear = sensors.adjoint(labels)
    assert overlap(first, linear) == pytest.approx(1.0, abs=1e-12)


def test_every_step_follows_state_evolution_from_an_informed_start():
    """Undamped steps with many samples against the scalar recursion, step by step."""
    d, ratio, q = 1_500, 2.5, 0.3
    output, sensors, outputs, w = problem("abs", 0.2, d=d, ratio=ratio, seed=5)
    rng = np.random.default_rng(6)
    # an initial posterior mean of w at overlap q that is independent of the samples
    h = q * w + np.sqrt(q * (1 - q)) * rng.standard_normal((d, 1))
    start = Start(h, np.array([[1 - q]]), np.zeros((round(ratio * d), 1)))
    found = message_passing(
        sensors, messages_of(outputs), start, damping=0.0, keep=True, tolerance=1e-3
    )
    for step in range(4):
        precision = ratio * Noisy(output).information(1 - q)
        q = precision / (1 + precision)
        assert overlap(found.history[step], w) == pytest.approx(q, abs=0.04)


def test_samples_without_information_end_at_nothing():
    _, sensors, outputs, _ = problem("abs", 0.5, d=300, ratio=0.2, seed=2)
    rng = np.random.default_rng(0)
    start = Start(0.3 * rng.standard_normal((300, 1)), np.array([[0.9]]), np.zeros((60, 1)))
    found = message_passing(sensors, messages_of(outputs), start)
    assert np.mean(found.estimate**2) < 0.02
    assert found.variance[0, 0] > 0.95


def test_too_few_steps_are_distinguished_from_divergence():
    _, sensors, outputs, w = problem("relu", 0.1, d=100, ratio=2.0, seed=0)
    start = Start.nothing(sensors, 200)
    with pytest.raises(NotConverged, match="did not settle in 3 steps") as caught:
        message_passing(sensors, messages_of(outputs), start, max_steps=3, tolerance=1e-12)
    assert caught.value.diagnostics["reason"] == "did not settle"
    assert len(caught.value.diagnostics["residuals"]) == 3

    # messages of the wrong sign make the iteration diverge
    def repelled(omega, V):
        found = outputs(omega, V)
        return found._replace(mean=3 * omega - found.mean, covariance=3 * V + found.covariance)

    with pytest.raises(NotConverged, match="diverged") as caught:
        message_passing(
            sensors, messages_of(repelled), Start(0.1 * w, np.eye(1), np.zeros((200, 1))), damping=0.0,
            denoiser=lambda b, A: (5 * b, np.eye(1)),
        )  # fmt: skip
    assert caught.value.diagnostics["reason"] == "diverged"
    with pytest.raises(InvalidParameter, match="damping"):
        message_passing(sensors, messages_of(outputs), start, damping=1.0)


def test_another_denoiser_finds_another_prior():
    """Prior of signs: state evolution q = E[tanh²] of the linear channel."""
    d, ratio, noise = 800, 0.8, 0.3
    output = additive_output(AdditiveChannel((make_link("z"),), (1.0,), noise))
    rng = np.random.default_rng(4)
    X, w = rng.standard_normal((round(ratio * d), d)), np.sign(rng.standard_normal((d, 1)))
    sensors = GaussianSensors(X)
    y = output.sample(sensors.forward(w), rng)

    def signs(b, A):
        mean = np.tanh(b)
        return mean, np.array([[np.mean(1 - mean**2)]])

    found = message_passing(
        sensors,
        messages_of(posterior_given(output, y)),
        Start.nothing(sensors, len(y)),
        denoiser=signs,
    )
    zeta = rng.standard_normal(200_000)
    V = 1.0
    for _ in range(100):
        precision = ratio / (noise + V)
        V = 1 - np.mean(np.tanh(precision + np.sqrt(precision) * zeta) ** 2)
    assert np.mean((found.estimate - w) ** 2) == pytest.approx(V, abs=0.04)


def test_an_estimate_that_alternates_is_at_rest_if_that_is_allowed():
    """A denoiser that changes a coordinate by 1 % in every step, like an eigenvalue at an edge."""
    _, sensors, outputs, _ = problem("z", 0.5, d=100, ratio=9.0, seed=8)
    messages = messages_of(outputs)
    flips = iter(range(10_000))

    def flipping(b, A):
        mean, variance = gaussian_denoiser(b, A)
        mean = mean.copy()
        mean[0] += 0.1 * (-1) ** next(flips)
        return mean, variance

    start = Start.nothing(sensors, 900)
    options = {"denoiser": flipping, "max_steps": 80}
    with pytest.raises(NotConverged, match="settle"):
        message_passing(sensors, messages, start, **options)
    with pytest.raises(NotConverged, match="settle"):
        message_passing(sensors, messages, start, circling=1e-4, **options)
    found = message_passing(sensors, messages, start, circling=0.05, **options)
    plain = message_passing(sensors, messages, start)
    assert np.linalg.norm(found.estimate - plain.estimate) < 0.05 * np.linalg.norm(plain.estimate)
