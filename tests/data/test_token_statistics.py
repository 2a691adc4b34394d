"""Correlations of tokens: exact cases, the contribution of sampling, plateaus of a grammar."""

import numpy as np
import pytest

from solvable.data.token_statistics import token_correlations
from solvable.errors import InvalidData, InvalidParameter
from solvable.models.hierarchy.target import RandomHierarchy


def direct(rows, distance, vocabulary):
    """Return the correlation matrix, computed from one-hot vectors pair by pair."""
    pairs = [
        (row[i], row[i + distance])
        for row in rows
        for i in range(len(row) - distance)
        if min(row[i], row[i + distance]) >= 0
    ]
    first, second = (np.eye(vocabulary)[[pair[k] for pair in pairs]] for k in (0, 1))
    return (first - first.mean(axis=0)).T @ (second - second.mean(axis=0)) / len(pairs), len(pairs)


@pytest.mark.parametrize("distance", [1, 3])
def test_norms_are_those_of_the_matrix_pair_by_pair(distance):
    rng = np.random.default_rng(0)
    rows = np.cumsum(rng.integers(0, 2, (6, 50)), axis=1) % 5
    rows[2, 20] = -1
    found = token_correlations(rows, [distance], 5)
    C, pairs = direct(rows, distance, 5)
    assert found.pairs[0] == pairs
    assert found.operator_norm[0] == pytest.approx(np.linalg.norm(C, 2))
    # the subtracted contribution is of order 1 / pairs
    assert found.rms[0] ** 2 == pytest.approx(np.mean(C**2) - found.floor[0] ** 2, rel=0.1)


@pytest.mark.parametrize("pairs", [60, 400])
def test_the_mean_square_has_no_bias(pairs):
    """Compare with the exact correlation of a joint law of two tokens."""
    rng = np.random.default_rng(1)
    joint = rng.dirichlet(np.full(9, 0.5)).reshape(3, 3)
    C = joint - np.outer(joint.sum(axis=1), joint.sum(axis=0))
    squares, raw = [], []
    for _ in range(3000):
        drawn = rng.choice(9, size=pairs, p=joint.ravel())
        rows = np.column_stack([drawn // 3, drawn % 3])
        found = token_correlations(rows, [1], 3)
        squares.append(found.rms[0] ** 2)
        raw.append(np.mean(direct(rows, 1, 3)[0] ** 2) if len(raw) < 300 else np.nan)
    error = np.std(squares) / np.sqrt(3000)
    # estimated marginals leave a bias of order C² / pairs
    assert abs(np.mean(squares) - np.mean(C**2)) < 4 * error + 3 * np.mean(C**2) / pairs
    assert np.nanmean(raw) > np.mean(C**2)


def test_sampling_floor_of_independent_tokens():
    rng = np.random.default_rng(2)
    V, P = 16, 4000
    squares = []
    for _ in range(60):
        rows = rng.integers(0, V, (P, 2))
        found = token_correlations(rows, [1], V)
        squares.append(np.mean(direct(rows, 1, V)[0] ** 2))
    assert np.sqrt(np.mean(squares)) == pytest.approx(found.floor[0], rel=0.02)
    # 1 / (V² P) for equally frequent tokens, up to terms of order 1 / V
    assert found.floor[0] == pytest.approx((1 - 1 / V) / np.sqrt(V**2 * P), rel=0.01)
    assert found.rms[0] < 0.5 * found.floor[0]


def test_plateaus_of_a_grammar():
    # ((1 - f) / (V³ m^(2l - 1)))^(1/2), mean over 12 grammars, two levels
    V, m = 32, 8
    squares = []
    for seed in range(12):
        grammar = RandomHierarchy(vocabulary=V, rules=m, depth=3, ensemble="uniform", seed=seed)
        leaves, _ = grammar.sample(100_000, seed)
        squares.append(
            [token_correlations(leaves[:, [-1 - t, -1]], [1], V).rms[0] ** 2 for t in (1, 2, 3)]
        )
    level = np.array([1, 2, 2])
    expected = (1 - m / V) / (V**3 * m ** (2 * level - 1.0))
    np.testing.assert_allclose(np.mean(squares, axis=0), expected, rtol=0.15)


@pytest.mark.parametrize(
    ("tokens", "words"),
    [
        (np.array([0.5, 1.0]), "whole numbers"),
        (np.array([0, 3, 1]), "reach from 0 to 3"),
        (np.array([0, -2, 1]), "reach from -2"),
        (np.array([0, -1, 1]), "fewer than two pairs"),
        ([[0, 1], [0]], "rows of different lengths"),
        (None, "whole numbers"),
    ],
)
def test_invalid_tokens(tokens, words):
    with pytest.raises(InvalidData, match=words):
        token_correlations(tokens, [1], 3)


@pytest.mark.parametrize(
    ("distances", "vocabulary"), [([], 2), ([0], 2), ("a", 2), (None, 2), ([1], 1), ([1], "a")]
)
def test_invalid_distances_and_vocabularies(distances, vocabulary):
    with pytest.raises(InvalidParameter, match="allowed"):
        token_correlations(np.array([0, 1, 0, 1]), distances, vocabulary)


def test_one_distance_is_a_sequence_of_one():
    tokens = np.tile([0, 1, 1], 50)
    one, several = (token_correlations(tokens, t, 2) for t in (2, [2]))
    assert one.rms.tolist() == several.rms.tolist()
    assert one.distances.tolist() == [2]
