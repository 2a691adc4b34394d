"""Exact tails of the prior: draws, the Chernoff bound, and the exponents below width d."""

from dataclasses import dataclass
from math import log, sqrt

import numpy as np
import pytest
from scipy.special import erfcx, log_ndtr

from solvable.arrays import random_stream
from solvable.models.two_layer_posterior.constants import specialisation
from solvable.models.two_layer_posterior.large_deviation import large_deviation, readout_scale
from solvable.models.two_layer_posterior.overlap import NeuronOverlap, neuron_overlap


@dataclass(frozen=True)
class TailEnergy:
    """Exact energy of an alignment, and its cheapest configuration of equal neurons."""

    energy: float
    neurons: int
    u: float
    r: float
    cost: float  # cost of that configuration, without the entropy around it
    power: float  # mean variance of A given the hidden weights, among networks that reach the alignment


def tail_energy(
    *,
    dimension: int,
    width: int,
    alignment: float = 1.0,
    degree: int = 3,
    activation: str = "erf",
    readout: str = "standard",
    bins: int = 2_000,
) -> TailEnergy:
    """Compute -log Pr[A >= alpha] = -log E_V Q(alpha / sqrt(V)) under the prior, V = sum c² / (N chi)."""
    # The law of c² comes from quadrature over r, and its N-fold convolution from doubling in
    # logarithms. A tilt would give only the convex hull of the rate, which is concave below width d.
    scale = 1 / (readout_scale(readout, width) * width)
    overlap = neuron_overlap(activation, degree)
    neurons, square, cost, u, r = _cheapest(overlap, dimension, width, scale, alignment)
    # the grid reaches four times the cheapest V, and thirty times the V of lazy networks
    lazy = width * specialisation(activation, degree).gaussian / float(dimension) ** degree
    spacing = max(4 * neurons * square, 30 * lazy) / bins
    edges = np.append(0.0, spacing * (np.arange(bins) + 0.5))
    survival = _log_survival(overlap, dimension, edges)
    one = _log_difference(survival)
    # mass below the first edge counts with its mean
    below = _mean_below(overlap, dimension, float(edges[1]))
    power = scale * (spacing * np.arange(bins) + width * below)
    law = _log_fold(one, width)
    # given the hidden weights, A is Gaussian with variance V
    terms = law + log_ndtr(-alignment / np.sqrt(power))
    top = float(terms.max())
    weight = np.exp(terms - top)
    whole = float(weight.sum())
    return TailEnergy(-top - log(whole), neurons, u, r, cost, float(weight @ power) / whole)


def single_neuron_cost(
    *,
    dimension: float,
    width: float,
    alignment: float = 1.0,
    degree: int = 3,
    activation: str = "erf",
) -> float:
    """Minimise d omega² / 2 + alpha² N / (2 c²) over one neuron, at sizes of any magnitude."""
    overlap = neuron_overlap(activation, degree)
    return _cheapest(overlap, dimension, 1, 1 / width, alignment)[2]


def _cheapest(
    overlap: NeuronOverlap, dimension: float, most: int, scale: float, alignment: float
) -> tuple[int, float, float, float, float]:
    """Find the number of equal neurons of least cost, their c², cost, u and r."""
    u = np.geomspace(1e-4, 300.0, 1_500)
    log_r = np.append(-np.geomspace(12.0, 1e-5, 250), 0.0)
    squares = np.maximum(overlap.value(u[:, None], np.exp(log_r)) ** 2, 1e-300)
    # (d/2)(u² + r - 1 - log r)
    decay = dimension / 2 * (u[:, None] ** 2 + np.expm1(log_r) - log_r)
    best: tuple[float, int, int, int] | None = None
    counts = np.unique(np.round(np.geomspace(1, most, 60)).astype(int))
    for count in counts:
        cost = count * decay + alignment**2 / (2 * scale * count * squares)
        row, column = np.unravel_index(np.argmin(cost), cost.shape)
        if best is None or cost[row, column] < best[0]:
            best = (float(cost[row, column]), int(count), int(row), int(column))
    assert best is not None
    least, neurons, at_u, at_r = best
    return neurons, float(squares[at_u, at_r]), least, float(u[at_u]), float(np.exp(log_r[at_r]))


