"""One replicate of bilinear sequence regression: draw data, estimate the weights, measure the errors."""

from __future__ import annotations

import numpy as np

from solvable.errors import NotConverged
from solvable.frame.points import Metrics
from solvable.message_passing.loop import MessagePassingResult, Start, message_passing
from solvable.message_passing.matrix_channels import bayes_message
from solvable.message_passing.outputs import Message, Messages
from solvable.message_passing.signal_laws import signal_denoiser
from solvable.models.sensing.bilinear.nuclear_norm import least_nuclear_norm
from solvable.models.sensing.bilinear.parameters import HELD, BilinearParameters
from solvable.models.sensing.free_entropy import scored_information
from solvable.operators.rectangular_sensors import MatrixSensors, generated_sensors

TEST_SAMPLES = 2_000
"""Number of test samples; fewer are drawn for large matrices."""


def draw_weights(parameters: BilinearParameters, rng: np.random.Generator) -> np.ndarray:
    """Draw the weights S = A B / sqrt(r) / (d L)^(1/4)."""
    (d, L), r = parameters.shape, parameters.rank
    left, right = rng.standard_normal((d, r)), rng.standard_normal((r, L))
    return np.asarray(left @ right / np.sqrt(r) / (d * L) ** 0.25)


def draw_teacher(parameters: BilinearParameters, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return the true weights of one replicate."""
    return {"weights": draw_weights(parameters, rng)}


def draw_sensors(
    parameters: BilinearParameters, samples: int, rng: np.random.Generator
) -> MatrixSensors:
    """Draw the sensors; large sensors are stored as a seed and drawn again for each product."""
    d, L = parameters.shape
    if samples * d * L <= HELD:
        return MatrixSensors(rng.standard_normal((samples, d * L), dtype=np.float32), (d, L))
    return generated_sensors(samples, (d, L), int(rng.integers(2**31)))


def measure(parameters: BilinearParameters, rng: np.random.Generator) -> Metrics:
    """Draw one replicate, estimate the weights and measure the errors."""
    S = draw_weights(parameters, rng)
    sensors, channel = draw_sensors(parameters, parameters.samples, rng), parameters.channel
    y = channel.sample(sensors.forward(S), rng)
    d, L = parameters.shape
    fresh = draw_sensors(parameters, min(TEST_SAMPLES, max(100, round(2e7 / (d * L)))), rng)
    clean = fresh.forward(S)
    noisy = channel.sample(clean, rng)
    found, variance = estimate(parameters, sensors, y, rng)
    ridge = ridge_estimate(sensors, y, parameters.noise)

    def error(matrix: np.ndarray) -> float:
        return float(np.sum((matrix - S) ** 2)) / sensors.size

    metrics: Metrics = dict.fromkeys(
        ("matrix_error", "test_error", "noisy_test_error", "single_error", "information_rate")
    )
    metrics |= {
        "ridge_error": error(ridge),
        "power": float(np.sum(S**2)) / sensors.size,
        "converged": float(found is not None),
    }
    if found is None:
        return metrics
    answers = fresh.forward(found.mean(axis=0))
    noisy_error = float(np.mean((answers - noisy) ** 2))
    return metrics | {
        "matrix_error": error(found.mean(axis=0)),
        "test_error": float(np.mean((answers - clean) ** 2)),
        "noisy_test_error": noisy_error,
        "single_error": float(np.mean([error(one) for one in found])) if len(found) > 1 else None,
        "information_rate": None
        if variance is None or parameters.noise == 0
        else scored_information(parameters.noise, variance, noisy_error),
    }


def estimate(
    parameters: BilinearParameters, sensors: MatrixSensors, y: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray | None, float | None]:
    """Estimates (starts, d, L), None without convergence, and the variance of a posterior mean."""
    if parameters.estimator == "message-passing":
        passed = estimate_by_messages(parameters, sensors, y)
        return (
            (None, None)
            if passed is None
            else (passed.estimate[None], float(passed.variance[0, 0]))
        )
    inputs = np.asarray(sensors.source)
    try:
        if parameters.estimator == "nuclear-norm":
            return least_nuclear_norm(inputs, parameters.shape, y).estimate[None], None
        return descended(
            inputs, parameters.shape, y, parameters.rank, starts=parameters.starts,
            learning_rate=parameters.learning_rate, rng=rng,
        ), None  # fmt: skip
    except NotConverged:
        return None, None


def estimate_by_messages(
    parameters: BilinearParameters, sensors: MatrixSensors, y: np.ndarray
) -> MessagePassingResult | None:
    """Run Bayes message passing with increasing damping; None if no run converges."""
    nothing = np.zeros(parameters.shape)
    start = Start(nothing, np.eye(1), np.zeros_like(y))
    messages, denoiser = linear_messages(y, parameters.noise), signal_denoiser(parameters.signal)
    for damping, steps in ((0.4, 150), (0.7, 300), (0.9, 1_000)):
        try:
            return message_passing(
                sensors, messages, start, denoiser=denoiser, damping=damping, max_steps=steps,
                tolerance=1e-3 * (1 - damping), least_variance=1e-6,
            )  # fmt: skip
        except NotConverged:
            continue
    return None


def linear_messages(y: np.ndarray, noise: float) -> Messages:
    """Messages (y - omega) / s, where s is the mean of the assumed and the measured residual variance."""

    def given(omega: np.ndarray, V: np.ndarray) -> Message:
        residual = y - omega
        # The message is g = (y - omega) / (Delta + V)   (sensing 4). The mean squared residual also
        # estimates the variance Delta + V. With Delta + V alone, noiseless runs above recovery stop at
        # V = 0.3 with an error of 0.01. With the mean squared residual alone, runs just below recovery
        # oscillate, as do half of the runs with fewer than 100 samples.
        spread = (noise + float(V[0, 0]) + float(np.mean(residual**2))) / 2
        return bayes_message(residual / max(spread, 1e-14))

    return given


def ridge_estimate(sensors: MatrixSensors, y: np.ndarray, noise: float) -> np.ndarray:
    """Ridge estimate of all entries by conjugate gradients; the penalty is the noise variance."""
    # S = A^T (A A^T + Delta)^-1 y is the posterior mean for independent entries, and for Delta = 0 the
    # solution of least norm. The solver's relative residual 1e-4 is far below the estimate's error.
    c, residual = np.zeros_like(y), y.copy()
    direction, square = residual, float(np.sum(residual**2))
    aim = 1e-8 * square
    for _ in range(200):
        if square <= aim:
            break
        image = sensors.forward(sensors.adjoint(direction)) + noise * direction
        step = square / float(np.sum(direction * image))
        c, residual = c + step * direction, residual - step * image
        square, before = float(np.sum(residual**2)), square
        direction = residual + square / before * direction
    return sensors.adjoint(c)


STEPS = 1_000
"""Number of steps of gradient descent; twice as many change the error of the average by 2 %."""


def descended(
    inputs: np.ndarray,
    shape: tuple[int, int],
    y: np.ndarray,
    rank: int,
    *,
    starts: int,
    learning_rate: float,
    rng: np.random.Generator,
    steps: int = STEPS,
) -> np.ndarray:
    """Estimates (starts, d, L) after gradient descent on sum (f - y)² / 4 from draws of the prior."""
    (d, L), X = shape, np.asarray(inputs, dtype=np.float32)
    size = np.sqrt(d * L)
    U: np.ndarray = rng.standard_normal((starts, d, rank), dtype=np.float32)
    V: np.ndarray = rng.standard_normal((starts, rank, L), dtype=np.float32)
    labels, root = y[:, 0].astype(np.float32), np.float32(rank**-0.5)
    unit, rate = np.float32(1 / size), np.float32(learning_rate / 2)
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(steps):
            # f = sum X U V / sqrt(r d L), the labels' scale
            residual = (root * unit) * (X @ (U @ V).reshape(starts, -1).T) - labels[:, None]
            G = (residual.T @ X).reshape(starts, d, L) * (unit * root * rate)
            U, V = U - G @ V.transpose(0, 2, 1), V - U.transpose(0, 2, 1) @ G
    found = np.asarray(U @ V, dtype=float) * float(root) / np.sqrt(size)
    if not np.isfinite(found).all():
        raise NotConverged(
            f"gradient descent diverged at learning_rate {learning_rate:g}; lower learning_rate.",
            {"learning_rate": learning_rate, "steps": steps},
        )
    return found
