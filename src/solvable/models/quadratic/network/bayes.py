r"""Best possible test error of a quadratic network whose target's spectrum is known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvable.errors import InvalidParameter
from solvable.message_passing.matrix_channels import GaussianIndices
from solvable.message_passing.signal_evolution import signal_evolution
from solvable.message_passing.signals import SymmetricSignal
from solvable.models.quadratic.network.saddle import check_problem
from solvable.spectra.free_convolution import SpectralLaw
from solvable.spectra.measures import Measure, as_measure


@dataclass(frozen=True)
class BayesOptimalState:
    r"""Bayes-optimal estimate of the target from its samples.

    Attributes
    ----------
    sample_ratio, label_noise : float
        :math:`\alpha` and :math:`\Delta`.
    effective_noise : float
        :math:`\delta`: the data tell as much as :math:`S^\star+\delta Z`.
    matrix_error : float
        R of the posterior mean.
    test_error : float
        On fresh noisy labels, :math:`2R+\Delta=4\alpha\delta^2`.
    residual : float
        :math:`R+\frac\Delta2-2\alpha\delta^2`.
    law : SpectralLaw
        Of :math:`S^\star+\delta Z`.
    """

    sample_ratio: float
    label_noise: float
    effective_noise: float
    matrix_error: float
    test_error: float
    residual: float
    law: SpectralLaw


def bayes_optimal(
    target: Measure | np.ndarray, *, sample_ratio: float, label_noise: float
) -> BayesOptimalState:
    r"""Bayes-optimal error, the fixed point of message passing from no information.

    .. math:: R=\delta^2-\frac{4\pi^2}3\delta^4\!\int\mu_\delta(x)^3dx,\qquad
              R+\frac\Delta2=2\alpha\delta^2 .

    Parameters
    ----------
    target : Measure or array of shape (m,)
        :math:`\mu^\star`, known to the estimator; the eigenvectors are uniform.
    sample_ratio : float
        :math:`\alpha=n/d^2`, above 0.
    label_noise : float
        :math:`\Delta`, at least 0.

    Returns
    -------
    BayesOptimalState
        At the largest root, which message passing reaches.

    Raises
    ------
    InvalidParameter
        If a parameter is out of range, or the target is recovered exactly
        (:func:`~solvable.spectra.thresholds.bayes_perfect_recovery_threshold`).

    Notes
    -----
    By :func:`~solvable.message_passing.signal_evolution`, of which it is the case of one index with
    Gaussian noise. Noise of variance
    :math:`\sigma^2` inside the activation of a target :math:`\frac1{\sqrt{p^\star d}}WW^\top` counts
    as :math:`\Delta=2\sigma^2(2+\sigma^2)`, over :math:`\kappa^\star` for
    :math:`\frac1{p^\star}WW^\top`. Source: arXiv:2408.03733. Backed by
    ``tests/models/quadratic/network/test_bayes.py``.

    Examples
    --------
    >>> from solvable.spectra.product_measure import marchenko_pastur
    >>> state = bayes_optimal(marchenko_pastur(0.5), sample_ratio=0.3, label_noise=0.5)
    >>> state.matrix_error < 1.0
    True
    """
    check_problem(sample_ratio=sample_ratio, label_noise=label_noise, regularisation=0.0)
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
    law = SpectralLaw(measure, noise=float(np.sqrt(variance)))
    residual = error + label_noise / 2 - 2 * sample_ratio * law.variance
    return BayesOptimalState(
        sample_ratio=float(sample_ratio),
        label_noise=float(label_noise),
        effective_noise=law.noise,
        matrix_error=error,
        test_error=2 * error + label_noise,
        residual=residual,
        law=law,
    )
