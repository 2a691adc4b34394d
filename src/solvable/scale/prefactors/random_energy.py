"""Mean log-sum-exp of Gaussian scores, for cross-entropy."""

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
    low, high = -log(count) - scale * scale - 9 * scale - 40, 9 * scale + 5
    v = np.linspace(low, high, int((high - low) / 0.04) + 1)
    z, chance = gaussian_quadrature(24, (0.0,))
    blocks = np.array_split(v, v.size // 500 + 1)
    each = np.concatenate([np.exp(-np.exp(part[:, None] + scale * z)) @ chance for part in blocks])
    return float(np.trapezoid(np.exp(-np.exp(v)) - each**count, v)) - log(count)


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
