"""Decay of feature strengths, visible or below the threshold, and predicted errors of a matrix."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from solvable.diagnose.bulk_fit import SymmetricFit
from solvable.diagnose.noise import Spikes, SymmetricNoise
from solvable.errors import InvalidData
from solvable.fitting.goodness import largest_gap

MINIMUM_STRENGTHS = 8  # with fewer strengths the 95 % interval of a decay spans a factor of five


@dataclass(frozen=True)
class Decay:
    """Power law s_i = A i^(-gamma) of strengths, fitted above the weakest visible strength."""

    value: float  # exponent gamma
    low: float  # ends of the interval of gamma
    high: float
    p_value: float  # goodness of fit by parametric bootstrap
    n: int  # number of strengths in the fit
    amplitude: float  # amplitude A

    def undetected(self, size: int) -> float:
        """Sum of squares of the strengths that are too weak to be visible, for ``size`` values in all."""
        # sum_{i=n+1}^d A² i^(-2 gamma)
        ranks = np.arange(self.n + 1, size + 1)
        return float(self.amplitude**2 * (ranks ** (-2.0 * self.value)).sum())


def fit_decay(
    strengths: np.ndarray,
    errors: np.ndarray,
    *,
    confidence: float = 0.95,
    draws: int = 199,
    seed: int = 0,
) -> Decay:
    """Decay of de-biased strengths, by maximum likelihood   (spectra 12)."""
    from scipy.special import ndtri
    from scipy.stats import chi2

    s = np.sort(np.abs(np.asarray(strengths, dtype=float)))[::-1]
    if s.size < MINIMUM_STRENGTHS:
        raise InvalidData(
            f"{s.size} strengths; at least {MINIMUM_STRENGTHS} are needed for their decay."
        )
    if not np.isfinite(s).all() or s[-1] <= 0 or s[0] == s[-1]:
        raise InvalidData("strengths must be positive, finite and not all equal.")
    n = s.size - 1
    logs = np.log(s[:-1] / s[-1])
    mean = float(logs.mean())
    # Hill, Ann. Statist. 3 (1975) 1163 (spectra 12): given the weakest of K strengths, sum_{i<K}
    # log(s_i / s_K) is gamma/2 times a chi squared variable of 2 (K - 1) degrees, so the interval
    # is exact for strengths drawn from a power law. The estimate divides by sum_{i<K} log(K/i),
    # which is exact for strengths at i^(-gamma), as in the theory; division by K - 1 would be too
    # low by log(2 pi K) / 2K.
    value = mean * n / float(np.log(s.size / np.arange(1, s.size)).sum())
    tail = (1 - confidence) / 2
    low, high = 2 * n * mean / chi2.ppf([1 - tail, tail], 2 * n)
    relative = np.sort(np.asarray(errors, dtype=float) / np.abs(strengths))
    # The weakest strength's error enters every logarithm; the other errors average out.
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
    return largest_gap(1 - np.exp(-np.sort(logs) / mean))


def fit_decaying(plain: SymmetricFit) -> tuple[SymmetricFit, Decay]:
    """Correct the noise and shrinkage of a plain fit for signals below the threshold."""
    # Strengths s_i = A i^(-gamma) below the threshold, i > K, stay in the bulk (spectra 13). With
    # mean m and variance v over the d values they lower the apparent shrinkage and widen the
    # semicircle: b = b_plain + m, delta² = delta_plain² - v and s_i = m + (z_i + sqrt(z_i² - 4
    # delta²)) / 2, z_i = y_i + b_plain: the law of S* + delta Z to its second free cumulant, solved
    # with A and gamma as a fixed point.
    if not plain.semidefinite:
        raise InvalidData("the matrix is not semidefinite; the decay is of positive strengths.")
    size, count = plain.shape[0], plain.n_outliers
    ranks = np.arange(count + 1, size + 1, dtype=float)
    z, errors = plain.spikes.observed, plain.spikes.standard_errors
    # Strengths that were not detected are below the cut, even if the power law predicts larger ones.
    most = float(_undo(np.array([plain.cut + plain.shrinkage]), plain.noise)[0])
    mean = variance = 0.0
    # The iteration contracts by a factor of two or more if the weak part is weak.
    for _ in range(60):
        if variance >= 0.75 * plain.noise**2:
            raise InvalidData("most of the noise would be weak strengths; no decay is given.")
        noise = float(np.sqrt(plain.noise**2 - variance))
        strengths = mean + _undo(z, noise)
        decay = fit_decay(strengths, errors, draws=0)
        before = mean
        mean, variance = _moments(strengths, decay.value, ranks, size, most)
        if abs(mean - before) < 1e-6 * plain.noise:
            break
    decay = fit_decay(strengths, errors)
    # The shrinkage's error includes the error of m: half the change of m over the interval of gamma.
    ends = [_moments(strengths, gamma, ranks, size, most)[0] for gamma in (decay.low, decay.high)]
    unsure = float(np.hypot(plain.shrinkage_error, abs(ends[1] - ends[0]) / 2 / 1.96))
    overlap = 1 - noise**2 / np.maximum(strengths - mean, noise) ** 2
    spikes = Spikes(z + mean, strengths, np.hypot(errors, unsure), overlap, overlap)
    fit = replace(
        plain,
        noise=noise,
        shrinkage=plain.shrinkage + mean,
        spikes=spikes,
        # Higher free cumulants are neglected; the error for this is half the effect of the second one.
        noise_error=float(np.hypot(plain.noise_error, (plain.noise - noise) / 2)),
        shrinkage_error=unsure,
    )
    return fit, decay


def _undo(z: np.ndarray, noise: float) -> np.ndarray:
    return np.asarray(noise * SymmetricNoise().strength(z / noise))


def _moments(
    strengths: np.ndarray, gamma: float, ranks: np.ndarray, size: int, most: float
) -> tuple[float, float]:
    """Mean and variance over all values of the weak strengths, extrapolated from the last three."""
    count = strengths.size
    last = np.arange(count - 2, count + 1)
    weak = np.minimum(float(np.median(strengths[-3:] * last**gamma)) * ranks**-gamma, most)
    mean = float(weak.sum()) / size
    return mean, max(float((weak**2).sum()) / size - mean**2, 0.0)


@dataclass(frozen=True)
class Errors:
    """Squared Frobenius distances to the signals behind the outliers, by contribution and treatment."""

    bulk: float  # noise that the matrix keeps: sum of y² over the bulk
    shrinkage: float  # error of the sizes: sum_k (y_k - s_k)²
    rotation: float  # error of the directions: 2 sum_k s_k y_k (1 - c_k)
    cut: float  # error without the bulk, outliers unchanged
    edge: float  # error with outliers lowered to x - x_+, as by a threshold at the edge of the bulk
    denoised: float  # error without the bulk, outliers at their best size s_k c_k


def shrinkage_errors(
    values: np.ndarray,
    n_outliers: int,
    strengths: np.ndarray,
    cosines: np.ndarray,
    *,
    edge: float,
) -> Errors:
    """Predict the errors of a matrix as stored, of the cut matrix, and of the denoised matrices."""
    # Gavish and Donoho, arXiv:1405.7511 (spectra 14): estimating a signal s u v^T by y u' v'^T,
    # c = (u.u') (v.v'), has the error s² + y² - 2 s y c = (s - y)² + 2 s y (1 - c), which is least at
    # y = s c, where it is s² (1 - c²). No error includes signals below the threshold: no treatment
    # of the spectrum recovers them.
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
