"""Thresholds of hierarchical models, and the power laws that follow from them."""

from __future__ import annotations

import time

import numpy as np
import pytest

from solvable.models.multi_index.overlaps import mapped_labels, predict_spectral
from solvable.models.multi_index.target import power_law_channel
from solvable.spectra.label_emergence import emergence_ratio


def slope(x, y):
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def thresholds(channel, label_map):
    moments = channel.moments
    return emergence_ratio(moments.law(mapped_labels(moments, label_map)))


@pytest.mark.parametrize(
    ("link", "label_map", "beta"),
    [("he2", "tanh", 1), ("abs", "identity", 1), ("cosmix", "square", 2)],
)
def test_thresholds_follow_the_law_of_many_samples(link, label_map, beta):
    channel = power_law_channel(link, features=24, decay=0.8, noise=0.4)
    last = thresholds(channel, label_map)[-2:]
    # Thresholds grow as k^(2 gamma beta)   (multi-index 22)
    assert last[1] / last[0] == pytest.approx((24 / 23) ** (1.6 * beta), rel=0.05)
    exact = predict_spectral(
        channel.moments, label_map=label_map, sample_ratio=40 * last[1], dimension=10_000
    )
    # n/d is 40 times the threshold of the weakest feature: 1 - rho² = 1/40   (multi-index 22)
    assert 1 - exact.individual_overlap[-1] == pytest.approx(1 / 40, rel=0.1)


def test_regimes_of_the_subspace_error():
    channel = power_law_channel("he2", features=128, decay=1.0, noise=0.5)
    found, squares = thresholds(channel, "tanh"), np.array(channel.amplitudes) ** 2

    def local(low, high, more=0.0):
        ratios = np.geomspace(low, high, 9)
        missed = np.minimum(found / ratios[:, None], 1)
        return slope(ratios, missed @ squares + more)

    assert local(0.1, 1.0) == pytest.approx(0, abs=1e-9)
    # -(1 - 1/(2 gamma)) / beta   (multi-index 23; arXiv:2602.05846, Theorem 3.2), for infinitely many
    # features: those after the last one would leave the error sum k^-2, about 1 / 128.5.
    assert local(30 * found[0], found[-1] / 30, 1 / 128.5) == pytest.approx(-0.5, abs=0.02)
    assert local(2 * found[-1], 20 * found[-1]) == pytest.approx(-1, abs=1e-6)


def test_thresholds_of_a_map_are_above_the_best_ones():
    channel = power_law_channel("abs", features=10, decay=1.2, noise=0.3)
    best = channel.moments.weak_recovery_ratio
    for label_map in ("tanh", "square", "clip"):
        assert (thresholds(channel, label_map) > best).all()
    # The map that is best for the last feature reaches its threshold.
    assert thresholds(channel, "optimal")[-1] == pytest.approx(best[-1], rel=2e-3)


def test_128_thresholds_take_less_than_two_seconds():
    # CPU time of this process; 0.3 s were measured.
    start = time.process_time()
    channel = power_law_channel("he2", features=128, decay=1.0, noise=0.51)
    found = channel.moments.weak_recovery_ratio, thresholds(channel, "tanh")
    assert time.process_time() - start < 2
    k = np.arange(1, 129)
    assert slope(k[32:], found[0][32:]) == pytest.approx(2, abs=0.03)
    assert slope(k[32:], found[1][32:]) == pytest.approx(2, abs=0.03)
