"""Formulas of docs/derivations/sequential.md against simulations without library code."""

from math import comb

import numpy as np
import pytest

from solvable.moment_spectrum.quadratic_forms import degree_two_energy, quadratic_index_variance
from solvable.operators import HermiteFeatures
from solvable.spectra.near_semicircle import spiked_overlap
from solvable.spectra.outliers import resolvent_outliers
from solvable.theory import best_kernel_error


def random_matrices(dimension, features, seed):
    hermite = HermiteFeatures(2, dimension)
    rng = np.random.default_rng(seed)
    return hermite.to_symmetric(
        np.linalg.qr(rng.standard_normal((hermite.n_features, features)))[0]
    )


def power_weights(features, decay):
    weights = np.arange(1, features + 1) ** -float(decay)
    return weights / np.linalg.norm(weights)


def index_of(X, matrices, weights):
    moved = X @ matrices.transpose(1, 0, 2).reshape(X.shape[1], -1)
    moved = moved.reshape(len(X), len(weights), -1)
    h = (np.einsum("nd,npd->np", X, moved) - np.trace(matrices, axis1=1, axis2=2)) / np.sqrt(2)
    return (h**2 - 1) @ weights / np.sqrt(2)


def monte_carlo_moment(matrices, weights, draws, seed):
    """(1/n) sum y (F F^T - I) by direct summation, without the operator of the library."""
    d = matrices.shape[1]
    rows, columns = np.triu_indices(d)
    scale = np.where(rows == columns, np.sqrt(0.5), 1.0)
    total, rng = np.zeros((rows.size, rows.size)), np.random.default_rng(seed)
    labels = 0.0
    for start in range(0, draws, 10_000):
        X = rng.standard_normal((min(10_000, draws - start), d))
        y = index_of(X, matrices, weights)
        F = (X[:, rows] * X[:, columns] - (rows == columns)) * scale
        total += (F.T * y) @ F
        labels += y.sum()
    return (total - labels * np.eye(rows.size)) / draws


def check_population_matrix(dimension, features, draws, with_bias, without):
    matrices = random_matrices(dimension, features, seed=0)
    weights = power_weights(features, 1.0)
    features_map = HermiteFeatures(2, dimension)
    A, U = (
        features_map.from_symmetric(matrices),
        features_map.to_symmetric(np.eye(comb(dimension + 1, 2))),
    )
    spikes = np.sqrt(2) * (A * weights) @ A.T
    # sqrt(2) sum_i lambda_i A_i A_i^T + (4 / sqrt(2)) [S U + U S + sum_i lambda_i M_i U M_i]
    # (sequential 19)
    S = np.einsum("i,iab,ibc->ac", weights, matrices, matrices)
    image = S @ U + U @ S + sum(w * M @ U @ M for w, M in zip(weights, matrices, strict=True))
    exact = spikes + 4 / np.sqrt(2) * features_map.from_symmetric(image)
    measured = monte_carlo_moment(matrices, weights, draws, seed=1)
    size = np.linalg.norm(exact - spikes)
    assert np.linalg.norm(measured - exact) / size < with_bias
    assert np.linalg.norm(measured - spikes) / size > without


def test_check_5_population_matrix():
    """Population operator (sequential 19) at d = 10: a large bias with little noise."""
    check_population_matrix(10, 3, draws=300_000, with_bias=0.2, without=0.9)


@pytest.mark.slow
def test_check_5_population_matrix_at_full_size():
    """Population operator (sequential 19) at d = 20: residual 0.117, of which noise 0.08 to 0.12."""
    check_population_matrix(20, 6, draws=1_200_000, with_bias=0.2, without=0.9)


REFERENCE = {8: (0.745, 0.574), 16: (0.868, 0.755, 0.512), 32: (0.933, 0.869, 0.762, 0.675)}


@pytest.mark.parametrize("ratio", REFERENCE)
def test_check_8_resolvent_with_a_clipped_label(ratio):
    """Tabulated overlaps (sequential 6): six Gaussian features, decay 1, labels clipped at 2."""
    weights = power_weights(6, 1.0)
    weights[1::2] *= -1
    h = np.random.default_rng(2).standard_normal((300_000, 6))
    T = np.clip((h**2 - 1) @ weights / np.sqrt(2), -2, 2)
    found = resolvent_outliers(
        labels=T - T.mean(), squared_features=h**2, aspect_ratio=float(ratio)
    )
    expected = REFERENCE[ratio]
    # Two sets of 3e5 draws have a Monte Carlo error of 0.01 for c² near 0.5.
    np.testing.assert_allclose(found.sharp_squared_overlap[: len(expected)], expected, atol=0.03)


