"""Bulk edges against the semicircle, the Marchenko-Pastur law and simulated spectra."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import eigvalsh_tridiagonal

from solvable.errors import InvalidData, InvalidParameter
from solvable.spectra import (
    BulkEdges,
    semicircle,
    semicircle_edges,
    tracy_widom_quantile,
    weighted_bulk,
    weighted_bulk_edges,
)


def largest_of_goe(size: int, repeats: int, seed: int) -> np.ndarray:
    """Largest eigenvalue on the Tracy-Widom scale, from the tridiagonal form of the ensemble."""
    rng = np.random.default_rng(seed)
    found = np.empty(repeats)
    # The eigenvector at the edge lives on the first few size^(1/3) sites: the corner suffices.
    corner = min(size, int(12 * size ** (1 / 3)))
    for r in range(repeats):
        diagonal = rng.normal(0, np.sqrt(2), corner)
        beside = np.sqrt(rng.chisquare(size - np.arange(1, corner)))
        top = eigvalsh_tridiagonal(
            diagonal, beside, select="i", select_range=(corner - 1, corner - 1)
        )
        found[r] = (top[0] - 2 * np.sqrt(size)) * size ** (1 / 6)
    return found


def spectrum_edges(weights: np.ndarray, features: int, repeats: int) -> np.ndarray:
    """Extreme eigenvalues of the centred weighted covariance, averaged over draws."""
    rng = np.random.default_rng(11)
    ends = np.zeros(2)
    for _ in range(repeats):
        G = rng.standard_normal((weights.size, features))
        matrix = (G.T * weights) @ G / weights.size - weights.mean() * np.eye(features)
        values = np.linalg.eigvalsh(matrix)
        ends += [values[0], values[-1]]
    return ends / repeats


def test_edges_of_a_semicircle() -> None:
    assert semicircle_edges(scale=0.3) == (-0.6, 0.6)
    assert semicircle(scale=0.3) == BulkEdges(-0.6, 0.6, 0.3, 0.3)


@pytest.mark.parametrize("aspect_ratio", [1.5, 4.0, 50.0])
def test_equal_weights_give_the_marchenko_pastur_law(aspect_ratio: float) -> None:
    edges = weighted_bulk(weights=np.full(7, 2.0), aspect_ratio=aspect_ratio, centre=False)
    root = aspect_ratio**-0.5
    assert edges.lower == pytest.approx(2 * (1 - root) ** 2, rel=1e-8)
    assert edges.upper == pytest.approx(2 * (1 + root) ** 2, rel=1e-8)
    # Johnstone's scale of the largest eigenvalue, (1 + root)^(4/3) root in units of D^(-2/3).
    scale = 2 * (1 + root) ** (4 / 3) * aspect_ratio ** (-1 / 2)
    assert edges.upper_scale == pytest.approx(scale, rel=1e-8)


def test_fewer_samples_than_features_end_the_bulk_at_zero() -> None:
    edges = weighted_bulk(weights=np.ones(3), aspect_ratio=0.5, centre=False)
    assert (edges.lower, edges.lower_scale) == (0.0, 0.0)
    assert edges.upper == pytest.approx((1 + 2**0.5) ** 2)


@pytest.mark.parametrize("kind", ["signs", "uniform", "skewed"])
def test_edges_of_simulated_spectra(kind: str) -> None:
    D, aspect_ratio, repeats = 200, 6.0, 6
    draw = np.random.default_rng(3).random(int(aspect_ratio * D))
    weights = {
        "signs": np.sign(draw - 0.4),
        "uniform": 2 * draw - 1,
        "skewed": np.exp(2 * draw) - 3,
    }[kind]
    edges = weighted_bulk(weights=weights, aspect_ratio=aspect_ratio)
    found = spectrum_edges(weights, D, repeats)
    # Mean -1.2065 and standard deviation 1.268 of the Tracy-Widom law, plus its own correction of
    # relative order D^(-1/3).
    for end, side, place, scale in (
        (found[1], 1, edges.upper, edges.upper_scale),
        (found[0], -1, edges.lower, edges.lower_scale),
    ):
        unit = scale * D ** (-2 / 3)
        error = 4 * 1.268 / np.sqrt(repeats) + 1.2 * D ** (-1 / 3)
        assert abs(side * (end - place) / unit + 1.2065) < error


def test_many_samples_tend_to_the_semicircle() -> None:
    weights = np.random.default_rng(0).standard_normal(2_000)
    aspect_ratio = 1e6
    edges = weighted_bulk(weights=weights, aspect_ratio=aspect_ratio)
    scale = float(np.sqrt(np.mean(weights**2) / aspect_ratio))
    assert edges.upper == pytest.approx(2 * scale, rel=5e-3)
    assert edges.lower == pytest.approx(-2 * scale, rel=5e-3)
    assert edges.upper_scale == pytest.approx(scale, rel=5e-3)


def test_one_dominant_sample_widens_the_edge_over_its_own_eigenvalue() -> None:
    D, n = 100, 10_000
    weights = np.append(np.zeros(n - 1), 500.0)
    edges = weighted_bulk(weights=weights, aspect_ratio=n / D, centre=False)
    assert edges.upper == pytest.approx(500 * (1 + np.sqrt(D)) ** 2 / n, rel=1e-6)
    assert edges.upper > 500 * D / n


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    aspect_ratio=st.floats(0.5, 1e4),
    factor=st.floats(1e-3, 1e3),
)
def test_edges_scale_and_mirror_with_the_weights(
    seed: int, aspect_ratio: float, factor: float
) -> None:
    weights = np.random.default_rng(seed).standard_normal(50)
    lower, upper = weighted_bulk_edges(weights, aspect_ratio)
    assert lower < 0 < upper
    np.testing.assert_allclose(
        weighted_bulk_edges(-factor * weights, aspect_ratio),
        (-factor * upper, -factor * lower),
        rtol=1e-6,
    )


def test_the_quantile_against_random_matrices() -> None:
    largest = largest_of_goe(size=20_000, repeats=3_000, seed=5)
    for probability, allowed in ((0.1, 0.08), (0.5, 0.08), (0.9, 0.12), (0.99, 0.3)):
        # Three standard errors of an empirical quantile of 3,000 draws, and size^(-1/3) = 0.04.
        found = np.quantile(largest, probability)
        assert abs(found - tracy_widom_quantile(probability)) < allowed


@pytest.mark.parametrize(
    ("probability", "exact"), [(0.95, 0.9793), (0.99, 2.0234), (0.05, -3.1808)]
)
def test_the_quantile_against_the_table(probability: float, exact: float) -> None:
    assert tracy_widom_quantile(probability) == pytest.approx(exact, abs=0.015)


def test_the_margin_keeps_noise_inside_as_often_as_asked() -> None:
    size = 1_000
    scaled = 2 + largest_of_goe(size=size, repeats=1_000, seed=8) * size ** (-2 / 3)
    lower, upper = semicircle(scale=1.0).with_margin(dimension=size, probability=0.9)
    assert lower == -upper
    # Three standard errors of a share of 1,000, and the finite size of the matrices.
    assert abs(np.mean(scaled < upper) - 0.9) < 0.035


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.array([]), "shape"),
        (np.ones((2, 2)), "shape"),
        (np.array([1.0, np.nan]), "NaN or infinity"),
        (np.array([1.0, np.inf]), "NaN or infinity"),
        (np.zeros(4), "all weights are zero"),
    ],
)
def test_bad_weights_are_refused(weights: np.ndarray, message: str) -> None:
    with pytest.raises(InvalidData, match=message):
        weighted_bulk(weights=weights, aspect_ratio=2.0)


@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, np.inf])
def test_bad_numbers_are_refused(value: float) -> None:
    with pytest.raises(InvalidParameter):
        weighted_bulk(weights=np.ones(3), aspect_ratio=value)
    with pytest.raises(InvalidParameter):
        semicircle(scale=value)
    with pytest.raises(InvalidParameter):
        tracy_widom_quantile(value)
