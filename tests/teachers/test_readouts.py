from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from solvable.errors import DegenerateReadout, InvalidParameter
from solvable.teachers.readouts import resolve_readout


def gaussian_mean(function):
    def integrand(z):
        return function(z) * np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)

    return integrate.quad(integrand, -12, 12, limit=400)[0]


@pytest.mark.parametrize(
    "function",
    [np.tanh, np.arctan, lambda z: z + z**2, lambda z: np.exp(z / 2), lambda z: z**3],
)
def test_coefficients_agree_with_adaptive_integration(function):
    readout = resolve_readout(function)
    mean = gaussian_mean(function)
    assert readout.mean == pytest.approx(mean, abs=1e-8)
    assert readout.slope == pytest.approx(gaussian_mean(lambda z: z * function(z)), abs=1e-8)
    second = gaussian_mean(lambda z: (function(z) - mean) ** 2)
    assert readout.second_moment == pytest.approx(second, rel=1e-8)
    assert readout.cost == pytest.approx(second / readout.slope**2, rel=1e-7)


def test_slope_is_the_mean_derivative():
    assert resolve_readout("tanh").slope == pytest.approx(
        gaussian_mean(lambda z: 1 / np.cosh(z) ** 2), abs=1e-9
    )


@pytest.mark.parametrize(
    ("function", "mean", "slope"),
    [
        (np.sign, 0.0, np.sqrt(2 / np.pi)),
        (lambda z: np.maximum(z, 0.0), 1 / np.sqrt(2 * np.pi), 0.5),
        (lambda z: np.clip(z, -1.3, 0.7), None, stats.norm.cdf(0.7) - stats.norm.cdf(-1.3)),
        (lambda z: (z > 0.37).astype(float), stats.norm.sf(0.37), stats.norm.pdf(0.37)),
    ],
)
def test_readouts_with_kinks_and_jumps_are_expanded_to_two_digits(function, mean, slope):
    readout = resolve_readout(function)
    assert readout.slope == pytest.approx(slope, abs=5e-3)
    if mean is not None:
        assert readout.mean == pytest.approx(mean, abs=5e-3)


@given(c=st.floats(-5, 5), a=st.floats(0.1, 10))
@settings(max_examples=25, deadline=None)
def test_centring_removes_a_constant_and_keeps_the_scale(c, a):
    plain, moved = resolve_readout(np.tanh), resolve_readout(lambda z: a * np.tanh(z) + c)
    z = np.linspace(-3, 3, 7)
    np.testing.assert_allclose(moved(z), a * plain(z), atol=1e-7 * (a + abs(c)))
    assert moved.cost == pytest.approx(plain.cost, rel=1e-5)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (np.cos, "exponent is 2.*even readout"),
        (np.abs, "exponent is 2.*even readout"),
        (lambda z: z**4, "add a linear part"),
        (lambda z: z**3 - 3 * z, "exponent is 3.*label map T"),
        (lambda z: z**5 - 10 * z**3 + 15 * z, "exponent is 5"),
        (lambda z: np.zeros_like(z) + 2.0, "constant"),
    ],
)
def test_a_readout_without_linear_trace_is_refused_and_told_why(function, words):
    with pytest.raises(DegenerateReadout, match=words):
        resolve_readout(function)


def test_the_label_map_that_the_message_proposes_does_help():
    readout = resolve_readout(lambda z: np.tanh(z**3 - 3 * z))
    assert abs(readout.slope) > 0.1


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda z: z[:3], "elementwise"),
        (lambda z: 1.0, "elementwise"),
        (np.log, "not finite"),
        (lambda z: np.full_like(z, np.nan), "not finite"),
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value encountered in log")
def test_a_callable_that_is_no_function_of_the_line_is_refused(function, words):
    with pytest.raises(InvalidParameter, match=words):
        resolve_readout(function)