def _rest(dimension: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes r and log probabilities of the squared rest, chi^2_(d-1)/d."""
    high = log(1 + 120 / dimension + sqrt(160 / dimension))
    low = -(3.0 + 80.0 / (dimension - 1))
    log_r = np.arange(low, high, 0.5 * sqrt(2 / dimension))
    weight = (dimension - 1) / 2 * log_r - dimension / 2 * np.exp(log_r)
    weight -= weight.max()
    return np.exp(log_r), weight - log(np.exp(weight).sum())


def _log_survival(overlap: NeuronOverlap, dimension: int, squares: np.ndarray) -> np.ndarray:
    """Log Pr[c² > v] at each v."""
    u = np.geomspace(1e-5, 900.0, 4_000)
    total = np.full(squares.size, -np.inf)
    with np.errstate(divide="ignore"):
        wanted = np.log(squares)
        for r, log_weight in zip(*_rest(dimension), strict=True):
            value = np.log(np.maximum(overlap.value(u, r) ** 2, 1e-300))
            assert (np.diff(value) >= -1e-9).all()  # of an overlap that grows with u
            # c grows with u, so that c² > v means |u| > u(v, r), of which log erfc(x) is the
            # probability
            x = sqrt(dimension / 2) * np.exp(np.interp(wanted, value, np.log(u)))
            tail = np.where(wanted > value[-1], -np.inf, np.log(erfcx(x)) - x * x)
            tail = np.where(wanted < value[0], 0.0, tail)
            total = np.logaddexp(total, log_weight + tail)
    return np.minimum(total, 0.0)


def _log_difference(survival: np.ndarray) -> np.ndarray:
    """Log of the probability between neighbouring places; mass beyond the last place is left out."""
    with np.errstate(divide="ignore", invalid="ignore"):
        found = survival[:-1] + np.log(-np.expm1(survival[1:] - survival[:-1]))
    return np.where(np.isfinite(survival[:-1]), found, -np.inf)


def _mean_below(overlap: NeuronOverlap, dimension: int, edge: float) -> float:
    """Mean of c² over values below an edge."""
    places = np.append(0.0, np.geomspace(1e-8 * edge, edge, 200))
    survival = np.exp(_log_survival(overlap, dimension, places))
    # int_0^e v dF = int_0^e S dv - e S(e)
    area = float(np.sum(np.diff(places) * (survival[1:] + survival[:-1]) / 2))
    return max(area - edge * float(survival[-1]), 0.0)


def _log_convolve(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Logarithm of the convolution of two laws, cut to the same length."""
    found = np.empty_like(left)
    for k in range(left.size):
        terms = left[: k + 1] + right[k::-1]
        top = terms.max()
        found[k] = top if top == -np.inf else top + log(np.exp(terms - top).sum())
    return found


def _log_fold(one: np.ndarray, count: int) -> np.ndarray:
    """Logarithm of the law of a sum of many copies, by doubling."""
    power, total = one, None
    while count:
        if count & 1:
            total = power if total is None else _log_convolve(total, power)
        count >>= 1
        if count:
            power = _log_convolve(power, power)
    assert total is not None
    return total


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


def test_energies_of_prior_draws():
    # reference: 4e6 draws of the prior at d = N = 4
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
    # the difference is log(t sqrt(2 pi Var)), of logarithmic order
    assert 0 < exact.energy - bound.energy < 8
    assert exact.neurons == pytest.approx(bound.neurons, rel=0.45)


def test_wide_layers_have_the_exponent_of_the_chernoff_energy():
    # At N = d the exponent is 1; the local slopes agree up to a logarithmic correction.
    sizes = (32, 64, 128)
    exact = [tail_energy(dimension=d, width=d).energy for d in sizes]
    bound = [large_deviation(dimension=d, width=d).energy for d in sizes]
    slopes = np.diff(np.log([exact, bound])) / np.log(2)
    assert np.abs(slopes[0] - slopes[1]).max() < 0.03
    assert np.abs(slopes - 1).max() < 0.06


@pytest.mark.parametrize(("exponent", "degree"), [(1 / 3, 3), (1 / 2, 3), (1 / 3, 5), (0.7, 3)])
def test_one_neuron_has_the_exponent_of_free_strength(exponent, degree):
    # (scale 11): d u² = N / u^2m gives d^((m + n)/(m + 1)) at u = d^(-(1 - n)/(2m + 2)).
    sizes = 10.0 ** np.array([30, 40])
    costs = [single_neuron_cost(dimension=d, width=d**exponent, degree=degree) for d in sizes]
    slope = np.diff(np.log(costs))[0] / np.log(sizes[1] / sizes[0])
    assert slope == pytest.approx((degree + exponent) / (degree + 1), abs=2e-3)


CASES = [(1 / 3, 3, (64, 512, 3375)), (1 / 2, 3, (256, 1024, 4096)), (1 / 3, 5, (64, 512, 3375))]


@pytest.mark.parametrize(("exponent", "degree", "sizes"), CASES)
def test_below_width_d_one_neuron_of_free_strength_holds(exponent, degree, sizes):
    # (scale 11) at erf, N = d^(1/3), He3: unit strength gives the exponent 1, free M and mu give 5/6,
    # and the Chernoff energy gives 2/3. The exact tail is the cost of one neuron, with the exponent
    # 5/6.
    for d in sizes:
        width = round(d**exponent)
        exact = tail_energy(dimension=d, width=width, degree=degree)
        bound = large_deviation(dimension=d, width=width, degree=degree).energy
        assert exact.neurons == 1
        # the difference is the entropy of one neuron, of logarithmic order
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
    # The correction is a series in u² = d^(-(1 - n)/(m + 1)); a parabola is fitted to the slopes.
    middle = np.sqrt(sizes[1:] * sizes[:-1])
    small = middle ** (-(1 - exponent) / (degree + 1))
    limit = np.polyfit(small, slopes, 2)[-1]
    assert limit == pytest.approx((degree + exponent) / (degree + 1), abs=0.02)
    # neither the Chernoff exponent nor unit strength
    assert abs(limit - (1 + exponent) / 2) > 0.1
    assert abs(limit - 1) > 0.06


@pytest.mark.parametrize("target", ["parity", "hermite"])
def test_weak_relu_neurons_are_no_part_of_the_optimal_face(target):
    # With M neurons of strength u the energy is sqrt(N d) omega(u)/c(u), minimised over r. For u >= 1
    # it is constant up to a factor: M + 2 mu = 1/2 for mu in [0, 1/4]. For u < 1 it grows like 1/u,
    # because c falls like u²: at N = d², neurons of strength d^mu with mu < 0 cost d^(3/2 - mu), not
    # d^(3/2).
    overlap = neuron_overlap("relu", 2, target)
    r = np.geomspace(1e-14, 1.0, 4_000)
    u = np.array([1e-6, 1e-5, 1e-4, 1e1, 1e2, 1e3])
    price = np.sqrt(u[:, None] ** 2 + r - 1 - np.log(r)) / overlap.value(u[:, None], r)
    least = np.log(price.min(1))
    slopes = np.diff(least) / np.diff(np.log(u))
    assert slopes[:2] == pytest.approx(-1, abs=0.06)
    assert slopes[3:] == pytest.approx(0, abs=0.02)
