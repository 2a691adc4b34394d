"""Narrow quadratic networks, which can have a smaller error than wide ones.

A network of p < d units is trained by L-BFGS on its weights. It learns the p largest eigenvalues of
target plus noise. With too few units it misses features, and with too many it learns noise.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from pydantic import Field

from solvable.frame.agreement import Agreement, Cell
from solvable.frame.curves import Axis
from solvable.frame.panels import Panel
from solvable.frame.parameters import Parameters
from solvable.frame.points import NO_PREDICTION, Metrics
from solvable.frame.system import Preset, System
from solvable.frame.traces import Trace
from solvable.models.quadratic.narrow_phases import PHASE_CLAIMS, phases
from solvable.models.quadratic.narrow_theory import NarrowState, instability, solve_narrow
from solvable.models.quadratic.network.finite_size import at_dimension, unreachable
from solvable.models.quadratic.network.target import QuadraticTarget
from solvable.models.quadratic.network.theory import QuadraticState, solve_quadratic


class NarrowParameters(Parameters):
    """A power-law target, samples, and the width of the network."""

    dimension: int = Field(80, ge=10, le=200)
    """Dimension d of the inputs."""
    width: int = Field(8, ge=1, le=200)
    """Number p of hidden units; no effect above the rank that a wide network learns."""
    sample_ratio: float = Field(0.5, ge=0.05, le=10.0)
    """Number of samples over d²."""
    exponent: float = Field(1.25, gt=0.5, le=3.0)
    """Exponent gamma of the target's eigenvalues sqrt(d) i^-gamma, scaled to mean square 1."""
    noise: float = Field(0.5, ge=1e-10, le=100.0)
    """Variance of the label noise."""
    regularisation: float = Field(0.1, ge=1e-100, le=100.0)
    """Penalty of the trace: weight decay times sqrt(p / d)."""


def train(
    X: np.ndarray, y: np.ndarray, parameters: NarrowParameters, rng: np.random.Generator
) -> np.ndarray:
    """Train sum_k ((b_k x)² - |b_k|²) / sqrt(d) from a small random start, and return B."""
    from scipy.optimize import minimize

    shape = (d, p) = (X.shape[1], min(parameters.width, X.shape[1]))

    def loss(flat: np.ndarray) -> tuple[float, np.ndarray]:
        B = flat.reshape(shape)
        hidden = X @ B
        residual = y - (np.sum(hidden**2, axis=1) - flat @ flat) / np.sqrt(d)
        # |y - f|² / d² + lambda |B|² / d  (quadratic 1; arXiv:2606.28242)
        value = residual @ residual / d**2 + parameters.regularisation * flat @ flat / d
        slope = X.T @ (residual[:, None] * hidden) - residual.sum() * B
        gradient = -4 * slope / d**2.5 + 2 * parameters.regularisation * B / d
        return float(value), gradient.ravel()

    start = rng.standard_normal(d * p) / d
    options = {"maxiter": 2000, "maxfun": 4000, "maxcor": 20, "ftol": 1e-10, "gtol": 1e-7}
    return np.asarray(
        minimize(loss, start, jac=True, method="L-BFGS-B", options=options).x.reshape(shape)
    )


def target_of(parameters: NarrowParameters) -> QuadraticTarget:
    """Target with eigenvectors along the axes, as inputs are isotropic."""
    exponent, noise = parameters.exponent, parameters.noise
    return QuadraticTarget(parameters.dimension, "power-law", exponent=exponent, noise=noise)


def measure(parameters: NarrowParameters, rng: np.random.Generator) -> Metrics:
    """Train one network and compare with the target."""
    target = target_of(parameters)
    X, y = target.sample(round(parameters.sample_ratio * parameters.dimension**2), rng)
    B = train(X, y, parameters, rng)
    residual = y - (np.sum((X @ B) ** 2, axis=1) - np.sum(B**2)) / np.sqrt(parameters.dimension)
    return {
        "matrix_error": target.matrix_error(B @ B.T),
        "train_error": float(np.mean(residual**2)),
    }


@lru_cache(maxsize=1024)
def solve(parameters: NarrowParameters) -> NarrowState:
    """Solution of the saddle point, cached because a solution takes about a second."""
    return solve_narrow(
        target_of(parameters).strengths,
        width_ratio=parameters.width / parameters.dimension,
        sample_ratio=parameters.sample_ratio,
        label_noise=parameters.noise,
        regularisation=parameters.regularisation,
    )


def missing_features(parameters: NarrowParameters) -> float:
    """Return the smallest error of p units: the energy of the target beyond its p largest eigenvalues."""
    squares = np.sort(target_of(parameters).strengths ** 2)[::-1]
    return float(np.sum(squares[parameters.width :]) / parameters.dimension)


