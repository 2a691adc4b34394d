"""The population matrix against its definition, bounds of its bulk, and floors of the overlap."""

import numpy as np
import pytest

from solvable.errors import InvalidData, InvalidParameter, MemoryLimitExceeded
from solvable.moment_spectrum.exact_population import (
    PopulationMatrix,
    overlap_floor,
    population_bulk,
)
from solvable.operators import HermiteFeatures


def random_matrices(dimension, features, seed=0):
    rng = np.random.default_rng(seed)
    hermite = HermiteFeatures(2, dimension)
    directions = np.linalg.qr(rng.standard_normal((hermite.n_features, features)))[0]
    return hermite.to_symmetric(directions)


def power_weights(features, decay, signs="alternating"):
    weights = np.arange(1, features + 1) ** -float(decay)
    if signs == "alternating":
        weights[1::2] *= -1
    return weights / np.linalg.norm(weights)


def wick_expectation(matrices, weights, U, V):
    """E[h2 (f_U f_V - <U, V>)] by counting pairings, written without the closed form.

    The fourth joint cumulant of quadratic forms is 2 tr over the six cyclic orders.
    """
    total = 0.0
    for weight, M in zip(weights, matrices, strict=True):
        cumulant = 0.0
        for a, b, c in ((M, U, V), (M, V, U), (U, M, V), (U, V, M), (V, M, U), (V, U, M)):
            cumulant += 2 * np.trace(M @ a @ b @ c)
        total += weight / np.sqrt(2) * (2 * np.sum(M * U) * np.sum(M * V) + cumulant)
    return total


def test_matrix_is_the_expectation_by_cumulants():
    d, weights = 5, power_weights(3, 0.6)
    matrices = random_matrices(d, 3)
    basis = HermiteFeatures(2, d).to_symmetric(np.eye(15))
    dense = PopulationMatrix(matrices, weights).dense()
    expected = np.array([[wick_expectation(matrices, weights, U, V) for V in basis] for U in basis])
    np.testing.assert_allclose(dense, expected, atol=1e-12)


def test_the_correction_removes_the_contraction_with_the_input():
    """Plain minus corrected is U -> B U + U B with B = E[h2 (x x^T - I)]."""
    d, weights = 6, power_weights(2, 1.0)
    matrices = random_matrices(d, 2)
    plain = PopulationMatrix(matrices, weights).dense()
    corrected = PopulationMatrix(matrices, weights, "wick").dense()
    hermite = HermiteFeatures(2, d)
    basis = hermite.to_symmetric(np.eye(hermite.n_features))
    rng = np.random.default_rng(1)
    # E[h2 x x^T] in closed form, checked first by Monte Carlo.
    B = 4 / np.sqrt(2) * sum(w * M @ M for w, M in zip(weights, matrices, strict=True))
    X = rng.standard_normal((400_000, d))
    h = (np.einsum("na,pab,nb->np", X, matrices, X, optimize=True)
         - np.trace(matrices, axis1=1, axis2=2)) / np.sqrt(2)  # fmt: skip
    index = (h**2 - 1) @ weights / np.sqrt(2)
    products = index[:, None] * (X**2 - 1)
    error = products.std(axis=0) / np.sqrt(len(X))
    assert np.all(np.abs(products.mean(axis=0) - np.diag(B)) < 4.5 * error)
    moved = hermite.from_symmetric(B @ basis + basis @ B)
    np.testing.assert_allclose(plain - corrected, moved, atol=1e-12)


@pytest.mark.parametrize("correction", ["none", "wick"])
def test_apply_is_dense_and_symmetric(correction):
    matrix = PopulationMatrix(random_matrices(8, 3), power_weights(3, 0.5), correction)
    dense = matrix.dense()
    np.testing.assert_allclose(dense, dense.T, atol=1e-12)
    hermite = HermiteFeatures(2, 8)
    vectors = np.random.default_rng(2).standard_normal((hermite.n_features, 4))
    image = hermite.from_symmetric(matrix.apply(hermite.to_symmetric(vectors)))
    np.testing.assert_allclose(image, dense @ vectors, atol=1e-12)
    np.testing.assert_allclose(matrix.eigenvalues(), np.linalg.eigvalsh(dense), atol=1e-12)


