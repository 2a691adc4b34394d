"""Kernel ridge regression of the label on learned features, in place of the second layer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from solvable.fitting.kernel_errors import KernelRidge
from solvable.moment_spectrum.latent_draws import LatentDraws

HEAD_ROWS = 4_000
"""Number of fresh rows of the kernel regression, as in the authors' code."""


def kernel_head(features: np.ndarray, labels: np.ndarray, test: np.ndarray) -> np.ndarray:
    """Predict labels of test features with an RBF kernel whose ridge is chosen on held-out rows."""
    # (arXiv:2605.14567, Equation 2.14, on all learned features instead of the scalar index)
    return KernelRidge("rbf").fit(features, labels).predict(test)


def kernel_head_error(draws: Sequence[LatentDraws], squared_overlap: np.ndarray) -> float:
    """Normalised error of the kernel regression on drawn features with predicted overlaps."""
    labels = np.concatenate([draw.labels for draw in draws])
    features = np.concatenate([draw.learned(squared_overlap) for draw in draws])
    count = min(HEAD_ROWS, len(labels) // 2)
    rows = np.random.Generator(np.random.Philox(0)).permutation(len(labels))
    train, test = rows[:count], rows[count : 3 * count]
    error = labels[test] - kernel_head(features[train], labels[train], features[test])
    return float(np.mean(error**2) / labels[test].var())
