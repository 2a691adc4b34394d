"""Sums over shards."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvable.errors import InvalidParameter
from solvable.operators import HermiteFeatures, MomentOperator
from solvable.operators.shards import ShardSum


def shards_of(cuts: list[int], correction: Any, degree: int = 2) -> tuple[MomentOperator, ShardSum]:
    rng = np.random.default_rng(0)
    X, T = rng.standard_normal((50, 4)), rng.standard_normal(50)
    features = HermiteFeatures(degree, 4)
    edges = [0, *sorted(cuts), 50]
    parts = [
        MomentOperator(X[low:high], T[low:high], features, correction=correction)
        for low, high in pairwise(edges)
    ]
    return MomentOperator(X, T, features, correction=correction), ShardSum(parts)


@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.integers(1, 49), unique=True, max_size=5),
    st.sampled_from(["none", "wick"]),
    st.sampled_from([1, 2, 3]),
)
def test_sum_is_exact_to_rounding(cuts: list[int], correction: Any, degree: int) -> None:
    # Weights are not centred on a shard, nor over all: the mean enters each operator.
    whole, total = shards_of(cuts, correction, degree)
    size = whole.features.n_features
    U = np.random.default_rng(1).standard_normal((size, 3))
    scale = np.abs(whole.matmat(U)).max()
    np.testing.assert_allclose(total.matmat(U), whole.matmat(U), atol=1e-12 * scale)
    np.testing.assert_allclose(total.dense(), whole.dense(), atol=1e-12 * scale)
    np.testing.assert_allclose(total.weighted_norms, whole.weighted_norms, rtol=1e-12, atol=1e-14)
    for name, value in vars(whole.statistics).items():
        assert getattr(total.statistics, name) == pytest.approx(value, rel=1e-11, abs=1e-14)
    blocks = [block for block, _ in total.blocks(7)]
    np.testing.assert_array_equal(np.concatenate(blocks), whole.source.array)


def test_products_are_counted_once() -> None:
    _, total = shards_of([10, 30], "none")
    total.matmat(np.ones((10, 2)))
    assert total.products == 2
    assert total.shape == (10, 10)
    assert total.n_samples == 50
    assert total.itemsize == 8


def test_shards_must_agree() -> None:
    whole, _ = shards_of([], "none")
    other, _ = shards_of([], "wick")
    with pytest.raises(InvalidParameter, match="at least one"):
        ShardSum([])
    with pytest.raises(InvalidParameter, match="shards differ"):
        MomentOperator.sum_of_shards([whole, other])
    with pytest.raises(InvalidParameter, match="shards differ"):
        MomentOperator.sum_of_shards([whole, shards_of([], "none", degree=1)[0]])
