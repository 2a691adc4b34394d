"""Overlaps of a neuron with a Hermite target: quadrature, draws, and closed forms."""

import numpy as np
import pytest
from scipy.special import erf

from solvable.errors import InvalidParameter
from solvable.hermite import gaussian_quadrature, hermite_polynomials
from solvable.models.two_layer_posterior.overlap import (
    hermite_modes,
    kernel_diagonal,
    linear_gain,
    neuron_overlap,
    power_parts,
)

PLACES = [(0.3, 1.0), (1.7, 1.0), (-0.8, 0.3), (2.5, 0.05), (0.02, 1.3)]


def by_quadrature(function, degree, u, r, nodes=120):
    """Compute <sigma(w.x), h_m(x_1)> by a product rule over x_1 and the other inputs."""
    z, weights = gaussian_quadrature(nodes)
    first, rest = np.meshgrid(z, z, indexing="ij")
    weight = np.outer(weights, weights)
    values = function(u * first + np.sqrt(r) * rest)
    return float(np.sum(weight * values * hermite_polynomials(first, degree)[degree]))


def test_cubic_overlaps_of_erf():
    # (two-layer-posterior 2; arXiv:2512.04165, Equation 35), from two-dimensional Gauss-Hermite
    # quadrature
    overlap = neuron_overlap("erf", 3)
    assert overlap.value([0.3, 1.7], 1.0) == pytest.approx([-0.00438665, -0.17398605], abs=5e-9)


@pytest.mark.parametrize("degree", [1, 3, 5, 7])
@pytest.mark.parametrize(("u", "r"), PLACES)
def test_erf_in_closed_form(degree, u, r):
    assert neuron_overlap("erf", degree).value(u, r) == pytest.approx(
        by_quadrature(erf, degree, u, r), abs=2e-10 if u < 2 else 1e-7
    )


@pytest.mark.parametrize("degree", [1, 3, 5])
@pytest.mark.parametrize(("u", "r"), PLACES)
def test_tables_agree_with_quadrature(degree, u, r):
    # A formula uses the same table: erf given as a formula must agree with its closed form.
    assert neuron_overlap("tanh", degree).value(u, r) == pytest.approx(
        by_quadrature(np.tanh, degree, u, r, 200), abs=1e-6
    )
    assert neuron_overlap("erf(z)", degree).value(u, r) == pytest.approx(
        neuron_overlap("erf", degree).value(u, r), abs=1e-10
    )


@pytest.mark.parametrize("activation", ["relu", "abs(z) + z/2", "gelu", "max(z - 0.3, 0)"])
def test_even_degrees(activation):
    function = {
        "relu": lambda h: np.maximum(h, 0),
        "abs(z) + z/2": lambda h: np.abs(h) + h / 2,
        "gelu": lambda h: h * (1 + erf(h / np.sqrt(2))) / 2,
        "max(z - 0.3, 0)": lambda h: np.maximum(h - 0.3, 0),
    }[activation]
    draws = np.random.default_rng(3).standard_normal((2, 400_000))
    for u, r in [(0.7, 0.8), (1.9, 0.2)]:
        values = (
            function(u * draws[0] + np.sqrt(r) * draws[1]) * hermite_polynomials(draws[0], 2)[2]
        )
        error = values.std() / np.sqrt(values.size)
        assert abs(neuron_overlap(activation, 2).value(u, r) - values.mean()) < 4 * error


def test_relu_parity_never_turns_and_tends_to_its_limit():
    # u / c decreases to 2 sqrt(2) (two-layer-posterior 7), so that one neuron carries the alignment.
    overlap = neuron_overlap("relu", 2, "parity")
    u = np.array([0.1, 0.5, 1, 2, 5, 20, 100, 1e4])
    ratio = u / overlap.value(u, 1.0)
    assert (np.diff(ratio) < 0).all()
    assert ratio[:7] == pytest.approx([50.2, 10.4, 5.82, 3.94, 3.19, 2.91, 2.844], rel=4e-3)
    assert ratio[-1] == pytest.approx(2 * np.sqrt(2), rel=2e-4)


def test_relu_parity_is_an_average_over_bits():
    draws = np.random.default_rng(5)
    bits = draws.choice([-1.0, 1.0], (2, 400_000))
    rest = draws.standard_normal(400_000)
    values = np.maximum(0.9 / np.sqrt(2) * bits.sum(0) + np.sqrt(0.6) * rest, 0) * bits.prod(0)
    error = values.std() / np.sqrt(values.size)
    found = neuron_overlap("relu", 2, "parity").value(0.9, 0.6)
    assert abs(found - values.mean()) < 4 * error


@pytest.mark.parametrize("activation", ["erf", "tanh", "relu"])
def test_powers_of_the_parts(activation):
    function = {"erf": erf, "tanh": np.tanh, "relu": lambda h: np.maximum(h, 0)}[activation]
    u, r = 1.2, 0.5
    z, weights = gaussian_quadrature(200)
    values = function(u * z[:, None] + np.sqrt(r) * z)
    whole = float(weights @ values**2 @ weights)
    alone = float(weights @ (values @ weights) ** 2)
    linear = float(weights @ values @ (weights * z)) ** 2
    assert [float(part) for part in power_parts(activation, u, r)] == pytest.approx(
        [alone, linear, whole - alone - linear], abs=2e-4 if activation == "relu" else 1e-6
    )


def test_mixed_power_of_a_strong_neuron():
    # v of (two-layer-posterior 15) is 0.0910 at u² = 3, r = 1; the linear part has 13.5 times the cubic
    # power.
    assert float(power_parts("erf", np.sqrt(3), 1.0)[2]) == pytest.approx(0.0910, abs=5e-5)
    linear, cubic = hermite_modes("erf", (1, 3), np.sqrt(3), 1.0)
    assert float((linear / cubic) ** 2) == pytest.approx(13.5, rel=1e-3)


def test_kernels():
    assert kernel_diagonal("erf") == pytest.approx(2 / np.pi * np.arcsin(2 / 3), rel=1e-12)
    assert kernel_diagonal("relu") == pytest.approx(0.5, rel=1e-10)
    assert linear_gain("erf") == pytest.approx(4 / (3 * np.pi), rel=1e-12)
    # the second layer has pre-activations of variance K_1(x, x)
    assert linear_gain("erf", 0.46456) == pytest.approx(0.6600, abs=1e-4)
    assert linear_gain("relu", 0.3) == pytest.approx(0.25, rel=1e-10)


def test_targets_without_overlap_raise():
    with pytest.raises(InvalidParameter, match=r"He2.*erf"):
        neuron_overlap("erf", 2)
    with pytest.raises(InvalidParameter, match="He3"):
        neuron_overlap("relu", 3)
    with pytest.raises(InvalidParameter, match=r"erf, tanh, relu.*erf"):
        neuron_overlap("erff", 3)
    with pytest.raises(InvalidParameter, match="degree is 0"):
        neuron_overlap("erf", 0)
    with pytest.raises(InvalidParameter, match="parity"):
        neuron_overlap("tanh", 2, "parity")
