"""Predicted bulk edges against simulated spectra."""

from __future__ import annotations

import numpy as np
import pytest

from solvable.arrays import random_stream
from solvable.moment_spectrum import highest_chaos as chaos
from solvable.moment_spectrum.bulk_edges import (
    PredictedBulk,
    SpectralMeasure,
    free_upper_edge,
    quadrature_of,
    weight_law,
)
from solvable.moment_spectrum.highest_chaos import chaos_eigenvalues
from solvable.operators import HermiteFeatures, MomentOperator, apply_label_map
from solvable.spectra.edges import upper_edge, weighted_bulk
from solvable.targets import HierarchicalTarget

NO_VALUES = np.empty(0)


def edges_of_nothing(bulk):
    """Edges without selected features."""
    return bulk.edges(NO_VALUES, np.empty((bulk.n_features, 0)))


def null_exceedances(degree, dimension, n_samples, correction, label_map, replicates=40):
    """Number of noise eigenvalues outside the edges, and their distance over the width."""
    rng = random_stream("null", degree, dimension, n_samples, correction, label_map)
    features = HermiteFeatures(degree, dimension)
    distances = []
    for _ in range(replicates):
        X = rng.standard_normal((n_samples, dimension))
        weights = apply_label_map(rng.standard_normal(n_samples), label_map)
        operator = MomentOperator(X, weights, features, correction=correction)
        lower, upper = edges_of_nothing(PredictedBulk(operator, rng)).noise
        values = np.linalg.eigvalsh(operator.dense())
        distances += [(values[-1] - upper) / (upper - lower), (lower - values[0]) / (upper - lower)]
    return np.array(distances)


@pytest.mark.parametrize(
    ("degree", "dimension", "n_samples", "correction", "label_map"),
    [
        (1, 150, 1200, "none", "tanh"),
        (1, 150, 100, "none", "identity"),
        (2, 20, 1680, "none", "tanh"),
        (2, 20, 1680, "wick", "clip"),
        (3, 8, 1000, "wick", "tanh"),
    ],
)
def test_noise_alone_stays_inside_its_edges(degree, dimension, n_samples, correction, label_map):
    distances = null_exceedances(degree, dimension, n_samples, correction, label_map)
    # 80 tests at 1 % each: more than four have probability 0.1 %.
    assert np.count_nonzero(distances > 0) <= 4


def test_edges_are_tight_for_gaussian_features():
    """The mean distance of noise from the edges is small, so margins are not too wide."""
    distances = null_exceedances(1, 150, 1200, "none", "tanh")
    # The mean of the Tracy-Widom law lies 3.2 scales below its 99 % quantile, the scale is
    # s D^(-2/3) = 0.035 s and the width about 4 s.
    assert -0.06 < distances.mean() < -0.01


def simulated_sum_edges(population, weights, size, seed):
    """Extreme eigenvalues of diag(population) plus a weighted sample covariance, centred."""
    rng = random_stream("sum", seed)
    g = rng.standard_normal((weights.size, size))
    noise = g.T @ (weights[:, None] * g) / weights.size - weights.mean() * np.eye(size)
    return np.linalg.eigvalsh(np.diag(population) + noise)[[0, -1]]


def test_free_edge_matches_a_simulated_sum():
    rng = random_stream("free edge")
    size, n_samples = 600, 4800
    population = np.linspace(-1.0, 0.5, size)
    weights = np.tanh(rng.standard_normal(n_samples)) + 0.3
    measure = SpectralMeasure(population, np.full(size, 1 / size))
    chance = np.full(n_samples, 1 / n_samples)
    mean = weights.mean()
    upper = free_upper_edge(measure, weights, chance, n_samples / size) - mean
    lower = -free_upper_edge(measure.flipped(), -weights, chance, n_samples / size) - mean
    seen = np.mean([simulated_sum_edges(population, weights, size, k) for k in range(4)], axis=0)
    # Fluctuations are of relative order D^(-2/3) = 0.014, and the mean lies inside the edge.
    assert lower == pytest.approx(seen[0], abs=0.04)
    assert upper == pytest.approx(seen[1], abs=0.04)


def test_free_edge_of_no_population_is_that_of_the_noise():
    rng = random_stream("no population")
    weights = rng.standard_normal(2000)
    chance = np.full(2000, 1 / 2000)
    nothing = SpectralMeasure(np.zeros(1), np.ones(1))
    assert free_upper_edge(nothing, weights, chance, 7.0) == pytest.approx(
        upper_edge(weights, 7.0)[0], rel=1e-6
    )


