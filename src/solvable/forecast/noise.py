r"""How well each mean of a curve is known: scatter between replicates, pooled over sizes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvable.forecast.curve import LearningCurve

LEAST_RELATIVE_NOISE = 1e-4
"""Standard error of a mean below which no measured error is believed, relative to the error."""

PRIOR_SLOPE = (1.5, 0.5)
r"""Mean and spread of the exponent of :math:`\sigma^2\propto e^q`: 1 for counts of mistakes, 2 for noise
in proportion to the error."""

PRIOR_FREEDOM = (2.0, 30.0)
"""Least and most weight of the pooled variance, in degrees of freedom."""


@dataclass(frozen=True, eq=False)
class ReplicateNoise:
    r"""Noise of a curve's errors and of their means.

    Attributes
    ----------
    variances : ndarray of shape (k,)
        Variance of a single error at each size, shrunk towards the pooled law; zero where nothing is
        known, because no size has two replicates.
    freedom : ndarray of shape (k,)
        Degrees of freedom behind each.
    covariance : ndarray of shape (k, k)
        Of the means: :math:`\sigma_k^2/R_k` on the diagonal, and off it what replicates share.
    exponent : float
        q of the pooled law.
    correlation : float
        Between the errors of one replicate at two sizes, 0 to 1.
    known : bool
        Whether there are replicates.
    law : tuple of float
        Intercept and slope of :math:`\ln\sigma^2` against :math:`\ln e`.
    """

    variances: np.ndarray
    freedom: np.ndarray
    covariance: np.ndarray
    exponent: float
    correlation: float
    known: bool
    law: tuple[float, float]

    def variance_at(self, error: np.ndarray) -> np.ndarray:
        """Variance of one new error where the mean error is as given, by the pooled law."""
        if not self.known:
            return np.zeros_like(error)
        return np.exp(self.law[0] + self.law[1] * np.log(np.maximum(error, 1e-300)))


def replicate_noise(curve: LearningCurve) -> ReplicateNoise:
    r"""Estimate the noise of a curve.

    Variances of few replicates are poor, so each is shrunk towards a law :math:`\sigma^2=\varphi e^q`
    pooled over sizes:

    .. math:: \tilde\sigma_k^2=\frac{d_0\varphi e_k^q+d_ks_k^2}{d_0+d_k},\qquad d_k=R_k-1,

    with :math:`d_0` from the scatter of :math:`\ln s_k^2` beyond that of :math:`\ln\chi^2_{d_k}`.

    Parameters
    ----------
    curve : LearningCurve
        With replicates at one size at least for anything to be known.

    Returns
    -------
    ReplicateNoise
        See there.

    Notes
    -----
    The shrinkage is that of G. K. Smyth, Stat. Appl. Genet. Mol. Biol. 3 (2004), with a trend. Cost
    O(m + k^2). Backed by ``tests/forecast/test_noise.py``.
    """
    means, counts = curve.means, curve.counts
    scale = np.maximum(means, 1e-3 * max(float(means.max()), 1e-300))
    floor = (LEAST_RELATIVE_NOISE * scale) ** 2
    freedom = counts - 1.0
    usable = (freedom > 0) & (np.nan_to_num(curve.variances) > 0)
    if not usable.any():
        nothing = np.zeros(means.shape)
        # Replicates that agree exactly are a known noise of zero, but for the floor.
        known = bool((freedom > 0).any())
        return ReplicateNoise(
            nothing, np.maximum(freedom, 1.0), np.diag(floor), PRIOR_SLOPE[0], 0.0, known,
            (-np.inf, 0.0),
        )  # fmt: skip
    law, prior_freedom = _pooled_law(
        np.log(scale[usable]), curve.variances[usable], freedom[usable]
    )
    pooled = np.exp(law[0] + law[1] * np.log(scale))
    own = np.where(freedom > 0, np.nan_to_num(curve.variances), 0.0)
    behind = np.maximum(freedom, 0.0)
    variances = (prior_freedom * pooled + behind * own) / (prior_freedom + behind)
    correlation = _correlation(curve, variances)
    covariance = np.diag(variances / counts + floor)
    if correlation > 0:
        shared = _shared_replicates(curve)
        spread = np.sqrt(variances)
        together = correlation * np.outer(spread / counts, spread / counts) * shared
        covariance += together - np.diag(np.diag(together))
    return ReplicateNoise(
        variances, prior_freedom + behind, covariance, law[1], correlation, True, law
    )


def _pooled_law(
    log_error: np.ndarray, variances: np.ndarray, freedom: np.ndarray
) -> tuple[tuple[float, float], float]:
    """Intercept and slope of the log variance, and the degrees of freedom that the law is worth."""
    from scipy.special import digamma, polygamma

    half = freedom / 2
    # Unbiased for the log of the true variance, and its variance.
    observed = np.log(variances) - digamma(half) + np.log(half)
    scatter = polygamma(1, half)
    centre = float(np.average(log_error, weights=1 / scatter))
    x = log_error - centre
    mean, spread = PRIOR_SLOPE
    excess = 0.0
    for _ in range(20):
        weights = 1 / (scatter + excess)
        level = np.average(observed, weights=weights)
        x_bar = np.average(x, weights=weights)
        slope = (weights @ ((x - x_bar) * (observed - level)) + mean / spread**2) / (
            weights @ (x - x_bar) ** 2 + 1 / spread**2
        )
        residual = observed - level - slope * (x - x_bar)
        beyond = float(np.sum(residual**2) - np.sum(scatter)) / max(residual.size - 1, 1)
        excess = max(beyond, 0.0)
    intercept = level - slope * x_bar - slope * centre
    return (float(intercept), float(slope)), _freedom_of(excess)


def _freedom_of(excess: float) -> float:
    """Degrees of freedom d for which trigamma(d / 2) equals the excess, within bounds."""
    from scipy.special import polygamma

    grid = np.geomspace(*PRIOR_FREEDOM, 60)
    return float(grid[np.argmin(np.abs(polygamma(1, grid / 2) - excess))])


def _shared_replicates(curve: LearningCurve) -> np.ndarray:
    """Number of replicates that two sizes have in common, shape (k, k)."""
    names = curve.replicates or ()
    present = np.zeros((len(set(names)), curve.sizes.size))
    order = {name: row for row, name in enumerate(dict.fromkeys(names))}
    rows = [order[name] for name in names]
    present[rows, np.searchsorted(curve.sizes, curve.samples)] = 1.0
    return np.asarray(present.T @ present)


def _correlation(curve: LearningCurve, variances: np.ndarray) -> float:
    r"""Correlation of the errors of one replicate at two sizes, shrunk, at least 0.

    Mean product of standardised deviations over pairs; deviations from a mean of R errors have
    products of mean :math:`\rho(R-1)/R` where all replicates are shared, which is divided out.
    """
    if curve.replicates is None or curve.sizes.size < 2:
        return 0.0
    place = np.searchsorted(curve.sizes, curve.samples)
    spread = np.sqrt(np.maximum(variances, 1e-300))
    score = (curve.errors - curve.means[place]) / spread[place]
    table = np.zeros((len(set(curve.replicates)), curve.sizes.size))
    order = {name: row for row, name in enumerate(dict.fromkeys(curve.replicates))}
    table[[order[name] for name in curve.replicates], place] = score
    products = table.T @ table
    shared = _shared_replicates(curve)
    # One degree of freedom per pair of sizes goes into the means.
    room = np.where(shared > 1, shared - 1, 0.0)
    upper = np.triu_indices(curve.sizes.size, k=1)
    total = float(room[upper].sum())
    if total == 0:
        return 0.0
    raw = float(products[upper].sum()) / total
    # A few replicates show correlations of this size by chance.
    chance = 1 / max(float(room[upper].max()), 1.0) / max(curve.sizes.size - 1, 1)
    return float(np.clip(max(raw, 0.0) ** 3 / (raw**2 + chance), 0.0, 0.95)) if raw > 0 else 0.0
