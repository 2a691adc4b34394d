"""Target spectra: moments, binning, resolvents, bad input."""

import numpy as np
import pytest

from solvable.errors import InvalidData, InvalidParameter
from solvable.spectra.measures import bin_tail, discrete, power_law
from solvable.spectra.product_measure import marchenko_pastur


@pytest.mark.parametrize("ratio", [0.05, 0.5, 0.99, 1.0, 1.01, 3.0])
@pytest.mark.parametrize("scale", [1.0, 2.5])
def test_marchenko_pastur_moments(ratio, scale):
    law = marchenko_pastur(ratio, scale=scale)
    assert law.node_weights.sum() == pytest.approx(1, abs=1e-12)
    assert law.node_weights @ law.nodes == pytest.approx(scale * np.sqrt(ratio), rel=1e-10)
    assert law.node_weights @ law.nodes**2 == pytest.approx(scale**2 * (1 + ratio), rel=1e-10)


@pytest.mark.parametrize("ratio", [0.05, 0.2, 1.0, 2.0])
@pytest.mark.parametrize("scale", [1.0, 3.0])
def test_marchenko_pastur_sums_against_its_rule(ratio, scale):
    law = marchenko_pastur(ratio, scale=scale)
    low, high = law.bulk
    u = np.array([low - 0.3 * scale, (low + high) / 2, high + 0.01, high + scale])
    # The rule itself needs a height that its nodes inside the bulk resolve.
    for y in np.array([0.1, 0.3, 5.0]) * scale**2:
        height = np.full(u.size, y)
        exact = law.rule.inverse_squares(u)(height) + law.rule.odd_sums(u, height)
        found = law.inverse_squares(u)(height) + law.odd_sums(u, height)
        np.testing.assert_allclose(found, exact, rtol=1e-9, atol=1e-12)
    outside = u[[0, 3]]
    np.testing.assert_allclose(law.outside(outside), law.rule.outside(outside), rtol=1e-9)


def test_marchenko_pastur_is_the_spectrum_of_a_product():
    rng = np.random.default_rng(1)
    d, width = 400, 80
    w = rng.standard_normal((d, width))
    eigenvalues = np.linalg.eigvalsh(w @ w.T / np.sqrt(width * d))
    law = marchenko_pastur(width / d)
    low, high = law.bulk
    positive = eigenvalues[eigenvalues > 1e-9]
    assert positive.size == width
    # Edges fluctuate on the Tracy-Widom scale, within 4 units of it.
    for edge, seen, sign in ((low, positive[0], -1), (high, positive[-1], 1)):
        root = np.sqrt(d) + sign * np.sqrt(width)
        scale = abs(root) * abs(1 / np.sqrt(d) + sign / np.sqrt(width)) ** (1 / 3)
        assert seen == pytest.approx(edge, abs=4 * scale / np.sqrt(width * d))


def test_binned_power_law_keeps_mass_and_second_moment():
    full = power_law(dimension=5000, exponent=0.8, heads=5000)
    binned = power_law(dimension=5000, exponent=0.8, heads=30, ratio=1.1)
    assert full.nodes.size == 5000
    assert binned.nodes.size < 120
    for law in (full, binned):
        assert law.node_weights.sum() == pytest.approx(1)
        assert law.node_weights @ law.nodes**2 == pytest.approx(1)
    np.testing.assert_allclose(binned.nodes[-30:], full.nodes[-30:])


def test_discrete_merges_and_drops():
    law = discrete(np.array([3.0, 1.0, 3.0, 2.0]), np.array([1.0, 1.0, 2.0, 0.0]))
    np.testing.assert_array_equal(law.nodes, [1, 3])
    np.testing.assert_allclose(law.node_weights, [0.25, 0.75])


def test_bad_input():
    for values in (np.empty(0), np.array([np.nan]), np.ones((2, 2))):
        with pytest.raises(InvalidData):
            discrete(values)
    for weights in (np.ones(3), np.array([-1.0, 2.0]), np.zeros(2)):
        with pytest.raises(InvalidData, match="weight"):
            discrete(np.array([1.0, 2.0]), weights)
    with pytest.raises(InvalidData, match="at least 0"):
        bin_tail(np.array([1.0, -1.0]), heads=1)
    with pytest.raises(InvalidParameter, match="ratio"):
        power_law(dimension=10, exponent=1.0, ratio=1.0)
    with pytest.raises(InvalidParameter, match="heads"):
        power_law(dimension=10, exponent=1.0, heads=0)
    with pytest.raises(InvalidParameter, match="whole"):
        power_law(dimension=10.5, exponent=1.0)
    with pytest.raises(InvalidParameter, match="width_ratio"):
        marchenko_pastur(0.0)


@pytest.mark.parametrize("ratio", [0.01, 0.2, 0.9, 1.0, 3.0])
@pytest.mark.parametrize("noise", [0.02, 0.3, 1.0, 5.0])
def test_marchenko_pastur_heights_start_at_the_root(ratio, noise):
    from scipy.optimize import brentq

    target, variance = marchenko_pastur(ratio, scale=2.0), noise**2
    low, high = target.bulk
    u = np.linspace(low, high, 9)[1:-1]
    found = np.sqrt(target.start(u, variance))
    for place, height in zip(u, found, strict=True):

        def rise(v, place=place):
            return v + variance * target.resolvent(np.array([place + 1j * v]))[0].imag[0]

        exact = brentq(rise, 1e-3 * height, noise, xtol=1e-15)
        # Below the root, where Newton's steps are monotone, and close enough for one step.
        assert height == pytest.approx(exact, rel=1e-7)
        assert height <= exact * (1 + 1e-10)
