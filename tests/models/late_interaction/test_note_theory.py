"""Acceptance checks 3, 4, 5, 6, 7 and 14 of late interaction (docs/derivations/late-interaction.md)."""

from __future__ import annotations

import numpy as np
import pytest
from retrieval_simulations import measured_overlaps, simulated_gain

from solvable.arrays import random_stream
from solvable.models.late_interaction.labels import label_factors
from solvable.models.late_interaction.maxima import max_moments
from solvable.models.late_interaction.overlaps import predict_late_interaction
from solvable.models.late_interaction.parameters import LabelKind
from solvable.models.late_interaction.scoring import maxsim, ndcg
from solvable.models.late_interaction.teacher import LateInteractionTeacher, label_weights
from solvable.models.late_interaction.theory import (
    gradient_gain,
    pooled_fraction,
    score_variance,
)


def test_check_3_stein_identity() -> None:
    """E[s q d^T] = L_q S at d = 30, L_q = 4, L_d = 8, lambda = 1/k, r = 6, n = 200,000."""
    teacher = LateInteractionTeacher(dimension=30, rank=6, decay=1.0)
    n, total, square = 200_000, np.zeros((30, 30)), 0.0
    mean = (
        4
        * max_moments(8).mean
        * np.linalg.norm(
            random_stream(0, "norms").standard_normal((10**6, 6)) * teacher.strengths, axis=1
        ).mean()
    )
    for sample in teacher.chunks(n, candidates=1, rng=random_stream(0, "stein")):
        centred = sample.scores - mean
        square += float((centred**2).sum())
        summed = centred * sample.documents[:, 0].sum(axis=1)
        total += sample.queries.sum(axis=1).T @ summed
    found, S = total / n, teacher.kernel
    norm = np.linalg.norm(S)
    assert 0.95 < float((found * S).sum()) / (4 * norm**2) < 1.05
    error = np.linalg.norm(found - 4 * S) / (4 * norm)
    noise = np.sqrt(30**2 * square / n * 4 * 8 / n) / (4 * norm)
    assert error == pytest.approx(noise, rel=0.1)


@pytest.mark.parametrize(
    ("document_tokens", "equal", "power_law", "single"),
    [
        (4, 0.490, 0.366, 0.297),
        (8, 0.310, 0.235, 0.177),
        (16, 0.209, 0.149, 0.116),
        (32, 0.120, 0.096, 0.066),
        (64, 0.075, 0.054, 0.042),
    ],
)
def test_check_4_pooled_fraction(
    document_tokens: int, equal: float, power_law: float, single: float
) -> None:
    """A table that was simulated at d = 30 and L_q = 4, within 0.02."""
    for strengths, expected in (
        (np.ones(30), equal),
        (np.arange(1, 7) ** -1.0, power_law),
        (np.ones(1), single),
    ):
        fraction = pooled_fraction(
            strengths=strengths, query_tokens=4, document_tokens=document_tokens
        )
        assert fraction == pytest.approx(expected, abs=0.02)


def test_check_4_variance_of_the_largest_of_eight() -> None:
    """Var max of 8 normal numbers is 0.3729."""
    assert max_moments(8).variance == pytest.approx(0.3729, abs=1e-4)


OVERLAPS = np.array([0.993, 0.978, 0.951, 0.919])
"""Simulated overlaps at d = 100, K = 8, n = 10,000 and lambda = 1/k of rank 4."""


def test_check_5_predicted_overlaps() -> None:
    """The prediction is within 0.01 of the table, and within 0.03 of 1 - n_k / n."""
    teacher = LateInteractionTeacher(dimension=100, rank=4, decay=1.0)
    prediction = predict_late_interaction(teacher, candidates=8, queries=10_000)
    np.testing.assert_allclose(prediction.squared_overlap, OVERLAPS, atol=0.01)
    leading = 1 - prediction.threshold_queries / 10_000
    np.testing.assert_allclose(prediction.squared_overlap, leading, atol=0.03)


@pytest.mark.slow
def test_check_5_measured_overlaps() -> None:
    """Six seeds of the estimator are within 0.02 of the table, and within 0.03 of 1 - n_k / n."""
    teacher = LateInteractionTeacher(dimension=100, rank=4, decay=1.0)
    found, error = measured_overlaps(teacher, candidates=8, queries=10_000, label="scores", reps=6)
    np.testing.assert_allclose(found, OVERLAPS, atol=0.02)
    prediction = predict_late_interaction(teacher, candidates=8, queries=10_000)
    np.testing.assert_allclose(found, 1 - prediction.threshold_queries / 10_000, atol=0.03)
    assert np.all(np.abs(found - prediction.squared_overlap) < 0.005 + 3 * error)


