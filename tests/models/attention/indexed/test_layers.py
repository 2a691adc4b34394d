"""Two layers of attention: channel, messages and state evolution."""

import numpy as np
import pytest
import studies

from solvable.arrays import random_stream
from solvable.errors import InvalidParameter
from solvable.message_passing.attention_channels import SoftmaxAttention
from solvable.message_passing.signal_laws import SymmetricSignal
from solvable.models.attention.indexed.layer_evolution import (
    information,
    layer_errors,
    layers_test_error,
)
from solvable.models.attention.indexed.layers import (
    CONTRASTS,
    ROOT,
    SHAPE,
    LayerSensors,
    TwoLayerAttention,
    layer_denoiser,
)
from solvable.models.attention.indexed.measure import draw_layers, measure
from solvable.models.attention.indexed.parameters import IndexedParameters
from solvable.models.attention.indexed.system import system
from solvable.operators.sensors import TokenSensors, index_variances
from solvable.spectra import marchenko_pastur

DEEP = TwoLayerAttention(0.2)


def softmax(logits):
    weights = np.exp(logits)
    return weights / weights.sum(axis=-1, keepdims=True)


def mixing(first):
    """Matrix from contrasts of the last layer to those of its logits, from the definition."""
    B = np.eye(2) + softmax(np.array([[first[0], 0.0], [0.0, first[1]]]))
    columns = []
    for diagonal in ([1.0, 0.0], [0.0, 1.0]):
        M = B @ np.diag(diagonal) @ B.T
        columns.append([M[0, 0] - M[0, 1], M[1, 1] - M[0, 1]])
    return np.array(columns).T


def test_two_layers_of_attention_on_tokens():
    """The contrasts and the sensors against softmax(X' S_2 X'^T / sqrt d), X' = (I + A) X."""
    parameters = IndexedParameters(dimension=40, layers=2, noise=0.1)
    rng = np.random.default_rng(0)
    S = draw_layers(parameters, rng)
    X = rng.standard_normal((3, 2, 40))

    def logits(tokens, weights, factors):
        # the trace of the weights is subtracted as in the indices
        product = tokens @ weights @ tokens.transpose(0, 2, 1)
        return (product - np.trace(weights) * factors @ factors.transpose(0, 2, 1)) / np.sqrt(40)

    identity = np.broadcast_to(np.eye(2), (3, 2, 2))
    B = identity + softmax(logits(X, S[0], identity))
    expected = np.diagonal(softmax(logits(B @ X, S[1], B)), axis1=1, axis2=2)
    sensors = LayerSensors(TokenSensors(X.reshape(-1, 40), 2))
    assert DEEP.attention(sensors.forward(S)) == pytest.approx(expected)


def test_the_contrasts_have_the_covariance_of_the_indices():
    assert CONTRASTS @ np.diag(index_variances(2)) @ CONTRASTS.T == pytest.approx(SHAPE)
    sensors = LayerSensors(TokenSensors(np.random.default_rng(0).standard_normal((60, 30)), 2))
    S, g = np.random.default_rng(1).standard_normal((2, 30, 30)), np.ones((30, 4))
    S = S + S.transpose(0, 2, 1)
    assert np.sum(sensors.adjoint(g) * S) * 30 / 2 == pytest.approx(np.sum(g * sensors.forward(S)))


def test_messages_are_posterior_means_of_weighted_draws():
    """Quadrature and Gaussian integral against 400,000 draws weighted by the likelihood."""
    rng, errors = np.random.default_rng(2), (0.6, 0.3)
    omega = 0.5 * rng.standard_normal((3, 4))
    labels = DEEP.sample(omega + 0.5 * rng.standard_normal((3, 4)), rng)
    messages = DEEP.posterior(labels, omega, errors)
    turn = np.kron(np.diag(np.sqrt(errors)), ROOT)
    for label, mean, message in zip(labels, omega, messages, strict=True):
        steps = rng.standard_normal((400_000, 4)) @ turn.T
        rest = label - DEEP.mixed(mean[:2] + steps[:, :2], mean[2:] + steps[:, 2:])
        distance = np.sum((rest @ np.linalg.inv(DEEP.noise / 2 * SHAPE)) * rest, axis=1)
        weights = np.exp(-distance / 2)
        weights /= weights.sum()
        found = weights @ steps
        scatter = np.sqrt(np.sum((weights[:, None] * (steps - found)) ** 2, axis=0))
        inverse = np.kron(np.diag(1 / np.array(errors)), np.linalg.inv(SHAPE))
        assert np.all(np.abs(found - np.linalg.inv(inverse) @ message) < 4.5 * scatter)


@pytest.mark.parametrize("errors", [(1.0, 1.0), (0.6, 0.2)])
def test_an_invisible_first_layer_leaves_one_layer_of_attention(errors):
    """With a large skip weight c, labels are c² times those of the last layer alone."""
    skip = 1e4
    found = information(TwoLayerAttention(0.3 * skip**4, skip=skip), errors)
    alone = float(SoftmaxAttention(2, 0.3).information(np.array([errors[1]]))[0])
    assert found[1] == pytest.approx(alone, rel=0.01)
    assert abs(found[0]) < 1e-5


