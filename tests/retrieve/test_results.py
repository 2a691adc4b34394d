"""Requests, plans, the answer of a run, and paired differences of pipelines."""

from __future__ import annotations

import numpy as np
import pytest

from solvable.errors import InvalidParameter
from solvable.retrieve.request import (
    PIPELINES,
    TrainRequest,
    check_pipelines,
    stage_name,
    stages,
)
from solvable.retrieve.results import START, Measured, Trained


def trained(gain, seeds=3, scatter=0.3, lexical=0.0):
    """Return results in which c exceeds b by `gain` on average, with shared noise of the queries."""
    rng = np.random.default_rng(0)
    queries = 0.4 + scatter * rng.standard_normal(400)
    measured = []
    for seed in range(seeds):
        for stage in (START, *map(stage_name, stages(("b", "c")))):
            added = gain * stage.startswith("multi") + 0.02 * rng.standard_normal(400)
            ndcg = {"in domain": queries + added}
            measured.append(Measured(stage, seed, ndcg, 100))
    return Trained(
        "pairs",
        (),
        TrainRequest(seeds=seeds),
        ("b", "c"),
        tuple(measured),
        {"in domain": {"bm25": queries + lexical, "model": queries - 1, "hybrid": queries - 1}},
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


def test_no_difference_is_claimed_without_one():
    found = trained(0.0)
    assert not found.differences()[0].is_one
    (alone,) = trained(0.01, seeds=1).differences()
    assert alone.interval.lower > 0
    assert not alone.is_one
    assert "needs 2 seeds" in alone.sentence()


@pytest.mark.parametrize(
    ("gain", "lexical", "best", "change"),
    [
        (0.1, 0.0, "c: multi U", "Training improved the student: +0.1"),
        (0.1, 0.3, "BM25", "Training improved the student: +0.1"),
        (-0.1, 0.3, "BM25", "Training did not improve the student: −0."),
        (-0.1, -0.2, "untrained, multi", "Training did not improve the student: −0."),
    ],
)
def test_the_answer_names_the_best_row_of_the_table(gain, lexical, best, change):
    # The start gains nothing; stages of c gain, and those of b do once they are multi-vector.
    found = trained(gain, lexical=lexical)
    for one in found.measured:
        if not one.stage.startswith(("multi", START)):
            one.ndcg["in domain"] -= 0.3
    assert found.answer().startswith(f"Best in domain: {best}")
    assert change in found.answer()
    assert ("An index without --model" in found.answer()) == (best == "BM25")


def test_a_gain_within_the_scatter_is_no_improvement():
    assert "Training hardly changed the student: +0.00" in trained(0.0005).answer()


def test_results_are_json_without_nan():
    import json

    content = trained(0.01).to_dict()
    again = json.loads(json.dumps(content, allow_nan=False))
    assert again["differences"][0]["is_a_difference"] is True
    assert again["differences"][0]["interval"] == list(trained(0.01).differences()[0].interval)
    assert len(content["stages"]) == 7  # untrained, two beginnings, and what follows them


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"student": "statik"}, "Did you mean 'static'"),
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
