"""Predictions for empirical risks agree with fits of scikit-learn on drawn data.

Signals have fixed norm and support size, so that the drawn law is the predicted one. Each number is a
mean over data sets, compared within four standard errors of that mean.
"""

import warnings

import numpy as np
import pytest

from solvable.inference import (
    GaussBernoulli,
    Gaussian,
    GaussianMixture,
    InputCovariance,
    Loss,
    Output,
    Penalty,
    RandomFeatures,
    empirical_risk,
)

SIGN = Output("sign", flips=0.1)


def signal(d, density, rng):
    """Draw a signal with a fixed number of entries and mean square `density`."""
    w = np.zeros(d)
    count = round(density * d)
    w[:count] = rng.standard_normal(count)
    return w * np.sqrt(density * d / (w @ w))


def fitted(loss, penalty, X, y):
    """Minimise the empirical risk with scikit-learn, or with L-BFGS for the Huber loss."""
    from sklearn import linear_model, svm

    n, options = len(y), {"fit_intercept": False}
    match loss.name, penalty.name:
        case "square", "l2":
            model = linear_model.Ridge(penalty.l2, **options)
        case "square", _:
            total = penalty.l1 + penalty.l2
            model = linear_model.ElasticNet(
                total / n, l1_ratio=penalty.l1 / total, tol=1e-8, max_iter=100_000, **options
            )
        case "logistic", "l2":
            model = linear_model.LogisticRegression(
                C=1 / penalty.l2, tol=1e-8, max_iter=2_000, **options
            )
        case "hinge", "l2":
            model = svm.LinearSVC(
                C=1 / penalty.l2,
                loss="hinge",
                tol=1e-5,
                max_iter=100_000,
                random_state=0,
                **options,
            )
        case "huber", "l2":
            from scipy.optimize import minimize

            def cost(w):
                r = y - X @ w
                clipped = np.clip(r, -loss.width, loss.width)
                value = loss.values(y, X @ w).sum() + penalty.l2 * (w @ w) / 2
                return value, -X.T @ clipped + penalty.l2 * w

            return minimize(cost, np.zeros(X.shape[1]), jac=True, method="L-BFGS-B", tol=1e-12).x
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # penalties are written in other ways in later versions
        return model.fit(X, y).coef_.ravel()


def measured(loss, penalty, output, density, ratio, d, sets, scales=None):
    """Error, overlap, norm and training loss of each data set."""
    rows = []
    for seed in range(sets):
        rng = np.random.default_rng((seed, 7))
        n, s = round(ratio * d), np.ones(d) if scales is None else np.resize(np.sqrt(scales), d)
        w = signal(d, density, rng)
        if scales is not None:  # fixed norm in each group of directions
            for scale in np.unique(s):
                w[s == scale] *= np.sqrt(density * (s == scale).sum() / (w[s == scale] ** 2).sum())
        X = s * rng.standard_normal((n, d)) / np.sqrt(d)
        y = output.draw(X @ w, rng)
        v = fitted(loss, penalty, X, y)
        m, q, rho = ((a * b * s**2).sum() / d for a, b in ((w, v), (v, v), (w, w)))
        cosine = m / np.sqrt(q * rho)
        error = np.arccos(cosine) / np.pi if output.label_values is not None else rho - 2 * m + q
        rows.append([error, cosine**2, v @ v / d, loss.values(y, X @ v).mean()])
    return np.array(rows)


def agree(rows, predicted, sigmas=4.0):
    mean, error = rows.mean(axis=0), rows.std(axis=0, ddof=1) / np.sqrt(len(rows))
    assert (error < 0.1 * np.abs(predicted)).all(), "the data do not test this"
    np.testing.assert_array_less(np.abs(mean - predicted), sigmas * error)


def predicted(risk):
    return np.array([risk.error, risk.overlap, risk.norm, risk.training_loss])