@pytest.mark.parametrize("weight", [1.0, -1.0])
@pytest.mark.parametrize("correction", ["none", "wick"])
def test_bulk_of_one_dominant_feature(weight, correction):
    d = 40
    matrix = PopulationMatrix(random_matrices(d, 1, seed=3), np.array([weight]), correction)
    found = matrix.bulk_interval()
    expected = population_bulk(strongest_weight=weight, dimension=d, correction=correction)
    # The extreme eigenvalues of M lie about 1.2 d^(-2/3) of the radius inside: 0.1 at d = 40, and
    # twice that in their products.
    np.testing.assert_allclose(found, expected, atol=0.22 * max(np.abs(expected)))
    if correction == "none":
        # a^2 + b^2 + a b is never negative: no bulk on the other side.
        assert min(np.abs(found)) < 1e-12


def test_a_second_sign_opens_the_other_side():
    """A feature of the other sign brings the plain bulk to about -11 lambda_1 / d at decay 1."""
    matrix = PopulationMatrix(random_matrices(40, 6), power_weights(6, 1.0), "none")
    lower, upper = matrix.bulk_interval()
    assert -0.30 < lower < -0.17
    assert 0.5 < upper < 0.72


@pytest.mark.parametrize(
    ("correction", "relative"),
    # Second-order perturbation; fluctuations between matrices, measured up to 0.3 and 0.2.
    [("none", 0.35), ("wick", 0.25)],
)
def test_floors_are_the_formulas(correction, relative):
    weights = power_weights(8, 0.4)
    matrix = PopulationMatrix(random_matrices(48, 8), weights, correction)
    found = 1 - matrix.squared_overlaps()
    expected = overlap_floor(weights=weights, dimension=48, correction=correction)
    np.testing.assert_allclose(found, expected, rtol=relative)


def test_a_feature_inside_the_bulk_is_lost_for_good():
    """Positive signs, decay 1, d = 40: plain, weak features dissolve in the population bulk."""
    weights = power_weights(6, 1.0, signs="positive")
    plain = PopulationMatrix(random_matrices(40, 6), weights)
    overlaps = plain.squared_overlaps()
    upper = plain.bulk_interval()[1]
    inside = np.sqrt(2) * weights < upper
    assert inside.tolist() == [False, True, True, True, True, True]
    assert overlaps[0] > 0.95
    assert np.all(overlaps[3:] < 0.4)
    corrected = PopulationMatrix(random_matrices(40, 6), weights, "wick").squared_overlaps()
    assert np.all(corrected > 0.8)


def test_floor_shrinks_as_the_square_of_the_dimension():
    weights = power_weights(4, 0.3)
    for correction in ("none", "wick"):
        one, two = (
            overlap_floor(weights=weights, dimension=d, correction=correction) for d in (50, 100)
        )
        np.testing.assert_allclose(one / two, 4)
    assert overlap_floor(weights=np.array([1.0, 1e-9]), dimension=10)[1] == pytest.approx(1)


def test_bad_input():
    matrices, weights = random_matrices(5, 2), np.ones(2)
    with pytest.raises(InvalidData, match="shape"):
        PopulationMatrix(matrices, np.ones(3))
    with pytest.raises(InvalidData, match="norm 1"):
        PopulationMatrix(2 * matrices, weights)
    with pytest.raises(InvalidData, match="symmetric"):
        PopulationMatrix(np.triu(matrices), weights)
    with pytest.raises(InvalidParameter, match="correction"):
        PopulationMatrix(matrices, weights, "Wick")
    with pytest.raises(InvalidParameter, match="correction"):
        overlap_floor(weights=weights, dimension=5, correction="both")
    with pytest.raises(InvalidParameter, match="correction"):
        population_bulk(strongest_weight=1.0, dimension=5, correction="both")
    with pytest.raises(InvalidParameter, match="dimension"):
        population_bulk(strongest_weight=1.0, dimension=0)
    with pytest.raises(MemoryLimitExceeded, match="apply"):
        PopulationMatrix(np.eye(120)[None] / np.sqrt(120), np.ones(1)).dense()
