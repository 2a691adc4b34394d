"""Drawn operators against operators of samples and against the learner."""

import numpy as np
import pytest

from solvable.arrays import random_stream
from solvable.frame import registry
from solvable.models.sequential.predict import moments_of
from solvable.models.sequential.target import make_target
from solvable.moment_spectrum.operator_noise import single_level, single_sizes
from solvable.moment_spectrum.population_fit import Symmetric, fit_population, square_matrices
from solvable.operators import MomentOperator, apply_label_map

system = registry.load("sequential-recovery")


def test_an_operator_on_symmetric_matrices_acts_as_its_matrices():
    X, Y, U = np.random.default_rng(0).standard_normal((3, 5, 5))
    X, Y, U = X + X.T, Y + Y.T, U + U.T
    space = Symmetric(5)
    dense = space.operator(np.multiply.outer(X, Y) + np.multiply.outer(Y, X))
    np.testing.assert_allclose(space.matrices(dense @ space.vectors(U)), X @ U @ Y + Y @ U @ X)


def test_the_index_itself_has_the_exact_coefficients():
    """For T = y coefficients are 4 lambda_i / sqrt(2), with no next order."""
    parameters = system.parameters(
        dimension=13, features=2, decay=0.6, label_map="identity", correction="none"
    )
    targets = [make_target(parameters, seed) for seed in range(4)]
    rates = fit_population(targets, "identity", draws=400_000)
    sigma = np.sqrt(np.mean([target.index_variance for target in targets]))
    exact = 4 / np.sqrt(2) * targets[0].weights / sigma
    # One standard error of a moment of eighth degree is about 0.04.
    strengths, M = targets[0].weights, targets[0].symmetric_matrices()
    np.testing.assert_allclose(rates.pairs(strengths)[:2], exact, atol=0.15)
    # M_i² and its saturation are nearly equal, so only the sum of coefficients is determined.
    B = np.tensordot(rates.contracted(strengths), square_matrices(M), axes=1)
    np.testing.assert_allclose(B, np.tensordot(exact, M @ M, axes=1), atol=0.03)


def summary(C, A):
    """Extreme eigenvalues on the complement, and the norms of the couplings to the spikes."""
    basis = np.linalg.qr(A, mode="complete")[0][:, A.shape[1] :]
    values = np.linalg.eigvalsh(basis.T @ C @ basis)
    links = np.linalg.norm(basis.T @ C @ A, axis=0)
    return np.array([values[0], values[-1], *links, *np.diag(A.T @ C @ A)])


# A plain operator of bounded labels, and corrected operators of few and of many samples
SAMPLED = {
    "plain": {"correction": "none", "label_map": "clip", "readout": "tanh", "samples": 9_000},
    "corrected": {"correction": "wick", "label_map": "identity", "samples": 20_000},
    "few samples": {"correction": "wick", "label_map": "identity", "samples": 600},
}


@pytest.mark.parametrize("name", SAMPLED)
def test_drawn_operators_are_like_sampled_ones(name):
    parameters = system.parameters(
        **{"dimension": 15, "features": 3, "decay": 0.4, "signs": "positive"} | SAMPLED[name]
    )
    sampled = []
    for seed in range(24):
        target = make_target(parameters, 100 + seed)
        X, y = target.sample(parameters.samples, random_stream("sampled operator", seed))
        T = apply_label_map(y, parameters.label_map)
        operator = MomentOperator(X, T, target.feature_map, correction=parameters.correction)
        sampled.append(summary(operator.dense(), target.directions))
    draws = moments_of(parameters).law.background
    drawn = [
        summary(draws.noise.drawn(one, draws.mean, parameters.samples, rng)[0], one.directions)
        for one, rng in draws.population.members(24)
    ]
    error = np.hypot(np.std(sampled, axis=0, ddof=1), np.std(drawn, axis=0, ddof=1)) / np.sqrt(24)
    # 4 % of the largest allows for the next order in 1/d.
    gap = np.mean(sampled, axis=0) - np.mean(drawn, axis=0)
    assert (np.abs(gap) < 3.5 * error + 0.04 * np.max(sampled)).all(), (gap, error)


