"""Least squares with a penalty on the nuclear norm: solver, and the best penalty in the limit."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from solvable.errors import NotConverged
from solvable.message_passing.signal_evolution import signal_evolution
from solvable.models.sensing.matrix.parameters import MatrixSensingParameters
from solvable.models.sensing.matrix.theory import NuclearNormSignal, soft
from solvable.operators.sensors import GoeSensors, TokenSensors


def penalised(
    sensors: TokenSensors | GoeSensors,
    y: np.ndarray,
    penalty: float,
    *,
    tolerance: float = 3e-3,
    max_steps: int = 5_000,
) -> np.ndarray:
    """Minimise |y - A(S)|² / d + penalty |S|_* by accelerated proximal gradient descent."""
    # Stops where the duality gap is at most the fraction `tolerance` of the minimum.
    step, d = 1 / _curvature(sensors), sensors.size
    S = ahead = np.zeros((d, d))
    momentum, gap = 1.0, np.inf
    for k in range(1, max_steps + 1):
        values, vectors = np.linalg.eigh(ahead + step * sensors.adjoint(y - sensors.forward(ahead)))
        shrunk = soft(values, step * penalty)
        before, S = S, (vectors * shrunk) @ vectors.T
        if np.sum((ahead - S) * (S - before)) > 0:
            momentum = 1.0  # restart when the momentum points uphill
        following = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        ahead = S + (momentum - 1) / following * (S - before)
        momentum = following
        if k % 10 == 0:
            gap = _gap(sensors, y, penalty, S, float(np.abs(shrunk).sum()))
            if gap <= tolerance:
                return S
    raise NotConverged(
        f"the penalised squares are within the fraction {gap:.2g} of their minimum after {max_steps} "
        f"steps; allowed: {tolerance:g}. Raise noise, or move sample_ratio away from recovery_ratio.",
        {"gap": gap, "steps": max_steps},
    )


def _curvature(sensors: TokenSensors | GoeSensors) -> float:
    """Upper bound of the largest eigenvalue of adjoint times forward."""
    d, value = sensors.size, 0.0
    x = np.random.default_rng(0).standard_normal((d, d))
    x += x.T
    for _ in range(6):
        x = sensors.adjoint(sensors.forward(x / np.linalg.norm(x)))
        value = float(np.linalg.norm(x))
    # six power iterations end at most 15 % below the eigenvalue (20 to 60 rows, both kinds of sensors)
    return 1.2 * value


def _gap(
    sensors: TokenSensors | GoeSensors, y: np.ndarray, penalty: float, S: np.ndarray, norm: float
) -> float:
    """Duality gap relative to the objective; the dual vector is the residual, scaled to be feasible."""
    rest = y - sensors.forward(S)
    # the dual maximises (2 z^T y - |z|²) / d over |adjoint(z)|_op <= penalty
    scale = min(1.0, penalty / max(float(np.linalg.norm(sensors.adjoint(rest), 2)), 1e-300))
    square = float(np.sum(rest**2))
    objective = square / sensors.size + penalty * norm
    dual = (2 * scale * float(np.sum(rest * y)) - scale**2 * square) / sensors.size
    return 1 - dual / max(objective, 1e-300)


@lru_cache(maxsize=256)
def best_penalty(parameters: MatrixSensingParameters) -> tuple[float, bool]:
    """Penalty of least error in the limit, and whether the estimate is then exact (sensing 29)."""
    law = NuclearNormSignal(parameters.spectrum)
    state = signal_evolution(law, parameters.channel, np.array([parameters.ratio]))
    noise, exact = float(state.noise[0]), not state.noise[0]
    # at exact recovery the penalty vanishes with the noise; this one leaves an error near 1e-5
    best = law.best(max(noise, 1e-4 * law.variance))
    penalty = 2 * best.cut * (2 * parameters.ratio - best.divergence)
    return max(penalty, 1e-4 * float(np.sqrt(law.variance))), exact
