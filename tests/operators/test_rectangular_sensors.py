"""Sensors of rectangular matrices: explicit matrices, adjointness, variance, streams."""

import numpy as np
import pytest

from solvable.arrays import ArraySource
from solvable.errors import InvalidData
from solvable.operators import rectangular_sensors as module
from solvable.operators.rectangular_sensors import (
    BilinearSensors,
    MatrixSensors,
    generated_sensors,
)


@pytest.mark.parametrize("chunk", [1, 100, 2**24])
def test_products_are_those_of_explicit_matrices(chunk, monkeypatch):
    monkeypatch.setattr(module, "CHUNK_NUMBERS", chunk)
    rng = np.random.default_rng(0)
    n, d, L = 7, 3, 5
    X, u, v = (rng.standard_normal(shape) for shape in ((n, d, L), (n, d), (n, L)))
    S, g = rng.standard_normal((d, L)), rng.standard_normal((n, 1))
    rows = X.reshape(n, -1)
    kinds = [
        (MatrixSensors(rows, (d, L)), X),
        (MatrixSensors(ArraySource(rows), (d, L)), X),
        (BilinearSensors(u, v), u[:, :, None] * v[:, None]),
    ]
    for sensors, matrices in kinds:
        forward = np.einsum("nij,ij->n", matrices, S) / (d * L) ** 0.25
        assert np.allclose(sensors.forward(S)[:, 0], forward)
        # b is in units of the precision: the transpose times 1 / sqrt(dL)
        adjoint = np.einsum("n,nij->ij", g[:, 0], matrices) / (d * L) ** 0.75
        assert np.allclose(sensors.adjoint(g), adjoint)
        assert sensors.size == pytest.approx((d * L) ** 0.5)


def test_generated_sensors_are_the_same_at_each_reading(monkeypatch):
    monkeypatch.setattr(module, "CHUNK_NUMBERS", 200)
    sensors = generated_sensors(40, (4, 6), 3)
    S, g = np.arange(24.0).reshape(4, 6), np.arange(40.0)[:, None]
    first, back = sensors.forward(S), sensors.adjoint(g)
    assert np.array_equal(sensors.forward(S), first)
    assert np.array_equal(sensors.adjoint(g), back)
    rows = [block for part, block in sensors.source.chunks(7)]
    assert np.allclose(np.concatenate(rows) @ S.ravel() / 24**0.25, first[:, 0], rtol=1e-4)
    assert float(np.sum(first * g)) == pytest.approx(24**0.5 * float(np.sum(back * S)), rel=1e-4)
    assert not np.allclose(generated_sensors(40, (4, 6), 4).forward(S), first)


def test_samples_vary_as_the_signal_does():
    rng = np.random.default_rng(1)
    n, d, L = 20_000, 6, 12
    S = rng.standard_normal((d, L))
    expected = np.sum(S**2) / (d * L) ** 0.5
    kinds = (
        generated_sensors(n, (d, L), 0),
        BilinearSensors(rng.standard_normal((n, d)), rng.standard_normal((n, L))),
    )
    for sensors in kinds:
        # the error of a variance over n samples is 1 % for Gaussians, larger for the tails of rank one
        assert np.var(sensors.forward(S)) == pytest.approx(expected, rel=0.06)


def test_bad_sensors():
    with pytest.raises(InvalidData, match="24"):
        MatrixSensors(np.zeros((3, 20)), (4, 6))
    with pytest.raises(InvalidData, match="every sample"):
        BilinearSensors(np.zeros((3, 2)), np.zeros((4, 2)))
