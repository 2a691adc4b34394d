"""One replicate of the attention head: draw target and samples, train, score."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from solvable.frame.points import Metrics
from solvable.models.attention.single_head.learner import contrasts_of, train_head
from solvable.models.attention.single_head.outputs import SoftmaxOutput
from solvable.models.attention.single_head.parameters import SingleHeadParameters
from solvable.operators.sensors import TokenSensors

METRICS = (
    "matrix_error", "test_error", "noisy_test_error", "train_error", "rank_fraction", "overlap",
    "norm", "eigenvalues", "gradient", "iterations",
)  # fmt: skip
"""Metrics of a replicate."""

FRESH = 8_000
"""Number of test samples, for an error of about 1 %."""


def draw_teacher(
    parameters: SingleHeadParameters, rng: np.random.Generator
) -> Mapping[str, np.ndarray]:
    """Draw the factor of the target S* = factor factor^T."""
    d, r = parameters.dimension, parameters.rank
    # S* = W W^T / sqrt(r d)
    return {"factor": rng.standard_normal((d, r)) / (r * d) ** 0.25}


def draw_samples(
    parameters: SingleHeadParameters, matrix: np.ndarray, count: int, rng: np.random.Generator
) -> tuple[TokenSensors, np.ndarray, np.ndarray]:
    """Draw tokens with their noiseless and noisy attention matrices."""
    T, output = parameters.tokens, parameters.output
    sensors = TokenSensors(rng.standard_normal((count * T, parameters.dimension)), T)
    s = contrasts_of(output, sensors, matrix)
    # noise variance v Delta / 2 of an index is Delta / 2 of a contrast
    noisy = s + np.sqrt(parameters.noise / 2) * rng.standard_normal(s.shape)
    return sensors, output.values(s), output.values(noisy)


def measure(parameters: SingleHeadParameters, rng: np.random.Generator) -> Metrics:
    """Draw and score one replicate."""
    d, output = parameters.dimension, parameters.output
    factor = draw_teacher(parameters, rng)["factor"]
    target = factor @ factor.T
    sensors, _, labels = draw_samples(parameters, target, parameters.n_samples, rng)
    found = train_head(
        sensors,
        labels,
        output,
        regularisation=parameters.regularisation,
        width=parameters.width,
        seed=int(rng.integers(2**31)),
    )
    matrix = found.matrix
    clean, noisy = _fresh_errors(parameters, target, matrix, output, rng)
    values = np.zeros(d)
    kept = np.linalg.svd(found.factor, compute_uv=False) ** 2
    values[: kept.size] = kept
    return {
        "matrix_error": float(np.sum((matrix - target) ** 2) / d),
        "test_error": clean,
        "noisy_test_error": noisy,
        "train_error": found.train_error,
        # the penalty shrinks columns to 0 only geometrically, so small eigenvalues count as 0
        "rank_fraction": float(np.mean(values > 1e-4 * max(float(values[0]), 0.1))),
        "overlap": float(np.sum(matrix * target) / d),
        "norm": float(np.sum(matrix**2) / d),
        "eigenvalues": [float(value) for value in values],
        "gradient": found.gradient,
        "iterations": float(found.iterations),
    }


def _fresh_errors(
    parameters: SingleHeadParameters,
    target: np.ndarray,
    matrix: np.ndarray,
    output: SoftmaxOutput,
    rng: np.random.Generator,
) -> tuple[float, float]:
    """Mean squared errors on test samples with noiseless and with noisy labels."""
    sensors, clean, noisy = draw_samples(parameters, target, FRESH, rng)
    learned = output.values(contrasts_of(output, sensors, matrix))
    return tuple(float(np.mean(np.sum((y - learned) ** 2, axis=1))) for y in (clean, noisy))  # type: ignore[return-value]
