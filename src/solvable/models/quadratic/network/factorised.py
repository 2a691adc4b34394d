"""L-BFGS over the weights of a quadratic network."""

from __future__ import annotations

import numpy as np

from solvable.arrays import Array, namespace, random_stream
from solvable.models.quadratic.network.sensing import Sensing
from solvable.models.quadratic.network.solvers import QuadraticSolution, certified


def solve_factorised(
    sensing: Sensing,
    labels: Array,
    regularisation: float,
    *,
    width: int | None = None,
    tolerance: float = 1e-6,
    max_iterations: int = 5_000,
    seed: int = 0,
) -> QuadraticSolution:
    """Train the weights of a network of this width by L-BFGS."""
    # min over B of shape (d, p) of |y - A(B B^T)|² / d² + lambda |B|_F² / d  (arXiv:2606.28242). For p of
    # at least the rank of the minimiser the minima are those of (quadratic 1); for smaller p `converged`
    # is False. The start is random, as B = 0 is a saddle. The objective along a direction is a quartic
    # with an exact minimum, so that an iteration takes two products of p columns and one of d.
    d, labels = sensing.dimension, sensing.asarray(labels)
    xp = namespace(labels)
    columns = d if width is None else min(width, d)
    spread = float(xp.sqrt(xp.mean((labels - xp.mean(labels)) ** 2)))
    start = random_stream(seed, "factor").standard_normal((d, columns))
    factor = sensing.asarray(start * np.sqrt(max(spread, 1e-12) / columns / d))
    residual = labels - sensing.forward(factor)
    steps: list[tuple[Array, Array, float]] = []
    smallest = 0.1 * tolerance * regularisation / d
    gradient, iteration = weight_gradient(sensing, regularisation, factor, residual), 0
    for iteration in range(1, max_iterations + 1):
        if float(xp.max(xp.abs(gradient))) <= smallest:
            break
        direction = _direction(gradient, steps)
        # The direction gets the length of the weights, so that differences of products keep their digits.
        direction = direction * float(xp.sqrt(xp.sum(factor**2) / xp.sum(direction**2)))
        along = sensing.forward(direction)
        across = sensing.forward(factor + direction) - (labels - residual) - along
        length = _line_minimum(
            [float(a @ b) / d**2 for a, b in (
                (residual, across), (across, across), (residual, along), (across, along), (along, along),
            )],
            regularisation / d * float(xp.sum(factor * direction)),
            regularisation / d * float(xp.sum(direction**2)),
        )  # fmt: skip
        if length == 0:  # stop if the decrease is below rounding
            break
        factor = factor + length * direction
        residual = residual - length * across - length**2 * along
        if iteration % 50 == 0:
            residual = labels - sensing.forward(factor)
        new = weight_gradient(sensing, regularisation, factor, residual)
        # The last twenty steps estimate the inverse Hessian.
        step, change = (xp.reshape(x, (-1,)) for x in (length * direction, new - gradient))
        steps = [*steps, (step, change, 1 / float(step @ change))][-20:]
        gradient = new
    factor = _orthogonal_factor(factor, spread)
    return certified(sensing, labels, regularisation, factor, iteration, tolerance, "factorised")


def weight_gradient(
    sensing: Sensing, regularisation: float, factor: Array, residual: Array
) -> Array:
    """Gradient of the objective with respect to the weights B."""
    d = sensing.dimension
    return 2 * (regularisation / d * factor - 2 / d**2 * sensing.adjoint(residual) @ factor)


def _direction(gradient: Array, steps: list[tuple[Array, Array, float]]) -> Array:
    """Quasi-Newton direction by the two-loop recursion of L-BFGS."""
    xp = namespace(gradient)
    direction, shares = -xp.reshape(gradient, (-1,)), []
    for step, change, inverse in reversed(steps):
        share = inverse * float(step @ direction)
        shares.append(share)
        direction = direction - share * change
    if steps:
        _, change, inverse = steps[-1]
        direction = direction / (inverse * float(change @ change))
    for (step, change, inverse), share in zip(steps, reversed(shares), strict=True):
        direction = direction + (share - inverse * float(change @ direction)) * step
    return xp.reshape(direction, gradient.shape)


def _line_minimum(products: list[float], lean: float, growth: float) -> float:
    """Positive t that minimises |r - t a - t² b|² / d² + lambda |B + t D|² / d."""
    ra, aa, rb, ab, bb = products
    slope = np.array([4 * bb, 6 * ab, 2 * (aa - 2 * rb) + 2 * growth, 2 * (lean - ra)])
    if not slope[3] < 0:
        return 0.0
    roots = np.roots(slope)
    real = roots[np.abs(roots.imag) <= 1e-7 * np.abs(roots)].real
    quartic = np.append(slope / [4, 3, 2, 1], 0.0)
    return min(
        (float(t) for t in real if t > 0), key=lambda t: float(np.polyval(quartic, t)), default=0.0
    )


def _orthogonal_factor(weights: Array, scale: float) -> Array:
    xp = namespace(weights)
    left, strengths, _ = xp.linalg.svd(weights, full_matrices=False)
    # The penalty shrinks superfluous columns geometrically, never to exactly 0.
    size = max(float(strengths[0]) ** 2, scale, np.finfo(float).tiny)
    kept = int(xp.count_nonzero(strengths**2 > 1e-9 * size))
    return left[:, :kept] * strengths[:kept]
