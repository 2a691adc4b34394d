"""Message passing for the quadratic network's convex problem: fewest passes over isotropic samples."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from solvable.models.quadratic.sensing import Sensing
from solvable.models.quadratic.solvers import QuadraticSolution, certified, positive_part


class _State(NamedTuple):
    """What an iteration starts from; linear mixtures of states are states."""

    matrix: np.ndarray
    measured: np.ndarray
    message: np.ndarray
    freedom: float


@dataclass
class _Extrapolation:
    """Mixture of the last images whose steps cancel best (Anderson), at the price of no product."""

    memory: int
    images: list[_State] = field(default_factory=list)
    steps: list[np.ndarray] = field(default_factory=list)

    def add(self, image: _State, step: np.ndarray) -> None:
        self.images = [*self.images, image][-self.memory - 1 :]
        self.steps = [*self.steps, step.ravel()][-self.memory - 1 :]

    def forget(self) -> None:
        self.images, self.steps = self.images[-1:], self.steps[-1:]

    def mixture(self) -> _State:
        weights = np.zeros(len(self.steps))
        weights[-1] = 1
        if len(weights) > 1:
            differences = np.diff(self.steps, axis=0)
            gram = differences @ differences.T
            # Steps that have become parallel leave the mixture undetermined.
            gram.flat[:: len(gram) + 1] *= 1 + 1e-12
            slope = np.linalg.lstsq(gram, differences @ self.steps[-1], rcond=1e-14)[0]
            weights[1:] -= slope
            weights[:-1] += slope
        parts = [
            sum(w * part for w, part in zip(weights, column, strict=True))
            for column in zip(*self.images, strict=True)
        ]
        return _State(*parts)


def degrees_of_freedom(strengths: np.ndarray, shrunk: np.ndarray) -> float:
    """Divergence of the soft threshold of eigenvalues, descending, over symmetric matrices."""
    # df = #{f_i > 0} + sum_{i<j} (f_i - f_j) / (nu_i - nu_j), f = nu - b where above 0 (derived). Two
    # kept eigenvalues contribute exactly one, so that equal ones need no guard.
    kept = len(shrunk)
    gaps = strengths[:kept, None] - strengths[None, kept:]
    return kept * (kept + 1) / 2 + float(np.sum(shrunk[:, None] / gaps))


def solve_amp(
    sensing: Sensing,
    labels: np.ndarray,
    regularisation: float,
    *,
    tolerance: float = 1e-6,
    max_iterations: int = 300,
    damping: float = 0.85,
    memory: int = 8,
) -> QuadraticSolution:
    """Minimise by approximate message passing, whose fixed points satisfy the KKT conditions."""
    # A variant of the algorithm of 2408.03733 (derived), extrapolated after Anderson: `memory` is the
    # number of iterations looked back on, 0 for message passing alone; `damping` the weight of the new
    # matrix in the iterations that are not extrapolated, lowered to no less than 0.3 when a step grows.
    # Flops as FISTA in far fewer iterations; memory 2 (m + 1) (n + d^2) numbers beside the samples.
    # Expects samples that are nearly isotropic; elsewhere it may not contract: `converged` is False.
    n, d = sensing.n_samples, sensing.dimension
    state = _State(np.zeros((d, d)), np.zeros(n), np.zeros(n), 0.0)
    history = _Extrapolation(memory)
    factor, iteration = np.zeros((d, 0)), 0
    best, best_iteration, previous, small_step = np.inf, 0, np.inf, tolerance
    for iteration in range(1, max_iterations + 1):
        advanced = _image(sensing, labels, regularisation, state)
        if advanced is None:
            factor = np.zeros((d, 0))
            break
        image, factor, size = advanced
        change = image.matrix - state.matrix
        step = float(np.linalg.norm(change)) / max(size, np.finfo(float).tiny)
        if step < 0.9 * best:
            best, best_iteration = step, iteration
        if step <= small_step:
            solution = certified(
                sensing, labels, regularisation, factor, iteration, tolerance, "amp"
            )
            if solution.converged:
                return solution
            # A proof costs as much as an iteration: the next when the step has shrunk in proportion.
            small_step = step * tolerance / solution.kkt_residual
        if iteration - best_iteration > 40:  # the smallest step has not shrunk by a tenth
            break
        history.add(image, change)
        if step > 2 * previous:
            history.forget()
        # Until the fifth iteration the map is far from linear.
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
    sensing: Sensing, labels: np.ndarray, regularisation: float, state: _State
) -> tuple[_State, np.ndarray, float] | None:
    """State after one undamped iteration, its factor and the size of M; None where that overflows."""
    n, d = sensing.n_samples, sensing.dimension
    # r <- y - A(S) + (df / n) r,  M = S + (d / 2n) A*(r),  S <- (M - lambda epsilon)_+,
    # 1/epsilon = 4 (n - df) / d^2
    message = labels - state.measured + state.freedom / n * state.message
    noisy = state.matrix + d / (2 * n) * sensing.adjoint(message)
    size = float(np.linalg.norm(noisy))
    if not np.isfinite(size):
        return None
    threshold = regularisation * d**2 / (4 * (n - state.freedom))
    factor, values = positive_part(noisy, threshold)
    # Far from the fixed point the count can exceed n, where the threshold has no meaning.
    freedom = min(degrees_of_freedom(values, np.sum(factor**2, axis=0)), 0.95 * n)
    return _State(factor @ factor.T, sensing.forward(factor), message, freedom), factor, size
