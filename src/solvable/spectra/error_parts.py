"""Parts of the error of a matrix that is estimated from its noisy, shifted and cut spectrum."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvable.spectra.measures import Measure
from solvable.spectra.semicircle_tail import semicircle_tail


@dataclass(frozen=True)
class ErrorDecomposition:
    """Contributions to the error, if a few features lie above a bulk of noise."""

    overfitting: float  # noise learned by the bulk, eta² delta² int_(b/delta)² (x - b/delta)² mu_sc
    underfitting: float  # features below the noise, the sum of s_i² / d
    approximation: float  # features above the noise at scale 1, the sum of e(s_i) / d
    features: float  # share of features above delta
    mismatch: float = 0.0  # change of the approximation error by the scale eta

    @property
    def total(self) -> float:
        """Sum of the parts, which approximates the matrix error."""
        return self.overfitting + self.underfitting + self.approximation + self.mismatch


def outlier_error(
    strength: np.ndarray | float, *, effective_noise: float, threshold: float, scale: float = 1.0
) -> np.ndarray:
    """Error of an isolated feature s > delta, with eigenvalue x = s + delta² / s (quadratic 10)."""
    # e(s) = s² + eta² (x - b)² - 2 eta s (x - b) (1 - delta² / s²) for x > b, else s², with the overlap
    # 1 - delta² / s². At eta = 1 this is (delta² / s - b)² + 2 (delta² / s) (x - b). Summaries of
    # arXiv:2509.24882, Result 3, print the second term without its factor 2.
    values = np.asarray(strength, dtype=np.float64)
    push = effective_noise**2 / values
    learned = scale * (values + push - threshold)
    seen = (values - learned) ** 2 + 2 * push * learned
    return np.asarray(np.where(values + push > threshold, seen, values**2))


def error_parts(
    target: Measure, *, effective_noise: float, threshold: float, scale: float = 1.0
) -> ErrorDecomposition:
    """Split the error of eta (S* + delta Z - b)_+ into its parts (quadratic 10)."""
    values, weights = target.nodes, target.node_weights
    above = values > effective_noise
    numbers = {"effective_noise": effective_noise, "threshold": threshold}
    plain = float(weights[above] @ outlier_error(values[above], **numbers))
    scaled = float(weights[above] @ outlier_error(values[above], **numbers, scale=scale))
    return ErrorDecomposition(
        overfitting=(scale * effective_noise) ** 2
        * semicircle_tail(threshold / effective_noise).second,
        underfitting=float(weights[~above] @ values[~above] ** 2),
        approximation=plain,
        features=float(weights[above].sum()),
        mismatch=scaled - plain,
    )
