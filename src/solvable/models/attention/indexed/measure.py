"""One replicate of an attention-indexed model: draw data, estimate the weights, measure the errors."""

from __future__ import annotations

import numpy as np

from solvable.errors import NotConverged
from solvable.frame.points import Metrics
from solvable.message_passing.attention_channels import HardmaxAttention, SoftmaxAttention
from solvable.message_passing.loop import MessagePassingResult, Start, settle
from solvable.message_passing.outputs import Messages
from solvable.message_passing.signal_laws import signal_denoiser
from solvable.models.attention.indexed.descent import descended
from solvable.models.attention.indexed.parameters import STARTS, IndexedParameters
from solvable.operators.sensors import TokenSensors

TEST_SAMPLES = 2_000
"""Number of test samples."""


def draw_weights(parameters: IndexedParameters, rng: np.random.Generator) -> np.ndarray:
    """Draw the weights S = W W^T / sqrt(r d)."""
    d, r = parameters.dimension, parameters.rank
    W = rng.standard_normal((d, r))
    return W @ W.T / np.sqrt(r * d)


def draw_teacher(parameters: IndexedParameters, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return the true weights of one replicate."""
    return {"weights": draw_weights(parameters, rng)}


def measure(parameters: IndexedParameters, rng: np.random.Generator) -> Metrics:
    """Draw one replicate and measure its errors; errors are None if message passing does not converge."""
    S = draw_weights(parameters, rng)
    d, T = parameters.dimension, parameters.tokens
    sensors = TokenSensors(rng.standard_normal((parameters.samples * T, d)), T)
    labels = parameters.channel.sample(sensors.forward(S), rng)
    if parameters.estimator == "gradient-descent":
        return _descended(parameters, S, sensors, labels, rng)
    result = settled(parameters, sensors, parameters.channel.messages(labels))
    if result is None:
        return {"matrix_error": None, "start_error": None, "test_error": None, "converged": 0.0}
    error = float(np.sum((result.estimate - S) ** 2)) / d
    return {
        "matrix_error": error,
        "start_error": None,
        "test_error": test_error(parameters, S, result, rng),
        "converged": 1.0,
    }


def _descended(
    parameters: IndexedParameters,
    S: np.ndarray,
    sensors: TokenSensors,
    labels: np.ndarray,
    rng: np.random.Generator,
) -> Metrics:
    """Errors of gradient descent: of the average over all starts, and the mean of single starts."""
    d, T = parameters.dimension, parameters.tokens
    tokens = np.asarray(sensors.source).reshape(-1, T, d)
    found = descended(tokens, labels.reshape(-1, T, T), parameters.rank, STARTS, rng)
    return {
        "matrix_error": float(np.sum((found.mean(axis=0) - S) ** 2)) / d,
        "start_error": float(np.sum((found - S) ** 2)) / (STARTS * d),
        "test_error": None,
        "converged": 1.0,
    }


def settled(
    parameters: IndexedParameters, sensors: TokenSensors, messages: Messages
) -> MessagePassingResult | None:
    """Fixed point of message passing from the prior mean; None if the iteration does not converge."""
    signal, K = parameters.signal, len(parameters.channel.variances)
    start = Start(
        signal.prior_mean(sensors.size),
        np.array([[signal.variance]]),
        np.zeros((sensors.n_samples, K)),
    )
    try:
        # small tolerance: near exact recovery, steps become small long before convergence
        return settle(
            sensors, messages, start, denoiser=signal_denoiser(signal, 1e-6),
            schedule=((0.5, 150), (0.85, 300)), tolerance=5e-4, circling=0.02, least_variance=1e-6,
        )  # fmt: skip
    except NotConverged:
        return None


def test_error(
    parameters: IndexedParameters,
    S: np.ndarray,
    result: MessagePassingResult,
    rng: np.random.Generator,
) -> float:
    """Squared test error of the posterior mean of the attention matrix."""
    T, d, channel = parameters.tokens, parameters.dimension, parameters.channel
    if not isinstance(channel, SoftmaxAttention | HardmaxAttention):
        # the exact mean of the error over test tokens is T (T + 1) E   (attention 6)
        return T * (T + 1) * float(np.sum((result.estimate - S) ** 2)) / d
    sensors = TokenSensors(rng.standard_normal((TEST_SAMPLES * T, d)), T)
    spread = np.sqrt(channel.variances * max(float(result.variance[0, 0]), 0.0))
    mean, known, draws = 0.0, sensors.forward(result.estimate), 100
    for _ in range(draws // 2):
        step = spread * rng.standard_normal(known.shape)
        mean = mean + _attention(channel, known + step) + _attention(channel, known - step)
    difference = mean / draws - _attention(channel, sensors.forward(S))
    return float(np.mean(np.sum(difference**2, axis=(1, 2))))


def _attention(channel: SoftmaxAttention | HardmaxAttention, indices: np.ndarray) -> np.ndarray:
    """Noiseless attention matrices (n, T, T) computed from the indices."""
    if isinstance(channel, SoftmaxAttention):
        return channel.attention(indices)
    return np.eye(channel.tokens)[channel.choices(indices)]
