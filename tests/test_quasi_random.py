"""Sobol points equal those of SciPy."""

import numpy as np
import pytest
from scipy import special
from scipy.stats import qmc

from solvable.quasi_random import sobol_normals, sobol_points


@pytest.mark.parametrize(
    ("columns", "count", "seed"), [(1, 1, 3), (4, 64, 0), (12, 1_024, 7), (64, 2_048, 1)]
)
def test_points_are_those_of_scipy(columns: int, count: int, seed: int) -> None:
    expected = qmc.Sobol(columns, seed=seed).random(count)
    assert np.abs(sobol_points(columns, count, seed) - expected).max() < 1e-9


def test_normals_are_quantiles_of_points() -> None:
    expected = special.ndtri(qmc.Sobol(4, seed=0).random(512))
    assert np.abs(sobol_normals(4, 512) - expected).max() < 1e-12
