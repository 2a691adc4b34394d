r"""State evolution of two layers of attention.

.. math:: \hat q_\ell=2\alpha I_\ell(E_1,E_2),\qquad E_\ell=\mathrm{mmse}(1/\hat q_\ell),\qquad\ell=1,2

The labels change sign with the contrasts of the last layer, whose weights have mean 0, so the messages of
the layers are uncorrelated and each layer has its own denoiser (attention 22).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from solvable.errors import NotConverged
from solvable.message_passing.signal_laws import SymmetricSignal
from solvable.models.attention.indexed.layers import ROOT, SHAPE, TwoLayerAttention
from solvable.models.attention.indexed.theory import gaussian_draws

LEAST_ERROR = 0.02
"""Smallest error of the first layer in the table of informations."""

LEAST_SHARE = 0.08
"""Smallest error of the last layer in the table, relative to that of the first layer."""

DEGREES = (5, 3)
"""Degrees of the table in the logarithms of the first error and of the relative error."""

DRAWS = 2**13
"""Number of Sobol points of a mean."""


def layer_errors(
    signal: SymmetricSignal, channel: TwoLayerAttention, sample_ratio: float
) -> np.ndarray | None:
    """Errors of both layers, iterated from the prior mean; None if the first is below LEAST_ERROR."""
    errors = np.ones(2)
    for _ in range(2_000):
        before = errors
        if errors[0] < LEAST_ERROR:
            return None
        noise = 1 / (2 * sample_ratio * _tabulated(channel, errors))
        errors = _mmse(signal, noise)
        if np.max(np.abs(errors / before - 1)) < 1e-8:
            return signal.mmse(noise)
    raise NotConverged(
        f"state evolution of two layers did not converge at sample_ratio {sample_ratio:.6g}; change "
        "sample_ratio slightly.",
        {"errors": errors},
    )


def information(
    channel: TwoLayerAttention, errors: tuple[float, float], draws: int = DRAWS
) -> np.ndarray:
    """Informations I_1, I_2 and I_12: means of g_k^T SHAPE g_l over drawn labels (attention 22)."""
    x = gaussian_draws(10, draws)
    scale = np.repeat(np.sqrt(np.maximum(1 - np.array(errors), 0)), 2)
    rest = np.repeat(np.sqrt(errors), 2)
    turn = np.kron(np.eye(2), ROOT)
    omega = scale * x[:, :4] @ turn.T
    contrasts = omega + rest * x[:, 4:8] @ turn.T
    labels = channel.mixed(contrasts[:, :2], contrasts[:, 2:])
    labels = labels + np.sqrt(channel.noise / 2) * x[:, 8:] @ ROOT.T
    first, last = np.split(channel.posterior(labels, omega, errors), 2, axis=1)
    pairs = ((first, first), (last, last), (first, last))
    return np.array([np.mean(np.sum((g @ SHAPE) * h, axis=1)) for g, h in pairs])


def layers_test_error(channel: TwoLayerAttention, errors: np.ndarray) -> float:
    """Mean squared error of the posterior mean of noiseless attention matrices (attention 6)."""
    # half of the mean squared difference of two posterior draws; each row (a, 1 - a) counts a twice
    x = gaussian_draws(12, DRAWS)
    turn = np.kron(np.eye(2), ROOT)
    omega = np.repeat(np.sqrt(np.maximum(1 - errors, 0)), 2) * x[:, :4] @ turn.T
    one, other = (
        channel.attention(omega + np.repeat(np.sqrt(errors), 2) * part @ turn.T)
        for part in (x[:, 4:8], x[:, 8:])
    )
    return float(np.mean(np.sum((one - other) ** 2, axis=1)))


def _tabulated(channel: TwoLayerAttention, errors: np.ndarray) -> np.ndarray:
    """Informations of both layers, interpolated in the logarithms of the errors."""
    x = 1 - 2 * np.log(errors[0]) / np.log(LEAST_ERROR)
    y = 1 - 2 * np.log(errors[1] / errors[0]) / np.log(LEAST_SHARE)
    first, last = (
        np.polynomial.chebyshev.chebvander(np.clip(place, -1, 1), degree).ravel()
        for place, degree in zip((x, y), DEGREES, strict=True)
    )
    return np.exp([float(first @ table @ last) for table in _table(channel)])


@lru_cache(maxsize=64)
def _table(channel: TwoLayerAttention) -> tuple[np.ndarray, np.ndarray]:
    """Chebyshev coefficients of the logarithms of both informations."""
    axes = [np.polynomial.chebyshev.chebpts1(degree + 1) for degree in DEGREES]
    values = np.empty((2, *(axis.size for axis in axes)))
    for i, x in enumerate(axes[0]):
        for j, y in enumerate(axes[1]):
            error = float(LEAST_ERROR ** ((1 - x) / 2))
            pair = (error, error * float(LEAST_SHARE ** ((1 - y) / 2)))
            values[:, i, j] = np.log(information(channel, pair)[:2])
    inverses = [
        np.linalg.inv(np.polynomial.chebyshev.chebvander(axis, degree))
        for axis, degree in zip(axes, DEGREES, strict=True)
    ]
    first, last = (inverses[0] @ table @ inverses[1].T for table in values)
    return first, last


def _mmse(signal: SymmetricSignal, noise: np.ndarray) -> np.ndarray:
    """Errors of the denoiser, interpolated in the logarithm of the noise."""
    t = np.clip(np.log(noise), *SPAN)
    middle, half = sum(SPAN) / 2, (SPAN[1] - SPAN[0]) / 2
    return np.exp(np.polynomial.chebyshev.chebval((t - middle) / half, _mmse_table(signal)))


SPAN = (np.log(1e-4), np.log(1e4))
"""Range of the logarithm of the noise variance in the table of the denoiser's errors."""


@lru_cache(maxsize=64)
def _mmse_table(signal: SymmetricSignal) -> np.ndarray:
    middle, half = sum(SPAN) / 2, (SPAN[1] - SPAN[0]) / 2
    points = np.polynomial.chebyshev.chebpts1(64)
    errors = signal.mmse(np.exp(middle + half * points))
    return np.polynomial.chebyshev.chebfit(points, np.log(errors), 63)
