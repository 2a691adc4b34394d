"""Diagonal networks with weight decay, which learn features one after another as the LASSO does.

The network f = a^T (w x) / sqrt(d) is trained by L-BFGS on both layers. Its global minimum is the LASSO
solution. An effective noise delta and a threshold b predict the error, the training error, the number
of non-zero coefficients and the learned share of each feature.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from pydantic import Field

from solvable.frame.agreement import Agreement
from solvable.frame.conditions import at_least
from solvable.frame.curves import Axis
from solvable.frame.panels import Panel
from solvable.frame.parameters import Parameters
from solvable.frame.points import Metrics
from solvable.frame.system import Preset, System
from solvable.frame.traces import Trace
from solvable.models.quadratic.diagonal_phases import PHASE_CLAIMS, DiagonalPhases, phase_diagram
from solvable.models.quadratic.diagonal_theory import DiagonalState, lasso_penalty, solve_diagonal


class DiagonalParameters(Parameters):
    """A target of decaying coefficients, its samples and the weight decay."""

    dimension: int = Field(200, ge=16, le=5000)
    """Dimension d of the inputs, the number of coefficients of the target."""
    samples: int = Field(400, ge=10, le=100_000)
    """Number n of samples."""
    exponent: float = Field(1.0, gt=0.5, le=3.0)
    """Exponent gamma of the coefficients i^-gamma, which are scaled to unit norm."""
    noise: float = Field(0.25, ge=1e-100, le=100.0)
    """Variance of the label noise; the target has variance 1."""
    weight_decay: float = Field(1.0, ge=1e-100, le=1000.0)
    """Weight decay lambda, in units of the sum of squared errors over the samples."""


RANKS = np.array([1, 2, 4, 8, 16])


def feature_names(parameters: DiagonalParameters) -> list[str]:
    """Names of the features whose learned share is measured."""
    return [f"feature {rank}" for rank in RANKS]


def coefficients(parameters: DiagonalParameters) -> np.ndarray:
    """Coefficients of the target."""
    values = np.arange(1, parameters.dimension + 1.0) ** -parameters.exponent
    return np.asarray(values / np.linalg.norm(values))


def train(X: np.ndarray, y: np.ndarray, decay: float, rng: np.random.Generator) -> np.ndarray:
    """Train both layers from a random start, and return the coefficients a w / sqrt(d)."""
    from scipy.optimize import minimize

    n, d = X.shape
    # Squared errors depend on second moments only: for n > d the cost does not grow with n.
    gram, moment, energy = (X.T @ X, X.T @ y, y @ y) if n > d else (None, X.T @ y, y @ y)

    def loss(flat: np.ndarray) -> tuple[float, np.ndarray]:
        w, a = flat.reshape(2, d)
        theta = a * w / np.sqrt(d)
        excess = (X.T @ (X @ theta) if gram is None else gram @ theta) - moment
        slope = 2 * excess / np.sqrt(d)
        # |y - f|² + lambda (|w|² + |a|²)  (quadratic 31; arXiv:2509.24882)
        value = energy + theta @ (excess - moment) + decay * flat @ flat
        return float(value), np.concatenate([slope * a, slope * w]) + 2 * decay * flat

    options = {"maxiter": 5000, "maxfun": 10_000, "gtol": 1e-4 * decay, "ftol": 0.0}
    start = rng.standard_normal(2 * d)
    w, a = minimize(loss, start, jac=True, method="L-BFGS-B", options=options).x.reshape(2, d)
    return np.asarray(a * w / np.sqrt(d))


def measure(parameters: DiagonalParameters, rng: np.random.Generator) -> Metrics:
    """Train on one data set and compare with the target."""
    target = coefficients(parameters)
    X = rng.standard_normal((parameters.samples, parameters.dimension))
    y = X @ target + np.sqrt(parameters.noise) * rng.standard_normal(parameters.samples)
    learned = train(X, y, parameters.weight_decay, rng)
    # Weight decay shrinks unused coefficients geometrically. Coefficients below 1e-5 count as 0.
    learned[np.abs(learned) <= 1e-5] = 0
    return {
        "error": float(np.sum((learned - target) ** 2)),
        "train_error": float(np.mean((y - X @ learned) ** 2)),
        "found": int(np.count_nonzero(learned)),
        "captured": list(learned[RANKS - 1] / target[RANKS - 1]),
    }


def predict(parameters: DiagonalParameters) -> Metrics:
    """Predict by soft thresholding of the target in Gaussian noise (quadratic 32, 33)."""
    from scipy.special import ndtr

    target = coefficients(parameters)
    penalty = lasso_penalty(weight_decay=parameters.weight_decay, dimension=parameters.dimension)

    def solution(samples: float) -> DiagonalState:
        return solve_diagonal(
            target, n_samples=samples, label_noise=parameters.noise, penalty=penalty
        )

    state = solution(parameters.samples)
    phases = DiagonalPhases(parameters.dimension, parameters.exponent, parameters.noise)
    located = phases.locate(parameters.samples, penalty)
    # The law of a phase is shown within 30 % of the error: between phases no law is accurate.
    known = state.error / 1.3 <= located.error <= 1.3 * state.error
    around = [solution(parameters.samples * np.exp(side)).error for side in (-0.1, 0.1)]
    delta, b = state.effective_noise, state.threshold
    high, low = (target - b) / delta, (target + b) / delta
    inside, outside = ndtr(high), ndtr(-low)
    densities = np.exp(-(np.stack([high, low]) ** 2) / 2) / np.sqrt(2 * np.pi)
    # E eta_b(theta + delta z), the mean of the soft threshold
    mean = (target - b) * inside + (target + b) * outside
    mean += delta * (densities[0] - densities[1])
    # second moment E eta_b², for the scatter of a learned coefficient
    square = ((target - b) ** 2 + delta**2) * inside + delta * (target - b) * densities[0]
    square += ((target + b) ** 2 + delta**2) * outside - delta * (target + b) * densities[1]
    scatter = np.sqrt(np.maximum(square - mean**2, 0)) / target
    return {
        "error": state.error,
        "train_error": state.train_error,
        "found": state.degrees_of_freedom,
        "captured": list((mean / target)[RANKS - 1]),
        "captured_scatter": list(scatter[RANKS - 1]),
        "effective_noise": delta,
        "threshold": b,
        "scaling_phase": located.phase,
        "scaling_law_error": located.error if known else None,
        "phase_exponent": located.exponent,
        "local_exponent": float(np.log(around[1] / around[0]) / 0.2),
    }


def chance(parameters: DiagonalParameters, prediction: Metrics) -> Metrics:
    """Metrics of a network that is zero."""
    return {"error": 1.0, "train_error": 1 + parameters.noise, "found": 0, "captured": [0.0] * 5}


SOURCE = "arXiv:1008.2581, Theorem 1.5"
# Replicates scatter by 5 to 20 % with few non-zero coefficients, which limits the power.
CLOSE: dict[str, Any] = {
    "source": SOURCE,
    "within": 0.04,
    "because": "Terms of order 1/n and 1/d.",
    "relative": True,
    "power": 0.15,
}

system = System(
    name="diagonal-network",
    title="Diagonal networks with weight decay learn features as the LASSO does",
    version="1",
    parameters=DiagonalParameters,
    measure=measure,
    predict=predict,
    chance=chance,
    axis=Axis("samples", "samples n"),
    claims=[
        Agreement(
            "error",
            "The error equals that of soft thresholding in Gaussian noise.",
            metric="error",
            **CLOSE,
        ),
        Agreement(
            "train-error",
            "The training error equals the error on fresh noisy labels times (1 - df / n)².",
            metric="train_error",
            **{**CLOSE, "source": "derivations/quadratic (33)"},
        ),
        Agreement(
            "found",
            "The number of non-zero coefficients equals the expected number above the threshold.",
            metric="found",
            where={"expected": at_least(1)},
            missing="lower weight_decay",
            # The number of non-zero coefficients is approximately binomial.
            scatter=lambda cell: (
                (cell.expected * (1 - min(cell.expected / cell.setting.dimension, 0.99))) ** 0.5
            ),
            **{**CLOSE, "source": "derivations/quadratic (32)"},
        ),
        Agreement(
            "captured",
            "The learned share of each feature equals the mean of soft thresholding.",
            metric="captured",
            source="derivations/quadratic (33)",
            within=0.05,
            because="Terms of order 1/n and 1/d.",
            where=lambda cell: cell.expected > 0.3 and "captured_scatter" in cell.point.prediction,
            missing="the predicted share is below 0.3 for every feature; raise samples",
            entry=feature_names,
            # The scatter is predicted, because a feature that no replicate learns shows no scatter.
            scatter=lambda cell: cell.predicted("captured_scatter"),
            power=0.15,
        ),
        *PHASE_CLAIMS,
    ],
    panels=[
        Panel(
            "error",
            "Error of a diagonal network",
            "squared error",
            [
                Trace("error", "error"),
                Trace("train_error", "training error"),
                Trace(
                    "scaling_law_error", "law of the phase", measured=False, dashed=True, colour=2
                ),
            ],
            "Squared distance to the target, whose norm is 1, and mean squared residual.",
            y_scale="log",
        ),
        Panel(
            "captured",
            "Features are learned one by one",
            "learned coefficient / true coefficient",
            [Trace("captured", names=feature_names)],
            "Features with a coefficient below the threshold are not learned.",
        ),
        Panel(
            "found",
            "Non-zero coefficients",
            "number of features",
            [Trace("found", "non-zero coefficients")],
            "With many samples some non-zero coefficients are noise.",
            y_scale="log",
        ),
        phase_diagram,
    ],
    presets={
        "phases": Preset(
            "Two power laws over samples and weight decay at d = 64, phase by phase; a minute.",
            "dimension=64 exponent=0.75,1.5 weight_decay=0.02,5.0,40.0 "
            "samples=20,40,200,500,1000,2000,4000,8000,16000,24000,40000",
            replicates=8,
        ),
        "quick": Preset(
            "Error and learned shares at d = 200; ten seconds.",
            "samples=50,100,200,400,800,1600",
            replicates=40,
        ),
    },
    references=("bayati2012lasso", "defilippis2025scaling"),
)
