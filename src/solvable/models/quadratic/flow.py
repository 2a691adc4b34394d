"""Gradient flow of quadratic networks on the population loss: features are learned one by one.

A network starts from small random weights. Each feature grows exponentially until it saturates, and then
occupies one direction of the hidden layer. Feature j therefore starts from a chi-squared variable of
width - j + 1 degrees of freedom, which predicts the mean growth of every feature.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from pydantic import Field

from solvable.arrays import check_positive
from solvable.errors import InvalidData, InvalidParameter
from solvable.frame.agreement import Agreement
from solvable.frame.curves import Axis
from solvable.frame.panels import Panel
from solvable.frame.parameters import Parameters
from solvable.frame.points import Metrics, Point
from solvable.frame.system import Preset, System
from solvable.frame.traces import Trace


@dataclass(frozen=True, eq=False)
class QuadraticFlow:
    """Risk and learned features of the population flow at a sequence of times."""

    times: np.ndarray
    risk: np.ndarray  # |Lambda - W W^T|² / |Lambda|² at each time
    captured: (
        np.ndarray
    )  # diagonal of W W^T over lambda_j, NaN where lambda_j is 0; shape (times, d)
    strengths: np.ndarray  # lambda_j


def flow_matrix(strengths: np.ndarray, weights: np.ndarray, time: float) -> np.ndarray:
    """Matrix G = W W^T of the population flow at a time, from its Riccati equation (quadratic 34)."""
    # W' = (Lambda - W W^T) W, the flow of arXiv:2508.03688, has G' = Lambda G + G Lambda - 2 G²:
    #     G(t) = e^(t Lambda) W_0 (I + W_0^T (e^(2 t Lambda) - 1) / Lambda W_0)^-1 W_0^T e^(t Lambda).
    # With E = ((e^(2 t Lambda) - 1) / Lambda)^(1/2) the entries of E W_0 exceed the range of a double.
    # Sort the rows by E and rotate the columns so that W_0 is lower triangular, and divide column k of
    # E W_0 by its largest entry c_k. Then G = D Q_1 Q_1^T D, where D = e^(t Lambda) / E and Q_1 holds the
    # upper rows of the orthonormal factor of (E W_0 C^-1; C^-1).
    rates, start = _checked(strengths, weights)
    if not 0 <= time < np.inf:
        raise InvalidParameter(f"time is {time}; allowed: a finite number of at least 0.")
    if time == 0:
        return np.asarray(start @ start.T)
    order = np.argsort(-rates, kind="stable")
    rates = rates[order]
    triangle = np.linalg.qr(start[order].T)[1].T
    growth = _log_growth(rates, time)
    with np.errstate(divide="ignore"):
        size = growth[:, None] + np.log(np.abs(triangle))
    scale = np.maximum(size.max(axis=0), 0.0)
    stacked = np.concatenate([np.sign(triangle) * np.exp(size - scale), np.diag(np.exp(-scale))])
    upper = np.linalg.qr(stacked)[0][: rates.size]
    upper = upper * np.exp(rates * time - growth)[:, None]
    solution = np.empty((rates.size, rates.size))
    solution[np.ix_(order, order)] = upper @ upper.T
    return solution


def _log_growth(rates: np.ndarray, time: float) -> np.ndarray:
    """Logarithm of E, without overflow and for rates of 0 too."""
    exponent = 2 * time * rates
    modulus = np.abs(exponent)
    # (e^z - 1) / z = e^{max(z, 0)} (1 - e^{-|z|}) / |z|.
    fraction = np.ones(rates.size)
    large = modulus > 1e-300
    fraction[large] = -np.expm1(-modulus[large]) / modulus[large]
    return np.asarray((np.maximum(exponent, 0.0) + np.log(fraction) + np.log(2 * time)) / 2)


def quadratic_flow(strengths: np.ndarray, weights: np.ndarray, times: np.ndarray) -> QuadraticFlow:
    r"""Compute the risk and the learned share of each feature along the population flow.

    Parameters
    ----------
    strengths : array of shape (d,)
        :math:`\lambda_j`, of any sign and order; :math:`j^{-a}` in arXiv:2508.03688.
    weights : array of shape (d, r)
        :math:`W_0`, for example Gaussian of small variance.
    times : array of shape (T,)
        Times, at least 0.

    Returns
    -------
    QuadraticFlow
        Risk over its value at :math:`G=0`, and the learned share of each feature.

    Raises
    ------
    InvalidData
        If an array is not finite, the shapes do not match or every strength is 0.

    Notes
    -----
    Closed form of the matrix Riccati equation (quadratic 34), O(d r (d + r)) for each time. Backed by
    ``tests/models/quadratic/test_flow.py`` (SciPy's integrator, the scalar logistic law).

    Examples
    --------
    >>> flow = quadratic_flow(np.array([1.0, 0.0]), 0.1 * np.eye(2), np.array([0.0, 100.0]))
    >>> flow.risk.round(4)
    array([0.9802, 0.    ])
    """
    rates, start = _checked(strengths, weights)
    if not rates.any():
        raise InvalidData(
            "every strength is 0; allowed: at least one other value, or the risk is not defined."
        )
    moments = np.atleast_1d(np.asarray(times, dtype=np.float64))
    risk, captured = np.empty(moments.size), np.empty((moments.size, rates.size))
    for place, time in enumerate(moments):
        solution = flow_matrix(rates, start, float(time))
        diagonal = np.diagonal(solution).copy()
        with np.errstate(divide="ignore", invalid="ignore"):
            captured[place] = np.where(rates == 0, np.nan, diagonal / rates)
        np.fill_diagonal(solution, diagonal - rates)
        risk[place] = np.sum(solution**2)
    return QuadraticFlow(moments, risk / np.sum(rates**2), captured, rates)


def _checked(strengths: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    rates = np.asarray(strengths, dtype=np.float64)
    start = np.asarray(weights, dtype=np.float64)
    if rates.ndim != 1 or rates.size == 0 or start.ndim != 2 or len(start) != rates.size:
        raise InvalidData(
            f"the strengths have shape {rates.shape} and the weights {start.shape}; "
            "allowed: (d,) and (d, r)."
        )
    if not (np.isfinite(rates).all() and np.isfinite(start).all()):
        raise InvalidData(
            "the strengths or the weights contain NaN or infinity; remove these values."
        )
    return rates, start


def feature_learning_times(strengths: np.ndarray | float, *, initial_strength: float) -> np.ndarray:
    r"""Compute the time at which half of each feature is learned, for an isotropic start.

    .. math:: t_j=\frac1{2\lambda_j}\log\Big(\frac{\lambda_j}{g_0}-1\Big),\qquad
        g_j(t)=\frac{\lambda_j}{1+(\lambda_j/g_0-1)e^{-2\lambda_jt}},

    exact for :math:`W_0W_0^\top=g_0I` (quadratic 35). A random start changes the argument of the
    logarithm by a factor.

    Parameters
    ----------
    strengths : array of any shape
        :math:`\lambda_j>0`.
    initial_strength : float
        :math:`g_0>0`.

    Returns
    -------
    ndarray
        The times :math:`t_j`; 0 for a feature that is at least half learned at the start.

    Examples
    --------
    >>> feature_learning_times([1.0, 0.1], initial_strength=1e-3).round(2)
    array([ 3.45, 22.98])
    """
    check_positive(initial_strength=initial_strength)
    rates = np.asarray(strengths, dtype=np.float64)
    if not np.isfinite(rates).all() or (rates <= 0).any():
        raise InvalidData(
            "a strength is not a finite number above 0; such features are never learned. Remove them."
        )
    return np.asarray(np.log(np.maximum(rates / initial_strength - 1, 1.0)) / (2 * rates))


def width_floor(strengths: np.ndarray, *, width: int) -> float:
    r"""Least risk of a network of this width: :math:`\sum_{j>r_s}\lambda_j^2/\sum_j\lambda_j^2`.

    Parameters
    ----------
    strengths : array of shape (d,)
        :math:`\lambda_j\ge0`, in any order.
    width : int
        :math:`r_s`.

    Returns
    -------
    float
        The risk floor (quadratic 36), of order :math:`r_s^{1-2a}` for :math:`\lambda_j=j^{-a}`.

    Examples
    --------
    >>> round(width_floor(1 / np.arange(1, 401), width=10), 4)
    0.0564
    """
    check_positive(width=width)
    energy = np.sort(np.asarray(strengths, dtype=np.float64) ** 2)[::-1]
    return float(energy[int(width) :].sum() / energy.sum())


class FlowParameters(Parameters):
    """A power-law target, the start of the network, and the time of the measurement."""

    dimension: int = Field(30, ge=2, le=400)
    """Dimension d of the inputs."""
    features: int = Field(8, ge=2, le=400)
    """Number of features of the target; the target has no more than d."""
    width: int = Field(12, ge=1, le=400)
    """Number r of hidden units, the largest number of features that can be learned."""
    exponent: float = Field(1.0, gt=0.2, le=3.0)
    """Exponent a of the features' strengths j^-a."""
    initial_scale: float = Field(1e-3, ge=1e-8, le=0.1)
    """Root mean square norm sigma of the weights of a feature at the start."""
    time: float = Field(20.0, gt=0.0, le=5000.0)
    """Time t; weights of the strongest feature grow as e^t."""


FOLLOWED = 6
"""Number of features that are measured and predicted."""


def strengths_of(parameters: FlowParameters) -> np.ndarray:
    """Eigenvalues of the target, with zeros after the features."""
    j = np.arange(1, parameters.dimension + 1)
    return np.where(j <= parameters.features, j**-parameters.exponent, 0.0)


def integrate(strengths: np.ndarray, weights: np.ndarray, time: float) -> np.ndarray:
    """Integrate the flow by SciPy's Runge-Kutta method, and return the weights."""
    from scipy.integrate import solve_ivp

    def velocity(_: float, flat: np.ndarray) -> np.ndarray:
        W = flat.reshape(weights.shape)
        # gradient of |Lambda - W W^T|² / 4, an eighth of the mean squared error (arXiv:2508.03688)
        return np.asarray((strengths[:, None] * W - W @ (W.T @ W)).ravel())

    tolerance = 1e-6 * float(np.abs(weights).max())
    path = solve_ivp(velocity, (0, time), weights.ravel(), rtol=1e-6, atol=tolerance)
    return np.asarray(path.y[:, -1].reshape(weights.shape))


def measure(parameters: FlowParameters, rng: np.random.Generator) -> Metrics:
    """Integrate the flow from one random start."""
    strengths = strengths_of(parameters)
    shape = (parameters.dimension, parameters.width)
    start = parameters.initial_scale * rng.standard_normal(shape) / np.sqrt(parameters.width)
    W = integrate(strengths, start, parameters.time)
    closed = quadratic_flow(strengths, start, np.array([parameters.time]))
    followed = min(FOLLOWED, np.count_nonzero(strengths))
    return {
        "captured": list(np.sum(W**2, axis=1)[:followed] / strengths[:followed]),
        "risk": float(np.sum((np.diag(strengths) - W @ W.T) ** 2) / np.sum(strengths**2)),
        "closed_form": list(closed.captured[0, :followed]),
    }


def gamma_quadrature(shape: float) -> tuple[np.ndarray, np.ndarray]:
    """Gauss quadrature with 40 nodes for means over a gamma variable of any shape."""
    from scipy.linalg import eigh_tridiagonal

    # Golub-Welsch algorithm, as SciPy's rule contains Gamma(shape), which overflows above 171.
    k = np.arange(40)
    nodes, vectors = eigh_tridiagonal(2 * k + shape, np.sqrt(k * (k + shape - 1))[1:])
    return nodes, vectors[0] ** 2


def predict(parameters: FlowParameters) -> Metrics:
    """Predict logistic growth of each feature, averaged over the random start (quadratic 35, 36)."""
    strengths = strengths_of(parameters)
    strengths = strengths[strengths > 0]
    captured, squared = np.zeros(strengths.size), np.ones(strengths.size)
    for j in range(strengths.size):
        # start g_j = sigma² chi² / r; stronger features have used up the degrees of freedom they captured
        freedom = parameters.width - float(captured[:j].sum())
        if freedom < 1e-3:
            break
        halves, weights = gamma_quadrature(freedom / 2)
        start = parameters.initial_scale**2 * 2 * halves / parameters.width
        growth = np.exp(-2 * strengths[j] * parameters.time)
        course = 1 / (1 + (strengths[j] / start - 1) * growth)
        captured[j] = weights @ course
        squared[j] = weights @ (1 - course) ** 2
    left = np.maximum(parameters.width - np.arange(strengths.size), 0)
    typical = parameters.initial_scale**2 * left / parameters.width
    known = slice(0, min(FOLLOWED, strengths.size))
    times = [
        float(feature_learning_times(strength, initial_strength=start)) if start else None
        for strength, start in zip(strengths[known], typical[known], strict=True)
    ]
    return {
        "captured": list(captured[known]),
        "risk": float(strengths**2 @ squared / np.sum(strengths**2)),
        "learning_times": times,
    }


def chance(parameters: FlowParameters, prediction: Metrics) -> Metrics:
    """Metrics of a network that is zero."""
    followed = min(FOLLOWED, parameters.features, parameters.dimension)
    return {"captured": [0.0] * followed, "risk": 1.0}


def over_closed_form(point: Point) -> np.ndarray | None:
    """Learned share from integration over learned share from the closed form, from the same start."""
    captured, closed = point.values("captured"), point.values("closed_form")
    if captured.shape != closed.shape:
        return None  # records of earlier versions lack the closed form
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(captured / closed)


system = System(
    name="quadratic-flow",
    title="Gradient flow learns one feature after another, the strongest first",
    version="1",
    parameters=FlowParameters,
    measure=measure,
    predict=predict,
    chance=chance,
    axis=Axis("time", "time t", scale="linear", margin=1.0),
    claims=[
        Agreement(
            "closed-form",
            "The integrated flow equals the closed form of the matrix Riccati equation.",
            metric=over_closed_form,
            expected=1.0,
            source="derivations/quadratic (34)",
            within=1e-3,
            because="The error of the integrator, 1e-6 per step.",
            relative=True,
            where=lambda cell: cell.mean("closed_form") > 1e-12,
            missing="every learned share is below 1e-12; change time",
            entry="feature",
            power=0.01,
        ),
        Agreement(
            "captured",
            "The learned share of each feature equals logistic growth from a random start.",
            metric="captured",
            source="derivations/quadratic (35)",
            within=0.05,
            because="The theory assumes strengths far apart, but several features grow at the same time.",
            where=lambda cell: (
                cell.expected > 0.1
                and cell.entry < cell.setting.width - 2
                and cell.setting.initial_scale <= 0.01
            ),
            missing="needs initial_scale <= 0.01, width > 2 and a predicted share > 0.1; raise time",
            entry="feature",
        ),
        Agreement(
            "risk",
            "The risk equals the sum of the squared unlearned strengths of the features.",
            metric="risk",
            source="derivations/quadratic (36)",
            within=0.05,
            because="The theory assumes strengths far apart, but several features grow at the same time.",
            relative=True,
            where=lambda cell: cell.expected > 0.02 and cell.setting.initial_scale <= 0.01,
            missing="needs initial_scale <= 0.01 and a predicted risk above 0.02; lower time",
        ),
    ],
    panels=[
        Panel(
            "captured",
            "Features are learned one after another",
            "learned share of a feature",
            [Trace("captured", "feature")],
            "Mean over starts. Vertical lines: a feature with a typical start is half learned.",
            markers={"learning_times": ""},
            y_range=(-0.05, 1.1),
        ),
        Panel(
            "risk",
            "Risk of gradient flow",
            "risk / risk at zero weights",
            [Trace("risk", "risk")],
            "One step per feature. With at least as many units as features the risk falls to 0.",
            y_scale="log",
            y_range=(1e-3, 1.5),
        ),
    ],
    presets={
        "quick": Preset(
            "Eight features and twelve units; ten seconds.",
            {"time": [3, 5, 7, 9, 11, 13, 16, 20, 25, 30, 40, 60]},
            replicates=100,
        )
    },
    references=("benarous2025learning",),
)
