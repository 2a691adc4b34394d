r"""Residual effective dimension, and sample size at which each kept direction emerges.

A direction emerges at the sample size at which its eigenvalue leaves the bulk of the noise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvable.arrays import check_positive
from solvable.errors import InvalidData


def residual_dimension(eigenvalues: np.ndarray) -> np.ndarray:
    """Effective dimension of a kernel after removal of the k leading directions, for k = 0, 1, ..."""
    # d_res(k) = sum_{j > k} mu_j / mu_{k + 1}   (lofi 21)
    mu = np.sort(_spectrum(eigenvalues))[::-1]
    tails = np.cumsum(mu[::-1])[::-1]
    return np.divide(tails, mu, out=np.full(mu.shape, np.nan), where=mu > 0)


@dataclass(frozen=True)
class FeatureEmergence:
    """Predicted sample sizes at which the directions of a fitted filter emerge; arrays of shape (k,)."""

    # signed eigenvalue minus the contribution of noise; NaN if the eigenvalue lies within the noise
    strengths: np.ndarray
    noise_levels: np.ndarray  # eigenvalue modulus that a direction of strength 0 has
    # sample size n_k predicted from the strength; NaN if the strength is NaN
    emergence_samples: np.ndarray
    # n_k with the eigenvalue as strength; an underestimate if the eigenvalue is mostly noise
    plain_emergence_samples: np.ndarray
    residual_traces: np.ndarray  # trace of the covariance after removal of stronger directions
    residual_dimensions: np.ndarray  # residual trace divided by the variance of the direction


def predicted_emergence(
    *,
    eigenvalues: np.ndarray,
    variances: np.ndarray,
    covariance_spectrum: np.ndarray,
    n_samples: float,
    label_power: float = 1.0,
) -> FeatureEmergence:
    r"""Sample size at which each kept direction of a fitted filter is expected to emerge.

    With :math:`H(q)=\sum_j\sigma_j/(q-\sigma_j)` over the eigenvalues of :math:`\Sigma` that remain after
    stronger directions are removed, and :math:`q_\star` the minimum of :math:`q\sqrt{H(q)}`,

    .. math:: \hat\lambda_k=q\sqrt{\tau_2H(q)/n},\qquad
        \hat\mu_k=\hat\lambda_k-s_k\sqrt{\tau_2H(q)/n},\qquad
        n_k=\frac{\tau_2}{\hat\mu_k^2}\max\big(s_k\mathrm{tr}\Sigma_{\rm res},\;
        H(q_\star)(q_\star-s_k)^2\big).

    The second term is the number of samples that strong directions require if they are not removed.

    Parameters
    ----------
    eigenvalues, variances : array of shape (k,)
        Eigenvalues :math:`\hat\lambda_k` of the kept directions in the order of the filter, and variances
        :math:`s_k=v_k^\top\Sigma v_k>0` of the features along them.
    covariance_spectrum : array of shape (d,)
        Eigenvalues of :math:`\Sigma`, the (uncentred) covariance of the features; at least 0.
    n_samples, label_power : float
        Number :math:`n` of samples of the eigenvalues, and :math:`\tau_2=E[T^2]`, 1 for labels
        :math:`\pm1`.

    Returns
    -------
    FeatureEmergence
        One entry per direction.

    Notes
    -----
    For each stronger direction the covariance eigenvalue closest to its variance is removed, and all
    others are scaled to the exact residual trace. Valid for :math:`n` above the effective dimension and
    labels without a large mean (lofi 22).

    Examples
    --------
    >>> found = predicted_emergence(
    ...     eigenvalues=np.array([0.5]), variances=np.ones(1), covariance_spectrum=np.ones(400),
    ...     n_samples=10_000,
    ... )
    >>> found.strengths.round(3), found.emergence_samples.round()
    (array([0.4]), array([2500.]))
    """
    check_positive(n_samples=n_samples, label_power=label_power)
    values, s = np.asarray(eigenvalues, float), np.asarray(variances, float)
    sigma = np.sort(_spectrum(covariance_spectrum))[::-1]
    sigma = sigma[sigma > 1e-14 * sigma[0]]
    if values.ndim != 1 or s.shape != values.shape or not np.isfinite(values).all():
        raise InvalidData(
            f"eigenvalues have shape {values.shape} and variances {s.shape}; allowed: (k,), finite."
        )
    if not (np.isfinite(s) & (s > 0)).all():
        raise InvalidData("variances must be finite and above 0.")
    # tr Sigma_res: trace of the covariance after removal of stronger directions
    traces = np.maximum(sigma.sum() - np.concatenate([[0.0], np.cumsum(s)[:-1]]), 0.0)
    strengths, levels, sizes = np.full((3, values.size), np.nan)
    left = sigma
    for k, value in enumerate(values):
        if traces[k] > 0 and left.size > 1:
            scaled = left * traces[k] / left.sum()
            strengths[k], levels[k], sizes[k] = _emergence(
                abs(value), s[k], scaled, n_samples, label_power, traces[k]
            )
            left = np.delete(left, np.argmin(np.abs(left - s[k])))
    with np.errstate(divide="ignore"):
        plain = label_power * s * traces / values**2
    return FeatureEmergence(np.sign(values) * strengths, levels, sizes, plain, traces, traces / s)


def _emergence(
    size: float, variance: float, sigma: np.ndarray, n: float, power: float, trace: float
) -> tuple[float, float, float]:
    """Strength and noise level of one direction, and the sample size at which the direction emerges."""
    from scipy.optimize import brentq

    top = float(sigma.max())

    def density(q: float) -> float:  # H(q) = sum_j sigma_j / (q - sigma_j)
        return float(np.sum(sigma / (q - sigma)))

    def place(log_gap: float) -> float:  # lambda = q sqrt(tau_2 H(q) / n)   (lofi 22)
        q = top * (1 + np.exp(log_gap))
        return q * np.sqrt(power * density(q) / n)

    def slope(log_gap: float) -> float:  # derivative of log(q² H(q)); zero at the edge q*
        q = top * (1 + np.exp(log_gap))
        return 2 / q - float(np.sum(sigma / (q - sigma) ** 2)) / density(q)

    start = brentq(slope, -30.0, 30.0, xtol=1e-12)
    edge, at_edge = place(start), top * (1 + np.exp(start))
    level = edge
    if variance > at_edge:
        level = variance * np.sqrt(power * density(variance) / n)
    if size <= level:
        return np.nan, level, np.nan
    high = start + 1
    while place(high) < size:
        high += 4
    q = top * (1 + np.exp(brentq(lambda t: place(t) - size, start, high, xtol=1e-12)))
    # mu = lambda - s sqrt(tau_2 H(q) / n);  n_k = tau_2 / mu² max(s tr Sigma_res, H(q*) (q* - s)²)
    # (lofi 22)
    strength = size - variance * np.sqrt(power * density(q) / n)
    beyond = max(at_edge - variance, 0.0) ** 2 * density(at_edge)
    return strength, level, power * max(variance * trace, beyond) / strength**2


def _spectrum(eigenvalues: np.ndarray) -> np.ndarray:
    mu = np.asarray(eigenvalues, dtype=np.float64)
    if mu.ndim != 1 or not np.isfinite(mu).all() or (mu < 0).any() or not mu.any():
        raise InvalidData(
            f"eigenvalues have shape {mu.shape}; allowed: (r,), finite, at least 0, not all 0. "
            "Set eigenvalues below rounding to 0."
        )
    return mu
