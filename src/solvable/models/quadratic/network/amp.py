"""Approximate message passing for the convex problem of quadratic networks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from solvable.arrays import Array, namespace
from solvable.models.quadratic.network.sensing import Sensing
from solvable.models.quadratic.network.solvers import QuadraticSolution, certified, positive_part
from solvable.spectra.functionals import degrees_of_freedom


class _State(NamedTuple):
    """State of an iteration; linear combinations of states are states."""

    matrix: Array
    measured: Array
    message: Array
    freedom: float


@dataclass
class _Extrapolation:
    """Anderson extrapolation: the mixture of the last iterates with the smallest combined step."""

    memory: int
    images: list[_State] = field(default_factory=list)
    steps: list[Array] = field(default_factory=list)

    def add(self, image: _State, step: Array) -> None:
        self.images = [*self.images, image][-self.memory - 1 :]
        self.steps = [*self.steps, namespace(step).reshape(step, (-1,))][-self.memory - 1 :]

    def forget(self) -> None:
        self.images, self.steps = self.images[-1:], self.steps[-1:]

    def mixture(self) -> _State:
        xp = namespace(self.steps[-1])
        steps = xp.stack(self.steps)
        differences = steps[1:, :] - steps[:-1, :]
        # Directions in which the steps are parallel do not determine the mixture and are dropped.
        values, vectors = xp.linalg.eigh(differences @ differences.T)
        scores = vectors.T @ (differences @ self.steps[-1])
        kept = values > 1e-14 * values[-1]
        slope = vectors @ xp.where(kept, scores / xp.where(kept, values, 1.0), 0.0)
        # The last image minus the slopes times the differences of images: weights of sum 1.
        end = xp.zeros_like(slope[:1])
        weights = xp.concat([slope, end + 1.0]) - xp.concat([end, slope])
        matrices, measured, messages, freedoms = zip(*self.images, strict=True)
        matrix = weights @ xp.stack([xp.reshape(one, (-1,)) for one in matrices])
        freedom = sum(float(w) * one for w, one in zip(weights, freedoms, strict=True))
        return _State(
            xp.reshape(matrix, matrices[-1].shape),
            weights @ xp.stack(measured),
            weights @ xp.stack(messages),
            freedom,
        )


def solve_amp(
    sensing: Sensing,
    labels: Array,
    regularisation: float,
    *,
    tolerance: float = 1e-6,
    max_iterations: int = 600,
    memory: int = 8,
) -> QuadraticSolution:
    """Minimise by approximate message passing, whose fixed points satisfy the KKT conditions."""
    # (quadratic 6), a variant of the algorithm of arXiv:2408.03733, with Anderson extrapolation over
    # `memory` iterations; 0 means message passing alone. `damping` is the weight of the new matrix in
    # iterations without extrapolation; a growing step lowers it, down to 0.3. An iteration costs as
    # many flops as one of FISTA, and 2 (m + 1) (n + d²) numbers are stored in addition to the samples.
    # On samples that are far from isotropic the iteration may diverge: `converged` is then False.
    n, d, damping = sensing.n_samples, sensing.dimension, 0.85
    labels = sensing.asarray(labels)
    xp = namespace(labels)
    state = _State(sensing.asarray(np.zeros((d, d))), 0 * labels, 0 * labels, 0.0)
    history = _Extrapolation(memory)
    factor, iteration = sensing.asarray(np.zeros((d, 0))), 0
    best, best_iteration, previous, small_step = np.inf, 0, np.inf, tolerance
    for iteration in range(1, max_iterations + 1):
        advanced = _image(sensing, labels, regularisation, state)
        if advanced is None:
            factor = sensing.asarray(np.zeros((d, 0)))
            break
        image, factor, size = advanced
        change = image.matrix - state.matrix
        step = float(xp.linalg.matrix_norm(change)) / max(size, np.finfo(float).tiny)
        if step < 0.9 * best:
            best, best_iteration = step, iteration
        if step <= small_step:
            solution = certified(
                sensing, labels, regularisation, factor, iteration, tolerance, "amp"
            )
            if solution.converged:
                return solution
            # A check of optimality costs one iteration: repeat it when the step has shrunk in proportion.
            small_step = step * tolerance / solution.kkt_residual
        if iteration - best_iteration > 40:  # no step has been 10 % smaller for 40 iterations
            break
        history.add(image, change)
        if step > 2 * previous:
            history.forget()
        # The map is far from linear in the first four iterations.
        extrapolating = iteration >= 5 and len(history.steps) > 1
        if extrapolating and memory:
            state = history.mixture()
            state = state._replace(freedom=float(np.clip(state.freedom, 0, 0.95 * n)))
        else:
            if step > previous:
                damping = max(0.8 * damping, min(damping, 0.3))
            state = _State(
                state.matrix + damping * change,
                (1 - damping) * state.measured + damping * image.measured,
                image.message,
                image.freedom,
            )
        previous = step
    return certified(sensing, labels, regularisation, factor, iteration, tolerance, "amp")


def _image(
    sensing: Sensing, labels: Array, regularisation: float, state: _State
) -> tuple[_State, Array, float] | None:
    """State after one undamped iteration, its factor and the norm of M; None if M overflows."""
    n, d = sensing.n_samples, sensing.dimension
    # r <- y - A(S) + (df / n) r,  M = S + (d / 2n) A*(r),  S <- (M - lambda epsilon)_+,
    # 1/epsilon = 4 (n - df) / d²  (quadratic 6)
    message = labels - state.measured + state.freedom / n * state.message
    noisy = state.matrix + d / (2 * n) * sensing.adjoint(message)
    xp = namespace(noisy)
    size = float(xp.linalg.matrix_norm(noisy))
    if not np.isfinite(size):
        return None
    threshold = regularisation * d**2 / (4 * (n - state.freedom))
    factor, values = positive_part(noisy, threshold)
    # Far from the fixed point df can exceed n, and the threshold would be negative: df is capped.
    freedom = min(degrees_of_freedom(values, xp.sum(factor**2, axis=0)), 0.95 * n)
    return _State(factor @ factor.T, sensing.forward(factor), message, freedom), factor, size
