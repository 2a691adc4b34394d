"""A diagonal network with weight decay finds the features of a target one by one, as the LASSO does.

The network f = a^T (w x) / sqrt(d) is trained by L-BFGS on both layers. Its global minimum is that of
the LASSO, so that an effective noise delta and a threshold b predict the error, the training error,
how many coefficients are not zero and how much of each feature is learned.
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
    """Prediction of the minimiser, distributed as eta_b(theta* + delta z)."""

    effective_noise: float  # delta
    threshold: float  # b
    error: float  # R = E |theta - theta*|²
    test_error: float  # Delta + R
    train_error: float  # (Delta + R) (1 - df / n)² per sample
    degrees_of_freedom: float  # df, the expected number of coefficients that are not 0


def lasso_penalty(*, weight_decay: float, dimension: int) -> float:
    """Penalty of the LASSO that a diagonal network of this weight decay solves."""
    # sum of (y - a^T (w x) / sqrt(d))² + lambda (|w|² + |a|²) is, at theta = a w / sqrt(d),
    # |y - X theta|² / 2 + lambda sqrt(d) |theta|_1. 2509.24882 prints the penalty without the root; its
    # phase boundaries need it. Over n it is `alpha` of scikit-learn's Lasso.
    return float(weight_decay * np.sqrt(dimension))


def threshold_risk(
    coefficients: np.ndarray, *, effective_noise: float, threshold: float
) -> tuple[float, float]:
    """Error and degrees of freedom of soft thresholding in Gaussian noise."""
    from scipy.special import ndtr

    # R = sum of E min(M², b²) + delta² (2 P - 1) by Stein's identity and df = sum of P, where
    # M = theta + delta z and P = P(|M| > b).
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
    r"""Minimiser of :math:`\frac12\|y-X\theta\|^2+\lambda\|\theta\|_1` for Gaussian X of unit variance.

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
        :math:`\lambda\ge0`: the weight decay of the network times :math:`\sqrt d`, or n times ``alpha``
        of scikit-learn's ``Lasso``.

    Returns
    -------
    DiagonalState
        The prediction.

    Raises
    ------
    InvalidData, InvalidParameter
        If the coefficients are no vector of numbers, a parameter is out of range, or nothing is left of
        the error.
    NotConverged
        If there is no finite solution: n = d without a penalty.

    Notes
    -----
    At fixed :math:`\delta` the threshold is the root of an increasing function, and the noise that of a
    decreasing one: both bracketed. Source: Bayati and Montanari, arXiv:1008.2581; phases of
    arXiv:2509.24882. Backed by ``tests/models/quadratic/test_diagonal.py`` (scikit-learn's Lasso).

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
            "the error has no finite limit with as many samples as coefficients and no penalty; use "
            "a penalty above 0.",
            {"n_samples": n_samples},
        )
    check_not_negative(penalty=penalty)

    energy, n = float(target @ target), n_samples

    def best_threshold(noise: float) -> float:
        """Root of n - df = lambda / b, which increases in b."""

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

    # delta² is at least Delta / n.
    floor, null = (float(np.log(size / n)) / 2 for size in (label_noise, label_noise + energy))
    noise = float(np.exp(bracketed_root(imbalance, floor - 1e-6, null + 30, absolute=1e-14)))
    threshold = best_threshold(noise)
    risk, freedom = threshold_risk(target, effective_noise=noise, threshold=threshold)
    if label_noise + risk < 1e-12 * energy:
        raise InvalidParameter(
            f"with {n} samples, so little label noise and this penalty the target is recovered, and no "
            "effective noise is left. Use a larger penalty or label noise."
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
    """Dimension d of the inputs: coefficients of the target."""
    samples: int = Field(400, ge=10, le=100_000)
    """Number n of samples; the effective number of a diagonal network is n itself."""
    exponent: float = Field(1.0, gt=0.5, le=3.0)
    """Exponent gamma of the coefficients i^-gamma, which are scaled to unit norm."""
    noise: float = Field(0.25, ge=1e-100, le=100.0)
    """Variance of the label noise; that of the target is 1."""
    weight_decay: float = Field(1.0, ge=1e-100, le=1000.0)
    """Weight decay lambda; the squared errors are summed over the samples."""


RANKS = np.array([1, 2, 4, 8, 16])


def feature_names(parameters: DiagonalParameters) -> list[str]:
    """Names of the features that are followed one by one."""
    return [f"feature {rank}" for rank in RANKS]


def coefficients(parameters: DiagonalParameters) -> np.ndarray:
    """Coefficients of the target."""
    values = np.arange(1, parameters.dimension + 1.0) ** -parameters.exponent
    return np.asarray(values / np.linalg.norm(values))


def train(X: np.ndarray, y: np.ndarray, decay: float, rng: np.random.Generator) -> np.ndarray:
    """Coefficients a w / sqrt(d) of the network, both layers trained from a random start."""
    from scipy.optimize import minimize

    n, d = X.shape
    # The moments are all that squared errors know: many samples cost as few as there are inputs.
    gram, moment, energy = (X.T @ X, X.T @ y, y @ y) if n > d else (None, X.T @ y, y @ y)

    def loss(flat: np.ndarray) -> tuple[float, np.ndarray]:
        w, a = flat.reshape(2, d)
        theta = a * w / np.sqrt(d)
        excess = (X.T @ (X @ theta) if gram is None else gram @ theta) - moment
        slope = 2 * excess / np.sqrt(d)
        # 2509.24882: |y - f|² + lambda (|w|² + |a|²)
        value = energy + theta @ (excess - moment) + decay * flat @ flat
        return float(value), np.concatenate([slope * a, slope * w]) + 2 * decay * flat

    options = {"maxiter": 5000, "maxfun": 10_000, "gtol": 1e-4 * decay, "ftol": 0.0}
    start = rng.standard_normal(2 * d)
    w, a = minimize(loss, start, jac=True, method="L-BFGS-B", options=options).x.reshape(2, d)
    return np.asarray(a * w / np.sqrt(d))


def measure(parameters: DiagonalParameters, rng: np.random.Generator) -> Metrics:
    """Train on one data set."""
    target = coefficients(parameters)
    X = rng.standard_normal((parameters.samples, parameters.dimension))
    y = X @ target + np.sqrt(parameters.noise) * rng.standard_normal(parameters.samples)
    learned = train(X, y, parameters.weight_decay, rng)
    # What weight decay drives to zero shrinks geometrically: its rest does not count.
    learned[np.abs(learned) <= 1e-5] = 0
    return {
        "error": float(np.sum((learned - target) ** 2)),
        "train_error": float(np.mean((y - X @ learned) ** 2)),
        "found": int(np.count_nonzero(learned)),
        "captured": list(learned[RANKS - 1] / target[RANKS - 1]),
    }


def predict(parameters: DiagonalParameters) -> Metrics:
    """Soft thresholding of the target in Gaussian noise."""
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
    # E eta_b², and so what the learned coefficient scatters by
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


SOURCE = "arXiv:1008.2581, theorem 1.5"
# Replicates scatter by 5 to 20 % where few features are found: hence the power.
CLOSE: dict[str, Any] = {
    "source": SOURCE,
    "within": 0.04,
    "because": "Terms of order 1/n and 1/d.",
    "relative": True,
    "power": 0.15,
}

system = System(
    name="diagonal-network",
    title="A diagonal network with weight decay finds features as the LASSO does",
    version="1",
    parameters=DiagonalParameters,
    measure=measure,
    predict=predict,
    chance=chance,
    axis=Axis("samples", "samples n"),
    claims=[
        Agreement(
            "error", "The error is that of soft thresholding in noise.", metric="error", **CLOSE
        ),
        Agreement(
            "train-error",
            "The training error is the error on noisy labels times (1 - df / n)^2.",
            metric="train_error",
            **CLOSE,
        ),
        Agreement(
            "found",
            "As many coefficients are not zero as exceed the threshold.",
            metric="found",
            where=lambda cell: cell.expected >= 1,
            missing="needs a feature to be found: lower weight_decay",
            # A number of coefficients is binomial.
            scatter=lambda cell: (
                (cell.expected * (1 - min(cell.expected / cell.setting.dimension, 0.99))) ** 0.5
            ),
            **CLOSE,
        ),
        Agreement(
            "captured",
            "Features are learned one after another, as their coefficients pass the threshold.",
            metric="captured",
            source=f"derived from {SOURCE}",
            within=0.05,
            because="Terms of order 1/n and 1/d.",
            where=lambda cell: cell.expected > 0.3 and "captured_scatter" in cell.point.prediction,
            missing="needs a feature that is learned to a third: raise samples",
            entry=feature_names,
            # Features that no replicate found do not scatter, and yet might.
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
            "Error against the target, whose norm is 1, and mean squared residual.",
            y_scale="log",
        ),
        Panel(
            "captured",
            "Features are learned one by one",
            "learned over true coefficient",
            [Trace("captured", names=feature_names)],
            "Features whose coefficient is below the threshold are not learned.",
        ),
        Panel(
            "found",
            "Coefficients that are not zero",
            "number",
            [Trace("found", "not zero")],
            "At many samples noise is found beside the target.",
            y_scale="log",
        ),
    ],
    presets={
        "quick": Preset(
            "error and features at d = 200; ten seconds",
            {"samples": [50, 100, 200, 400, 800, 1600]},
            replicates=40,
        )
    },
    references=("bayati2012lasso", "defilippis2025scaling"),
)
