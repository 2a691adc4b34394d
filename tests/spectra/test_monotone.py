"""Monotone cubic interpolation against SciPy's."""

from __future__ import annotations

import numpy as np
from scipy.interpolate import PchipInterpolator

from solvable.spectra._monotone import monotone_cubic


def test_it_is_that_of_scipy() -> None:
    rng = np.random.default_rng(0)
    for table in (rng.standard_normal(9), rng.standard_normal((30, 3)), rng.random(20).cumsum()):
        x = rng.random(len(table)).cumsum()
        at = np.concatenate([rng.uniform(x[0], x[-1], 100), x[[0, 3, -1]]])
        found = monotone_cubic(x, table, at)
        np.testing.assert_allclose(found, PchipInterpolator(x, table)(at), atol=1e-12)
        np.testing.assert_array_equal(monotone_cubic(x, table, at.reshape(1, -1))[0], found)
