"""Eigenvalues with the optimal label map, whose weights have a mean."""

from __future__ import annotations

import numpy as np

from solvable.arrays import random_stream
from solvable.models.multi_index.hierarchical.measure import measure
from solvable.models.multi_index.hierarchical.parameters import HierarchicalParameters
from solvable.models.multi_index.overlaps import predict_spectral


def test_eigenvalues_of_many_features_include_the_mean_weight():
    """Eight features in 50 dimensions: matrices are drawn. Their mean weight is -0.10."""
    parameters = HierarchicalParameters(
        dimension=50, features=8, decay=0.3, link="he2", noise=0.5, label_map="optimal",
        sample_ratio=200,
    )  # fmt: skip
    predicted = predict_spectral(
        parameters.channel.moments, label_map="optimal", sample_ratio=200, dimension=50
    ).eigenvalues
    measured = np.array(
        [measure(parameters, random_stream("optimal map", k))["eigenvalues"] for k in range(10)]
    )
    errors = measured.std(axis=0, ddof=1) / np.sqrt(len(measured))
    # The claim on these eigenvalues allows 5 % for fluctuations at finite d.
    assert (np.abs(measured.mean(axis=0) - predicted) <= 3 * errors + 0.05 * predicted).all()
