r"""Decay :math:`\gamma` of feature strengths, and what shrinking them to the best size is worth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvable.errors import InvalidData

MINIMUM_STRENGTHS = 8
"""Strengths below which no decay is fitted: its 95 % interval would span a factor of five."""

DRAWS = 199
"""Replicates of the goodness of fit."""


@dataclass(frozen=True)
class Decay:
    r"""Power law :math:`s_i\propto i^{-\gamma}` of strengths, weakest one as its threshold.

    Parameters
    ----------
    value, low, high : float
        :math:`\gamma` with its interval.
    p_value : float
        Goodness of fit by parametric bootstrap.
    n : int
        Strengths that entered.
    amplitude : float
        :math:`A` of :math:`s_i=A\,i^{-\gamma}`.
    """

    value: float
    low: float
    high: float
    p_value: float
    n: int
    amplitude: float

    def undetected(self, size: int) -> float:
        r"""Squared strengths :math:`\sum_{i=n+1}^{d}A^2i^{-2\gamma}` beyond those seen.

        Parameters
        ----------
        size : int
            :math:`d`, the number of all values.

        Returns
        -------
        float
            In the unit of the strengths, squared.
        """
        ranks = np.arange(self.n + 1, size + 1)
        return float(self.amplitude**2 * (ranks ** (-2.0 * self.value)).sum())


def fit_decay(
    strengths: np.ndarray,
    errors: np.ndarray,
    *,
    confidence: float = 0.95,
    draws: int = DRAWS,
    seed: int = 0,
) -> Decay:
    r"""Decay of de-biased strengths, by maximum likelihood.

    Given the weakest of K strengths, :math:`s_K`, the logarithms of the others over it are
    exponential of mean :math:`\gamma` under a power law,

    .. math:: \sum_{i<K}\log\frac{s_i}{s_K}\sim\frac\gamma2\chi^2_{2(K-1)},\qquad
        \hat\gamma=\sum_{i<K}\log\frac{s_i}{s_K}\Big/\sum_{i<K}\log\frac Ki,

    so that the interval is exact for strengths drawn from a power law; the errors of the strengths
    widen it. The estimate is exact for strengths that sit at :math:`i^{-\gamma}`, as those of the
    theory do: dividing by K - 1 would put it too low by :math:`\log(2\pi K)/2K`.

    Parameters
    ----------
    strengths : ndarray of shape (K,)
        Positive, de-biased and de-thresholded.
    errors : ndarray of shape (K,)
        Their standard errors.
    confidence : float
        Of the interval, in (0, 1).
    draws : int
        Replicates of the goodness of fit.
    seed : int
        Of the bootstrap.

    Returns
    -------
    Decay
        With interval and goodness of fit.

    Raises
    ------
    InvalidData
        If there are fewer than ``MINIMUM_STRENGTHS``, or one is not positive and finite.

    Notes
    -----
    Source: Hill, Ann. Statist. 3 (1975) 1163; backed by ``tests/diagnose/test_strengths.py``
    (coverage; strengths behind simulated matrices).

    Examples
    --------
    >>> found = fit_decay(np.arange(1, 31) ** -1.0, np.zeros(30))
    >>> found.low < 1.0 < found.high
    True
    """
    s = np.sort(np.abs(np.asarray(strengths, dtype=float)))[::-1]
    if s.size < MINIMUM_STRENGTHS:
        raise InvalidData(
            f"{s.size} strengths; at least {MINIMUM_STRENGTHS} are needed for their decay."
        )
    if not np.isfinite(s).all() or s[-1] <= 0 or s[0] == s[-1]:
        raise InvalidData("strengths must be positive, finite and not all equal.")
    from scipy.special import ndtri
    from scipy.stats import chi2

    n = s.size - 1
    logs = np.log(s[:-1] / s[-1])
    mean = float(logs.mean())
    value = mean * n / float(np.log(s.size / np.arange(1, s.size)).sum())
    tail = (1 - confidence) / 2
    low, high = 2 * n * mean / chi2.ppf([1 - tail, tail], 2 * n)
    relative = np.sort(np.asarray(errors, dtype=float) / np.abs(strengths))
    # The weakest is in every logarithm; the others average out.
    extra = float(np.hypot(relative.max(), np.sqrt((relative**2).mean() / n)) * ndtri(1 - tail))
    rng = np.random.default_rng(seed)
    seen = _distance(logs, mean)
    count = 0
    for _ in range(draws):
        again = rng.exponential(mean, n)
        count += _distance(again, float(again.mean())) >= seen
    ranks = np.arange(1, s.size + 1)
    return Decay(
        value,
        float(max(0.0, value - np.hypot(value - low, extra))),
        float(value + np.hypot(high - value, extra)),
        (1 + count) / (1 + draws),
        int(s.size),
        float(np.exp(np.mean(np.log(s) + value * np.log(ranks)))),
    )


def _distance(logs: np.ndarray, mean: float) -> float:
    law = 1 - np.exp(-np.sort(logs) / mean)
    steps = np.arange(law.size + 1) / law.size
    return float(np.maximum(np.abs(law - steps[1:]), np.abs(law - steps[:-1])).max())


@dataclass(frozen=True)
class Errors:
    r"""Squared Frobenius distance to the signals behind the outliers, by what is done to them.

    Parameters
    ----------
    bulk : float
        :math:`\sum y^2` over the bulk: what the matrix keeps of the noise alone.
    shrinkage : float
        :math:`\sum_k(y_k-s_k)^2`.
    rotation : float
        :math:`2\sum_ks_ky_k(1-c_k)`.
    cut : float
        With the bulk removed and the outliers as they are.
    edge : float
        With the outliers lowered to :math:`x-x_+`, as by a threshold at the edge of the bulk.
    denoised : float
        With outliers at their best size :math:`s_kc_k` and no bulk.
    """

    bulk: float
    shrinkage: float
    rotation: float
    cut: float
    edge: float
    denoised: float


def shrinkage_errors(
    values: np.ndarray,
    n_outliers: int,
    strengths: np.ndarray,
    cosines: np.ndarray,
    *,
    edge: float,
) -> Errors:
    r"""Predicted error of a matrix and of what pruning and denoising make of it.

    A signal :math:`s\,uv^\top` estimated by :math:`y\,\hat u\hat v^\top` with
    :math:`c=(u\cdot\hat u)(v\cdot\hat v)` costs

    .. math:: s^2+y^2-2syc=(s-y)^2+2sy(1-c),

    least at :math:`y=sc`, where it is :math:`s^2(1-c^2)`; in the rectangular case
    :math:`sc=\frac{\delta^2}x\sqrt{(x^2/\delta^2-1-c)^2-4c}`. For symmetric matrices
    :math:`c=1-\delta^2/s^2` and the cost is that of
    :func:`~solvable.theory.outlier_error`, with its factor 2.

    Parameters
    ----------
    values : ndarray of shape (p,)
        Singular values or eigenvalues as they are, ascending in modulus.
    n_outliers : int
        K, the last of them.
    strengths, cosines : ndarray of shape (K,)
        :math:`s_k` and :math:`c_k`, strongest first.
    edge : float
        Of the bulk, in the unit of the values.

    Returns
    -------
    Errors
        All in the squared unit of the values.

    Notes
    -----
    Signals below the threshold are in none of them: no treatment of the spectrum finds them.
    Source: Gavish and Donoho, arXiv:1405.7511; backed by ``tests/diagnose/test_strengths.py``
    (simulated matrices).
    """
    y = np.sort(np.abs(values))
    tops, bulk = y[y.size - n_outliers :][::-1], y[: y.size - n_outliers]
    s = np.abs(strengths)
    noise = float((bulk**2).sum())
    shrinkage = float(((tops - s) ** 2).sum())
    rotation = float((2 * s * tops * (1 - cosines)).sum())
    lowered = np.clip(tops - max(edge, 0.0), 0, None)
    return Errors(
        noise,
        shrinkage,
        rotation,
        shrinkage + rotation,
        float((s**2 + lowered**2 - 2 * s * lowered * cosines).sum()),
        float((s**2 * (1 - cosines**2)).sum()),
    )
