"""Overlaps and norms of the weights after each step of gradient ascent and of message passing."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from solvable.arrays import random_stream
from solvable.models.boltzmann.likelihood import couplings_given
from solvable.models.boltzmann.proximal import clipped, proximal, responses

START_OVERLAPS = (0.3, 0.05)
"""Overlaps of the starting weights: of a unit with its own spike, and with any other spike."""


@dataclass(frozen=True)
class Moments:
    """Overlaps M = W^T W* / d, shape (k, r), and products Q = W^T W / d, shape (k, k)."""

    M: np.ndarray
    Q: np.ndarray

    @property
    def cosines(self) -> np.ndarray:
        """Cosine of each unit with each spike, shape (k, r)."""
        return np.asarray(self.M / np.sqrt(np.diag(self.Q))[:, None])

    @property
    def span_cosines(self) -> np.ndarray:
        """Cosine of each spike with the span of the units."""
        return np.sqrt(np.sum(self.M * np.linalg.solve(self.Q, self.M), axis=0))


def start_moments(strengths: tuple[float, ...], hidden_units: int) -> Moments:
    """Moments of the starting weights: unit 1 overlaps with the strongest spike, unit 2 with the next."""
    own, other = START_OVERLAPS
    M = np.full((hidden_units, len(strengths)), other)
    for unit, spike in enumerate(np.argsort(strengths)[::-1][:hidden_units]):
        M[unit, spike] = own
    return Moments(M, np.eye(hidden_units))


def ascent_path(
    strengths: tuple[float, ...],
    sample_ratio: float,
    steps: int,
    start: Moments,
    *,
    rate: float = 0.5,
    weight_decay: float = 0.0,
    paths: int = 16_000,
) -> list[Moments]:
    """Return the moments of gradient ascent by mean-field theory, at the start and after each step."""
    # w' = (1 - e) w + e V gamma, gamma = X^T tanh(X w / sqrt(d)) / (alpha sqrt(d))   (boltzmann 14)
    (k, r), T, alpha = start.M.shape, steps, sample_ratio
    root = np.sqrt(strengths)
    u, normals = _drawn(r, k * max(T, 1), paths // k)
    count = u.shape[1]
    xi, z, g = (np.zeros((T, k, count)) for _ in range(3))
    D = np.zeros((T, T, k, k, count), dtype=np.float32)  # derivatives dg(z_t) / dxi_s
    M, C, R = (np.zeros(shape) for shape in ((T + 1, k, r), *[(T + 1, T + 1, k, k)] * 2))
    C_g = np.zeros((T, T, k, k))
    M[0], C[0, 0] = start.M, start.Q
    for t in range(T):
        past = slice(0, t + 1)
        xi[t] = _last_rows(C[past, past]) @ normals[: k * (t + 1)]
        # z_t = M_t Lambda^(1/2) u + xi_t + sum_{s<t} R_w(t, s) g(z_s)   (boltzmann 14)
        z[t] = (M[t] * root) @ u + xi[t] + np.tensordot(R[t, :t], g[:t], axes=((0, 2), (0, 1)))
        g[t] = np.tanh(z[t])
        slope = 1 - g[t] ** 2
        # D(t, s) = g'(z_t) (delta_ts + sum_{s<=s'<t} R_w(t, s') D(s', s))
        if t:
            chained = np.tensordot(R[t, :t], D[:t, :t], axes=((0, 2), (0, 2)))
            D[t, :t] = np.swapaxes(slope[:, None, None] * chained, 0, 1)
        D[t, t, range(k), range(k)] = slope
        R_g = D[t, past].mean(axis=-1)
        C_g[t, past] = np.tensordot(g[past], g[t], axes=(2, 1)).transpose(0, 2, 1) / count
        C_g[past, t] = np.swapaxes(C_g[t, past], 1, 2)
        # P = <gamma w*^T>, K_s = <gamma w_s^T> and G = <gamma gamma^T>   (boltzmann 15)
        push = g[t] @ u.T / count * root
        P = push + np.tensordot(R_g, M[past], axes=((0, 2), (0, 1)))
        heard = np.einsum("xab,sxcb->sac", C_g[t, past], R[past, past])
        K = push @ np.swapaxes(M[past], 1, 2) + np.einsum("xab,xsbc->sac", R_g, C[past, past])
        K += heard
        G = push @ P.T + C_g[t, t] / alpha + np.einsum("sab,scb->ac", heard, R_g)
        G += np.einsum("sab,scb->ac", R_g, K)
        V = couplings_given((G + G.T) / 2, np.zeros((k, k)), 1.0, weight_decay, C[t, t])
        gain = rate * V
        M[t + 1] = (1 - rate) * M[t] + gain @ P
        R[t + 1, past] = (1 - rate) * R[t, past]
        R[t + 1, past] += gain @ np.einsum("xab,xsbc->sac", R_g, R[past, past])
        R[t + 1, t] += gain / alpha
        C[t + 1, past] = (1 - rate) * C[t, past] + gain @ K
        C[past, t + 1] = np.swapaxes(C[t + 1, past], 1, 2)
        moved = (1 - rate) * gain @ K[t]
        C[t + 1, t + 1] = (1 - rate) ** 2 * C[t, t] + moved + moved.T + gain @ G @ gain
    return [Moments(M[t], C[t, t]) for t in range(T + 1)]


def message_path(
    strengths: tuple[float, ...],
    sample_ratio: float,
    steps: int,
    start: Moments,
    *,
    weight_decay: float = 0.0,
    paths: int = 16_000,
) -> list[Moments]:
    """Return the moments of message passing by state evolution, at the start and after each step."""
    (k, r), alpha, root = start.M.shape, sample_ratio, np.sqrt(strengths)
    u, normals = _drawn(r, k, paths)
    V: np.ndarray = np.eye(k) * 0.3 / (1 + weight_decay)
    path = [start]
    z: np.ndarray | None = None
    for _ in range(steps):
        M, Q = path[-1].M, path[-1].Q
        # omega = M Lambda^(1/2) u + Q^(1/2) xi   (boltzmann 16)
        omega = ((M * root) @ u + _last_rows(Q[None, None]) @ normals).T
        z = proximal(omega, V, omega if z is None else z)
        g = np.tanh(z)
        b = alpha * responses(z, V, "rademacher").mean(axis=0)
        pull = alpha * (g.T @ u.T) / len(g) * root
        G = pull @ pull.T + alpha * (g.T @ g) / len(g)
        V = clipped(couplings_given(G, b, alpha, weight_decay, Q))
        path.append(Moments(V @ pull, V @ G @ V))
    return path


def _last_rows(C: np.ndarray) -> np.ndarray:
    """Rows of the last time in the Cholesky root of a covariance (t, t, k, k)."""
    times, k = C.shape[0], C.shape[2]
    flat = C.transpose(0, 2, 1, 3).reshape(times * k, times * k)
    # scale to a correlation matrix, because norms differ by orders of magnitude with weight decay
    size = np.sqrt(np.diag(flat))
    root = np.linalg.cholesky(flat / np.outer(size, size) + 1e-13 * np.eye(len(flat)))
    return np.asarray(size[-k:, None] * root[-k:])


def _drawn(spikes: int, rows: int, paths: int) -> tuple[np.ndarray, np.ndarray]:
    """All states of the latent signs up to a global sign, with antithetic normal numbers."""
    # antithetic pairs make odd moments, on which a small overlap depends, exactly 0
    states = np.array([(1.0, *rest) for rest in product((1.0, -1.0), repeat=spikes - 1)]).T
    count = max(paths // (2 * states.shape[1]), 4 * rows)
    drawn: np.ndarray = random_stream("ascent paths").standard_normal((rows, count))
    drawn = np.linalg.solve(np.linalg.cholesky(drawn @ drawn.T / count), drawn)
    drawn = np.concatenate([drawn, -drawn], axis=1)
    return np.repeat(states, 2 * count, axis=1), np.tile(drawn, states.shape[1])
