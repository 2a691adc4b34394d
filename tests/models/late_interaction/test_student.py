"""Tests of the student's losses: exact gradients, chunks, normalisations, Adam."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from solvable.errors import InvalidData, InvalidParameter
from solvable.models.late_interaction import scoring
from solvable.models.late_interaction.student import (
    Adam,
    contrastive_gradient,
    distillation_gradient,
    normalised,
    score,
)

B, N, QUERY, DOCUMENT, D, K = 7, 3, 4, 5, 6, 3
SCORES = ("multi-vector", "dense")


def batch(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Draw W, queries, documents and scores of a teacher in float64."""
    rng = np.random.default_rng(seed)
    shapes = ((K, D), (B, QUERY, D), (B, N, DOCUMENT, D), (B, N))
    factor, queries, documents, teacher = (rng.standard_normal(shape) for shape in shapes)
    return factor, queries, documents, teacher


def differences(loss, factor: np.ndarray, step: float = 1e-6) -> np.ndarray:
    """Central differences of a loss in each entry of W."""
    result = np.empty_like(factor)
    for place in np.ndindex(factor.shape):
        shift = np.zeros_like(factor)
        shift[place] = step
        result[place] = (loss(factor + shift) - loss(factor - shift)) / (2 * step)
    return result


@pytest.mark.parametrize("scores", SCORES)
@pytest.mark.parametrize("temperature", [0.3, 2.0])
def test_contrastive_gradient_against_differences(scores: str, temperature: float):
    factor, queries, documents, _ = batch()
    options = {"scores": scores, "temperature": temperature}
    found = contrastive_gradient(factor, queries, documents, **options)[1]
    expected = differences(
        lambda W: contrastive_gradient(W, queries, documents, **options)[0], factor
    )
    assert_allclose(found, expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("scores", SCORES)
@pytest.mark.parametrize("normalisation", ["standard", "min-max", "none"])
def test_distillation_gradient_against_differences(scores: str, normalisation: str):
    factor, queries, documents, teacher = batch(1)
    options = {"scores": scores, "temperature": 0.5, "normalisation": normalisation}
    found = distillation_gradient(factor, queries, documents, teacher, **options)[1]
    expected = differences(
        lambda W: distillation_gradient(W, queries, documents, teacher, **options)[0], factor
    )
    assert_allclose(found, expected, rtol=1e-5, atol=1e-7)


def test_contrastive_loss_by_its_definition():
    factor, queries, documents, _ = batch(2)
    sets = documents.reshape(B * N, DOCUMENT, D) @ factor.T
    s = np.array([[(q @ factor.T @ d.T).max(axis=1).sum() for d in sets] for q in queries]) / 0.7
    expected = np.mean(np.log(np.exp(s).sum(axis=1)) - s[np.arange(B), N * np.arange(B)])
    loss, _ = contrastive_gradient(
        factor, queries, documents, scores="multi-vector", temperature=0.7
    )
    assert_allclose(loss, expected, rtol=1e-12)


@pytest.mark.parametrize("scores", SCORES)
def test_scores_equal_those_of_the_teacher(scores: str):
    factor, queries, documents, _ = batch(3)
    found, _ = score((queries @ factor.T)[:, None], documents @ factor.T, scores)
    reference = scoring.pooled if scores == "dense" else scoring.maxsim
    assert_allclose(found[:, 0], reference(queries, documents, factor), rtol=1e-12)


@pytest.mark.parametrize("scores", SCORES)
@pytest.mark.parametrize("chunk", [1, 3, 16, 48])
def test_chunks_change_neither_loss_nor_gradient(scores: str, chunk: int):
    """Acceptance check 1: equal to 1e-5, in the precision of training."""
    rng = np.random.default_rng(4)
    queries = rng.standard_normal((48, QUERY, D)).astype(np.float32)
    documents = rng.standard_normal((48, 2, DOCUMENT, D)).astype(np.float32)
    factor = rng.standard_normal((K, D)).astype(np.float32)
    options = {"scores": scores, "temperature": 0.5}
    loss, gradient = contrastive_gradient(factor, queries, documents, **options)
    in_chunks = contrastive_gradient(factor, queries, documents, chunk=chunk, **options)
    assert gradient.dtype == np.float32
    assert_allclose(in_chunks[0], loss, rtol=1e-5)
    assert np.linalg.norm(in_chunks[1] - gradient) < 1e-5 * np.linalg.norm(gradient)


def test_accumulated_small_batches_are_another_objective():
    """Acceptance check 1: negatives of other chunks are missing."""
    rng = np.random.default_rng(5)
    queries, documents = rng.standard_normal((48, 4, 30)), rng.standard_normal((48, 1, 8, 30))
    factor = rng.standard_normal((16, 30)) / np.sqrt(30)
    options = {"scores": "multi-vector", "temperature": 0.5}
    whole = contrastive_gradient(factor, queries, documents, **options)[1]
    parts = [
        contrastive_gradient(factor, queries[k : k + 8], documents[k : k + 8], **options)[1]
        for k in range(0, 48, 8)
    ]
    small = np.mean(parts, axis=0)
    cosine = np.sum(small * whole) / np.linalg.norm(small) / np.linalg.norm(whole)
    assert cosine < 0.95


def test_gradient_does_not_scale_with_the_batch():
    """A batch with every query and document twice has the gradient of the single one."""
    factor, queries, documents, teacher = batch(6)
    options = {"scores": "multi-vector", "temperature": 0.5}
    single = distillation_gradient(factor, queries, documents, teacher, **options)[1]
    doubled = (np.concatenate([a, a]) for a in (queries, documents, teacher))
    assert_allclose(distillation_gradient(factor, *doubled, **options)[1], single, rtol=1e-12)


def test_equal_tokens_of_a_document_share_the_gradient():
    factor, queries, documents, _ = batch(7)
    options = {"scores": "multi-vector", "temperature": 0.5}
    twice = np.concatenate([documents, documents], axis=2)
    assert_allclose(
        contrastive_gradient(factor, queries, twice, **options)[1],
        contrastive_gradient(factor, queries, documents, **options)[1],
        rtol=1e-10,
    )


def test_distillation_has_its_minimum_at_the_teacher():
    factor, queries, documents, _ = batch(8)
    teacher = scoring.maxsim(queries, documents, factor)
    for normalisation in ("standard", "min-max", "none"):
        loss, gradient = distillation_gradient(
            factor, queries, documents, teacher, scores="multi-vector", temperature=0.5,
            normalisation=normalisation,
        )  # fmt: skip
        assert abs(loss) < 1e-12
        assert_allclose(gradient, 0, atol=1e-12)


def test_min_max_has_range_one_and_standard_scores_have_variance_one():
    scores = batch(9)[3]
    ranged, standard = normalised(scores, "min-max")[0], normalised(scores, "standard")[0]
    assert_allclose([ranged.min(axis=1), ranged.max(axis=1)], [[0] * B, [1] * B], atol=1e-6)
    assert_allclose([standard.mean(axis=1), standard.var(axis=1)], [[0] * B, [1] * B], atol=1e-6)


def test_equal_scores_have_finite_gradients():
    factor, queries, documents, teacher = batch(10)
    for normalisation in ("standard", "min-max"):
        loss, gradient = distillation_gradient(
            np.zeros_like(factor), queries, documents, teacher, scores="dense", temperature=1.0,
            normalisation=normalisation,
        )  # fmt: skip
        assert np.isfinite(loss)
        assert np.isfinite(gradient).all()


def test_adam_follows_its_schedule():
    """With a constant gradient every step has the size of the learning rate."""
    adam = Adam(0.5, steps=20)
    places = [np.zeros(1)]
    for _ in range(20):
        places.append(adam.step(places[-1], np.ones(1)))
    rates = np.minimum.reduce([np.full(20, 1.0), np.arange(1, 21) / 2, 1 - np.arange(20) / 20])
    assert_allclose(-np.diff(np.concatenate(places)), 0.5 * rates, rtol=1e-6)


def test_adam_minimises_a_quadratic_function():
    adam, place = Adam(0.1, steps=400), np.array([1.0, -2.0])
    for _ in range(400):
        place = adam.step(place, place * [1.0, 100.0])
    assert_allclose(place, 0, atol=1e-3)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"scores": "sparse"}, InvalidParameter, "scores"),
        ({"temperature": 0.0}, InvalidParameter, "temperature is 0.0"),
        ({"temperature": np.nan}, InvalidParameter, "temperature is nan"),
        ({"normalisation": "sum"}, InvalidParameter, "normalisation"),
        ({"teacher": np.ones((B, N + 1))}, InvalidData, "scores of the teacher"),
        ({"queries": np.ones((B + 1, QUERY, D))}, InvalidData, "allowed"),
        ({"factor": np.ones((K, D + 1))}, InvalidData, "allowed"),
    ],
)
def test_errors(change: dict, error: type[Exception], words: str):
    factor, queries, documents, teacher = batch()
    arguments = {"factor": factor, "queries": queries, "documents": documents, "teacher": teacher}
    options = {"scores": "dense", "temperature": 1.0}
    with pytest.raises(error, match=words):
        distillation_gradient(**{**arguments, **options, **change})
