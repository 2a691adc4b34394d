"""Plain gradient descent over the weights of a quadratic network."""

from __future__ import annotations

import numpy as np

from solvable.arrays import Array, namespace, random_stream
from solvable.errors import NotConverged
from solvable.fitting.gradient_descent import descend, full_batch
from solvable.models.quadratic.network.factorised import weight_gradient
from solvable.models.quadratic.network.sensing import Sensing
from solvable.models.quadratic.network.solvers import (
    QuadraticSolution,
    certified,
    lipschitz_constant,
    objective,
)


def solve_by_descent(
    sensing: Sensing,
    labels: Array,
    regularisation: float,
    *,
    width: int,
    tolerance: float = 1e-6,
    max_iterations: int = 30_000,
    seed: int = 0,
) -> QuadraticSolution:
    """Descend from small random weights, at the largest of a few learning rates that is stable."""
    d, labels = sensing.dimension, sensing.asarray(labels)
    draws = random_stream(seed, "weights").standard_normal((d, width))
    start = sensing.asarray(0.1 * draws / np.sqrt(d))
    lipschitz = lipschitz_constant(sensing)
    # The curvature is about 4 L s at weights of squared norm s. A gradient step from S = 0 gives a first
    # value of s, which may be too small.
    first = sensing.adjoint(labels) * (2 / (d**2 * lipschitz))
    size = max(float(namespace(first).linalg.eigvalsh(first)[-1]), np.finfo(float).tiny)
    learning_rate = 0.75 / (lipschitz * size + regularisation / d)
    while True:
        try:
            factor, steps = _descended(
                sensing, labels, regularisation, start, learning_rate, tolerance, max_iterations
            )
        except NotConverged:
            learning_rate /= 2
            continue
        return certified(
            sensing, labels, regularisation, factor, steps, tolerance, "gradient-descent"
        )


def _descended(
    sensing: Sensing,
    labels: Array,
    regularisation: float,
    start: Array,
    learning_rate: float,
    tolerance: float,
    max_iterations: int,
) -> tuple[Array, int]:
    """Weights at which the largest slope is small, and the number of steps."""

    def gradient(weights: tuple[Array]) -> tuple[Array]:
        residual = labels - sensing.forward(weights[0])
        return (weight_gradient(sensing, regularisation, weights[0], residual),)

    smallest = 0.1 * tolerance * regularisation / sensing.dimension
    checks = range(101, max_iterations + 1, 101)  # an odd period shows oscillations of period two
    states = descend(gradient, (start,), full_batch(), learning_rate=learning_rate, at=checks)
    lowest = np.inf
    for state in states:
        value = objective(sensing, state.weights[0], labels, regularisation)
        if value > lowest * (1 + 1e-9):  # rates just above the stable ones oscillate without end
            raise NotConverged(f"the objective rises at step {state.step}", {"step": state.step})
        lowest = value
        slope = gradient((state.weights[0],))[0]
        if float(namespace(slope).max(abs(slope))) <= smallest:
            break
    return state.weights[0], state.step
