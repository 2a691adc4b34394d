"""Block power iteration against dense eigenvectors and published numbers."""

from __future__ import annotations

import numpy as np
import pytest

from solvable.arrays import random_stream
from solvable.errors import InvalidParameter, NotConverged
from solvable.learners import LayerwiseSpectralRegressor, block_power_iteration
from solvable.models.sequential.measure import measure
from solvable.models.sequential.parameters import SequentialParameters
from solvable.operators import HermiteFeatures, MomentOperator, apply_label_map, leading_eigenpairs
from solvable.targets import HierarchicalTarget


def operator_with_spikes(n=4000):
    rng = random_stream(5)
    X = rng.standard_normal((n, 30))
    weights = X[:, 0] ** 2 - X[:, 1] ** 2
    return MomentOperator(X, weights, HermiteFeatures(1, 30))


def largest_by_modulus(operator, count):
    values, vectors = np.linalg.eigh(operator.dense())
    return vectors[:, np.argsort(-np.abs(values))[:count]]


def test_converges_with_enough_passes():
    operator = operator_with_spikes()
    exact = largest_by_modulus(operator, 2)
    found = block_power_iteration(operator, 2, passes=60, extra=4, rng=random_stream(0))
    overlap = np.linalg.norm(exact.T @ found) ** 2
    assert overlap == pytest.approx(2, abs=1e-6)
    early = block_power_iteration(operator, 2, passes=1, extra=4, rng=random_stream(0))
    assert np.linalg.norm(exact.T @ early) ** 2 < overlap
    np.testing.assert_allclose(found.T @ found, np.eye(2), atol=1e-10)


def test_rotation_inside_the_block_gives_eigenvectors_one_by_one():
    operator = operator_with_spikes()
    exact = largest_by_modulus(operator, 3)
    rotated = block_power_iteration(
        operator, 3, passes=30, extra=8, rayleigh_ritz=True, rng=random_stream(0)
    )
    np.testing.assert_allclose(np.abs(exact.T @ rotated).diagonal(), 1, atol=1e-6)
    assert operator.products == 31 * 11


@pytest.mark.slow
def test_first_vectors_of_the_block_are_not_the_leading_ones():
    """D = 820, n = 16 D (arXiv:2605.14567, Algorithm 1): 15 passes lose overlap without rotation."""
    found = []
    for seed in range(3):
        target = HierarchicalTarget(
            40, features=6, decay=0.4, signs="alternating", inputs="gaussian", seed=seed
        )
        X, y = target.sample(16 * 820, random_stream(seed, "train"), dtype=np.float32)
        operator = MomentOperator(X, apply_label_map(y, "tanh"), target.feature_map)
        pairs = leading_eigenpairs(operator, 6, 6, rng=0)
        bases = [
            pairs.vectors[:, np.argsort(-np.abs(pairs.values))[:6]],
            block_power_iteration(operator, 6, rng=random_stream(1)),
            block_power_iteration(operator, 6, rayleigh_ritz=True, rng=random_stream(1)),
        ]
        found.append([np.sum((target.directions.T @ basis) ** 2) / 6 for basis in bases])
    exact, first, rotated = np.mean(found, axis=0)
    # 0.703, 0.675 and 0.696 on the same matrices.
    assert first < exact - 0.015
    assert rotated == pytest.approx(exact, abs=0.015)


@pytest.mark.parametrize("rank", [1, 2])
def test_stays_orthonormal_when_the_block_is_dependent(rank):
    # Operators of rank one or two with blocks of five vectors.
    X = np.eye(30)[:rank] * np.sqrt([[3.0], [2.0]])[:rank]
    operator = MomentOperator(X, np.ones(rank) - np.arange(rank) * 2, HermiteFeatures(1, 30))
    found = block_power_iteration(operator, 5, extra=0, rng=random_stream(0))
    np.testing.assert_allclose(found.T @ found, np.eye(5), atol=1e-6)


def test_labels_in_any_unit_give_the_same_vectors():
    X = random_stream(5).standard_normal((500, 10))
    found = [
        block_power_iteration(
            MomentOperator(X, unit * X[:, 0] ** 2, HermiteFeatures(1, 10)),
            2,
            extra=2,
            passes=3,
            rng=random_stream(0),
        )
        for unit in (1.0, 1e-100, 1e100)
    ]
    for other in found[1:]:
        np.testing.assert_allclose(other, found[0], atol=1e-8)


@pytest.mark.parametrize("setting", [{"n_vectors": 25}, {"n_vectors": 0}, {"passes": 0}])
def test_block_that_does_not_fit(setting):
    operator = operator_with_spikes(50)
    with pytest.raises(InvalidParameter, match="at most 30"):
        block_power_iteration(operator, **{"n_vectors": 3, **setting}, rng=random_stream(0))


def test_says_when_the_operator_is_zero():
    flat = MomentOperator(np.ones((4, 30)), np.zeros(4), HermiteFeatures(1, 30))
    with pytest.raises(NotConverged, match="norm 0 after pass 1"):
        block_power_iteration(flat, 2, extra=1, rng=random_stream(0))


def overlaps_of_choices(seed, **setting):
    """Mean overlap of the default learner, of ranking by modulus, and of the published algorithm."""
    choices = [("edges", "lanczos"), ("modulus", "lanczos"), ("modulus", "power-iteration")]
    found = []
    for selection, solver in choices:
        parameters = SequentialParameters(
            selection=selection, solver=solver, readout="tanh", label_map="identity", **setting
        )
        metrics = measure(parameters, random_stream("published", seed))
        found.append(metrics["mean_squared_overlap"])
    return np.array(found)


def test_published_choices_of_the_system_lose_features():
    """d = 34, plain operator: modulus loses negative features, 15 passes do not converge."""
    setting = {
        "dimension": 34,
        "features": 5,
        "decay": 0.3,
        "samples": 18 * 595,
        "test_samples": 50,
    }
    rows = [overlaps_of_choices(seed, correction="none", **setting) for seed in range(3)]
    default, modulus, published = np.mean(rows, axis=0)
    assert modulus < default - 0.02
    assert published < modulus - 0.02


@pytest.mark.slow
def test_a_published_row():
    """d = 120, 11 features, n = 157,744: published overlaps 0.297 and 0.281 (two seeds)."""
    default, modulus, published = overlaps_of_choices(
        0, dimension=120, features=11, decay=0.4, samples=157_744, correction="none"
    )
    # 0.324 here: the published index saturates the readout more, and has random signs.
    assert published == pytest.approx(0.29, abs=0.05)
    # 0.408 converged: modulus still loses three negative features.
    assert modulus > published + 0.05
    assert default > modulus + 0.02


def test_published_choices_of_the_estimator():
    operator = operator_with_spikes()
    X, y = operator.source.array, operator.weights
    settings = {"degree": 1, "n_directions": 2, "second_layer": "in-sample", "held_back": 0}
    settings |= {"readout": "none", "label_map": "identity", "random_state": 0}
    fitted = LayerwiseSpectralRegressor(
        selection="modulus", solver="power-iteration", **settings
    ).fit(X, y)
    assert fitted.route_ == "power-iteration"
    assert fitted.n_products_ == 15 * 12 + 2
    exact = largest_by_modulus(operator, 2)
    assert np.linalg.norm(exact.T @ fitted.directions_) ** 2 > 1.9
    for choice in ({"selection": "modulus"}, {"solver": "power-iteration"}):
        with pytest.raises(InvalidParameter, match="n_directions is 'auto'"):
            LayerwiseSpectralRegressor(**{**settings, "n_directions": "auto"}, **choice).fit(X, y)
