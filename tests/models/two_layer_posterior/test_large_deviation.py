"""Chernoff energies: reference values, draws of the prior, limits, and errors."""

import numpy as np
import pytest

from solvable.arrays import random_stream
from solvable.errors import InvalidParameter, NotConverged
from solvable.models.two_layer_posterior.constants import specialisation
from solvable.models.two_layer_posterior.large_deviation import TiltedNeuron, large_deviation
from solvable.models.two_layer_posterior.overlap import neuron_overlap


def test_energies_of_full_alignment():
    # (two-layer-posterior 3) on a plain grid of 1,500 x 500 points; reduced: arXiv:2512.04165, Equation
    # 37
    for dimension, reduced, exact in (
        (50, 470.14, 385.8),
        (100, 956.73, 785.5),
        (400, 3883.2, 3189.8),
    ):
        at = {"dimension": dimension, "width": dimension}
        assert large_deviation(**at, reduced=True).energy == pytest.approx(reduced, rel=2e-5)
        found = large_deviation(**at)
        assert found.energy == pytest.approx(exact, rel=1e-4)
        assert found.residual < 1e-9


@pytest.mark.parametrize("reduced", [False, True])
def test_slopes(reduced):
    # (two-layer-posterior 5) and (6): E grows like d at N = d, and M like sqrt(N); arXiv:2512.04165,
    # Figures 2b and 2c
    sizes = [50, 100, 200, 400]
    energies = [large_deviation(dimension=d, width=d, reduced=reduced).energy for d in sizes]
    assert 0.98 < np.polyfit(np.log(sizes), np.log(energies), 1)[0] < 1.04
    widths = [100, 300, 1000, 2000]
    counts = [large_deviation(dimension=50, width=n, reduced=reduced).neurons for n in widths]
    assert 0.48 < np.polyfit(np.log(widths), np.log(counts), 1)[0] < 0.55


@pytest.mark.parametrize(("dimension", "expected"), [(50, 0.379), (500, 0.4605), (5000, 0.4704)])
def test_mean_square_overlap(dimension, expected):
    # d³ E c² of (two-layer-posterior 8), reduced; moments at beta = 0 are those of the prior
    neuron = TiltedNeuron(neuron_overlap("erf", 3), dimension, reduced=True)
    assert dimension**3 * neuron.moments(0.0)[1] == pytest.approx(expected, rel=0.01)


def test_mean_square_overlap_with_a_fluctuating_rest():
    # Fluctuations of r raise d³ E c² from 0.379 to 0.414 at d = 50.
    draws = random_stream(2, "overlap").standard_normal((2, 400_000))
    r = random_stream(2, "rest").chisquare(49, 400_000) / 50
    squares = neuron_overlap("erf", 3).value(draws[0] / np.sqrt(50), r) ** 2
    found = TiltedNeuron(neuron_overlap("erf", 3), 50).moments(0.0)[1]
    assert abs(found - squares.mean()) < 4 * squares.std() / np.sqrt(squares.size)
    assert found > 1.005 * TiltedNeuron(neuron_overlap("erf", 3), 50, reduced=True).moments(0.0)[1]


def test_the_limit_is_two_and_a_half_times_the_naive_one():
    # The naive coefficient expands the dual kernel (2/pi) arcsin(2 x.x'/3d) in x.x'/d. Its cubic part
    # is (2/pi)(1/6)(2/3)³, and <y, (x.x')³, y> = 6   (two-layer-posterior 8).
    naive = 2 / np.pi / 6 * (2 / 3) ** 3 * 6
    assert specialisation("erf", 3).gaussian / naive == pytest.approx(2.5, rel=1e-4)


@pytest.mark.parametrize("activation", ["erf", "tanh"])
def test_amplified_feature(activation):
    # (scale 6): with u ~ N(0, D/d) at d = 1000, E c² grows by D³ within 20 % at D = 16.
    d = 1_000
    z, weights = np.polynomial.hermite_e.hermegauss(80)
    weights = weights / weights.sum()
    overlap = neuron_overlap(activation, 3)
    mean = {D: weights @ overlap.value(np.sqrt(D / d) * z, 1.0) ** 2 for D in (1, 16)}
    if activation == "erf":
        assert mean[16] / mean[1] == pytest.approx(16**3 * 0.82, rel=0.05)
    assert 0.6 * 16**3 < mean[16] / mean[1] < 16**3


