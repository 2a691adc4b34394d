"""The system `diagonal-network`: the trained network is the LASSO, and the claims can fail."""

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.linear_model import Lasso

from solvable.arrays import random_stream
from solvable.frame.points import Point
from solvable.models.quadratic.diagonal import (
    RANKS,
    DiagonalParameters,
    coefficients,
    measure,
    predict,
    system,
    train,
)
from solvable.models.quadratic.diagonal_theory import lasso_penalty
from solvable.study import Study, run_study


@pytest.mark.parametrize("n", [20, 60, 300])
def test_network_trained_by_gradients_is_the_lasso(n):
    rng = np.random.default_rng(n)
    d, decay = 40, 0.8
    X = rng.standard_normal((n, d))
    y = X @ np.append([1.0, -0.5], np.zeros(d - 2)) + 0.5 * rng.standard_normal(n)
    learned = train(X, y, decay, rng)
    alpha = lasso_penalty(weight_decay=decay, dimension=d) / n
    lasso = Lasso(alpha=alpha, fit_intercept=False, tol=1e-12, max_iter=100_000).fit(X, y).coef_
    np.testing.assert_allclose(learned, lasso, atol=1e-4)
    assert np.count_nonzero(np.abs(learned) > 1e-4) == np.count_nonzero(np.abs(lasso) > 1e-4)


def test_many_samples_shrink_every_coefficient_by_the_penalty_over_n():
    # X^T X / n is the identity: b = lambda sqrt(d) / n up to df / n, and no noise.
    parameters = DiagonalParameters(
        dimension=16, samples=100_000, noise=1e-6, weight_decay=500.0, exponent=0.6
    )
    expected = 1 - 500 * np.sqrt(16) / (100_000 - 16) / coefficients(parameters)[RANKS - 1]
    np.testing.assert_allclose(system.predict(parameters)["captured"], expected, atol=1e-4)


def test_mean_of_the_soft_threshold_by_sampling():
    parameters = DiagonalParameters(dimension=50, samples=60)
    found = system.predict(parameters)
    z = norm.ppf((np.arange(200_000) + 0.5) / 200_000)
    for rank, captured in zip(RANKS, found["captured"], strict=True):
        theta = coefficients(parameters)[rank - 1]
        noisy = theta + found["effective_noise"] * z
        shrunk = np.sign(noisy) * np.maximum(np.abs(noisy) - found["threshold"], 0)
        assert captured == pytest.approx(shrunk.mean() / theta, abs=1e-4)


def test_claims_hold_and_fail_for_a_network_that_is_zero(tmp_path):
    study = Study(system, {"dimension": [60], "samples": [150, 600]}, replicates=60)
    result = run_study(study, tmp_path / "run", workers=1)
    assert {verdict.status for verdict in result.verdicts} == {"holds"}
    for row in system.power(result.points):
        assert (row.chance, row.fails_from_above is None) == ("fails", False), row
    assert [figure.name for figure in system.figures(result.points)] == [
        "error",
        "captured",
        "found",
    ]


def test_learned_coefficients_scatter_as_predicted():
    parameters = DiagonalParameters(dimension=60, samples=90, noise=0.8, weight_decay=0.6)
    predicted = predict(parameters)
    records = [measure(parameters, random_stream("scatter", r))["captured"] for r in range(80)]
    found = np.std(records, axis=0)
    # A standard deviation of 80 draws is good to 8 %; those of rare ones to less.
    np.testing.assert_allclose(found[:3], predicted["captured_scatter"][:3], rtol=0.35)


def test_features_that_no_replicate_found_do_not_fail_a_claim():
    """Far above the signal noise finds a feature in a few replicates of many, and then much of it."""
    parameters = DiagonalParameters(
        dimension=101, samples=80, exponent=0.629, noise=41.9, weight_decay=2.58
    )
    records = [measure(parameters, random_stream("rare", r)) for r in range(3)]
    point = Point(parameters.model_dump(), records, predict(parameters))
    verdicts = {verdict.claim: verdict.status for verdict in system.verdicts([point])}
    assert verdicts["captured"] == "not testable"


def test_where_nothing_is_found_their_number_is_no_claim():
    parameters = DiagonalParameters(dimension=70, samples=21, weight_decay=9.0, exponent=0.6)
    records = [measure(parameters, random_stream("none", r)) for r in range(3)]
    point = Point(parameters.model_dump(), records, predict(parameters))
    verdicts = {verdict.claim: verdict for verdict in system.verdicts([point])}
    assert point.mean("found") == 0
    assert verdicts["found"].status == "not testable"
    assert "lower weight_decay" in verdicts["found"].reason
