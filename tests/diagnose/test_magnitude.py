"""Norm, largest value and stable rank of matrices with and without a fit."""

from __future__ import annotations

import numpy as np
import pytest

from solvable.diagnose import diagnose_matrix


@pytest.mark.parametrize(
    "weights",
    [
        np.random.default_rng(0).standard_normal((3, 60)),  # too small for a fit
        np.random.default_rng(0).standard_normal((40, 60)),
        np.random.default_rng(0).standard_normal((4, 3, 2, 5)),  # a convolution
        1e200 * np.random.default_rng(0).standard_normal((5, 6)),  # squares overflow
        np.eye(600),  # orthogonal, and large enough for the iterative route
        np.ones((5, 5)),
    ],
    ids=["small", "fitted", "convolution", "large", "orthogonal", "constant"],
)
def test_values_are_those_of_the_decomposition(weights):
    row = diagnose_matrix(weights)
    values = np.linalg.svd(weights.reshape(len(weights), -1), compute_uv=False)
    unit = values[0]
    np.testing.assert_allclose(row.largest, unit, rtol=1e-6)
    np.testing.assert_allclose(row.norm, unit * np.linalg.norm(values / unit), rtol=1e-6)
    np.testing.assert_allclose(row.stable_rank, ((values / unit) ** 2).sum(), rtol=1e-6)


def test_zero_and_damaged_matrices():
    row = diagnose_matrix(np.zeros((40, 50)))
    assert (row.norm, row.largest, row.stable_rank) == (0.0, 0.0, None)
    row = diagnose_matrix(np.full((4, 5), np.nan))
    assert (row.norm, row.largest, row.stable_rank) == (None, None, None)
    assert diagnose_matrix(np.ones(4)).norm is None
