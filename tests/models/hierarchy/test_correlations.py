"""Measured covariances of tokens, against exact ones and plain loops."""

from __future__ import annotations

import numpy as np

from solvable.models.hierarchy.grammar import measure
from solvable.models.hierarchy.grammar.measure import (
    covariance_by_height,
    last_token_covariances,
    pair_covariances,
)
from solvable.models.hierarchy.target import RandomHierarchy


def test_covariances_are_those_of_indicators(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, (200, 4))
    target = (X[:, 0] + rng.integers(0, 2, 200)) % 3
    for chunk in (1 << 20, 100):
        monkeypatch.setattr(measure, "CHUNK_NUMBERS", chunk)
        measured = pair_covariances(X.astype(np.int8), target.astype(np.int8), 3)
        for column in range(4):
            left, right = np.eye(3)[target], np.eye(3)[X[:, column]]
            expected = np.cov(left.T, right.T, bias=True)[:3, 3:]
            np.testing.assert_allclose(measured[column], expected, atol=1e-12)


def test_columns_are_grouped_by_their_common_ancestor():
    target = RandomHierarchy(4, 2, 3, 2, ensemble="uniform")
    X, _ = target.sample(500, rng=0)
    near, far = last_token_covariances(X, 4, 3)
    everything = pair_covariances(X[:, :-1], X[:, -1], 4)
    np.testing.assert_array_equal(near, everything[6:])
    np.testing.assert_array_equal(far, everything[:6])
    measured = covariance_by_height(X, 4, 3)
    np.testing.assert_allclose(measured, [np.sqrt((near**2).mean()), np.sqrt((far**2).mean())])


def test_measured_covariances_are_the_exact_ones():
    target = RandomHierarchy(8, 3, 2, 3, ensemble="uniform", zipf=0.5, seed=2)
    X, _ = target.sample(100_000, rng=0)
    for level, part in enumerate(last_token_covariances(X, 8, 2), start=1):
        for place, measured in enumerate(part):
            exact = target.token_covariance(level, 8 - 2**level + place)
            # standard error of an entry at most sqrt(P(mu, nu) / n), with P(mu, nu) below 0.3
            np.testing.assert_allclose(measured, exact, atol=4.5 * np.sqrt(0.3 / 100_000))
