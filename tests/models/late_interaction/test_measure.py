"""Tests of the measured metrics: spectral estimator, pipelines, budgets, pairing."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from solvable.arrays import random_stream
from solvable.models.late_interaction import measure as module
from solvable.models.late_interaction.measure import draw_teacher, measure, score_readings, teacher
from solvable.models.late_interaction.parameters import LateInteractionParameters
from solvable.models.late_interaction.predict import predict
from solvable.models.late_interaction.scoring import maxsim, ndcg

SMALL = {"supervised_queries": 100, "distillation_queries": 60, "queries": 200}


def measured(seeds: int, **settings) -> dict[str, np.ndarray]:
    """Metrics of several replicates, stacked."""
    rows = [
        measure(LateInteractionParameters(**settings), random_stream(seed, "late"))
        for seed in range(seeds)
    ]
    known = {name for name, value in rows[0].items() if value is not None}
    return {name: np.array([row[name] for row in rows], dtype=float) for name in known}


def test_the_stored_teacher_is_the_measured_one():
    parameters = LateInteractionParameters()
    drawn = draw_teacher(parameters, random_stream(3))
    stored = teacher(parameters, random_stream(3))
    assert_allclose(stored["directions"], drawn.directions)
    assert_allclose(stored["strengths"], np.arange(1, 7) ** -0.5)


def test_pooled_fraction_is_that_of_a_regression():
    """The part of the variance within queries that the best multiple of the pooled score explains."""
    parameters = LateInteractionParameters(queries=2_000)
    found = measure(parameters, random_stream(0))["pooled_fraction"]
    target = draw_teacher(parameters, random_stream(1))
    sample = target.sample(2_000, candidates=8, rng=5)
    sums = sample.queries.sum(axis=1), sample.documents.sum(axis=2)
    x = np.einsum("nd,de,nce->nc", sums[0], target.kernel, sums[1])
    x, s = (v - v.mean(axis=1, keepdims=True) for v in (x, sample.scores))
    slope = np.sum(x * s) / np.sum(x * x)
    expected = 1 - np.sum((s - slope * x) ** 2) / np.sum(s**2)
    assert abs(found - expected) < 0.02  # two samples of standard error about 0.006 each


@pytest.mark.parametrize("label", ["scores", "top-1"])
def test_thresholds_estimated_from_the_moment_matrix(label: str):
    settings = {"queries": 4_000, "label": label, "rank": 3, "decay": 1.0}
    found = measured(6, **settings)["threshold_queries"]
    error = found.std(axis=0, ddof=1) / np.sqrt(6)
    expected = predict(LateInteractionParameters(**settings))["threshold_queries"]
    assert (np.abs(found.mean(axis=0) - expected) < 0.08 * np.array(expected) + 3 * error).all()


def test_chance_level_of_the_signal_to_noise_ratio(monkeypatch: pytest.MonkeyPatch):
    """With labels of another query the ratio is that of a random direction, of size n^(-1/2)."""
    real = module.label_weights
    monkeypatch.setattr(
        module, "label_weights", lambda s, label, rng: np.roll(real(s, label, rng), 1, axis=0)
    )
    ratio = measured(10, queries=500)["signal_to_noise"]
    assert np.abs(ratio).max() < 4 / np.sqrt(500)


@pytest.mark.parametrize(
    ("pipeline", "total", "maxima"),
    [("dense", 0, 0), ("a", 2_400, 0), ("b", 2_400, 900), ("c", 2_400, 1_500)],
)
def test_costs_and_stages_of_a_pipeline(pipeline: str, total: int, maxima: int):
    found = measured(1, pipeline=pipeline, **SMALL)
    # 3 x 200 positives, 3 x 100 x (1 + 2) and 5 x 60 x 8 documents
    assert found["phase_documents"][0].tolist() == [0, 600, 1_500, 3_900]
    assert found["documents"][0] == 3_900
    assert found["multi_vector_documents"][0] == total + maxima
    assert found["phase_ndcg"][0, -1] == found["ndcg"][0]
    assert ("gain" in found) == (pipeline != "dense")
    assert ("first_phase_gain" in found) == (pipeline == "c")
    for stage in ("start", "unsupervised", "supervised", "distillation"):
        assert_allclose(found[f"{stage}_eigenvalues"].sum(), 1)
        assert (np.diff(found[f"{stage}_eigenvalues"][0]) <= 1e-12).all()


def test_the_gain_is_the_lead_over_the_simpler_pipeline_on_the_same_data():
    """Phases before the last are those of the dense pipeline; only the last phase of a differs."""
    found = measured(1, pipeline="a", **SMALL)
    other = measured(1, pipeline="dense", **SMALL)
    assert_allclose(found["phase_ndcg"][0, :3], other["phase_ndcg"][0, :3])
    assert_allclose(found["gain"], found["ndcg"] - other["ndcg"], atol=1e-12)


def test_effective_rank_and_cosine_of_known_kernels():
    parameters = LateInteractionParameters(rank=4, decay=0.0)
    target = draw_teacher(parameters, random_stream(2))
    student = module.Checkpoint(target.factor, 0, 0)
    found = module._spectra(target, [student] * 4)
    assert_allclose(found["effective_rank"], 4)
    assert_allclose(found["kernel_cosine"], 1)


def test_readings_of_the_teacher_have_the_largest_ndcg():
    target = draw_teacher(LateInteractionParameters(), random_stream(4))
    readings = {"maxsim": (target.factor, "multi-vector"), "dense": (target.factor, "dense")}
    found = score_readings(target, readings, np.random.default_rng(0))
    assert_allclose(found["maxsim"], 1)
    assert 0.2 < found["dense"] < 0.35


def test_chance_level_of_a_random_kernel_is_that_of_random_ranks():
    target = draw_teacher(LateInteractionParameters(document_tokens=2), random_stream(5))
    rng = np.random.default_rng(1)
    sample = target.sample(4_000, candidates=20, rng=7)
    scores = maxsim(sample.queries, rng.permuted(sample.documents, axis=0), target.factor)
    found = ndcg(scores, sample.scores.argmax(axis=1))
    expected = np.sum(1 / np.log2(np.arange(10) + 2)) / 20
    assert abs(found.mean() - expected) < 4 * found.std() / np.sqrt(4_000)