@pytest.mark.parametrize(("size", "repeats"), [(100, 256), (200, 128), (400, 48)])
def test_check_14_overlap_at_threshold(size, repeats):
    """Overlap 0.85 D^(-1/3) at the threshold (sequential 26)."""
    rng = np.random.default_rng(size)
    overlaps = np.empty(repeats)
    for k in range(repeats):
        root = rng.standard_normal((size, size))
        matrix = (root + root.T) / np.sqrt(2 * size)
        matrix[0, 0] += 1
        overlaps[k] = np.linalg.eigh(matrix)[1][0, -1] ** 2
    unit = size ** (-1 / 3)
    error = overlaps.std() / np.sqrt(repeats) / unit
    mean = overlaps.mean() / unit
    # 0.1 plus three standard errors: single overlaps scatter by as much as their mean.
    assert mean == pytest.approx(0.85, abs=0.1 + 3 * error)
    # With the finite-size factor 1/(1 + 0.85 D^(-1/3)) standard errors suffice.
    assert mean == pytest.approx(0.85 / (1 + 0.85 * unit), abs=3.5 * error)


@pytest.mark.slow
def test_check_14_profile_of_the_transition():
    """Rounded overlaps (sequential 26) from half to twice the threshold at D = 300."""
    size, repeats, rng = 300, 150, np.random.default_rng(14)
    for strength in (0.5, 0.75, 1.0, 1.25, 1.5, 2.0):
        overlaps = np.empty(repeats)
        for k in range(repeats):
            root = rng.standard_normal((size, size))
            matrix = (root + root.T) / np.sqrt(2 * size)
            matrix[0, 0] += np.sqrt(strength)
            overlaps[k] = np.linalg.eigh(matrix)[1][0, -1] ** 2
        found = spiked_overlap(
            heights=np.ones(1), noise=1.0, aspect_ratio=strength, n_features=size
        )
        error = overlaps.std() / np.sqrt(repeats)
        assert overlaps.mean() == pytest.approx(found[0], abs=3.5 * error + 0.003)


@pytest.mark.parametrize(
    # Alternating and positive signs: a small and a large sum of the weights.
    ("alternating", "expected"),
    [(True, 0.2), pytest.param(False, 0.5, marks=pytest.mark.slow)],
)
def test_check_18_energy_of_degree_two(alternating, expected):
    """Variance and degree-2 energy of the index (sequential 21)."""
    d, draws = 20, 150_000
    weights = power_weights(6, 1.0)
    if alternating:
        weights[1::2] *= -1
    matrices = random_matrices(d, 6, seed=3)
    X = np.random.default_rng(4).standard_normal((draws, d))
    y = index_of(X, matrices, weights)
    rows, columns = np.triu_indices(d)
    F = (X[:, rows] * X[:, columns] - (rows == columns)) * np.where(rows == columns, 0.5**0.5, 1)
    coefficients = F.T @ y / draws
    noise = np.mean(F**2 * y[:, None] ** 2, axis=0).sum() / draws
    energy = np.sum(coefficients**2) - noise
    low, whole = degree_two_energy(matrices, weights), quadratic_index_variance(matrices, weights)
    assert energy == pytest.approx(low, rel=0.05)
    assert 0.5 * expected < low < 2 * expected
    # E tr S² = (1 + (sum lambda)²) / d over random M_i of norm 1
    leading = 4 / d * (1 + np.sum(weights) ** 2)
    assert leading == pytest.approx(low, rel=0.15)
    assert y.var() == pytest.approx(whole, rel=0.05)
    # Bound on kernels between d² and d⁴/24 samples (sequential 27).
    energies = {2: low, 4: whole - low}
    floor = best_kernel_error(samples=2 * rows.size, dimension=d, energies=energies)
    assert floor < 1 - 0.9 * energy / y.var()
