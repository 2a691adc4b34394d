"""Likelihood of a restricted Boltzmann machine with a few hidden units.

P(v, h) = P(v) P(h) exp(v^T W h / sqrt(d)) with many visible units of mean 0 and variance 1 has the
log-likelihood sum_mu eta_1(W^T x_mu / sqrt(d)) - n eta_2(W^T W / d) (boltzmann 1).
"""

from __future__ import annotations

from functools import lru_cache
from itertools import product
from typing import Literal

import numpy as np

Units = Literal["rademacher", "gaussian"]

UNITS = ("rademacher", "gaussian")
"""Allowed prior distributions of the hidden units."""


@lru_cache(maxsize=8)
def sign_states(hidden_units: int) -> np.ndarray:
    """All states (2^(k-1), k) of k signs, up to a global sign."""
    rest = list(product((1.0, -1.0), repeat=hidden_units - 1))
    return np.column_stack([np.ones(len(rest)), np.array(rest).reshape(len(rest), -1)])


def field_energy(z: np.ndarray, units: Units) -> np.ndarray:
    """Energy eta_1 of the hidden units at fields z (n, k)."""
    if units == "gaussian":
        # eta_1 = |z|² / 2   (boltzmann 1)
        return np.asarray(np.sum(z**2, axis=1) / 2)
    # eta_1 = sum_a log cosh z_a, in a form without overflow   (boltzmann 1)
    size = np.abs(z)
    return np.asarray(np.sum(size + np.log1p(np.exp(-2 * size)) - np.log(2), axis=1))


def field_mean(z: np.ndarray, units: Units) -> np.ndarray:
    """Gradient g of eta_1, which is the mean of the hidden units given their fields."""
    return np.tanh(z) if units == "rademacher" else np.asarray(z)


def field_variance(z: np.ndarray, units: Units) -> np.ndarray:
    """Diagonal entries of the second derivative of eta_1; all other entries are 0."""
    return 1 - np.tanh(z) ** 2 if units == "rademacher" else np.ones_like(z)


def coupling_energy(Q: np.ndarray, units: Units) -> float:
    """Energy eta_2 at couplings Q (k, k) between hidden units; infinite if the integral diverges."""
    if units == "gaussian":
        # eta_2 = -log det(I - Q) / 2
        eigenvalues = np.linalg.eigvalsh(Q)
        return float(-np.log1p(-eigenvalues).sum() / 2) if eigenvalues.max() < 1 else np.inf
    energies = sign_energies(Q)
    top = energies.max()
    return float(top + np.log(np.mean(np.exp(energies - top))))


def coupling_moment(Q: np.ndarray, units: Units) -> np.ndarray:
    """Moment H = <h h^T> under P(h) exp(h^T Q h / 2); for two signs, the entry H_12 is tanh Q_12."""
    if units == "gaussian":
        return np.linalg.inv(np.eye(len(Q)) - Q)
    energies, states = sign_energies(Q), sign_states(len(Q))
    weights = np.exp(energies - energies.max())
    return np.asarray((states.T * (weights / weights.sum())) @ states)


def sign_energies(Q: np.ndarray) -> np.ndarray:
    """Energies h^T Q h / 2 of the sign states."""
    states = sign_states(len(Q))
    return np.asarray(np.sum((states @ Q) * states, axis=1) / 2)


def sample_scores(X: np.ndarray, W: np.ndarray, units: Units) -> np.ndarray:
    """Log-likelihood of each sample, minus its log-likelihood with weights 0 (boltzmann 1)."""
    d = X.shape[1]
    return field_energy(X @ W / np.sqrt(d), units) - coupling_energy(W.T @ W / d, units)


def gradient(X: np.ndarray, W: np.ndarray, units: Units, weight_decay: float) -> np.ndarray:
    """Gradient of the log-likelihood with weight decay, times d / n (boltzmann 2)."""
    n, d = X.shape
    H = coupling_moment(W.T @ W / d, units) + weight_decay * np.eye(W.shape[1])
    # gradient (1 / (alpha sqrt(d))) X^T g(X W / sqrt(d)) - W (H + l)   (boltzmann 2)
    return np.asarray(X.T @ field_mean(X @ W / np.sqrt(d), units) * (np.sqrt(d) / n) - W @ H)


def couplings_given(
    G: np.ndarray, b: np.ndarray, ratio: float, weight_decay: float, Q: np.ndarray
) -> np.ndarray:
    """Solve V = (alpha (H(V G V) + l) - b)^-1 for sign units (boltzmann 5); NaN on failure."""
    # Here W = Gamma V and G = Gamma^T Gamma / d. If H were taken from the previous step, units with large
    # norms would rotate about each other forever.
    k = len(Q)
    decay = weight_decay * np.eye(k)
    if k == 1:
        return 1 / (ratio * (1 + weight_decay) - b)
    from scipy.optimize import root

    upper = np.triu_indices(k)

    def matrix(entries: np.ndarray) -> np.ndarray:
        full = np.zeros((k, k))
        full[upper] = entries
        return np.asarray(full + full.T - np.diag(np.diag(full)))

    def couplings(Q: np.ndarray) -> np.ndarray:
        return np.linalg.inv(ratio * (coupling_moment(Q, "rademacher") + decay) - b)

    def residual(entries: np.ndarray) -> np.ndarray:
        V = couplings(matrix(entries))
        return np.asarray((V @ G @ V)[upper] - entries)

    try:
        solution = root(residual, Q[upper], method="hybr", options={"xtol": 1e-12})
        V = couplings(matrix(solution.x))
    except np.linalg.LinAlgError:
        return np.full((k, k), np.nan)
    settled = np.abs(solution.fun).max() <= 1e-8 * (1 + np.abs(solution.x).max())
    return (V + V.T) / 2 if settled else np.full((k, k), np.nan)
