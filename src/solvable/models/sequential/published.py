"""Directions of the published algorithm: eigenvalues ranked by modulus, few passes of power iteration."""

from __future__ import annotations

import numpy as np

from solvable.arrays import random_stream
from solvable.models.sequential.errors import fresh_rows
from solvable.models.sequential.theory import SequentialPrediction
from solvable.moment_spectrum.latent_draws import fit_last_layer
from solvable.moment_spectrum.moments import FiniteSizeMoments

PASSES = 15
"""Number of passes of the published power iteration."""


def bulk_values(moments: FiniteSizeMoments, theory: SequentialPrediction, count: int) -> np.ndarray:
    """Eigenvalues of the bulk, ascending, drawn from the population operator plus Gaussian noise."""
    rng, size, n = random_stream("sequential-recovery", "bulk"), 400, float(theory.samples)
    background = moments.law.background
    at = background.at(n) if background else None
    variance = theory.noise_scale**2 + (at.variance if at else 0.0)
    noise = rng.standard_normal((size, size)) * np.sqrt(variance / (2 * size))
    atoms = np.zeros(size)
    if at is not None:
        atoms = np.quantile(at.atoms, (np.arange(size) + 0.5) / size)
    values = np.linalg.eigvalsh(noise + noise.T + np.diag(atoms))
    # The ends are moved to the predicted edges.
    lower, upper = theory.bulk_edges
    values = lower + (values - values[0]) * (upper - lower) / (values[-1] - values[0])
    return np.quantile(values, np.linspace(0, 1, count))


def published_overlaps(
    moments: FiniteSizeMoments, theory: SequentialPrediction, *, iterated: bool
) -> np.ndarray:
    """Squared overlap of each feature with the span of the returned directions, (p,)."""
    overlap, places = theory.squared_overlap, theory.eigenvalues
    p, found = overlap.size, theory.recovered
    bulk = bulk_values(moments, theory, moments.n_features - int(found.sum()))
    values = np.concatenate([places[found], bulk])
    if not iterated:
        # The p eigenvalues of largest modulus; an unrecovered feature stays at the end of its own side.
        least = np.sort(np.abs(values))[-p]
        kept = np.abs(places) >= least * np.where(found, 1, 1 - 1e-6)
        return np.where(kept, overlap, p / moments.n_features)
    # Components of the features along the eigenvectors: c_i on its own, the rest along the bulk, with
    # the weights 1 / (z_i - z)² of the first order of the expansion (sequential 28).
    rng = random_stream("sequential-recovery", "power iteration")
    features = np.zeros((values.size, p))
    own = np.flatnonzero(found)
    features[np.arange(own.size), own] = np.sqrt(overlap[own])
    distance = np.maximum(np.abs(places - bulk[:, None]), 0.05 * np.ptp(bulk))
    rest = rng.standard_normal((bulk.size, p)) / np.where(found, distance, 1.0)
    rest *= np.sqrt(np.where(found, 1 - overlap, 1.0)) / np.linalg.norm(rest, axis=0)
    features[own.size :] = rest
    # The span of the first p of p + 10 orthonormalised vectors is that of C^15 G for p random vectors G
    # (sequential 32).
    gains = (values / np.abs(values).max()) ** PASSES
    total = np.zeros(p)
    draws = 20
    for _ in range(draws):
        span = np.linalg.qr(gains[:, None] * rng.standard_normal((values.size, p)))[0]
        total += np.sum((span.T @ features) ** 2, axis=0) / draws
    return total


def published_error(
    moments: FiniteSizeMoments, theory: SequentialPrediction, overlap: np.ndarray
) -> float:
    """Normalised error of a least-squares second layer on directions with these overlaps."""
    errors = [
        fit_last_layer(
            draw.learned(overlap),
            draw.labels,
            readout=not moments.linear,
            rows=fresh_rows(float(theory.samples)),
            guess=moments.law.heights * overlap,
        ).normalised_mse
        for draw in moments.latent
    ]
    return float(np.mean(errors))
