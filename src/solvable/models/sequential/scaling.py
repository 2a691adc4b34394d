"""Power laws in the limit of many features: number of recovered features, and error."""

from __future__ import annotations

import numpy as np

from solvable.moment_spectrum.spike_law import SpikeLaw


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
    """Normalised error of infinitely many features as a power law in n, for gamma > 1/2; else NaN."""
    if decay <= 0.5:
        return float("nan")
    p = law.heights.size
    m = p * (samples / law.thresholds[-1]) ** (1 / (2 * decay))
    squares = np.arange(1.0, p + 1) ** (-2 * decay)
    # Z² m^(1 - 2 gamma) [1 / (2 gamma - 1) + 2 - 1 / (2 gamma + 1)], whose first term is the loss of the
    # unrecovered features   (sequential 31; arXiv:2605.14567, Theorem 3.2)
    bracket = 1 / (2 * decay - 1) + 2 - 1 / (2 * decay + 1)
    return float(m ** (1 - 2 * decay) * bracket / squares.sum())
