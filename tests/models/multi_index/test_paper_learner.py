"""Simulations of the two-stage learner: exponents of the error, risk, and the second pass."""

from __future__ import annotations

import numpy as np
import pytest

from solvable.learners import MultiIndexRegressor
from solvable.models.multi_index.hierarchical.measure import measure
from solvable.models.multi_index.hierarchical.parameters import HierarchicalParameters
from solvable.models.multi_index.hierarchical.predict import predict
from solvable.models.multi_index.overlaps import predict_spectral
from solvable.models.multi_index.readout import fit_readout
from solvable.models.multi_index.target import MultiIndexTarget, power_law_channel
from solvable.operators import apply_label_map


def replicates(count, **settings):
    parameters = HierarchicalParameters(**settings)
    return [measure(parameters, np.random.default_rng(seed)) for seed in range(count)]


def mean(rows, key):
    return np.mean([row[key] for row in rows], axis=0)


RATIOS = np.array([32, 64, 128, 256, 512, 1024])


def slope(ratios, errors):
    return float(np.polyfit(np.log(ratios), np.log(errors), 1)[0])


def error_of_each(target, ratio, seed):
    """Sum of a_k² (1 - <u_k, w_k>²), with the k-th eigenvector u_k and the k-th direction w_k."""
    X, y = target.sample(int(ratio) * target.dimension, seed)
    a = np.array(target.channel.amplitudes)
    learner = MultiIndexRegressor(
        a.size, linear=False, readout="none", whiten="none", n_permutations=1, random_state=0
    ).fit(X, y)
    return float(a**2 @ (1 - np.sum(learner.components_ * target.directions.T, axis=1) ** 2))


@pytest.mark.slow
@pytest.mark.parametrize(("decay", "expected"), [(0.75, -0.333), (1.0, -0.5), (1.5, -0.667)])
def test_simulated_scaling(decay, expected):
    # Exponent -(1 - 1/(2 gamma))   (multi-index 23; arXiv:2602.05846, Theorem 3.2)
    channel = power_law_channel("he2", features=100, decay=decay, noise=0.5)
    errors = [
        np.mean([error_of_each(MultiIndexTarget(200, channel, s), ratio, s) for s in (0, 1)])
        for ratio in RATIOS
    ]
    assert slope(RATIOS, errors) == pytest.approx(expected, abs=0.06)


def test_a_second_exponent_needs_the_square():
    # T = y has s_k = 0 for a link of exponent 2   (multi-index 22)
    settings = {"dimension": 100, "features": 4, "decay": 0.5, "link": "cosmix", "noise": 0.1}
    settings |= {"sample_ratio": 512, "readout": "none"}
    plain = mean(replicates(6, label_map="identity", **settings), "squared_overlap")
    square = mean(replicates(3, label_map="square", **settings), "squared_overlap")
    assert (plain < 0.3).all()
    assert (square > 0.75).all()
    np.testing.assert_allclose(square, [0.977, 0.944, 0.905, 0.830], atol=0.05)


