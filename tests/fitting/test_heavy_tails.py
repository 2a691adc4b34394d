"""Upper end of a mean with a Pareto tail: exact cases, and coverage where the mean is known."""

from __future__ import annotations

import math

import numpy as np
import pytest

from solvable.fitting.heavy_tails import tail_index, upper_end
from solvable.fitting.intervals import mean_interval


def test_the_tail_index_of_powers_is_their_exponent():
    # Of 16 values the four largest are 2, 4, 8 and 16 times the next one, so the inverse of the index is
    # (1 + 2 + 3 + 4) log(2) / 4.
    values = np.concatenate([np.linspace(0.1, 1, 12), [2, 4, 8, 16]])
    assert tail_index(values) == pytest.approx(4 / (10 * math.log(2)))
    assert tail_index(values**3) == pytest.approx(4 / (30 * math.log(2)))
    assert tail_index(5 * values) == pytest.approx(tail_index(values))


@pytest.mark.parametrize("index", [1.5, 3.0])
def test_the_tail_index_of_a_pareto_law_is_its_own(index):
    # The k largest of n Pareto values give 1 / a with standard error 1 / (a sqrt(k)); n = 400, k = 20.
    draws = np.random.default_rng(0).random((200, 400)) ** (-1 / index)
    found = [1 / tail_index(row) for row in draws]
    assert np.mean(found) == pytest.approx(1 / index, abs=4 / (index * math.sqrt(20 * 200)))


def test_the_upper_end_scales_with_the_values_and_is_infinite_without_a_finite_mean():
    values = np.random.default_rng(1).standard_t(4, size=200) ** 2
    end = upper_end(values, 0.9)
    assert upper_end(7 * values, 0.9) == pytest.approx(7 * end)
    # Twice the variance of the mean: the distance of the logarithms grows by sqrt(2).
    ratio = math.log(upper_end(values, 0.9, inflation=2) / values.mean())
    assert ratio == pytest.approx(math.sqrt(2) * math.log(end / values.mean()))
    assert upper_end(np.full(100, 2.0), 0.9) == pytest.approx(2.0)
    # Pareto law with index 1/2, by its quantiles
    assert upper_end((1 - (np.arange(200) + 0.5) / 200) ** -2.0, 0.9) == math.inf


def missed(draw, mean, rows, trials=150):
    """Return how often the mean is above the upper end without and with a tail, and its median rise."""
    rng = np.random.default_rng(2)
    without = with_tail = 0
    rise = []
    for trial in range(trials):
        values = draw(rng, rows)
        old = mean_interval(values, 0.9, positive=True, seed=trial).upper
        new = max(old, upper_end(values, 0.9, seed=trial))
        without, with_tail = without + (mean > old), with_tail + (mean > new)
        rise.append(new / old)
    return without / trials, with_tail / trials, float(np.median(rise))


def test_a_tail_covers_squares_of_students_t_which_resampled_rows_do_not():
    # Squares of Student's t with three degrees of freedom have mean 3 and no variance. The upper end of a
    # 90 % interval should miss in 5 %, with standard error 1.8 % over 150 trials.
    without, with_tail, _ = missed(lambda rng, rows: rng.standard_t(3, rows) ** 2, 3.0, 150)
    # Measured: 28 % without and 16 % with a tail, so the tail halves the misses, but not all of them.
    assert without > 0.15
    assert without - with_tail > 3 * math.sqrt((without - with_tail) / 150)


def test_a_tail_hardly_widens_the_interval_of_normal_errors():
    _, with_tail, rise = missed(lambda rng, rows: rng.standard_normal(rows) ** 2, 1.0, 200)
    assert with_tail < 0.05 + 3 * 0.018
    assert rise < 1.05
