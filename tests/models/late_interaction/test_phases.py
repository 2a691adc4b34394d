"""Tests of phases: data, budgets, pipelines as presets, training."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from solvable.errors import InvalidParameter
from solvable.models.late_interaction import phases
from solvable.models.late_interaction.phases import (
    Phase,
    PhaseData,
    draw_phase,
    draw_phases,
    pipeline_phases,
    train_phase,
    train_phases,
)
from solvable.models.late_interaction.scoring import maxsim
from solvable.models.late_interaction.teacher import LateInteractionTeacher

TEACHER = LateInteractionTeacher(dimension=12, rank=3, query_tokens=3, document_tokens=5)
SIZES = {"queries": 200, "supervised_queries": 90, "distillation_queries": 50}


def test_pipelines_differ_in_the_scores_of_their_phases():
    found = {name: [p.scores for p in pipeline_phases(name)] for name in ("dense", "a", "b", "c")}
    dense, maxima = "dense", "multi-vector"
    assert found == {
        "dense": [dense, dense, dense],
        "a": [dense, dense, maxima],
        "b": [dense, maxima, maxima],
        "c": [maxima, maxima, maxima],
    }
    kinds = [[p.kind for p in pipeline_phases(name)] for name in found]
    assert kinds == [["unsupervised", "supervised", "distillation"]] * 4


@pytest.mark.parametrize("name", ["dense", "a", "b", "c"])
def test_budgets_count_every_encoded_document(name: str, monkeypatch: pytest.MonkeyPatch):
    encoded = dict.fromkeys(("dense", "multi-vector"), 0)

    def counting(function):
        def count(factor, queries, documents, *rest, **options):
            encoded[options["scores"]] += documents.shape[0] * documents.shape[1]
            return function(factor, queries, documents, *rest, **options)

        return count

    for loss in ("contrastive_gradient", "distillation_gradient"):
        monkeypatch.setattr(phases, loss, counting(getattr(phases, loss)))
    last = train_phases(
        TEACHER, pipeline_phases(name, **SIZES), candidates=6, width=4, rng=np.random.default_rng(0)
    )[-1]
    assert last.documents == sum(encoded.values()) == 3 * 200 + 3 * 90 * 3 + 5 * 50 * 6
    assert last.multi_vector_documents == encoded["multi-vector"]


def test_the_number_of_steps_is_that_of_the_batches(monkeypatch: pytest.MonkeyPatch):
    phase = Phase("unsupervised", "dense", 130, epochs=2, batch=64)
    calls = []
    monkeypatch.setattr(
        phases,
        "contrastive_gradient",
        lambda factor, queries, documents, **_: (0.0, calls.append(len(queries)) or factor),
    )
    data = draw_phase(TEACHER, phase, candidates=4, rng=np.random.default_rng(0))
    train_phase(np.ones((2, 12)), phase, data, np.random.default_rng(1))
    assert calls == [64, 64, 2] * 2
    assert len(calls) == phase.steps


def drawn(kind: str, **options) -> tuple[PhaseData, np.ndarray]:
    """Data of a phase, and the teacher's scores of its documents."""
    data = draw_phase(
        TEACHER, Phase(kind, "dense", 3_000, **options), candidates=6, rng=np.random.default_rng(2)
    )
    return data, maxsim(data.queries, data.documents, TEACHER.factor)


def test_weak_positives_are_better_than_chance_but_not_the_best():
    data, scores = drawn("unsupervised")
    assert data.documents.shape[1] == 1
    assert data.scores is None
    sample = TEACHER.sample(3_000, candidates=6, rng=3).scores
    error = scores.std() / np.sqrt(3_000)
    assert scores.mean() > sample.mean() + 5 * error
    assert scores.mean() < sample.max(axis=1).mean() - 5 * error


def test_supervised_positives_are_the_best_and_negatives_are_hard():
    data, scores = drawn("supervised", negatives=3)
    assert (scores[:, :1] >= scores[:, 1:]).all()
    plain = maxsim(data.queries, data.documents, np.eye(12))
    assert (plain[:, 1] >= plain[:, 2]).all()
    assert (plain[:, 2] >= plain[:, 3]).all()
    # Three of five: above the mean of the remaining documents, which includes the two easiest.
    easy = draw_phase(
        TEACHER,
        Phase("supervised", "dense", 3_000, negatives=5),
        candidates=6,
        rng=np.random.default_rng(2),
    )
    rest = maxsim(easy.queries, easy.documents, np.eye(12))[:, 1:]
    assert plain[:, 1:].mean() > rest.mean()


def test_distillation_has_the_scores_of_all_candidates():
    data, scores = drawn("distillation")
    assert data.scores is not None
    assert_allclose(data.scores, scores, rtol=1e-4, atol=1e-4)


def test_pipelines_share_data_start_and_order():
    """Pipelines a, b and dense agree as long as their phases do."""
    found = {
        name: train_phases(
            TEACHER, pipeline_phases(name, **SIZES), width=4, rng=np.random.default_rng(7)
        )
        for name in ("dense", "a", "b", "c")
    }
    for name in ("a", "b", "c"):
        assert_allclose(found[name][0].factor, found["dense"][0].factor)
    assert_allclose(found["a"][2].factor, found["dense"][2].factor)
    assert_allclose(found["b"][1].factor, found["a"][1].factor)
    assert np.abs(found["c"][1].factor - found["b"][1].factor).max() > 0.01
    assert np.abs(found["a"][3].factor - found["dense"][3].factor).max() > 0.01


def test_data_drawn_before_training_are_those_of_training():
    phases_of_b = pipeline_phases("b", **SIZES)
    data = draw_phases(TEACHER, phases_of_b, candidates=8, rng=np.random.default_rng(7))
    found = [
        train_phases(TEACHER, phases_of_b, width=4, rng=np.random.default_rng(7), data=given)
        for given in (None, data)
    ]
    assert_allclose(found[0][-1].factor, found[1][-1].factor)


def test_training_aligns_the_kernel():
    def cosine(factor: np.ndarray) -> float:
        kernel = factor.T @ factor
        return float(
            np.sum(kernel * TEACHER.kernel)
            / np.linalg.norm(kernel)
            / np.linalg.norm(TEACHER.kernel)
        )

    phase = Phase("distillation", "multi-vector", 2_000, 5, 16, 5e-3, 0.5)
    first, last = train_phases(TEACHER, [phase], width=6, rng=np.random.default_rng(3))
    assert cosine(first.factor) < 0.7
    assert cosine(last.factor) > 0.95


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Phase("mixed", "dense", 5), "kind"),
        (lambda: Phase("supervised", "both", 5), "scores"),
        (lambda: Phase("supervised", "dense", 0), "queries is 0"),
        (lambda: Phase("supervised", "dense", 5, batch=0), "batch is 0"),
        (lambda: Phase("supervised", "dense", 5, temperature=0.0), "temperature is 0"),
        (lambda: Phase("unsupervised", "dense", 5, negatives=1), "negatives is 1"),
        (lambda: pipeline_phases("d"), "pipeline"),
        (
            lambda: draw_phase(
                TEACHER,
                Phase("supervised", "dense", 5, negatives=6),
                candidates=6,
                rng=np.random.default_rng(0),
            ),
            "at most 5 negatives",
        ),
    ],
)
def test_errors(call, words: str):
    with pytest.raises(InvalidParameter, match=words):
        call()
