"""Bulk edges against Marchenko-Pastur, simulated spectra, and the tridiagonal model."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvable.errors import InvalidData, InvalidParameter
from solvable.spectra import semicircle
from solvable.spectra.edges import (
    BulkEdges,
    tracy_widom_quantile,
    upper_edge,
    weighted_bulk,
)


@pytest.mark.parametrize("aspect_ratio", [0.5, 1.5, 4.0, 100.0])
@pytest.mark.parametrize("weight", [1.0, -2.5])
def test_equal_weights_give_marchenko_pastur(aspect_ratio, weight):
    found = weighted_bulk(weights=np.full(50, weight), aspect_ratio=aspect_ratio, centre=False)
    shape = 1 / aspect_ratio
    low = (1 - np.sqrt(shape)) ** 2 if aspect_ratio > 1 else 0.0
    expected = sorted([weight * low, weight * (1 + np.sqrt(shape)) ** 2])
    np.testing.assert_allclose([found.lower, found.upper], expected, rtol=1e-9, atol=1e-12)


def test_fluctuation_scale_is_the_one_of_wishart_matrices():
    """Johnstone: n lambda_max has scale (sqrt(n) + sqrt(D)) (1/sqrt(n) + 1/sqrt(D))^(1/3)."""
    D, aspect_ratio = 400, 4.0
    n = aspect_ratio * D
    known = (np.sqrt(n) + np.sqrt(D)) * (1 / np.sqrt(n) + 1 / np.sqrt(D)) ** (1 / 3) / n
    edges = weighted_bulk(weights=np.ones(3), aspect_ratio=aspect_ratio)
    assert edges.upper_scale * D ** (-2 / 3) == pytest.approx(known, rel=1e-9)


def test_many_samples_give_the_semicircle():
    weights = np.tanh(np.linspace(-2, 2, 999))
    edges = weighted_bulk(weights=weights, aspect_ratio=1e7)
    half = semicircle(scale=np.sqrt(np.mean(weights**2) / 1e7))
    assert edges.upper == pytest.approx(half.upper, rel=1e-3)
    assert edges.lower == pytest.approx(half.lower, rel=1e-3)
    assert edges.upper_scale == pytest.approx(half.upper_scale, rel=1e-2)


@pytest.mark.parametrize("centre", [True, False])
def test_simulated_spectrum_ends_at_the_edges(centre):
    rng = np.random.default_rng(1)
    D, n, repeats = 200, 800, 8
    weights = rng.standard_normal(n) ** 2 - 0.7
    ends = []
    for _ in range(repeats):
        g = rng.standard_normal((n, D))
        matrix = (g.T * weights) @ g / n - centre * weights.mean() * np.eye(D)
        ends.append(np.linalg.eigvalsh(matrix)[[0, -1]])
    edges = weighted_bulk(weights=weights, aspect_ratio=n / D, centre=centre)
    # TW_1 has mean -1.2065 and standard deviation 1.268, in units of kappa D^(-2/3).
    units = np.array([edges.lower_scale, edges.upper_scale]) * D ** (-2 / 3)
    expected = np.array([edges.lower, edges.upper]) - np.array([-1.2065, 1.2065]) * units
    error = 1.268 * units / np.sqrt(repeats)
    # One more standard error for the next order, D^(-1/3) relative to the unit.
    assert np.all(np.abs(np.mean(ends, axis=0) - expected) < 4 * error)


def test_a_dominant_weight_is_bulk_not_feature():
    D, n = 300, 3000
    weights = np.full(n, 1e-6)
    weights[0] = 40.0
    edges = weighted_bulk(weights=weights, aspect_ratio=n / D)
    own = weights[0] * D / n
    assert own < edges.upper + weights.mean() < weights[0] * (1 + np.sqrt(D)) ** 2 / n * 1.01


@given(
    st.lists(st.floats(-3, 3).filter(lambda w: abs(w) > 0.01), min_size=2, max_size=20),
    st.floats(0.3, 200.0),
    st.floats(0.1, 10.0),
)
@settings(max_examples=40, deadline=None)
def test_invariances(values, aspect_ratio, factor):
    weights = np.array(values)
    edges = weighted_bulk(weights=weights, aspect_ratio=aspect_ratio)
    mirrored = weighted_bulk(weights=-weights, aspect_ratio=aspect_ratio)
    scaled = weighted_bulk(weights=factor * weights, aspect_ratio=aspect_ratio)
    repeated = weighted_bulk(weights=np.repeat(weights, 3), aspect_ratio=aspect_ratio)
    assert edges.lower < edges.upper
    close = {"rel": 1e-6, "abs": 1e-8}
    assert mirrored.upper == pytest.approx(-edges.lower, **close)
    assert mirrored.upper_scale == pytest.approx(edges.lower_scale, **close)
    assert scaled.upper == pytest.approx(factor * edges.upper, **close)
    assert repeated.lower == pytest.approx(edges.lower, **close)


def test_probabilities_are_repetitions():
    edge, scale, point = upper_edge(np.array([1.0, -1.0, 2.0]), 3.0, np.array([0.5, 0.25, 0.25]))
    again = upper_edge(np.array([1.0, 1.0, -1.0, 2.0]), 3.0)
    np.testing.assert_allclose((edge, scale, point), again, rtol=1e-9)


def test_rank_deficient_bulk_ends_at_zero():
    edge, scale, point = upper_edge(np.array([-1.0, 0.0, 0.0, 0.0]), 2.0)
    assert (edge, scale, point) == (0.0, 0.0, np.inf)


@pytest.mark.parametrize(
    # Bornemann's quantiles of TW_1.
    ("probability", "quantile", "tolerance"),
    [(0.5, -1.26857, 0.003), (0.9, 0.45014, 0.004), (0.95, 0.97931, 0.002), (0.99, 2.02345, 0.011)],
)
def test_tracy_widom_quantiles(probability, quantile, tolerance):
    assert tracy_widom_quantile(probability) == pytest.approx(quantile, abs=tolerance)


def test_tracy_widom_against_the_tridiagonal_model():
    from scipy.linalg import eigh_tridiagonal

    rng = np.random.default_rng(2)
    D, sites, repeats = 20_000, 300, 400
    largest = np.empty(repeats)
    for k in range(repeats):
        diagonal = rng.standard_normal(sites) * np.sqrt(2 / D)
        off = np.sqrt(rng.chisquare(D - np.arange(1, sites)) / D)
        largest[k] = eigh_tridiagonal(
            diagonal, off, eigvals_only=True, select="i", select_range=(sites - 1, sites - 1)
        )[0]
    for probability in (0.5, 0.9):
        lower, upper = semicircle(scale=1.0).with_margin(dimension=D, probability=probability)
        inside = np.mean(largest < upper)
        error = np.sqrt(probability * (1 - probability) / repeats)
        assert abs(inside - probability) < 4 * error
        assert lower == -upper


def test_margin_moves_each_edge_by_its_own_scale():
    edges = BulkEdges(-1.0, 3.0, 0.5, 0.0)
    lower, upper = edges.with_margin(dimension=1000, probability=0.99)
    assert upper == pytest.approx(3.0)
    assert lower == pytest.approx(-1 - 0.005 * tracy_widom_quantile(0.99))


@pytest.mark.parametrize(
    ("weights", "message"),
    [(np.empty(0), "shape"), (np.ones((2, 2)), "shape"), (np.array([np.inf]), "NaN or infinite"),
     (np.zeros(4), "all weights are zero")],
)  # fmt: skip
def test_bad_weights(weights, message):
    with pytest.raises(InvalidData, match=message):
        weighted_bulk(weights=weights, aspect_ratio=2.0)


@pytest.mark.parametrize("probability", [0.0, 1.0, -0.1, np.nan])
def test_bad_probability(probability):
    with pytest.raises(InvalidParameter, match="probability"):
        tracy_widom_quantile(probability)


def test_bad_numbers():
    with pytest.raises(InvalidParameter, match="aspect_ratio"):
        weighted_bulk(weights=np.ones(2), aspect_ratio=0.0)
    with pytest.raises(InvalidParameter, match="scale"):
        semicircle(scale=-1.0)
