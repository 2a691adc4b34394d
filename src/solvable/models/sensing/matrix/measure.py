"""One replicate of matrix sensing: draw signal and measurements, estimate, measure the errors."""

from __future__ import annotations

import numpy as np

from solvable.errors import NotConverged
from solvable.frame.points import Metrics
from solvable.message_passing.loop import Start, settle
from solvable.message_passing.signal_laws import SymmetricSignal, signal_denoiser
from solvable.models.sensing.free_entropy import scored_information
from solvable.models.sensing.matrix.nuclear_norm import best_penalty, penalised
from solvable.models.sensing.matrix.parameters import (
    MatrixSensingParameters,
    own_strengths,
    power_law_strengths,
)
from solvable.models.sensing.matrix.theory import GROUPS, group_means, law_of
from solvable.operators.sensors import GoeSensors, TokenSensors, goe_sensors

METRICS = (
    "matrix_error", "test_error", "train_error", "rank_fraction", "eigenvalues", "converged",
    "information_rate",
)  # fmt: skip
"""Names of a replicate's metrics; all but `converged` are None if the estimator does not converge."""


def draw_signal(parameters: MatrixSensingParameters, rng: np.random.Generator) -> np.ndarray:
    """Draw a symmetric matrix with the chosen spectrum."""
    d = parameters.dimension
    if parameters.signal != "wishart":
        # Draw uniform (Haar) eigenvectors, because rank-one sensors single out a fixed basis.
        basis, triangle = np.linalg.qr(rng.standard_normal((d, d)))
        basis *= np.sign(np.diag(triangle))
        if parameters.signal == "own":
            return np.asarray((basis * own_strengths(d, parameters.eigenvalues)) @ basis.T)
        return np.asarray((basis * power_law_strengths(d, parameters.exponent)) @ basis.T)
    W = rng.standard_normal((d, parameters.rank))
    return np.asarray(W @ W.T / np.sqrt(parameters.rank * d))


def draw_teacher(
    parameters: MatrixSensingParameters, rng: np.random.Generator
) -> dict[str, np.ndarray]:
    """Return the true signal of one replicate."""
    return {"signal": draw_signal(parameters, rng)}


def measure(parameters: MatrixSensingParameters, rng: np.random.Generator) -> Metrics:
    """Draw one replicate, estimate the signal and measure the errors."""
    signal = draw_signal(parameters, rng)
    sensors = draw_sensors(parameters, rng)
    y = draw_labels(parameters, signal, sensors.forward(signal), rng)
    try:
        found, variance = estimate(parameters, sensors, y)
    except NotConverged:
        blank: Metrics = dict.fromkeys(METRICS)
        groups: list[float | None] | None = None
        if parameters.dimension >= 4 * GROUPS:
            groups = [None] * GROUPS
        return blank | {"eigenvalues": groups, "converged": 0.0}
    metrics = score(parameters, signal, sensors, y, found)
    return metrics | {
        "converged": 1.0,
        "information_rate": _information(parameters, variance, metrics),
    }


def _information(
    parameters: MatrixSensingParameters, variance: float | None, metrics: Metrics
) -> float | None:
    """Information of one more label by its expected score; None for signs and point estimates."""
    noise = parameters.label_noise
    if variance is None or parameters.output == "sign" or noise == 0:
        return None
    noisy = noise + float(metrics["test_error"])  # type: ignore[arg-type]
    return scored_information(noise, 2 * variance, noisy)


def draw_labels(
    parameters: MatrixSensingParameters,
    signal: np.ndarray,
    indices: np.ndarray,
    rng: np.random.Generator,
) -> np.ndarray:
    """Labels of measurements, with the noise inside the activation if there is any."""
    if parameters.inner_noise == 0:
        return parameters.channel.sample(indices, rng)
    # sum_k [(a_k + sigma z_k)² - a_k² - sigma²] / sqrt(r) with |a|² = sqrt(r / d) x^T S x, for any
    # rotation of z: one normal g along a and the squared length of the rest   (sensing 28)
    r, d, sigma = parameters.rank, parameters.dimension, np.sqrt(parameters.inner_noise)
    square = np.sqrt(r / d) * (np.sqrt(d) * indices + np.trace(signal))
    g = rng.standard_normal(indices.shape)
    rest = rng.chisquare(r - 1, indices.shape) if r > 1 else np.zeros(indices.shape)
    inner = 2 * sigma * np.sqrt(np.maximum(square, 0)) * g + sigma**2 * (g**2 + rest - r)
    outer = np.sqrt(parameters.noise) * rng.standard_normal(indices.shape)
    return np.asarray(indices + inner / np.sqrt(r) + outer)


def draw_sensors(
    parameters: MatrixSensingParameters, rng: np.random.Generator
) -> TokenSensors | GoeSensors:
    """Draw the sensors of one replicate."""
    n, d = parameters.samples, parameters.dimension
    if parameters.sensors == "goe":
        return goe_sensors(n, d, rng)
    dtype = np.float32 if n * d > 2e7 else np.float64
    return TokenSensors(rng.standard_normal((n, d), dtype=dtype))


def estimate(
    parameters: MatrixSensingParameters, sensors: TokenSensors | GoeSensors, y: np.ndarray
) -> tuple[np.ndarray, float | None]:
    """Estimate the signal; message passing also returns the variance of its estimate."""
    law, channel = law_of(parameters), parameters.channel
    if not isinstance(law, SymmetricSignal):
        return penalised(sensors, y, best_penalty(parameters)[0]), None
    silent = np.zeros((parameters.samples, 1))
    start = Start(law.prior_mean(parameters.dimension), np.array([[law.variance]]), silent)
    found = settle(
        sensors, channel.messages(y), start, denoiser=signal_denoiser(law), tolerance=2e-3,
        least_variance=1e-7,
    )  # fmt: skip
    return found.estimate, float(found.variance[0, 0])


def score(
    parameters: MatrixSensingParameters,
    signal: np.ndarray,
    sensors: TokenSensors | GoeSensors,
    y: np.ndarray,
    estimate: np.ndarray,
) -> Metrics:
    """Compute the errors, the rank and the eigenvalues of an estimate."""
    d = parameters.dimension
    error = float(np.sum((estimate - signal) ** 2)) / d
    values = np.linalg.eigvalsh(estimate)[::-1]
    return {
        "matrix_error": error,
        # E[(Tr Phi (S* - S))²] = 2 |S* - S|² / d for both kinds of sensors
        "test_error": 2 * error,
        "train_error": float(np.mean((y - sensors.forward(estimate)) ** 2))
        if parameters.output == "linear"
        else None,
        "rank_fraction": _rank(parameters, values) / d
        if parameters.estimator == "nuclear-norm"
        else None,
        "eigenvalues": group_means(values, GROUPS) if d >= 4 * GROUPS else None,
    }


def _rank(parameters: MatrixSensingParameters, values: np.ndarray) -> int:
    """Number of eigenvalues that the soft threshold keeps."""
    # Removed eigenvalues are 0 up to rounding. At exact recovery the small penalty keeps eigenvalues of
    # the size of the remaining error; these count as 0.
    moduli, exact = np.abs(values), best_penalty(parameters)[1]
    return int(np.sum(moduli > (1e-2 if exact else 1e-9) * moduli.max()))
