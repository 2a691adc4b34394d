"""Targets and columns in any unit give the same error, or one line with the allowed range."""

from __future__ import annotations

import numpy as np
import pytest

from solvable.data import load
from solvable.data_verbs import learn_features
from solvable.errors import InvalidData


def problem():
    rng = np.random.default_rng(21)
    X = rng.standard_normal((60, 3))
    return X, X @ [1.0, -0.5, 0.0] + 0.1 * rng.standard_normal(60)


def saved(path, X, y):
    np.savez(path, X=X, y=y)
    return path


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """Result of learning in units of order one."""
    path = saved(tmp_path_factory.mktemp("plain") / "a.npz", *problem())
    return learn_features(path, folds=2, workers=1)


@pytest.mark.parametrize(("unit", "column"), [(1e40, 1.0), (1e-40, 1.0), (1.0, 1e20), (1.0, 1e-40)])
def test_the_unit_does_not_matter(tmp_path, plain, unit, column):
    X, y = problem()
    X[:, 0] *= column
    other = learn_features(saved(tmp_path / "b.npz", X, unit * y), folds=2, workers=1)
    np.testing.assert_allclose(other.learned.error, plain.learned.error, rtol=1e-3)


@pytest.mark.parametrize("unit", [1e70, -1e200, 1.7e307, 1e-300])
def test_a_target_beyond_double_precision_is_refused(tmp_path, unit):
    X, y = problem()
    with pytest.raises(InvalidData, match=r"another unit|constant"):
        learn_features(saved(tmp_path / "a.npz", X, unit * y), folds=2, workers=1)


@pytest.mark.parametrize("unit", [1e35, 1e250, 1e-80, 1e-280])
def test_a_column_beyond_single_precision_is_named(tmp_path, unit):
    X, y = problem()
    X[:, 1] *= unit
    with pytest.raises(InvalidData, match=r"'x1' (holds|has) .* another unit"):
        load(saved(tmp_path / "a.npz", X, y))
