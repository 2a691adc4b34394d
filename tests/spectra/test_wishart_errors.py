"""Denoising errors of Wishart matrices: the general law, limits, drawn matrices."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvable.errors import InvalidParameter
from solvable.spectra import SpectralLaw, denoised, denoising_error, marchenko_pastur
from solvable.spectra.wishart_errors import wishart_denoised, wishart_denoising_errors


@settings(max_examples=25, deadline=None)
@given(st.floats(-2, 1.5), st.floats(-5, 2.5))
def test_equal_to_the_general_law(log_ratio, log_variance):
    ratio, t = 10**log_ratio, 10**log_variance
    exact = denoising_error(SpectralLaw(marchenko_pastur(ratio), noise=t**0.5))
    assert wishart_denoising_errors(ratio, np.array(t)) == pytest.approx(exact, rel=2e-7)


def test_limits():
    # many units: entries are Gaussian and independent, E = t / (1 + t); large noise: E = 1
    t = np.array([0.1, 1.0, 10.0])
    assert wishart_denoising_errors(1e7, t) == pytest.approx(t / (1 + t), rel=1e-3)
    assert wishart_denoising_errors(0.3, np.array([1e6])) == pytest.approx(1, rel=1e-5)
    # small noise: degrees of freedom of a matrix of rank rho d, 2 alpha_PR = 2 rho - rho²
    small = np.array([1e-8])
    assert wishart_denoising_errors(0.3, small) / small == pytest.approx(0.6 - 0.09, rel=2e-3)
    assert wishart_denoising_errors(0.5, np.ones((2, 3))).shape == (2, 3)


@pytest.mark.parametrize(("ratio", "t"), [(0.5, 1.0), (1.0, 0.01), (3.0, 0.1), (0.05, 20.0)])
def test_denoised_eigenvalues_are_those_of_the_general_law(ratio, t):
    law = SpectralLaw(marchenko_pastur(ratio), noise=t**0.5)
    low, high = law.edges[0, 0], law.edges[-1, 1]
    x = np.linspace(low, high * 1.02, 50)
    assert wishart_denoised(ratio, t, x, 10) == pytest.approx(denoised(law, x), abs=1e-6)
    # beyond the largest signal of ten rows by chance the value is cut there
    far, farther = wishart_denoised(ratio, t, np.array([3 * high, 9 * high]), 10)
    assert far == farther < 3 * high
    # a separate null space has a bulk of its own
    assert wishart_denoised(0.2, 0.01, x, 10) is None


def test_bad_ratio():
    with pytest.raises(InvalidParameter, match="width_ratio"):
        wishart_denoising_errors(0.0, np.ones(1))
