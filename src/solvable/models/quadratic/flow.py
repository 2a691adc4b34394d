"""Gradient flow on the population loss learns one feature after another, the strongest first.

A quadratic network starts from small random weights. Each feature grows as e^(lambda t) until it
saturates, and takes one direction of the hidden layer with it: rank j starts from what is left, a
chi-squared of width - j + 1 degrees of freedom. That gives the mean course of every feature.
"""

from __future__ import annotations

import numpy as np
from pydantic import Field

from solvable.frame.agreement import Agreement
from solvable.frame.curves import Axis
from solvable.frame.panels import Panel, Trace
from solvable.frame.points import Metrics, Point
from solvable.frame.system import Parameters, Preset, Reference, System
from solvable.models.quadratic.flow_theory import (
    feature_learning_times,
    flow_strengths,
    quadratic_flow,
)


class FlowParameters(Parameters):
    """A power-law target, the network's start, and when it is looked at."""

    dimension: int = Field(30, ge=2, le=400)
    """Dimension d of the inputs."""
    features: int = Field(8, ge=2, le=400)
    """Features of the target, at most d of which are used."""
    width: int = Field(12, ge=1, le=400)
    """Number r of hidden units: no more features than these are learned."""
    exponent: float = Field(1.0, gt=0.2, le=3.0)
    """Exponent a of the features' strengths j^-a."""
    initial_scale: float = Field(1e-3, ge=1e-8, le=0.1)
    """Root of the mean square norm sigma of a feature's weights at the start."""
    time: float = Field(20.0, gt=0.0, le=5000.0)
    """Time t, at which the strongest feature has grown by e^t."""


FOLLOWED = 6


def strengths_of(parameters: FlowParameters) -> np.ndarray:
    """Eigenvalues of the target, of which the ones beyond the features are 0."""
    d = parameters.dimension
    features = min(parameters.features, d)
    return flow_strengths(dimension=d, features=features, exponent=parameters.exponent)


def integrate(strengths: np.ndarray, weights: np.ndarray, time: float) -> np.ndarray:
    """Weights at a time, by SciPy's Runge-Kutta."""
    from scipy.integrate import solve_ivp

    def velocity(_: float, flat: np.ndarray) -> np.ndarray:
        W = flat.reshape(weights.shape)
        # 2508.03688: the gradient of |Lambda - W W^T|^2 / 4, an eighth of the mean squared error
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
    """Gauss's rule of 40 nodes for the mean over a gamma variable, at any shape."""
    from scipy.linalg import eigh_tridiagonal

    # Golub and Welsch: SciPy's own rule holds Gamma(shape), which overflows from 171 on.
    k = np.arange(40)
    nodes, vectors = eigh_tridiagonal(2 * k + shape, np.sqrt(k * (k + shape - 1))[1:])
    return nodes, vectors[0] ** 2


def predict(parameters: FlowParameters) -> Metrics:
    """Logistic growth from what a random start leaves to each feature, averaged over the start."""
    strengths = strengths_of(parameters)
    strengths = strengths[strengths > 0]
    captured, squared = np.zeros(strengths.size), np.ones(strengths.size)
    for j in range(strengths.size):
        # g_j = sigma^2 chi^2 / r; the stronger take of r degrees of freedom what they captured (derived)
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
    """Captured by integration over captured by the closed form from the same start."""
    captured, closed = point.values("captured"), point.values("closed_form")
    if captured.shape != closed.shape:
        return None  # one of them was not measured
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
            "The flow of each start is the solution of the matrix Riccati equation.",
            metric=over_closed_form,
            expected=1.0,
            source="derived, for the flow of arXiv:2508.03688",
            within=1e-3,
            because="Errors of the integrator, 1e-6 a step.",
            relative=True,
            where=lambda cell: cell.mean("closed_form") > 1e-12,
            missing="needs a time at which a feature is left or learned",
            entry="feature",
            power=0.01,
        ),
        Agreement(
            "captured",
            "Each feature grows from what the stronger ones leave of a random start.",
            metric="captured",
            source="derived",
            within=0.05,
            because="Strengths are not far apart, so that features overlap while they grow.",
            where=lambda cell: (
                cell.expected > 0.1
                and cell.entry < cell.setting.width - 2
                and cell.setting.initial_scale <= 0.01
            ),
            missing="needs initial_scale <= 0.01, width above 2 and a time at which a feature grows",
            entry="feature",
        ),
        Agreement(
            "risk",
            "The risk falls by the strength squared of each feature that is learned.",
            metric="risk",
            source="derived",
            within=0.05,
            because="Strengths are not far apart, so that features overlap while they grow.",
            relative=True,
            where=lambda cell: cell.expected > 0.02 and cell.setting.initial_scale <= 0.01,
            missing="needs initial_scale <= 0.01 and a time before everything is learned",
        ),
    ],
    panels=[
        Panel(
            "captured",
            "Features are learned one after another",
            "captured share of a feature",
            [Trace("captured", "feature")],
            "Mean over starts. Vertical lines: half of a feature from a typical start.",
            markers={"learning_times": ""},
            y_range=(-0.05, 1.1),
        ),
        Panel(
            "risk",
            "Risk of gradient flow",
            "risk over that of learning nothing",
            [Trace("risk", "risk")],
            "A step for each feature; more units than features leave nothing.",
            y_scale="log",
            y_range=(1e-3, 1.5),
        ),
    ],
    presets={
        "quick": Preset(
            "eight features, twelve units; ten seconds",
            {"time": [3, 5, 7, 9, 11, 13, 16, 20, 25, 30, 40, 60]},
            replicates=100,
        )
    },
    references=[
        Reference(
            "benarous2025learning",
            "@inproceedings{benarous2025learning,\n"
            "  author    = {Ben Arous, G{\\'e}rard and Erdogdu, Murat A. and Vural, N. Mert and"
            " Wu, Denny},\n"
            "  title     = {Learning Quadratic Neural Networks in High Dimensions: {SGD} Dynamics"
            " and Scaling Laws},\n"
            "  booktitle = {Advances in Neural Information Processing Systems},\n"
            "  note      = {arXiv:2508.03688},\n"
            "  year      = {2025}\n"
            "}",
        )
    ],
)
