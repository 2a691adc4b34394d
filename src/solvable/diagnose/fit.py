r"""Bulk and spikes of the singular values of a trained matrix, by maximum likelihood."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from solvable.diagnose.bulk_likelihood import (
    NULL_SIZE,
    Replicates,
    distance,
    maximise,
    replicates,
    wider_edge,
)
from solvable.diagnose.fit_law import RectangularNoise, Spikes, debias, noise_edge
from solvable.diagnose.noise_law import NoiseLaw
from solvable.errors import InvalidData, InvalidParameter

MINIMUM_COUNT = 30
"""Singular values below which nothing is fitted."""


@dataclass(frozen=True)
class BulkFit:
    r"""Bulk and spikes of one spectrum: :math:`y=(x-b)_+`, x of signal plus noise.

    Parameters
    ----------
    shape : tuple of int
        Shorter and longer side of the matrix, p and q.
    noise : float
        :math:`\delta`: the noise has entries of variance :math:`\delta^2/q`.
    shrinkage : float
        :math:`b\ge0`, by which singular values were lowered (soft threshold of a nuclear norm).
    zeros : int
        Singular values that are zero.
    edge : float
        Upper edge of the bulk, :math:`\delta(1+\sqrt c)-b`.
    cut : float
        What an outlier has to exceed: edge and margin of order :math:`p^{-2/3}`.
    spikes : Spikes
        De-biased signals behind the outliers.
    distance : float
        Largest difference of the distribution functions of the bulk, seen and fitted.
    p_value : float
        Probability of such a distance for noise of this shape.
    noise_error, shrinkage_error : float
        Standard errors, from simulated noise; that of a shrinkage of zero is zero.
    """

    shape: tuple[int, int]
    noise: float
    shrinkage: float
    zeros: int
    edge: float
    cut: float
    spikes: Spikes
    distance: float
    p_value: float
    noise_error: float = 0.0
    shrinkage_error: float = 0.0

    @property
    def n_outliers(self) -> int:
        """Number of values beyond the cut."""
        return int(self.spikes.observed.size)

    @property
    def threshold(self) -> float:
        r"""Strength from which a signal is out of the bulk, :math:`\delta c^{1/4}`."""
        p, q = self.shape
        return self.noise * (p / q) ** 0.25


def check_spectrum(values: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """Singular values in ascending order, checked against the shape of their matrix.

    Parameters
    ----------
    values : ndarray of shape (p,)
        Singular values, in any order.
    shape : tuple of int
        Of the matrix.

    Returns
    -------
    ndarray of shape (p,)
        Ascending, in double precision.

    Raises
    ------
    InvalidData
        If there are too few, not as many as the shorter side, not finite, negative or all equal.
    """
    y = np.sort(np.asarray(values, dtype=float).ravel())
    if y.size != min(shape):
        raise InvalidData(
            f"{y.size} singular values of a {shape[0]} x {shape[1]} matrix; pass all."
        )
    if y.size < MINIMUM_COUNT:
        raise InvalidData(f"{y.size} singular values; at least {MINIMUM_COUNT} are needed.")
    if not np.isfinite(y).all() or y[0] < 0:
        raise InvalidData("a singular value is negative or not finite; allowed: numbers from 0 up.")
    if y[-1] == 0:
        raise InvalidData("all singular values are zero: the matrix is zero.")
    return y


def fit_bulk(
    values: np.ndarray,
    shape: tuple[int, int],
    *,
    level: float = 0.01,
    tolerance: float = 0.0,
    seed: int = 0,
) -> BulkFit:
    r"""Noise, shrinkage and outliers of a matrix from its singular values.

    The rectangular form of :math:`\hat S\sim(S^\star+\delta Z-b)_+`: singular values
    :math:`y=(x-b)_+`, where x are those of a signal of low rank plus noise of variance
    :math:`\delta^2/q`. Of the bulk, values within the window :math:`[y_l,y_h]` enter one by one and
    the rest by number:

    .. math::
        \ell(\delta,b)=\sum_{y_l\le y\le y_h}\log\frac{f((y+b)/\delta)}\delta
        +n_l\log F\Big(\frac{y_l+b}\delta\Big)+n_h\log\Big(1-F\Big(\frac{y_h+b}\delta\Big)\Big).

    Values beyond the Tracy-Widom quantile of the noise left are taken out, and the fit repeated
    until their number stays.

    Parameters
    ----------
    values : ndarray of shape (min(shape),)
        All singular values of the matrix.
    shape : tuple of int
        Of the matrix, in either order.
    level : float
        Probability, at most, of calling pure noise an outlier; default 1 % per matrix.
    tolerance : float
        Singular values up to here are zero (rounding of the stored matrix).
    seed : int
        Of the simulated noise behind the p-value.

    Returns
    -------
    BulkFit
        The fit; ``p_value`` says whether to believe it.

    Raises
    ------
    InvalidData
        If there are too few values, fewer than ``MINIMUM_COUNT`` positive ones in the bulk, or if
        more than half of them are beyond the cut: then there is no bulk.

    Notes
    -----
    A few tens of milliseconds. Independence of the entries of the noise is assumed; values repel,
    so the likelihood is a composite one: right estimates, and p-values by simulation only. Source:
    derived from arXiv:2505.17958; backed by ``tests/diagnose/test_fit.py``.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> W = rng.standard_normal((100, 400)) / 20
    >>> W[:, 0] += 0.3
    >>> found = fit_bulk(np.linalg.svd(W, compute_uv=False), W.shape)
    >>> found.n_outliers, round(found.noise, 2), round(float(found.spikes.strengths[0]), 1)
    (1, 1.0, 3.0)
    """
    if not 0 < level < 0.5:
        raise InvalidParameter(
            f"level is {level}; allowed: above 0 and below 0.5, for example 0.01."
        )
    p, q = sorted(int(side) for side in shape)
    y = check_spectrum(values, shape)
    y = np.where(y <= tolerance, 0.0, y)
    zeros = int((y == 0).sum())
    outliers, scale, shift, cut, found, simulated = _settle(y, q, zeros, level, seed)
    covariance = simulated.spread(p - outliers)
    law = RectangularNoise(p / q)
    noise = scale * np.sqrt(q / (q - outliers))
    observed = y[p - outliers :][::-1] + shift
    observed = observed[observed > noise * law.edges[1]]
    spikes = debias(observed, noise=noise, n_columns=q, ratio=p / q)
    unsure = covariance * noise**2
    if not shift:
        unsure[1] = unsure[:, 1] = 0.0
    return BulkFit(
        (p, q),
        float(noise),
        float(shift),
        zeros,
        float(noise * law.edges[1] - shift),
        float(cut),
        spikes_with_error(spikes, law, noise, unsure),
        found,
        simulated.p_value(found, p - outliers),
        float(np.sqrt(unsure[0, 0])),
        float(np.sqrt(unsure[1, 1])),
    )


def _settle(
    y: np.ndarray, q: int, zeros: int, level: float, seed: int
) -> tuple[int, float, float, float, float, Replicates]:
    """Number of outliers that stays, with scale, shift, cut, distance and simulated noise."""
    p, outliers = y.size, 0
    for _ in range(p):
        bulk = y[: p - outliers]
        if bulk.size - zeros < MINIMUM_COUNT or outliers > p // 2:
            raise InvalidData(
                f"{bulk.size - zeros} of {p} singular values are left for a bulk and {outliers} lie "
                f"beyond it; at least {MINIMUM_COUNT} and half of them are needed. There is no bulk."
            )
        ratio = (p - outliers) / (q - outliers)
        scale, shift = maximise(bulk, RectangularNoise(ratio), always=zeros > 0)
        rounded = RectangularNoise(*RectangularNoise(p / q).key)
        simulated = replicates(
            min(bulk.size, NULL_SIZE), rounded, round(shift / scale, 1), seed=seed
        )
        covariance = simulated.spread(bulk.size)
        law = RectangularNoise(ratio)
        found = distance(bulk, law, scale, shift)
        # Without a shift there is none to correct.
        shifted = shift > 0
        scale, shift = simulated.corrected(scale, shift, bulk.size)
        shift = shift if shifted else 0.0
        # Entries of the noise have standard deviation scale / sqrt(q - outliers).
        reach = noise_edge(p - outliers, q - outliers, probability=1 - level)
        reach /= np.sqrt(q - outliers)
        wider = wider_edge(law.edge_scale(bulk.size), law.edges[1], covariance, 1 - level)
        cut = scale * (reach + wider) - shift
        beyond = int((y > cut).sum())
        if beyond <= outliers:
            break
        outliers = beyond
    return outliers, scale, shift, cut, found, simulated


def spikes_with_error(
    spikes: Spikes, law: NoiseLaw, noise: float, covariance: np.ndarray
) -> Spikes:
    r"""Add to the errors of strengths what an error of the noise and the shrinkage does to them.

    Parameters
    ----------
    spikes : Spikes
        With the error of the outliers alone.
    law : NoiseLaw
        Of unit scale.
    noise : float
        :math:`\delta`, above 0.
    covariance : ndarray of shape (2, 2)
        Of noise and shrinkage.

    Returns
    -------
    Spikes
        With larger standard errors, by the gradient of :math:`\delta s((y+b)/\delta)`.
    """
    x, step = spikes.observed / noise, 1e-6
    by_place = (law.strength(x * (1 + step)) - law.strength(x)) / (x * step)
    gradient = np.stack([law.strength(x) - x * by_place, by_place])
    extra = np.einsum("ik,ij,jk->k", gradient, covariance, gradient)
    errors = np.sqrt(spikes.standard_errors**2 + np.clip(extra, 0, None))
    return replace(spikes, standard_errors=errors)
