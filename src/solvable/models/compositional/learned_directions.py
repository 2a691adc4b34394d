"""Directions that the first spectral step returns, drawn from its law.

A learned direction is c A + sqrt(1 - c^2) Z. The rest Z is not random: what the population matrix of
true features holds beside the spikes tilts it towards directions that the label knows as well.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from solvable.operators import HermiteFeatures

Operator = Callable[[np.ndarray], np.ndarray]


def population_background(
    truth: np.ndarray,
    heights: np.ndarray,
    dimension: int,
    moment: Operator | None = None,
) -> Operator:
    """What the corrected population matrix of degree 2 is beside its spikes, on columns (D, k).

    `moment` is an estimate of the whole matrix, used on the few directions of products of features.
    """
    features = HermiteFeatures(2, dimension)
    matrices = np.asarray(features.to_symmetric(truth))

    # P[U] = 2 sum_k theta_k M_k U M_k on the complement of the M_k; heights are theta_k (1 + 4 / d)
    def apply(columns: np.ndarray) -> np.ndarray:
        U = np.asarray(features.to_symmetric(columns))
        image = np.zeros_like(U)
        for height, M in zip(heights / (1 + 4 / dimension), matrices, strict=True):
            image += 2 * height * (M @ U @ M)
        moved = np.asarray(features.from_symmetric(image))
        return np.asarray(moved - truth @ (truth.T @ moved))

    if moment is None:
        return apply
    # A label of higher degree in the features has chaoses (M_a M_b) x (M_c M_d) too, of the same size
    # but low rank.
    rows, columns = np.triu_indices(len(matrices))
    products = matrices[rows] @ matrices[columns]
    few = np.asarray(features.from_symmetric(products + products.transpose(0, 2, 1)))
    few = few - truth @ (truth.T @ few)
    left, size, _ = np.linalg.svd(few, full_matrices=False)
    span = left[:, size > 0.05 * size[0]]
    excess = span.T @ (moment(span) - apply(span))
    excess = (excess + excess.T) / 2
    return lambda columns: apply(columns) + span @ (excess @ (span.T @ columns))


def learned_directions(
    truth: np.ndarray,
    *,
    signs: np.ndarray,
    squared_overlap: np.ndarray,
    noise: np.ndarray,
    background: Operator | None,
    draws: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """Directions of several learners with these overlaps, (draws, D, p), nearly orthonormal."""
    # Z ~ (zeta - P)^-1 (P A + N A) on the complement of the truth. There |Z|^2 = 1 / c^2 - 1, which says
    # where zeta is; it stops at 1, at the edge of the bulk (L' = 0), for what is lost (derived).
    D, p = truth.shape
    start = rng.standard_normal((D, draws, p)) * np.sqrt(noise)
    start = start - np.tensordot(truth, np.tensordot(truth, start, (0, 0)), 1)
    c2 = np.clip(squared_overlap, 0.0, 1.0)
    if background is not None:
        start += background(truth)[:, None]
        wanted = np.clip(1 / np.maximum(c2, 1e-9) - 1, 1e-9, 1.0)
        moved = _resolved(
            start.reshape(D, -1), np.tile(signs, draws), np.tile(wanted, draws), background
        )
        start = moved.reshape(start.shape)
    rest = start / np.linalg.norm(start, axis=0)
    return np.moveaxis(np.sqrt(c2) * truth[:, None] + np.sqrt(1 - c2) * rest, 1, 0)


def _resolved(
    start: np.ndarray, signs: np.ndarray, wanted: np.ndarray, background: Operator
) -> np.ndarray:
    """(zeta - s P)^-1 of every column, zeta beyond the spectrum where the squared norm is as wanted."""
    from scipy.optimize import brentq

    (D, columns), steps = start.shape, 20
    steps = min(steps, D - 1)
    basis = np.zeros((steps, D, columns))
    tridiagonal = np.zeros((columns, steps, steps))
    norms = np.linalg.norm(start, axis=0)
    vector = start / norms
    for j in range(steps):
        basis[j] = vector
        vector = signs * background(vector)
        tridiagonal[:, j, j] = np.sum(basis[j] * vector, axis=0)
        for _ in range(2):
            for earlier in basis[: j + 1]:
                vector -= earlier * np.sum(earlier * vector, axis=0)
        size = np.linalg.norm(vector, axis=0)
        vector = vector / np.maximum(size, 1e-300)
        if j + 1 < steps:
            tridiagonal[:, j + 1, j] = size
    moved = np.empty_like(start)
    for k in range(columns):
        atoms, turned = np.linalg.eigh(tridiagonal[k], UPLO="L")
        first, gaps = turned[0] * norms[k], atoms[-1] - atoms

        def excess(
            t: float, first: np.ndarray = first, gaps: np.ndarray = gaps, k: int = k
        ) -> float:
            return float(np.log(np.sum((first / (gaps + np.exp(t))) ** 2)) - np.log(wanted[k]))

        scale = np.log(norms[k] + float(gaps[0]))
        t = brentq(excess, scale - 40, scale + 40, xtol=1e-6)
        moved[:, k] = np.tensordot(turned @ (first / (gaps + np.exp(t))), basis[:, :, k], 1)
    return moved
