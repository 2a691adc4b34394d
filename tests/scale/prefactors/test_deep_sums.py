"""Parts of the energies of two hidden layers: kernels of lazy layers, spikes, responses."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest

from solvable.hermite import hermite_polynomials
from solvable.models.two_layer_posterior.overlap import hermite_modes
from solvable.operators.activations import dual_kernel, evaluate
from solvable.scale.prefactors.deep_sums import SecondLayer, _line
from solvable.scale.prefactors.lazy_kernels import lazy_alignment, mode_moments
from solvable.scale.prefactors.pattern_sums import FirstLayer, Sizes


def network(act="erf", degree=3, d=20.0, widths=(60.0, 100.0)):
    sizes = Sizes(d, widths, 1.0)
    return SecondLayer((act, act), degree, sizes, FirstLayer.of(act, degree, d, "hermite"))


@pytest.mark.parametrize(
    ("act", "degree", "d"), [("erf", 3, 50.0), ("tanh", 5, 30.0), ("relu", 2, 90.0)]
)
def test_one_lazy_layer_by_two_routes(act, degree, d):
    # (scale 17), against the second moment of the neurons' overlaps
    neurons = mode_moments(act, (degree,), d)[0, 0]
    assert lazy_alignment((act,), degree, d) == pytest.approx(neurons, rel=1e-7)


@pytest.mark.parametrize("act", ["erf", "relu"])
def test_two_lazy_layers_by_sampling_the_kernel(act):
    rng = np.random.default_rng(7)
    d, degree = 4, 3 if act == "erf" else 2
    found = []
    for _ in range(16):
        x, other = rng.normal(size=(2, 150_000, d))
        inner = (x * other).sum(1) / d
        left, right = (x * x).sum(1) / d, (other * other).sum(1) / d
        for _ in range(2):
            inner, left, right = (
                _pairs(act, *pair) for pair in ((inner, left, right), (left,) * 3, (right,) * 3)
            )
        targets = (
            hermite_polynomials(x, degree)[degree] * hermite_polynomials(other, degree)[degree]
        )
        # average over all coordinate directions
        found.append((targets.mean(1) * inner).mean())
    error = np.std(found) / sqrt(len(found))
    assert abs(np.mean(found) - lazy_alignment((act, act), degree, float(d))) < 4 * error


def _pairs(act, inner, left, right):
    """Compute the dual kernel pair by pair."""
    if act == "erf":
        return 2 / np.pi * np.arcsin(2 * inner / np.sqrt((1 + 2 * left) * (1 + 2 * right)))
    cosine = np.clip(inner / np.sqrt(left * right), -1, 1)
    angle = np.arccos(cosine)
    return np.sqrt(left * right) * (np.sin(angle) + (np.pi - angle) * cosine) / (2 * np.pi)


def test_large_dimensions_follow_the_expansion():
    near, far = (lazy_alignment(("erf", "erf"), 3, d) * d**3 for d in (2_900.0, 40_000.0))
    limit = lazy_alignment(("erf", "erf"), 3, 1e9) * 1e27
    assert (far - limit) / (near - limit) == pytest.approx(2_900 / 40_000, rel=0.01)


def simulate(act, d, width, learned, u, r, mean, rng, neurons=300, batch=6_000):
    """Simulate the mean squared overlap of layer 2 with He_3, with specialised neurons in layer 1."""
    w = rng.normal(size=(width, d)) / sqrt(d)
    w[:learned, 1:] *= sqrt(r)
    w[:learned, 0] += u * rng.choice([-1, 1], size=learned)
    second = rng.normal(size=(neurons, width)) / sqrt(width)
    parts = []
    for _ in range(2):
        x = rng.normal(size=(batch, d))
        h = evaluate(act, x @ w.T) @ second.T + mean * x[:, :1]
        parts.append(hermite_polynomials(x[:, 0], 3)[3] @ evaluate(act, h) / batch)
    return (parts[0] * parts[1]).mean()


@pytest.mark.parametrize(
    ("act", "learned", "u", "r"), [("erf", 6, 1.4, 0.3), ("tanh", 12, 1.1, 0.6)]
)
def test_a_spike_is_passed_on_by_a_lazy_layer(act, learned, u, r):
    rng = np.random.default_rng(3)
    model = network(act)
    found = [simulate(act, 20, 60, learned, u, r, 0.0, rng) for _ in range(12)]
    lazy = model.spiked("Sp", learned, u, r, model.prior()).lazy
    error = np.std(found) / sqrt(len(found))
    # the neglected noise and fluctuations of specialised neurons are of order M / N_1 and 1 / d
    assert abs(np.mean(found) - lazy) < 4 * error + 0.1 * lazy


def test_a_mean_in_the_second_layer_responds_as_said():
    rng = np.random.default_rng(5)
    model = network(d=30.0, widths=(400.0, 100.0))
    seen = model.prior()
    for mean in (0.6, 1.2):
        found = [simulate("erf", 30, 400, 0, 0.0, 1.0, mean, rng, 60) for _ in range(6)]
        expected = model.around(mean, seen.shape(1), seen.kernel[1])
        error = np.std(found) / sqrt(len(found))
        assert abs(np.mean(found) - expected) < 4 * error + 0.03 * expected


@pytest.mark.parametrize(
    ("share", "cost"), [(0.01, 28.571), (0.1, 8.0), (0.5, 1.905), (1.0, 0.976)]
)
def test_a_spike_lowers_the_cost_of_its_feature(share, cost):
    # (scale 5; arXiv:2512.04165, Claim i) by linear algebra: <Phi, K^-1, Phi> = R / (1 + c R)
    rng = np.random.default_rng(2)
    basis = np.linalg.qr(rng.normal(size=(30, 30)))[0]
    rest = basis @ np.diag(np.geomspace(1e-3, 1, 30)) @ basis.T
    feature = rng.normal(size=30)
    feature *= sqrt(40 / (feature @ np.linalg.solve(rest, feature)))
    kernel = rest + share * np.outer(feature, feature)
    assert feature @ np.linalg.solve(kernel, feature) == pytest.approx(cost, rel=1e-3)


@pytest.mark.parametrize("feature", [1, 3])
def test_means_of_the_second_layer_are_the_cheapest(feature):
    # (scale 16): min h K^-1 h over means h of unit overlap with He_j is 1 / K_jj, at K e_j / K_jj.
    model = network(degree=5, d=40.0, widths=(80.0, 80.0))
    seen = model.spiked("Sp", 4.0, 1.3, 0.4, model.prior())
    degrees = (1, 3, 5, 7, 9)
    modes = hermite_modes("erf", degrees, 1.3, 0.4)
    kernel = mode_moments("erf", degrees, 40.0) + 4 / 80 * np.outer(modes, modes)
    unit = np.eye(5)[degrees.index(feature)]
    cheapest = kernel @ unit / (unit @ kernel @ unit)
    assert cheapest @ np.linalg.solve(kernel, cheapest) == pytest.approx(
        1 / seen.kernel[feature], rel=1e-6
    )
    cost, _, numbers = model.second(seen, ("Mag", feature), np.log([0.2, 1.0]))
    assert cost == pytest.approx(80 * 0.2**2 / seen.kernel[feature] / 2)
    assert numbers.neurons == 80


def test_a_lazy_layer_keeps_the_ratios_of_eigenvalues():
    # (scale 6): linear features of variance D / d and 1 / d keep the ratio D through both layers.
    model = network(d=2_000.0)
    seen, gain = model.prior(), 5.0
    first = [mode_moments("erf", (1,), 2_000.0, D)[0, 0] for D in (gain, 1.0)]
    assert first[0] / first[1] == pytest.approx(gain, rel=0.02)
    linear = network(degree=1, d=2_000.0)
    second = [linear.around(0.0, seen.shape(1), D * seen.kernel[1]) for D in (gain, 1.0)]
    assert second[0] / second[1] == pytest.approx(gain, rel=0.02)


def test_dual_kernels_are_those_of_the_library():
    inner = np.array([[0.3]])
    ours = _pairs("relu", 0.3, 0.8, 1.4)
    assert dual_kernel("relu", inner, np.array([0.8]), np.array([1.4]))[0, 0] == pytest.approx(ours)


def test_amplified_fluctuations_are_what_a_second_layer_does_exactly():
    # (scale 15): given the spike, strengths a ~ N(0, lambda) are independent; their Chernoff energy is
    # exact.
    from scipy.optimize import minimize_scalar

    width, alpha = 300.0, 1.0
    model = network(d=100.0, widths=(100.0, width))
    seen = model.spiked("Sp", 1.6, 1.46, 0.26, model.prior())
    z = np.linspace(-9, 9, 2_001)
    chance = np.exp(-(z**2) / 2) / np.exp(-(z**2) / 2).sum()
    squares = model.response(np.sqrt(seen.kernel[3]) * z[:, None] * seen.shape(3)) ** 2
    rest = seen.lazy - chance @ squares

    def bound(t):
        tilt = np.log(chance @ np.exp(t * t * squares / (2 * width)))
        return -(t * alpha - t * t * rest / 2 - width * tilt)

    exact = -minimize_scalar(bound, bounds=(1, 3_000), method="bounded").fun

    def least_of(kind):
        grid = np.linspace(0, 4, 400) if kind == "GFL" else np.linspace(-4, 1, 400)
        rows = [model.second(seen, (kind, 3), np.array([place, 0.0])) for place in grid]
        return min(cost + alpha**2 / (2 * aligned) for cost, aligned, _ in rows)

    assert exact < least_of("GFL") < 1.01 * exact
    assert least_of("Mag") > 1.05 * exact


def test_features_of_a_lazy_layer_are_its_eigenfunctions():
    # <He_3, K, He_3> is 0.4716 / d³. Fluctuations of |x|² in the linear feature make 3/5 of it; the
    # remainder is 6 times the cubic coefficient of the kernel.
    d = 1e5
    seen = network(d=d).prior()
    q, inner = 1.0, np.linspace(-0.1, 0.1, 41)
    kernel = dual_kernel("erf", inner[:, None], np.full(41, q), np.ones(1))[:, 0]
    cubic = np.polynomial.Polynomial.fit(inner, kernel, 9, domain=[-1, 1], window=[-1, 1]).coef[3]
    assert seen.kernel[3] * d**3 == pytest.approx(6 * cubic, rel=1e-3)
    nodes, weights = _line()
    assert weights @ (seen.shape(3) * nodes) == pytest.approx(0, abs=1e-3)
    assert weights @ (seen.shape(3) * hermite_polynomials(nodes, 3)[3]) == pytest.approx(
        1, abs=1e-6
    )