def predict(parameters: NarrowParameters) -> Metrics:
    """Predict errors from the p largest eigenvalues of target plus noise (quadratic 29)."""
    state, wide = solve(parameters), solve_wide(parameters.model_copy(update={"width": 1}))
    d = parameters.dimension
    growth = instability(state, d) if state.width_limited else 0.0
    wide_errors = errors_at(wide, d)
    errors = errors_at(state, d) if state.width_limited else wide_errors
    reason = ""
    if growth > 1:
        errors = dict.fromkeys(errors)
        reason = (
            f"training has many minima at this width: a perturbation grows by {growth:.2g} in a step of "
            "message passing; allowed: up to 1. Raise sample_ratio or change width."
        )
    elif None in (*errors.values(), *wide_errors.values()):
        reason = (
            "the first order in 1/d of an error, of this network or of a wide one, exceeds half of the "
            "limit, or labels that no positive matrix fits add as much. Raise dimension, sample_ratio or "
            "regularisation."
        )
    return {
        **errors,
        "missing_features": missing_features(parameters),
        "wide_error": wide_errors["matrix_error"],
        "wide_rank": wide.rank_fraction * d,
        "effective_noise": state.effective_noise,
        "threshold": state.threshold,
        "freedom_left": 1 - state.degrees_of_freedom / parameters.sample_ratio,
        **({NO_PREDICTION: reason} if reason else {}),
    }


@lru_cache(maxsize=256)
def solve_wide(parameters: NarrowParameters) -> QuadraticState:
    """Saddle point of a wide network."""
    return solve_quadratic(
        target_of(parameters).strengths,
        sample_ratio=parameters.sample_ratio,
        label_noise=parameters.noise,
        regularisation=parameters.regularisation,
    )


@lru_cache(maxsize=1024)
def errors_at(state: QuadraticState, dimension: int) -> dict[str, float | None]:
    """Error and training error to first order in 1/d; None if the correction is large."""
    parts = at_dimension(state, dimension)
    return {name: parts[name].expected for name in ("matrix_error", "train_error")}


def curve(parameters: NarrowParameters, coordinates: np.ndarray) -> list[Metrics]:
    """Predictions at integer widths, interpolated linearly between them."""
    widths = np.unique(np.round(coordinates).astype(int))
    known = [predict(parameters.model_copy(update={"width": int(width)})) for width in widths]
    names = [name for name in known[0] if name != NO_PREDICTION]
    lines = {name: np.array([metrics[name] for metrics in known], dtype=float) for name in names}
    return [
        {name: float(np.interp(place, widths, line)) for name, line in lines.items()}
        for place in coordinates
    ]


def determined(cell: Cell) -> bool:
    """Return True for more than 2 samples per degree of freedom and 10 samples per input coordinate."""
    left = cell.predicted("freedom_left")
    return bool(left > 0.5 and cell.setting.sample_ratio * cell.setting.dimension >= 10)


def fitted(cell: Cell) -> bool:
    """Return True if labels that no positive matrix fits add at most 5 % to the training error."""
    lost = unreachable(solve(cell.setting), cell.setting.dimension)
    return determined(cell) and lost <= 0.05 * cell.expected


def chance(parameters: NarrowParameters, prediction: Metrics) -> Metrics:
    """Metrics of a network that is zero."""
    return {"matrix_error": 1.0, "train_error": 2 + parameters.noise}


system = System(
    name="narrow-network",
    title="A narrow quadratic network can have a smaller error than a wide one",
    version="2",
    parameters=NarrowParameters,
    measure=measure,
    predict=predict,
    curve=curve,
    chance=chance,
    axis=Axis("width", "width p", margin=1.0, resolution=30),
    claims=[
        Agreement(
            "matrix-error",
            "The error equals that of the p largest eigenvalues of target plus noise.",
            metric="matrix_error",
            source="derivations/quadratic (29), (19), (20)",
            within=lambda cell: 4 / cell.setting.dimension,
            because="Terms of second order in 1/d; those of first order are predicted.",
            relative=True,
            where=determined,
            missing="needs 2 samples per degree of freedom and 10 per coordinate; raise sample_ratio",
            power=0.2,
        ),
        Agreement(
            "train-error",
            "The training error equals the prediction at this dimension and width.",
            metric="train_error",
            source="derivations/quadratic (29), (19), (20), (21)",
            within=lambda cell: 4 / cell.setting.dimension,
            because="Terms of second order in 1/d; those of first order are predicted.",
            relative=True,
            where=fitted,
            missing="needs 2 samples per degree of freedom and 10 per coordinate; raise sample_ratio",
        ),
        *PHASE_CLAIMS,
    ],
    panels=[
        Panel(
            "matrix-error",
            "Error against width",
            "matrix error R",
            [
                Trace("matrix_error", "p units"),
                Trace("wide_error", "wide network", measured=False, dashed=True),
            ],
            "Few units miss features of the target. Many units learn noise.",
            y_scale="log",
        ),
        Panel(
            "train-error",
            "Training error against width",
            "training error (mean squared)",
            [Trace("train_error", "training error")],
            "Unlike the error, the training error has no minimum at a finite width.",
        ),
        Panel(
            "error-against-samples",
            "Error against samples at each width",
            "matrix error R",
            [Trace("matrix_error", "")],
            "The error falls with the number of samples until the missing features remain.",
            along=Axis("sample_ratio", "sample ratio n/d²"),
            y_scale="log",
        ),
        phases,
    ],
    presets={
        "quick": Preset(
            "Error against width at d = 80; ten seconds.", "width=1,2,3,5,8,16,40", replicates=8
        ),
        "phases": Preset(
            "Exponents and phases over samples and width at d = 50; two minutes.",
            "dimension=50 regularisation=0.2 width=1,2,4,8,50 sample_ratio=0.4,1.6,3.2,6.4",
            replicates=12,
        ),
    },
    references=("girardin2026width",),
)
