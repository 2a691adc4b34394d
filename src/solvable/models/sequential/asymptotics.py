"""Eigenvectors to first order in the noise, a bound on them, and power laws of many features."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvable.moment_spectrum.spike_law import SpikeLaw


@dataclass(frozen=True)
class Expansion:
    """Squared overlap that each learned direction loses, and samples that a bound demands."""

    outside: np.ndarray  # loss to directions outside the span of the features, (p,)
    inside: np.ndarray  # loss to the other features, (p,); NaN for equal heights
    gaps: np.ndarray  # distance of each height to the nearest other height or to zero, (p,)
    bound_samples: np.ndarray  # n at which the bound of Davis and Kahan reaches a half, (p,)


def expand(law: SpikeLaw, products: np.ndarray, samples: float) -> Expansion:
    """Expand the eigenvectors of spikes with mixed moments E[T² h_i² h_j²] at n samples."""
    theta, D = law.heights, law.n_features
    differences = theta[:, None] - theta
    np.fill_diagonal(differences, np.inf)
    # hat u_k = u_k + sum_j u_j (u_j^T Delta u_k) / (theta_k - theta_j) + P Delta u_k / theta_k
    # (sequential 28; arXiv:2605.14567, Equation 3.2), E (u_j^T Delta u_k)² = E[T² h_j² h_k²] / n,
    # E |P Delta u_k|² = D tau_2h / n
    coupling = law.sample.probabilities @ law.sample.couplings
    with np.errstate(divide="ignore", invalid="ignore"):
        inside = np.sum(products / differences**2, axis=1) / samples
        outside = D * coupling / (samples * theta**2)
        gaps = np.minimum(np.abs(differences).min(axis=1), np.abs(theta))
        # sin² <= (2 |Delta| / gap)² with |Delta| = 2 s, s² = D tau_2 / n   (sequential 29)
        bound = 32 * D * law.noise / gaps**2
    return Expansion(outside, np.where(np.isfinite(inside), inside, np.nan), gaps, bound)


def half_recovery(law: SpikeLaw) -> np.ndarray:
    """Sample size at which each feature has a squared overlap of 1/2; infinite inside the bulk."""
    # c² = (nu - tau_2) / (nu - tau_2 + tau_2h) = 1/2 at nu = tau_2 + tau_2h   (sequential 8)
    coupling = law.sample.probabilities @ law.sample.couplings
    return np.asarray(law.thresholds * (1 + coupling / law.noise))


def recovered_count(law: SpikeLaw, decay: float, samples: float) -> float:
    """Number of features with a squared overlap above a half, as a power of n; NaN without decay."""
    if not decay:
        return float("nan")
    # m = (Z² n / D)^(1 / (2 gamma))   (sequential 30; arXiv:2605.14567, Corollary 3.1). The constant is
    # that of the weakest feature p.
    return float(law.heights.size * (samples / half_recovery(law)[-1]) ** (1 / (2 * decay)))


def asymptotic_error(law: SpikeLaw, decay: float, samples: float) -> float:
    """Normalised error of infinitely many features as a power law in n; NaN above 1 or gamma <= 1/2."""
    if decay <= 0.5:
        return float("nan")
    p = law.heights.size
    m = p * (samples / law.thresholds[-1]) ** (1 / (2 * decay))
    squares = np.arange(1.0, p + 1) ** (-2 * decay)
    # Z² m^(1 - 2 gamma) [1 / (2 gamma - 1) + 2 - 1 / (2 gamma + 1)], whose first term is the loss of the
    # unrecovered features   (sequential 31; arXiv:2605.14567, Theorem 3.2)
    bracket = 1 / (2 * decay - 1) + 2 - 1 / (2 * decay + 1)
    error = float(m ** (1 - 2 * decay) * bracket / squares.sum())
    return error if error <= 1 else float("nan")  # above 1 too few features are recovered
