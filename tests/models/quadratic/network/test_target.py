"""Quadratic networks as targets: spectra, labels and errors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvable.arrays import ArraySource, random_stream
from solvable.models.quadratic.network.parameters import QuadraticParameters
from solvable.models.quadratic.network.sensing import SampleSensing
from solvable.models.quadratic.network.solutions import measure_of
from solvable.models.quadratic.network.target import QuadraticTarget

TARGETS = {
    "thin": QuadraticTarget(30, width_ratio=0.2, noise=0.5, seed=1),
    "wide": QuadraticTarget(20, width_ratio=2.0, seed=2),
    "power law": QuadraticTarget(25, "power-law", exponent=1.3, noise=0.1),
}


@pytest.fixture(params=sorted(TARGETS))
def target(request):
    return TARGETS[request.param]


def test_matrix_factor_and_strengths_agree(target):
    np.testing.assert_allclose(
        np.linalg.eigvalsh(target.matrix)[::-1], target.strengths, atol=1e-12
    )
    gram = target.factor.T @ target.factor
    np.testing.assert_allclose(gram, np.diag(np.diag(gram)), atol=1e-12)
    assert (np.diff(target.strengths) <= 1e-12).all()
    assert np.count_nonzero(target.strengths > 1e-12) == target.factor.shape[1]


def test_a_target_is_a_network_of_its_units():
    """S = W W^T / sqrt(p* d) for the weights W that the seed draws."""
    target = TARGETS["wide"]
    weights = random_stream(2, "quadratic").standard_normal((20, 40))
    np.testing.assert_allclose(target.matrix, weights @ weights.T / np.sqrt(800), atol=1e-12)


def test_labels_are_those_of_the_learners_measurements(target):
    X = random_stream(3).standard_normal((50, target.dimension))
    measured = SampleSensing(ArraySource(X)).forward(target.factor)
    np.testing.assert_allclose(target.signal(X), measured, atol=1e-12)
    direct = np.array([x @ target.matrix @ x for x in X]) - np.trace(target.matrix)
    np.testing.assert_allclose(target.signal(X), direct / np.sqrt(target.dimension), atol=1e-12)


def test_variance_of_labels(target):
    n = 40_000
    _, y = target.sample(n, 4)
    spread = (y - y.mean()) ** 2
    assert abs(
        spread.mean() - (2 * np.mean(target.strengths**2) + target.noise)
    ) < 4 * spread.std() / np.sqrt(n)
    assert abs(y.mean()) < 4 * y.std() / np.sqrt(n)


def test_spectra_follow_the_laws_of_the_theory():
    """Moments of Marchenko-Pastur: mean sqrt(k), second moment 1 + k + 1/d at finite d."""
    d, k = 200, 0.5
    found = [QuadraticTarget(d, width_ratio=k, seed=seed).strengths for seed in range(30)]
    first, second = (np.array([np.mean(one**p) for one in found]) for p in (1, 2))
    assert abs(first.mean() - np.sqrt(k)) < 4 * first.std() / np.sqrt(30)
    assert abs(second.mean() - (1 + k + 1 / d)) < 4 * second.std() / np.sqrt(30)
    law = measure_of(QuadraticParameters(dimension=d, width_ratio=k))
    assert law.node_weights @ law.nodes == pytest.approx(np.sqrt(k), rel=1e-12)
    assert law.node_weights @ law.nodes**2 == pytest.approx(1 + k, rel=1e-12)
    line = TARGETS["power law"]
    nodes = measure_of(QuadraticParameters(target="power-law", dimension=25, exponent=1.3)).nodes
    np.testing.assert_allclose(nodes[::-1], line.strengths, rtol=1e-12)
    assert np.mean(line.strengths**2) == pytest.approx(1, rel=1e-12)


def test_the_law_has_the_ratio_of_whole_units():
    assert QuadraticTarget(37, width_ratio=0.2).n_units == 7
    law = measure_of(QuadraticParameters(dimension=37, width_ratio=0.2))
    assert law.width_ratio == pytest.approx(7 / 37)
    assert QuadraticTarget(10, width_ratio=0.01).n_units == 1
    assert QuadraticTarget(10, width_ratio=3.0).factor.shape == (10, 10)


def test_errors_of_an_estimate(target):
    noise = random_stream(5).standard_normal((target.dimension,) * 2)
    estimate = target.matrix + noise + noise.T
    error = target.matrix_error(estimate)
    assert error == pytest.approx(np.sum((noise + noise.T) ** 2) / target.dimension)
    features = target.feature_errors(estimate)
    assert features.mean() == pytest.approx(error, rel=1e-12)
    rank, vectors = target.factor.shape[1], np.linalg.eigh(target.matrix)[1]
    along = np.sum(((noise + noise.T) @ vectors[:, ::-1]) ** 2, axis=0)
    np.testing.assert_allclose(features[:rank], along[:rank], rtol=1e-8)


def test_excess_risk_in_the_labels_is_twice_the_error(target):
    """E (f - f*)² = 2 R on fresh inputs; papers differ in this convention."""
    n = 40_000
    shift = np.eye(target.dimension) * 0.3
    shift[0, 1] = shift[1, 0] = 1.0
    X = random_stream(6).standard_normal((n, target.dimension))
    gap = np.einsum("ij,ij->i", X @ shift, X) - np.trace(shift)
    squares = gap**2 / target.dimension
    wanted = 2 * target.matrix_error(target.matrix + shift)
    assert abs(squares.mean() - wanted) < 4 * squares.std() / np.sqrt(n)


def test_nothing_learned_leaves_every_feature(target):
    zero = np.zeros((target.dimension,) * 2)
    np.testing.assert_allclose(target.feature_errors(zero), target.strengths**2, atol=1e-12)


def test_samples_depend_on_their_stream_alone(target):
    X, y = target.sample(20, 7)
    again, same = target.sample(20, random_stream(7, "samples"))
    np.testing.assert_array_equal(X, again)
    np.testing.assert_array_equal(y, same)
    assert target.sample(20, 7, dtype=np.float32)[0].dtype == np.float32


@settings(max_examples=20, deadline=None)
@given(d=st.integers(2, 30), ratio=st.floats(0.05, 3), seed=st.integers(0, 5))
def test_spectra_are_positive_and_of_the_right_rank(d, ratio, seed):
    target = QuadraticTarget(d, width_ratio=ratio, seed=seed)
    assert (target.strengths >= 0).all()
    assert np.count_nonzero(target.strengths > 1e-9 * target.strengths[0]) == min(d, target.n_units)
