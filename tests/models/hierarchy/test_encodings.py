"""Vectors of symbols."""

from __future__ import annotations

import numpy as np
import pytest

from solvable.errors import InvalidData, InvalidParameter
from solvable.models.hierarchy.encodings import one_hot, tuple_symbols
from solvable.models.hierarchy.target import RandomHierarchy


def test_plain_vectors_are_rows_of_the_identity():
    X = np.array([[0, 2], [1, -1]], dtype=np.int8)
    vectors = one_hot(X, 4, standardise=False)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors[0], [[1, 0, 0, 0], [0, 0, 1, 0]])
    np.testing.assert_allclose(vectors[1], [[0, 1, 0, 0], [0.5, 0.5, 0.5, 0.5]])


@pytest.mark.parametrize("vocabulary", [2, 5, 32])
def test_standardised_vectors_are_centred_with_unit_norm(vocabulary):
    X = np.arange(vocabulary)[None]
    vectors = one_hot(X, vocabulary, dtype=np.float64)[0]
    np.testing.assert_allclose(vectors.sum(axis=1), 0, atol=1e-12)
    np.testing.assert_allclose((vectors**2).sum(axis=1), 1)
    # entry of the symbol itself: (1 - 1/V) / sqrt(1 - 1/V)
    np.testing.assert_allclose(np.diag(vectors), np.sqrt(1 - 1 / vocabulary))


def test_the_vector_of_a_masked_leaf_is_orthogonal_to_the_symbols():
    vectors = one_hot(np.array([[0, 1, 2, -1]]), 3, dtype=np.float64)[0]
    np.testing.assert_allclose(vectors[:3] @ vectors[3], 0, atol=1e-12)
    np.testing.assert_allclose(vectors[3] @ vectors[3], 1)


def test_strings_are_encoded_for_networks():
    target = RandomHierarchy(3, 2, 2, 2)
    X, _ = target.sample(5, rng=0)
    vectors = target.encode(X, "standardised", channels_first=True)
    assert vectors.shape == (5, 3, 4)
    np.testing.assert_allclose(vectors[2, 1], one_hot(X, 3)[2, :, 1])
    tuples = target.encode(X, "tuples")
    np.testing.assert_array_equal(tuples.argmax(axis=2), 3 * X[:, ::2] + X[:, 1::2])
    with pytest.raises(InvalidParameter, match="encoding is"):
        target.encode(X, "embedding")


def test_tuples_are_numbered_in_base_v():
    X = np.array([[2, 1, 0, 3], [1, -1, 3, 3]])
    np.testing.assert_array_equal(tuple_symbols(X, 4, 2), [[9, 3], [-1, 15]])


@pytest.mark.parametrize("X", [[[0, 4]], [[-2, 0]], [[0.0, 1.0]], [["a", "b"]]])
def test_other_symbols_are_refused(X):
    with pytest.raises(InvalidData, match=r"allowed: integers from 0 to 3"):
        one_hot(np.array(X), 4)
