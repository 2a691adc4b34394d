"""nDCG of the pooled teacher."""

from __future__ import annotations

import numpy as np
import pytest

from solvable.arrays import random_stream
from solvable.errors import InvalidParameter
from solvable.models.late_interaction.ranking import pooled_ndcg
from solvable.models.late_interaction.scoring import ndcg, pooled
from solvable.models.late_interaction.teacher import LateInteractionTeacher


@pytest.mark.parametrize(
    "teacher",
    [
        LateInteractionTeacher(),
        LateInteractionTeacher(dimension=40, rank=40, decay=0.0, document_tokens=4),
        LateInteractionTeacher(query_tokens=1, rank=3, decay=1.0, document_tokens=16),
    ],
    ids=str,
)
def test_simulated_ranking(teacher: LateInteractionTeacher) -> None:
    """Documents ranked by the pooled score of the true kernel."""
    rng = random_stream(0, "ranking")
    gains = np.concatenate(
        [
            ndcg(
                pooled(sample.queries, sample.documents, teacher.factor),
                sample.scores.argmax(axis=1),
            )
            for sample in teacher.chunks(1_000, candidates=60, rng=rng)
        ]
    )
    found, error = gains.mean(), gains.std() / np.sqrt(gains.size)
    assert pooled_ndcg(teacher, documents=60) == pytest.approx(found, abs=0.02 + 2 * error)


def test_ends_of_the_range_of_lengths() -> None:
    """The nDCG falls with the length of documents, from near 1 towards that of chance."""
    gains = [
        pooled_ndcg(LateInteractionTeacher(document_tokens=length), documents=60)
        for length in (2, 16, 128, 1024)
    ]
    assert np.all(np.diff(gains) < 0)
    assert gains[0] > 0.5
    chance = (1 / np.log2(np.arange(10) + 2)).sum() / 60
    assert chance < gains[-1] < chance + 0.03
    pair = LateInteractionTeacher(document_tokens=2)
    assert 0.9 < pooled_ndcg(pair, documents=2) < 1


def test_values_out_of_range() -> None:
    """Too few documents are refused."""
    with pytest.raises(InvalidParameter, match="documents"):
        pooled_ndcg(LateInteractionTeacher(), documents=1)
    with pytest.raises(InvalidParameter, match="depth"):
        pooled_ndcg(LateInteractionTeacher(), documents=3, depth=0)
