"""Gradient descent over the factor of the weights from random starts, and its estimates."""

from __future__ import annotations

import numpy as np

from solvable.errors import NotConverged

STEPS = 600
"""Number of steps of gradient descent; five times as many change the error of the average by 5 %."""

LEARNING_RATE = 0.3
"""Learning rate on the sum of squared errors; at 1.2 the training error no longer falls to 0."""


def descended(
    tokens: np.ndarray, attention: np.ndarray, rank: int, starts: int, rng: np.random.Generator
) -> np.ndarray:
    """Estimates (starts, d, d) of the weights from attention matrices (n, T, T) and tokens (n, T, d)."""
    # Each start draws the factor W from the prior and descends on the sum of |y - softmax(h(W W^T))|².
    n, T, d = tokens.shape
    X, y = tokens.reshape(n * T, d).astype(np.float32), attention.astype(np.float32)
    unit = np.float32(1 / (np.sqrt(rank * d) * np.sqrt(d)))  # logits are unit x^T W W^T x
    W: np.ndarray = rng.standard_normal((starts, d, rank), dtype=np.float32)
    diagonal = np.eye(T, dtype=np.float32)
    squares = []  # mean squared training error before each step
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(STEPS):
            flat = X @ W.transpose(1, 0, 2).reshape(d, -1)
            P = flat.reshape(n, T, starts, rank).transpose(2, 0, 1, 3)
            trace = np.sum(W**2, axis=(1, 2))[:, None, None, None]
            logits = unit * (P @ P.transpose(0, 1, 3, 2) - trace * diagonal)
            weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
            a = weights / weights.sum(axis=-1, keepdims=True)
            error = a - y
            squares.append(float(np.mean(error**2)))
            # derivative 2 a (e - <e>_a) of the loss in the logits, and of the logits in W
            push = 2 * a * (error - np.sum(a * error, axis=-1, keepdims=True))
            push = push + push.transpose(0, 1, 3, 2)
            pulled = (push @ P).transpose(1, 2, 0, 3).reshape(n * T, -1)
            slope = (X.T @ pulled).reshape(d, starts, rank).transpose(1, 0, 2)
            W = W - np.float32(LEARNING_RATE) * unit * (
                slope - np.einsum("knaa->k", push)[:, None, None] * W
            )
    left = squares[-1] / squares[0]
    if not (np.isfinite(W).all() and left < 0.05):
        raise NotConverged(
            f"gradient descent leaves the share {left:.2g} of the training error after {STEPS} steps; "
            "allowed: below 0.05. Lower sample_ratio.",
            {"training_error": squares[-1], "learning_rate": LEARNING_RATE},
        )
    factor = W.astype(float) / (rank * d) ** 0.25
    return factor @ factor.transpose(0, 2, 1)
