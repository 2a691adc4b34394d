"""Test error of the Bayes predictor, and the samples from which weights are recovered exactly."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from solvable.message_passing.signal_laws import SymmetricSignal
from solvable.models.attention.indexed.parameters import Activation, IndexedParameters
from solvable.spectra.free_convolution import SpectralLaw


def recovery_ratio(parameters: IndexedParameters) -> float | None:
    """Samples over d² that recover the weights exactly; None where no number does."""
    if parameters.noise or parameters.activation == "hardmax":
        return None
    rho = min(parameters.rank / parameters.dimension, 1.0)
    # Numbers that a sample tells, against those of a symmetric matrix of this rank
    numbers = len(parameters.channel.variances) - (parameters.activation == "softmax")
    return (rho - rho**2 / 2) / numbers


def bayes_test_error(parameters: IndexedParameters, error: float, noise: float) -> float:
    """Mean square |A - E[A | samples]|² of a fresh sample's attention matrix without its noise."""
    # Of an estimate of the weights from S + sqrt(t) G, t the noise, with this error
    T = parameters.tokens
    if parameters.activation == "linear" or error == 0:
        # All T² logits: 2 E on the diagonal, E elsewhere
        return T * (T + 1) * error
    skews = _skews(parameters.signal, noise)
    return T * _row_error(
        parameters.activation, T, parameters.signal.second_moment, error,
        tuple(skew / np.sqrt(parameters.dimension) for skew in skews),
    )  # fmt: skip


def peakedness(parameters: IndexedParameters) -> float:
    """Excess kurtosis of a diagonal index, which weights of few directions have."""
    rho = parameters.rank / parameters.dimension
    fourth = 1 / rho + 6 + 6 * rho + rho**2  # Tr S⁴ / d
    return 12 * fourth / (parameters.dimension * (1 + rho) ** 2)


@lru_cache(maxsize=4096)
def _skews(signal: SymmetricSignal, noise: float) -> tuple[float, float, float]:
    """Means of Tr F³, Tr F D² and Tr D³ over d, of an estimate F and what it leaves, D = S - F."""
    law = SpectralLaw(signal.spectrum, noise=float(np.sqrt(noise)))
    f, u, shift = 2 * law.u - law.x, law.u, law.x - law.u
    # (S²)_xx in an eigenvector of S + sqrt(t) G, whose S_xx is f
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
    # h = omega + delta, of variances v (Q - E) and v E; E |a(h) - abar(omega)|² with abar the mean over
    # omega + sqrt(v E) n, by two more n. At d dimensions x^T S x is skewed: the first order of an
    # Edgeworth series, third cumulants 8 Tr / sqrt(d) on the diagonal, 2 Tr / sqrt(d) of (aa, ab, ab).
    v = np.append(2.0, np.ones(tokens - 1))
    spread, rest = np.sqrt(v * max(second_moment - error, 0.0)), np.sqrt(v * error)
    omega, delta, one, two = np.split(_normals(4 * tokens), 4, axis=1)
    rows = [_row(activation, spread * omega + rest * part) for part in (delta, one, two)]
    found = np.sum(rows[0] * (rows[0] - 2 * rows[1]) + rows[1] * rows[2], axis=1)
    weight = np.ones(len(found))
    for normals, scales, skew in (
        ((omega, omega, omega), (spread, spread, spread), skews[0]),
        ((omega, delta, delta), (spread, rest, rest), 3 * skews[1]),
        ((delta, delta, delta), (rest, rest, rest), skews[2]),
    ):
        weight += _edgeworth(normals, scales, skew)
    return float(np.mean(found * weight))


def _edgeworth(
    normals: tuple[np.ndarray, ...], scales: tuple[np.ndarray, ...], skew: float
) -> np.ndarray:
    """Weight of one third cumulant of three families of indices, the last two alike."""
    if min(float(scale[0]) for scale in scales) == 0:
        return np.zeros(len(normals[0]))
    (a, b), (s, r) = normals[:2], scales[:2]
    x, y, A, B = a[:, 0] / s[0], b[:, 0] / r[0], a[:, 1:] / s[1:], b[:, 1:] / r[1:]
    if normals[0] is normals[1]:
        diagonal = x**3 - 3 * x / s[0] ** 2
        others = 3 * x * np.sum(A**2 - 1 / s[1:] ** 2, axis=1)
    else:
        diagonal = x * (y**2 - 1 / r[0] ** 2)
        # each of (aa, ab, ab) may be the family that is alone
        others = x * np.sum(B**2 - 1 / r[1:] ** 2, axis=1) + 2 * y * np.sum(A * B, axis=1)
    return skew * (8 * diagonal + 2 * others) / 6


def _row(activation: Activation, logits: np.ndarray) -> np.ndarray:
    """Attention of rows."""
    if activation == "hardmax":
        return np.eye(logits.shape[1])[logits.argmax(axis=1)]
    return _softmax(logits)


def _softmax(row: np.ndarray) -> np.ndarray:
    weights = np.exp(row - row.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


@lru_cache(maxsize=16)
def _normals(columns: int) -> np.ndarray:
    """Scrambled Sobol points as standard normal variables, (2^14, columns)."""
    from scipy.special import ndtri
    from scipy.stats import qmc

    points = qmc.Sobol(columns, seed=0).random(2**14)
    return np.asarray(ndtri(np.clip(points, 1e-12, 1 - 1e-12)))
