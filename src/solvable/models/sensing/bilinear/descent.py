"""Gradient descent over both factors from random starts, and the average of the estimates."""

from __future__ import annotations

import numpy as np

from solvable.errors import NotConverged

STEPS = 1_000
"""Number of steps of gradient descent; twice as many change the error of the average by 2 %."""


def descended(
    inputs: np.ndarray,
    shape: tuple[int, int],
    y: np.ndarray,
    rank: int,
    *,
    starts: int,
    learning_rate: float,
    rng: np.random.Generator,
    steps: int = STEPS,
) -> np.ndarray:
    """Estimates (starts, d, L) after gradient descent on sum (f - y)² / 4 from draws of the prior."""
    (d, L), X = shape, np.asarray(inputs, dtype=np.float32)
    size = np.sqrt(d * L)
    U: np.ndarray = rng.standard_normal((starts, d, rank), dtype=np.float32)
    V: np.ndarray = rng.standard_normal((starts, rank, L), dtype=np.float32)
    labels, root = y[:, 0].astype(np.float32), np.float32(rank**-0.5)
    unit, rate = np.float32(1 / size), np.float32(learning_rate / 2)
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(steps):
            # f = sum X U V / sqrt(r d L), the labels' scale
            residual = (root * unit) * (X @ (U @ V).reshape(starts, -1).T) - labels[:, None]
            G = (residual.T @ X).reshape(starts, d, L) * (unit * root * rate)
            U, V = U - G @ V.transpose(0, 2, 1), V - U.transpose(0, 2, 1) @ G
    found = np.asarray(U @ V, dtype=float) * float(root) / np.sqrt(size)
    if not np.isfinite(found).all():
        raise NotConverged(
            f"gradient descent diverged at learning_rate {learning_rate:g}; lower learning_rate.",
            {"learning_rate": learning_rate, "steps": steps},
        )
    return found
