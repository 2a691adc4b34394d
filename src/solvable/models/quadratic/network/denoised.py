"""Error of the denoiser at a finite dimension, where the law of M is estimated from d eigenvalues."""

from __future__ import annotations

import numpy as np

from solvable.arrays import random_stream
from solvable.models.quadratic.network.parameters import QuadraticParameters
from solvable.models.quadratic.network.theory import QuadraticState
from solvable.spectra.denoiser import (
    denoising_error,
    empirical_denoised,
    feature_deviations,
    smoothed_hilbert,
)
from solvable.spectra.measures import second_moment

DRAWN = 300
"""Largest dimension at which matrices are drawn; above this dimension an integral is as accurate."""


def denoised_error(parameters: QuadraticParameters, state: QuadraticState) -> float | None:
    """Predicted error of the denoised fit; None for few samples, as their noise is not Gaussian."""
    d = parameters.dimension
    error = _drawn(parameters, state) if d <= DRAWN else _integral(state, d)
    if parameters.sensing == "network" and _tails(parameters, state) > 0.3 * error:
        return None
    return error


def _tails(parameters: QuadraticParameters, state: QuadraticState) -> float:
    """Size of the error that arises because the noise of n samples is not a semicircle."""
    # Fourth free cumulant of M over delta⁴: d/n E (r s)⁴ / (E r²)², s = 1 / (1 + V), and E r⁴ =
    # 3 (E r²)² + 48 Tr E⁴ / d². About half of this was measured as additional error.
    nodes, weights = state.law.target.nodes, state.law.target.node_weights
    peak = float(weights @ nodes**4) / (parameters.dimension * float(weights @ nodes**2) ** 2)
    share = 2 * state.matrix_error / state.test_error
    fourth = parameters.dimension / parameters.n_samples * (3 + 12 * peak * share**2)
    kept = 1 - state.degrees_of_freedom / state.sample_ratio
    return float(fourth * kept**3 * state.law.variance)


def _drawn(parameters: QuadraticParameters, state: QuadraticState) -> float:
    """Mean error over drawn matrices; all points of a curve use the same draws (quadratic 17)."""
    d, t = parameters.dimension, state.law.variance
    rng = random_stream("denoised matrices", d)
    nodes = np.unique(state.law.target.nodes)
    lean, square = feature_deviations(state.law, state.threshold, nodes)
    errors = []
    for _ in range(max(2, 500 // d)):
        if parameters.target == "power-law":
            strengths = np.sort(nodes)
        else:
            units = rng.standard_normal((d, parameters.target_units))
            strengths = np.linalg.eigvalsh(units @ units.T / np.sqrt(parameters.target_units * d))
        noise = rng.standard_normal((d, d))
        noise = (noise + noise.T) / np.sqrt(2 * d)
        if parameters.sensing == "network":
            # E r² x_i² x_j² by Wick, with the residual r = x^T E x / sqrt(d) + noise  (quadratic 17)
            m, e = np.interp(strengths, nodes, lean), np.interp(strengths, nodes, square)
            excess = 8 * (e[:, None] + e + np.outer(m, m))
            excess[np.diag_indices(d)] = 28 * m**2
            noise *= np.sqrt(1 + excess / (d * state.test_error))
        values, vectors = np.linalg.eigh(np.diag(strengths) + np.sqrt(t) * noise)
        kept = np.maximum(empirical_denoised(values, np.sqrt(t)), 0)
        # Tr (f(M) - S*)² / d
        cross = (vectors**2).T @ strengths
        errors.append(float(np.sum(kept**2 - 2 * kept * cross) + np.sum(strengths**2)) / d)
    return float(np.mean(errors))


def _integral(state: QuadraticState, dimension: int) -> float:
    """Mean error as an integral over the law of target plus noise."""
    law = state.law
    if dimension > 2_000:
        return denoising_error(law)
    mass = np.cumsum(law.weights) - law.weights / 2
    places = np.interp((np.arange(4_000) + 0.5) / 4_000, mass, law.x)
    hilbert = smoothed_hilbert(law.x, places, law.variance / dimension)
    kept = np.maximum(law.x - 2 * law.variance * hilbert, 0)
    # Q* - 2 f E_xx + f², plus the variance 1 / (2 d eta)² of h_eta from d eigenvalues of a GOE matrix.
    error = second_moment(law.target) + law.weights @ (kept**2 - 2 * kept * (2 * law.u - law.x))
    return float(error + law.variance / dimension * (law.weights @ (kept > 0)))
