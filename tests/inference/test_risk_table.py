"""Empirical risks, mixtures and random features agree with a second, independent implementation.

Its numbers were compared with fits of scikit-learn at d = 400, and are given to five digits. The training
losses of the hinge are adaptive integrals of 1 - u - V over u < 1 - V at the same overlaps.
"""

import numpy as np
import pytest

from solvable.inference import (
    GaussBernoulli,
    Gaussian,
    GaussianMixture,
    Loss,
    Output,
    Penalty,
    RandomFeatures,
    empirical_risk,
    state_evolution,
)

SIGN, FLIPS = Output("sign"), Output("sign", flips=0.1)
SQUARE, LOGISTIC, HINGE = Loss("square"), Loss("logistic"), Loss("hinge")


def ridge(strength):
    return Penalty("l2", strength)


def linear(noise):
    return Output("linear", noise=noise)


ROWS = [
    # loss, penalty, output, density, ratio; error, overlap, norm, training loss
    (LOGISTIC, ridge(0.5), SIGN, 1, 2, 0.19592, 0.66664, 0.87283, 0.35419),
    (LOGISTIC, ridge(0.2), FLIPS, 1, 3, 0.21248, 0.61680, 2.35828, 0.34529),
    (LOGISTIC, ridge(0.01), FLIPS, 1, 5, 0.17975, 0.71361, 10.993, 0.31949),
    (HINGE, ridge(0.5), SIGN, 1, 2, 0.19238, 0.67709, 1.28163, 0.15453),
    (HINGE, ridge(1), FLIPS, 1, 3, 0.21227, 0.61743, 0.85638, 0.37714),
    (SQUARE, ridge(0.5), SIGN, 1, 2, 0.18612, 0.69534, 0.47360, 0.11439),
    (SQUARE, ridge(0.5), linear(0.5), 1, 1.5, 0.366025, 0.63397, 0.63397, 0.14434),
    (SQUARE, ridge(0.2), Output("relu"), 1, 3, 0.39243, 0.68262, 0.30499, 0.08441),
    (Loss("huber", 0.5), ridge(0.3), linear(0.5), 1, 2, 0.30525, 0.69513, 0.72821, None),
    (SQUARE, Penalty("l1", 0.1), linear(0.05), 0.2, 0.7, 0.05791, 0.71111, 0.15112, 0.00820),
    (SQUARE, Penalty("l1", 0.3), linear(0.2), 0.2, 1.5, 0.07684, 0.64318, 0.18719, 0.05767),
    (SQUARE, Penalty("l1", 0.02), linear(0.01), 0.1, 0.5, 0.01553, 0.84472, 0.08328, 0.00047),
    (SQUARE, Penalty("elastic net", 0.2, 0.1), linear(0.1), 0.3, 1, 0.09101, 0.70389, 0.17045, 0.03026),
]  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0].name} {row[1].name} {row[4]}")
def test_risks_of_independent_inputs(row):
    loss, penalty, output, density, ratio, *numbers = row
    prior = Gaussian() if density == 1 else GaussBernoulli(density)
    risk = empirical_risk(loss, penalty, output, prior, ratio)
    found = [risk.error, risk.overlap, risk.norm, risk.training_loss][: 4 - (numbers[3] is None)]
    np.testing.assert_allclose(found, numbers[: len(found)], atol=1.01e-5, rtol=5e-5)
    assert risk.replicon < 1


def test_the_best_penalties_stand_above_the_bayes_error():
    def error(loss, strength):
        return float(empirical_risk(loss, ridge(strength), FLIPS, Gaussian(), 3.0).error)

    for loss, best, least in ((LOGISTIC, 0.3217, 0.211724), (SQUARE, 1.4544, 0.211217)):
        near = [error(loss, factor * best) for factor in (0.8, 1.0, 1.25)]
        assert near[1] == pytest.approx(least, abs=2e-6)
        assert near[1] < min(near[0], near[2])
    law = state_evolution(Gaussian(), FLIPS, sample_ratio=[3.0])
    assert np.arccos(np.sqrt(law.overlap[0])) / np.pi == pytest.approx(0.200685, abs=2e-5)


def test_the_best_lasso_stands_above_the_bayes_error():
    prior, output = GaussBernoulli(0.2), linear(0.05)
    lasso = empirical_risk(SQUARE, Penalty("l1", 0.18714), output, prior, 1.0)
    bayes = state_evolution(prior, output, sample_ratio=[1.0]).error[0]
    assert [lasso.error, bayes] == pytest.approx([0.033691, 0.027553], abs=2e-6)


@pytest.mark.parametrize(
    ("loss", "ratio", "strength", "variance", "error"),
    [
        (SQUARE, 2, 0.1, 1.0, 0.26688),
        (LOGISTIC, 2, 0.5, 1.0, 0.21560),
        (HINGE, 3, 0.5, 0.5, 0.11478),
        (SQUARE, 2, 100, 1.0, 0.20713),
        (LOGISTIC, 2, 0.05, 0.5, 0.122949),
        (LOGISTIC, 4, 0.5, 0.5, 0.095204),
    ],
)
def test_errors_of_two_gaussian_classes(loss, ratio, strength, variance, error):
    mixture = GaussianMixture(variance)
    risk = empirical_risk(loss, ridge(strength), mixture, sample_ratio=ratio)
    assert risk.error == pytest.approx(error, abs=1e-5)
    assert risk.error > mixture.bayes_error(ratio)


@pytest.mark.parametrize(
    ("ratio", "strength", "erf", "relu"),
    [
        (0.5, 1e-3, 0.80504, 0.92969),
        (1.5, 1e-3, 0.45187, 0.81007),
        (2.7, 1e-3, 0.65898, 1.46744),
        (3, 1e-3, 0.66426, 1.54985),
        (6, 1e-3, 0.27399, 0.39370),
        (3, 0.1, 0.23313, 0.40005),
    ],
)
def test_ridge_regression_on_random_features(ratio, strength, erf, relu):
    found = [
        empirical_risk(
            SQUARE, ridge(strength), linear(0.1), sample_ratio=3.0, inputs=RandomFeatures(name, ratio)
        ).label_error
        for name in ("erf", "relu")
    ]  # fmt: skip
    np.testing.assert_allclose(found, [erf, relu], atol=2e-5)
