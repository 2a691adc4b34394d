"""Fit of a bulk of noise and of spikes above the bulk to singular values or eigenvalues."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

from solvable.diagnose.bulk_likelihood import (
    NULL_SIZE,
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
    # True for eigenvalues of a symmetric matrix: strengths are eigenvalues of the signal. With
    # eigenvalues of both signs nothing was cut, and -b is the centre of the spectrum.
    symmetric: bool = False

    @property
    def n_outliers(self) -> int:
        """Number of values above the cut."""
        return int(self.spikes.observed.size)

    @property
    def threshold(self) -> float:
        """Smallest strength at which a signal leaves the bulk, delta c^(1/4)   (spectra 4, 6)."""
        p, q = self.shape
        return self.noise * (p / q) ** 0.25  # symmetric matrices have c = 1


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
    # The rectangular form of arXiv:2505.17958. The fit removes ``outliers`` values at the start; at
    # least ``least`` values must be left.
    p, q = sorted(int(side) for side in shape)
    y = _checked(values, "singular values")
    if y.size != p or y[0] < 0:
        raise InvalidData(
            f"{y.size} singular values from {y[0]:.6g} of a {p} x {q} matrix; pass all {p}, none "
            "below 0."
        )
    return _fit(y, q, least, seed, outliers, symmetric=False, signed=False)


def fit_symmetric(
    values: np.ndarray,
    *,
    semidefinite: bool | None = None,
    least: int = 15,
    outliers: int = 0,
    seed: int = 0,
) -> BulkFit:
    """Fit noise, shrinkage and features of a symmetric matrix to all its eigenvalues."""
    # The default is semidefinite if no eigenvalue is below zero. A threshold of 2 delta or more
    # leaves no bulk to fit. Fewer positive values are needed, because the number of zeros is data too.
    y = _checked(values, "eigenvalues")
    if semidefinite is None:
        semidefinite = bool(y[0] >= 0)
    if semidefinite and y[0] < 0:
        raise InvalidData(f"an eigenvalue of {y[0]:.6g} is below zero; pass semidefinite=False.")
    if semidefinite and not (y == 0).any():
        raise InvalidData(
            "there is no bulk: no eigenvalue is zero, so no threshold has cut the noise."
        )
    return _fit(y, y.size, least, seed, outliers, symmetric=True, signed=not semidefinite)


def _fit(
    y: np.ndarray, q: int, least: int, seed: int, outliers: int, *, symmetric: bool, signed: bool
) -> BulkFit:
    # Model (spectra 1) of arXiv:2505.17958. Without K outliers, the other values are y = (x - b)_+ with
    # x from noise of (p - K) x (q - K) entries, whose scale is delta sqrt(1 - K/q). Values above the
    # Tracy-Widom quantile of the remaining noise are removed until the number no longer changes.
    p = y.size
    zeros = 0 if signed else int((y == 0).sum())
    whole = SymmetricNoise() if symmetric else RectangularNoise(p / q)
    # ratios of sides are rounded, so that a file has few kinds of simulated noise
    rounded = whole if symmetric else RectangularNoise(*whole.key)
    low, high = 0, outliers
    for _ in range(p):
        outliers, bulk = low + high, y[low : p - high]
        if bulk.size - zeros < least or outliers > p // 2:
            what = "eigenvalues" if symmetric else "singular values"
            raise InvalidData(
                f"there is no bulk: {bulk.size - zeros} of {p} {what} are left for it and "
                f"{outliers} lie beyond it; at least {least} and half of all values are needed."
            )
        sides = p - outliers, q - outliers
        law = whole if symmetric else RectangularNoise(sides[0] / sides[1])
        scale, shift = maximise(bulk, law, always=zeros > 0, signed=signed)
        share = 0.0 if signed else round(shift / scale, 1)
        simulated = replicates(min(bulk.size, NULL_SIZE), rounded, share, signed=signed, seed=seed)
        covariance = simulated.spread(bulk.size)
        found = distance(bulk, law, scale, shift)
        # A fit without a shift needs no bias correction of the shift.
        shifted = shift != 0
        scale, shift = simulated.corrected(scale, shift, bulk.size)
        shift = shift if shifted else 0.0
        unit = law.edge_scale(bulk.size)
        if symmetric:
            reach = law.edges[1] + unit * tracy_widom_quantile(1 - LEVEL)
        else:
            # Each noise entry has standard deviation scale / sqrt(q - outliers).
            reach = noise_edge(*sides, probability=1 - LEVEL) / sides[1] ** 0.5
        reach = scale * (reach + wider_edge(unit, law.edges[1], covariance, 1 - LEVEL))
        beyond = int((y + shift > reach).sum())
        under = int((y + shift < -reach).sum()) if signed else 0
        if beyond <= high and under <= low:
            break
        low, high = max(low, under), max(high, beyond)
    # The noise entries keep their variance when rows are removed.
    noise = float(scale * (q / (q - outliers)) ** 0.5)
    unsure = covariance * noise**2
    if not shift:
        unsure[1] = unsure[:, 1] = 0.0
    observed = np.concatenate([y[p - high :][::-1], y[:low]]) + shift
    observed = observed[np.abs(observed) > noise * whole.edges[1]]
    if symmetric:
        spikes = _symmetric_spikes(observed, noise, unsure, p)
    else:
        plain = debias(observed, noise=noise, n_columns=q, ratio=p / q)
        spikes = spikes_with_error(plain, whole, noise, unsure)
    return BulkFit(
        (p, q),
        noise,
        float(shift),
        zeros,
        float(noise * whole.edges[1] - shift),
        float(reach - shift),
        spikes,
        found,
        simulated.p_value(found, bulk.size),
        float(np.sqrt(unsure[0, 0])),
        float(np.sqrt(unsure[1, 1])),
        symmetric,
    )


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


def _symmetric_spikes(x: np.ndarray, noise: float, covariance: np.ndarray, d: int) -> Spikes:
    law = SymmetricNoise()
    x = x[np.argsort(-np.abs(x))]
    place = np.abs(x) / noise
    s = law.strength(place)
    overlap = 1 - 1 / s**2
    errors = law.spread(place, d) / overlap
    plain = Spikes(np.abs(x), noise * s, noise * errors, overlap, overlap)
    wider = spikes_with_error(plain, law, noise, covariance)
    sign = np.sign(x)
    return Spikes(x, sign * wider.strengths, wider.standard_errors, overlap, overlap)
