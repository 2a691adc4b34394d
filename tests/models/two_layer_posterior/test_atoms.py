"""Least squares over atoms: numbers of the note, a second solver, the onset, and refusals."""

import numpy as np
import pytest

from solvable.arrays import random_stream
from solvable.models.two_layer_posterior.atoms import _active_set, atomic_posterior
from solvable.models.two_layer_posterior.constants import specialisation
from solvable.models.two_layer_posterior.overlap import hermite_modes
from solvable.models.two_layer_posterior.parameters import CurseParameters
from solvable.models.two_layer_posterior.predict import predict


def at_load(load, ratio=10, dimension=1_000, **more):
    """Posterior at P = load kappa sqrt(N d)."""
    width = ratio * dimension
    samples = load * np.sqrt(width * dimension)
    return atomic_posterior(dimension=dimension, width=width, samples=samples, kappa=1.0, **more)


@pytest.mark.parametrize(("load", "expected"), [(8, 0.0), (14, 0.174), (20, 0.294), (28, 0.391)])
def test_the_numbers_of_the_note(load, expected):
    # section 4.2, kappa_eff = 1.08 kappa, N = 10 d
    found = at_load(load / 1.08)
    assert found.alignment == pytest.approx(expected, abs=6e-4)
    assert found.residual < 1e-8
    if load == 28:
        # prediction of the note: u = 1.32, r = 0.17, and 4.1 neurons at N = 10 d
        assert found.u == pytest.approx(1.32, abs=0.06)
        assert found.r == pytest.approx(0.17, abs=0.02)
        assert found.neurons == pytest.approx(4.1, abs=0.15)


@pytest.mark.parametrize(
    ("activation", "degree"), [("erf", 3), ("tanh", 3), ("erf", 5), ("relu", 2)]
)
def test_the_onset_is_that_of_the_large_deviation(activation, degree):
    # The price of mixing falls with N/d: then specialisation starts at P = R kappa sqrt(N d).
    constant = specialisation(activation, degree).R
    sizes = {"ratio": 10**8, "activation": activation, "degree": degree}
    assert at_load(0.99 * constant, **sizes).neurons == 0
    # the grid of neurons is fine to 1 percent
    assert at_load(1.03 * constant, **sizes).u.size > 0


def test_nothing_cheaper_is_left():
    # Karush-Kuhn-Tucker where mixing is free: no neuron, on the grid or off, is worth more than it costs
    found = at_load(25.0, ratio=10**8)
    left = -found.modes
    left[3] += 1.0
    draws = random_stream(1, "neurons")
    u, r = np.exp(draws.uniform(-2, 1.6, 4_000)), np.exp(draws.uniform(-3.5, 0, 4_000))

    def worth(u, r):
        return 25.0 * np.abs(left @ hermite_modes("erf", range(32), u, r)) / price(u, r)

    def price(u, r):
        return np.sqrt(u * u + r - 1 - np.log(r))

    assert worth(u, r).max() < 1.002
    assert worth(found.u, found.r) == pytest.approx(1.0, abs=1e-4)


def test_a_second_solver_agrees():
    # coordinate descent on a random problem of the same form
    rng = np.random.default_rng(4)
    shapes, price = rng.standard_normal((9, 30)), rng.uniform(0.5, 2.0, 30)
    target, load, lazy_price = rng.standard_normal(9), 3.0, np.array([0.7, 0.2])
    amplitude, lazy, residual = _active_set(shapes, price, target, load, lazy_price)
    b, beta = np.zeros(30), np.zeros(2)
    for _ in range(400):
        left = target - shapes @ b
        left[:2] -= beta
        for k in range(2):
            left[k] += beta[k]
            beta[k] = load * left[k] / (load + lazy_price[k])
            left[k] -= beta[k]
        for j in range(30):
            left += shapes[:, j] * b[j]
            pull = load * shapes[:, j] @ left
            size = load * shapes[:, j] @ shapes[:, j]
            b[j] = np.sign(pull) * max(abs(pull) - price[j], 0) / size
            left -= shapes[:, j] * b[j]
    assert residual <= 1e-9
    assert amplitude == pytest.approx(b, abs=1e-6)
    assert lazy == pytest.approx(beta, abs=1e-6)


def test_more_samples_align_more_and_cost_more():
    found = [at_load(load) for load in (9, 12, 18, 30, 60)]
    assert (np.diff([one.alignment for one in found]) > 0).all()
    assert (np.diff([one.energy for one in found]) > 0).all()
    # dF/d(load) = |error|^2 / 2, by the envelope theorem
    step, wide = 1e-3, 10**12
    slope = (at_load(18 + step, wide).energy - at_load(18 - step, wide).energy) / (2 * step)
    error = -at_load(18, wide).modes
    error[3] += 1
    assert slope == pytest.approx(error @ error / 2, rel=1e-5)


def test_mean_field_needs_more_samples():
    at = {"dimension": 50, "width": 500, "kappa": 1.0, "samples": 30_000.0}
    standard, field = (atomic_posterior(**at, readout=name) for name in ("standard", "mean-field"))
    assert standard.alignment > field.alignment


def test_the_prediction_of_a_system_tends_to_the_limit_with_the_dimension():
    gaps = []
    for dimension in (8, 24):
        found = predict(CurseParameters(dimension=dimension, width_ratio=10.0, steps=100))
        gaps.append(found["wide_limit_alignment"] - found["alignment"])
    assert gaps[0] == pytest.approx(0.088, abs=0.02)
    assert 0 < gaps[1] < 0.6 * gaps[0]
