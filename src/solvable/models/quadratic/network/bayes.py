r"""Best possible test error of a quadratic network whose target's spectrum is known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvable.errors import InvalidParameter
from solvable.message_passing.matrix_channels import GaussianIndices
from solvable.message_passing.signal_evolution import signal_evolution
from solvable.message_passing.signal_laws import SymmetricSignal
from solvable.models.quadratic.network.saddle import check_problem
from solvable.spectra.measures import Measure, as_measure


@dataclass(frozen=True)
class BayesOptimalState:
    """Bayes-optimal estimate of the target from its samples."""

    effective_noise: float  # delta: the data hold as much information as S* + delta Z
    matrix_error: float  # R of the posterior mean


def bayes_optimal(
    target: Measure | np.ndarray, *, sample_ratio: float, label_noise: float
) -> BayesOptimalState:
    """Bayes-optimal error, the fixed point of message passing from no information (2408.03733)."""
    check_problem(sample_ratio=sample_ratio, label_noise=label_noise, regularisation=0.0)
    # R = delta² - (4 pi^2/3) delta⁴ int mu_delta³, R + Delta/2 = 2 alpha delta², at its largest root.
    # Noise of variance sigma² inside the activation of a target W W^T / sqrt(p* d) counts as
    # Delta = 2 sigma² (2 + sigma²), over kappa* for W W^T / p*.
    measure = as_measure(target)
    sensing = GaussianIndices(np.array([2.0]), np.array([float(label_noise)]))
    signal = SymmetricSignal(measure)
    # A measurement of a known matrix, a multiple of the identity, is its noise.
    known = signal.variance <= 1e-14 * signal.second_moment
    error, variance = 0.0, label_noise / (4 * sample_ratio)
    if not known:
        state = signal_evolution(signal, sensing, sample_ratio)
        error, variance = float(state.error), float(state.noise)
    if variance == 0:
        raise InvalidParameter(
            f"at sample_ratio {sample_ratio} without label noise the best estimator finds the target "
            "exactly, and no effective noise is left. Use a smaller sample ratio or some label noise."
        )
    return BayesOptimalState(float(np.sqrt(variance)), error)
