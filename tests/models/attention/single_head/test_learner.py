"""Minimisers of the loss of an attention head."""

import numpy as np
import pytest

from solvable.message_passing.loop import Start, message_passing
from solvable.message_passing.outputs import Message
from solvable.models.attention.single_head.learner import contrasts_of, train_head
from solvable.models.attention.single_head.measure import draw_samples, draw_teacher
from solvable.models.attention.single_head.outputs import forces, inverses, losses, proximal
from solvable.models.attention.single_head.parameters import SingleHeadParameters
from solvable.operators.sensors import TokenSensors
from solvable.spectra.functionals import degrees_of_freedom


def drawn(seed=0, **values):
    parameters = SingleHeadParameters(**({"dimension": 30, "sample_ratio": 0.3} | values))
    rng = np.random.default_rng(seed)
    factor = draw_teacher(parameters, rng)["factor"]
    sensors, _, labels = draw_samples(parameters, factor @ factor.T, parameters.n_samples, rng)
    return parameters, sensors, labels


def pass_messages(
    sensors,
    labels,
    output,
    *,
    regularisation,
    damping=0.3,
    tolerance=1e-6,
    max_steps=500,
):
    d = sensors.size
    result = message_passing(
        sensors,
        head_messages(output, labels),
        Start(np.zeros((d, d)), np.ones((1, 1)), np.zeros((len(labels), output.variances.size))),
        denoiser=soft_thresholder(regularisation),
        damping=damping,
        tolerance=tolerance,
        max_steps=max_steps,
        least_variance=0.0,
    )
    return result.estimate


def head_messages(output, labels):

    def given(omega, cavity):
        variance = float(cavity[0, 0] / output.variances[0])
        turn = output.contrasts / np.sqrt(output.variances)[:, None]
        s = proximal(output, labels, omega @ turn, variance)
        curvature = output.hessian(s, labels, convex=False)
        step = inverses(np.eye(output.size) + variance * curvature)
        # dg / domega = -H (1 + Sigma H)^-1
        slope = -turn @ (curvature @ step).sum(axis=0) @ turn.T
        return Message(forces(output, s, labels) @ turn.T, slope)

    return given


def soft_thresholder(regularisation):

    def denoiser(b, A):
        precision = max(float(A[0, 0]), 1e-300)
        values, vectors = np.linalg.eigh((b + b.T) / 2)
        values, vectors = values[::-1], vectors[:, ::-1]
        kept = int(np.count_nonzero(values > 2 * regularisation))
        shrunk, part = values[:kept] - 2 * regularisation, vectors[:, :kept]
        # Sigma = 2 A / Sigma^, A the degrees of freedom over d²
        response = 2 * degrees_of_freedom(values, shrunk) / len(b) ** 2 / precision
        return (part * (shrunk / precision)) @ part.T, np.array([[response]])

    return denoiser


@pytest.mark.parametrize("tokens", [2, 3])
def test_contrasts_are_those_of_the_logits(tokens):
    parameters, output = (
        SingleHeadParameters(tokens=tokens),
        SingleHeadParameters(tokens=tokens).output,
    )
    rng = np.random.default_rng(0)
    X, W = rng.standard_normal((5, tokens, 12)), rng.standard_normal((12, 7))
    S = W @ W.T / np.sqrt(7 * 12)
    h = X @ S @ X.transpose(0, 2, 1) - np.trace(S) * np.eye(tokens)
    weights = np.exp(parameters.inverse_temperature * h / np.sqrt(12))
    expected = weights / weights.sum(axis=2, keepdims=True)
    s = contrasts_of(output, TokenSensors(X.reshape(-1, 12), tokens), S)
    np.testing.assert_allclose(output.values(s), expected.reshape(5, -1), rtol=1e-10)


@pytest.mark.parametrize("setting", [{}, {"tokens": 3, "sample_ratio": 0.15}, {"noise": 0.0}])
def test_message_passing_comes_to_rest_at_the_minimiser(setting):
    parameters, sensors, labels = drawn(dimension=40, **setting)
    output, penalty = parameters.output, parameters.regularisation
    found = train_head(sensors, labels, output, regularisation=penalty, width=40, seed=1)
    passed = pass_messages(sensors, labels, output, regularisation=penalty)
    assert np.linalg.norm(passed - found.matrix) < 2e-4 * np.linalg.norm(passed)


def test_trained_weights_are_stationary_with_the_reported_objective():
    parameters, sensors, labels = drawn()
    output, d = parameters.output, 30
    found = train_head(sensors, labels, output, regularisation=0.02, width=30, seed=2)
    S = found.matrix

    def objective(matrix):
        fits = losses(output, contrasts_of(output, sensors, matrix), labels).sum()
        return fits / d**2 + 0.02 * np.trace(matrix) / d

    assert found.objective == pytest.approx(objective(S), rel=1e-10)
    values, vectors = np.linalg.eigh(S)
    factor = vectors * np.sqrt(np.maximum(values, 0))
    rng = np.random.default_rng(3)
    for _ in range(3):
        moved = factor + 1e-4 * rng.standard_normal(factor.shape)
        assert objective(moved @ moved.T) > found.objective
    assert found.gradient < 1e-3


def test_width_beyond_the_learned_rank_and_start_do_not_matter():
    parameters, sensors, labels = drawn(dimension=40)
    fits = [
        train_head(sensors, labels, parameters.output, regularisation=0.02, width=width, seed=seed)
        for width, seed in ((40, 0), (40, 1), (30, 2), (90, 3))
    ]
    for other in fits[1:]:
        assert other.objective == pytest.approx(fits[0].objective, rel=1e-7)


def test_slopes_of_messages_are_derivatives():
    parameters, _, labels = drawn(tokens=3, sample_ratio=0.1)
    output = parameters.output
    rng = np.random.default_rng(4)
    omega = rng.standard_normal((len(labels), output.variances.size))
    messages, V = head_messages(output, labels), 0.7 * np.diag(output.variances)
    values, slope = messages(omega, V)
    for k in range(output.variances.size):
        step = 1e-5 * np.eye(output.variances.size)[k]
        up, down = messages(omega + step, V).values, messages(omega - step, V).values
        np.testing.assert_allclose((up - down).sum(axis=0) / 2e-5, slope[k], atol=1e-4)
    assert values.shape == omega.shape
