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
    directions = random_stream(0, "random features").standard_normal((X.shape[1], width))
    directions = (directions / np.linalg.norm(directions, axis=0)).astype(X.dtype)
    fitted = len(y) - len(y) // 4
    table = (1 + X @ directions) ** degree
    centre, scale = table[:fitted].mean(axis=0), table[:fitted].std(axis=0)
    table = (table - centre) / scale
    offset = y[:fitted].mean()
    values, vectors = np.linalg.eigh((table[:fitted].T @ table[:fitted]).astype(np.float64))
    projected = vectors.T @ (table[:fitted].T @ (y[:fitted] - offset))
    held = table[fitted:] @ vectors
    seen = ((1 + test[0] @ directions) ** degree - centre) / scale @ vectors
    solutions = [projected / (np.maximum(values, 0) + ridge * fitted) for ridge in RIDGES]
    losses = [np.mean((held @ s + offset - y[fitted:]) ** 2) for s in solutions]
    chosen = solutions[int(np.argmin(losses))]
    return float(np.mean((seen @ chosen + offset - test[1]) ** 2) / test[1].var())
