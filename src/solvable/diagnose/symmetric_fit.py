r"""Noise, shrinkage and features of a symmetric matrix from its eigenvalues."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvable.diagnose.bulk_likelihood import NULL_SIZE, distance, maximise, replicates, wider_edge
from solvable.diagnose.fit import MINIMUM_COUNT, BulkFit, spikes_with_error
from solvable.diagnose.fit_law import Spikes
from solvable.diagnose.noise_law import SymmetricNoise
from solvable.errors import InvalidData, InvalidParameter
from solvable.spectra.edges import tracy_widom_quantile

MINIMUM_BULK = 15
"""Positive eigenvalues of a cut bulk below which nothing is fitted: the zeros are data as well."""


@dataclass(frozen=True)
class SymmetricFit(BulkFit):
    r"""Fit of :math:`(S^\star+\delta Z-b)_+`, or of :math:`S^\star+\delta Z-b` if not semidefinite.

    The fields are those of :class:`~solvable.diagnose.fit.BulkFit`; the edge is
    :math:`2\delta-b`, strengths are eigenvalues of :math:`S^\star`, both overlaps are
    :math:`1-\delta^2/s^2`, and :math:`-b` is the centre of a matrix of both signs.

    Attributes
    ----------
    semidefinite : bool
        Whether eigenvalues below zero were cut.
    """

    semidefinite: bool = True

    @property
    def threshold(self) -> float:
        r"""Strength from which a signal is out of the bulk, :math:`\delta`."""
        return self.noise


def fit_symmetric(
    values: np.ndarray,
    *,
    semidefinite: bool | None = None,
    level: float = 0.01,
    tolerance: float = 0.0,
    seed: int = 0,
) -> SymmetricFit:
    r"""Noise, shrinkage and features of a symmetric matrix from its eigenvalues.

    The learned matrix of a quadratic network is :math:`\hat S=(S^\star+\delta Z-b)_+`. With K
    outliers taken out, m of the d - K others positive and z zero, the likelihood is that of
    :math:`y=(x-b)_+` for x of the semicircle of :math:`\delta\sqrt{1-K/d}`,

    .. math::
        \ell(\delta,b)=z\log F\Big(\frac b\delta\Big)+\sum_{y\le y_h}\log\frac{f((y+b)/\delta)}\delta
        +n_h\log\Big(1-F\Big(\frac{y_h+b}\delta\Big)\Big),

    so that the number of zeros counts; values beyond :math:`y_h` enter by their number, as weak
    signals live there. Outliers exceed :math:`2\delta+\delta d^{-2/3}\mathrm{TW}_1-b`, and with
    :math:`x=y+b`

    .. math:: s=\frac{x+\sqrt{x^2-4\delta^2}}2,\qquad o=1-\frac{\delta^2}{s^2}.

    Parameters
    ----------
    values : ndarray of shape (d,)
        All eigenvalues, zeros among them.
    semidefinite : bool, optional
        Whether eigenvalues were cut at zero; by default, if none is below it.
    level : float
        Probability, at most, of calling pure noise an outlier; default 1 % per side.
    tolerance : float
        Eigenvalues up to here in modulus are zero.
    seed : int
        Of the simulated noise behind the p-value.

    Returns
    -------
    SymmetricFit
        The fit; ``p_value`` says whether to believe it.

    Raises
    ------
    InvalidData
        If there are too few eigenvalues, or fewer than ``MINIMUM_BULK`` positive ones in the bulk:
        a threshold at or beyond :math:`2\delta` leaves no bulk to fit.

    Notes
    -----
    Source: derived from arXiv:2505.17958; backed by
    ``tests/diagnose/test_symmetric_fit.py`` (coverage over simulated matrices).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> Z = rng.standard_normal((300, 300))
    >>> M = (Z + Z.T) / np.sqrt(600)
    >>> M[0, 0] += 3.0
    >>> found = fit_symmetric(np.clip(np.linalg.eigvalsh(M) - 0.5, 0, None))
    >>> found.n_outliers, round(found.noise, 1), round(found.shrinkage, 1)
    (1, 1.0, 0.5)
    """
    if not 0 < level < 0.5:
        raise InvalidParameter(
            f"level is {level}; allowed: above 0 and below 0.5, for example 0.01."
        )
    y = _checked(values)
    if semidefinite is None:
        semidefinite = bool(y[0] >= -tolerance)
    if semidefinite:
        if y[0] < -tolerance:
            raise InvalidData(
                f"an eigenvalue of {y[0]:.6g} is below zero; pass semidefinite=False."
            )
        y = np.where(y <= tolerance, 0.0, y)
    return _fit(y, semidefinite, level, seed)


def _checked(values: np.ndarray) -> np.ndarray:
    y = np.sort(np.asarray(values, dtype=float).ravel())
    if y.size < MINIMUM_COUNT:
        raise InvalidData(f"{y.size} eigenvalues; at least {MINIMUM_COUNT} are needed.")
    if not np.isfinite(y).all():
        raise InvalidData("an eigenvalue is not finite; allowed: real numbers.")
    if y[0] == y[-1]:
        raise InvalidData(
            f"all {y.size} eigenvalues are {y[0]:.6g}: the matrix is no more than that."
        )
    return y


def _fit(y: np.ndarray, semidefinite: bool, level: float, seed: int) -> SymmetricFit:
    d, law = y.size, SymmetricNoise()
    zeros = int((y == 0).sum()) if semidefinite else 0
    if semidefinite and zeros == 0:
        raise InvalidData(
            "no eigenvalue is zero, so that no threshold has cut the noise; there is no bulk."
        )
    low = high = 0
    for _ in range(d):
        bulk = y[low : d - high]
        if bulk.size - zeros < MINIMUM_BULK or low + high > d // 2:
            raise InvalidData(
                f"{bulk.size - zeros} of {d} eigenvalues are left for a bulk and {low + high} lie "
                f"beyond it; at least {MINIMUM_BULK} and half of them are needed. There is no bulk."
            )
        scale, shift = maximise(bulk, law, always=semidefinite, signed=not semidefinite)
        share = round(shift / scale, 1) if semidefinite else 0.0
        simulated = replicates(
            min(bulk.size, NULL_SIZE), law, share, signed=not semidefinite, seed=seed
        )
        covariance = simulated.spread(bulk.size)
        unit = law.edge_scale(bulk.size)
        margin = unit * tracy_widom_quantile(1 - level)
        reach = scale * (2 + margin + wider_edge(unit, law.edges[1], covariance, 1 - level))
        beyond = int((y + shift > reach).sum())
        under = 0 if semidefinite else int((y + shift < -reach).sum())
        if beyond <= high and under <= low:
            break
        low, high = max(low, under), max(high, beyond)
    found = distance(bulk, law, scale, shift)
    scale, shift = simulated.corrected(scale, shift, bulk.size)
    # Entries keep their variance when rows are taken out.
    noise = scale * np.sqrt(d / bulk.size)
    spikes = _spikes(np.concatenate([y[d - high :], y[:low]]) + shift, noise, covariance, d)
    return SymmetricFit(
        (d, d),
        float(noise),
        float(shift),
        zeros,
        float(2 * noise - shift),
        float(reach - shift),
        spikes,
        found,
        simulated.p_value(found, bulk.size),
        float(noise * np.sqrt(covariance[0, 0])),
        float(noise * np.sqrt(covariance[1, 1])),
        semidefinite,
    )


def _spikes(x: np.ndarray, noise: float, covariance: np.ndarray, d: int) -> Spikes:
    law = SymmetricNoise()
    x = x[np.abs(x) > 2 * noise]
    x = x[np.argsort(-np.abs(x))]
    place = np.abs(x) / noise
    s = law.strength(place)
    overlap = 1 - 1 / s**2
    errors = law.spread(place, d) / overlap
    plain = Spikes(np.abs(x), noise * s, noise * errors, overlap, overlap)
    wider = spikes_with_error(plain, law, noise, covariance * noise**2)
    sign = np.sign(x)
    return Spikes(x, sign * wider.strengths, wider.standard_errors, overlap, overlap)
