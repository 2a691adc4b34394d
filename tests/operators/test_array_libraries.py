"""Arrays of other libraries: a strict array API, and torch tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from solvable.arrays import to_numpy
from solvable.operators import HermiteFeatures, MomentOperator, leading_eigenpairs

CASES = [(1, 6), (2, 5), (3, 4)]


def compare(xp: Any, degree: int, dimension: int, correction: Any) -> None:
    """Compare every product on arrays of ``xp`` with that on NumPy arrays."""
    rng = np.random.default_rng(0)
    host, T = rng.standard_normal((60, dimension)), rng.standard_normal(60)
    X = xp.asarray(host)
    features = HermiteFeatures(degree, dimension)
    U = rng.standard_normal((features.n_features, 2))
    W = rng.standard_normal((60, 2))
    close = {"atol": 1e-9, "rtol": 1e-9}
    for name, arguments in (
        ("transform", ()),
        ("project", (U,)),
        ("adjoint", (W,)),
        ("squared_norm", ()),
        ("kernel", (host[:3],)),
    ):
        ours = getattr(features, name)(X, *map(xp.asarray, arguments))
        assert type(ours) is type(X), name
        np.testing.assert_allclose(
            to_numpy(ours), getattr(features, name)(host, *arguments), **close
        )
    operator = MomentOperator(X, T, features, correction=correction, chunk_rows=17)
    reference = MomentOperator(host, T, features, correction=correction)
    on_host, there = operator.matmat(U), operator.matmat(xp.asarray(U))
    assert isinstance(on_host, np.ndarray)
    assert type(there) is type(X)
    np.testing.assert_allclose(on_host, reference.matmat(U), **close)
    np.testing.assert_allclose(to_numpy(there), reference.matmat(U), **close)
    np.testing.assert_allclose(operator.dense(), reference.dense(), **close)
    np.testing.assert_allclose(operator.weighted_norms, reference.weighted_norms, **close)
    for route in ("lanczos", "dense"):
        pairs = leading_eigenpairs(operator, 1, 1, route=route, rng=0)  # type: ignore[arg-type]
        expected = np.linalg.eigvalsh(reference.dense())[[-1, 0]]
        np.testing.assert_allclose(pairs.values, expected, rtol=1e-5)


@pytest.mark.parametrize("correction", ["none", "wick"])
@pytest.mark.parametrize(("degree", "dimension"), CASES)
def test_strict_array_api(degree: int, dimension: int, correction: str) -> None:
    compare(pytest.importorskip("array_api_strict"), degree, dimension, correction)


@pytest.mark.torch
@pytest.mark.parametrize("correction", ["none", "wick"])
@pytest.mark.parametrize(("degree", "dimension"), CASES)
def test_torch(degree: int, dimension: int, correction: str) -> None:
    compare(pytest.importorskip("torch"), degree, dimension, correction)


@pytest.mark.torch
def test_torch_in_single_precision_and_dual_form() -> None:
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(1)
    host, T = rng.standard_normal((12, 6)).astype(np.float32), rng.standard_normal(12)
    features = HermiteFeatures(2, 6)
    operator = MomentOperator(torch.asarray(host), T, features)
    reference = MomentOperator(host.astype(np.float64), T, features).dense()
    assert operator.itemsize == 4
    for route in ("lanczos", "dense", "gram"):
        pairs = leading_eigenpairs(operator, 2, 2, route=route, rng=0)  # type: ignore[arg-type]
        expected = np.linalg.eigvalsh(reference)[[-1, -2, 1, 0]]
        np.testing.assert_allclose(pairs.values, expected, rtol=1e-4)
