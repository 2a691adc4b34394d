"""Bayes-optimal estimate of a quadratic network's target from samples, by message passing."""

from __future__ import annotations

import numpy as np

from solvable.errors import NotConverged
from solvable.message_passing.loop import Start, settle
from solvable.message_passing.matrix_channels import GaussianIndices
from solvable.message_passing.signal_laws import SymmetricSignal, signal_denoiser
from solvable.operators.sensors import TokenSensors
from solvable.spectra.measures import Measure


def bayes_estimate(
    X: np.ndarray, labels: np.ndarray, target: Measure, label_noise: float
) -> np.ndarray | None:
    """Posterior mean of a matrix of known spectrum; None if message passing does not converge."""
    # GAMP-RIE of arXiv:2408.03733: the denoiser acts on the eigenvalues, as the eigenvectors are uniform.
    law = SymmetricSignal(target)
    channel = GaussianIndices(np.array([2.0]), np.array([label_noise]))
    n, d = X.shape
    start = Start(law.prior_mean(d), np.array([[law.variance]]), np.zeros((n, 1)))
    try:
        found = settle(
            TokenSensors(X), channel.messages(labels[:, None]), start, denoiser=signal_denoiser(law),
            tolerance=2e-3, least_variance=1e-7,
        )  # fmt: skip
    except NotConverged:
        return None
    return np.asarray(found.estimate)
