r"""Noise of a curve's mean errors, from the scatter of replicates pooled over sizes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvable.forecast.curve import LearningCurve

# Prior mean and deviation of the exponent q in sigma² ~ e^q: q = 1 for counts of wrong predictions,
# q = 2 for noise proportional to the error.
PRIOR_SLOPE = (1.5, 0.5)


@dataclass(frozen=True, eq=False)
class ReplicateNoise:
    """Noise of a curve's errors and of the mean errors."""

    # Variance of a single error at each size, shrunk towards the pooled fit, shape (k,); zero if no
    # size has two replicates.
    variances: np.ndarray
    freedom: np.ndarray  # degrees of freedom of each variance
    covariance: np.ndarray  # covariance of the mean errors, shape (k, k)
    exponent: float  # exponent q of the pooled fit
    correlation: float  # correlation between the errors of one replicate at two sizes, 0 to 1
    known: bool  # True if some size has replicates
    law: tuple[float, float]  # intercept and slope of the pooled fit of ln sigma² against ln e

    def variance_at(self, error: np.ndarray) -> np.ndarray:
        """Return the variance of one new error at a given mean error, from the pooled fit."""
        if not self.known:
            return np.zeros_like(error)
        return np.exp(self.law[0] + self.law[1] * np.log(np.maximum(error, 1e-300)))


def replicate_noise(curve: LearningCurve) -> ReplicateNoise:
    """Estimate a curve's noise; variances are shrunk towards a fit pooled over sizes."""
    means, counts = curve.expected, curve.counts
    scale = np.maximum(means, 1e-3 * max(float(means.max()), 1e-300))
    # Relative standard errors are set to at least 1e-4.
    floor = (1e-4 * scale) ** 2
    freedom = counts - 1.0
    usable = (freedom > 0) & (np.nan_to_num(curve.variances) > 0)
    if not usable.any():
        nothing = np.zeros(means.shape)
        # Replicates that agree exactly are given the smallest allowed noise, without uncertainty.
        known = bool((freedom > 0).any())
        least = np.diag(np.maximum(floor, _of_counts(curve)))
        return ReplicateNoise(
            nothing, np.maximum(freedom, 1.0), least, PRIOR_SLOPE[0], 0.0, known, (-np.inf, 0.0)
        )
    law, prior_freedom = _pooled_law(
        np.log(scale[usable]), curve.variances[usable], freedom[usable]
    )
    pooled = np.exp(law[0] + law[1] * np.log(scale))  # phi e_k^q
    measured = np.where(freedom > 0, np.nan_to_num(curve.variances), 0.0)
    behind = np.maximum(freedom, 0.0)
    # G. K. Smyth, Stat. Appl. Genet. Mol. Biol. 3 (2004), with a trend:
    # sigma_k² = (d_0 phi e_k^q + d_k s_k²) / (d_0 + d_k), d_k = R_k - 1
    variances = (prior_freedom * pooled + behind * measured) / (prior_freedom + behind)
    correlation = _correlation(curve, variances)
    covariance = np.diag(variances / counts + floor)  # sigma_k² / R_k
    if correlation > 0:
        shared = _shared_replicates(curve)
        spread = np.sqrt(variances)
        together = correlation * np.outer(spread / counts, spread / counts) * shared
        covariance += together - np.diag(np.diag(together))
    # R errors of correlation rho have sample variance sigma² (1 - rho); the variance of their mean is
    # sigma² (1 + (R - 1) rho) / R.
    overlap = np.minimum(curve.shared * curve.sizes, 0.9)
    excess = np.sqrt((1 + (counts - 1) * overlap) / (1 - overlap))
    covariance *= np.outer(excess, excess)
    covariance += np.diag(np.maximum(_of_counts(curve) - np.diag(covariance), 0.0))
    return ReplicateNoise(
        variances, prior_freedom + behind, covariance, law[1], correlation, True, law
    )


def _of_counts(curve: LearningCurve) -> np.ndarray:
    """Return the binomial variance of an error rate, a lower bound for the variance of a mean error."""
    if curve.tested is None:
        return np.zeros(curve.sizes.size)
    # p (1 - p) / (m + 3): posterior variance for a uniform prior, which is always positive
    return np.asarray(curve.expected * (1 - curve.expected) / (curve.tested + 3))


def _pooled_law(
    log_error: np.ndarray, variances: np.ndarray, freedom: np.ndarray
) -> tuple[tuple[float, float], float]:
    """Fit intercept and slope of the log variance, and the fit's weight as prior degrees of freedom."""
    from scipy.special import digamma, polygamma

    half = freedom / 2
    # ln s² = ln sigma² + ln(chi²_d / d); the last term has mean digamma(d / 2) - ln(d / 2) and
    # variance trigamma(d / 2).
    observed = np.log(variances) - digamma(half) + np.log(half)
    scatter = polygamma(1, half)
    centre = float(np.average(log_error, weights=1 / scatter))
    x = log_error - centre
    mean, spread = PRIOR_SLOPE
    excess = 0.0
    for _ in range(20):
        # The scatter of ln s² beyond the scatter of ln chi² gives the prior degrees of freedom d_0.
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
    """Return the degrees of freedom d, within bounds, for which trigamma(d / 2) equals the excess."""
    from scipy.special import polygamma

    grid = np.geomspace(2.0, 30.0, 60)  # bounds for the weight of the pooled variance
    return float(grid[np.argmin(np.abs(polygamma(1, grid / 2) - excess))])


def _by_replicate(curve: LearningCurve, values: np.ndarray) -> np.ndarray:
    """Arrange one value per error in a row per replicate and a column per size; 0 if missing."""
    names = curve.replicates or ()
    rows = {name: row for row, name in enumerate(dict.fromkeys(names))}
    table = np.zeros((len(rows), curve.sizes.size))
    table[[rows[name] for name in names], np.searchsorted(curve.sizes, curve.samples)] = values
    return table


def _shared_replicates(curve: LearningCurve) -> np.ndarray:
    """Return the number of replicates that each pair of sizes has in common, shape (k, k)."""
    present = _by_replicate(curve, np.ones(curve.samples.size))
    return np.asarray(present.T @ present)


def _correlation(curve: LearningCurve, variances: np.ndarray) -> float:
    """Estimate the correlation of the errors of one replicate at two sizes, shrunk towards 0."""
    if curve.replicates is None or curve.sizes.size < 2:
        return 0.0
    place = np.searchsorted(curve.sizes, curve.samples)
    spread = np.sqrt(np.maximum(variances, 1e-300))
    table = _by_replicate(curve, (curve.errors - curve.means[place]) / spread[place])
    products = table.T @ table
    shared = _shared_replicates(curve)
    # Subtracting the means uses one degree of freedom per pair of sizes.
    room = np.where(shared > 1, shared - 1, 0.0)
    upper = np.triu_indices(curve.sizes.size, k=1)
    total = float(room[upper].sum())
    if total == 0:
        return 0.0
    # Products of deviations from means over R shared replicates have mean rho (R - 1) / R.
    raw = float(products[upper].sum()) / total
    # squared correlation that a small number of replicates shows by chance
    chance = 1 / max(float(room[upper].max()), 1.0) / max(curve.sizes.size - 1, 1)
    return float(np.clip(max(raw, 0.0) ** 3 / (raw**2 + chance), 0.0, 0.95)) if raw > 0 else 0.0
