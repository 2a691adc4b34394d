"""Exact tails of the prior: draws, the Chernoff bound, and the exponents below width d."""

import numpy as np
import pytest

from solvable.arrays import random_stream
from solvable.errors import InvalidParameter
from solvable.models.two_layer_posterior.large_deviation import large_deviation
from solvable.models.two_layer_posterior.overlap import neuron_overlap
from solvable.models.two_layer_posterior.tail import _log_fold, single_neuron_cost, tail_energy


@pytest.mark.parametrize(
    ("dimension", "width", "degree"), [(4, 4, 3), (5, 2, 3), (3, 6, 1), (4, 3, 5)]
)
def test_draws_of_the_prior(dimension, width, degree):
    rng = random_stream(3, "prior", dimension, width)
    draws = 400_000
    alignment = np.zeros(draws)
    for _ in range(width):
        u = rng.standard_normal(draws) / np.sqrt(dimension)
        r = rng.chisquare(dimension - 1, draws) / dimension
        overlap = neuron_overlap("erf", degree).value(u, r)
        alignment += rng.standard_normal(draws) / np.sqrt(width) * overlap
    for share in (0.02, 0.002):
        level = float(np.quantile(alignment, 1 - share))
        found = tail_energy(dimension=dimension, width=width, alignment=level, degree=degree).energy
        # standard error of the logarithm of a count, and the grid's 1 percent
        assert abs(found + np.log(share)) < 4 / np.sqrt(share * draws) + 0.01


def test_the_numbers_of_the_note():
    # section 3.1, 4e6 draws at d = N = 4
    for alignment, expected in ((0.1, 3.64), (0.2, 6.21), (0.3, 8.89)):
        found = tail_energy(dimension=4, width=4, alignment=alignment)
        assert found.energy == pytest.approx(expected, abs=0.06)