@pytest.mark.parametrize("several", [1.0, 4.0])
@pytest.mark.parametrize("budget", [30, 300, 3_000])
def test_single_samples_keep_the_third_moment_of_all_samples(several, budget):
    """Chance times size³ is |T|³, chance times size² at most T² (sequential 23)."""
    T = np.abs(np.random.default_rng(0).standard_normal(20_000)) ** 1.5
    tau = single_level(T, several * T.size, budget)
    size = single_sizes(T, tau, several)
    chance = several * (T / size) ** 3
    assert (chance <= 1 + 1e-12).all()
    np.testing.assert_allclose(np.mean(chance * size**3), several * np.mean(T**3), rtol=1e-12)
    assert (chance * size**2 <= several * T**2 * (1 + 1e-12)).all()
    assert chance.sum() <= 1.01 * budget


def test_few_samples_are_all_drawn_one_by_one():
    T = np.abs(np.random.default_rng(1).standard_normal(50))
    np.testing.assert_array_equal(single_sizes(T, single_level(T, 50, 60), 1.0), T)


def cumulants(noise):
    """Second and third moment of the spectrum of the noise, per direction."""
    second = np.mean([np.trace(E @ E) / len(E) for E in noise])
    return second, np.mean([np.trace(E @ E @ E) / len(E) for E in noise]) / second**1.5


def test_the_noise_of_labels_of_one_sign_is_as_skewed_as_that_of_samples():
    """Drawn noise has the third moment of the samples, unlike a Gaussian tensor."""
    parameters = system.parameters(
        dimension=16, features=3, decay=0.4, signs="positive", correction="none",
        label_map="clip", samples=16_000,
    )  # fmt: skip
    draws, sampled = moments_of(parameters).law.background, []
    for seed in range(4):
        target = make_target(parameters, 300 + seed)
        X, y = target.sample(parameters.samples * 20, random_stream("skewed", seed))
        T = apply_label_map(y, parameters.label_map)
        parts = [MomentOperator(X[k::20], T[k::20], target.feature_map).dense() for k in range(20)]
        sampled += [part - np.mean(parts, axis=0) for part in parts]
    drawn = []
    for member, _ in draws.population.members(4):
        streams = (random_stream("noise", seed) for seed in range(12))
        parts = [draws.noise.drawn(member, draws.mean, 16_000, rng)[0] for rng in streams]
        drawn += [part - np.mean(parts, axis=0) for part in parts]
    (power, skew), (drawn_power, drawn_skew) = cumulants(sampled), cumulants(drawn)
    np.testing.assert_allclose(drawn_power, power, rtol=0.1)
    # Standard errors are about 0.03; a Gaussian tensor has 0.
    assert skew > 0.3
    np.testing.assert_allclose(drawn_skew, skew, atol=0.12)


# Weak features inside a skewed bulk: one sign, few inputs, a saturated readout.
SETTINGS = {
    "saturated": {
        "dimension": 14,
        "features": 3,
        "decay": 0.5,
        "readout": "tanh",
        "samples": 9_000,
    },
    "clipped": {
        "dimension": 20,
        "features": 4,
        "decay": 0.6,
        "label_map": "clip",
        "samples": 12_000,
    },
    "signs": {
        "dimension": 17,
        "features": 4,
        "decay": 0.4,
        "signs": "random",
        "readout": "tanh",
        "samples": 7_000,
    },
}


def often(settings):
    """Parameters with all but the first setting marked as slow."""
    first, *others = settings
    return [first, *(pytest.param(name, marks=pytest.mark.slow) for name in others)]


