"""State evolution and message passing of attention-indexed models (arXiv:2506.01582)."""

import time

import numpy as np
import pytest

from solvable.arrays import random_stream
from solvable.message_passing.attention_channels import HardmaxAttention, SoftmaxAttention
from solvable.message_passing.matrix_channels import GaussianIndices
from solvable.message_passing.signal_evolution import signal_evolution
from solvable.message_passing.signal_laws import SymmetricSignal
from solvable.models.attention.indexed.measure import measure
from solvable.models.attention.indexed.parameters import IndexedParameters
from solvable.models.attention.indexed.theory import bayes_test_error, recovery_ratio
from solvable.spectra import marchenko_pastur


def limit(rho, channel, ratio):
    return signal_evolution(SymmetricSignal(marchenko_pastur(rho)), channel, ratio).error


def alone():
    return GaussianIndices(np.array([2.0]), np.array([0.0]))


@pytest.mark.parametrize("tokens", [2, 3, 5])
def test_softmax_collapses_to_matrix_sensing(tokens):
    """E at T tokens equals E at T = 1 without noise and k times the samples (attention 1)."""
    ratios = np.array([0.01, 0.03, 0.1]) * 2 / (tokens**2 + tokens - 2) / 0.2
    seen = (tokens**2 + tokens - 2) / 2
    channel = SoftmaxAttention(tokens, 0.0)
    assert limit(0.7, channel, ratios) == pytest.approx(limit(0.7, alone(), seen * ratios))
    parameters = IndexedParameters(tokens=tokens, rank_ratio=0.7, dimension=100)
    assert recovery_ratio(parameters) == pytest.approx((1.4 - 0.49) / (tokens**2 + tokens - 2))


def test_noise_inside_of_softmax_is_half_a_variance_of_error():
    """q^ = 2 alpha k / (Delta / 2 + E) equals noisy sensing at k alpha (attention 1)."""
    noisy = GaussianIndices(np.array([2.0]), np.array([0.6]))
    found = limit(0.4, SoftmaxAttention(3, 0.6), 0.07)
    assert found == pytest.approx(limit(0.4, noisy, 5 * 0.07))


@pytest.mark.parametrize(
    ("channel", "rho", "ratio", "error"),
    [
        (SoftmaxAttention(2, 0.0), 0.5, 0.10, 0.3922),
        (SoftmaxAttention(2, 0.0), 0.5, 0.05, 0.7237),
        (SoftmaxAttention(3, 0.0), 0.5, 0.04, 0.3922),
        (SoftmaxAttention(2, 0.0), 1.0, 0.15, 0.2615),
        (HardmaxAttention(2, 0.0, 1.5), 0.5, 0.60, 0.1650),
    ],
)
def test_state_evolution_of_the_table(channel, rho, ratio, error):
    """Reference values of an independent solver (attention 1, attention 4; sensing 3)."""
    # the hardmax reference is a Monte-Carlo mean with an error of up to 5 %
    within = 1e-4 if isinstance(channel, SoftmaxAttention) else 0.05 * error
    assert float(limit(rho, channel, ratio)) == pytest.approx(error, abs=within)


def test_hardmax_limit_by_accepted_posterior_draws():
    """Closed form (attention 3, attention 4) against 400,000 drawn labels; both give 0.3742."""
    channel = HardmaxAttention(2, 0.0, 1.5)
    error = float(limit(0.5, channel, 0.3))
    assert error == pytest.approx(0.3742, abs=2e-4)
    rng, v = np.random.default_rng(0), channel.variances
    omega = np.sqrt(v * (1.5 - error)) * rng.standard_normal((400_000, 3))
    h = omega + np.sqrt(v * error) * rng.standard_normal(omega.shape)
    g = channel.messages(channel.sample(h, rng))(omega, np.diag(v) * error).values
    # E[(h - omega) g] / E is an independent estimate of sum v E[g²]
    estimates = np.sum((h - omega) * g, axis=1) / error
    informed = 2 * 0.3 * estimates.mean()
    signal = SymmetricSignal(marchenko_pastur(0.5))
    back = float(signal.mmse(np.array([1 / informed]))[0])
    scatter = estimates.std() / 400_000**0.5 / estimates.mean()
    assert back == pytest.approx(error, abs=3 * scatter * error)


def errors(seeds, **setting):
    parameters = IndexedParameters(**setting)
    return [measure(parameters, random_stream("check", seed)) for seed in range(seeds)]


@pytest.mark.slow
def test_softmax_by_message_passing():
    """d = 240, T = 2: 0.392 within 0.03 (attention 1)."""
    found = errors(1, dimension=240, sample_ratio=0.1)
    assert found[0]["matrix_error"] == pytest.approx(0.392, abs=0.03)


@pytest.mark.slow
def test_hardmax_by_message_passing():
    """d = 200, T = 2: 0.374 within 0.015 (attention 4)."""
    found = errors(2, dimension=200, sample_ratio=0.3, activation="hardmax")
    assert np.mean([one["matrix_error"] for one in found]) == pytest.approx(0.374, abs=0.015)


@pytest.mark.slow
def test_three_tokens_of_hardmax_by_message_passing():
    """d = 80, T = 3, noise 0.3: state evolution within 8 % (attention 4)."""
    found = errors(3, dimension=80, sample_ratio=0.15, activation="hardmax", tokens=3, noise=0.3)
    expected = float(limit(0.5, HardmaxAttention(3, 0.3, 1.5), 0.15))
    assert np.mean([one["matrix_error"] for one in found]) == pytest.approx(expected, rel=0.08)


def test_a_softmax_curve_takes_less_than_two_seconds():
    # CPU time of the second curve; the first includes imports
    for rank in (0.4, 0.5):
        start = time.process_time()
        parameters = IndexedParameters(rank_ratio=rank)
        found = signal_evolution(parameters.signal, parameters.channel, np.linspace(0.01, 0.4, 60))
        tests = [
            bayes_test_error(parameters, float(error), float(noise))
            for error, noise in zip(found.error, found.noise, strict=True)
        ]
        spent = time.process_time() - start
    assert spent < 2
    assert tests[0] > tests[10] > tests[-1] == 0
