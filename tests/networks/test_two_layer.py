"""Gradient of a two-layer network against finite differences and between array libraries."""

import numpy as np
import pytest

from solvable.arrays import random_stream
from solvable.errors import InvalidParameter
from solvable.networks import two_layer
from solvable.networks.two_layer import TwoLayerNetwork
from solvable.operators.activations import ACTIVATIONS, derivative, evaluate

TRAINED = [name for name in ACTIVATIONS if name != "step"]


def network_sample(n=30, d=4, p=5):
    rng = random_stream(0, "two layers")
    X, W = rng.standard_normal((n, d)), rng.standard_normal((d, p))
    return X, X[:, 0] * X[:, 1], (W, rng.standard_normal(p))


@pytest.mark.parametrize("activation", TRAINED)
def test_gradient_equals_finite_differences(activation, monkeypatch):
    monkeypatch.setattr(two_layer, "BLOCK_ROWS", 7)  # rows of several blocks are summed
    X, y, weights = network_sample()
    network = TwoLayerNetwork(activation, 0.5, train_outputs=True)
    for place, slopes in enumerate(network.gradient(weights, X, y)):
        for entry in np.ndindex(slopes.shape):
            losses = []
            for shift in (1e-5, -1e-5):
                moved = [w.copy() for w in weights]
                moved[place][entry] += shift
                losses.append(network.loss(tuple(moved), X, y))
            # The gradient is divided by the output scale.
            difference = (losses[0] - losses[1]) / 2e-5 / 0.5
            assert slopes[entry] == pytest.approx(difference, rel=1e-6, abs=1e-7)


def test_fixed_outputs_have_no_gradient():
    X, y, weights = network_sample()
    fixed, trained = (
        TwoLayerNetwork("tanh", train_outputs=flag).gradient(weights, X, y)
        for flag in (False, True)
    )
    assert not fixed[1].any()
    assert trained[1].any()
    np.testing.assert_allclose(fixed[0], trained[0], rtol=1e-13)


@pytest.mark.parametrize("activation", TRAINED)
def test_tensors_give_the_same_gradient(activation):
    torch = pytest.importorskip("torch")
    X, y, weights = network_sample()
    network = TwoLayerNetwork(activation, 0.5, train_outputs=True)
    expected = network.gradient(weights, X, y)
    tensors = [torch.tensor(array) for array in (X, y, *weights)]
    found = network.gradient(tuple(tensors[2:]), *tensors[:2])
    for left, right in zip(found, expected, strict=True):
        np.testing.assert_allclose(left.numpy(), right, rtol=1e-10, atol=1e-14)


def test_derivatives_keep_single_precision():
    t = np.linspace(-50, 50, 11, dtype=np.float32)
    for name in ACTIVATIONS:
        slopes = derivative(name, t)
        assert slopes.dtype == np.float32, name
        assert np.isfinite(slopes).all(), name
        assert evaluate(name, t).dtype == np.float32, name


def test_the_step_activation_is_refused():
    with pytest.raises(InvalidParameter, match="whose gradient is 0"):
        TwoLayerNetwork("step")
    with pytest.raises(InvalidParameter, match="output_scale is -1"):
        TwoLayerNetwork("relu", -1.0)
