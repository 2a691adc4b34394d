"""Dynamical mean-field theory of gradient ascent for one unit: overlap and norm at every step."""

from __future__ import annotations

import numpy as np

from solvable.arrays import random_stream


def ascent_path(
    spike: float,
    sample_ratio: float,
    steps: int,
    *,
    m: float,
    q: float,
    rate: float = 0.5,
    weight_decay: float = 0.0,
    paths: int = 16_000,
) -> tuple[np.ndarray, np.ndarray]:
    """Return m = w . w* / d and q = |w|² / d of gradient ascent, at the start and after each step."""
    # w' = (1 - e) w + (e / c) X^T tanh(X w / sqrt(d)) / (alpha sqrt(d)), c = 1 + l   (boltzmann 14)
    T, ratio = steps, np.sqrt(spike)
    gain = rate / (1 + weight_decay)
    normals = _normals(T, paths)
    xi, z, g = (np.zeros((max(T, 1), normals.shape[1])) for _ in range(3))
    D = np.zeros((max(T, 1), max(T, 1), normals.shape[1]))  # derivatives dg(z_t) / dxi_s
    overlap, C, R = np.zeros(T + 1), np.zeros((T + 1, T + 1)), np.zeros((T + 1, T + 1))
    R_g, C_g = np.zeros((T, T)), np.zeros((T, T))
    overlap[0], C[0, 0] = m, q
    for t in range(T):
        past = slice(0, t + 1)
        root = np.linalg.cholesky(C[past, past] + 1e-13 * q * np.eye(t + 1))[t]
        xi[t] = root @ normals[past]
        # z_t = sqrt(lambda) m_t u + xi_t + sum_{s<t} R_w(t, s) g(z_s), u = 1 by symmetry   (boltzmann 14)
        z[t] = ratio * overlap[t] + xi[t] + R[t, :t] @ g[:t]
        g[t] = np.tanh(z[t])
        slope = 1 - g[t] ** 2
        # D(t, s) = g'(z_t) (delta_ts + sum_{s<=s'<t} R_w(t, s') D(s', s))
        if t:
            D[t, :t] = slope * np.tensordot(R[t, :t], D[:t, :t], axes=1)
        D[t, t] = slope
        R_g[t, past] = D[t, past].mean(axis=1)
        C_g[t, past] = C_g[past, t] = (g[past] @ g[t]) / g.shape[1]
        mu = g[t].mean()
        # m' = (1 - e) m + (e / c) (sqrt(lambda) mu + sum_s R_g(t, s) m_s)   (boltzmann 15)
        # the covariance C_w and the response R_w obey the same recursion with additional terms
        push = R_g[t, past]
        overlap[t + 1] = (1 - rate) * overlap[t] + gain * (ratio * mu + push @ overlap[past])
        R[t + 1, past] = (1 - rate) * R[t, past] + gain * (push @ R[past, past])
        R[t + 1, t] += gain / sample_ratio
        for s in range(t + 2):
            kept = C[t, s] if s <= t else C[t + 1, t]
            pushed = push @ C[past, s] + C_g[t, past] @ R[s, past]
            C[t + 1, s] = (1 - rate) * kept + gain * (ratio * mu * overlap[s] + pushed)
            C[s, t + 1] = C[t + 1, s]
    return overlap, np.diag(C).copy()


def _normals(steps: int, paths: int) -> np.ndarray:
    """Antithetic normal numbers (steps, paths) with identity sample covariance."""
    # antithetic pairs make odd moments, on which a small overlap depends, exactly 0
    count = max(paths // 2, 4 * steps)
    drawn = random_stream("ascent paths").standard_normal((max(steps, 1), count))
    drawn = np.linalg.solve(np.linalg.cholesky(drawn @ drawn.T / count), drawn)
    return np.concatenate([drawn, -drawn], axis=1)