def test_information_about_the_last_layer_if_the_first_is_known():
    """Gaussian channel with a random known matrix K: I_2 = E tr(SHAPE K^T C^-1 K)."""
    rng, error = np.random.default_rng(3), 0.4
    each = []
    for first in rng.standard_normal((4_000, 2)) @ ROOT.T:
        K = mixing(first)
        C = error * K @ SHAPE @ K.T + DEEP.noise / 2 * SHAPE
        each.append(np.trace(SHAPE @ K.T @ np.linalg.inv(C) @ K))
    found = information(DEEP, (1e-8, error))[1]
    assert found == pytest.approx(np.mean(each), abs=4 * np.std(each) / 4_000**0.5 + 0.01 * found)


def test_layers_are_uncorrelated_if_the_last_one_has_mean_zero():
    """The cross information is 0 by symmetry, but not if both layers share a known part."""
    first, last, cross = information(DEEP, (0.7, 0.3))
    assert abs(cross) < 0.01 * np.sqrt(first * last)
    rng = np.random.default_rng(4)
    omega = np.tile(rng.standard_normal((20_000, 2)) @ ROOT.T, 2)  # of the prior mean, rho = 1
    labels = DEEP.sample(omega + rng.standard_normal((20_000, 4)) @ np.kron(np.eye(2), ROOT).T, rng)
    g = DEEP.posterior(labels, omega, (1.0, 1.0))
    first, last = g[:, :2], g[:, 2:]
    powers = [np.sum((a @ SHAPE) * b) for a, b in ((first, first), (last, last), (first, last))]
    assert powers[2] / np.sqrt(powers[0] * powers[1]) == pytest.approx(0.067, abs=0.03)


def test_state_evolution_solves_its_equations():
    """Errors from the table against informations with more nodes; largest error first."""
    signal = SymmetricSignal(marchenko_pastur(0.5))
    before = np.ones(2)
    for ratio in (0.1, 0.3):
        errors = layer_errors(signal, DEEP, ratio)
        finer = information(TwoLayerAttention(0.2, nodes=13), tuple(errors))[:2]
        assert signal.mmse(1 / (2 * ratio * finer)) == pytest.approx(errors, rel=0.01)
        assert errors[1] < errors[0]
        assert np.all(errors < before)
        before = errors
    assert layer_errors(signal, DEEP, 10.0) is None


def test_test_error_of_two_layers_by_averages_of_posterior_draws():
    errors, rng, turn = np.array([0.6, 0.3]), np.random.default_rng(5), np.kron(np.eye(2), ROOT)
    omega = rng.standard_normal((3_000, 4)) @ turn.T * np.repeat(np.sqrt(1 - errors), 2)

    def attention():
        rest = rng.standard_normal((3_000, 4)) @ turn.T * np.repeat(np.sqrt(errors), 2)
        return DEEP.attention(omega + rest)

    draws = 100
    mean = sum(attention() for _ in range(draws)) / draws
    each = 2 * np.sum((attention() - mean) ** 2, axis=1) / (1 + 1 / draws)
    expected = layers_test_error(DEEP, errors)
    assert expected == pytest.approx(each.mean(), abs=4 * each.std() / 3_000**0.5)


def test_the_denoiser_treats_layers_separately_and_shifts_the_mean():
    signal = SymmetricSignal(marchenko_pastur(0.5))
    b, A = np.random.default_rng(6).standard_normal((2, 30, 30)), np.diag([0.5, 2.0])
    b = b + b.transpose(0, 2, 1)
    estimate, variance = layer_denoiser(signal)(b, A)
    mean = signal.prior_mean(30)
    assert estimate[1] == pytest.approx(signal.denoise(b[1] / 2 + mean, 0.5) - mean)
    assert np.diag(variance) == pytest.approx(signal.mmse(np.array([2.0, 0.5])))


@pytest.mark.parametrize(
    "values",
    [{"noise": 0.0}, {"noise": 0.2, "tokens": 3}, {"noise": 0.2, "activation": "hardmax"}],
)
def test_two_layers_are_refused_outside_their_theory(values):
    with pytest.raises(InvalidParameter, match="tokens=2, noise of at least"):
        IndexedParameters(layers=2, **values)


def test_message_passing_is_near_state_evolution():
    """The first order in 1/d is about 4/d and 8/d of the errors."""
    setting = IndexedParameters(dimension=60, sample_ratio=0.2, noise=0.2, layers=2, rank_ratio=1.0)
    rows = [measure(setting, random_stream("layers", seed)) for seed in range(3)]
    found = [[row["first_layer_error"], row["last_layer_error"]] for row in rows]
    limit = layer_errors(setting.signal, setting.deep_channel, 0.2)
    assert np.mean(found, axis=0) == pytest.approx(limit * (1 + np.array([4, 8]) / 60), rel=0.12)


@pytest.mark.slow
def test_claims_about_two_layers_hold_of_runs():
    points = [
        studies.point_of(
            system,
            {"dimension": d, "sample_ratio": 0.2, "noise": 0.2, "layers": 2, "rank_ratio": 1.0},
            8,
        )
        for d in (40, 100)
    ]
    for claim in ("error-of-first-layer", "error-of-last-layer", "error-of-two-layers",
                  "last-layer-first"):  # fmt: skip
        verdict = studies.verdict_of(system, claim, points)
        assert verdict.status == "holds", (claim, verdict.reason)
