"""Spectra of a student: its kernel S, and directions shared by queries and documents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from solvable.arrays import random_stream


class Spectrum(NamedTuple):
    """Eigenvalues of a kernel, and directions of a moment beyond its permutation edge."""

    kernel: list[float]  # eigenvalues of S in whitened coordinates, in decreasing order
    effective_rank: float
    moments: list[float]  # largest eigenvalues of the moment, in decreasing order
    edge: float  # largest eigenvalue with permuted documents
    outliers: int  # number of eigenvalues beyond the edge


def kernel_eigenvalues(head: np.ndarray, tokens: np.ndarray) -> np.ndarray:
    """Return the eigenvalues of S = W^T W in whitened token coordinates, in decreasing order."""
    # S is identified on the span of the tokens only: with their covariance C, the eigenvalues of
    # C^(1/2) W^T W C^(1/2) are those of W C W^T.
    covariance = np.cov(tokens.astype(np.float64), rowvar=False)
    return np.maximum(np.linalg.eigvalsh(head @ covariance @ head.T)[::-1], 0.0)


def effective_rank(values: np.ndarray) -> float:
    """Return (Tr S)² / Tr S² for the eigenvalues of S."""
    return float(values.sum() ** 2 / max(float(values @ values), 1e-300))


def moment_spectrum(
    queries: np.ndarray, documents: np.ndarray, *, draws: int = 5, seed: int = 0
) -> tuple[np.ndarray, float]:
    """Return the eigenvalues of the symmetric moment of pooled pairs, and their permutation edge."""
    # M_s = (M + M^T) / 2 with M = n^-1 sum_p (q_p - mean q) (d_p - mean d)^T over the n pairs p, from
    # pooled vectors of queries and documents; with permuted documents, pairs carry no signal.
    rng = random_stream(seed, "permuted documents")
    q, d = queries - queries.mean(axis=0), documents - documents.mean(axis=0)
    edge = max(_eigenvalues(q, d[rng.permutation(len(d))])[0] for _ in range(draws))
    return _eigenvalues(q, d), float(edge)


def _eigenvalues(q: np.ndarray, d: np.ndarray) -> np.ndarray:
    moment = q.T @ d / len(q)
    return np.linalg.eigvalsh((moment + moment.T) / 2)[::-1]


def spectrum(
    kernel: np.ndarray, queries: Sequence[np.ndarray], documents: Sequence[np.ndarray]
) -> Spectrum:
    """Return the spectra of a student from its kernel's eigenvalues and token vectors of pairs."""
    sums = [np.stack([one.sum(axis=0) for one in rows]) for rows in (queries, documents)]
    values, edge = moment_spectrum(sums[0], sums[1])
    outliers = int((values > edge).sum())
    shown = max(outliers + 5, 10)
    rank = effective_rank(kernel)
    return Spectrum(kernel.tolist(), rank, values[:shown].tolist(), edge, outliers)
