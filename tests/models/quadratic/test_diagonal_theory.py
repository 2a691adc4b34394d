import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import norm
from sklearn.linear_model import Lasso

from solvable.errors import InvalidData, InvalidParameter, NotConverged
from solvable.models.quadratic.diagonal_theory import (
    DiagonalTarget,
    lasso_penalty,
    solve_diagonal,
    threshold_risk,
)


@pytest.mark.parametrize("threshold", [0.0, 0.4, 2.0])
def test_risk_and_freedom_are_those_of_sampled_noise(threshold):
    target = DiagonalTarget(np.array([0.0, 0.3, -2.0, 1.0]), np.array([0.5, 0.0, 0.1, 0.0]))
    rng = np.random.default_rng(0)
    draws = target.means + target.spreads * rng.standard_normal((100_000, 4))
    seen = draws + 0.6 * rng.standard_normal(draws.shape)
    shrunk = np.sign(seen) * np.maximum(np.abs(seen) - threshold, 0)
    losses = np.sum((shrunk - draws) ** 2, axis=1)
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
        theory = solve_diagonal(
            DiagonalTarget.fixed(coefficients), n_samples=n, label_noise=0.5, penalty=penalty
        )
        gaps.append(
            [
                np.sum((model.coef_ - coefficients) ** 2) / theory.error - 1,
                np.mean((y - X @ model.coef_) ** 2) / theory.train_error - 1,
                np.count_nonzero(model.coef_) / theory.degrees_of_freedom - 1,
            ]
        )
    mean, error = np.mean(gaps, axis=0), np.std(gaps, axis=0, ddof=1) / 2
    # Four draws: 4 standard errors of a t with three degrees of freedom are 2.8 % of chance.
    assert np.all(np.abs(mean) < 4 * error + 0.01)


@pytest.mark.parametrize(
    ("n", "penalty", "expected"),
    [(200, 8.0, 0.2416), (200, 20.0, 0.1917), (1000, 10.0, 0.1162), (4000, 10.0, 0.0404)],
)
def test_gaussian_coefficients_are_the_mean_over_instances(n, penalty, expected):
    averaged = solve_diagonal(
        DiagonalTarget.power_law(dimension=400, exponent=1.0),
        n_samples=n,
        label_noise=0.5,
        penalty=penalty,
    )
    assert averaged.error == pytest.approx(expected, abs=1e-4)
    errors = [
        solve_diagonal(
            DiagonalTarget.fixed(
                np.random.default_rng(seed).standard_normal(400) / np.arange(1, 401)
            ),
            n_samples=n,
            label_noise=0.5,
            penalty=penalty,
        ).error
        for seed in range(12)
    ]
    # Their scatter is up to 13 %: note 04's .226, .170 and .0404 are means over four of them.
    assert abs(np.mean(errors) - averaged.error) < 4 * np.std(errors, ddof=1) / np.sqrt(12)


@pytest.mark.parametrize("penalty", [1e-3, 1.0, 30.0])
@pytest.mark.parametrize("n", [100, 300])
def test_solution_satisfies_its_equations(n, penalty):
    target = DiagonalTarget.power_law(dimension=200, exponent=0.8)
    state = solve_diagonal(target, n_samples=n, label_noise=0.3, penalty=penalty)
    risk, freedom = threshold_risk(
        target, effective_noise=state.effective_noise, threshold=state.threshold
    )
    assert n * state.effective_noise**2 == pytest.approx(0.3 + risk, rel=1e-9)
    assert state.threshold * (n - freedom) == pytest.approx(penalty, rel=1e-6)
    # Generalised cross-validation: the test error from the train error alone.
    assert state.test_error == pytest.approx(state.train_error / (1 - freedom / n) ** 2)


def test_limits():
    target = DiagonalTarget.power_law(dimension=100, exponent=1.0)
    plain = solve_diagonal(target, n_samples=400, label_noise=0.5, penalty=0.0)
    assert plain.error == pytest.approx(100 * 0.5 / (400 - 100), rel=1e-9)
    nothing = solve_diagonal(target, n_samples=400, label_noise=0.5, penalty=1e5)
    assert nothing.error == pytest.approx(target.energy, rel=1e-9)
    interpolator = solve_diagonal(target, n_samples=50, label_noise=0.5, penalty=0.0)
    assert interpolator.degrees_of_freedom == pytest.approx(50, rel=1e-9)
    almost = solve_diagonal(target, n_samples=50, label_noise=0.5, penalty=1e-6)
    assert interpolator.error == pytest.approx(almost.error, rel=1e-5)


def test_sparse_coefficients_are_recovered_without_noise():
    coefficients = np.zeros(200)
    coefficients[:10] = 1.0
    target = DiagonalTarget.fixed(coefficients)
    # Without noise everything is in proportion to the penalty, as long as all ten are found.
    small, large = (
        solve_diagonal(target, n_samples=80, label_noise=0.0, penalty=penalty)
        for penalty in (1e-3, 1.0)
    )
    assert large.error / small.error == pytest.approx(1e6, rel=1e-6)
    rng = np.random.default_rng(5)
    errors = []
    for _ in range(20):
        X = rng.standard_normal((80, 200))
        model = Lasso(alpha=1 / 80, fit_intercept=False, tol=1e-7, max_iter=20_000)
        errors.append(np.sum((model.fit(X, X @ coefficients).coef_ - coefficients) ** 2))
    # 1 / d corrections of some 10 % at ten coefficients, beside four standard errors.
    error = np.std(errors, ddof=1) / np.sqrt(20)
    assert abs(np.mean(errors) - large.error) < 4 * error + 0.1 * large.error
    with pytest.raises(InvalidParameter, match="recovered"):
        solve_diagonal(target, n_samples=80, label_noise=0.0, penalty=0.0)


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
    target = DiagonalTarget.fixed(np.ones(5))
    with pytest.raises(NotConverged, match="no finite limit"):
        solve_diagonal(target, n_samples=5, label_noise=0.5, penalty=0.0)
    with pytest.raises(InvalidParameter, match="penalty is -1"):
        solve_diagonal(target, n_samples=5, label_noise=0.5, penalty=-1.0)
    with pytest.raises(InvalidParameter, match="label_noise is nan"):
        solve_diagonal(target, n_samples=5, label_noise=np.nan, penalty=1.0)
    with pytest.raises(InvalidData, match="same size"):
        DiagonalTarget(np.ones(3), np.ones(2))
    with pytest.raises(InvalidData, match="at least 0"):
        DiagonalTarget(np.ones(2), -np.ones(2))


def test_overfitting_without_coefficients_falls_only_as_a_logarithm():
    # Phase V of arXiv:2509.24882 for diagonal networks: -1 / log(n / d).
    ratios = []
    for n in (100, 10):
        found = solve_diagonal(
            DiagonalTarget.fixed(np.zeros(10_000)), n_samples=n, label_noise=0.5, penalty=0.0
        )
        shrinkage = norm.isf(n / 10_000 / 2)
        kept = 2 * ((1 + shrinkage**2) * norm.sf(shrinkage) - shrinkage * norm.pdf(shrinkage))
        expected = 0.5 * 10_000 * kept / (n - 10_000 * kept)
        assert found.error == pytest.approx(expected, rel=1e-8)
        ratios.append(found.error * np.log(10_000 / n) / 0.5)
    # Slow: the next order is log log over log.
    assert abs(ratios[1] - 1) < abs(ratios[0] - 1) < 0.3
