"""Tests of MaxSim and pooled scores of token sets, and of the nDCG."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from solvable.errors import InvalidData
from solvable.models.late_interaction.scoring import (
    TokenSets,
    maxsim,
    maxsim_matrix,
    ndcg,
    pooled,
)


def token_sets(seed: int, n: int, dimension: int = 6, most: int = 9) -> list[np.ndarray]:
    """Draw n sets of different sizes; the shift makes most similarities negative for half of them."""
    rng = np.random.default_rng(seed)
    return [rng.standard_normal((rng.integers(1, most + 1), dimension)) - (k % 2) for k in range(n)]


def padded(sets: list[np.ndarray], width: int, filler: float) -> tuple[np.ndarray, np.ndarray]:
    """Pad sets with a constant; return the array and its mask."""
    array = np.full((len(sets), width, sets[0].shape[1]), filler)
    mask = np.zeros((len(sets), width), dtype=bool)
    for row, tokens in enumerate(sets):
        array[row, : len(tokens)] = tokens
        mask[row, : len(tokens)] = True
    return array, mask


def by_definition(queries: list[np.ndarray], documents: list[np.ndarray]) -> np.ndarray:
    """Scores by two loops over sets."""
    return np.array([[(q @ d.T).max(axis=1).sum() for d in documents] for q in queries])


def test_scores_are_sums_of_maxima_for_sets_of_any_size():
    queries, documents = token_sets(0, 40), token_sets(1, 700, most=40)
    expected = by_definition(queries, documents)
    assert (expected < 0).any()
    assert_allclose(maxsim_matrix(queries, documents), expected, rtol=1e-5, atol=1e-4)


def test_more_tokens_than_a_chunk():
    queries, documents = token_sets(2, 3, most=700), token_sets(3, 4, most=3000)
    assert_allclose(
        maxsim_matrix(queries, documents), by_definition(queries, documents), rtol=1e-5, atol=1e-3
    )


@pytest.mark.parametrize("width", [9, 10, 37])
@pytest.mark.parametrize("filler", [0.0, 1e6, -1e6])
def test_padding_never_changes_a_score(width: int, filler: float):
    """Acceptance check 2, with fillers that would win or lose every maximum."""
    queries, documents = token_sets(4, 11), token_sets(5, 30)
    plain = maxsim_matrix(queries, documents)
    scores = maxsim_matrix(
        TokenSets.of(*padded(queries, width, filler)),
        TokenSets.of(*padded(documents, width, filler)),
    )
    assert_allclose(scores, plain, atol=1e-5)


def test_one_negative_token_and_padding():
    """Acceptance check 2: similarity -0.5 and a pad give -0.5, not 0."""
    document = TokenSets.of(np.array([[[-0.5, 0.0], [0.0, 0.0]]]), mask=np.array([[True, False]]))
    assert_allclose(maxsim_matrix([np.array([[1.0, 0.0]])], document), [[-0.5]])


def test_a_query_scored_alone_or_in_a_batch_has_the_same_score():
    queries, documents = token_sets(6, 20), token_sets(7, 50)
    whole = maxsim_matrix(queries, documents)
    for k in (0, 7, 19):
        assert_allclose(maxsim_matrix([queries[k]], documents)[0], whole[k], atol=1e-5)


def test_tokens_in_half_precision_are_scored_in_single_precision():
    documents = TokenSets.of([tokens.astype(np.float16) for tokens in token_sets(8, 5)])
    scores = maxsim_matrix(token_sets(9, 3), documents)
    assert scores.dtype == np.float32
    assert np.isfinite(scores).all()


def test_scores_of_candidates_equal_those_of_sets():
    rng = np.random.default_rng(10)
    queries, documents = rng.standard_normal((3, 4, 6)), rng.standard_normal((3, 5, 7, 6))
    factor = rng.standard_normal((2, 6))
    scores = maxsim(queries, documents, factor)
    for row in range(3):
        by_sets = maxsim_matrix(queries[row : row + 1] @ factor.T, documents[row] @ factor.T)
        assert_allclose(scores[row], by_sets[0], rtol=1e-4)


def test_pooled_scores_are_products_of_sums_and_means():
    rng = np.random.default_rng(11)
    queries, documents = rng.standard_normal((3, 4, 6)), rng.standard_normal((3, 5, 7, 6))
    factor = rng.standard_normal((2, 6))
    query, document = (TokenSets.of(a.reshape(-1, *a.shape[-2:])) for a in (queries, documents))
    vectors = 4 * query.means() @ factor.T, document.means() @ factor.T
    expected = (vectors[0] @ vectors[1].T)[np.arange(3)[:, None], np.arange(15).reshape(3, 5)]
    assert_allclose(pooled(queries, documents, factor), expected, rtol=1e-10)


def test_pooled_score_is_the_score_of_the_mean_token():
    rng = np.random.default_rng(13)
    queries, documents = rng.standard_normal((5, 3, 7)), rng.standard_normal((5, 2, 6, 7))
    factor = rng.standard_normal((4, 7))
    means = documents.mean(axis=2, keepdims=True)
    assert_allclose(pooled(queries, documents, factor), maxsim(queries, means, factor), atol=1e-12)


def test_means_of_ragged_sets():
    sets = token_sets(12, 8)
    assert_allclose(TokenSets.of(sets).means(), [tokens.mean(axis=0) for tokens in sets])


@pytest.mark.parametrize("rank", [0, 1, 9, 10, 30])
def test_ndcg_of_one_relevant_document(rank: int):
    """Acceptance check 14: 1 / log2(rank + 2) for the first ten ranks, else 0."""
    scores = -np.arange(40.0)[None]
    expected = 1 / np.log2(rank + 2) if rank < 10 else 0.0
    assert_allclose(ndcg(scores, np.array([rank])), [expected])
    gains = (np.arange(40) == rank)[None].astype(float)
    assert_allclose(ndcg(scores, gains), [expected])


def test_ties_take_the_mean_rank():
    """Acceptance check 14: a constant scorer is not rewarded."""
    constant = np.zeros((1, 9))
    for relevant in (np.array([0]), np.eye(9)[:1]):
        assert_allclose(ndcg(constant, relevant), 1 / np.log2(4 + 2))
        assert_allclose(
            ndcg(np.zeros((1, 60)), np.resize(relevant, (1,) if relevant.ndim == 1 else (1, 60))),
            0.0,
        )


def test_ndcg_of_graded_gains():
    scores = np.array([[5.0, 4.0, 3.0, 2.0]])
    gains = np.array([[0.0, 3.0, 1.0, 0.0]])
    reached = 3 / np.log2(3) + 1 / np.log2(4)
    assert_allclose(ndcg(scores, gains), reached / (3 + 1 / np.log2(3)))


def test_ndcg_at_another_depth():
    scores = np.array([[3.0, 2.0, 1.0]])
    assert_allclose(ndcg(scores, np.array([1]), depth=1), [0.0])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: TokenSets.of([np.ones((2, 3)), np.ones((0, 3))]), "set 1 has no token"),
        (lambda: TokenSets.of([]), "0 sets"),
        (lambda: TokenSets(np.ones((3, 2)), np.array([1, 1])), "add up to 2"),
        (lambda: TokenSets.of(np.ones((2, 3, 4)), np.ones((2, 2))), "allowed: .n, L, d. and"),
        (lambda: TokenSets.of(np.ones((2, 3))), "allowed: .n, L, d. and"),
        (lambda: maxsim_matrix([np.ones((1, 2))], [np.ones((1, 3))]), "equally many"),
        (lambda: maxsim(np.ones((2, 1, 3)), np.ones((3, 4, 1, 3)), np.ones((2, 3))), "allowed"),
        (lambda: ndcg(np.ones((2, 3)), np.array([0])), "allowed"),
        (lambda: ndcg(np.array([[np.nan, 1.0]]), np.array([0])), "finite"),
        (lambda: ndcg(np.ones((1, 3)), np.zeros((1, 3))), "no relevant document"),
        (lambda: ndcg(np.ones((1, 3)), np.array([3])), "indices"),
    ],
)
def test_errors(call, words: str):
    with pytest.raises(InvalidData, match=words):
        call()
