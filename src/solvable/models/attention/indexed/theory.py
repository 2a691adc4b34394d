"""Test error of the Bayes predictor, and the threshold of exact recovery."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from solvable.message_passing.signal_laws import SymmetricSignal
from solvable.models.attention.indexed.parameters import Activation, IndexedParameters
from solvable.quasi_random import sobol_normals
from solvable.spectra.free_convolution import SpectralLaw


def recovery_ratio(parameters: IndexedParameters) -> float | None:
    """Sample ratio n/d² above which recovery is exact; None if recovery is never exact (attention 5)."""
    if parameters.noise or parameters.activation == "hardmax":
        return None
    rho = min(parameters.rank / parameters.dimension, 1.0)
    # free parameters over the number k of indices that a sample shows: (rho - rho² / 2) / k  (attention
    # 5)
    return (rho - rho**2 / 2) / parameters.shown


def bayes_test_error(parameters: IndexedParameters, error: float, noise: float) -> float:
    """Mean squared error of the posterior mean of noiseless attention matrices (attention 6)."""
    # the argument `noise` is the variance t in the observation S + sqrt(t) G of the weights
    T = parameters.tokens
    if parameters.activation == "linear" or error == 0:
        # sum over T² logits, each with error 2 E on the diagonal and E off the diagonal
        return T * (T + 1) * error
    skews = _skews(parameters.signal, noise)
    return T * _row_error(
        parameters.activation, T, parameters.signal.second_moment, error,
        tuple(skew / np.sqrt(parameters.dimension) for skew in skews),
    )  # fmt: skip


def peakedness(parameters: IndexedParameters) -> float:
    """Excess kurtosis 12 Tr S⁴ / (Tr S²)² of a diagonal index."""
    rho = parameters.rank / parameters.dimension
    fourth = 1 / rho + 6 + 6 * rho + rho**2  # Tr S⁴ / d
    return 12 * fourth / (parameters.dimension * (1 + rho) ** 2)


@lru_cache(maxsize=4096)
def _skews(signal: SymmetricSignal, noise: float) -> tuple[float, float, float]:
    """Means of Tr F³, Tr F D² and Tr D³ over d, for the estimate F and D = S - F (attention 7)."""
    law = SpectralLaw(signal.spectrum, noise=float(np.sqrt(noise)))
    f, u, shift = 2 * law.u - law.x, law.u, law.x - law.u
    # mean of v^T S² v for an eigenvector v of S + sqrt(t) G; the mean of v^T S v is f
    square = noise + u**2 - 2 * u * shift - law.height**2
    cube = signal.spectrum.node_weights @ signal.spectrum.nodes**3
    known, second = law.integrate(f**3), law.integrate(square * f)
    return known, second - known, float(cube - 3 * second + 2 * known)


@lru_cache(maxsize=4096)
def _row_error(
    activation: Activation,
    tokens: int,
    second_moment: float,
    error: float,
    skews: tuple[float, float, float],
) -> float:
    # The indices are h = omega + delta, where omega and delta have variances v (Q - E) and v E. The error
    # is
    # E |a(h) - abar(omega)|², where abar averages a over omega + sqrt(v E) n; two independent draws of n
    # estimate the square (attention 6). Because x^T S x is skewed, first-order Edgeworth weights correct
    # the mean: the third cumulants are 8 Tr / sqrt(d) for the indices (aa, aa, aa) and 2 Tr / sqrt(d) for
    # (aa, ab, ab)   (attention 7).
    v = np.append(2.0, np.ones(tokens - 1))
    spread, rest = np.sqrt(v * max(second_moment - error, 0.0)), np.sqrt(v * error)
    omega, delta, one, two = np.split(gaussian_draws(4 * tokens), 4, axis=1)
    rows = [_row(activation, spread * omega + rest * part) for part in (delta, one, two)]
    squares = np.sum(rows[0] * (rows[0] - 2 * rows[1]) + rows[1] * rows[2], axis=1)
    weight = np.ones(len(squares))
    for normals, scales, skew in (
        ((omega, omega, omega), (spread, spread, spread), skews[0]),
        ((omega, delta, delta), (spread, rest, rest), 3 * skews[1]),
        ((delta, delta, delta), (rest, rest, rest), skews[2]),
    ):
        weight += _edgeworth(normals, scales, skew)
    return float(np.mean(squares * weight))


def _edgeworth(
    normals: tuple[np.ndarray, ...], scales: tuple[np.ndarray, ...], skew: float
) -> np.ndarray:
    """Edgeworth weight of a third cumulant of three sets of indices, of which the last two are equal."""
    if min(float(scale[0]) for scale in scales) == 0:
        return np.zeros(len(normals[0]))
    (a, b), (s, r) = normals[:2], scales[:2]
    x, y, A, B = a[:, 0] / s[0], b[:, 0] / r[0], a[:, 1:] / s[1:], b[:, 1:] / r[1:]
    if normals[0] is normals[1]:
        diagonal = x**3 - 3 * x / s[0] ** 2
        others = 3 * x * np.sum(A**2 - 1 / s[1:] ** 2, axis=1)
    else:
        diagonal = x * (y**2 - 1 / r[0] ** 2)
        # the first set may supply any of the three indices (aa, ab, ab)
        others = x * np.sum(B**2 - 1 / r[1:] ** 2, axis=1) + 2 * y * np.sum(A * B, axis=1)
    return skew * (8 * diagonal + 2 * others) / 6


def _row(activation: Activation, logits: np.ndarray) -> np.ndarray:
    """Attention weights (n, T) from one row of logits per sample."""
    if activation == "hardmax":
        return np.eye(logits.shape[1])[logits.argmax(axis=1)]
    return _softmax(logits)


def _softmax(row: np.ndarray) -> np.ndarray:
    weights = np.exp(row - row.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


@lru_cache(maxsize=16)
def gaussian_draws(columns: int, draws: int = 2**14) -> np.ndarray:
    """Scrambled Sobol points as standard normal variables, (draws, columns)."""
    return sobol_normals(columns, draws)
