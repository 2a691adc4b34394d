"""The system `diagonal-network`: trained networks are the LASSO, and claims can fail."""

import numpy as np
import pytest
import studies
from scipy.optimize import minimize
from scipy.stats import norm
from sklearn.linear_model import Lasso

from solvable.arrays import random_stream
from solvable.errors import InvalidData, InvalidParameter, NotConverged
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
from solvable.models.quadratic.diagonal_phases import PHASE_CLAIMS
from solvable.models.quadratic.diagonal_theory import (
    lasso_penalty,
    solve_diagonal,
    threshold_risk,
)
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
    # X^T X / n is the identity: b = lambda sqrt(d) / n up to df / n, without noise.
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
    # test_diagonal_phases.py tests the claims on phases, which need more sample sizes.
    phases = {claim.name for claim in PHASE_CLAIMS}
    judged = {verdict.claim: verdict.status for verdict in result.verdicts}
    assert {status for name, status in judged.items() if name not in phases} == {"holds"}
    for row in system.power(result.points):
        if row.claim in phases:
            continue
        assert (row.chance, row.fails_from_above is None) == ("fails", False), row
    assert [figure.name for figure in studies.figures_of(system, result.points, 8, gaps=True)] == [
        "error",
        "captured",
        "found",
    ]


def test_learned_coefficients_scatter_as_predicted():
    parameters = DiagonalParameters(dimension=60, samples=90, noise=0.8, weight_decay=0.6)
    predicted = predict(parameters)
    records = [measure(parameters, random_stream("scatter", r))["captured"] for r in range(80)]
    found = np.std(records, axis=0)
    # A standard deviation over 80 draws is accurate to 8 %, and less for rare features.
    np.testing.assert_allclose(found[:3], predicted["captured_scatter"][:3], rtol=0.35)


def test_features_that_no_replicate_found_do_not_fail_a_claim():
    """At large noise few replicates learn a feature, and those learn much of the feature."""
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


@pytest.mark.parametrize("threshold", [0.0, 0.4, 2.0])
def test_risk_and_freedom_are_those_of_sampled_noise(threshold):
    target = np.array([0.0, 0.3, -2.0, 1.0])
    rng = np.random.default_rng(0)
    seen = target + 0.6 * rng.standard_normal((100_000, 4))
    shrunk = np.sign(seen) * np.maximum(np.abs(seen) - threshold, 0)
    losses = np.sum((shrunk - target) ** 2, axis=1)
    counts = np.sum(np.abs(seen) > threshold, axis=1)
    found = threshold_risk(target, effective_noise=0.6, threshold=threshold)
    for values, value in zip((losses, counts), found, strict=True):
        error = values.std(ddof=1) / np.sqrt(values.size)
        assert abs(values.mean() - value) < 4 * error + 1e-12


@pytest.mark.parametrize(("n", "penalty"), [(200, 8.0), (200, 20.0), (1000, 10.0), (4000, 10.0)])
def test_scikit_learn_agrees_within_standard_errors(n, penalty):
    gaps = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        coefficients = rng.standard_normal(400) / np.arange(1, 401)
        X = rng.standard_normal((n, 400))
        y = X @ coefficients + np.sqrt(0.5) * rng.standard_normal(n)
        model = Lasso(alpha=penalty / n, fit_intercept=False, tol=1e-5, max_iter=5000).fit(X, y)
        theory = solve_diagonal(coefficients, n_samples=n, label_noise=0.5, penalty=penalty)
        gaps.append(
            [
                np.sum((model.coef_ - coefficients) ** 2) / theory.error - 1,
                np.mean((y - X @ model.coef_) ** 2) / theory.train_error - 1,
                np.count_nonzero(model.coef_) / theory.degrees_of_freedom - 1,
            ]
        )
    mean, error = np.mean(gaps, axis=0), np.std(gaps, axis=0, ddof=1) / 2
    # Four standard errors of four draws: a t distribution exceeds them with probability 2.8 %.
    assert np.all(np.abs(mean) < 4 * error + 0.01)


