"""Gradient flow and online descent of quadratic networks: features are learned one by one.

A network starts from small random weights. Each feature grows exponentially until it saturates, and then
occupies one direction of the hidden layer. Feature j therefore starts from a chi-squared variable of
width - j + 1 degrees of freedom, which predicts the mean growth of every feature.
"""

from __future__ import annotations

import numpy as np
from pydantic import Field

from solvable.errors import NotConverged
from solvable.fitting.gradient_descent import descend, fresh_batches
from solvable.frame.agreement import Agreement
from solvable.frame.conditions import above, at_most
from solvable.frame.curves import Axis
from solvable.frame.panels import Panel
from solvable.frame.parameters import Parameters
from solvable.frame.points import Metrics, Point
from solvable.frame.system import Preset, System
from solvable.frame.traces import Trace
from solvable.models.quadratic.flow_scaling import SCALING_CLAIMS, diverged
from solvable.models.quadratic.flow_theory import (
    feature_learning_times,
    gamma_quadrature,
    quadratic_flow,
)


def form_gradient(weights: tuple[np.ndarray], X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray]:
    """Gradient of an eighth of the mean squared error of the network f(x) = |W^T x|² - |W|²."""
    (W,) = weights
    fields = X @ W
    residual = y - (np.sum(fields**2, axis=1) - np.sum(W**2))
    # -(1/2B) sum r (x x^T - I) W, whose mean is (W W^T - Lambda) W   (quadratic 37)
    return (-(X.T @ (residual[:, None] * fields) - residual.sum() * W) / (2 * len(X)),)


def online_descent(
    strengths: np.ndarray,
    start: np.ndarray,
    time: float,
    *,
    learning_rate: float,
    batch: int,
    rng: np.random.Generator,
) -> np.ndarray | None:
    """Weights at a time of the flow after steps on fresh samples; None if they diverge."""
    steps = max(1, round(time / learning_rate))

    def sample(rows: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        X = rng.standard_normal((rows, strengths.size))
        return X, (X**2 - 1) @ strengths  # x^T Lambda x - Tr Lambda

    states = descend(
        form_gradient,
        (start,),
        fresh_batches(sample, rows=batch, rng=rng),
        learning_rate=time / steps,  # the last step ends at the time
        at=[steps],
    )
    try:
        (state,) = states
    except NotConverged:
        return None
    return np.asarray(state.weights[0])


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
    batch: int = Field(0, ge=0, le=100_000)
    """Number B of fresh samples in each step of online gradient descent; 0 integrates the flow alone."""
    learning_rate: float = Field(0.02, gt=0.0, le=0.5)
    """Learning rate eta of online gradient descent, which takes t / eta steps."""


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
    metrics: Metrics = {
        "captured": list(np.sum(W**2, axis=1)[:followed] / strengths[:followed]),
        "risk": float(np.sum((np.diag(strengths) - W @ W.T) ** 2) / np.sum(strengths**2)),
        "closed_form": list(closed.captured[0, :followed]),
        "online_captured": None,
    }
    if parameters.batch:
        V = online_descent(
            strengths,
            start,
            parameters.time,
            learning_rate=parameters.learning_rate,
            batch=parameters.batch,
            rng=rng,
        )
        if V is not None:
            metrics["online_captured"] = list(
                np.sum(V**2, axis=1)[:followed] / strengths[:followed]
            )
    return metrics


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
        "online_captured": list(captured[known]) if parameters.batch else None,
    }


def chance(parameters: FlowParameters, prediction: Metrics) -> Metrics:
    """Metrics of a network that is zero."""
    followed = min(FOLLOWED, parameters.features, parameters.dimension)
    metrics: Metrics = {"captured": [0.0] * followed, "risk": 1.0}
    return metrics | ({"online_captured": [0.0] * followed} if parameters.batch else {})


def over_closed_form(point: Point) -> np.ndarray | None:
    """Learned share from integration over learned share from the closed form, from the same start."""
    captured, closed = point.values("captured"), point.values("closed_form")
    if captured.shape != closed.shape:
        return None  # records of earlier versions lack the closed form
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(captured / closed)


def online_share(point: Point) -> np.ndarray | None:
    """Learned shares of online descent, with the flow from the same starts as a control variate."""
    online, flow = point.values("online_captured"), point.values("closed_form")
    return None if online.shape != flow.shape else np.asarray(online - flow + flow.mean(axis=0))