def test_the_bound_holds_for_draws_of_the_prior():
    # (two-layer-posterior 3): -log Pr[A >= alpha] is above E.
    rng = random_stream(11, "prior")
    d = width = 4
    draws = 400_000
    alignment = np.zeros(draws)
    for _ in range(width):
        u = rng.standard_normal(draws) / np.sqrt(d)
        r = rng.chisquare(d - 1, draws) / d
        alignment += (
            rng.standard_normal(draws) / np.sqrt(width) * neuron_overlap("erf", 3).value(u, r)
        )
    for alpha in (0.05, 0.1, 0.2):
        energy = large_deviation(dimension=d, width=width, alignment=alpha).energy
        count = int((alignment >= alpha).sum())
        # The count is raised by four standard errors.
        assert -np.log((count + 4 * np.sqrt(count)) / draws) > energy
    assert large_deviation(dimension=d, width=width, alignment=0.3).energy == pytest.approx(
        5.97, abs=0.03
    )


def test_wide_networks_are_lazy():
    # (two-layer-posterior 8): E -> alpha² / (2 sigma_a² E c²) as N grows at fixed d.
    neuron = TiltedNeuron(neuron_overlap("erf", 3), 8)
    found = large_deviation(dimension=8, width=10**9, alignment=0.7, readout_variance=1.5)
    assert found.energy == pytest.approx(0.7**2 / (2 * 1.5 * neuron.moments(0.0)[1]), rel=1e-4)


@pytest.mark.parametrize(("activation", "degree"), [("erf", 3), ("tanh", 3), ("erf", 5)])
def test_the_wide_limit(activation, degree):
    # (two-layer-posterior 6): E / sqrt(N d) -> R, with a correction of order log d / d.
    constant = specialisation(activation, degree).R
    ratios = [
        large_deviation(dimension=d, width=d, activation=activation, degree=degree).energy
        / d
        / constant
        for d in (100, 400, 1600)
    ]
    assert ratios[-1] == pytest.approx(1.0, abs=0.01)
    assert ratios[0] < ratios[1] < ratios[2] < 1


def test_mean_field_is_a_smaller_readout():
    field = large_deviation(dimension=30, width=40, readout="mean-field", alignment=0.5)
    standard = large_deviation(dimension=30, width=40, readout_variance=1 / 40, alignment=0.5)
    assert field.energy == pytest.approx(standard.energy, rel=1e-12)
    assert field.neurons == pytest.approx(standard.neurons, rel=1e-12)


def test_the_derivative_of_the_energy_is_the_field():
    step = 1e-4
    low, high = (
        large_deviation(dimension=12, width=30, alignment=0.4 + sign * step).energy
        for sign in (-1, 1)
    )
    middle = large_deviation(dimension=12, width=30, alignment=0.4)
    assert (high - low) / (2 * step) == pytest.approx(middle.t, rel=1e-6)


def test_relu_condenses():
    # (two-layer-posterior 7): E -> 2 sqrt(2) sqrt(N d), on one neuron with u² = sqrt(8 N/d).
    found = large_deviation(dimension=50, width=5_000, activation="relu", degree=2, target="parity")
    assert found.condensed
    assert found.neurons == 1
    assert found.u**2 == pytest.approx(np.sqrt(8 * 100), rel=0.1)
    ratios = [
        large_deviation(dimension=d, width=d, activation="relu", degree=2, target="parity").energy
        / d
        for d in (20, 100, 400)
    ]
    assert ratios[0] < ratios[1] < ratios[2] < 2 * np.sqrt(2)
    assert ratios[2] == pytest.approx(2 * np.sqrt(2), rel=1e-3)


def test_bad_arguments_raise():
    with pytest.raises(InvalidParameter, match="dimension is 1;"):
        large_deviation(dimension=1, width=5)
    with pytest.raises(InvalidParameter, match="width is 0;"):
        large_deviation(dimension=10, width=0)
    with pytest.raises(InvalidParameter, match="alignment is -1"):
        large_deviation(dimension=10, width=5, alignment=-1)
    with pytest.raises(InvalidParameter, match="readout"):
        large_deviation(dimension=10, width=5, readout="ntk")
    with pytest.raises(NotConverged, match="condense"):
        large_deviation(dimension=10, width=5, activation="z**3")
