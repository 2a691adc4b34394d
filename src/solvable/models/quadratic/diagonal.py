"""Diagonal networks with weight decay, which learn features one after another as the LASSO does.

The network f = a^T (w x) / sqrt(d) is trained by L-BFGS on both layers. Its global minimum is the LASSO
solution. An effective noise delta and a threshold b predict the error, the training error, the number
of non-zero coefficients and the learned share of each feature.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from pydantic import Field

from solvable.arrays import check_positive
from solvable.errors import InvalidData, InvalidParameter, NotConverged
from solvable.frame.agreement import Agreement
from solvable.frame.curves import Axis
from solvable.frame.panels import Panel
from solvable.frame.parameters import Parameters
from solvable.frame.points import Metrics
from solvable.frame.system import Preset, System
from solvable.frame.traces import Trace
from solvable.models.quadratic.network.saddle import check_not_negative
from solvable.spectra.roots import bracketed_root


@dataclass(frozen=True)
class DiagonalState:
    """Prediction of the minimiser, distributed as eta_b(theta* + delta z) (quadratic 32, 33)."""

    effective_noise: float  # delta
    threshold: float  # b
    error: float  # R = E |theta - theta*|²
    test_error: float  # Delta + R
    train_error: float  # (Delta + R) (1 - df / n)² per sample
    degrees_of_freedom: float  # df, the expected number of non-zero coefficients


def lasso_penalty(*, weight_decay: float, dimension: int) -> float:
    """Penalty of the LASSO equivalent to the weight decay of a diagonal network (quadratic 31)."""
    # At theta = a w / sqrt(d), half of sum of (y - a^T (w x) / sqrt(d))² + lambda (|w|² + |a|²) has the
    # minimum |y - X theta|² / 2 + lambda sqrt(d) |theta|_1 over the layers. Divided by n the penalty is
    # `alpha` of scikit-learn's Lasso.
    return float(weight_decay * np.sqrt(dimension))


def threshold_risk(
    coefficients: np.ndarray, *, effective_noise: float, threshold: float
) -> tuple[float, float]:
    """Error and degrees of freedom of soft thresholding in Gaussian noise (quadratic 32)."""
    from scipy.special import ndtr

    # With M = theta + delta z and P = P(|M| > b): df is the sum of P, and R is the sum of
    # E min(M², b²) + delta² (2 P - 1) by Stein's identity.
    variance = effective_noise**2
    high = (threshold - coefficients) / effective_noise
    low = (threshold + coefficients) / effective_noise
    beyond = ndtr(-high) + ndtr(-low)
    edge = np.exp(-(high**2) / 2) * (threshold + coefficients)
    edge += np.exp(-(low**2) / 2) * (threshold - coefficients)
    inside = (coefficients**2 + variance) * (1 - beyond)
    inside -= effective_noise * edge / np.sqrt(2 * np.pi)
    capped = inside + threshold**2 * beyond
    risk = np.maximum(capped + variance * (2 * beyond - 1), 0.0)
    return float(risk.sum()), float(beyond.sum())


def solve_diagonal(
    coefficients: np.ndarray, *, n_samples: float, label_noise: float, penalty: float
) -> DiagonalState:
    r"""Predict the LASSO, :math:`\frac12\|y-X\theta\|^2+\lambda\|\theta\|_1`, for standard Gaussian X.

    .. math:: \delta^2=\frac{\Delta+R}n,\qquad
        R=\sum_iE\big[(\eta_b(\theta^\star_i+\delta z)-\theta^\star_i)^2\big],\qquad
        b=\frac{\lambda}{n-\mathrm{df}},\qquad \mathrm{df}=\sum_iP(|\theta^\star_i+\delta z|>b).

    Parameters
    ----------
    coefficients : array of shape (d,)
        :math:`\theta^\star`.
    n_samples : float
        n.
    label_noise : float
        :math:`\Delta`, a variance above 0.
    penalty : float
        :math:`\lambda\ge0`: the weight decay of the network times :math:`\sqrt d`, and n times the
        ``alpha`` of scikit-learn's ``Lasso``.

    Returns
    -------
    DiagonalState
        The prediction.

    Raises
    ------
    InvalidData, InvalidParameter
        If the coefficients are not a vector of finite numbers, a parameter is out of range, or the
        error vanishes.
    NotConverged
        If the error is infinite: n = d without a penalty.

    Notes
    -----
    Two bracketed searches: for the threshold at fixed :math:`\delta`, and for :math:`\delta`. Source:
    arXiv:1008.2581, Theorem 1.5 (quadratic 32). Backed by
    ``tests/models/quadratic/test_diagonal.py`` (scikit-learn's Lasso).

    Examples
    --------
    >>> state = solve_diagonal(1 / np.arange(1, 401), n_samples=200, label_noise=0.5, penalty=20.0)
    >>> round(state.error, 3)
    0.246
    """
    check_positive(n_samples=n_samples, label_noise=label_noise)
    target = np.asarray(coefficients, dtype=np.float64)
    if target.ndim != 1 or target.size == 0 or not np.isfinite(target).all():
        raise InvalidData(
            f"the coefficients have shape {target.shape}; allowed: a vector of finite numbers."
        )
    if penalty == 0 and abs(n_samples / target.size - 1) < 1e-9:
        raise NotConverged(
            "the error is infinite for n = d without a penalty; use a penalty above 0.",
            {"n_samples": n_samples},
        )
    check_not_negative(penalty=penalty)

    energy, n = float(target @ target), n_samples

    def best_threshold(noise: float) -> float:
        """Solve n - df = lambda / b for b; the difference increases in b."""

        def excess(b: float) -> float:
            freedom = threshold_risk(target, effective_noise=noise, threshold=b)[1]
            return n - freedom - (penalty / b if penalty else 0.0)

        low, high = penalty / (2 * n), float(np.abs(target).max()) + 40 * noise + 2 * penalty / n
        at_low = excess(low)
        return low if at_low >= 0 else bracketed_root(excess, low, high, absolute=1e-15 * noise)

    def imbalance(log_noise: float) -> float:
        noise = float(np.exp(log_noise))
        risk, _ = threshold_risk(target, effective_noise=noise, threshold=best_threshold(noise))
        return float(np.log((label_noise + risk) / (n * noise**2)))

    # The search starts at Delta / n, the smallest possible delta².
    floor, null = (float(np.log(size / n)) / 2 for size in (label_noise, label_noise + energy))
    noise = float(np.exp(bracketed_root(imbalance, floor - 1e-6, null + 30, absolute=1e-14)))
    threshold = best_threshold(noise)
    risk, freedom = threshold_risk(target, effective_noise=noise, threshold=threshold)
    if label_noise + risk < 1e-12 * energy:
        raise InvalidParameter(
            f"with {n} samples, this label noise and this penalty the target is recovered up to "
            "rounding, so that the effective noise vanishes. Use a larger penalty or label noise."
        )
    return DiagonalState(
        effective_noise=noise,
        threshold=threshold,
        error=risk,
        test_error=label_noise + risk,
        train_error=(label_noise + risk) * (1 - freedom / n) ** 2,
        degrees_of_freedom=freedom,
    )


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
    decay, d = parameters.weight_decay, parameters.dimension
    state = solve_diagonal(
        target,
        n_samples=parameters.samples,
        label_noise=parameters.noise,
        penalty=lasso_penalty(weight_decay=decay, dimension=d),
    )
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
            where=lambda cell: cell.expected >= 1,
            missing="no coefficient is expected above the threshold; lower weight_decay",
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
    ],
    panels=[
        Panel(
            "error",
            "Error of a diagonal network",
            "squared error",
            [Trace("error", "error"), Trace("train_error", "training error")],
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
    ],
    presets={
        "quick": Preset(
            "Error and learned shares at d = 200; ten seconds.",
            {"samples": [50, 100, 200, 400, 800, 1600]},
            replicates=40,
        )
    },
    references=("bayati2012lasso", "defilippis2025scaling"),
)