def slow(point: Point) -> bool:
    """Return True for a small learning rate and little noise of the gradient."""
    setting = point.setting
    noise = setting.learning_rate * setting.dimension / max(setting.batch, 1)
    return bool(setting.batch and setting.learning_rate <= 0.02 and noise <= 0.01)


system = System(
    name="quadratic-flow",
    title="Gradient flow learns one feature after another, the strongest first",
    version="1",
    parameters=FlowParameters,
    measure=measure,
    predict=predict,
    chance=chance,
    axis=Axis("time", "time t", words={"time": "t = {:g}"}, margin=1.0, resolution=100),
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
            where=(
                {"expected": above(0.1), "initial_scale": at_most(0.01)},
                lambda cell: cell.entry < cell.setting.width - 2,
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
            where={"expected": above(0.02), "initial_scale": at_most(0.01)},
            missing="lower time",
        ),
        Agreement(
            "online-descent",
            "Online gradient descent with a small learning rate follows the flow from the same start.",
            metric=online_share,
            expected=lambda point: point.mean("closed_form"),
            source="derivations/quadratic (34), (37)",
            within=0.05,
            because="Steps of finite length and noise of the gradient delay a feature that grows.",
            where=lambda cell: slow(cell.point),
            missing="needs batch and learning_rate with learning_rate <= 0.02 and learning_rate "
            "dimension / batch <= 0.01; run with --preset online",
            entry="feature",
        ),
        *SCALING_CLAIMS,
    ],
    panels=[
        Panel(
            "captured",
            "Features are learned one after another",
            "learned share of a feature",
            [Trace("captured", "feature")],
            "Mean over starts. Vertical lines: times at which a feature with a typical start is half "
            "learned.",
            markers={"learning_times": ""},
            when={"batch": 0},
            y_range=(-0.05, 1.1),
        ),
        Panel(
            "risk",
            "Risk of gradient flow",
            "risk / risk at zero weights",
            [Trace("risk", "risk")],
            "One step per feature. With at least as many units as features the risk falls to 0.",
            when={"batch": 0},
            y_scale="log",
            y_range=(1e-3, 1.5),
        ),
        Panel(
            "online",
            "Online gradient descent follows the flow",
            "learned share of a feature",
            [Trace("online_captured", "feature")],
            "Points: online gradient descent on fresh samples. Lines: flow, mean over starts.",
            when=lambda curve: slow(curve.points[0]),
            y_range=(-0.05, 1.1),
        ),
        Panel(
            "batch",
            "Few samples in each step delay the features",
            "learned share of a feature",
            [Trace("online_captured", "feature")],
            "Points: online gradient descent. Lines: flow, mean over starts.",
            along=Axis("batch", "fresh samples in each step"),
            at=lambda places: places[len(places) // 2 :][:1],
            where={"batch": above(0)},
            x_scale="log",
            y_range=(-0.05, 1.1),
        ),
        Panel(
            "width",
            "Risk against the width of the network",
            "risk / risk at zero weights",
            [Trace("risk", "")],
            "At late times a network of r units has learned r features. Lines: prediction.",
            along=Axis("width", "width r"),
            x_scale="log",
            y_scale="log",
        ),
        Panel(
            "dimension",
            "Online descent diverges with few samples in each step",
            "share of diverged replicates",
            [Trace("", "", theory=None, value=diverged)],
            "Half of the replicates diverge at a number of samples that is proportional to d.",
            along=Axis("batch", "fresh samples in each step"),
            overlay=("dimension",),
            where={"batch": above(0)},
            x_scale="log",
        ),
    ],
    presets={
        "scaling": Preset(
            "Risk against time and width with a hundred features; a minute.",
            "dimension=120 features=120 exponent=1.5 width=4,8,15,120 time=20,40,80,160,1000",
            replicates=3,
        ),
        "samples": Preset(
            "Online descent with few samples in each step at three dimensions; half a minute.",
            "time=15 learning_rate=0.05 dimension=30,60,120 batch=1,2,3,4,5,6,8,10,12,15",
            replicates=40,
        ),
        "quick": Preset(
            "Eight features and twelve units; ten seconds.",
            "time=3,5,7,9,11,13,16,20,25,30,40,60",
            replicates=100,
        ),
        "online": Preset(
            "Online gradient descent at five numbers of samples in each step; half a minute.",
            "time=5,9,13,20,30 batch=0,2,5,10,30,100",
            replicates=12,
        ),
    },
    references=("benarous2025learning",),
)
