"""Folds contain every row once, classes evenly, and copies together."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvable.learn.folds import (
    deal_folds,
    deal_groups,
    identical_rows,
    nested_rows,
    training_sizes,
)


@settings(max_examples=60)
@given(st.integers(2, 8), st.integers(8, 80), st.integers(2, 4), st.integers(0, 99))
def test_folds_are_even_in_every_class(n_folds, rows, n_classes, seed):
    classes = np.random.default_rng(seed).integers(n_classes, size=rows)
    folds = deal_folds(n_folds, np.arange(rows), classes, seed=seed)
    sizes = np.bincount(folds, minlength=n_folds)
    assert sizes.sum() == rows
    assert sizes.max() - sizes.min() <= 1
    for one in range(n_classes):
        mine = np.bincount(folds[classes == one], minlength=n_folds)
        assert mine.max() - mine.min() <= 1


def test_a_class_of_two_is_in_the_training_rows_of_every_fold():
    classes = np.array([0] * 30 + [1] * 2)
    for seed in range(20):
        folds = deal_folds(5, np.arange(32), classes, seed=seed)
        assert folds[30] != folds[31]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "classes", [np.repeat(np.arange(20), 3), np.repeat([0, 1, 2], [30, 28, 2])]
)
def test_groups_with_classes_of_fewer_rows_than_folds(classes):
    groups = np.random.default_rng(0).permutation(np.repeat(np.arange(20), 3))
    folds = deal_groups(5, groups, classes, seed=0)
    assert set(folds) == set(range(5))
    for group in range(20):
        assert len(set(folds[groups == group])) == 1


@given(st.lists(st.integers(0, 6), min_size=8, max_size=40), st.integers(0, 99))
def test_copies_are_tested_together(values, seed):
    X = np.array(values, dtype=float)[:, None]
    groups = identical_rows(X)
    assert np.array_equal(X[groups], X)
    folds = deal_folds(3, groups, None, seed=seed)
    for value in set(values):
        assert len(set(folds[np.array(values) == value])) == 1


def test_the_two_zeros_are_the_same():
    assert identical_rows(np.array([[0.0], [-0.0]])).tolist() == [0, 0]


@given(st.integers(1, 5000), st.integers(5, 60))
def test_sizes_of_a_curve(rows, smallest):
    sizes = training_sizes(rows, smallest=smallest)
    assert sizes[-1] == rows
    assert list(sizes) == sorted(set(sizes))
    assert len(sizes) == 1 or sizes[0] >= smallest - 1
    assert len(sizes) <= 6


@pytest.mark.parametrize("stratified", [True, False])
def test_training_sets_are_nested_and_in_proportion(stratified):
    classes = np.repeat([0, 1], [60, 20])
    rows = np.arange(3, 80)
    found = nested_rows(rows, [8, 20, 40], classes if stratified else None, key=(0, 1))
    assert set(found[8]) < set(found[20]) < set(found[40]) < set(rows.tolist())
    if stratified:
        for size, part in found.items():
            assert abs(np.mean(classes[part]) - np.mean(classes[rows])) < 1.5 / size
    assert not np.array_equal(found[20], nested_rows(rows, [20], classes, key=(0, 2))[20])
