"""One replicate of an attention-indexed model: draw, estimate the weights, score."""

from __future__ import annotations

import numpy as np

from solvable.errors import NotConverged
from solvable.frame.points import Metrics
from solvable.message_passing.attention_channels import HardmaxAttention, SoftmaxAttention
from solvable.message_passing.loop import MessagePassingResult, Start, settle
from solvable.message_passing.outputs import Messages
from solvable.message_passing.signal_laws import signal_denoiser
from solvable.models.attention.indexed.parameters import IndexedParameters
from solvable.operators.sensors import TokenSensors

TEST_SAMPLES = 2_000
"""Fresh samples on which predictions are scored."""


def draw_weights(parameters: IndexedParameters, rng: np.random.Generator) -> np.ndarray:
    """Weights S = W W^T / sqrt(r d)."""
    d, r = parameters.dimension, parameters.rank
    W = rng.standard_normal((d, r))
    return W @ W.T / np.sqrt(r * d)


def draw_teacher(parameters: IndexedParameters, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Weights of one replicate, stored with a study."""
    return {"weights": draw_weights(parameters, rng)}


def measure(parameters: IndexedParameters, rng: np.random.Generator) -> Metrics:
    """Metrics of one replicate; None where message passing does not come to rest."""
    S = draw_weights(parameters, rng)
    d, T = parameters.dimension, parameters.tokens
    sensors = TokenSensors(rng.standard_normal((parameters.samples * T, d)), T)
    labels = parameters.channel.sample(sensors.forward(S), rng)
    found = settled(parameters, sensors, parameters.channel.messages(labels))
    if found is None:
        return {"matrix_error": None, "test_error": None, "converged": 0.0}
    error = float(np.sum((found.estimate - S) ** 2)) / d
    return {
        "matrix_error": error,
        "test_error": test_error(parameters, S, found, rng),
        "converged": 1.0,
    }


def settled(
    parameters: IndexedParameters, sensors: TokenSensors, messages: Messages
) -> MessagePassingResult | None:
    """Fixed point of message passing from the prior mean; None if it circles."""
    signal, K = parameters.signal, len(parameters.channel.variances)
    start = Start(
        signal.prior_mean(sensors.size),
        np.array([[signal.variance]]),
        np.zeros((sensors.n_samples, K)),
    )
    try:
        # Near perfect recovery steps are small long before the end is near
        return settle(
            sensors, messages, start, denoiser=signal_denoiser(signal, 1e-6),
            schedule=((0.5, 150), (0.85, 300)), tolerance=5e-4, circling=0.02, least_variance=1e-6,
        )  # fmt: skip
    except NotConverged:
        return None


def test_error(
    parameters: IndexedParameters,
    S: np.ndarray,
    found: MessagePassingResult,
    rng: np.random.Generator,
) -> float:
    """Squared error of the mean attention matrix, over what is not known, on fresh samples."""
    T, d, channel = parameters.tokens, parameters.dimension, parameters.channel
    if not isinstance(channel, SoftmaxAttention | HardmaxAttention):
        # E (x^T D y)² over fresh tokens, exactly
        return T * (T + 1) * float(np.sum((found.estimate - S) ** 2)) / d
    sensors = TokenSensors(rng.standard_normal((TEST_SAMPLES * T, d)), T)
    spread = np.sqrt(channel.variances * max(float(found.variance[0, 0]), 0.0))
    mean, known, draws = 0.0, sensors.forward(found.estimate), 100
    for _ in range(draws // 2):
        step = spread * rng.standard_normal(known.shape)
        mean = mean + _attention(channel, known + step) + _attention(channel, known - step)
    difference = mean / draws - _attention(channel, sensors.forward(S))
    return float(np.mean(np.sum(difference**2, axis=(1, 2))))


def _attention(channel: SoftmaxAttention | HardmaxAttention, indices: np.ndarray) -> np.ndarray:
    """Attention matrices (n, T, T) without noise."""
    if isinstance(channel, SoftmaxAttention):
        return channel.attention(indices)
    return np.eye(channel.tokens)[channel.choices(indices)]
