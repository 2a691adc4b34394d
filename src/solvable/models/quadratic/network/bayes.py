r"""Bayes-optimal error of quadratic networks for a target of known spectrum."""

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
    """Prediction of the Bayes-optimal estimator."""

    effective_noise: float  # delta: the data are as informative as S* + delta Z
    matrix_error: float  # R of the posterior mean


def bayes_optimal(
    target: Measure | np.ndarray, *, sample_ratio: float, label_noise: float
) -> BayesOptimalState:
    """Bayes-optimal error: fixed point of message passing from no information."""
    check_problem(sample_ratio=sample_ratio, label_noise=label_noise, regularisation=0.0)
    # R = delta² - (4 pi²/3) delta⁴ int mu_delta³, R + Delta/2 = 2 alpha delta², at the largest root
    # (quadratic 16; arXiv:2408.03733). Noise of variance sigma² inside the activation of a target
    # W W^T / sqrt(p* d) is equivalent to Delta = 2 sigma² (2 + sigma²); divide by kappa* for W W^T / p*.
    measure = as_measure(target)
    sensing = GaussianIndices(np.array([2.0]), np.array([float(label_noise)]))
    signal = SymmetricSignal(measure)
    # A multiple of the identity is known in advance: only the label noise remains.
    known = signal.variance <= 1e-14 * signal.second_moment
    error, variance = 0.0, label_noise / (4 * sample_ratio)
    if not known:
        state = signal_evolution(signal, sensing, sample_ratio)
        error, variance = float(state.error), float(state.noise)
    if variance == 0:
        raise InvalidParameter(
            f"at sample_ratio {sample_ratio} without label noise the best estimator recovers the target "
            "exactly, so that the effective noise vanishes. Use a smaller sample ratio or label noise."
        )
    return BayesOptimalState(float(np.sqrt(variance)), error)
