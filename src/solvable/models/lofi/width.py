"""Deviation of the Gram matrix of finitely many random features from the features' kernel."""

from __future__ import annotations

import numpy as np

from solvable.hermite import hermite_polynomials
from solvable.operators.activations import dual_kernel, evaluate


def fourth_moment_kernel(
    activation: str, inner: np.ndarray, left: np.ndarray, right: np.ndarray
) -> np.ndarray:
    """Compute kappa_4 = E[sigma(u)² sigma(v)²] from variances and inner products, shape (n, m)."""
    scale = np.sqrt(np.multiply.outer(left, right))
    cosine = np.clip(inner / scale, -1.0, 1.0)
    if activation == "relu":
        # arc-cosine kernel of order 2: q_aa q_bb (3 sin cos + (pi - theta) (1 + 2 cos²)) / 2 pi
        angle, sine = np.arccos(cosine), np.sqrt((1 - cosine) * (1 + cosine))
        total = 3 * sine * cosine + (np.pi - angle) * (1 + 2 * cosine**2)
        return np.asarray(scale**2 * total / (2 * np.pi))
    nodes = np.linspace(-12.0, 12.0, 1921)
    chance = np.exp(-(nodes**2) / 2)
    degrees = 48  # largest Hermite degree used for the squared activation
    polynomials = hermite_polynomials(nodes, degrees) * (chance / chance.sum())

    def coefficients(variances: np.ndarray) -> np.ndarray:
        values = evaluate(activation, np.sqrt(variances)[:, None] * nodes) ** 2
        return np.asarray(values @ polynomials.T)

    rows, columns = coefficients(np.asarray(left)), coefficients(np.asarray(right))
    # Mehler: kappa_4 = sum_j m_j(q_aa) m_j(q_bb) cos^j theta
    total, power = np.zeros_like(cosine), np.ones_like(cosine)
    for j in range(degrees + 1):
        total += np.multiply.outer(rows[:, j], columns[:, j]) * power
        power *= cosine
    return total


def gram_deviation(X: np.ndarray, activation: str) -> float:
    """Root mean square Frobenius distance of a P-feature Gram matrix from its kernel, times sqrt(P)."""
    # A lift scales its inputs to mean square norm 1.
    inner = X @ X.T / np.mean(np.sum(X**2, axis=1))
    power = np.diag(inner).copy()
    kernel = dual_kernel(activation, inner, power, power)
    # P Var(G_ab) = kappa_4(a, b) - kappa(a, b)²   (lofi 28)
    variance = fourth_moment_kernel(activation, inner, power, power) - kernel**2
    return float(np.sqrt(np.sum(np.maximum(variance, 0.0))))
