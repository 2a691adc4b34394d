"""Scores of documents and the nDCG of rankings."""

from __future__ import annotations

import numpy as np
import pytest

from solvable.arrays import random_stream
from solvable.errors import InvalidData
from solvable.models.late_interaction.scoring import maxsim, ndcg, pooled


def test_pooled_score_is_the_score_of_the_mean_token() -> None:
    """The pooled score equals MaxSim with each document replaced by its mean token."""
    rng = random_stream(0, "pooled")
    queries, documents = rng.standard_normal((5, 3, 7)), rng.standard_normal((5, 2, 6, 7))
    factor = rng.standard_normal((4, 7))
    means = documents.mean(axis=2, keepdims=True)
    np.testing.assert_allclose(
        pooled(queries, documents, factor), maxsim(queries, means, factor), atol=1e-12
    )


def test_negative_similarities_are_kept() -> None:
    """The score of a single token of similarity -0.5 is -0.5."""
    score = maxsim(np.array([[[1.0, 0.0]]]), np.array([[[[-0.5, 3.0]]]]), np.array([[1.0, 0.0]]))
    np.testing.assert_allclose(score, [[-0.5]])


def test_depth_of_the_ranking() -> None:
    """A relevant document below the depth gains nothing."""
    scores = -np.arange(5.0)[None]
    assert ndcg(scores, np.array([2]), depth=3)[0] == pytest.approx(1 / 2)
    assert ndcg(scores, np.array([2]), depth=2)[0] == pytest.approx(0)


def test_shapes_that_do_not_fit() -> None:
    """Wrong shapes are refused with all shapes in the message."""
    with pytest.raises(InvalidData, match=r"\(5, 3, 7\)"):
        maxsim(np.ones((5, 3, 7)), np.ones((5, 2, 6, 8)), np.ones((4, 7)))
    with pytest.raises(InvalidData, match="shape"):
        pooled(np.ones((5, 7)), np.ones((5, 2, 6, 7)), np.ones((4, 7)))
    with pytest.raises(InvalidData, match="finite"):
        ndcg(np.array([[np.nan, 1.0]]), np.array([0]))
    with pytest.raises(InvalidData, match="shape"):
        ndcg(np.ones((2, 3)), np.array([0]))
