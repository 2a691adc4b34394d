"""Matrix-free sensors: explicit matrices, adjointness, variance of the indices, streams."""

import numpy as np
import pytest

from solvable.arrays import ArraySource
from solvable.errors import InvalidData
from solvable.operators import sensors as module
from solvable.operators.sensors import TokenSensors, goe_sensors, index_pairs


def explicit(X, T):
    """Phi of every sample and index, (n, K, d, d)."""
    d = X.shape[1]
    tokens = X.reshape(-1, T, d)
    first, second = index_pairs(T)
    found = []
    for a, b in zip(first, second, strict=True):
        outer = np.einsum("ni,nj->nij", tokens[:, a], tokens[:, b])
        found.append((outer + outer.transpose(0, 2, 1)) / 2 - (a == b) * np.eye(d))
    return np.stack(found, axis=1) / np.sqrt(d)


@pytest.mark.parametrize(("T", "rows"), [(1, 4_096), (2, 5), (3, 7)])
def test_products_are_those_of_explicit_matrices(T, rows, monkeypatch):
    monkeypatch.setattr(module, "CHUNK_ROWS", rows)
    rng = np.random.default_rng(T)
    d, n = 6, 9
    X, S = rng.standard_normal((n * T, d)), rng.standard_normal((d, d))
    S = S + S.T
    for source in (X, ArraySource(X)):
        sensors = TokenSensors(source, T)
        matrices = explicit(X, T)
        assert np.allclose(sensors.forward(S), np.einsum("nkij,ij->nk", matrices, S))
        g = rng.standard_normal((n, T * (T + 1) // 2))
        assert np.allclose(sensors.adjoint(g), 2 / d * np.einsum("nk,nkij->ij", g, matrices))


def test_goe_is_adjoint_and_has_the_same_covariance():
    rng = np.random.default_rng(0)
    d, n = 8, 20_000
    sensors = goe_sensors(n, d, rng)
    S = rng.standard_normal((d, d))
    S = (S + S.T) / 2
    g = rng.standard_normal((n, 1))
    left = float(np.sum(sensors.forward(S) * g))
    assert left == pytest.approx(d / 2 * np.sum(sensors.adjoint(g) * S), rel=1e-4)
    tokens = TokenSensors(rng.standard_normal((n, d)))
    # Var h = 2 Tr S² / d for both, within the error of a variance over n samples (tails for rank one)
    expected = 2 * np.sum(S**2) / d
    for one in (sensors, tokens):
        assert np.var(one.forward(S)) == pytest.approx(expected, rel=0.06)


def test_indices_are_uncorrelated_with_variance_v():
    rng = np.random.default_rng(1)
    d, T, n = 20, 3, 20_000
    sensors = TokenSensors(rng.standard_normal((n * T, d)), T)
    W = rng.standard_normal((d, d))
    S = (W + W.T) / 2
    covariance = np.cov(sensors.forward(S).T) / (np.sum(S**2) / d)
    assert np.allclose(covariance, np.diag(sensors.variances), atol=0.12)


def test_single_precision_stays_close():
    rng = np.random.default_rng(2)
    X, S = rng.standard_normal((60, 10)), np.diag(np.arange(10.0))
    wide, narrow = TokenSensors(X, 2), TokenSensors(X.astype(np.float32), 2)
    assert np.allclose(wide.forward(S), narrow.forward(S), atol=1e-4)
    g = rng.standard_normal((30, 3))
    assert np.allclose(wide.adjoint(g), narrow.adjoint(g), atol=1e-4)


def test_rows_that_are_no_samples():
    with pytest.raises(InvalidData, match="multiple"):
        TokenSensors(np.zeros((7, 3)), 2)
