"""Exact MaxSim and nDCG against sums written out, and the time of MaxSim against its products."""

from __future__ import annotations

import time

import numpy as np
import pytest

from solvable.models.late_interaction.scoring import ndcg
from solvable.retrieve.maxsim import Blocks, maxsim, pack


def vectors(rng, count, longest, dimension=16):
    return [
        rng.standard_normal((int(rng.integers(1, longest + 1)), dimension)).astype(np.float32)
        for _ in range(count)
    ]


def test_scores_are_sums_of_maxima():
    rng = np.random.default_rng(0)
    queries, documents = vectors(rng, 20, 7), vectors(rng, 300, 90)
    plain = [[(q @ d.T).max(axis=1).sum() for d in documents] for q in queries]
    np.testing.assert_allclose(maxsim(queries, documents), plain, atol=1e-4)


def test_padding_never_wins_against_negative_similarities():
    # Check 2 of late interaction: a similarity of -0.5 and any padding give -0.5.
    query = [np.array([[1.0, 0.0]])]
    short, long = np.array([[-0.5, 0.3]]), np.array([[-0.9, 0.1]] * 40)
    np.testing.assert_allclose(maxsim(query, [short, long]), [[-0.5, -0.9]], atol=1e-5)


def test_ndcg_of_one_relevant_document():
    # Check 14 of late interaction: 1 / log2(rank + 2) for ranks 0 to 9; ties at their mean rank.
    scores = -np.arange(20.0)
    for rank in range(20):
        expected = 1 / np.log2(rank + 2) if rank < 10 else 0.0
        assert ndcg(scores[None], np.array([rank]))[0] == pytest.approx(expected)
    assert ndcg(np.zeros((1, 101)), np.array([5]))[0] == pytest.approx(0.0, abs=1e-12)
    assert ndcg(np.zeros((1, 3)), np.array([0]))[0] == pytest.approx(1 / np.log2(3))


def test_maxsim_takes_the_time_of_its_products():
    rng = np.random.default_rng(1)
    rows = rng.standard_normal((60_000, 64)).astype(np.float32)
    starts = np.arange(0, 60_001, 60)
    blocks = Blocks(rows, starts)
    query = rng.standard_normal((16, 64)).astype(np.float32)
    parts = [rows[first : first + 8192] for first in range(0, len(rows), 8192)]

    def seconds(task):
        started = time.process_time()
        task()
        return time.process_time() - started

    # The variants alternate, and the smallest of ten times has the least noise.
    ours, products = zip(
        *(
            (
                seconds(lambda: blocks.scores([query])),
                seconds(lambda: [part @ query.T for part in parts]),
            )
            for _ in range(10)
        ),
        strict=True,
    )
    assert min(ours) < 1.5 * min(products) + 0.002  # 2 ms of Python
    assert pack([query])[1].tolist() == [0, 16]
