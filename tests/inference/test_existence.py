"""Thresholds of separability and of sparse recovery, against simulations by linear programming."""

import numpy as np
import pytest
from scipy.optimize import linprog

from solvable.errors import InvalidParameter
from solvable.inference import (
    GaussBernoulli,
    Gaussian,
    Loss,
    Output,
    Penalty,
    empirical_risk,
    l1_recovery_threshold,
    separability_threshold,
)


def test_labels_without_signal_are_separable_up_to_two_samples_per_dimension():
    # Cover (1965)
    coin = Output.from_likelihood(
        lambda y, z: np.full(np.broadcast(y, z).shape, 0.5), labels=[-1, 1]
    )
    assert separability_threshold(coin) == pytest.approx(2.0)
    assert separability_threshold(Output("sign")) == np.inf


@pytest.mark.parametrize(
    ("deviation", "ratio"), [(1, 2.27822), (2, 2.89914), (np.sqrt(5), 3.07136)]
)
def test_thresholds_of_logistic_labels_depend_on_the_signal_alone(deviation, ratio):
    prior = Gaussian(deviation**2)
    assert separability_threshold(Output("logistic"), prior) == pytest.approx(ratio, abs=1e-5)
    slope = Output("logistic", slope=deviation)
    assert separability_threshold(slope) == pytest.approx(ratio, abs=1e-5)


@pytest.mark.parametrize(("flips", "ratio"), [(0.2, 2.391327), (0.1, 2.992286), (0.05, 3.809689)])
def test_thresholds_of_flipped_signs_do_not_depend_on_the_signal(flips, ratio):
    for prior in (None, Gaussian(3.0)):
        found = separability_threshold(Output("sign", flips=flips), prior)
        assert found == pytest.approx(ratio, abs=1e-6)  # adaptive integrals


def test_drawn_labels_are_separable_below_and_not_above():
    output, d = Output("sign", flips=0.1), 60
    threshold = separability_threshold(output)
    separable = {0.7: 0, 1.4: 0}
    for factor in separable:
        for seed in range(5):
            rng = np.random.default_rng((seed, 3))
            X = rng.standard_normal((round(factor * threshold * d), d)) / np.sqrt(d)
            y = output.draw(X @ rng.standard_normal(d), rng)
            margins = linprog(np.zeros(d), -y[:, None] * X, -np.ones(y.size), bounds=(None, None))
            separable[factor] += margins.status == 0
    assert separable == {0.7: 5, 1.4: 0}


def test_the_norm_of_the_logistic_estimate_diverges_at_the_threshold():
    # near it the excess loss of weights of length s is e s per sample, with e proportional to the
    # distance, against a gain of order log s: s is proportional to 1 / e
    output = Output("logistic")
    near = separability_threshold(output) * (1 + np.array([1e-4, 10**-4.5]))
    norms = empirical_risk(Loss("logistic"), Penalty("l2", 0.0), output, Gaussian(), near).norm
    assert norms[1] / norms[0] == pytest.approx(10, rel=0.03)


@pytest.mark.parametrize(
    ("density", "ratio"),
    [(0.05, 0.20390), (0.1, 0.32879), (0.2, 0.51113), (0.5, 0.83130), (0, 0), (1, 1)],
)
def test_the_line_of_donoho_and_tanner(density, ratio):
    assert l1_recovery_threshold(density) == pytest.approx(ratio, abs=1e-5)


def test_the_lasso_of_vanishing_strength_changes_at_the_line():
    ratios = l1_recovery_threshold(0.1) * np.array([0.9, 1.1])
    weak = [
        empirical_risk(
            Loss("square"), Penalty("l1", lam), Output("linear"), GaussBernoulli(0.1), ratios
        ).error
        for lam in (1e-3, 1e-4)
    ]
    below, above = np.transpose(weak)
    assert below[1] == pytest.approx(below[0], rel=0.02)  # a limit above 0
    assert above[1] == pytest.approx(above[0] / 100, rel=0.1)  # vanishes like the square of lambda


def test_l1_recovery_of_drawn_signals_by_linear_programming():
    d, density = 100, 0.1
    recovered = {0.7: 0, 1.3: 0}
    for factor in recovered:
        for seed in range(5):
            rng = np.random.default_rng((seed, 4))
            w = np.zeros(d)
            w[: round(density * d)] = rng.standard_normal(round(density * d))
            X = rng.standard_normal((round(factor * l1_recovery_threshold(density) * d), d))
            found = linprog(np.ones(2 * d), A_eq=np.hstack([X, -X]), b_eq=X @ w).x
            recovered[factor] += np.abs(found[:d] - found[d:] - w).max() < 1e-6
    assert recovered[0.7] == 0
    assert recovered[1.3] == 5


def test_bad_input_is_refused():
    with pytest.raises(InvalidParameter, match=r"density is 1\.5; allowed: 0 to 1"):
        l1_recovery_threshold(1.5)
    with pytest.raises(InvalidParameter, match="labels other than -1 and 1"):
        separability_threshold(Output("relu"))
