"""Eigenvectors to first order in the noise, next to the bound of Davis and Kahan."""

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
