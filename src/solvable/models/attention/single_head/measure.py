"""One replicate of the attention head: draw target and samples, train, measure the errors."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from solvable.frame.points import Metrics
from solvable.models.attention.single_head.learner import contrasts_of, train_head, train_matrix
from solvable.models.attention.single_head.outputs import SoftmaxOutput
from solvable.models.attention.single_head.parameters import NOISELESS_PENALTY, SingleHeadParameters
from solvable.operators.sensors import TokenSensors

METRICS = (
    "matrix_error", "noiseless_matrix_error", "test_error", "noisy_test_error", "train_error",
    "rank_fraction", "overlap", "norm", "eigenvalues", "gradient", "iterations",
)  # fmt: skip
"""Names of the metrics measured in each replicate."""

FRESH = 8_000
"""Number of test samples, which gives a sampling error of about 1 %."""


def draw_teacher(
    parameters: SingleHeadParameters, rng: np.random.Generator
) -> Mapping[str, np.ndarray]:
    """Draw the factor F of the target S* = F F^T."""
    d, r = parameters.dimension, parameters.rank
    if parameters.target == "power-law":
        # eigenvectors have no effect, as tokens are isotropic
        return {"factor": np.diag(np.sqrt(parameters.law.nodes))}
    # S* = W W^T / sqrt(r d)
    return {"factor": rng.standard_normal((d, r)) / (r * d) ** 0.25}


def draw_samples(
    parameters: SingleHeadParameters, matrix: np.ndarray, count: int, rng: np.random.Generator
) -> tuple[TokenSensors, np.ndarray, np.ndarray]:
    """Draw tokens with their noiseless and noisy attention matrices."""
    T, output = parameters.tokens, parameters.output
    sensors = TokenSensors(rng.standard_normal((count * T, parameters.dimension)), T)
    s = contrasts_of(output, sensors, matrix)
    # noise of variance v Delta / 2 on an index is noise of variance Delta / 2 on a contrast
    noisy = s + np.sqrt(parameters.noise / 2) * rng.standard_normal(s.shape)
    teacher = parameters.teacher
    return sensors, teacher.values(s), teacher.values(noisy)


def measure(parameters: SingleHeadParameters, rng: np.random.Generator) -> Metrics:
    """Draw one replicate, train its head and measure the errors."""
    d, output = parameters.dimension, parameters.output
    factor = draw_teacher(parameters, rng)["factor"]
    target = factor @ factor.T
    sensors, clean_labels, labels = draw_samples(parameters, target, parameters.n_samples, rng)
    seed, penalty = int(rng.integers(2**31)), parameters.regularisation
    if parameters.trained == "matrix":
        found = train_matrix(sensors, labels, output, regularisation=penalty)
    else:
        found = train_head(
            sensors, labels, output, regularisation=penalty, width=parameters.width, seed=seed
        )
    matrix = found.matrix
    clean, noisy = _fresh_errors(parameters, target, matrix, output, rng)
    values = np.linalg.eigvalsh(matrix)[::-1]
    noiseless = None
    if parameters.trained_without_noise:
        exact = train_head(
            sensors, clean_labels, output, regularisation=NOISELESS_PENALTY, width=parameters.width,
            seed=seed,
        )  # fmt: skip
        noiseless = float(np.sum((exact.matrix - target) ** 2) / d)
    return {
        "matrix_error": float(np.sum((matrix - target) ** 2) / d),
        "noiseless_matrix_error": noiseless,
        "test_error": clean,
        "noisy_test_error": noisy,
        "train_error": found.train_error,
        # the penalty shrinks unused columns towards 0 but never to 0, so small eigenvalues count as 0
        "rank_fraction": float(np.mean(np.abs(values) > 1e-4 * max(float(values[0]), 0.1))),
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
    """Mean squared test errors, on noiseless and on noisy labels."""
    sensors, clean, noisy = draw_samples(parameters, target, FRESH, rng)
    learned = output.values(contrasts_of(output, sensors, matrix))
    return tuple(float(np.mean(np.sum((y - learned) ** 2, axis=1))) for y in (clean, noisy))  # type: ignore[return-value]