def test_training_samples_have_stretched_coordinates():
    # <u, x_i> = lambda* / (lambda* - T_i) <u_-i, x_i>, u_-i without sample i   (multi-index 25)
    d, n = 300, 3_000
    target = MultiIndexTarget(d, power_law_channel("he2", features=1, decay=1.0, noise=0.5))
    X, y = target.sample(n, 3)
    T = apply_label_map(y, "tanh")
    D = (X * T[:, None]).T @ X / n
    found = predict_spectral(target.channel.moments, sample_ratio=n / d, dimension=d)
    parameter = found.parameters[0]
    u = np.linalg.eigh(D)[1][:, -1]
    strongest = np.argsort(-np.abs(T))[:: n // 25]
    stretched, fresh = [], []
    for i in strongest:
        without = np.linalg.eigh(D - T[i] * np.outer(X[i], X[i]) / n)[1][:, -1]
        stretched.append(u @ X[i] * np.sign(u @ without))
        fresh.append(without @ X[i])
    factor = parameter / (parameter - T[strongest])
    predicted = factor * np.array(fresh)
    assert np.ptp(factor) > 0.3
    assert np.linalg.norm(stretched - predicted) < 0.05 * np.linalg.norm(predicted)


@pytest.mark.slow
def test_risk_of_monomials():
    # Excess risk R   (multi-index 26); above the last threshold it falls as 1/n.
    ratios = np.array([32, 64, 128, 256, 512])
    settings = {"dimension": 200, "features": 8, "decay": 1.0, "noise": 0.5, "link": "he2"}
    risks = [mean(replicates(3, sample_ratio=ratio, **settings), "risk") for ratio in ratios]
    np.testing.assert_allclose(risks, [0.440, 0.247, 0.130, 0.0667, 0.0333], rtol=0.12)
    assert slope(ratios[2:], risks[2:]) == pytest.approx(-0.98, abs=0.1)


@pytest.mark.slow
def test_risk_of_neurons_has_a_floor():
    # Excess risk R of random neurons, which approximate the link   (multi-index 26)
    settings = {"dimension": 200, "features": 8, "readout": "relu"}
    risks = [mean(replicates(2, sample_ratio=r, **settings), "risk") for r in (32, 128, 512)]
    np.testing.assert_allclose(risks, [0.490, 0.163, 0.068], rtol=0.2)


def best_readout_risk(parameters, seed):
    """Risk of monomials fitted on many fresh samples, so that only errors of the directions remain."""
    target = MultiIndexTarget(parameters.dimension, parameters.channel, seed)
    X, y = target.sample(parameters.samples, seed)
    learner = MultiIndexRegressor(
        parameters.features, linear=False, readout="none", whiten="none", random_state=0
    ).fit(X, y)
    Z, fresh = target.sample(40_000, seed + 1)
    readout = fit_readout(
        [(learner.transform(Z), fresh)],
        parameters.features,
        "monomials",
        n_neurons=1,
        regularisation=1e-6,
        rng=np.random.default_rng(0),
    )
    test, _ = target.sample(4_000, seed + 2)
    return float(np.mean((readout(learner.transform(test)) - target.clean(test)) ** 2))


@pytest.mark.slow
def test_directions_cost_most_of_the_risk():
    # Risk of the best readout on the estimated directions   (multi-index 26)
    for ratio, expected in ((32, 0.377), (128, 0.123)):
        parameters = HierarchicalParameters(dimension=200, features=8, sample_ratio=ratio)
        risks = [best_readout_risk(parameters, seed) for seed in range(3)]
        assert np.mean(risks) == pytest.approx(expected, rel=0.15)


@pytest.mark.parametrize(
    ("noise", "ratio", "feature"), [(0.1, 32, 6), (0.1, 64, 9), (0.5, 32, 6)], ids=str
)
def test_residuals_show_what_strong_features_hide(noise, ratio, feature):
    # A second pass on the residuals   (multi-index 27) raises the overlap of weak features.
    settings = {"dimension": 200, "features": 16, "noise": noise, "sample_ratio": ratio}
    once, twice = (
        mean(replicates(4, deflation=deflation, **settings), "squared_overlap")
        for deflation in (0, 1)
    )
    assert (twice >= once - 0.02).all()
    assert twice[feature - 1] - once[feature - 1] >= 0.15


def two_passes(d, n, amplitudes, noise, rng):
    """Squared overlaps after two passes with T = tanh on he2 features, by code of its own."""
    p, X = amplitudes.size, rng.standard_normal((n, d))
    y = (X[:, :p] ** 2 - 1) @ amplitudes / 2**0.5 + noise**0.5 * rng.standard_normal(n)

    def farthest(inputs, labels):
        T = np.tanh((labels - labels.mean()) / labels.std())
        T -= T.mean()
        values, vectors = np.linalg.eigh((inputs.T * T) @ inputs)
        low, high = np.linalg.eigvalsh((inputs.T * rng.permutation(T)) @ inputs)[[0, -1]]
        beyond = np.maximum(values - high, low - values)
        order = np.argsort(-beyond)
        return vectors[:, order], np.count_nonzero(beyond > 0.01 * (high - low))

    vectors, found = farthest(X, y)
    found = min(found, p)
    first, rest = vectors[:, :found], vectors[:, found:]
    u = X @ first
    i, j = np.triu_indices(found)
    design = np.concatenate([np.ones((n, 1)), u, u[:, i] * u[:, j]], axis=1)
    left = y - design @ np.linalg.lstsq(design, y, rcond=None)[0]
    second = rest @ farthest(X @ rest, left)[0][:, : p - found]
    return np.sum(np.concatenate([first, second], axis=1)[:p] ** 2, axis=1)


def test_the_second_pass_looks_where_the_first_found_nothing():
    # The last overlaps were 0.05 too high on average, and the last one by 0.09: few drawn rows, and rows
    # that the first pass had not conditioned   (multi-index 41).
    setting = {"dimension": 100, "features": 8, "sample_ratio": 32, "deflation": 1}
    expected = np.array(predict(HierarchicalParameters(**setting))["squared_overlap"])
    rng, a = np.random.default_rng(23), 1 / np.arange(1.0, 9.0)
    found = np.array([two_passes(100, 3_200, a, 0.5, rng) for _ in range(100)])
    error = found.std(axis=0) / 10
    assert (np.abs(expected - found.mean(axis=0)) < 0.03 + 3 * error).all()
    weak = found[:, 4:].mean(axis=1)
    assert expected[4:].mean() == pytest.approx(weak.mean(), abs=0.02 + 3 * weak.std() / 10)