CASES = {
    "logistic": (Loss("logistic"), Penalty("l2", 0.2), SIGN, 1.0, 3.0),
    "hinge": (Loss("hinge"), Penalty("l2", 1.0), SIGN, 1.0, 2.0),
    "square on signs": (Loss("square"), Penalty("l2", 0.5), Output("sign"), 1.0, 2.0),
    "ridge on relu": (Loss("square"), Penalty("l2", 0.2), Output("relu"), 1.0, 3.0),
    "huber": (Loss("huber", 0.5), Penalty("l2", 0.3), Output("linear", noise=0.5), 1.0, 2.0),
    "lasso": (Loss("square"), Penalty("l1", 0.1), Output("linear", noise=0.05), 0.2, 0.7),
    "elastic net": (
        Loss("square"), Penalty("elastic net", 0.2, 0.1), Output("linear", noise=0.1), 0.3, 1.0,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_fits_of_independent_inputs(case):
    loss, penalty, output, density, ratio = CASES[case]
    prior = Gaussian() if density == 1 else GaussBernoulli(density)
    risk = empirical_risk(loss, penalty, output, prior, ratio)
    agree(measured(loss, penalty, output, density, ratio, 200, 16), predicted(risk))


@pytest.mark.parametrize("name", ["square", "logistic"])
def test_fits_of_inputs_with_a_covariance(name):
    # without flips, so that the signal can be seen
    loss, penalty, output = Loss(name), Penalty("l2", 0.3), Output("sign")
    inputs = InputCovariance([3.0, 0.5, 0.1])
    rows = measured(loss, penalty, output, 1.0, 2.0, 240, 16, scales=inputs.variances)
    agree(rows, predicted(empirical_risk(loss, penalty, output, sample_ratio=2.0, inputs=inputs)))


@pytest.mark.parametrize(
    ("name", "variance", "share"),
    [("square", 1.0, 0.5), ("logistic", 1.0, 0.5), ("hinge", 0.5, 0.5), ("logistic", 1.0, 0.8)],
)
def test_fits_of_two_gaussian_classes(name, variance, share):
    from sklearn.linear_model import LogisticRegression

    mixture = GaussianMixture(variance, share)
    loss, penalty, d, ratio = Loss(name), Penalty("l2", 0.5), 200, 2.0
    rows: list = []
    intercepts: list = []
    for seed in range(16):
        rng = np.random.default_rng((seed, 8))
        v, y = signal(d, 1.0, rng), rng.choice([1.0, -1.0], round(ratio * d), p=[share, 1 - share])
        X = y[:, None] * v / d + np.sqrt(variance / d) * rng.standard_normal((y.size, d))
        b = 0.0
        if share == 0.5:
            w = fitted(loss, penalty, X, y)
        else:
            model = LogisticRegression(C=1 / 0.5, tol=1e-8, max_iter=2_000).fit(X, y)
            w, b = model.coef_[0], float(model.intercept_[0])
            intercepts.append(b)
        m, q = v @ w / d, w @ w / d
        error = mixture.error(m, np.sqrt(variance * q), b)
        rows.append([error, m**2 / q, q, loss.values(y, X @ w + b).mean()])
    risk = empirical_risk(loss, penalty, mixture, sample_ratio=ratio, intercept=share != 0.5)
    if intercepts:
        error = np.std(intercepts) / np.sqrt(len(intercepts))
        assert np.mean(intercepts) == pytest.approx(float(risk.intercept), abs=4 * error)
    agree(np.array(rows), predicted(risk))


@pytest.mark.parametrize(
    ("activation", "ratio", "strength"),
    [("tanh", 0.5, 1e-3), ("relu", 3.0, 0.1), ("erf", 6.0, 1e-3)],
)
def test_ridge_regression_on_random_features(activation, ratio, strength):
    from scipy.special import erf

    sigma = {"tanh": np.tanh, "relu": lambda u: np.maximum(u, 0), "erf": erf}[activation]
    loss, penalty, d, alpha = Loss("square"), Penalty("l2", strength), 100, 3.0
    output, p = Output("linear", noise=0.1), round(ratio * 100)
    rows = []
    for seed in range(10):
        rng = np.random.default_rng((seed, 9))
        w, F = signal(d, 1.0, rng), rng.standard_normal((p, d))
        F *= np.sqrt(d) / np.linalg.norm(F, axis=1, keepdims=True)
        x = rng.standard_normal((round(alpha * d) + 1_500, d)) / np.sqrt(d)
        features = sigma(x @ F.T)
        features = (features - features.mean(axis=0)) / np.sqrt(p)
        train = slice(0, round(alpha * d))
        y = output.draw(x[train] @ w, rng)
        a = fitted(loss, penalty, features[train], y)
        clean, guess = (part[train.stop :] for part in (x @ w, features @ a))
        overlap = np.corrcoef(clean, guess)[0, 1] ** 2
        training = loss.values(y, features[train] @ a).mean()
        rows.append([np.mean((clean - guess) ** 2), overlap, a @ a / p, training])
    inputs = RandomFeatures(activation, ratio)
    risk = empirical_risk(loss, penalty, output, sample_ratio=alpha, inputs=inputs)
    agree(np.array(rows), predicted(risk))
