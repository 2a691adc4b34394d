"""Fit of a bulk of noise and of spikes above the bulk to singular values or eigenvalues."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

from solvable.diagnose.bulk_likelihood import (
    NULL_SIZE,
    Replicates,
    distance,
    maximise,
    replicates,
    wider_edge,
)
from solvable.diagnose.noise import (
    NoiseLaw,
    RectangularNoise,
    Spikes,
    SymmetricNoise,
    debias,
    noise_edge,
)
from solvable.errors import InvalidData
from solvable.spectra.edges import tracy_widom_quantile

LEVEL = 0.01  # probability that pure noise has an outlier
MINIMUM_COUNT = 30  # smallest number of values for a fit


@dataclass(frozen=True)
class BulkFit:
    """Fitted bulk and spikes of a spectrum y = (x - b)_+; x are the values of signal plus noise."""

    shape: tuple[int, int]  # shorter and longer side of the matrix, p and q
    noise: float  # noise scale delta: the entries of the noise have variance delta² / q
    shrinkage: float  # threshold b >= 0, by which a nuclear-norm penalty lowered all values
    zeros: int  # number of values that are zero
    edge: float  # upper edge of the bulk, delta (1 + sqrt(c)) - b
    cut: float  # smallest value of an outlier: edge plus a margin of order p^(-2/3)
    spikes: Spikes  # strengths of the signals behind the outliers, de-biased
    distance: float  # largest distance of the bulk's distribution function from the fit
    p_value: float  # probability that noise in a matrix of this shape has at least this distance
    noise_error: float = 0.0  # standard error of the noise scale, from simulated noise
    shrinkage_error: float = 0.0  # standard error of the shrinkage; zero if the shrinkage is zero

    @property
    def n_outliers(self) -> int:
        """Number of values above the cut."""
        return int(self.spikes.observed.size)

    @property
    def threshold(self) -> float:
        """Smallest strength at which a signal leaves the bulk, delta c^(1/4)   (spectra 4)."""
        p, q = self.shape
        return self.noise * (p / q) ** 0.25


def first_outliers(fit: BulkFit, count: int) -> BulkFit:
    """Return the fit with only the strongest outliers; the cut moves above all other values."""
    spikes = fit.spikes
    if count >= fit.n_outliers:
        return fit
    kept = {field.name: getattr(spikes, field.name)[:count] for field in fields(spikes)}
    if spikes.long_overlap is spikes.short_overlap:
        kept["long_overlap"] = kept["short_overlap"]
    cut = max(fit.cut, float(abs(spikes.observed[count])) - fit.shrinkage)
    return replace(fit, spikes=replace(spikes, **kept), cut=cut)


def _checked(values: np.ndarray, name: str) -> np.ndarray:
    """Return the values in ascending order; raise if no bulk can be fitted to them."""
    y = np.sort(np.asarray(values, dtype=float).ravel())
    if y.size < MINIMUM_COUNT:
        raise InvalidData(f"{y.size} {name}; at least {MINIMUM_COUNT} are needed.")
    if not np.isfinite(y).all():
        raise InvalidData(f"one of the {name} is not finite; allowed: real numbers.")
    if y[0] == y[-1]:
        raise InvalidData(f"all {y.size} {name} are {y[0]:.6g}, so there is no spectrum to fit.")
    return y


def fit_bulk(
    values: np.ndarray,
    shape: tuple[int, int],
    *,
    least: int = MINIMUM_COUNT,
    outliers: int = 0,
    seed: int = 0,
) -> BulkFit:
    """Fit noise, shrinkage and outliers of a matrix to all its singular values."""
    # Model (spectra 1), the rectangular form of arXiv:2505.17958: y = (x - b)_+, where x are the
    # singular values of a low-rank signal plus noise of variance delta² / q. The fit removes
    # ``outliers`` values at the start; at least ``least`` values must be left.
    p, q = sorted(int(side) for side in shape)
    y = _checked(values, "singular values")
    if y.size != p or y[0] < 0:
        raise InvalidData(
            f"{y.size} singular values from {y[0]:.6g} of a {p} x {q} matrix; pass all {p}, none "
            "below 0."
        )
    zeros = int((y == 0).sum())
    outliers, scale, shift, cut, found, simulated = _settle(y, q, zeros, least, seed, outliers)
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
    y: np.ndarray, q: int, zeros: int, least: int, seed: int, outliers: int
) -> tuple[int, float, float, float, float, Replicates]:
    """Return the final number of outliers, and scale, shift, cut, distance and simulated noise."""
    # Values above the Tracy-Widom quantile of the remaining noise are removed until the number no
    # longer changes.
    p = y.size
    for _ in range(p):
        bulk = y[: p - outliers]
        if bulk.size - zeros < least or outliers > p // 2:
            raise InvalidData(
                f"there is no bulk: {bulk.size - zeros} of {p} singular values are left for it and "
                f"{outliers} lie beyond it; at least {least} and half of all values are needed."
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
        # A fit without a shift needs no bias correction of the shift.
        shifted = shift > 0
        scale, shift = simulated.corrected(scale, shift, bulk.size)
        shift = shift if shifted else 0.0
        # Each noise entry has standard deviation scale / sqrt(q - outliers).
        reach = noise_edge(p - outliers, q - outliers, probability=1 - LEVEL)
        reach /= np.sqrt(q - outliers)
        wider = wider_edge(law.edge_scale(bulk.size), law.edges[1], covariance, 1 - LEVEL)
        cut = scale * (reach + wider) - shift
        beyond = int((y > cut).sum())
        if beyond <= outliers:
            break
        outliers = beyond
    return outliers, scale, shift, cut, found, simulated


def spikes_with_error(
    spikes: Spikes, law: NoiseLaw, noise: float, covariance: np.ndarray
) -> Spikes:
    """Add the errors of noise and shrinkage to the standard errors of the strengths."""
    # Linear error propagation with the gradient of the strength delta s((y + b) / delta).
    x, step = spikes.observed / noise, 1e-6
    by_place = (law.strength(x * (1 + step)) - law.strength(x)) / (x * step)
    gradient = np.stack([law.strength(x) - x * by_place, by_place])
    extra = np.einsum("ik,ij,jk->k", gradient, covariance, gradient)
    errors = np.sqrt(spikes.standard_errors**2 + np.clip(extra, 0, None))
    return replace(spikes, standard_errors=errors)


@dataclass(frozen=True)
class SymmetricFit(BulkFit):
    """Fit of (S* + delta Z - b)_+, or of S* + delta Z - b for eigenvalues of both signs."""

    # The edge is 2 delta - b. Strengths are eigenvalues of S*, and both overlaps are 1 - delta² /
    # s². For eigenvalues of both signs -b is the centre of the spectrum.
    semidefinite: bool = True  # True if eigenvalues below zero were cut to zero

    @property
    def threshold(self) -> float:
        """Smallest strength at which a signal leaves the bulk, delta   (spectra 6)."""
        return self.noise


def fit_symmetric(
    values: np.ndarray,
    *,
    semidefinite: bool | None = None,
    least: int = 15,
    outliers: int = 0,
    seed: int = 0,
) -> SymmetricFit:
    """Fit noise, shrinkage and features of a symmetric matrix to all its eigenvalues."""
    # The default is semidefinite if no eigenvalue is below zero. A threshold of 2 delta or more
    # leaves no bulk to fit.
    y = _checked(values, "eigenvalues")
    if semidefinite is None:
        semidefinite = bool(y[0] >= 0)
    if semidefinite and y[0] < 0:
        raise InvalidData(f"an eigenvalue of {y[0]:.6g} is below zero; pass semidefinite=False.")
    return _fit_symmetric(y, semidefinite, least, seed, outliers)


def _fit_symmetric(
    y: np.ndarray, semidefinite: bool, least: int, seed: int, outliers: int
) -> SymmetricFit:
    # Model (spectra 1) of arXiv:2505.17958. Without K outliers, the other d - K values are y = (x -
    # b)_+ with x from the semicircle of scale delta sqrt(1 - K/d).
    d, law = y.size, SymmetricNoise()
    # Fewer positive values are needed here, because the number of zeros is data too.
    zeros = int((y == 0).sum()) if semidefinite else 0
    if semidefinite and zeros == 0:
        raise InvalidData(
            "there is no bulk: no eigenvalue is zero, so no threshold has cut the noise."
        )
    low, high = 0, outliers
    for _ in range(d):
        bulk = y[low : d - high]
        if bulk.size - zeros < least or low + high > d // 2:
            raise InvalidData(
                f"there is no bulk: {bulk.size - zeros} of {d} eigenvalues are left for it and "
                f"{low + high} lie beyond it; at least {least} and half of all values are needed."
            )
        scale, shift = maximise(bulk, law, always=semidefinite, signed=not semidefinite)
        share = round(shift / scale, 1) if semidefinite else 0.0
        simulated = replicates(
            min(bulk.size, NULL_SIZE), law, share, signed=not semidefinite, seed=seed
        )
        covariance = simulated.spread(bulk.size)
        # Outliers exceed 2 delta + delta d^(-2/3) TW_1 - b, plus a margin for the error of the
        # fitted edge.
        unit = law.edge_scale(bulk.size)
        margin = unit * tracy_widom_quantile(1 - LEVEL)
        reach = scale * (2 + margin + wider_edge(unit, law.edges[1], covariance, 1 - LEVEL))
        beyond = int((y + shift > reach).sum())
        under = 0 if semidefinite else int((y + shift < -reach).sum())
        if beyond <= high and under <= low:
            break
        low, high = max(low, under), max(high, beyond)
    found = distance(bulk, law, scale, shift)
    scale, shift = simulated.corrected(scale, shift, bulk.size)
    # The noise entries keep their variance when rows are removed.
    noise = scale * np.sqrt(d / bulk.size)
    spikes = _symmetric_spikes(
        np.concatenate([y[d - high :], y[:low]]) + shift, noise, covariance, d
    )
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


def _symmetric_spikes(x: np.ndarray, noise: float, covariance: np.ndarray, d: int) -> Spikes:
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