@pytest.mark.parametrize("penalty", [1e-3, 1.0, 30.0])
@pytest.mark.parametrize("n", [100, 300])
def test_solution_satisfies_its_equations(n, penalty):
    target = np.arange(1.0, 201) ** -0.8
    state = solve_diagonal(target, n_samples=n, label_noise=0.3, penalty=penalty)
    risk, freedom = threshold_risk(
        target, effective_noise=state.effective_noise, threshold=state.threshold
    )
    assert n * state.effective_noise**2 == pytest.approx(0.3 + risk, rel=1e-9)
    assert state.threshold * (n - freedom) == pytest.approx(penalty, rel=1e-6)
    # Generalised cross-validation, the test error from the training error (quadratic 33).
    assert state.test_error == pytest.approx(state.train_error / (1 - freedom / n) ** 2)


def test_limits():
    target = 1 / np.arange(1.0, 101)
    plain = solve_diagonal(target, n_samples=400, label_noise=0.5, penalty=0.0)
    assert plain.error == pytest.approx(100 * 0.5 / (400 - 100), rel=1e-9)
    nothing = solve_diagonal(target, n_samples=400, label_noise=0.5, penalty=1e5)
    assert nothing.error == pytest.approx(target @ target, rel=1e-9)
    interpolator = solve_diagonal(target, n_samples=50, label_noise=0.5, penalty=0.0)
    assert interpolator.degrees_of_freedom == pytest.approx(50, rel=1e-9)
    almost = solve_diagonal(target, n_samples=50, label_noise=0.5, penalty=1e-6)
    assert interpolator.error == pytest.approx(almost.error, rel=1e-5)


def test_penalty_is_that_of_the_network_itself():
    rng = np.random.default_rng(2)
    dimension, n, decay = 4, 30, 1.5
    X = rng.standard_normal((n, dimension))
    y = X @ np.array([1.0, -0.5, 0.0, 0.2]) + 0.1 * rng.standard_normal(n)

    def loss(flat):
        first, second = flat.reshape(2, dimension)
        residual = y - X @ (first * second) / np.sqrt(dimension)
        slope = -2 * X.T @ residual / np.sqrt(dimension)
        gradient = np.concatenate(
            [slope * second + 2 * decay * first, slope * first + 2 * decay * second]
        )
        return residual @ residual + decay * flat @ flat, gradient

    start = rng.standard_normal(2 * dimension)
    found = minimize(loss, start, jac=True, method="BFGS", options={"gtol": 1e-9})
    first, second = found.x.reshape(2, dimension)
    penalty = lasso_penalty(weight_decay=decay, dimension=dimension)
    model = Lasso(alpha=penalty / n, fit_intercept=False, tol=1e-12).fit(X, y)
    np.testing.assert_allclose(first * second / np.sqrt(dimension), model.coef_, atol=1e-5)


def test_parameters_out_of_range_are_refused():
    target = np.ones(5)
    with pytest.raises(NotConverged, match="error is infinite"):
        solve_diagonal(target, n_samples=5, label_noise=0.5, penalty=0.0)
    with pytest.raises(InvalidParameter, match="penalty is -1"):
        solve_diagonal(target, n_samples=5, label_noise=0.5, penalty=-1.0)
    with pytest.raises(InvalidParameter, match="label_noise is 0"):
        solve_diagonal(target, n_samples=5, label_noise=0.0, penalty=1.0)
    with pytest.raises(InvalidParameter, match="label_noise is nan"):
        solve_diagonal(target, n_samples=5, label_noise=np.nan, penalty=1.0)
    with pytest.raises(InvalidData, match="vector of finite numbers"):
        solve_diagonal(np.ones((3, 2)), n_samples=5, label_noise=0.5, penalty=1.0)


def test_overfitting_without_coefficients_falls_only_as_a_logarithm():
    # Phase V of arXiv:2509.24882 for diagonal networks: -1 / log(n / d).
    ratios = []
    for n in (100, 10):
        found = solve_diagonal(np.zeros(10_000), n_samples=n, label_noise=0.5, penalty=0.0)
        shrinkage = norm.isf(n / 10_000 / 2)
        kept = 2 * ((1 + shrinkage**2) * norm.sf(shrinkage) - shrinkage * norm.pdf(shrinkage))
        expected = 0.5 * 10_000 * kept / (n - 10_000 * kept)
        assert found.error == pytest.approx(expected, rel=1e-8)
        ratios.append(found.error * np.log(10_000 / n) / 0.5)
    # The next order, log log / log, decays slowly.
    assert abs(ratios[1] - 1) < abs(ratios[0] - 1) < 0.3
