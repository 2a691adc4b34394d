"""Dual kernels against quadrature in two dimensions, quadrature of the angle, and Stein's lemma."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import roots_hermitenorm

from solvable.errors import InvalidParameter, NotConverged
from solvable.operators import dual_kernel
from solvable.operators.activations import ACTIVATIONS, derivative, evaluate, kernel_diagonal

SMOOTH = [name for name in ACTIVATIONS if name not in ("relu", "step")]
PAIRS = [(1.0, 1.0, 0.3), (0.5, 2.0, -0.7), (1.3, 0.8, 0.95), (1.0, 1.0, 0.0), (0.7, 0.7, -0.999)]

VARIANCES = st.just(0.0) | st.floats(1e-100, 3.0)


def kernel_of_one(name, left, right, cosine):
    inner = cosine * np.sqrt(left * right)
    return dual_kernel(name, np.array([[inner]]), np.array([left]), np.array([right]))[0, 0]


def by_quadrature(left_function, right_function, left, right, cosine, nodes=160):
    x, weights = roots_hermitenorm(nodes)
    weights = weights / weights.sum()
    u = np.sqrt(left) * x[:, None]
    v = np.sqrt(right) * (cosine * x[:, None] + np.sqrt(1 - cosine**2) * x[None, :])
    return weights @ (left_function(u) * right_function(v)) @ weights


def by_angle(name, degree, left, right, cosine):
    """Polar coordinates, for functions homogeneous of a degree: E r^(2 degree) times an integral."""
    theta = np.arccos(cosine)

    def integrand(phi):
        u, v = np.array([np.cos(phi)]), np.array([np.cos(phi - theta)])
        return (evaluate(name, u) * evaluate(name, v))[0]

    edges = sorted({-np.pi, -np.pi / 2, np.pi / 2, theta - np.pi / 2, theta + np.pi / 2, np.pi})
    inside = [edge for edge in edges if -np.pi <= edge <= np.pi]
    parts = [quad(integrand, a, b)[0] for a, b in pairwise(inside)]
    radial = {0: 1.0, 1: 2.0}[degree]
    return radial * np.sqrt(left * right) ** degree * sum(parts) / (2 * np.pi)


@pytest.mark.parametrize("name", SMOOTH)
@pytest.mark.parametrize(("left", "right", "cosine"), PAIRS)
def test_kernel_is_the_integral_in_two_dimensions(name, left, right, cosine):
    def function(t):
        return evaluate(name, t)

    expected = by_quadrature(function, function, left, right, cosine)
    assert kernel_of_one(name, left, right, cosine) == pytest.approx(expected, abs=2e-8, rel=1e-8)


@pytest.mark.parametrize(("name", "degree"), [("relu", 1), ("step", 0)])
@pytest.mark.parametrize(("left", "right", "cosine"), PAIRS)
def test_kernel_of_kinks_is_the_integral_over_the_angle(name, degree, left, right, cosine):
    expected = by_angle(name, degree, left, right, cosine)
    assert kernel_of_one(name, left, right, cosine) == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("name", [name for name in SMOOTH if name != "identity"])
def test_stein_derivative_of_the_kernel_is_the_kernel_of_derivatives(name):
    # d kappa / d q_ab = E sigma'(u) sigma'(v): ties the kernel to the derivative.
    left, right, inner, step = np.array([1.2]), np.array([0.8]), 0.4, 1e-3
    pair = [dual_kernel(name, np.array([[inner + s]]), left, right) for s in (step, -step)]
    slope = float((pair[0] - pair[1])[0, 0]) / (2 * step)

    def function(t):
        return derivative(name, t)

    cosine = inner / np.sqrt(left[0] * right[0])
    expected = by_quadrature(function, function, left[0], right[0], cosine)
    assert slope == pytest.approx(expected, rel=1e-4)


def test_stein_slope_of_relu_is_the_kernel_of_steps():
    left, right, inner, step = np.array([1.2]), np.array([0.8]), np.array([[0.4]]), 1e-5
    slope = (
        dual_kernel("relu", inner + step, left, right)
        - dual_kernel("relu", inner - step, left, right)
    ) / (2 * step)
    np.testing.assert_allclose(slope, dual_kernel("step", inner, left, right), rtol=1e-8)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_derivative_is_the_slope(name):
    t = np.array([-2.3, -0.4, 0.3, 1.7])
    step = 1e-6
    slope = (evaluate(name, t + step) - evaluate(name, t - step)) / (2 * step)
    np.testing.assert_allclose(derivative(name, t), slope, atol=1e-7, rtol=1e-7)


@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_types_are_kept_and_extremes_are_finite(name, dtype):
    t = np.array([-80.0, 0.0, 80.0], dtype=dtype)
    for function in (evaluate, derivative):
        found = function(name, t)
        assert found.dtype == dtype
        assert np.isfinite(found).all()


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_kernel_of_points_is_positive_and_has_its_diagonal(name):
    X = np.random.default_rng(0).standard_normal((30, 6)) / np.sqrt(6)
    gram, squares = X @ X.T, np.sum(X**2, axis=1)
    kernel = dual_kernel(name, gram, squares, squares)
    np.testing.assert_allclose(kernel, kernel.T, atol=1e-12)
    # The angle of a point with itself is known to half of the digits only.
    np.testing.assert_allclose(np.diag(kernel), kernel_diagonal(name, squares), atol=1e-7)
    assert np.linalg.eigvalsh(kernel).min() > -1e-7


def test_fourier_features_have_the_gaussian_kernel():
    rng = np.random.default_rng(1)
    X, Y = rng.standard_normal((7, 3)), rng.standard_normal((5, 3))
    kernel = dual_kernel("fourier", X @ Y.T, np.sum(X**2, axis=1), np.sum(Y**2, axis=1))
    distances = np.sum((X[:, None] - Y[None]) ** 2, axis=2)
    np.testing.assert_allclose(kernel, np.exp(-distances), rtol=1e-12)


@pytest.mark.parametrize("name", ["sigmoid", "tanh", "gelu"])
def test_small_signal_of_a_series_is_not_lost(name):
    # Differences of kernel entries of 1e-6, on a constant of order one.
    inner = np.array([[0.5, 0.5 + 1e-6]])
    found = np.diff(dual_kernel(name, inner, np.ones(1), np.ones(2)))[0, 0]

    def function(t):
        return derivative(name, t)

    assert found == pytest.approx(1e-6 * by_quadrature(function, function, 1, 1, 0.5), rel=1e-5)


@settings(max_examples=60, deadline=None)
@given(
    name=st.sampled_from(ACTIVATIONS),
    left=VARIANCES,
    right=VARIANCES,
    cosine=st.floats(-1.0, 1.0),
)
def test_kernel_is_symmetric_and_obeys_cauchy_schwarz(name, left, right, cosine):
    one, other = (kernel_of_one(name, *pair, cosine) for pair in ((left, right), (right, left)))
    assert one == pytest.approx(other, rel=1e-9, abs=1e-12)
    bound = np.sqrt(np.prod(kernel_diagonal(name, np.array([left, right]))))
    assert abs(one) <= bound * (1 + 1e-6) + 1e-9


@settings(max_examples=30, deadline=None)
@given(scale=st.floats(1e-3, 1e3), cosine=st.floats(-1, 1))
def test_relu_kernel_is_homogeneous_and_step_kernel_has_no_scale(scale, cosine):
    assert kernel_of_one("relu", scale, 2.0, cosine) == pytest.approx(
        np.sqrt(scale) * kernel_of_one("relu", 1.0, 2.0, cosine), rel=1e-9, abs=1e-9
    )
    assert kernel_of_one("step", scale, 2.0, cosine) == pytest.approx(
        kernel_of_one("step", 1.0, 2.0, cosine), abs=1e-6
    )


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_a_zero_vector_is_constant(name):
    zero = evaluate(name, np.zeros(1))[0]
    assert kernel_of_one(name, 0.0, 0.0, 0.0) == pytest.approx(zero**2, abs=1e-12)
    mean = by_quadrature(lambda t: evaluate(name, t), np.ones_like, 1.0, 1.0, 0.0, nodes=100)
    assert kernel_of_one(name, 1.0, 0.0, 0.0) == pytest.approx(zero * mean, abs=1e-8)


def test_unknown_names_and_negative_variances_are_refused():
    for function in (evaluate, derivative):
        with pytest.raises(InvalidParameter, match="softmax"):
            function("softmax", np.zeros(1))
    with pytest.raises(InvalidParameter, match="relu"):
        dual_kernel("reluu", np.zeros((1, 1)), np.ones(1), np.ones(1))
    with pytest.raises(InvalidParameter, match="-1"):
        dual_kernel("relu", np.zeros((1, 1)), -np.ones(1), np.ones(1))


def test_a_series_that_misses_too_much_says_so():
    # A tanh of huge pre-activations is a sign, whose series has no end.
    with pytest.raises(NotConverged, match="scale the inputs"):
        dual_kernel("tanh", np.zeros((1, 1)), np.full(1, 1e6), np.full(1, 1e6))
