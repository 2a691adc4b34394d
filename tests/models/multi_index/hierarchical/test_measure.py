"""One replicate of the hierarchical model: metrics against theory, and invalid parameters."""

from __future__ import annotations

import numpy as np
import pytest

from solvable.errors import InvalidParameter
from solvable.models.multi_index.hierarchical.measure import measure
from solvable.models.multi_index.hierarchical.parameters import HierarchicalParameters
from solvable.models.multi_index.overlaps import predict_spectral

KEYS = {
    "squared_overlap", "subspace_error", "message_passing_error", "risk", "eigenvalues", "bulk_edge",
    "gradient_overlap", "estimator_overlap",
}  # fmt: skip


def replicates(count=3, **settings):
    parameters = HierarchicalParameters(**settings)
    rng = np.random.default_rng(7)
    return parameters, [measure(parameters, rng) for _ in range(count)]


def mean(rows, key):
    return np.mean([row[key] for row in rows], axis=0)


@pytest.mark.parametrize(
    "settings",
    [
        {"link": "abs", "features": 5, "decay": 1.2, "sample_ratio": 40},
        {"link": "cos(z)", "features": 4, "noise": 0.2, "sample_ratio": 25},
        {"link": "cosmix", "label_map": "square", "features": 2, "noise": 0.1, "sample_ratio": 120},
        {"link": "he2", "label_map": "optimal", "features": 5, "sample_ratio": 40},
        {"link": "relu", "label_map": "identity", "features": 4, "sample_ratio": 60},
    ],
    ids=lambda settings: settings["link"],
)
def test_numbers_are_those_of_the_theory(settings):
    parameters, rows = replicates(dimension=300, **settings)
    assert all(row.keys() == KEYS for row in rows)
    theory = predict_spectral(
        parameters.channel.pair_moments,
        label_map=parameters.label_map,
        sample_ratio=parameters.sample_ratio,
        dimension=300,
    )
    clear = theory.squared_overlap > 0.6
    assert clear.any()
    overlaps = mean(rows, "squared_overlap")
    np.testing.assert_allclose(overlaps[clear], theory.squared_overlap[clear], atol=0.05)
    first = [row["eigenvalues"][0] for row in rows]
    assert np.mean(first) == pytest.approx(theory.eigenvalues[0], rel=0.08)
    edges = np.abs(theory.bulk_edges)
    assert min(abs(abs(row["bulk_edge"]) - edge) for row in rows for edge in edges) < 0.1 * max(
        edges
    )
    a = np.array(parameters.channel.amplitudes)
    np.testing.assert_allclose(mean(rows, "subspace_error"), a**2 @ (1 - overlaps), rtol=1e-9)


def test_features_at_the_lower_edge_have_the_lower_edge_as_reference():
    _, rows = replicates(1, dimension=200, link="cos(z)", features=3, sample_ratio=30)
    assert rows[0]["eigenvalues"][0] < rows[0]["bulk_edge"] < 0


def test_the_risk_is_that_of_the_mean_without_features_and_falls_with_samples():
    _, none = replicates(1, dimension=100, features=3, sample_ratio=0.4)
    _, many = replicates(1, dimension=100, features=3, sample_ratio=300)
    power = np.sum(np.arange(1.0, 4) ** -2)
    assert none[0]["risk"] > 0.7 * power
    assert many[0]["risk"] < 0.03 * power
    _, neurons = replicates(1, dimension=100, features=3, sample_ratio=300, readout="relu")
    assert many[0]["risk"] < neurons[0]["risk"] < 0.15 * power
    _, directions = replicates(1, dimension=100, features=3, readout="none")
    assert directions[0]["risk"] is None


def test_numbers_depend_on_the_stream_alone():
    parameters = HierarchicalParameters(dimension=60, features=3)
    first, again, other = (measure(parameters, np.random.default_rng(s)) for s in (1, 1, 2))
    assert first == again
    assert first["squared_overlap"] != other["squared_overlap"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"features": 200}, "fewer features than dimensions"),
        ({"sample_ratio": 0.01}, "at least 4 samples"),
        ({"deflation": 1, "readout": "none"}, "residuals are those of a readout"),
        ({"deflation": 1, "label_map": "optimal"}, "another channel"),
        ({"features": 80, "dimension": 300}, "up to 64 features"),
        ({"link": "cos("}, "does not parse"),
        ({"link": "0*z"}, "constant"),
        ({"noise": -1}, "from 0"),
        ({"label_map": "cube"}, "label_map"),
    ],
    ids=str,
)
def test_parameters_out_of_range(settings, message):
    with pytest.raises(InvalidParameter, match=message):
        HierarchicalParameters(**settings)
