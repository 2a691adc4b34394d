"""Predicted overlaps of the spectral estimator."""

from __future__ import annotations

import numpy as np
import pytest
from retrieval_simulations import measured_overlaps

from solvable.errors import InvalidParameter
from solvable.models.late_interaction.moments import LateMoments
from solvable.models.late_interaction.overlaps import (
    predict_late_interaction,
    predicted_overlaps,
    threshold_queries,
)
from solvable.models.late_interaction.parameters import LabelKind
from solvable.models.late_interaction.teacher import LateInteractionTeacher
from solvable.models.late_interaction.theory import score_variance
from solvable.moment_spectrum.neighbour_mixing import neighbour_mixing
from solvable.spectra.near_semicircle import spiked_overlap


@pytest.mark.parametrize(
    ("teacher", "candidates", "queries", "label", "reps"),
    [
        (LateInteractionTeacher(dimension=30, decay=1.0), 8, 100, "scores", 60),
        (LateInteractionTeacher(dimension=30, decay=1.0), 8, 300, "scores", 40),
        (LateInteractionTeacher(dimension=40, rank=3, decay=0.3), 4, 800, "scores", 30),
        (LateInteractionTeacher(dimension=30, rank=2, decay=0.5), 8, 400, "top-1", 30),
        (LateInteractionTeacher(dimension=25, rank=2, decay=1.0), 5, 600, "random-negative", 30),
        (LateInteractionTeacher(dimension=20, rank=2, decay=0.5), 3, 800, "runner-up", 30),
        (LateInteractionTeacher(dimension=30, rank=3, decay=0.0), 8, 200, "scores", 40),
        (LateInteractionTeacher(dimension=60, rank=4, decay=0.5), 8, 200, "scores", 20),
    ],
    ids=str,
)
def test_measured_overlaps(
    teacher: LateInteractionTeacher, candidates: int, queries: int, label: LabelKind, reps: int
) -> None:
    """Overlaps through the thresholds, for each kind of label, equal strengths included."""
    found, error = measured_overlaps(
        teacher, candidates=candidates, queries=queries, label=label, reps=reps
    )
    expected = predict_late_interaction(
        teacher, candidates=candidates, queries=queries, label=label
    ).squared_overlap
    assert np.all(np.abs(found - expected) < 0.06 + 3 * error), (found, expected, error)


def weak_moments(heights: list[float]) -> LateMoments:
    """Moments of weak labels: noise of independent Gaussian entries."""
    r = len(heights)
    weights = np.array([np.sqrt(2.0)])
    return LateMoments(np.array(heights), 1.0, weights, np.ones(r), np.full((r, r), 1.0))


def test_limit_of_many_queries_per_dimension() -> None:
    """A single direction has the overlap of a spike in a semicircle."""
    n = np.array([4.0e5, 8.0e5, 4.0e6])
    moments = weak_moments([0.05])
    expected = spiked_overlap(
        heights=np.array([0.05]), noise=1.0, aspect_ratio=n / 1_000, n_features=1_000
    )
    found = [predicted_overlaps(moments, dimension=1_001, queries=at, span=False)[0] for at in n]
    np.testing.assert_allclose(found, expected[:, 0], atol=0.01)


def test_mixing_of_two_directions() -> None:
    """Far above the threshold the loss of overlap is the mixing of two levels with noise."""
    heights, n = np.array([1.0, 0.9]), 20_000.0
    moments = weak_moments([1.0, 0.9])
    found = predicted_overlaps(moments, dimension=10, queries=n, span=False)
    whole = predicted_overlaps(moments, dimension=10, queries=n, span=True)
    expected = neighbour_mixing(heights=heights, products=np.ones(1), samples=n)[0]
    np.testing.assert_allclose(whole - found, expected, rtol=0.15)
    closed = 1 / (n * (heights[0] - heights[1]) ** 2)
    assert expected == pytest.approx(closed, rel=0.05)


def test_thresholds_of_scores_in_closed_form() -> None:
    """n_k = d L_d sigma² / (2 L_q (K - 1) lambda_k²): linear in d, and of slope 2a in k."""
    teacher = LateInteractionTeacher(dimension=50, rank=5, decay=0.7)
    prediction = predict_late_interaction(teacher, candidates=6, queries=500)
    variance = score_variance(strengths=teacher.strengths, query_tokens=4, document_tokens=8)
    expected = 50 * 8 * variance / (2 * 4 * 5 * teacher.strengths**2)
    np.testing.assert_allclose(prediction.threshold_queries, expected, rtol=1e-9)
    np.testing.assert_allclose(expected / expected[0], np.arange(1, 6) ** 1.4)
    wide = LateInteractionTeacher(dimension=500, rank=5, decay=0.7)
    more = predict_late_interaction(wide, candidates=6, queries=500)
    np.testing.assert_allclose(more.threshold_queries, 10 * expected)
    # The noise scale s at n_k is the height of direction k.
    scale = prediction.noise_scale * np.sqrt(500 / expected)
    np.testing.assert_allclose(scale, prediction.heights)


def test_ends_of_the_range_of_queries() -> None:
    """Overlaps are those of chance without signal, and 1 with many queries."""
    moments = weak_moments([1e-3, 5e-4])
    few = predicted_overlaps(moments, dimension=400, queries=1_000, span=False)
    np.testing.assert_allclose(few, 1 / 398, rtol=0.4)
    assert threshold_queries(moments, 400)[1] == pytest.approx(400 / 25e-8)
    many = predicted_overlaps(moments, dimension=400, queries=1e13, span=False)
    np.testing.assert_allclose(many, 1, atol=1e-3)


def test_overlaps_rise_with_the_number_of_queries() -> None:
    """The same draws at all numbers of queries give a smooth, increasing first overlap."""
    teacher = LateInteractionTeacher()
    values = [
        predict_late_interaction(teacher, candidates=8, queries=n).squared_overlap[0]
        for n in np.geomspace(40, 4000, 9)
    ]
    assert np.all(np.diff(values) > 0)


def test_values_out_of_range() -> None:
    """Ranks above half of the dimension and no queries are refused."""
    with pytest.raises(InvalidParameter, match="rank is 5"):
        predict_late_interaction(
            LateInteractionTeacher(dimension=8, rank=5), candidates=8, queries=10
        )
    with pytest.raises(InvalidParameter, match="queries"):
        predict_late_interaction(LateInteractionTeacher(), candidates=8, queries=0)
