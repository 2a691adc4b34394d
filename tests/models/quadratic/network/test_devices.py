"""Fits on torch tensors: equal to fits on arrays, and without copies to the host in a loop."""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np
import pytest

from solvable.arrays import ArraySource, random_stream
from solvable.models.quadratic.network import sensing
from solvable.models.quadratic.network.learner import QuadraticNetRegressor

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

LEAVING = {"cpu", "numpy", "tolist", "__array__", "__dlpack__", "resolve_conj"}


class Tracer(torch.overrides.TorchFunctionMode):
    """Count arrays that are copied to the host, and numbers that are read."""

    def __init__(self):
        super().__init__()
        self.arrays, self.scalars, self.uploads = [], 0, 0

    def __torch_function__(self, function, types, arguments=(), keywords=None):
        name = getattr(function, "__name__", "")
        if name in LEAVING:
            self.arrays.append(tuple(arguments[0].shape))
        elif name in {"item", "__float__", "__int__", "__bool__", "__index__"}:
            self.scalars += 1
        elif name in {"tensor", "asarray", "as_tensor", "from_numpy"}:
            self.uploads += 1
        return function(*arguments, **(keywords or {}))


@contextmanager
def traced():
    with Tracer() as tracer:
        yield tracer


def samples(n=700, d=9, seed=0):
    rng = random_stream(seed, "devices")
    X = rng.standard_normal((n, d))
    return X, 2 + X[:, 0] ** 2 - X[:, 1] + 0.5 * rng.standard_normal(n)


def test_tracer_sees_what_leaves():
    with traced() as tracer:
        tensor = torch.ones(3)
        tensor.cpu(), tensor.numpy(), np.asarray(tensor), tensor.tolist()
        float(tensor[0]), tensor.sum().item()
    assert len(tracer.arrays) >= 4
    assert tracer.scalars == 2


@pytest.mark.parametrize("penalty", [0.3, "gcv"])
@pytest.mark.parametrize("solver", ["amp", "fista", "factorised"])
@pytest.mark.parametrize("whiten", [False, True])
def test_a_tensor_is_fitted_as_the_array_is(solver, penalty, whiten):
    X, y = samples()
    settings = {"solver": solver, "whiten": whiten, "tolerance": 1e-5}
    host = QuadraticNetRegressor(penalty, **settings).fit(X, y)
    with traced() as tracer:
        there = QuadraticNetRegressor(penalty, **settings).fit(torch.asarray(X), y)
    assert there.solver_ == host.solver_
    if solver != "factorised":  # whose rounding grows along the way
        assert there.n_iter_ == pytest.approx(host.n_iter_, abs=3)
    assert there.gcv_score_ == pytest.approx(host.gcv_score_, rel=1e-4)
    assert there.intercept_ == pytest.approx(host.intercept_, abs=1e-4)
    np.testing.assert_allclose(there.predict(torch.asarray(X)), host.predict(X), atol=1e-3)
    assert isinstance(there.matrix_, np.ndarray)
    # Only the result is copied: whitening, solution, spectrum and centre, each with two calls.
    assert len(tracer.arrays) <= 2 * 8


def test_what_leaves_does_not_grow_with_the_iterations():
    X, y = samples()
    copies, numbers = [], []
    for tolerance in (1e-1, 1e-9):
        model = QuadraticNetRegressor(0.3, solver="fista", tolerance=tolerance)
        with traced() as tracer:
            model.fit(torch.asarray(X), y)
        copies.append((len(tracer.arrays), tracer.uploads))
        numbers.append((tracer.scalars, model.n_iter_))
    assert copies[0] == copies[1]
    (few, start), (many, end) = numbers
    assert end >= start + 30
    # Numbers read per iteration: restart, number of eigenvalues, optimality every tenth time.
    assert (many - few) / (end - start) < 6


@pytest.mark.parametrize("whiten", [False, True])
def test_products_run_where_there_is_nothing_to_read(whiten):
    X, _ = samples(300)
    whitening = sensing.Whitening(X.mean(axis=0), np.eye(9)[:, :7]) if whiten else None
    # Tensors of this device have no values: reading one raises an error.
    there = sensing.SampleSensing(
        ArraySource(torch.empty(300, 9, device="meta")), whitening=whitening
    )
    factor = torch.empty(there.dimension, 2, dtype=torch.float64, device="meta")
    values = there.forward(factor)
    assert (values.device.type, tuple(values.shape)) == ("meta", (300,))
    assert there.adjoint(values).shape == (there.dimension, there.dimension)


def test_blocks_are_those_of_the_device(monkeypatch):
    seen = []

    class Recording(ArraySource):
        def chunks(self, rows):
            seen.append(rows)
            return super().chunks(rows)

    X, y = samples(5000)
    QuadraticNetRegressor(1.0).fit(Recording(torch.asarray(X)), y)
    assert set(seen) == {sensing.CHUNK_ROWS}
    seen.clear()
    monkeypatch.setattr(sensing, "rows_per_block", lambda *_: 10**6)
    QuadraticNetRegressor(1.0).fit(Recording(torch.asarray(X)), y)
    assert set(seen) == {10**6}


@pytest.mark.parametrize("solver", ["amp", "fista", "factorised"])
def test_products_in_the_precision_of_the_samples(solver):
    X, y = samples()
    # Single precision cannot reach this tolerance: rounding ends the fit without a warning.
    single = QuadraticNetRegressor(0.3, solver=solver).fit(torch.asarray(X, dtype=torch.float32), y)
    double = QuadraticNetRegressor(0.3, tolerance=1e-8).fit(X, y)
    assert single.solver_ == solver
    assert single.kkt_residual_ <= 1e-4
    np.testing.assert_allclose(single.matrix_, double.matrix_, atol=1e-5)


def test_another_library_of_arrays():
    xp = pytest.importorskip("array_api_strict")
    X, y = samples(300)
    host = QuadraticNetRegressor(0.3).fit(X, y)
    there = QuadraticNetRegressor(0.3).fit(xp.asarray(X), y)
    np.testing.assert_allclose(there.matrix_, host.matrix_, atol=1e-5)
