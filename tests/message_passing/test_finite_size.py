"""First order in 1/d: drawn matrices, token shapes, runs of message passing (sensing 20 to 22)."""

import numpy as np
import pytest

from solvable.arrays import random_stream
from solvable.message_passing.attention_channels import SoftmaxAttention
from solvable.message_passing.finite_size import (
    _denoiser,
    error_at_dimension,
    first_order,
    token_shape,
)
from solvable.message_passing.loop import Start, settle
from solvable.message_passing.matrix_channels import GaussianIndices
from solvable.message_passing.signal_evolution import signal_evolution
from solvable.message_passing.signal_laws import SymmetricSignal, signal_denoiser
from solvable.operators.sensors import TokenSensors, index_variances
from solvable.spectra import discrete, marchenko_pastur
from solvable.spectra.denoiser import denoising_error
from solvable.spectra.free_convolution import SpectralLaw


def linear(noise, tokens=1):
    v = index_variances(tokens)
    return GaussianIndices(v, v * noise / 2)


@pytest.mark.parametrize(("rho", "noise"), [(2.0, 1.0), (0.1, 0.2), (0.5, 3.0)])
def test_denoiser_of_drawn_matrices(rho, noise):
    d, draws = 40, 250
    rng, rank = random_stream("finite", rho), round(rho * d)
    signal, t = SymmetricSignal(marchenko_pastur(rho)), noise
    law = SpectralLaw(signal.spectrum, noise=float(np.sqrt(t)))
    found = []
    for _ in range(draws):
        W, G = rng.standard_normal((d, rank)), rng.standard_normal((d, d))
        S = W @ W.T / np.sqrt(rank * d)
        M = S + np.sqrt(t / (2 * d)) * (G + G.T)
        found.append(np.sum((signal.denoise(M, t) - S) ** 2) / d)
    error = d * np.std(found) / draws**0.5
    order = d * (np.mean(found) - denoising_error(law))
    assert _denoiser(law) == pytest.approx(order, abs=3 * error + 3 / d)


def test_a_known_matrix_has_no_first_order():
    for noise in (0.8, 30.0):
        law = SpectralLaw(discrete(np.array([2.0])), noise=noise)
        assert _denoiser(law) == pytest.approx(0, abs=1e-6 * noise**2)


@pytest.mark.parametrize("rho", [0.2, 3.0])
def test_little_known(rho):
    """At large noise the error is that of the prior mean, 1 + 1/d."""
    for noise in (30.0, 90.0):
        law = SpectralLaw(marchenko_pastur(rho), noise=noise)
        assert _denoiser(law) == pytest.approx(1, abs=0.01)
    signal, channel = SymmetricSignal(marchenko_pastur(rho)), linear(400.0)
    for ratio in (1e-7, 1e-5, 1e-3, 1e-1):
        error = error_at_dimension(signal, channel, ratio, 60, token_shape(1))
        assert error == pytest.approx(1 + 1 / 60, abs=0.01)


def test_shapes_of_tokens():
    assert token_shape(1).pairs == pytest.approx(1)
    assert token_shape(1).triples == pytest.approx(1)
    assert [token_shape(T).seen for T in (1, 2, 3)] == [1, 3, 6]
    assert [token_shape(T, True).seen for T in (2, 3, 4)] == [2, 5, 9]
    # pairs is the mean of |V|² with V_kl = <A_k, Y A_l> for random symmetric Y   (sensing 21)
    rng, T = np.random.default_rng(0), 2
    basis = [np.diag([1.0, 0]), np.diag([0, 1.0]), np.array([[0, 1.0], [1.0, 0]]) / np.sqrt(2)]
    squares = []
    for _ in range(20_000):
        Y = rng.standard_normal((T, T))
        Y = (Y + Y.T) / 2
        V = [[np.trace(A @ Y @ B) for A in basis] for B in basis]
        squares.append(np.sum(np.array(V) ** 2))
    assert token_shape(2).pairs == pytest.approx(np.mean(squares), rel=0.04)


def test_corrections_vanish_with_the_dimension_and_near_nothing():
    signal, channel = SymmetricSignal(marchenko_pastur(0.5)), linear(0.25)
    limit = float(signal_evolution(signal, channel, 0.3).error)
    errors = [error_at_dimension(signal, channel, 0.3, d, token_shape(1)) for d in (60, 600, 6000)]
    assert errors[0] > errors[1] > errors[2] > limit
    order = first_order(signal, channel, 0.3, token_shape(1))
    slope = 6000 * (errors[2] / limit - 1)
    assert slope == pytest.approx(order.denoiser + order.sensors, rel=2e-3)
    known = first_order(signal, linear(0.0), 3.0, token_shape(1))
    assert known.error == known.sensors == 0
    assert error_at_dimension(signal, linear(0.0), 0.36, 20, token_shape(1)) is None


def ratios(signal, channel, rho, ratio, d, tokens, runs):
    found, rank, n = [], round(rho * d), round(ratio * d**2)
    for seed in range(runs):
        rng = random_stream("runs", d, seed)
        W = rng.standard_normal((d, rank))
        S = W @ W.T / np.sqrt(rank * d)
        sensors = TokenSensors(rng.standard_normal((n * tokens, d)), tokens)
        labels = channel.sample(sensors.forward(S), rng)
        start = Start(
            signal.prior_mean(d), np.array([[1.0]]), np.zeros((n, channel.variances.size))
        )
        estimate = settle(
            sensors, channel.messages(labels), start, denoiser=signal_denoiser(signal),
            schedule=((0.5, 150), (0.85, 300)), tolerance=5e-4, circling=0.02, least_variance=1e-6,
        ).estimate  # fmt: skip
        found.append(np.sum((estimate - S) ** 2) / d)
    return np.array(found)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("channel", "rho", "ratio", "tokens", "shape"),
    [
        (linear(0.25), 0.1, 0.3, 1, token_shape(1)),  # 20 % at d = 40
        (linear(0.25), 0.5, 0.3, 1, token_shape(1)),
        (linear(2.0), 0.5, 0.3, 1, token_shape(1)),  # 4 %
        (linear(0.25, 3), 0.5, 0.1, 3, token_shape(3)),
        (SoftmaxAttention(2, 0.3), 1.0, 0.15, 2, token_shape(2, True)),
    ],
)
def test_runs_of_message_passing(channel, rho, ratio, tokens, shape):
    signal, d, runs = SymmetricSignal(marchenko_pastur(rho)), 48, 24
    errors = ratios(signal, channel, rho, ratio, d, tokens, runs)
    expected = error_at_dimension(signal, channel, ratio, d, shape)
    grown = expected / float(signal_evolution(signal, channel, ratio).error) - 1
    # three standard errors, and a second order of twice the square of the first   (sensing 22)
    allowed = 3 * errors.std() / runs**0.5 + expected * (2 * grown**2 + 0.005)
    assert expected == pytest.approx(errors.mean(), abs=allowed)
