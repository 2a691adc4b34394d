"""Estimated against true test error of quadratic networks on digits, and the chosen penalty."""

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

from solvable.models.quadratic.network.learner import PATH_RATIOS, QuadraticNetRegressor

SPLITS = 12


def split(n, seed):
    """Parity of digits from 20 principal components of the training images."""
    X, y = load_digits(return_X_y=True)
    rows = np.random.default_rng(seed).permutation(len(X))
    components = PCA(20, random_state=0).fit(X[rows[:n]])
    features, labels = components.transform(X[rows]), 2.0 * (y[rows] % 2) - 1
    return features[:n], labels[:n], features[n:], labels[n:]


@pytest.mark.parametrize(
    "n",
    [
        500,
        pytest.param(700, marks=pytest.mark.slow),
        1000,
        pytest.param(1400, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize(
    "penalty", [1.0, *(pytest.param(value, marks=pytest.mark.slow) for value in (0.3, 3.0))]
)
def test_predicted_error_is_the_real_one(n, penalty):
    ratios = []
    for seed in range(SPLITS):
        X, y, X_test, y_test = split(n, seed)
        model = QuadraticNetRegressor(penalty, whiten=True, tolerance=1e-4).fit(X, y)
        assert model.solver_ == "amp"
        ratios.append(model.gcv_score_ / np.mean((model.predict(X_test) - y_test) ** 2))
    # Standard errors are 1 to 3 %. Training sets of two splits overlap and are not independent, so
    # that the tolerance is 10 %.
    standard_error = np.std(ratios, ddof=1) / np.sqrt(SPLITS)
    assert standard_error < 0.04
    assert abs(np.mean(ratios) - 1) + standard_error < 0.1


@pytest.mark.slow
def test_chosen_regularisation_is_near_the_best_of_the_path():
    excess = []
    for seed in range(4):
        X, y, X_test, y_test = split(500, seed)
        chosen = QuadraticNetRegressor("gcv", whiten=True, tolerance=1e-4).fit(X, y)
        errors = []
        for ratio in PATH_RATIOS[:8]:
            model = QuadraticNetRegressor(
                ratio * empty_from(X, y), whiten=True, tolerance=1e-4
            ).fit(X, y)
            errors.append(np.mean((model.predict(X_test) - y_test) ** 2))
        mine = np.mean((chosen.predict(X_test) - y_test) ** 2)
        excess.append(mine / min(errors) - 1)
    # The best penalty is chosen with the test labels; a choice without them may cost 5 % of the
    # error.
    assert np.mean(excess) < 0.05
    assert np.min(excess) >= -1e-3


def empty_from(X, y):
    """Smallest regularisation at which nothing is learned."""
    centred = X - X.mean(axis=0)
    white = centred @ np.linalg.inv(np.linalg.cholesky(centred.T @ centred / len(X))).T
    moment = (white * (y - y.mean())[:, None]).T @ white
    return 2 / X.shape[1] ** 1.5 * np.linalg.eigvalsh(moment)[-1]
