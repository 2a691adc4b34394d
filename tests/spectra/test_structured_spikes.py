"""Spikes at finite size against closed forms and simulated matrices."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvable.errors import InvalidData, InvalidParameter
from solvable.spectra.edges import weighted_bulk
from solvable.spectra.structured_spikes import (
    Background,
    WeightedSample,
    compress_sample,
    predict_spikes,
)

FLAT = WeightedSample(np.array([-1.0, 1.0]), np.full(2, 0.5), np.ones((2, 2)))


def predict(heights, n_samples, n_features, sample=FLAT, **rest):
    return predict_spikes(
        sample=sample,
        heights=np.asarray(heights, float),
        n_samples=n_samples,
        n_features=n_features,
        **rest,
    )


def test_many_samples_give_the_closed_form():
    """c² = (nu - 1)/nu and place theta + s^2/theta where couplings equal the noise."""
    delta, heights = 1e4, np.array([0.03, -0.012])
    found = predict(heights, delta * 1e5, 100_000)
    strength = delta * heights**2
    np.testing.assert_allclose(found.sharp_squared_overlap, (strength - 1) / strength, atol=0.01)
    np.testing.assert_allclose(found.eigenvalues, heights + 1 / delta / heights, rtol=0.03)
    np.testing.assert_allclose(found.bulk_edges, [-0.02, 0.02], rtol=0.02)
    assert found.recovered.all()


def test_strong_spikes_lose_what_couples_them_to_the_noise():
    """Far above threshold 1 - c² = tau_h / nu, whatever the noise of the bulk."""
    sample = WeightedSample(FLAT.weights, FLAT.probabilities, np.array([[1.7, 0.4]] * 2))
    found = predict([0.5, -0.5], 1e4 * 500, 500, sample)
    lost = 1 - found.sharp_squared_overlap
    np.testing.assert_allclose(lost, np.array([1.7, 0.4]) / (1e4 * 0.25), rtol=0.02)


def test_edges_are_those_of_the_weighted_covariance():
    rng = np.random.default_rng(1)
    weights = np.sort(rng.standard_normal(3000) ** 2 - 1)
    sample = WeightedSample(weights, np.full(3000, 1 / 3000), np.ones((3000, 1)))
    # 3,000 atoms stand for 3,000 samples: nothing is clipped.
    found = predict([0.1], 3000, 500, sample)
    edges = weighted_bulk(weights=weights, aspect_ratio=6.0)
    np.testing.assert_allclose(found.bulk_edges, (edges.lower, edges.upper), rtol=1e-6)


def simulate(columns, samples, height, repeats, background=0.0):
    """Mean squared overlap and place of a spike in a label-weighted covariance matrix."""
    rng = np.random.default_rng(5)
    overlaps, places = [], []
    for _ in range(repeats):
        weights = rng.uniform(-1.5, 1.5, samples)
        g = rng.standard_normal((samples, columns))
        matrix = (g.T * weights) @ g / samples - weights.mean() * np.eye(columns)
        if background:
            root = rng.standard_normal((columns, columns))
            matrix += (root + root.T) * background / np.sqrt(2 * columns)
        matrix[0, 0] += height
        values, vectors = np.linalg.eigh(matrix)
        overlaps.append(vectors[0, -1] ** 2)
        places.append(values[-1])
    return np.array(overlaps), np.array(places)


@pytest.mark.parametrize(("height", "background"), [(0.9, 0.0), (0.6, 0.0), (0.7, 0.25)])
def test_simulated_spike(height, background):
    columns, samples, repeats = 250, 1000, 24
    overlaps, places = simulate(columns, samples, height, repeats, background)
    weights = np.linspace(-1.5, 1.5, 2001)
    sample = WeightedSample(weights, np.full(2001, 1 / 2001), weights[:, None] ** 2)
    variance = background**2
    found = predict(
        [height],
        samples,
        columns,
        sample,
        background=Background(np.zeros(1), variance, np.full(1, variance)),
    )
    error = overlaps.std(ddof=1) / np.sqrt(repeats)
    # 1 / D: order of the terms that the theory neglects.
    assert found.squared_overlap[0] == pytest.approx(overlaps.mean(), abs=4 * error + 2 / columns)
    spread = places.std(ddof=1) / np.sqrt(repeats)
    assert found.eigenvalues[0] == pytest.approx(places.mean(), abs=4 * spread + 2 / columns)


def test_background_atoms_shift_and_widen_the_bulk():
    atoms = np.linspace(-0.2, 0.5, 101)
    rng = np.random.default_rng(2)
    columns, samples = 404, 4000
    g = rng.standard_normal((samples, columns))
    weights = rng.uniform(-1, 1, samples)
    noise = (g.T * weights) @ g / samples - weights.mean() * np.eye(columns)
    values = np.linalg.eigvalsh(noise + np.diag(np.repeat(atoms, 4)))
    grid = np.linspace(-1, 1, 2001)
    sample = WeightedSample(grid, np.full(2001, 1 / 2001), np.ones((2001, 1)))
    found = predict([2.0], samples, columns, sample, background=Background(atoms, 0.0, np.zeros(1)))
    # The largest eigenvalue lies about 1.2 D^(-2/3) of the width inside the edge.
    np.testing.assert_allclose(found.bulk_edges, values[[0, -1]], atol=0.02)


@pytest.mark.parametrize("columns", [150, 600])
def test_rounding_at_threshold(columns):
    """A weak spike has E c² near 0.85 D^(-1/3) at its threshold."""
    rng = np.random.default_rng(7)
    repeats = 6000 // columns
    overlaps = []
    for _ in range(repeats):
        root = rng.standard_normal((columns, columns))
        matrix = (root + root.T) / np.sqrt(2 * columns)
        matrix[0, 0] += 1
        overlaps.append(np.linalg.eigh(matrix)[1][0, -1] ** 2)
    delta = 1e6
    found = predict([delta**-0.5], delta * columns, columns)
    unit = columns ** (-1 / 3)
    error = np.std(overlaps) / np.sqrt(repeats)
    assert found.squared_overlap[0] == pytest.approx(0.85 * unit / (1 + 0.85 * unit), rel=0.1)
    assert np.mean(overlaps) == pytest.approx(found.squared_overlap[0], abs=4 * error)


@given(st.floats(0.01, 3.0), st.floats(0.5, 1000.0))
@settings(max_examples=40, deadline=None)
def test_invariances(height, delta):
    found = predict([height, -height], delta * 500, 500)
    mirrored = predict([-height, height], delta * 500, 500)
    np.testing.assert_allclose(found.squared_overlap, mirrored.squared_overlap, rtol=1e-6)
    np.testing.assert_allclose(found.eigenvalues, -mirrored.eigenvalues, rtol=1e-6)
    scaled = predict(
        [3 * height, -3 * height],
        delta * 500,
        500,
        WeightedSample(3 * FLAT.weights, FLAT.probabilities, 9 * FLAT.couplings),
    )
    np.testing.assert_allclose(scaled.squared_overlap, found.squared_overlap, rtol=1e-5)
    np.testing.assert_allclose(scaled.eigenvalues, 3 * found.eigenvalues, rtol=1e-5)
    assert np.all((found.squared_overlap > 0) & (found.squared_overlap < 1))
    # The mean is below the sharp law only above the threshold, by less than the rounding.
    rounded_down = found.sharp_squared_overlap - found.squared_overlap
    assert np.all(rounded_down < 500 ** (-1 / 3))
    assert np.array_equal(found.recovered, found.excess > 0)


def test_compression_keeps_the_prediction():
    rng = np.random.default_rng(3)
    weights = np.tanh(rng.standard_normal(60_000)) * rng.chisquare(20, 60_000) / 20
    couplings = weights[:, None] ** 2
    order = np.argsort(weights)
    exact = WeightedSample(weights[order], np.full(60_000, 1 / 60_000), couplings[order])
    small = compress_sample(weights, couplings)
    assert small.weights.size == 4000
    assert small.probabilities.sum() == pytest.approx(1)
    for samples in (2000, 20_000):
        one, two = (predict([0.4], samples, 400, some) for some in (exact, small))
        assert two.squared_overlap == pytest.approx(one.squared_overlap, abs=2e-4)
        assert two.bulk_edges == pytest.approx(one.bulk_edges, abs=2e-4)


def test_rare_weights_are_clipped():
    sample = WeightedSample(
        np.array([0.0, 1.0, 50.0]), np.array([0.5, 0.499, 0.001]), np.ones((3, 1))
    )
    np.testing.assert_array_equal(sample.clipped(100).weights, [0, 1, 1])
    np.testing.assert_allclose(sample.clipped(100).couplings[:, 0], [1, 1, 1 / 2500])
    np.testing.assert_array_equal(sample.clipped(2000).weights, [0, 1, 50])


def test_bad_input():
    with pytest.raises(InvalidData, match="shape"):
        compress_sample(np.ones(3), np.ones((2, 1)))
    with pytest.raises(InvalidData, match="finite"):
        compress_sample(np.array([np.nan]), np.ones((1, 1)))
    with pytest.raises(InvalidParameter, match="n_samples"):
        predict([0.1], 0, 10)


def test_many_directions_do_not_hold_what_one_could_not():
    """Sixty directions of noise among 990 hold their share of each feature, and little more."""
    heights = np.geomspace(0.05, 0.01, 60)
    sample = WeightedSample(np.array([-1.0, 1.0]), np.full(2, 0.5), np.ones((2, 60)))
    found = predict_spikes(
        sample=sample, heights=heights, n_samples=990 * 20, n_features=990, n_directions=60
    )
    # Four random matrices of this size with these spikes: 0.0628 +- 0.0009 on the mean.
    assert found.squared_overlap.mean() == pytest.approx(0.0628, abs=0.01)