def test_free_edge_without_positive_weights():
    nothing = SpectralMeasure(np.zeros(1), np.ones(1))
    edge = free_upper_edge(nothing, np.array([-1.0]), np.ones(1), 4.0)
    # Minus a Marchenko-Pastur law of ratio 1/4: upper edge -(1 - 1/2)^2.
    assert edge == pytest.approx(-0.25, rel=1e-6)


def test_quadrature_finds_edges_and_moments():
    rng = random_stream("quadrature")
    spectrum = np.sort(rng.standard_normal(400))
    spectrum[0] = -5.0
    held = np.eye(400)[:, :1]
    measure = quadrature_of(lambda U: spectrum[:, None] * U, held, rng, steps=60)
    rest = spectrum[1:]
    assert measure.probabilities.sum() == pytest.approx(1)
    # The projected vector has eigenvalue -5, which must not appear.
    assert measure.atoms.min() == pytest.approx(rest.min(), abs=1e-6)
    assert measure.atoms.max() == pytest.approx(rest.max(), abs=1e-6)
    # Moments of one random vector deviate by about sqrt(2 Var(x²) / D) = 0.1.
    second = measure.probabilities @ measure.atoms**2
    assert second == pytest.approx(np.mean(rest**2), abs=0.3)


def test_quadrature_stops_in_an_invariant_space():
    measure = quadrature_of(lambda U: 2.0 * U, np.empty((50, 0)), random_stream("flat"))
    assert measure.atoms == pytest.approx([2.0])


def test_weight_law_keeps_the_edges():
    rng = random_stream("law")
    weights = rng.standard_normal(60_000) ** 3
    atoms, chance = weight_law(weights)
    assert atoms.size < 6000
    assert chance.sum() == pytest.approx(1)
    assert chance @ atoms == pytest.approx(weights.mean(), abs=1e-9)
    exact = weighted_bulk(weights=weights, aspect_ratio=5.0, centre=False)
    assert upper_edge(atoms, 5.0, chance)[0] == pytest.approx(exact.upper, rel=1e-4)
    assert -upper_edge(-atoms, 5.0, chance)[0] == pytest.approx(exact.lower, rel=1e-4)


def quadratic_problem(dimension, n_samples, correction, seed):
    """Operator of samples with one dominant positive feature of degree 2."""
    rng = random_stream("population", dimension, seed)
    features = HermiteFeatures(2, dimension)
    direction = rng.standard_normal((features.n_features, 1))
    direction /= np.linalg.norm(direction)
    X = rng.standard_normal((n_samples, dimension))
    labels = (features.project(X, direction)[:, 0] ** 2 - 1) / np.sqrt(2)
    weights = apply_label_map(labels, "tanh")
    return direction, MomentOperator(X, weights, features, correction=correction)


@pytest.mark.parametrize("correction", ["none", "wick"])
def test_population_bulk_contains_what_the_noise_does_not(correction):
    direction, operator = quadratic_problem(24, 120_000, correction, 0)
    bulk = PredictedBulk(operator, random_stream("bulk"))
    values, vectors = np.linalg.eigh(operator.dense())
    spike = int(np.argmax((vectors.T @ direction)[:, 0] ** 2))
    assert spike == values.size - 1
    rest = values[:-1]
    null = bulk.edges(values[spike:], vectors[:, spike:])
    lower, upper = null.bulk
    # At n = 400 D the noise is smaller than the bias of order 1/d.
    assert rest.max() > null.noise[1]
    assert rest.min() < null.noise[0]
    # At d = 24 single products of extreme eigenvalues of M are outside by a few per cent.
    assert np.count_nonzero((rest > upper) | (rest < lower)) <= 3
    assert rest.max() < 1.15 * upper
    assert rest.min() > 1.15 * lower
    # The bulk fills at least 60 % of the range between the edges.
    assert rest.max() > 0.6 * upper
    assert rest.min() < max(0.6 * lower, lower + 0.05 * upper)


@pytest.mark.slow
def test_correction_narrows_the_population_bulk():
    r"""Eigenvalues 2 theta (a² + b² + a b) without the correction, 2 theta a b with it.

    a and b run over the eigenvalues of M, a semicircle of edges +-2/sqrt(d): [0, 24] theta / d and
    +-8 theta / d (sequential 19) (sequential 20). The former has lower edge 0, as
    a² + b² + a b >= 0.
    """
    dimension, widths = 30, {}
    for correction in ("none", "wick"):
        _, operator = quadratic_problem(dimension, 30_000, correction, 1)
        bulk = PredictedBulk(operator, random_stream("bulk"))
        values, vectors = np.linalg.eigh(operator.dense())
        bulk.atoms = bulk.atoms * 1e-6  # population without noise
        bulk.mean *= 1e-6
        bulk.noise_scale *= 1e-6
        theta = bulk.corrected_values(values[-1:], vectors[:, -1:])[0]
        lower, upper = bulk.edges(values[-1:], vectors[:, -1:]).bulk
        widths[correction] = np.array([lower, upper]) * dimension / theta
    # At d = 30 extreme eigenvalues are about 10 % inside their limits, and the feature has c² < 1. The
    # noise of the measured B_1, 2 sqrt(E[T²] d / n), adds at most 30 / 0.4 times 0.08 = 6 to 24 and to 0.
    assert widths["wick"] == pytest.approx([-8, 8], rel=0.25)
    assert widths["none"][1] == pytest.approx(24, rel=0.25)
    assert -6 < widths["none"][0] < 1


