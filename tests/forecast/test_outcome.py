"""Floor of a curve, samples for an error, and predictions beyond the data that do not rise."""

from __future__ import annotations

import numpy as np
import pytest

from solvable.arrays import random_stream
from solvable.errors import InvalidParameter
from solvable.forecast import LearningCurve, forecast
from solvable.forecast.view import outcome_sentences

SIZES = np.array([100, 200, 400, 800, 1600])


def curve(seed, floor, amplitude=2.0, exponent=0.6, noise=0.03, replicates=4):
    rng = random_stream("outcome", seed)
    n = np.repeat(SIZES, replicates)
    truth = floor + amplitude * n**-exponent
    return LearningCurve(n, truth * (1 + noise * rng.standard_normal(n.size)))


def test_the_interval_of_the_floor_covers_the_true_one():
    floors = [0.0, 0.05, 0.1] * 2
    found = [
        forecast(curve(seed, floor), resamples=100, band_points=0).floor
        for seed, floor in enumerate(floors)
    ]
    covered = [one.lower <= floor <= one.upper for one, floor in zip(found, floors, strict=True)]
    # At 90 %, four or more of six are covered with probability 0.98.
    assert sum(covered) >= 4
    assert all(one.lower <= one.value <= one.upper for one in found)
    assert all(one.lower < 1e-12 for one, floor in zip(found, floors, strict=True) if not floor)


def test_samples_for_an_error_are_those_of_the_true_curve():
    found = forecast(
        curve(0, 0.05, noise=0.005), error=0.065, at=[3200], resamples=100, band_points=0
    )
    # 0.05 + 2 n^-0.6 = 0.065
    true = (2 / 0.015) ** (1 / 0.6)
    assert found.needed.fewest < true < (found.needed.most or np.inf)
    assert found.needed.samples == pytest.approx(true, rel=0.3)
    never = forecast(curve(0, 0.05, noise=0.005), error=0.01, resamples=100, band_points=0)
    assert never.needed.samples is None
    assert "between" in outcome_sentences(found)[-1]
    assert "is not reached" in outcome_sentences(never)[-1]
    already = forecast(curve(0, 0.05), error=0.3, resamples=100, band_points=0)
    assert "already reached" in outcome_sentences(already)[-1]
    with pytest.raises(InvalidParameter, match="error is 0"):
        forecast(curve(0, 0.05), error=0)


@pytest.mark.parametrize("seed", range(3))
def test_beyond_the_data_errors_do_not_rise_and_stay_near_the_measured(seed):
    # Most of the fall is below the smallest size; then the curve is flat.
    flat = curve(seed, 0.4, amplitude=8.0, exponent=1.0, noise=0.05)
    found = forecast(flat, at=[1700, 3200, 6400, 25_600], resamples=100, band_points=12)
    beyond = [one for one in found.band if one.samples > 1600]
    for points in (found.predictions, beyond):
        for part in ("mean", "lower", "upper"):
            assert (np.diff([getattr(one, part) for one in points]) <= 0).all()
    # The true error is 0.405 at the largest size and 0.4 at the last one.
    assert found.predictions[-1].mean > 0.36
    assert found.unclear == (1700, 3200, 6400, 25_600)
    assert outcome_sentences(found)[0].startswith("Whether the error falls at all is not clear")


def test_a_clear_fall_is_not_called_unclear():
    found = forecast(curve(1, 0.0), resamples=100, band_points=0)
    assert found.unclear == ()
    assert found.today == pytest.approx(2 * 1600**-0.6, rel=0.1)
    assert "A break ahead is not covered" in " ".join(found.diagnostics.notes)
