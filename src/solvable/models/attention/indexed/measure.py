"""One replicate of an attention-indexed model: draw data, estimate the weights, measure the errors."""

from __future__ import annotations

import numpy as np

from solvable.errors import NotConverged
from solvable.frame.points import Metrics
from solvable.message_passing.attention_channels import HardmaxAttention, SoftmaxAttention
from solvable.message_passing.loop import Denoiser, MessagePassingResult, Sensors, Start, settle
from solvable.message_passing.outputs import Messages
from solvable.message_passing.signal_laws import signal_denoiser
from solvable.models.attention.indexed.layers import LayerSensors, layer_denoiser
from solvable.models.attention.indexed.parameters import STARTS, IndexedParameters
from solvable.operators.sensors import TokenSensors

TEST_SAMPLES = 2_000
"""Number of test samples."""

TEST_DRAWS = 100
"""Number of draws from the posterior of a test sample's indices."""


def draw_weights(parameters: IndexedParameters, rng: np.random.Generator) -> np.ndarray:
    """Draw the weights S = W W^T / sqrt(r d)."""
    d, r = parameters.dimension, parameters.rank
    W = rng.standard_normal((d, r))
    return W @ W.T / np.sqrt(r * d)


def draw_teacher(parameters: IndexedParameters, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return the true weights of one replicate, of shape (layers, d, d) if there are several layers."""
    if parameters.layers == 1:
        return {"weights": draw_weights(parameters, rng)}
    return {"weights": draw_layers(parameters, rng)}


def draw_layers(parameters: IndexedParameters, rng: np.random.Generator) -> np.ndarray:
    """Draw the weights of all layers, from which the prior mean is subtracted."""
    mean = parameters.signal.prior_mean(parameters.dimension)
    return np.stack([draw_weights(parameters, rng) - mean for _ in range(parameters.layers)])


def measure(parameters: IndexedParameters, rng: np.random.Generator) -> Metrics:
    """Draw one replicate and measure its errors; errors are None if the estimator does not converge."""
    if parameters.layers == 2:
        return _measure_layers(parameters, rng)
    S = draw_weights(parameters, rng)
    d, T = parameters.dimension, parameters.tokens
    sensors = TokenSensors(rng.standard_normal((parameters.samples * T, d)), T)
    labels = parameters.channel.sample(sensors.forward(S), rng)
    if parameters.estimator == "gradient-descent":
        return _descended(parameters, S, sensors, labels, rng)
    result = settled(parameters, sensors, parameters.channel.messages(labels))
    if result is None:
        return UNMEASURED | {"converged": 0.0}
    error = float(np.sum((result.estimate - S) ** 2)) / d
    return UNMEASURED | {
        "matrix_error": error,
        "test_error": test_error(parameters, S, result, rng),
    }


UNMEASURED: Metrics = {
    "matrix_error": None,
    "start_error": None,
    "test_error": None,
    "first_layer_error": None,
    "last_layer_error": None,
    "converged": 1.0,
}
"""Metrics of a replicate before anything is measured."""


def _measure_layers(parameters: IndexedParameters, rng: np.random.Generator) -> Metrics:
    """Draw one replicate of two layers and measure the errors of both."""
    S, d, channel = draw_layers(parameters, rng), parameters.dimension, parameters.deep_channel
    sensors = LayerSensors(TokenSensors(rng.standard_normal((2 * parameters.samples, d)), 2))
    labels = channel.sample(sensors.forward(S), rng)
    start = Start(
        np.zeros_like(S), parameters.signal.variance * np.eye(2), np.zeros((len(labels), 4))
    )
    result = _settled(sensors, channel.messages(labels), start, layer_denoiser(parameters.signal))
    if result is None:
        return UNMEASURED | {"converged": 0.0}
    errors = np.sum((result.estimate - S) ** 2, axis=(1, 2)) / d
    tests = LayerSensors(TokenSensors(rng.standard_normal((2 * TEST_SAMPLES, d)), 2))
    known, spread = tests.forward(result.estimate), tests.cavity(result.variance)
    steps = rng.multivariate_normal(np.zeros(4), spread, (TEST_DRAWS, TEST_SAMPLES))
    mean = np.mean([channel.attention(known + step) for step in steps], axis=0)
    # a row of attention to two tokens is (a, 1 - a), so its squared error is twice that of a
    difference = mean - channel.attention(tests.forward(S))
    return UNMEASURED | {
        "first_layer_error": float(errors[0]),
        "last_layer_error": float(errors[1]),
        "test_error": 2 * float(np.mean(np.sum(difference**2, axis=1))),
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
    try:
        found = descended(tokens, labels.reshape(-1, T, T), parameters.rank, STARTS, rng)
    except NotConverged:
        return UNMEASURED | {"converged": 0.0}
    return UNMEASURED | {
        "matrix_error": float(np.sum((found.mean(axis=0) - S) ** 2)) / d,
        "start_error": float(np.sum((found - S) ** 2)) / (STARTS * d),
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
    return _settled(sensors, messages, start, signal_denoiser(signal, 1e-6))


def _settled(
    sensors: Sensors, messages: Messages, start: Start, denoiser: Denoiser
) -> MessagePassingResult | None:
    try:
        # small tolerance: near exact recovery, steps become small long before convergence
        return settle(
            sensors, messages, start, denoiser=denoiser,
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
    mean, known = 0.0, sensors.forward(result.estimate)
    for _ in range(TEST_DRAWS // 2):
        step = spread * rng.standard_normal(known.shape)
        mean = mean + _attention(channel, known + step) + _attention(channel, known - step)
    difference = mean / TEST_DRAWS - _attention(channel, sensors.forward(S))
    return float(np.mean(np.sum(difference**2, axis=(1, 2))))


def _attention(channel: SoftmaxAttention | HardmaxAttention, indices: np.ndarray) -> np.ndarray:
    """Noiseless attention matrices (n, T, T) computed from the indices."""
    if isinstance(channel, SoftmaxAttention):
        return channel.attention(indices)
    return np.eye(channel.tokens)[channel.choices(indices)]


STEPS = 600
"""Number of steps of gradient descent; five times as many change the error of the average by 5 %."""

LEARNING_RATE = 0.3
"""Learning rate on the sum of squared errors; at 1.2 the training error no longer falls to 0."""


def descended(
    tokens: np.ndarray, attention: np.ndarray, rank: int, starts: int, rng: np.random.Generator
) -> np.ndarray:
    """Estimates (starts, d, d) of the weights from attention matrices (n, T, T) and tokens (n, T, d)."""
    # Each start draws the factor W from the prior and descends on the sum of |y - softmax(h(W W^T))|².
    n, T, d = tokens.shape
    X, y = tokens.reshape(n * T, d).astype(np.float32), attention.astype(np.float32)
    unit = np.float32(1 / (np.sqrt(rank * d) * np.sqrt(d)))  # logits are unit x^T W W^T x
    W: np.ndarray = rng.standard_normal((starts, d, rank), dtype=np.float32)
    diagonal = np.eye(T, dtype=np.float32)
    squares = []  # mean squared training error before each step
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(STEPS):
            flat = X @ W.transpose(1, 0, 2).reshape(d, -1)
            P = flat.reshape(n, T, starts, rank).transpose(2, 0, 1, 3)
            trace = np.sum(W**2, axis=(1, 2))[:, None, None, None]
            logits = unit * (P @ P.transpose(0, 1, 3, 2) - trace * diagonal)
            weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
            a = weights / weights.sum(axis=-1, keepdims=True)
            error = a - y
            squares.append(float(np.mean(error**2)))
            # derivative 2 a (e - <e>_a) of the loss in the logits, and of the logits in W
            push = 2 * a * (error - np.sum(a * error, axis=-1, keepdims=True))
            push = push + push.transpose(0, 1, 3, 2)
            pulled = (push @ P).transpose(1, 2, 0, 3).reshape(n * T, -1)
            slope = (X.T @ pulled).reshape(d, starts, rank).transpose(1, 0, 2)
            W = W - np.float32(LEARNING_RATE) * unit * (
                slope - np.einsum("knaa->k", push)[:, None, None] * W
            )
    left = squares[-1] / squares[0]
    if not (np.isfinite(W).all() and left < 0.05):
        raise NotConverged(
            f"gradient descent leaves the share {left:.2g} of the training error after {STEPS} steps; "
            "allowed: below 0.05. Lower sample_ratio.",
            {"training_error": squares[-1], "learning_rate": LEARNING_RATE},
        )
    factor = W.astype(float) / (rank * d) ** 0.25
    return factor @ factor.transpose(0, 2, 1)
