"""Test error of the Bayes predictor, and the samples from which weights are recovered exactly."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from solvable.models.attention.indexed.parameters import Activation, IndexedParameters


def recovery_ratio(parameters: IndexedParameters) -> float | None:
    """Samples over d^2 that recover the weights exactly; None where no number does."""
    if parameters.noise or parameters.activation == "hardmax":
        return None
    rho = min(parameters.rank / parameters.dimension, 1.0)
    # Numbers that a sample tells, against those of a symmetric matrix of this rank
    told = len(parameters.channel.variances) - (parameters.activation == "softmax")
    return (rho - rho**2 / 2) / told


def bayes_test_error(parameters: IndexedParameters, error: float) -> float:
    """Mean square |A - E[A | samples]|^2 of a fresh sample's attention matrix without noise."""
    T = parameters.tokens
    if parameters.activation == "linear":
        # All T^2 logits: 2 E on the diagonal, E elsewhere
        return T * (T + 1) * error
    Q = parameters.signal.second_moment
    return T * _row_error(parameters.activation, T, Q, min(max(error / Q, 0.0), 1.0))


@lru_cache(maxsize=4096)
def _row_error(activation: Activation, tokens: int, second_moment: float, share: float) -> float:
    # h given what is known of it, twice: E |a - E a|^2 = E |a(h) - a(h')|^2 / 2, with rows h and h' of
    # variance v Q and correlation 1 - s
    if activation == "hardmax" and tokens == 2:
        return float(np.arccos(1 - share) / np.pi)
    root = np.sqrt(second_moment) * np.append(np.sqrt(2), np.ones(tokens - 1))
    both = _normals(2 * tokens)
    common, apart = both[:, :tokens] * root, both[:, tokens:] * root
    # of unit correlation with each other at s = 0: h, h' = sqrt(1 - s/2) c +- sqrt(s/2) e
    rows = [np.sqrt(1 - share / 2) * common + sign * np.sqrt(share / 2) * apart for sign in (1, -1)]
    if activation == "hardmax":
        return float(np.mean(rows[0].argmax(axis=1) != rows[1].argmax(axis=1)))
    one, two = (_softmax(row) for row in rows)
    return float(np.mean(np.sum((one - two) ** 2, axis=1)) / 2)


def _softmax(row: np.ndarray) -> np.ndarray:
    weights = np.exp(row - row.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


@lru_cache(maxsize=16)
def _normals(columns: int) -> np.ndarray:
    """Scrambled Sobol points as standard normal variables, (2^14, columns)."""
    from scipy.special import ndtri
    from scipy.stats import qmc

    points = qmc.Sobol(columns, seed=0).random(2**14)
    return np.asarray(ndtri(np.clip(points, 1e-12, 1 - 1e-12)))
