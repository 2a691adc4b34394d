"""Online gradient descent of a quadratic network on fresh samples of a quadratic form."""

from __future__ import annotations

import numpy as np

from solvable.errors import NotConverged
from solvable.fitting.gradient_descent import descend, fresh_batches


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
