"""Mean log-sum-exp of Gaussian scores, for cross-entropy and for softmax attention."""

from __future__ import annotations

from functools import lru_cache
from math import log, sqrt

import numpy as np

from solvable.errors import InvalidParameter
from solvable.hermite import gaussian_quadrature


@lru_cache(maxsize=4096)
def mean_log_sum(scale: float, count: float) -> float:
    r"""Compute :math:`E\log\sum_{c=1}^{C} e^{s\xi_c}-\log C` for independent normal scores."""
    if scale == 0:
        return 0.0
    # log S = int_0^inf (e^-t - e^(-t S)) dt / t, with t = e^v
    v, each, _ = _laplace(scale, count)
    return float(np.trapezoid(np.exp(-np.exp(v)) - each**count, v)) - log(count)


@lru_cache(maxsize=4096)
def softmax_response(scale: float, count: float) -> float:
    r"""Compute :math:`E\sum_b p_b\xi_b`, with p the softmax of :math:`s\xi`."""
    if scale == 0:
        return 0.0
    # 1 / S = int_0^inf e^(-t S) dt
    v, each, tilted = _laplace(scale, count)
    return float(np.trapezoid(count * np.exp(v) * tilted * each ** (count - 1), v))


def _laplace(scale: float, count: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Compute points v = log t, E exp(-t e^(s xi)) and E xi e^(s xi) exp(-t e^(s xi))."""
    low, high = -log(count) - scale * scale - 9 * scale - 40, 9 * scale + 5
    v = np.linspace(low, high, int((high - low) / 0.04) + 1)
    z, chance = gaussian_quadrature(24, (0.0,))
    each, tilted = np.empty_like(v), np.empty_like(v)
    for first in range(0, v.size, 500):
        part = slice(first, first + 500)
        decay = np.exp(-np.exp(v[part, None] + scale * z))
        each[part] = decay @ chance
        tilted[part] = decay @ (chance * z * np.exp(scale * z))
    return v, each, tilted


def cross_entropy_samples(
    energy: float, classes: int, *, kernel: float = 1.0, kappa: float = 1.0
) -> float:
    r"""Compute the number of samples below which a classifier with C classes does not reach an alignment.

    .. math:: P^* = \frac{\kappa E}{\log C + E\log\sum_c e^{f_c} - \log C},\qquad
        f_c \sim \mathcal N(0, K)

    Parameters
    ----------
    energy : float
        Large-deviation energy E of the alignment under the prior.
    classes : int
        Number of classes C, at least 2.
    kernel : float
        K = K(x, x), the variance of a logit under the prior.
    kappa : float
        Temperature of the posterior.

    Returns
    -------
    float
        The number P* of samples; to leading order :math:`\kappa E/\log C`.

    Raises
    ------
    InvalidParameter
        If a number is out of range.

    Notes
    -----
    docs/derivations/scale (scale 2). The logit of the label has mean 0 under the prior, so that the mean
    loss is that of the partition function; its first order in K is :math:`\frac12(1 - 1/C)K`, an upper
    bound. Backed by ``tests/scale/prefactors/test_random_energy.py``.

    Examples
    --------
    >>> round(cross_entropy_samples(100.0, 10, kernel=0.1), 2)
    42.6
    """
    if not isinstance(classes, int) or classes < 2:
        raise InvalidParameter(f"classes is {classes!r}; allowed: an integer of at least 2.")
    for name, value in (("energy", energy), ("kernel", kernel), ("kappa", kappa)):
        if not 0 <= value < float("inf") or (name == "kappa" and value == 0):
            raise InvalidParameter(f"{name} is {value}; allowed: finite and above 0.")
    return kappa * energy / (log(classes) + mean_log_sum(sqrt(kernel), classes))
