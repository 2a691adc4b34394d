"""Cross-entropy under the prior, against draws."""

from __future__ import annotations

from math import log, sqrt

import numpy as np
import pytest

from solvable.errors import InvalidParameter
from solvable.scale.prefactors.random_energy import cross_entropy_samples, mean_log_sum


@pytest.mark.parametrize(("classes", "expected"), [(2, 0.00249), (10, 0.00450)])
def test_cross_entropy_expansion(classes, expected):
    assert mean_log_sum(0.1, classes) == pytest.approx(expected, abs=1e-5)
    # (scale 2): the first order in K is an upper bound.
    assert mean_log_sum(0.1, classes) < 0.5 * (1 - 1 / classes) * 0.01
    assert mean_log_sum(1.0, classes) == pytest.approx({2: 0.210, 10: 0.426}[classes], abs=1e-3)


@pytest.mark.parametrize(("scale", "count"), [(0.3, 3), (1.7, 2), (2.5, 40), (6.0, 7)])
def test_log_sums_by_draws(scale, count):
    scores = np.random.default_rng(count).normal(size=(400_000 // count, count))
    top = (scale * scores).max(1, keepdims=True)
    logs = np.log(np.exp(scale * scores - top).mean(1)) + top[:, 0]
    assert abs(logs.mean() - mean_log_sum(scale, count)) < 4 * logs.std() / sqrt(logs.size)


def test_samples_of_a_classifier():
    assert cross_entropy_samples(50.0, 4, kernel=0.0) == pytest.approx(50 / log(4))
    assert cross_entropy_samples(50.0, 4, kernel=0.0, kappa=3.0) == pytest.approx(150 / log(4))
    loss = np.log(np.exp(np.random.default_rng(0).normal(size=(300_000, 4))).sum(1))
    assert cross_entropy_samples(50.0, 4) == pytest.approx(50 / loss.mean(), rel=3e-3)
    for wrong in ({"classes": 1}, {"classes": 3, "kernel": -1.0}, {"classes": 3, "kappa": 0.0}):
        with pytest.raises(InvalidParameter):
            cross_entropy_samples(1.0, **wrong)
