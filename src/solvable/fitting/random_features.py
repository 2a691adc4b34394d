"""Ridge regression on random polynomial features of the inputs."""

from __future__ import annotations

import numpy as np

from solvable.arrays import random_stream

RIDGES = 10.0 ** np.arange(-3, 5)
"""Ridges relative to the number of rows, of which a quarter of the rows chooses one."""


def random_feature_error(
    X: np.ndarray,
    y: np.ndarray,
    test: tuple[np.ndarray, np.ndarray],
    *,
    degree: int,
    width: int = 1024,
) -> float:
    """Normalised test error of ridge regression on features (1 + w.x)^degree with random unit w."""
    from scipy.linalg import cho_factor, cho_solve

    directions = random_stream(0, "random features").standard_normal((X.shape[1], width))
    directions = (directions / np.linalg.norm(directions, axis=0)).astype(X.dtype)

    def features(rows: np.ndarray) -> np.ndarray:
        base = 1 + rows @ directions
        table = base.copy()
        for _ in range(degree - 1):  # a power takes ten times as long as products
            table *= base
        return table

    fitted = len(y) - len(y) // 4
    table = features(X)
    centre, scale = table[:fitted].mean(axis=0), table[:fitted].std(axis=0)
    table = (table - centre) / scale
    offset = y[:fitted].mean()
    gram = (table[:fitted].T @ table[:fitted]).astype(np.float64)
    moment = (table[:fitted].T @ (y[:fitted] - offset)).astype(np.float64)
    ridges = RIDGES[:, None, None] * fitted * np.eye(width)
    solutions = np.stack([cho_solve(cho_factor(gram + r), moment) for r in ridges], axis=1)
    losses = np.mean((table[fitted:] @ solutions + offset - y[fitted:, None]) ** 2, axis=0)
    chosen = solutions[:, np.argmin(losses)]
    outputs = ((features(test[0]) - centre) / scale) @ chosen + offset
    return float(np.mean((outputs - test[1]) ** 2) / test[1].var())
