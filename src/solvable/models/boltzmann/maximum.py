"""Maximum likelihood of a Boltzmann machine: message passing, gradient ascent, stability."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvable.models.boltzmann.evolution import LARGEST_COUPLING
from solvable.models.boltzmann.likelihood import Units, coupling_moment, couplings_given, gradient
from solvable.models.boltzmann.proximal import clipped, proximal, responses

NOTHING = 1e-8
"""Weights count as 0 if their squared norm, over the start's squared norm or over 1, is below this."""


@dataclass(frozen=True)
class Maximum:
    """Stationary point of the likelihood with weight decay."""

    weights: np.ndarray  # weights W, shape (d, k)
    replicon: float  # NaN if the couplings of message passing do not exist
    residual: float  # norm of the gradient divided by the norm of the weights
    iterations: int
    settled: bool  # True if the solver converged

    @property
    def norm(self) -> float:
        """Squared norm of the weights W, divided by d."""
        return float(np.sum(self.weights**2) / len(self.weights))

    @property
    def stable(self) -> bool:
        """Return True if the solver converged and the replicon is below 1."""
        return self.settled and self.replicon < 1


def principal_directions(X: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """Leading right singular vectors (d, count) of X."""
    n, d = X.shape
    if min(n, d) <= 400 or count >= min(n, d) // 2:
        if d <= n:
            return np.linalg.eigh(X.T @ X)[1][:, : -count - 1 : -1]
        values, left = np.linalg.eigh(X @ X.T)
        kept = slice(None, -count - 1, -1)
        return np.asarray(X.T @ left[:, kept] / np.sqrt(np.maximum(values[kept], 1e-300)))
    from scipy.sparse.linalg import LinearOperator, eigsh

    moment = LinearOperator((d, d), matvec=lambda v: X.T @ (X @ v), dtype=X.dtype)
    vectors = eigsh(moment, count, tol=1e-6, v0=rng.standard_normal(d))[1]
    return np.asarray(vectors[:, ::-1])


def message_passing(
    X: np.ndarray,
    start: np.ndarray,
    weight_decay: float,
    *,
    max_steps: int = 200,
    tolerance: float = 1e-8,
    damping: float = 0.0,
) -> Maximum:
    """AMP-RBM for sign units; fixed points are stationary points of the likelihood (boltzmann 4)."""
    (n, d), k = X.shape, start.shape[1]
    ratio, W, V = n / d, start, np.eye(k) * 0.3 / (1 + weight_decay)
    g, z, Q = np.zeros((n, k)), None, start.T @ start / d
    change, step, beyond = np.inf, 0, 0
    for step in range(1, max_steps + 1):
        # omega = X W / sqrt(d) - g V, z = omega + V g(z)   (boltzmann 4)
        omega = X @ W / np.sqrt(d) - g @ V
        z = proximal(omega, V, omega if z is None else z)
        g = np.tanh(z)
        # b = (1/d) sum g', Gamma = X^T g / sqrt(d) - W b, W = Gamma V   (boltzmann 4)
        b = responses(z, V, "rademacher").sum(axis=0) / d
        gamma = X.T @ g / np.sqrt(d) - W @ b
        couplings = couplings_given(gamma.T @ gamma / d, b, ratio, weight_decay, Q)
        new_V = clipped(couplings)
        beyond = beyond + 1 if not np.array_equal(couplings, new_V) else 0
        new = gamma @ new_V
        change = float(np.linalg.norm(new - W) / max(float(np.linalg.norm(new)), 1e-300))
        kept = damping if step > 1 else 0.0
        W, V = (1 - kept) * new + kept * W, (1 - kept) * new_V + kept * V
        Q = W.T @ W / d
        if change < tolerance or np.trace(Q) < NOTHING or beyond == 50:
            break
    W = np.zeros_like(W) if np.trace(Q) < NOTHING else W
    return _maximum(X, W, weight_decay, step, change < tolerance)


def ascend(
    X: np.ndarray,
    start: np.ndarray,
    weight_decay: float,
    *,
    rate: float = 1.0,
    max_steps: int = 2_000,
    tolerance: float = 1e-6,
) -> Maximum:
    """Gradient ascent for sign units; the learning rate is `rate` / (1 + l), with `rate` in (0, 1]."""
    # The coupling H(Q) of units is taken implicitly (boltzmann 5 with b = 0): with explicit steps, two
    # units with large norms rotate about each other forever.
    (n, d), W = X.shape, start
    k, residual, steps = start.shape[1], np.inf, 0
    nothing, Q = np.zeros((k, k)), start.T @ start / d
    least = NOTHING * min(1.0, float(np.trace(Q)))
    while steps < max_steps:
        steps += 1
        gamma = X.T @ np.tanh(X @ W / np.sqrt(d)) * (np.sqrt(d) / n)
        V = couplings_given(gamma.T @ gamma / d, nothing, 1.0, weight_decay, Q)
        if not np.isfinite(V).all():
            V = np.linalg.inv(coupling_moment(Q, "rademacher") + weight_decay * np.eye(k))
        new = gamma @ V
        residual = float(np.linalg.norm(new - W) / max(float(np.linalg.norm(W)), 1e-300))
        W = W + rate * (new - W)
        Q = W.T @ W / d
        if residual < tolerance or np.trace(Q) < least:
            break
    W = np.zeros_like(W) if np.trace(Q) < least else W
    return _maximum(X, W, weight_decay, steps, residual < tolerance)


def _maximum(
    X: np.ndarray, W: np.ndarray, weight_decay: float, iterations: int, settled: bool
) -> Maximum:
    """Return the final weights together with the gradient norm and the replicon."""
    if not W.any():
        settled, residual = True, 0.0
    else:
        slope = gradient(X, W, "rademacher", weight_decay)
        residual = float(np.linalg.norm(slope) / np.linalg.norm(W))
    replicon = replicon_of(X, W, "rademacher", weight_decay)
    return Maximum(W, replicon, residual, iterations, settled)


def replicon_of(X: np.ndarray, W: np.ndarray, units: Units, weight_decay: float) -> float:
    """Replicon at weights W (boltzmann 7); NaN if the couplings of message passing do not exist."""
    # solve V = (alpha (H + l) - b(V))^-1 by iteration
    (n, d), k = X.shape, W.shape[1]
    z = X @ W / np.sqrt(d)
    H = coupling_moment(W.T @ W / d, units) + weight_decay * np.eye(k)
    V, change = np.zeros((k, k)), np.inf
    for _ in range(2_000):
        room = n / d * H - responses(z, V, units).sum(axis=0) / d
        if np.linalg.matrix_rank(room) < k:
            return float("nan")
        new = np.linalg.inv(room)
        values = np.linalg.eigvalsh((new + new.T) / 2)
        if values[0] <= 0 or values[-1] >= LARGEST_COUPLING:
            return float("nan")
        change, V = float(np.abs(new - V).max()), (new + new.T) / 2
        if change < 1e-10:
            break
    # largest eigenvalue of alpha E[(V g') x (V g')], a map of covariances   (boltzmann 7)
    VG = V @ responses(z, V, units)
    square = np.einsum("nab,ncd->acbd", VG, VG).reshape(k * k, k * k) / d
    return float(np.abs(np.linalg.eigvals(square)).max())
