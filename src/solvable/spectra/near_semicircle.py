r"""Closed forms for spikes in noise that is close to a semicircle, smooth through the threshold.

In the label-weighted moment matrix at :math:`n\gg D` spike i has height :math:`\theta_i`. The noise
is a semicircle of half-width :math:`2s`, :math:`s^2=D\tau_2/n`, and its rows along the spike have
:math:`\tau_{2h,i}` instead of :math:`\tau_2`.
"""

from __future__ import annotations

import numpy as np

from solvable.arrays import check_positive
from solvable.errors import InvalidData, InvalidParameter
from solvable.spectra._monotone import monotone_cubic

# critical profile: arguments w and values f(w), accurate to about half a percent
PROFILE = np.array(
    [
        [-6.0928, 0.0901], [-5.0641, 0.1209], [-4.0408, 0.1678], [-3.5312, 0.2005],
        [-3.0228, 0.2412], [-2.5158, 0.2932], [-2.0101, 0.3589], [-1.5057, 0.4422],
        [-1.0025, 0.5477], [-0.5006, 0.6814], [0.0, 0.8500], [0.5, 1.0589], [1.0, 1.3143],
        [1.5, 1.6207], [2.0, 1.9799], [2.5, 2.3907], [3.0, 2.8430], [3.5, 3.3301], [4.0, 3.8391],
        [5.0, 4.8971], [6.0, 5.9358], [8.0, 7.9705], [10.0, 9.9846], [14.0, 13.9898],
    ]
)  # fmt: skip


def _check_spikes(
    heights: np.ndarray, noise: float, couplings: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Check heights and couplings, and return them as vectors of equal length."""
    check_positive(noise=noise)
    theta = np.atleast_1d(np.asarray(heights, dtype=np.float64))
    rows = np.full(theta.shape, noise) if couplings is None else np.asarray(couplings, np.float64)
    if theta.ndim != 1 or rows.shape != theta.shape:
        raise InvalidData(
            f"heights have shape {theta.shape} and couplings {rows.shape}; allowed: (p,) for both."
        )
    if not (np.isfinite(theta).all() and np.isfinite(rows).all() and (rows >= 0).all()):
        raise InvalidData("heights must be finite, couplings finite and at least 0.")
    return theta, rows


def _column(aspect_ratio: float | np.ndarray) -> np.ndarray:
    """Aspect ratio n / D with an axis for the features."""
    delta = np.asarray(aspect_ratio, dtype=np.float64)
    if not (np.isfinite(delta).all() and (delta > 0).all()):
        raise InvalidParameter(f"aspect_ratio is {aspect_ratio}; allowed: finite, above 0 (n / D).")
    return delta[..., None]


def threshold_ratio(*, heights: np.ndarray, noise: float) -> np.ndarray:
    r"""Compute the samples per feature at which each spike leaves the bulk.

    .. math:: n_i/D=\tau_2/\theta_i^2

    Parameters
    ----------
    heights : array of shape (p,)
        Heights :math:`\theta_i` of either sign; 0 gives infinity.
    noise : float
        Noise :math:`\tau_2`, above 0.

    Returns
    -------
    ndarray of shape (p,)
        Ratios :math:`n_i/D`. For :math:`T=y=h^{(2)}`, where :math:`\theta_i=\sqrt2\lambda_i` and
        :math:`\tau_2=1`, this is :math:`1/(2\lambda_i^2)`.

    Raises
    ------
    InvalidData, InvalidParameter
        If a height is not finite or the noise not positive.

    Notes
    -----
    Cost O(p). Valid for :math:`n_i\gg D`. Source: derivations/spectra (30) and arXiv:2605.14567,
    Equation 2.10; backed by ``tests/spectra/test_near_semicircle.py``.

    Examples
    --------
    >>> threshold_ratio(heights=np.array([0.5, -0.25]), noise=1.0)
    array([ 4., 16.])
    """
    theta, _ = _check_spikes(heights, noise, None)
    with np.errstate(divide="ignore"):
        return np.asarray(noise / theta**2)


def spiked_overlap(
    *,
    heights: np.ndarray,
    noise: float,
    aspect_ratio: float | np.ndarray,
    couplings: np.ndarray | None = None,
    n_features: int | None = None,
) -> np.ndarray:
    """Squared overlap of each spike's eigenvector with the spike's direction."""
    # c_i² = (nu_i - tau_2)_+ / ((nu_i - tau_2)_+ + tau_2h,i), nu_i = (n/D) theta_i²   (spectra 28).
    # At finite D the corner is rounded: (nu - tau_2)_+ -> tau_2 D^(-1/3) f(D^(1/3) (nu / tau_2 -
    # 1)). The result is within 0.02 of simulations for c² above 0.5 and n/D above 30.
    theta, rows = _check_spikes(heights, noise, couplings)
    beyond = _column(aspect_ratio) * theta**2 / noise - 1
    if n_features is None:
        kept = np.maximum(beyond, 0.0)
    else:
        check_positive(n_features=n_features)
        unit = float(n_features) ** (-1 / 3)
        # Below the threshold the profile depends on theta / s, above it on (theta / s)².
        place = np.where(beyond < 0, 2 * np.sqrt(beyond + 1) - 2, beyond)
        kept = unit * critical_profile(place / unit)
    with np.errstate(invalid="ignore"):
        overlap = noise * kept / (noise * kept + rows)
    return np.asarray(np.where(kept == 0, 0.0, overlap))


def critical_profile(place: float | np.ndarray) -> np.ndarray:
    """Universal profile f of the rounded transition of a rank-one spike in real symmetric noise."""
    # E[c²] / (1 - E[c²]) = D^(-1/3) f(w), w = D^(1/3) (n/n_i - 1)   (spectra 27); below the
    # threshold w = 2 D^(1/3) (sqrt(n/n_i) - 1) is the better variable. f = w - 2/w² far above and
    # (4/w²) (1 - 6/w²) far below; between, ln f interpolates values from 18,000 spiked tridiagonal
    # matrices of size 10⁶ (0.5 % accurate).
    w = np.asarray(place, dtype=np.float64)
    with np.errstate(divide="ignore"):
        far = np.where(w < 0, 4 / w**2 * (1 - 6 / w**2), w - 2 / w**2)
    places, values = PROFILE.T
    within = np.clip(w, places[0], places[-1])
    inner = np.exp(monotone_cubic(places, np.log(values), within))
    return np.asarray(np.where(w == within, inner, far))


def rounding_width(n_features: int) -> float:
    r"""Width :math:`D^{-1/3}` of the rounded transition, in units of :math:`n/n_i`."""
    check_positive(n_features=n_features)
    return float(n_features) ** (-1 / 3)
