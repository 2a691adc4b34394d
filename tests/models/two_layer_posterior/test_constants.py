"""Constants of the wide limit: reference values, a second minimiser, and the kinds."""

import numpy as np
import pytest
from scipy.optimize import minimize

from solvable.models.two_layer_posterior.constants import specialisation
from solvable.models.two_layer_posterior.overlap import neuron_overlap


def test_constants_of_erf():
    # (two-layer-posterior 5) and (6), from a Nelder-Mead minimiser
    reduced = specialisation("erf", 3, reduced=True)
    assert pytest.approx(9.768617, rel=1e-6) == reduced.R
    assert reduced.u == pytest.approx(np.sqrt(3), rel=1e-6)
    assert reduced.neurons == pytest.approx(3.256207, rel=1e-6)
    exact = specialisation("erf", 3)
    assert pytest.approx(8.026746, rel=1e-6) == exact.R
    assert (exact.u, exact.r) == pytest.approx((1.46989, 0.26030), abs=1e-5)
    assert pytest.approx(19.58303, rel=1e-6) == specialisation("erf", 5, reduced=True).R
    assert pytest.approx(14.93822, rel=1e-6) == specialisation("erf", 5).R


@pytest.mark.parametrize("degree", [3, 5, 7, 9])
def test_the_reduced_erf_in_closed_form(degree):
    # With r = 1, (two-layer-posterior 6) gives u² = 3(m-1)/2 and R = (3m)^(m/2) / (A_m u^(m-1)).
    found = specialisation("erf", degree, reduced=True)
    u = np.sqrt(3 * (degree - 1) / 2)
    amplitude = (
        abs(float(neuron_overlap("erf", degree).value(u, 1.0)))
        / (u / np.sqrt(3 + 2 * u**2)) ** degree
    )
    assert found.u == pytest.approx(u, rel=1e-6)
    assert (
        pytest.approx((3 * degree) ** (degree / 2) / (amplitude * u ** (degree - 1)), rel=1e-9)
        == found.R
    )


@pytest.mark.parametrize(
    ("activation", "degree"), [("tanh", 3), ("tanh", 5), ("gelu", 2), ("sin(z)*exp(-z**2/8)", 3)]
)
def test_a_second_minimiser_agrees(activation, degree):
    overlap = neuron_overlap(activation, degree)

    def price(place):
        u, r = np.exp(place)
        return np.log(np.sqrt(u * u + r - 1 - np.log(r)) / abs(overlap.value(u, r)))

    starts = [(0.3, -1.0), (1.2, -0.5), (-0.5, -0.1)]
    best = min(
        minimize(price, start, method="Nelder-Mead", options={"xatol": 1e-7, "fatol": 1e-12}).fun
        for start in starts
    )
    found = specialisation(activation, degree)
    assert found.kind == "specialised"
    assert pytest.approx(np.exp(best), rel=1e-7) == found.R


def test_the_kinds():
    assert specialisation("erf", 1).kind == specialisation("tanh", 1).kind == "diffuse"
    assert pytest.approx(np.sqrt(3 * np.pi) / 2, rel=1e-5) == specialisation("erf", 1).R
    assert specialisation("relu", 1).kind == "diffuse"
    parity = specialisation("relu", 2, "parity")
    assert parity.kind == "condensed"
    assert pytest.approx(2 * np.sqrt(2), rel=1e-4) == parity.R
    # At large u, c -> u a_2(1) with a_2(1) = 1 / (2 sqrt(pi)).
    assert pytest.approx(2 * np.sqrt(np.pi), rel=1e-5) == specialisation("relu", 2).R
    assert specialisation("z**3", 3).R == 0.0


def test_lazy_learning():
    erf = specialisation("erf", 3)
    assert erf.gaussian == pytest.approx(16 * 15 / (6 * np.pi * 27), rel=1e-5)