def test_folding_is_a_convolution():
    law = np.array([0.6, 0.1, 0.0, 0.3, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    expected = law
    for _ in range(4):
        expected = np.convolve(expected, law)[:10]
    with np.errstate(divide="ignore"):
        assert np.exp(_log_fold(np.log(law), 5)) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("width", [20, 60, 200])
def test_the_chernoff_energy_bounds_it_from_below_and_closely_at_wide_layers(width):
    exact = tail_energy(dimension=20, width=width)
    bound = large_deviation(dimension=20, width=width)
    # the difference is a logarithm: log(t sqrt(2 pi Var))
    assert 0 < exact.energy - bound.energy < 8
    assert exact.neurons == pytest.approx(bound.neurons, rel=0.45)


def test_wide_layers_have_the_exponent_of_the_chernoff_energy():
    # N = d: d^1, with the same local slope to the correction of the logarithm
    sizes = (32, 64, 128)
    exact = [tail_energy(dimension=d, width=d).energy for d in sizes]
    bound = [large_deviation(dimension=d, width=d).energy for d in sizes]
    slopes = np.diff(np.log([exact, bound])) / np.log(2)
    assert np.abs(slopes[0] - slopes[1]).max() < 0.03
    assert np.abs(slopes - 1).max() < 0.06


@pytest.mark.parametrize(("exponent", "degree"), [(1 / 3, 3), (1 / 2, 3), (1 / 3, 5), (0.7, 3)])
def test_one_neuron_has_the_exponent_of_free_strength(exponent, degree):
    # d u^2 against N / u^2m: energy d^((m + n)/(m + 1)) at u = d^(-(1 - n)/(2m + 2))
    sizes = 10.0 ** np.array([30, 40])
    costs = [single_neuron_cost(dimension=d, width=d**exponent, degree=degree) for d in sizes]
    slope = np.diff(np.log(costs))[0] / np.log(sizes[1] / sizes[0])
    assert slope == pytest.approx((degree + exponent) / (degree + 1), abs=2e-3)


CASES = [(1 / 3, 3, (64, 512, 3375)), (1 / 2, 3, (256, 1024, 4096)), (1 / 3, 5, (64, 512, 3375))]


@pytest.mark.parametrize(("exponent", "degree", "sizes"), CASES)
def test_below_width_d_one_neuron_of_free_strength_holds(exponent, degree, sizes):
    # The question: erf, N = d^(1/3), He3: a list with unit strength says 1, M and mu free 5/6,
    # and the Chernoff energy 2/3. The exact tail is the cost of one neuron, whose exponent is 5/6.
    for d in sizes:
        width = round(d**exponent)
        exact = tail_energy(dimension=d, width=width, degree=degree)
        bound = large_deviation(dimension=d, width=width, degree=degree).energy
        assert exact.neurons == 1
        # the difference is the entropy of one neuron, a logarithm
        assert abs(exact.energy - exact.cost) < 2 * np.log(d)
        assert bound < exact.energy
    # falls behind by a power
    ratio = [
        large_deviation(dimension=d, width=round(d**exponent), degree=degree).energy
        / single_neuron_cost(dimension=d, width=round(d**exponent), degree=degree)
        for d in sizes
    ]
    assert ratio[0] > ratio[1] > ratio[2]


@pytest.mark.slow
@pytest.mark.parametrize(("exponent", "degree"), [(1 / 3, 3), (1 / 2, 3), (1 / 3, 5)])
def test_exponent_of_the_exact_tail_to_a_million_dimensions(exponent, degree):
    sizes = np.array([3_375, 27_000, 216_000, 1_000_000])
    widths = np.round(sizes**exponent)
    energies = [
        tail_energy(dimension=int(d), width=int(n), degree=degree).energy
        for d, n in zip(sizes, widths, strict=True)
    ]
    slopes = np.diff(np.log(energies)) / np.diff(np.log(sizes))
    assert (np.diff(slopes) > 0).all()
    # The correction is a series in u^2 = d^(-(1 - n)/(m + 1)): a parabola through the slopes.
    middle = np.sqrt(sizes[1:] * sizes[:-1])
    small = middle ** (-(1 - exponent) / (degree + 1))
    limit = np.polyfit(small, slopes, 2)[-1]
    assert limit == pytest.approx((degree + exponent) / (degree + 1), abs=0.02)
    # neither the Chernoff exponent nor unit strength
    assert abs(limit - (1 + exponent) / 2) > 0.1
    assert abs(limit - 1) > 0.06


@pytest.mark.parametrize("target", ["parity", "hermite"])
def test_weak_relu_neurons_are_no_part_of_the_optimal_face(target):
    # With M neurons of strength u the energy is sqrt(N d) omega(u)/c(u), the rest at its best. At u >= 1
    # it is flat up to a factor: M + 2 mu = 1/2 for mu in [0, 1/4]. Below it grows like 1/u, as c falls
    # like u^2: at N = d^2 neurons of strength d^mu, mu < 0, cost d^(3/2 - mu), not d^(3/2).
    overlap = neuron_overlap("relu", 2, target)
    r = np.geomspace(1e-14, 1.0, 4_000)
    u = np.array([1e-6, 1e-5, 1e-4, 1e1, 1e2, 1e3])
    price = np.sqrt(u[:, None] ** 2 + r - 1 - np.log(r)) / overlap.value(u[:, None], r)
    least = np.log(price.min(1))
    slopes = np.diff(least) / np.diff(np.log(u))
    assert slopes[:2] == pytest.approx(-1, abs=0.06)
    assert slopes[3:] == pytest.approx(0, abs=0.02)


def test_what_cannot_be_asked_is_refused():
    with pytest.raises(InvalidParameter, match="dimension is 1;"):
        tail_energy(dimension=1, width=3)
    with pytest.raises(InvalidParameter, match="width is 2000000"):
        tail_energy(dimension=10, width=2_000_000)
    with pytest.raises(InvalidParameter, match="alignment"):
        tail_energy(dimension=10, width=3, alignment=0.0)
