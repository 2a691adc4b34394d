r"""Noise and threshold of a symmetric matrix whose strengths decay as a power law."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from solvable.diagnose.fit_law import Spikes
from solvable.diagnose.noise_law import SymmetricNoise
from solvable.diagnose.strengths import Decay, fit_decay
from solvable.diagnose.symmetric_fit import SymmetricFit
from solvable.errors import InvalidData

MAX_STEPS = 60
"""Steps of the fixed point; it contracts by a half or better where the weak part is weak."""

TOLERANCE = 1e-6
"""Change of the weak mean, in units of the noise, at which the fixed point stops."""


def fit_decaying(plain: SymmetricFit) -> tuple[SymmetricFit, Decay]:
    r"""Take the weak strengths out of the noise and the shrinkage of a plain fit.

    The strengths :math:`s_i=A\,i^{-\gamma}` below the threshold, i > K, stay in the bulk. Of mean m
    and variance v over the d values, they lower the shrinkage that a semicircle needs and widen it:

    .. math::
        b=b_{plain}+m,\qquad \delta^2=\delta_{plain}^2-v,\qquad
        s_i=m+\frac{z_i+\sqrt{z_i^2-4\delta^2}}2,\quad z_i=y_i+b_{plain},

    which is the law of :math:`S^\star+\delta Z` to its second free cumulant. Solved with
    :math:`A,\gamma` of the strengths as a fixed point.

    Parameters
    ----------
    plain : SymmetricFit
        Of a semidefinite matrix; enough outliers for a decay.

    Returns
    -------
    SymmetricFit
        Noise, shrinkage and strengths corrected. The shrinkage error holds that of m, half its
        change over the interval of :math:`\gamma`; the noise error half of its correction.
    Decay
        Of the corrected strengths.

    Raises
    ------
    InvalidData
        If there are too few outliers, or the weak part would be all of the noise.

    Notes
    -----
    Source: derived from arXiv:2505.17958; backed by ``tests/diagnose/test_decaying_fit.py``
    (spectra of known noise, threshold and decay).

    Examples
    --------
    >>> from solvable.diagnose.symmetric_fit import fit_symmetric
    >>> rng = np.random.default_rng(0)
    >>> s = 20 / np.arange(10, 0, -1)
    >>> x = np.r_[SymmetricNoise().draw(290, rng) + 0.2, s + 1 / s]  # weak strengths of mean 0.2
    >>> plain = fit_symmetric(np.clip(x - 0.7, 0, None))
    >>> fit, decay = fit_decaying(plain)
    >>> plain.shrinkage < 0.6 < fit.shrinkage, decay.low < 1 < decay.high
    (True, True)
    """
    if not plain.semidefinite:
        raise InvalidData("the matrix is not semidefinite; the decay is of positive strengths.")
    size, count = plain.shape[0], plain.n_outliers
    ranks = np.arange(count + 1, size + 1, dtype=float)
    z, errors = plain.spikes.observed, plain.spikes.standard_errors
    # What is not seen is below the cut, whatever the power law says.
    most = float(_undo(np.array([plain.cut + plain.shrinkage]), plain.noise)[0])
    mean = variance = 0.0
    for _ in range(MAX_STEPS):
        if variance >= 0.75 * plain.noise**2:
            raise InvalidData("the weak strengths would be most of the noise; none is given.")
        noise = float(np.sqrt(plain.noise**2 - variance))
        strengths = mean + _undo(z, noise)
        decay = fit_decay(strengths, errors, draws=0)
        before = mean
        mean, variance = _moments(strengths, decay.value, ranks, size, most)
        if abs(mean - before) < TOLERANCE * plain.noise:
            break
    decay = fit_decay(strengths, errors)
    ends = [_moments(strengths, gamma, ranks, size, most)[0] for gamma in (decay.low, decay.high)]
    unsure = float(np.hypot(plain.shrinkage_error, abs(ends[1] - ends[0]) / 2 / 1.96))
    overlap = 1 - noise**2 / np.maximum(strengths - mean, noise) ** 2
    spikes = Spikes(z + mean, strengths, np.hypot(errors, unsure), overlap, overlap)
    fit = replace(
        plain,
        noise=noise,
        shrinkage=plain.shrinkage + mean,
        spikes=spikes,
        # Free cumulants beyond the second are left out: half of what the second one did.
        noise_error=float(np.hypot(plain.noise_error, (plain.noise - noise) / 2)),
        shrinkage_error=unsure,
    )
    return fit, decay


def _undo(z: np.ndarray, noise: float) -> np.ndarray:
    return np.asarray(noise * SymmetricNoise().strength(z / noise))


def _moments(
    strengths: np.ndarray, gamma: float, ranks: np.ndarray, size: int, most: float
) -> tuple[float, float]:
    """Mean and variance over all values of the weak strengths, continued from the last three."""
    count = strengths.size
    last = np.arange(count - 2, count + 1)
    weak = np.minimum(float(np.median(strengths[-3:] * last**gamma)) * ranks**-gamma, most)
    mean = float(weak.sum()) / size
    return mean, max(float((weak**2).sum()) / size - mean**2, 0.0)
