"""Requests, plans, paired differences of pipelines, and spectra with planted directions."""

from __future__ import annotations

import numpy as np
import pytest

from solvable.errors import InvalidParameter
from solvable.retrieve.phases import PIPELINES, stage_name, stages
from solvable.retrieve.request import TrainRequest, check_pipelines
from solvable.retrieve.results import Trained
from solvable.retrieve.seed_runs import START, Measured
from solvable.retrieve.spectrum import Spectrum, effective_rank, kernel_eigenvalues, moment_spectrum

BLANK = Spectrum([2.0, 1.0], 1.8, [1.0, 0.1], 0.5, 1)


def trained(gain, seeds=3, scatter=0.3):
    """Return results in which c exceeds b by `gain` on average, with shared noise of the queries."""
    rng = np.random.default_rng(0)
    queries = 0.4 + scatter * rng.standard_normal(400)
    measured = []
    for seed in range(seeds):
        for stage in (START, *map(stage_name, stages(("b", "c")))):
            added = gain * stage.startswith("multi") + 0.02 * rng.standard_normal(400)
            ndcg = {"in domain": queries + added}
            measured.append(Measured(stage, seed, ndcg, BLANK, 100, 1.0))
    return Trained(
        "pairs",
        (),
        TrainRequest(seeds=seeds),
        ("b", "c"),
        tuple(measured),
        {"in domain": queries},
        "f",
        {},
    )


def test_a_paired_difference_is_found_below_the_scatter_of_queries():
    (found,) = trained(0.01).differences()
    assert (found.first, found.second) == ("c", "b")
    assert found.interval.lower < 0.01 < found.interval.upper
    # The scatter of queries alone would give a standard error of 0.015.
    assert found.interval.upper - found.interval.lower < 0.005
    assert found.is_one
    assert "same sign in 3 of 3 seeds: a difference" in found.sentence()
    assert "Multi-vector pre-training is worth it here" in trained(0.01).answer()


def test_no_difference_is_claimed_without_one():
    found = trained(0.0)
    assert not found.differences()[0].is_one
    assert "is not decided here" in found.answer()
    (alone,) = trained(0.01, seeds=1).differences()
    assert alone.interval.lower > 0
    assert not alone.is_one
    assert "needs 2 seeds" in alone.sentence()
    # All stages of these results have 100 documents: b has spent them in its dense phase.
    assert (found.multi_documents("b"), found.multi_documents("c")) == (0, 100)


def test_results_are_json_without_nan():
    import json

    content = trained(0.01).to_dict()
    assert json.loads(json.dumps(content, allow_nan=False)) == content
    assert content["differences"][0]["is_a_difference"] is True
    assert len(content["stages"]) == 7  # untrained, two beginnings, and what follows them


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"student": "statik"}, "Did you mean 'static'"),
        ({"prompts": "all"}, "prompts is 'all'"),
        ({"batch": 4}, "batch is 4; allowed: whole numbers from 8 to 16,384"),
        ({"distilled": 3}, "distilled is 3; allowed: whole numbers from 32"),
    ],
)
def test_requests_out_of_range_are_refused(options, message):
    with pytest.raises(InvalidParameter, match=message):
        TrainRequest(**options)


def test_pipelines_share_their_beginnings():
    assert check_pipelines(("b", "b")) == ("b",)
    assert check_pipelines(()) == ("dense", "a", "b", "c")
    with pytest.raises(InvalidParameter, match="pipeline is 'd'"):
        check_pipelines(("d",))
    found = stages(tuple(PIPELINES))
    assert len(found) == len(set(found)) == 9
    for place, stage in enumerate(found):
        assert stage[:-1] == () or stage[:-1] in found[:place]


def test_the_edge_separates_planted_directions():
    rng = np.random.default_rng(3)
    shared = rng.standard_normal((2000, 40)) * np.where(np.arange(40) < 5, 1.0, 0.0)
    q, d = (shared + rng.standard_normal((2000, 40)) for _ in range(2))
    values, edge = moment_spectrum(q, d)
    assert (values > edge).sum() == 5
    np.testing.assert_allclose(values[:5], 1.0, atol=0.2)
    # Permuted pairs have at most one eigenvalue beyond the largest of five other permutations.
    values, edge = moment_spectrum(q, d[rng.permutation(2000)])
    assert (values > edge).sum() <= 1


def test_kernels_are_measured_in_whitened_coordinates():
    rng = np.random.default_rng(4)
    mixing = rng.standard_normal((6, 6))
    tokens = rng.standard_normal((50_000, 6)) @ mixing.T
    # In whitened coordinates this head is a projection on four of them.
    head = np.linalg.inv(mixing)[:4]
    values = kernel_eigenvalues(head, tokens)
    np.testing.assert_allclose(values, 1.0, atol=0.05)
    assert effective_rank(values) == pytest.approx(4, abs=0.02)
