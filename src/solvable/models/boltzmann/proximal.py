"""Proximal step of message passing for sign units, its slopes, and the range of couplings."""

from __future__ import annotations

import numpy as np

from solvable.models.boltzmann.likelihood import Units, field_variance


def proximal(omega: np.ndarray, V: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Solve z = omega + V tanh z for every sample by Newton's method."""
    k, identity = len(V), np.eye(len(V))
    for _ in range(100):
        g = np.tanh(z)
        residual = z - omega - g @ V
        e = 1 - g * g
        if k == 1:
            move = residual / (1 - V * e)
        else:
            slopes = identity - V * e[:, None, :]
            move = np.linalg.solve(slopes, residual[:, :, None])[:, :, 0]
        z = z - move
        if np.abs(move).max() < 1e-12 * (1 + np.abs(z).max()):
            break
    return z


def responses(z: np.ndarray, V: np.ndarray, units: Units) -> np.ndarray:
    """Slopes dg/domega = (1 - e V)^-1 e of the samples (n, k, k), with e the curvature of eta_1."""
    e, k = field_variance(z, units), len(V)
    if k == 1:
        return np.asarray((e / (1 - V * e))[:, :, None])
    identity = np.eye(k)
    return np.linalg.solve(identity - e[:, :, None] * V, e[:, :, None] * identity)


def clipped(V: np.ndarray) -> np.ndarray:
    """Clip the eigenvalues of V to (0, 0.995), where the proximal map is unique."""
    if not np.isfinite(V).all():
        return np.eye(len(V)) * 0.5
    values, vectors = np.linalg.eigh(V)
    if values[0] > 0 and values[-1] < 0.995:
        return V
    # an eigenvalue that passed through infinity is negative and is set to the upper limit
    values = np.where(values > 0, np.minimum(values, 0.995), 0.995)
    return np.asarray((vectors * values) @ vectors.T)
