"""Eigenvalues of one sample's contribution to the moment operator, in the highest Hermite degree."""

from __future__ import annotations

from math import comb, factorial, prod, sqrt

import numpy as np

from solvable.hermite import hermite_polynomials

ROWS = 100_000
"""Number of samples per block; a block stores five Hermite polynomials for each sample."""


def chaos_eigenvalues(
    squared_norm: np.ndarray, dimension: int, degree: int
) -> list[tuple[np.ndarray, int]]:
    """Eigenvalues of the degree-2q component of F F^T - I for n squared norms of x; multiplicities."""
    counts = [count for _, count in _eigenvalues(squared_norm[:1], dimension, degree)]
    found = np.empty((len(counts), squared_norm.size))
    for start in range(0, squared_norm.size, ROWS):
        rows = slice(start, start + ROWS)
        found[:, rows] = [v for v, _ in _eigenvalues(squared_norm[rows], dimension, degree)]
    return list(zip(found, counts, strict=True))


def _eigenvalues(
    squared_norm: np.ndarray, dimension: int, degree: int
) -> list[tuple[np.ndarray, int]]:
    """Eigenvalues and multiplicities for one block of samples."""
    # K[U, U] = (exp(-Laplacian / 2) U(x)²) / q! for the form U(x) = <U, x (x) ... (x) x>. Split x into
    # |x| e_1 and the orthogonal y. The forms x_1^(q - l - 2j) |y|^2j h_l(y), h_l harmonic in n = d - 1
    # dimensions, give blocks of size at most two. The entries are He_(a + a')(|x|) from the first factors
    # times (-1)^(m + l) E[|y|^2m h_l²], m = j + j', from the others.
    n, along = dimension - 1, np.sqrt(squared_norm)
    hermite = hermite_polynomials(
        along, 2 * degree
    )  # orthonormal Hermite polynomials He_k / sqrt(k!)
    found = []
    for harmonic in range(degree + 1 if n else 1):
        count = comb(n + harmonic - 1, harmonic) if harmonic else 1
        count -= comb(n + harmonic - 3, harmonic - 2) if harmonic > 1 else 0
        size = (degree - harmonic) // 2 + 1 if n else 1
        powers = [degree - harmonic - 2 * j for j in range(size)]
        # Norms: |x_1^a|² = a!, and Laplacian |y|^2j h = 2j (2j + 2l + n - 2) |y|^(2j - 2) h.
        norms = [
            factorial(a) * prod(2 * i * (2 * i + 2 * harmonic + n - 2) for i in range(1, j + 1))
            for j, a in enumerate(powers)
        ]
        blocks = np.empty((squared_norm.size, size, size))
        for j in range(size):
            for k in range(size):
                m, a = j + k, powers[j] + powers[k]
                across = (-1) ** (m + harmonic) * prod(n + 2 * harmonic + 2 * i for i in range(m))
                scale = sqrt(factorial(a) / (norms[j] * norms[k]))
                blocks[:, j, k] = across * scale * hermite[a]
        values = blocks[:, :, 0] if size == 1 else np.linalg.eigvalsh(blocks)
        found += [(column, count) for column in values.T if count]
    return found
