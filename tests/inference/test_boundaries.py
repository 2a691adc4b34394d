"""Thresholds: closed forms, independent values, and reasons where there is none."""

import numpy as np
import pytest
from scipy.stats import norm

from solvable.inference import (
    Discrete,
    GaussBernoulli,
    Gaussian,
    Output,
    Rademacher,
    state_evolution,
    thresholds,
)

SIGN, RELU, MAGNITUDE = Output("sign"), Output("relu"), Output("abs")
HALF = 0.67448975
# weak, algorithmic, information; computed by a separate implementation, with steps of up to 2e-4
VALUES = [
    # arXiv:1708.03395 and Györgyi 1990: 1.493 and 1.245
    (Rademacher(0.5), SIGN, (0, 1.49263, 1.24468), 1e-5),
    (Rademacher(0.1), SIGN, (0, 1.08491, 0.89949), 5e-5),
    (Rademacher(0.5), Output("sign", flips=0.1), (0, 3.0117, 2.51371), 5e-5),
    (Discrete([-1, 0, 1], [0.25, 0.5, 0.25]), SIGN, (0, 2.48658, 2.07300), 1e-5),
    (GaussBernoulli(0.1), Output("identity"), (0, 0.20756, 0.1), 1e-5),
    (GaussBernoulli(0.9), Output("identity"), (0, 0.96439, 0.9), 1e-5),
    (GaussBernoulli(0.1), Output("identity", noise=1e-4), (0, 0.20883, 0.19295), 1e-5),
    (GaussBernoulli(0.3), RELU, (0, 0.81476, 0.6), 1e-5),
    (Gaussian(), RELU, (0, 2, 2), 1e-5),
    (GaussBernoulli(0.3), MAGNITUDE, (0.5, 0.704268, 0.3), 2e-6),
    (Gaussian(), MAGNITUDE, (0.5, 1.12844, 1), 1e-4),  # arXiv:1708.03395: 1.128
    (Rademacher(0.5), Output("door", width=HALF), (1.36046, 1.56642, 1.0), 2e-5),
    (Rademacher(0.5), Output("door"), (0.92496, 1.29513, 1.10983), 1e-5),
]


@pytest.mark.parametrize(("prior", "output", "values", "error"), VALUES, ids=str)
def test_thresholds_are_those_of_another_implementation(prior, output, values, error):
    found = thresholds(prior, output)
    seen = (found.weak_recovery, found.algorithmic, found.information)
    assert seen == pytest.approx(values, abs=error)


@pytest.mark.parametrize("width", [0.5, 1.0, 1.7])
def test_weak_recovery_of_a_door_has_a_closed_form(width):
    P = 2 * norm.cdf(width) - 1
    exact = P * (1 - P) / (4 * width**2 * norm.pdf(width) ** 2)
    found = thresholds(Gaussian(), Output("door", width=width))
    assert found.weak_recovery == pytest.approx(exact, rel=1e-9)
    # independent of the prior
    sparse = thresholds(GaussBernoulli(0.3), Output("door", width=width * 0.3**0.5))
    assert sparse.weak_recovery == pytest.approx(exact, rel=1e-9)


def test_errors_change_at_the_thresholds():
    prior = GaussBernoulli(0.3)
    found = thresholds(prior, RELU)
    for ratio in (found.algorithmic * 0.999, found.algorithmic * 1.001):
        error = float(state_evolution(prior, RELU, ratio).error)
        assert (error == 0) == (ratio > found.algorithmic)
    assert found.perfect_recovery == pytest.approx(found.algorithmic)
    even = thresholds(Gaussian(), Output("door"))
    below, above = state_evolution(
        Gaussian(), Output("door"), np.array([0.99, 1.01]) * even.weak_recovery
    ).overlap
    assert below == pytest.approx(0, abs=1e-12)
    assert 1e-3 < above < 0.1


def test_the_potentials_are_equal_at_the_information_threshold():
    prior, output = GaussBernoulli(0.1), Output("identity", noise=1e-4)
    ratio = thresholds(prior, output).information
    low, high = (
        float(state_evolution(prior, output, ratio, start=s).free_entropy)
        for s in ("prior", "truth")
    )
    assert low == pytest.approx(high, abs=1e-6)


@pytest.mark.parametrize(
    ("prior", "output", "name", "reason"),
    [
        (Gaussian(), SIGN, "algorithmic", "without a jump"),
        (Gaussian(), SIGN, "information", "without a jump"),
        (Gaussian(), SIGN, "perfect_recovery", "like a power"),
        (Gaussian(), SIGN, "weak_recovery", "first-order information"),
        (GaussBernoulli(0.3, mean=1), MAGNITUDE, "weak_recovery", "mean of the prior"),
        (Gaussian(), Output("relu", noise=0.1), "perfect_recovery", "noise"),
        (Rademacher(), Output("identity"), "information", "one label"),
    ],
)
def test_a_threshold_that_does_not_exist_has_a_reason(prior, output, name, reason):
    found = thresholds(prior, output)
    assert not getattr(found, name)
    assert reason in found.reasons[name]
