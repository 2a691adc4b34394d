"""Hermite polynomials, quadrature, coefficients and kernels, against other libraries."""

from __future__ import annotations

from math import exp, factorial, pi, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.polynomial import hermite_e

from solvable.errors import InvalidParameter, NotConverged
from solvable.hermite import (
    gaussian_moment,
    gaussian_quadrature,
    hermite_coefficients,
    hermite_kernel,
    hermite_polynomials,
    panel_nodes,
    second_moment,
)


def relu(z: np.ndarray) -> np.ndarray:
    return np.maximum(z, 0.0)


def test_polynomials_equal_numpys_after_normalisation() -> None:
    z = np.linspace(-4, 4, 41).reshape(1, 41)
    ours = hermite_polynomials(z, 9)
    assert ours.shape == (10, 1, 41)
    for k in range(10):
        reference = hermite_e.hermeval(z, np.eye(10)[k]) / sqrt(factorial(k))
        np.testing.assert_allclose(ours[k], reference, rtol=1e-12, atol=1e-12)


def test_polynomials_are_orthonormal_at_high_degree() -> None:
    nodes, weights = gaussian_quadrature(64)
    values = hermite_polynomials(nodes, 60)
    # 64 nodes are exact up to degree 127.
    np.testing.assert_allclose((values * weights) @ values.T, np.eye(61), atol=1e-9)


def test_negative_degree_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="max_degree is -1"):
        hermite_polynomials(0.0, -1)
    with pytest.raises(InvalidParameter, match="n_nodes is 0"):
        gaussian_quadrature(0)


@pytest.mark.parametrize("breakpoints", [(), (0.3,)])
def test_quadrature_gives_gaussian_moments(breakpoints: tuple[float, ...]) -> None:
    nodes, weights = gaussian_quadrature(32, breakpoints)
    assert weights.sum() == pytest.approx(1.0, abs=1e-14)
    for power, moment in ((1, 0), (2, 1), (4, 3), (6, 15), (8, 105)):
        assert weights @ nodes**power == pytest.approx(moment, abs=1e-10)
    with pytest.raises(ValueError, match="read-only"):
        nodes[0] = 0.0


def test_moments_equal_closed_forms() -> None:
    assert gaussian_moment(np.cos) == pytest.approx(exp(-0.5), abs=1e-12)
    assert gaussian_moment(np.abs, breakpoints=[0.0]) == pytest.approx(sqrt(2 / pi), abs=1e-12)
    assert second_moment(relu, breakpoints=[0.0]) == pytest.approx(0.5, abs=1e-12)
    assert gaussian_moment(lambda z: 2.5) == pytest.approx(2.5, abs=1e-14)


def test_moment_equals_scipys_integral() -> None:
    from scipy.integrate import quad

    reference, _ = quad(lambda z: np.tanh(z) ** 2 * np.exp(-(z**2) / 2) / sqrt(2 * pi), -12, 12)
    assert second_moment(np.tanh) == pytest.approx(reference, abs=1e-9)


def test_coefficients_of_relu_equal_closed_form() -> None:
    # E[relu h_k] = 0 for odd k > 1, and (-1)^(k/2 - 1) (k - 3)!! / sqrt(2 pi k!) for even k.
    ours = hermite_coefficients(relu, 8, breakpoints=[0.0])
    expected = [1 / sqrt(2 * pi), 0.5, 1 / sqrt(4 * pi), 0.0]
    expected += [-1 / sqrt(2 * pi * factorial(4)), 0.0, 3 / sqrt(2 * pi * factorial(6)), 0.0]
    expected += [-15 / sqrt(2 * pi * factorial(8))]
    np.testing.assert_allclose(ours, expected, atol=1e-12)


@pytest.mark.parametrize("rate", [0.5, -1.0, 1.5])
def test_coefficients_of_exponential_equal_closed_form(rate: float) -> None:
    ours = hermite_coefficients(lambda z: np.exp(rate * z), 7)
    expected = [exp(rate**2 / 2) * rate**k / sqrt(factorial(k)) for k in range(8)]
    np.testing.assert_allclose(ours, expected, rtol=1e-9)


def test_coefficients_equal_monte_carlo() -> None:
    z = np.random.default_rng(3).standard_normal(400_000)
    ours = hermite_coefficients(np.tanh, 3)
    draws = np.tanh(z) * hermite_polynomials(z, 3)
    error = draws.std(axis=1) / sqrt(z.size)
    assert (np.abs(ours - draws.mean(axis=1)) < 4 * error + 1e-12).all()


def test_energy_is_the_sum_of_squares() -> None:
    coefficients = hermite_coefficients(np.sin, 25)
    assert (coefficients**2).sum() == pytest.approx(second_moment(np.sin), abs=1e-12)


def test_kink_without_breakpoint_is_reported_not_returned() -> None:
    with pytest.raises(NotConverged, match="breakpoints") as caught:
        hermite_coefficients(relu, 6)
    assert caught.value.diagnostics["difference"] > caught.value.diagnostics["tolerance"]
    with pytest.raises(NotConverged):
        gaussian_moment(np.abs)


def test_functions_that_are_not_functions_of_the_line_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="entry by entry"):
        gaussian_moment(lambda z: z[:2])
    with pytest.raises(InvalidParameter, match="not finite"), np.errstate(divide="ignore"):
        gaussian_moment(lambda z: np.where(z > 0, np.inf, z))


@settings(max_examples=25, deadline=None)
@given(st.lists(st.floats(-3, 3), min_size=1, max_size=6))
def test_coefficients_invert_the_expansion(wanted: list[float]) -> None:
    expansion = np.array(wanted)
    ours = hermite_coefficients(
        lambda z: expansion @ hermite_polynomials(z, expansion.size - 1), expansion.size + 1
    )
    size = max(1.0, float(np.abs(expansion).max()))
    np.testing.assert_allclose(ours, np.append(expansion, [0.0, 0.0]), atol=1e-9 * size)


def test_kernel_is_the_normalised_hermite_polynomial_on_a_line() -> None:
    # In one dimension the feature is h_q(x) itself.
    x, y = np.linspace(-2, 2, 7)[:, None], np.linspace(-1, 3, 5)[None, :]
    for degree in (1, 2, 3):
        expected = hermite_polynomials(x, degree)[degree] * hermite_polynomials(y, degree)[degree]
        ours = hermite_kernel(x * y, x**2, y**2, 1, degree)
        np.testing.assert_allclose(ours, expected, atol=1e-12)


def test_kernel_of_unknown_degree_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="degree is 4; allowed: 1, 2, 3"):
        hermite_kernel(1.0, 1.0, 1.0, 2, 4)


@pytest.mark.parametrize("order", [1, 4, 9])
def test_panels_integrate_polynomials_exactly(order):
    edges = np.array([-1.5, -0.2, 0.1, 2.0])
    x, w = panel_nodes(edges, order)
    assert (np.diff(x) > 0).all()
    for degree in range(2 * order):
        exact = (edges[-1] ** (degree + 1) - edges[0] ** (degree + 1)) / (degree + 1)
        assert w @ x**degree == pytest.approx(exact, rel=1e-12, abs=1e-12)
