"""The hierarchy of labels: products, different functions, invalid sizes."""

import numpy as np
import pytest

from solvable.errors import InvalidData, InvalidParameter, MemoryLimitExceeded
from solvable.models.hierarchy.labels.target import LabelHierarchy


def test_labels_are_products_of_the_inputs_in_their_bits():
    target = LabelHierarchy(dimension=12, depth=4, labels=9, seed=3)
    X, Y = target.sample(50, np.random.default_rng(0))
    for inputs, column in zip(np.concatenate(target.inputs_of[1:]), Y.T, strict=True):
        used = [k for k in range(12) if int(inputs) >> k & 1]
        np.testing.assert_array_equal(column, X[:, used].prod(axis=1))


def test_a_label_is_the_product_of_two_labels_of_the_level_below():
    target = LabelHierarchy(dimension=10, depth=3, labels=7)
    X, Y = target.sample(40, 1)
    levels = [X, *np.split(Y, 3, axis=1)]
    for below, level, pairs in zip(levels, levels[1:], target.parts, strict=False):
        for (first, second), column in zip(pairs, level.T, strict=True):
            assert first != second
            np.testing.assert_array_equal(column, below[:, first] * below[:, second])


@pytest.mark.parametrize("seed", range(5))
def test_labels_of_a_level_are_different_and_not_constant(seed):
    target = LabelHierarchy(dimension=6, depth=5, labels=8, seed=seed)
    for level, inputs in enumerate(target.inputs_of[1:], start=1):
        assert np.unique(inputs).size == 8
        assert (inputs != 0).all()
        assert max(int(x).bit_count() for x in inputs) <= 2**level


def test_all_products_of_two_inputs_can_be_labels():
    target = LabelHierarchy(dimension=5, depth=1, labels=10)
    assert np.unique(target.inputs_of[1]).size == 10
    with pytest.raises(InvalidParameter, match="level 1 has only 10 different products"):
        LabelHierarchy(dimension=5, depth=1, labels=11)


def test_inputs_are_fair_and_independent_signs():
    X, _ = LabelHierarchy().sample(20_000, 0)
    moments = X.T @ X / len(X) - np.eye(20)
    assert sorted(map(int, np.unique(X))) == [-1, 1]
    assert np.abs(X.mean(axis=0)).max() < 4 / np.sqrt(len(X))
    assert np.abs(moments).max() < 4.5 / np.sqrt(len(X))


@pytest.mark.parametrize(
    "wrong",
    [
        {"dimension": 61},
        {"depth": 0},
        {"depth": 10**9},
        {"labels": 0},
        {"seed": -1},
        {"seed": None},
    ],
)
def test_sizes_out_of_range(wrong):
    with pytest.raises(InvalidParameter, match="allowed"):
        LabelHierarchy(**wrong)


@pytest.mark.parametrize(
    ("X", "words"),
    [
        (np.ones((3, 19)), r"allowed: \(n, 20\)"),
        (np.ones(20), r"allowed: \(n, 20\)"),
        (np.full((3, 20), 0.5), "allowed: -1 and 1"),
        (np.full((3, 20), np.nan), "allowed: -1 and 1"),
        (np.full((3, 20), "a"), "allowed: -1 and 1"),
        ([[1], [1, 1]], "rows of different lengths"),
        (None, r"allowed: \(n, 20\)"),
    ],
)
def test_inputs_that_are_no_signs_of_this_dimension(X, words):
    with pytest.raises(InvalidData, match=words):
        LabelHierarchy().labels_of(X)


@pytest.mark.parametrize(("n", "rng"), [(3, None), (3, -1), (0, 0), (3, "a")])
def test_impossible_samples(n, rng):
    with pytest.raises(InvalidParameter, match="allowed"):
        LabelHierarchy().sample(n, rng)


def test_samples_beyond_memory():
    with pytest.raises(MemoryLimitExceeded, match="GB; allowed"):
        LabelHierarchy().sample(10**14, 0)
