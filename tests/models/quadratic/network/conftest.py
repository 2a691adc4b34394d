"""Scalar objective whose saddle point predicts a trained quadratic network."""

import pytest

from solvable.spectra.free_convolution import SpectralLaw
from solvable.spectra.functionals import truncated_moments
from solvable.spectra.measures import as_measure, second_moment


def objective_at(
    target,
    *,
    residual_norm,
    effective_noise,
    sample_ratio,
    label_noise,
    regularisation,
):
    """Scalar objective (quadratic 3), to be maximised over B and minimised over delta."""
    # Phi(B, delta) = 2 alpha B delta + B Delta / 2 delta - B² + (B / delta) (Q* - J(delta, b)) with
    # b = lambda delta / 2 B and J(delta, b) = int_b (x - b)² mu_delta. The objective is convex in delta
    # and concave in B, as it is a minimum over S of a function that is jointly convex in (S, delta)
    # and, up to -B², linear in B.
    measure = as_measure(target)
    threshold = regularisation * effective_noise / (2 * residual_norm)
    second = truncated_moments(SpectralLaw(measure, noise=effective_noise), threshold).second[0]
    free = 2 * sample_ratio * effective_noise + label_noise / (2 * effective_noise)
    spread = (second_moment(measure) - float(second)) / effective_noise
    return residual_norm * (free + spread) - residual_norm**2


@pytest.fixture(scope="session")
def saddle_objective():
    """Scalar objective as a function of target, residual norm, effective noise and problem."""
    return objective_at
