"""Conditional moments of additive channels against closed forms, direct integrals and draws."""

from __future__ import annotations

import numpy as np
import pytest

from solvable.errors import InvalidParameter
from solvable.links import make_link
from solvable.message_passing.channels import AdditiveChannel


def channel(name, amplitudes=(1.0,), noise=0.5, standardised=True):
    link = make_link(name, standardised=standardised)
    return AdditiveChannel((link,) * len(amplitudes), tuple(amplitudes), noise)


@pytest.mark.parametrize(
    ("name", "noise", "standardised", "expected"),
    [
        ("abs", 0.0, False, 0.5),
        ("abs", 0.1, False, 0.6043),
        ("cos(2*z)", 0.05, False, 1.7558),
        ("z**2", 0.5, False, 0.5780),
        # link with several preimages; state evolution and simulation agree with 1.6167 to 0.001
        ("cos(2*z)", 0.0, True, 1.6167),
        # the integral converges slowly: cut at labels of 30, 40 and 60 it is 1.0119, 0.9991 and 0.9910
        ("he4", 0.25, True, 0.98817),
    ],
)
def test_weak_recovery_thresholds(name, noise, standardised, expected):
    moments = channel(name, noise=noise, standardised=standardised).moments
    assert moments.weak_recovery_ratio[0] == pytest.approx(expected, rel=1e-3)
    assert moments.probabilities @ moments.second[:, 0] == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize(
    ("name", "noise", "low", "high"),
    [("he4", 0.25, -6, 150), ("relu", 0.3, -5, 12), ("cosmix", 30.0, -50, 50)],
)
def test_moments_agree_with_direct_integrals(name, noise, low, high):
    model = channel(name, noise=noise)
    z = np.linspace(-9, 9, 40_001)
    weight = np.exp(-(z**2) / 2)
    values = model.links[0](z)
    y = np.linspace(low, high, 1_200)
    joint = weight * np.exp(-((y[:, None] - values) ** 2) / (2 * noise))
    density = joint.sum(axis=1)
    first, second = joint @ z / density, joint @ (z**2 - 1) / density
    power = np.sum(density * second**2) / np.sum(density)
    moments = model.moments
    assert 1 / moments.weak_recovery_ratio[0] == pytest.approx(power, rel=2e-3)
    inside = density > 1e-6 * density.max()
    assert moments.at(y[inside])[:, 0] == pytest.approx(second[inside], abs=5e-3)
    assert moments.first_at(y[inside])[:, 0] == pytest.approx(first[inside], abs=5e-3)


@pytest.mark.parametrize("name", ["he2", "relu", "tanh"])
def test_moments_of_several_coordinates_agree_with_draws(name):
    model = channel(name, (1.0, -0.6, 0.3), 0.2)
    rng = np.random.default_rng(1)
    z = rng.standard_normal((400_000, 3))
    y = model.sample(z, rng)
    moments = model.pair_moments
    T, drawn = np.tanh(moments.labels), np.tanh(y)
    probabilities = moments.probabilities * T

    def compare(values, expected):
        assert values.mean() == pytest.approx(expected, abs=4.5 * values.std() / np.sqrt(y.size))

    for k in range(3):
        compare(drawn * z[:, k], probabilities @ moments.first[:, k])
        compare(drawn * (z[:, k] ** 2 - 1), probabilities @ moments.second[:, k])
        if moments.cross is not None and k:
            compare(drawn * z[:, 0] * z[:, k], probabilities @ moments.cross[:, 0, k])
    assert (moments.cross is None) == (name == "he2")


def test_hierarchical_thresholds():
    places = np.array([1, 2, 4, 6, 8, 12]) - 1
    expected = {
        "he2": [0.86, 3.91, 14.47, 30.89, 53.13, 114.99],
        "abs": [0.98, 4.67, 18.66, 41.33, 72.68, 161.4],
        "cosmix": [2.15, 37.03, 621.7, 3103, 9653, 47769],
    }
    slopes = {"he2": 1.887, "abs": 1.964, "cosmix": 3.950}
    k = np.arange(1, 13)
    for name, ratios in expected.items():
        found = channel(name, 1 / k).moments.weak_recovery_ratio
        assert found[places] == pytest.approx(ratios, rel=0.01)
        slope = np.polyfit(np.log(k[3:]), np.log(found[3:]), 1)[0]
        assert slope == pytest.approx(slopes[name], abs=2e-3)


@pytest.mark.parametrize("name", ["he2", "abs", "cosmix"])
def test_weak_features_do_not_suffer_from_the_grid(name):
    # term of signal-to-noise ratio lambda in Gaussian noise: alpha = (beta!)² / (beta! c²) lambda^-beta
    # to leading order; the term is far smaller than a grid cell
    link = make_link(name)
    z, chance = link.nodes()
    beta = 2 if name == "cosmix" else 1
    c = float(chance @ (link(z) ** beta * (z**2 - 1)))
    for amplitude in (1e-2, 1e-3):
        found = channel(name, (amplitude,), 1.0).moments.weak_recovery_ratio[0]
        leading = beta / (c**2 * amplitude ** (2 * beta))
        assert found == pytest.approx(leading, rel=3e-3)


def test_labels_without_noise_gather_atoms():
    moments = channel("relu", noise=0.0, standardised=False).moments
    # half of the samples have label 0, so z < 0: E[z² - 1] = 0, E[z] = -sqrt(2/pi)
    atom = np.argmin(np.abs(moments.labels))
    assert moments.probabilities[atom] == pytest.approx(0.5, abs=1e-6)
    assert moments.first[atom, 0] == pytest.approx(-np.sqrt(2 / np.pi), abs=1e-6)
    assert moments.second[atom, 0] == pytest.approx(0, abs=1e-6)
    assert np.isinf(channel("sign", noise=0.0).moments.weak_recovery_ratio[0])
    assert np.isinf(channel("sign", noise=0.7).moments.weak_recovery_ratio[0])


def test_bad_channels_are_refused():
    link = make_link("he2")
    for arguments in (((), (), 1.0), ((link,), (1.0, 2.0), 1.0), ((link,), (0.0,), 1.0),
                      ((link,), (1.0,), -1.0), ((link,), (1.0,), float("nan"))):  # fmt: skip
        with pytest.raises(InvalidParameter, match="allowed"):
            AdditiveChannel(*arguments)
    relu = make_link("relu")
    with pytest.raises(InvalidParameter, match="allowed"):
        _ = AdditiveChannel((relu,) * 60, (1.0,) * 60, 1.0).pair_moments