@pytest.mark.parametrize("name", often(SETTINGS))
def test_weak_features_are_predicted(name):
    parameters = system.parameters(
        **{"signs": "positive", "correction": "none", "test_samples": 4_000} | SETTINGS[name]
    )
    runs = [system.measure(parameters, random_stream("plain", name, k)) for k in range(20)]
    predicted = system.predict(parameters)
    overlaps = np.array([run["squared_overlap"] for run in runs])
    error = overlaps.std(axis=0, ddof=1) / np.sqrt(len(runs))
    gap = np.abs(overlaps.mean(axis=0) - predicted["squared_overlap"])
    # Features near an edge fluctuate together, so the mean over features is tested.
    assert gap.mean() < 0.05 + 2 * error.mean(), (overlaps.mean(axis=0), gap)
    errors = np.array([run["normalised_mse"] for run in runs])
    spread = errors.std(ddof=1) / np.sqrt(errors.size)
    assert abs(errors.mean() - predicted["normalised_mse"]) < 2 * spread + 0.12 * errors.mean()


# Features of one sign at many samples, and more inputs than operators are drawn for
SKEWED = {
    "one sign": {"dimension": 26, "decay": 0.45, "samples": 45_630},
    "few inputs": {"dimension": 24, "decay": 0.3, "samples": 30_000},
    "two signs": {"dimension": 48, "decay": 0.9, "signs": "random", "samples": 117_600},
    "more inputs": {"dimension": 64, "decay": 0.4, "label_map": "tanh", "samples": 124_800},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SKEWED)
def test_plain_operators_have_the_predicted_error(name):
    parameters = system.parameters(
        **{"features": 4, "signs": "positive", "correction": "none", "label_map": "clip"}
        | SKEWED[name]
    )
    count = 16 if parameters.dimension < 40 else 12
    runs = [system.measure(parameters, random_stream("skewed", name, k)) for k in range(count)]
    predicted = system.predict(parameters)
    errors = np.array([run["normalised_mse"] for run in runs])
    spread = errors.std(ddof=1) / np.sqrt(count)
    # Nineteen drawn operators give the error to 3 %.
    within = 2.5 * np.hypot(spread, 0.03 * errors.mean())
    assert abs(errors.mean() - predicted["normalised_mse"]) < within
    overlaps = np.array([run["squared_overlap"] for run in runs])
    gap = np.abs(overlaps.mean(axis=0) - predicted["squared_overlap"])
    assert gap.mean() < 0.025, gap


@pytest.mark.slow
def test_losses_of_weak_features_in_few_inputs_are_not_transferred():
    parameters = system.parameters(
        dimension=64, features=8, decay=0.4, readout="tanh", correction="none", samples=62_400,
        test_samples=2_000,
    )  # fmt: skip
    streams = [random_stream("first check", 64, 8, 30, k) for k in range(3)]
    overlaps = [system.measure(parameters, rng)["squared_overlap"] for rng in streams]
    # Operators in 40 inputs lose 0.06 more than the formula; half of it would be 0.03.
    predicted = np.mean(system.predict(parameters)["squared_overlap"])
    assert predicted == pytest.approx(np.mean(overlaps), abs=0.015)


# Corrected operators of unmapped labels, with single samples as large as spikes.
UNBOUNDED = {
    "one feature": {"dimension": 21, "features": 1, "samples": 9_000},
    "random layer": {"dimension": 18, "features": 4, "decay": 0.9, "first_layer": "random",
                     "samples": 20_000},
    "signs": {"dimension": 25, "features": 5, "decay": 0.5, "signs": "alternating", "samples": 12_000},
    "saturated": {"dimension": 13, "features": 6, "decay": 0.4, "readout": "tanh", "samples": 9_000},
}  # fmt: skip


@pytest.mark.parametrize("name", often(UNBOUNDED))
def test_features_of_labels_without_a_bound_are_predicted(name):
    given = {
        "signs": "positive",
        "label_map": "identity",
        "correction": "wick",
        "test_samples": 2_000,
    }
    parameters = system.parameters(**given | UNBOUNDED[name])
    runs = [system.measure(parameters, random_stream("unbounded", name, k)) for k in range(24)]
    overlaps = np.array([run["squared_overlap"] for run in runs])
    error = overlaps.std(axis=0, ddof=1) / np.sqrt(len(runs))
    gap = np.abs(overlaps.mean(axis=0) - system.predict(parameters)["squared_overlap"])
    assert (gap < 0.05 + 3 * error).all(), (overlaps.mean(axis=0), gap, error)