def test_check_6_worth_of_labels() -> None:
    """Queries per unit of squared signal, relative to scores: 3.2, 5.6 and above 30 at K = 8."""
    kinds: tuple[LabelKind, ...] = ("top-1", "random-negative", "runner-up")
    best = label_factors("scores", 8).queries
    plain = [label_factors(kind, 8).queries / best for kind in kinds]
    np.testing.assert_allclose(plain, [3.02, 5.29, 42.9], rtol=0.002)
    worth = [
        label_factors(kind, 8, query_tokens=4, document_tokens=8).queries / best for kind in kinds
    ]
    assert worth[0] == pytest.approx(3.2, abs=0.5)
    assert worth[1] == pytest.approx(5.6, abs=0.8)
    assert worth[2] > 30
    # Simulation with S = I in 30 dimensions: mean and noise of <M, S>, the noise of all entries.
    n, signals = 20_000, dict.fromkeys(("scores", *kinds), 0.0)
    noises = signals.copy()
    rng = random_stream(0, "worth")
    for _ in range(n // 1000):
        queries, documents = (
            rng.standard_normal((1000, 4, 30)),
            rng.standard_normal((1000, 8, 8, 30)),
        )
        scores = maxsim(queries, documents, np.eye(30))
        q, sums = queries.sum(axis=1), documents.sum(axis=2)
        for kind in signals:
            e = np.einsum("nc,ncd->nd", label_weights(scores, kind, rng), sums)
            signals[kind] += float((q * e).sum()) / n
            noises[kind] += float(((q**2).sum(axis=1) * (e**2).sum(axis=1)).sum()) / n
    needed = {kind: noises[kind] / signals[kind] ** 2 for kind in signals}
    measured = [needed[kind] / needed["scores"] for kind in kinds]
    assert measured[0] == pytest.approx(worth[0], abs=0.5)
    assert measured[1] == pytest.approx(worth[1], abs=0.8)
    assert measured[2] > 30


def test_check_7_gain_of_maxsim_gradients() -> None:
    """SNR² of the gradient over that of pooling at L_d = 8, for three students; 20,000 pairs."""
    teacher = LateInteractionTeacher(dimension=30, rank=6, decay=0.5)
    random = random_stream(0, "student").standard_normal((16, 30))
    for factor, low, high in (
        (teacher.factor, 1.5, 2.1),
        (np.eye(30), 0.85, 1.05),
        (random, 0.0, 0.75),
    ):
        predicted = gradient_gain(teacher, factor)
        found, error = simulated_gain(teacher, factor, n=20_000)
        assert low < predicted < high
        assert low - 2 * error < found < high + 2 * error
        assert predicted == pytest.approx(found, abs=0.08 + 3 * error)


def test_check_14_ndcg() -> None:
    """One relevant document at rank rho, ties at their mean rank, and a constant scorer."""
    scores = -np.tile(np.arange(12.0), (12, 1))
    found = ndcg(scores, np.arange(12))
    expected = [1 / np.log2(rank + 2) if rank < 10 else 0 for rank in range(12)]
    np.testing.assert_allclose(found, expected)
    tied = np.array([[5.0, 3.0, 3.0, 3.0, 1.0]])
    np.testing.assert_allclose(ndcg(tied, np.array([1])), 1 / np.log2(2 + 2))
    constant = ndcg(np.zeros((60, 60)), np.arange(60))
    np.testing.assert_allclose(constant, 0)


def test_noise_of_the_first_moment() -> None:
    """The variance sigma² and the thresholds of a teacher with d = 30 and decay 1/2."""
    teacher = LateInteractionTeacher(dimension=30, rank=6, decay=0.5)
    variance = score_variance(strengths=teacher.strengths, query_tokens=4, document_tokens=8)
    assert variance == pytest.approx(4.75, rel=0.05)
    thresholds = predict_late_interaction(teacher, candidates=8, queries=300).threshold_queries
    np.testing.assert_allclose(thresholds, [20, 41, 61, 81, 102, 122], rtol=0.05)