def test_edges_before_any_feature_hold_the_measured_bias():
    _, operator = quadratic_problem(24, 60_000, "none", 2)
    null = edges_of_nothing(PredictedBulk(operator, random_stream("bulk")))
    assert null.bulk[1] > null.noise[1]
    _, corrected = quadratic_problem(24, 60_000, "wick", 2)
    null = edges_of_nothing(PredictedBulk(corrected, random_stream("bulk")))
    assert null.bulk == null.noise
    # The trace of the highest chaos depends on the norm of x; it is small, not zero.
    assert null.centre == pytest.approx(np.trace(corrected.dense()) / 300, abs=1e-12)


def test_centre_is_the_mean_of_the_eigenvalues_that_are_no_features():
    _, operator = quadratic_problem(12, 4000, "none", 4)
    bulk = PredictedBulk(operator, random_stream("bulk"))
    values = np.linalg.eigvalsh(operator.dense())
    assert bulk.centre(NO_VALUES) == pytest.approx(values.mean())
    assert bulk.centre(values[-3:]) == pytest.approx(values[:-3].mean())
    assert bulk.centre(values) == 0.0


@pytest.mark.parametrize(("degree", "dimension"), [(1, 4), (2, 2), (2, 5), (3, 1), (3, 4)])
def test_eigenvalues_of_one_sample(degree, dimension):
    x = random_stream("one sample", degree).standard_normal((1, dimension))
    features = HermiteFeatures(degree, dimension)
    operator = MomentOperator(x, np.ones(1), features, correction="wick")
    predicted = chaos_eigenvalues(np.sum(x**2, axis=1), dimension, degree)
    repeated = np.concatenate([np.repeat(values, count) for values, count in predicted])
    np.testing.assert_allclose(np.sort(repeated), np.linalg.eigvalsh(operator.dense()), atol=1e-10)


@pytest.mark.parametrize(
    ("dimension", "decay", "label_map", "ratio"),
    [(27, 0.5, "tanh", 130), (36, 0.2, "clip", 60), (21, 1.0, "tanh", 250)],
)
def test_edge_of_the_plain_bulk_with_features_of_one_sign(dimension, decay, label_map, ratio):
    target = HierarchicalTarget(dimension, features=3, decay=decay, signs="positive", seed=3)
    X, y = target.sample(ratio * target.n_features_total, random_stream("one sign", dimension))
    weights = apply_label_map(y, label_map)
    operator = MomentOperator(X, weights, target.feature_map)
    values, vectors = np.linalg.eigh(operator.dense())
    shares = np.sum((vectors.T @ target.directions) ** 2, axis=1)
    features = np.argsort(-shares)[:3]
    rest = np.delete(values, features)
    null = PredictedBulk(operator, random_stream("edges")).edges(
        values[features], vectors[:, features]
    )
    # Heights include the factor 1 + 4/d of the background.
    room = 4 / dimension * rest.max()
    assert rest.max() < null.bulk[1] < rest.max() + room
    assert rest.min() - room / 2 < null.bulk[0] < rest.min()


def test_contraction_is_no_part_of_a_feature():
    _, operator = quadratic_problem(12, 4000, "none", 3)
    corrected = MomentOperator(
        operator.source, operator.weights, operator.features, correction="wick"
    ).dense()
    values, vectors = np.linalg.eigh(operator.dense())
    expected = np.sum(vectors * (corrected @ vectors), axis=0)
    bulk = PredictedBulk(operator, random_stream("bulk"))
    np.testing.assert_allclose(bulk.corrected_values(values, vectors), expected, atol=1e-10)


def test_samples_in_parts_have_the_eigenvalues_of_all_at_once(monkeypatch):
    squared_norm = np.random.default_rng(0).chisquare(5, 23)
    whole = chaos.chaos_eigenvalues(squared_norm, 5, 3)
    monkeypatch.setattr(chaos, "ROWS", 4)
    for (one, count), (other, times) in zip(
        chaos.chaos_eigenvalues(squared_norm, 5, 3), whole, strict=True
    ):
        np.testing.assert_array_equal(one, other)
        assert count == times
