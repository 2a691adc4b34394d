r"""Best possible test error of a quadratic network whose target's spectrum is known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvable.errors import InvalidParameter, NotConverged
from solvable.models.quadratic.saddle import LEAST_NOISE, check_problem
from solvable.spectra.denoiser import denoising_error
from solvable.spectra.free_convolution import SpectralLaw
from solvable.spectra.measures import Measure, as_measure
from solvable.spectra.roots import bracketed_root


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
    The error increases with the noise, so that the fixed-point map goes down from the variance of
    the spectrum to the largest root; it is closed by a bracketed search. Noise of variance
    :math:`\sigma^2` inside the activation of a target :math:`\frac1{\sqrt{p^\star d}}WW^\top` counts
    as :math:`\Delta=2\sigma^2(2+\sigma^2)`, over :math:`\kappa^\star` for
    :math:`\frac1{p^\star}WW^\top`. Source: arXiv:2408.03733. Backed by
    ``tests/models/quadratic/test_bayes.py``.

    Examples
    --------
    >>> from solvable.spectra.product_measure import marchenko_pastur
    >>> state = bayes_optimal(marchenko_pastur(0.5), sample_ratio=0.3, label_noise=0.5)
    >>> state.matrix_error < 1.0
    True
    """
    check_problem(sample_ratio=sample_ratio, label_noise=label_noise, regularisation=0.0)
    measure = as_measure(target)
    mean = float(measure.node_weights @ measure.nodes)
    variance = float(measure.node_weights @ np.square(measure.nodes - mean))
    laws: dict[float, tuple[SpectralLaw, float]] = {}

    def gap(log_noise: float) -> float:
        law = SpectralLaw(measure, noise=float(np.exp(log_noise)))
        error = max(denoising_error(law), 0.0)
        laws[log_noise] = (law, error)
        with np.errstate(divide="ignore"):
            return float(np.log((error + label_noise / 2) / (2 * sample_ratio * law.variance)))

    if variance + label_noise == 0:
        raise _perfect(sample_ratio)
    top = np.log((variance + label_noise / 2) / (2 * sample_ratio)) / 2
    least = LEAST_NOISE * float(np.abs(measure.pieces).max())
    floor = np.sqrt(label_noise / (4 * sample_ratio))
    bottom = float(np.log(max(floor, least)))
    # Downwards, so that the first change of sign is at the largest root.
    step = np.clip((top - bottom) / 12, 1e-9, 0.5)
    high = low = float(top)
    above = below = gap(low)
    while below < 0:
        if low - 2.0 < bottom and floor <= least:
            raise _perfect(sample_ratio)
        # Far below, only the absence of a root is left to be seen.
        high, low = low, low - (step if top - low < 6 else 2.0)
        above, below = below, gap(low)
    root = low
    if low < high:
        root = bracketed_root(gap, low, high, absolute=1e-13, ends=(below, above))
    law, error = laws[root]
    residual = error + label_noise / 2 - 2 * sample_ratio * law.variance
    if abs(residual) > 1e-8 * (variance + label_noise):
        raise NotConverged(
            "the Bayes-optimal noise did not settle.",
            {"effective_noise": law.noise, "residual": residual},
        )
    return BayesOptimalState(
        sample_ratio=float(sample_ratio),
        label_noise=float(label_noise),
        effective_noise=law.noise,
        matrix_error=error,
        test_error=2 * error + label_noise,
        residual=residual,
        law=law,
    )


def _perfect(sample_ratio: float) -> InvalidParameter:
    return InvalidParameter(
        f"at sample_ratio {sample_ratio} without label noise the best estimator finds the target "
        "exactly, and no effective noise is left. Use a smaller sample ratio or some label noise."
    )
