"""Moments of the label-weighted matrix of queries and documents, from draws in r dimensions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from solvable.arrays import check_integer, random_stream
from solvable.models.late_interaction.labels import label_noise, rank_signal, smoothed_density
from solvable.models.late_interaction.maxima import max_covariance, max_moments
from solvable.models.late_interaction.parameters import LabelKind
from solvable.models.late_interaction.teacher import (
    LateInteractionTeacher,
    document_scores,
    label_weights,
)
from solvable.models.late_interaction.theory import check_gaussian_tokens, score_variance

DRAWN_NUMBERS = 10_000_000
"""Number of random coordinates of documents in the moments."""


@dataclass(frozen=True)
class LateMoments:
    """Moments of M = (q e^T + e q^T) / 2 of a query, with q = sum_i q_i and e = sum_c y_c sum_j d_cj."""

    heights: np.ndarray  # theta_k, means of q_k e_k, shape (r,)
    noise: float  # mean tau_2 of omega² / 2
    weights: np.ndarray  # omega = sqrt(L_q L_d sum_c y_c²) of drawn queries, shape (m,)
    couplings: (
        np.ndarray
    )  # row of direction k over a row of the bulk, 1 for weak labels, shape (r,)
    products: (
        np.ndarray
    )  # variances of the entries of M in the span, diagonal ones halved, shape (r, r)


def late_moments(
    teacher: LateInteractionTeacher, *, candidates: int, label: LabelKind
) -> LateMoments:
    """Compute the moments of the teacher's directions; they do not depend on the dimension."""
    check_gaussian_tokens(teacher)
    check_integer("candidates", candidates, 3)
    lengths = teacher.query_tokens, teacher.document_tokens
    return _moments(
        tuple(teacher.strengths.tolist()), *lengths, teacher.score_noise, candidates, label
    )


@lru_cache(maxsize=64)
def _moments(
    strengths: tuple[float, ...],
    query_tokens: int,
    document_tokens: int,
    score_noise: float,
    candidates: int,
    label: LabelKind,
) -> LateMoments:
    lam = np.array(strengths)
    r, K, lengths = lam.size, candidates, query_tokens * document_tokens
    rng = random_stream("late interaction", "moments")
    n = int(np.clip(DRAWN_NUMBERS / (K * document_tokens * r), 100, 20_000))
    rows = max(1, 2_000_000 // (K * document_tokens * r))
    parts = []
    for start in range(0, n, rows):
        size = min(rows, n - start)
        queries = rng.standard_normal((size, query_tokens, r), dtype=np.float32)
        documents = rng.standard_normal((size, K, document_tokens, r), dtype=np.float32)
        scores = document_scores(queries, documents, lam.astype(np.float32))
        scores = scores + score_noise * rng.standard_normal(scores.shape)
        y = label_weights(scores, label, rng)
        summed = np.einsum("nc,ncjk->nk", y, documents)
        parts.append((queries.astype(np.float64), scores, (y**2).sum(axis=1), summed))
    tokens, scores, squares, e = (np.concatenate(part) for part in zip(*parts, strict=True))
    q = tokens.sum(axis=1)
    # omega² = L_q L_d sum_c y_c²; the row of direction k has omega² (q_k² / L_q + e_k² / L_d y²) / 2
    # per direction of the bulk   (late-interaction 17)
    row = (q**2 * document_tokens * squares[:, None] + e**2 * query_tokens) / 2
    noise = lengths / 2 * _noise(lam, query_tokens, document_tokens, score_noise, K, label)
    return LateMoments(
        heights=_heights(lam, document_tokens, score_noise, label, tokens, scores),
        noise=noise,
        weights=np.sqrt(lengths * squares) if label == "scores" else np.sqrt([2 * noise]),
        couplings=row.mean(axis=0) / (lengths * squares.mean()),
        products=_products(q, e),
    )


def _noise(
    lam: np.ndarray,
    query_tokens: int,
    document_tokens: int,
    score_noise: float,
    candidates: int,
    label: LabelKind,
) -> float:
    """Mean v of the sum of squared labels."""
    if label != "scores":
        return label_noise(label, candidates, 1.0)
    variance = score_variance(
        strengths=lam, query_tokens=query_tokens, document_tokens=document_tokens
    )
    return label_noise(label, candidates, variance + score_noise**2)


def _heights(
    lam: np.ndarray,
    document_tokens: int,
    score_noise: float,
    label: LabelKind,
    tokens: np.ndarray,
    scores: np.ndarray,
) -> np.ndarray:
    """Heights theta_k of the directions."""
    query_tokens, K = tokens.shape[1], scores.shape[1]
    if label == "scores":
        return (K - 1.0) * query_tokens * lam  # exact   (late-interaction 14)
    # theta_k = lambda_k Gamma E[q_k² / sigma(Q)], gamma(Q) = Gamma / sigma(Q)   (late-interaction 16).
    # The density of standardised scores, weighted by |q|² / sigma(Q), gives Gamma for all directions.
    mean, deviation = query_scores(tokens * lam, document_tokens, score_noise)
    standard = (scores - mean[:, None]) / deviation[:, None]
    weights = (tokens.sum(axis=1) ** 2).sum(axis=1) / deviation
    signal = rank_signal(smoothed_density(standard.ravel(), np.repeat(weights, K)), label, K)
    fresh = random_stream("late interaction", "heights").standard_normal(
        (int(np.clip(4e6 / (query_tokens * lam.size), 500, 40_000)), query_tokens, lam.size)
    )
    _, spread = query_scores(fresh * lam, document_tokens, score_noise)
    # Dividing by the mean of q_k², which is known to be L_q, removes most of the error of the draws.
    squares = fresh.sum(axis=1) ** 2
    strength = query_tokens * (squares / spread[:, None]).mean(axis=0) / squares.mean(axis=0)
    return np.asarray(lam * strength * signal)


def query_scores(
    tokens: np.ndarray, document_tokens: int, score_noise: float
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of the scores of each query, for tokens u_i = S q_i."""
    # E[s|Q] = E max sum_i |u_i|, Var(s|Q) = sum_ij |u_i| |u_j| c_L(cos(u_i, u_j))   (late-interaction 8)
    norms = np.linalg.norm(tokens, axis=2)
    outer = norms[:, :, None] * norms[:, None, :]
    correlation = tokens @ tokens.transpose(0, 2, 1) / outer
    variance = (outer * max_covariance(document_tokens).covariance(correlation)).sum(axis=(1, 2))
    return max_moments(document_tokens).mean * norms.sum(axis=1), np.sqrt(variance + score_noise**2)


def _products(q: np.ndarray, e: np.ndarray) -> np.ndarray:
    """Variances of the entries (q_k e_l + e_k q_l) / 2, the diagonal ones halved."""
    n = len(q)
    squares, own = (q**2).T @ e**2 / n, (q * e).T @ (q * e) / n
    products = np.asarray((squares + squares.T + 2 * own) / 4)
    np.fill_diagonal(products, np.var(q * e, axis=0) / 2)
    return products
