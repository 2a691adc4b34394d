"""Bayes-optimal overlaps of sums of even links, against one direction, many, and message passing."""

from __future__ import annotations

import numpy as np
import pytest

from solvable.links import make_link
from solvable.message_passing.channels import AdditiveChannel
from solvable.models.multi_index.best_overlaps import (
    INFORMED,
    SumEvolution,
    best_overlaps,
    direction_curve,
    oracle_overlaps,
    oracle_ratio,
    weighted_error,
)
from solvable.models.multi_index.equal_directions import EqualDirections
from solvable.models.multi_index.informed import informed_overlaps
from solvable.models.multi_index.target import MultiIndexTarget, power_law_channel


@pytest.mark.parametrize(("name", "noise"), [("he2", 0.5), ("cosmix3", 2.0)])
def test_one_direction_has_the_known_thresholds(name, noise):
    channel = AdditiveChannel((make_link(name),), (1.0,), noise)
    known, found = direction_curve(channel), best_overlaps(channel, 10)
    threshold = known.positive_ratio
    assert found.threshold_ratio[0] == pytest.approx(threshold, rel=0.02)
    for factor in (0.8, 1.2, 3.0):
        ratio = factor * threshold
        assert found.at(ratio)[0] == pytest.approx(known.overlap(ratio, "best"), abs=0.03)


def test_the_potential_of_a_sum_vanishes_at_the_threshold_of_many_directions():
    model = EqualDirections(make_link("cosmix"), 4, 0.1)
    evolution, ratio = SumEvolution(model.channel), model.information_ratio
    differences = []
    for factor in (0.98, 1.02):
        learned = evolution.fixed_point(factor * ratio, np.full(4, INFORMED))
        nothing = evolution.fixed_point(factor * ratio, np.zeros(4))
        assert learned[0].min() > 0.9
        differences.append(learned[1] - nothing[1])
    assert differences[0] < 0 < differences[1]


@pytest.mark.parametrize("link", ["he2", "abs", "cosmix"])
def test_the_oracle_is_at_least_as_good_as_the_best_estimator(link):
    channel = power_law_channel(link, features=3, decay=1.0, noise=0.5)
    table = best_overlaps(channel, 9)
    for ratio in (1.5, 6.0, 20.0):
        best, oracle = table.at(ratio), oracle_overlaps(channel, ratio)
        # 0.01 for the mean over cavity means and the interpolation of the table
        assert (best <= oracle + 0.01).all()
        error = weighted_error(channel, oracle)
        assert float(oracle_ratio(channel, error)) == pytest.approx(ratio, rel=0.02)


def test_thresholds_of_any_method_grow_as_the_square_of_the_inverse_amplitude():
    channel = power_law_channel("cosmix", features=4, decay=1.0, noise=0.5)
    found = best_overlaps(channel, 12).threshold_ratio
    slope = np.polyfit(np.log([2, 3, 4]), np.log(found[1:]), 1)[0]
    assert slope == pytest.approx(2.0, abs=0.4)
    assert channel.moments.weak_recovery_ratio[-1] > 10 * found[-1]


@pytest.mark.slow
@pytest.mark.parametrize(("link", "decay", "ratio"), [("he2", 1.0, 16.0), ("cosmix", 0.0, 10.0)])
def test_message_passing_has_the_overlaps_of_state_evolution(link, decay, ratio):
    channel = power_law_channel(link, features=3, decay=decay, noise=0.3)
    expected = SumEvolution(channel).fixed_point(ratio, np.full(3, INFORMED))[0]
    found = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        target = MultiIndexTarget(100, channel, seed)
        X, y = target.sample(int(100 * ratio), rng)
        found.append(informed_overlaps(channel, X, y, target.directions, rng))
    error = np.std(found, axis=0, ddof=1) / np.sqrt(8)
    assert (np.abs(np.mean(found, axis=0) - expected) < 0.03 + 3 * error).all()
