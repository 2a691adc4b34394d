"""Tests of the claims' functions on made records."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from solvable.arrays import random_stream
from solvable.frame.points import Point
from solvable.models.late_interaction.claims import CLAIMS, predicted_signal, worth
from solvable.models.late_interaction.figures import true_eigenvalues
from solvable.models.late_interaction.measure import measure
from solvable.models.late_interaction.parameters import LateInteractionParameters
from solvable.models.late_interaction.predict import predict


def made(metrics: dict[str, Any], **settings) -> Point:
    """Build a point whose replicates scatter a little around these metrics."""
    setting = LateInteractionParameters(**settings)
    rows = [
        {name: value * (1 + 0.002 * k) for name, value in metrics.items()} for k in range(-3, 4)
    ]
    return Point(setting.model_dump(), rows, predict(setting), setting)


def verdict(name: str, *points: Point) -> str:
    """Judge one claim without the test of its power."""
    claim = next(claim for claim in CLAIMS if claim.name == name)
    return claim.verdict(points).status


def test_worth_of_labels_is_the_squared_ratio_of_signals():
    scores = made({"signal_to_noise": 2.0}, label="scores")
    other = made({"signal_to_noise": 1.0}, label="top-1")
    measured, expected = worth("top-1")([scores, other])
    assert_allclose(measured, np.log(4.0))
    # Labels by rank weaken the directions a little differently: the worth is a mean of these ratios.
    ratios = other.predicted("threshold_queries") / scores.predicted("threshold_queries")
    assert np.log(ratios.min()) < expected < np.log(ratios.max())
    assert worth("runner-up")([scores, other]) is None


def test_predicted_signal_to_noise_against_a_simulation():
    """The ratio of two numbers of tokens: the common factor d^(-1/2) cancels."""
    settings = [LateInteractionParameters(queries=3_000, document_tokens=L) for L in (4, 16)]
    measured, expected = (
        [function(setting) for setting in settings]
        for function in (
            lambda s: np.mean([measure(s, random_stream(k))["signal_to_noise"] for k in range(3)]),
            lambda s: predicted_signal(made({}, **s.model_dump())),
        )
    )
    assert_allclose(measured[0] / measured[1], expected[0] / expected[1], rtol=0.05)


@pytest.mark.parametrize(
    ("name", "right", "wrong", "settings"),
    [
        ("pooled-fraction", {"pooled_fraction": 0.269}, {"pooled_fraction": 0.335}, {}),
        (
            "ceiling-of-pooled-vectors", {"pooled_ndcg": 0.28}, {"pooled_ndcg": 0.2},
            {"pipeline": "b"},
        ),
        (
            "dense-stays-at-the-ceiling", {"ndcg": 0.24}, {"ndcg": 0.4},
            {"pipeline": "dense", "queries": 4_000},
        ),
    ],
)  # fmt: skip
def test_claims_hold_and_fail(name: str, right: dict, wrong: dict, settings: dict):
    assert verdict(name, made(right, **settings)) == "holds"
    assert verdict(name, made(wrong, **settings)) == "fails"


def test_eigenvalues_of_the_teacher_have_trace_one():
    point = made({"start_eigenvalues": np.ones(16)}, rank=3, decay=1.0)
    found = true_eigenvalues(point)
    assert_allclose(found[0, :3], np.array([1, 1 / 2, 1 / 3]) / (11 / 6))
    assert np.isnan(found[:, 3:]).all()