# First layers that are not orthogonal, many features in few directions, and unmapped labels
BEYOND = {
    "random layer": {
        "dimension": 16,
        "features": 5,
        "decay": 0.4,
        "first_layer": "random",
        "samples": 8_000,
    },
    "similar strengths": {
        "dimension": 11,
        "features": 4,
        "decay": 0.2,
        "first_layer": "random",
        "label_map": "identity",
        "samples": 9_000,
    },
    "ten inputs": {"dimension": 10, "features": 3, "samples": 3_500},
    "unbounded": {
        "dimension": 11,
        "features": 1,
        "decay": 0.0,
        "label_map": "identity",
        "samples": 2_500,
    },
}


@pytest.mark.parametrize("name", often(BEYOND))
def test_one_law_holds_for_every_first_layer_and_number_of_features(name):
    parameters = system.parameters(
        **{"signs": "positive", "correction": "none", "test_samples": 2_000} | BEYOND[name]
    )
    runs = [system.measure(parameters, random_stream("plain beyond", name, k)) for k in range(24)]
    overlaps = np.array([run["squared_overlap"] for run in runs])
    error = overlaps.std(axis=0, ddof=1) / np.sqrt(len(runs))
    gap = np.abs(overlaps.mean(axis=0) - system.predict(parameters)["squared_overlap"])
    assert gap.mean() < 0.05 + 2 * error.mean(), (overlaps.mean(axis=0), gap, error)


def test_noise_is_symmetric_in_all_indices():
    """The degree-4 noise of a Gaussian vector: <ww^T, N ww^T> has three times the variance."""
    space, rng = Symmetric(7), np.random.default_rng(3)
    square = space.vectors(np.diag([1.0, 0, 0, 0, 0, 0, 0]))
    product = space.vectors(np.eye(7)[:2].T @ np.eye(7)[1::-1]) / np.sqrt(2)
    found = []
    for _ in range(3_000):
        root = rng.standard_normal((28, 28))
        N = space.symmetrised(root + root.T)
        found.append([square @ N @ square, product @ N @ product])
        twice = space.symmetrised(N)
    np.testing.assert_allclose(twice, N)
    # He_4(x_1) / 2 has variance 6, He_2(x_1) He_2(x_2) has 4; the standard error is 3 %.
    variance = np.var(found, axis=0)
    assert abs(variance[0] / variance[1] / 1.5 - 1) < 0.12


@pytest.mark.parametrize(
    "setting",
    [
        {"dimension": 34, "features": 5, "decay": 0.5, "samples": 14_875},
        {"dimension": 20, "features": 3, "decay": 0.4, "samples": 4_000},
    ],
    ids=["five features", "three features"],
)
def test_plain_operators_have_the_predicted_overlaps_and_edges_near_the_bulk(setting):
    """Learners on samples, with features that a few of them lose to the noise."""
    known = system.parameters(correction="none", spectrum_samples=10**6, **setting)
    prediction = system.predict(known)
    runs = [system.measure(known, random_stream("near the bulk", seed)) for seed in range(16)]
    for name, within in (("squared_overlap", 0.06), ("bulk_edges", 0.03)):
        rows = np.array([run[name] for run in runs])
        scatter = np.std(rows, axis=0, ddof=1) / 4
        away = np.abs(rows.mean(axis=0) - np.array(prediction[name]))
        assert (away < within + 2.5 * scatter).all(), name
    # A feature that some learners lose has no eigenvalue of its own.
    lost = np.array([run["squared_overlap"] for run in runs]).min(axis=0) < 0.05
    assert all(prediction["eigenvalues"][k] is None for k in np.flatnonzero(lost))
