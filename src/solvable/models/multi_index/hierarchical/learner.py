"""Gradient descent on the first layer of a quadratic network, the dynamics behind the estimator."""

from __future__ import annotations

import numpy as np

from solvable.arrays import Array, as_on, random_stream, to_numpy
from solvable.errors import NotConverged
from solvable.fitting.gradient_descent import descend, full_batch
from solvable.networks.two_layer import TwoLayerNetwork

STEPS = 10
"""Number of steps of gradient descent."""


def first_layer_directions(
    X: Array, weights: np.ndarray, count: int, *, learning_rate: float, seed: int
) -> np.ndarray | None:
    """Leading directions of the change of the first layer, (d, count); None if training diverges."""
    # f(x) = (1/m) sum_j a_j (w_j . x)² is fitted to T(y) with m = 2 d neurons: an orthonormal basis with
    # a_j = 1, and the same basis with a_j = -1, so that f = 0 at the start. While f is small, a step is
    # w_j <- (I + 2 eta a_j D) w_j with the second moment D of (multi-index 7)   (multi-index 33).
    d = X.shape[1]
    basis = np.linalg.qr(random_stream(seed, "first layer").standard_normal((d, d)))[0]
    start = as_on(np.concatenate([basis, basis], axis=1), X)
    signs = as_on(np.repeat([1.0, -1.0], d), X)
    network = TwoLayerNetwork("square", 1 / (2 * d))
    states = descend(
        network.gradient,
        (start, signs),
        full_batch(X, as_on(weights, X)),
        learning_rate=learning_rate,
        at=[STEPS],
    )
    try:
        (state,) = states
    except NotConverged:
        return None
    change = to_numpy(state.weights[0] - start).astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        gram = change @ change.T
    if not np.isfinite(gram).all():
        return None
    return np.asarray(np.linalg.eigh(gram)[1][:, ::-1][:, :count])
