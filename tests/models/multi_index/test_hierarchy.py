"""Thresholds and scaling laws of hierarchical models."""

from __future__ import annotations

import time

import numpy as np
import pytest

from solvable.errors import InvalidParameter
from solvable.links import make_link
from solvable.message_passing.channels import AdditiveChannel
from solvable.models.multi_index.hierarchy import (
    ScalingLaw,
    hierarchical_law,
    hierarchical_thresholds,
)
from solvable.models.multi_index.overlaps import predict_spectral
from solvable.models.multi_index.target import power_law_channel


def slope(x, y):
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


@pytest.mark.parametrize(
    ("decay", "exponent", "expected"),
    [(0.75, 1, -0.334), (1.0, 1, -0.495), (1.5, 1, -0.654),
     (0.75, 2, -0.168), (1.0, 2, -0.250), (1.5, 2, -0.333)],
)  # fmt: skip
def test_exponents_of_the_subspace_error(decay, exponent, expected):
    # -(1 - 1/(2 gamma)) / beta   (multi-index 23; arXiv:2602.05846, Theorem 3.2)
    law = ScalingLaw(decay, exponent, 3.0)
    ratios = 3.0 * np.geomspace(1e2, 1e4, 9) ** exponent
    errors = [law.subspace_error(10**6, ratio) for ratio in ratios]
    assert slope(ratios, errors) == pytest.approx(expected, abs=0.01)
    assert law.error_exponent == pytest.approx(expected, abs=0.02)
    # The correction is of order 1/m in the number m of learned features.
    learned = (ratios[-1] / 3.0) ** (1 / (2 * decay * exponent))
    assert law.asymptote(10**6, ratios[-1]) == pytest.approx(errors[-1], rel=1.1 / learned)


def test_three_regimes_and_the_prefactor():
    law = ScalingLaw(1.0, 1, 1.0)

    def local(low, high):
        ratios = np.geomspace(low, high, 7)
        return slope(ratios, [law.subspace_error(50, ratio) for ratio in ratios])

    assert local(0.1, 1.0) == pytest.approx(0, abs=1e-9)
    assert local(2.0, 500.0) == pytest.approx(-0.518, abs=0.02)
    assert local(1e4, 1e6) == pytest.approx(-1, abs=1e-6)
    assert [law.regime(50, ratio) for ratio in (0.5, 10, 1e4)] == [
        "plateau", "power law", "parametric",
    ]  # fmt: skip
    # MSE = 2 gamma / (2 gamma - 1) (alpha / C)^(-1/2)
    assert law.subspace_error(10**6, 1e4) * 100 == pytest.approx(2, abs=0.01)
    assert law.asymptote(50, 1e5) == pytest.approx(law.subspace_error(50, 1e5), rel=1e-9)


@pytest.mark.parametrize(
    ("link", "label_map", "beta"),
    [("he2", "tanh", 1), ("abs", "identity", 1), ("cosmix", "square", 2)],
)
def test_the_law_is_that_of_many_samples(link, label_map, beta):
    law = hierarchical_law(link, features=8, decay=0.8, noise=0.4, label_map=label_map)
    assert law.exponent == beta
    channel = power_law_channel(link, features=8, decay=0.8, noise=0.4)
    ratio = 40 * law.thresholds(8)[-1]
    exact = predict_spectral(
        channel.moments, label_map=label_map, sample_ratio=ratio, dimension=10_000
    )
    # n/d is 40 times the threshold of the weakest feature: 1 - rho² = 1/40   (multi-index 22)
    assert 1 - exact.individual_overlap[-1] == pytest.approx(1 / 40, rel=0.1)
    assert 1 - law.overlaps(8, ratio)[-1] == pytest.approx(1 / 40)


def test_thresholds_of_a_map_are_above_the_best_ones():
    channel = power_law_channel("abs", features=10, decay=1.2, noise=0.3)
    best = hierarchical_thresholds(channel)
    for label_map in ("tanh", "square", "clip"):
        found = hierarchical_thresholds(channel, label_map)
        assert (found > best).all()
    # The map that is best for the last feature reaches its threshold.
    assert hierarchical_thresholds(channel, "optimal")[-1] == pytest.approx(best[-1], rel=2e-3)


def test_128_thresholds_take_less_than_two_seconds():
    # CPU time of this process; 0.3 s were measured.
    start = time.process_time()
    channel = AdditiveChannel((make_link("he2"),) * 128, tuple(1 / np.arange(1, 129)), 0.51)
    found = hierarchical_thresholds(channel), hierarchical_thresholds(channel, "tanh")
    assert time.process_time() - start < 2
    k = np.arange(1, 129)
    assert slope(k[32:], found[0][32:]) == pytest.approx(2, abs=0.03)
    assert slope(k[32:], found[1][32:]) == pytest.approx(2, abs=0.03)


def test_settings_without_a_power_law_are_refused():
    with pytest.raises(InvalidParameter, match="allowed"):
        hierarchical_law("he2", features=8, decay=0.4, noise=0.5)
    with pytest.raises(InvalidParameter, match="allowed"):
        hierarchical_law("sign", features=8, decay=1.0, noise=0.5)
    with pytest.raises(InvalidParameter, match="allowed"):
        hierarchical_law("cosmix", features=8, decay=1.0, noise=0.5, label_map=lambda y: 0 * y)
