"""Parameters and predicted metrics of the system."""

from __future__ import annotations

import numpy as np
import pytest

from solvable.errors import InvalidParameter
from solvable.frame.parameters import check_limits
from solvable.models.late_interaction.parameters import LateInteractionParameters
from solvable.models.late_interaction.predict import chance, predict


def test_fixed_names() -> None:
    """Names of parameters and of metrics, with the length of the lists."""
    names = (
        "dimension", "rank", "decay", "query_tokens", "document_tokens", "candidates", "queries",
        "label", "pipeline",
    )  # fmt: skip
    assert set(names) <= set(LateInteractionParameters.model_fields)
    metrics = predict(LateInteractionParameters(rank=3))
    assert len(metrics["squared_overlap"]) == len(metrics["threshold_queries"]) == 3
    assert 0 < metrics["pooled_fraction"] < 1
    assert metrics["ndcg"] is None


def test_trained_pipelines_have_no_predicted_overlaps() -> None:
    """Overlaps are those of the spectral estimator, which a pipeline is not."""
    metrics = predict(LateInteractionParameters(pipeline="c"))
    assert metrics["squared_overlap"] is None
    assert metrics["pooled_ndcg"] == pytest.approx(0.29, abs=0.01)


def test_chance_level() -> None:
    """Random directions, single or in a span, and a random ranking."""
    parameters = LateInteractionParameters(dimension=20, rank=4, decay=1.0)
    metrics = chance(parameters, {})
    np.testing.assert_allclose(metrics["squared_overlap"], [1 / 20] * 4)
    equal = chance(parameters.model_copy(update={"decay": 0.0}), {})
    np.testing.assert_allclose(equal["squared_overlap"], [4 / 20] * 4)
    ranks = np.arange(60)
    gains = np.where(ranks < 10, 1 / np.log2(ranks + 2), 0).mean()
    assert metrics["ndcg"] == pytest.approx(gains)


def test_predictions_have_no_limit_of_size() -> None:
    """Sizes that are refused for a measurement are predicted."""
    large = LateInteractionParameters(
        dimension=10_000, rank=4, candidates=128, document_tokens=256, queries=10**7
    )
    with pytest.raises(InvalidParameter, match="queries"):
        check_limits(large)
    metrics = predict(large)
    assert np.all(np.array(metrics["squared_overlap"]) > 0.9)


def test_rank_above_half_of_the_dimension() -> None:
    """The message names both numbers and the largest allowed rank."""
    with pytest.raises(InvalidParameter, match="rank is 6 and dimension is 10"):
        LateInteractionParameters(dimension=10, rank=6)
