r"""Bulk and spikes of the singular values of a trained matrix, by maximum likelihood."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from solvable.errors import InvalidData, InvalidParameter
from solvable.spectra.fit_law import RectangularNoise, Spikes, debias, noise_edge

MINIMUM_COUNT = 30
"""Singular values below which nothing is fitted."""

WINDOW = (0.05, 0.85)
"""Quantiles of the bulk between which values enter one by one; beyond them only by their number.

Spikes below the threshold and the rounding of the edge live in the upper part.
"""

WINDOW_POINTS = 256
"""Values that enter the likelihood one by one at most."""

SHRINKAGE_GAIN = 10.8
"""Twice the gain in log-likelihood that a shrinkage must bring: 0.1 % for independent values.

Singular values repel and fluctuate less than independent ones, so the level is lower than that.
"""

COARSE = 5.0
"""How far the coarse grid of shrinkages may be above the plain fit for a closer look."""

IMPOSSIBLE = 1e15
"""Minus log-likelihood outside the support: finite, as the minimiser interpolates."""

NULL_DRAWS = 79
"""Simulated noise matrices behind the goodness of fit."""

NULL_SIZE = 120
"""Their shorter side at most: the distance times the side hardly depends on the side."""


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
    derived (note 04, 8.3); backed by ``tests/spectra/test_fit.py``.

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
    outliers = 0
    for _ in range(p):
        bulk = y[: p - outliers]
        if bulk.size - zeros < MINIMUM_COUNT or outliers > p // 2:
            raise InvalidData(
                f"{bulk.size - zeros} of {p} singular values are left for a bulk and {outliers} lie "
                f"beyond it; at least {MINIMUM_COUNT} and half of them are needed. There is no bulk."
            )
        ratio = (p - outliers) / (q - outliers)
        scale, shift = _maximise(bulk, ratio, always=zeros > 0)
        # Entries of the noise have standard deviation scale / sqrt(q - outliers).
        entry = scale / np.sqrt(q - outliers)
        cut = entry * noise_edge(p - outliers, q - outliers, probability=1 - level) - shift
        beyond = int((y > cut).sum())
        if beyond <= outliers:
            break
        outliers = beyond
    noise = entry * np.sqrt(q)
    law = RectangularNoise(p / q)
    observed = y[p - outliers :][::-1] + shift
    observed = observed[observed > noise * law.edges[1]]
    distance = _distance(bulk, RectangularNoise(ratio), scale, shift)
    size = min(bulk.size, NULL_SIZE)
    null = _null(size, max(round(p / q, 2), 0.01), round(shift / scale, 2), seed)
    # Over the spectrum the count of values strays from the law by the order of log p.
    grown = null * np.log(bulk.size) / np.log(size)
    exceeding = int((grown >= distance * bulk.size).sum())
    return BulkFit(
        (p, q),
        float(noise),
        float(shift),
        zeros,
        float(noise * law.edges[1] - shift),
        float(cut),
        debias(observed, noise=noise, n_columns=q, ratio=p / q),
        distance,
        (1 + exceeding) / (1 + null.size),
    )


def _maximise(bulk: np.ndarray, ratio: float, *, always: bool) -> tuple[float, float]:
    """Scale and shift of largest likelihood; no shift unless it gains enough."""
    from scipy.optimize import minimize, minimize_scalar

    law = RectangularNoise(ratio)
    loss = _Loss(bulk, law)
    positive = bulk[bulk > 0]
    # The window is inside the support only if the scale is near what its upper end asks for.
    start = float(np.log(np.quantile(positive, 0.5) / law.quantile(np.array([0.5]))[0]))
    if not always:
        # Scales at which a value leaves the support are a flat stretch: look where it is not.
        trials = start + np.linspace(-0.4, 0.4, 41)
        nearest = trials[int(np.argmin([loss(np.exp(t), 0.0) for t in trials]))]
        plain = minimize_scalar(
            lambda t: loss(np.exp(t), 0.0),
            bounds=(nearest - 0.02, nearest + 0.02),
            method="bounded",
            options={"xatol": 1e-7},
        )
    ends = np.array([loss.low, loss.high])
    probability = np.array([loss.n_low, bulk.size - loss.n_high]) / bulk.size
    best = (IMPOSSIBLE, start, 0.0)
    for share in np.linspace(0.0, 0.95, 20) * law.edges[1]:
        # At this shift over scale the upper end of the window fixes the scale nearly.
        place = law.quantile(probability)[1] - share
        if place <= 0:
            continue
        scale = ends[1] / place
        for factor in (0.97, 1.0, 1.03):
            value = loss(scale * factor, share * scale * factor)
            if value < best[0]:
                best = (value, float(np.log(scale * factor)), share)
    # A coarse grid is within a few units of its best; where it is far off, nothing can be gained.
    if best[0] < (IMPOSSIBLE if always else min(plain.fun + COARSE, IMPOSSIBLE)):
        free = minimize(
            lambda t: loss(np.exp(t[0]), t[1] * np.exp(t[0])),
            best[1:],
            method="Nelder-Mead",
            options={"xatol": 1e-6, "fatol": 1e-6, "maxiter": 400},
        )
        if always or 2 * (plain.fun - free.fun) > SHRINKAGE_GAIN:
            scale = float(np.exp(free.x[0]))
            return scale, float(free.x[1]) * scale
    if always:
        # Zeros that no shrinkage explains: the rank is low for another reason.
        raise InvalidData("the zeros of the spectrum fit no shrunken noise; there is no bulk.")
    if plain.fun >= IMPOSSIBLE:
        raise InvalidData("no scale of noise covers the middle of the spectrum; there is no bulk.")
    return float(np.exp(plain.x)), 0.0


class _Loss:
    """Minus the log-likelihood of the bulk, censored beyond the window."""

    def __init__(self, bulk: np.ndarray, law: RectangularNoise) -> None:
        self.law = law
        first = max(int(WINDOW[0] * bulk.size), int((bulk == 0).sum()))
        last = max(int(WINDOW[1] * bulk.size), first + 2)
        inside = bulk[first:last]
        self.low, self.high = float(inside[0]), float(inside[-1])
        if (bulk == 0).any():
            self.low = 0.0
        self.n_low, self.n_high = first, bulk.size - last
        picked = np.unique(np.linspace(0, inside.size - 1, WINDOW_POINTS).astype(int))
        self.points, self.weight = inside[picked], inside.size / picked.size

    def __call__(self, scale: float, shift: float) -> float:
        if shift < 0:
            return IMPOSSIBLE
        density = self.law.density((self.points + shift) / scale)
        ends = self.law.cdf((np.array([self.low, self.high]) + shift) / scale)
        below, above = float(ends[0]), float(1 - ends[1])
        short = (self.n_low > 0 and below <= 0) or (self.n_high > 0 and above <= 0)
        if short or (density <= 0).any():
            return IMPOSSIBLE
        inside = self.weight * float(np.log(density / scale).sum())
        outside = (self.n_low * np.log(below) if self.n_low else 0.0) + (
            self.n_high * np.log(above) if self.n_high else 0.0
        )
        return -(inside + float(outside))


def _distance(bulk: np.ndarray, law: RectangularNoise, scale: float, shift: float) -> float:
    # Zeros are one atom: the distribution function is compared beside it, not within.
    zeros = int((bulk == 0).sum())
    fitted = law.cdf((bulk[zeros:] + shift) / scale)
    steps = np.arange(zeros, bulk.size + 1) / bulk.size
    return float(np.maximum(np.abs(fitted - steps[1:]), np.abs(fitted - steps[:-1])).max())


@lru_cache(maxsize=128)
def _null(size: int, ratio: float, share: float, seed: int) -> np.ndarray:
    """Distance times size of simulated noise, fitted in the same way, ascending."""
    rng = np.random.default_rng([seed, size, int(1000 * ratio), int(100 * share)])
    columns = max(size, round(size / ratio))
    found = []
    for _ in range(NULL_DRAWS):
        x = noise_singular_values(size, columns, rng) / np.sqrt(columns)
        y = np.sort(np.clip(x - share, 0, None))
        scale, shift = _maximise(y, size / columns, always=bool((y == 0).any()))
        found.append(_distance(y, RectangularNoise(size / columns), scale, shift) * size)
    return np.sort(found)


def noise_singular_values(n_rows: int, n_columns: int, rng: np.random.Generator) -> np.ndarray:
    r"""Singular values of a matrix of standard normal entries, without the matrix.

    Bidiagonal with :math:`\chi_{q},\chi_{q-1},\dots` on and :math:`\chi_{p-1},\dots,\chi_1` beside
    the diagonal.

    Parameters
    ----------
    n_rows, n_columns : int
        p and q with p at most q.
    rng : Generator
        Source of randomness.

    Returns
    -------
    ndarray of shape (p,)
        Ascending.

    Notes
    -----
    Time of order p squared. Source: Dumitriu and Edelman, math-ph/0206043; backed by
    ``tests/spectra/test_fit.py``.

    Examples
    --------
    >>> noise_singular_values(50, 200, np.random.default_rng(0)).shape
    (50,)
    """
    from scipy.linalg import eigvalsh_tridiagonal

    diagonal = rng.chisquare(n_columns - np.arange(n_rows))
    beside = rng.chisquare(np.arange(n_rows - 1, 0, -1.0))
    total = diagonal.copy()
    total[1:] += beside
    squares = eigvalsh_tridiagonal(total, np.sqrt(diagonal[:-1] * beside))
    return np.sqrt(np.clip(squares, 0, None))
