"""Closed forms for the best label map and for linearised AMP (LAMP)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvable.arrays import check_positive
from solvable.message_passing.moments import ConditionalMoments
from solvable.spectra.label_weighted import label_weighted_spectrum
from solvable.spectra.roots import bracketed_root

INFORMED = 0.95
"""Squared overlap with the true direction at which message passing starts near it."""


def optimal_overlap(moments: ConditionalMoments, sample_ratio: float) -> float:
    """Squared overlap of the best spectral estimator in the limit of many dimensions."""
    check_positive(sample_ratio=sample_ratio)
    G, chance = moments.second[:, 0], moments.probabilities

    def excess(q: float) -> float:
        # 1 / alpha = (1 - q) E[G² / (1 + q G)]   (multi-index 9)
        return float(sample_ratio * (1 - q) * (chance @ (G**2 / (1 + q * G))) - 1)

    return bracketed_root(excess, 0.0, 1 - 1e-12) if excess(0.0) > 0 else 0.0


@dataclass(frozen=True)
class LampPrediction:
    """Spectrum of L = (X X^T / d - I) diag G(y), and overlap of the estimate from its eigenvector."""

    squared_overlap: float  # overlap of X^T G omega: mean at this dimension, or limit of large d
    outlier: float  # alpha / alpha_c; below the threshold equal to radius   (multi-index 10)
    radius: float  # sqrt(alpha / alpha_c), radius of the disc of other eigenvalues (multi-index 10)


def lamp_prediction(
    moments: ConditionalMoments, *, sample_ratio: float, dimension: int | None = None
) -> LampPrediction:
    """Predict outlier, disc and overlap of linearised message passing."""
    check_positive(sample_ratio=sample_ratio)
    G, chance = moments.second[:, 0], moments.probabilities
    threshold = float(moments.weak_recovery_ratio[0])
    signal = sample_ratio / threshold
    outlier, radius = max(signal, float(np.sqrt(signal))), float(np.sqrt(signal))
    if dimension is None:
        # squared overlap (alpha - alpha_c) / (alpha + alpha_c² E[G³])   (multi-index 11)
        cubed = float(chance @ G**3)
        overlap = (sample_ratio - threshold) / (sample_ratio + threshold**2 * cubed)
        return LampPrediction(max(overlap, 0.0), outlier, radius)
    # L omega = theta omega holds exactly if X^T diag(G / (theta + G)) X W / d = W   (multi-index 10).
    # With theta at its outlier, LAMP therefore equals this label map, also at finite dimension.
    law = moments.law(_lamp_map(G, max(signal, 1.0)))
    spectrum = label_weighted_spectrum(law, ratio=sample_ratio, dimension=dimension)
    return LampPrediction(float(spectrum.upper.squared_overlap[0]), outlier, radius)


def _lamp_map(G: np.ndarray, theta: float) -> np.ndarray:
    """Label map G / (theta + G), cut below at -1e4."""
    return np.asarray(np.maximum(G / np.maximum(theta + G, 1e-300), -1e4))
