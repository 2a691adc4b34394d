"""Kernel chains, stored layers, and networks applied row by row."""

import numpy as np
import pytest

from solvable.errors import InvalidData
from solvable.networks.layers import (
    AsImages,
    Filter,
    Flatten,
    KernelChain,
    KernelFilter,
    KernelReadout,
    Lift,
    LinearReadout,
    Network,
    Pool,
    Residual,
    Standardise,
    Whiten,
)
from solvable.networks.stored_layers import LAYERS, layer_from_parts, layer_parts
from solvable.operators import RandomLift

RNG = np.random.default_rng(0)


def arc_cosine(K):
    """Arc-cosine recursion of the deep kernel, computed from angles."""
    d = np.sqrt(np.diag(K))
    cosine = np.clip(K / np.outer(d, d), -1, 1)
    theta = np.arccos(cosine)
    return np.outer(d, d) * (np.sin(theta) + (np.pi - theta) * cosine) / (2 * np.pi)


def test_chain_is_the_recursion_with_a_mean_diagonal_of_one():
    X = RNG.standard_normal((15, 4))
    K, squares = X @ X.T, []
    for _ in range(3):
        squares.append(np.mean(np.diag(K)))
        K = arc_cosine(K / squares[-1])
    chain = KernelChain(("relu",) * 3, tuple(squares), (0.0,) * 3)
    np.testing.assert_allclose(chain(X, X), K, atol=1e-7)
    np.testing.assert_allclose(chain.diagonals(X)[-1], np.diag(K), atol=1e-12)
    np.testing.assert_allclose(chain(X[:3], X[5:9]), K[:3, 5:9], atol=1e-10)


def test_chain_is_the_limit_of_a_deep_network():
    X = RNG.standard_normal((10, 5))
    squares, K, h = [], X @ X.T, X
    for layer, name in enumerate(("tanh", "relu")):
        squares.append(float(np.mean(np.diag(K))))
        K = KernelChain(("tanh", "relu")[: layer + 1], tuple(squares), (0.0,) * (layer + 1))(X, X)
        scale = float(np.sqrt(np.mean(np.sum(h**2, axis=1))))
        h = RandomLift(h.shape[1], 6000, name, scale, seed=layer).transform(h)
    # Bound 5.5 / sqrt(P) of one layer (tests/operators/test_lift.py), for each of two layers
    assert np.max(np.abs(h @ h.T - K)) < 2 * 5.5 / np.sqrt(6000)


def test_no_lift_is_the_linear_kernel():
    X = RNG.standard_normal((6, 3))
    np.testing.assert_allclose(KernelChain((), (), ())(X, X[:2]), X @ X[:2].T)


def a_layer(kind):
    return {
        "standardise": Standardise(np.arange(3.0), np.arange(1.0, 4.0)),
        "whiten": Whiten(np.arange(3.0), RNG.standard_normal((3, 3))),
        "as-images": AsImages((2, 3, 1)),
        "flatten": Flatten(),
        "pool": Pool(2),
        "filter": Filter(RNG.standard_normal((5, 2)), np.zeros(2), np.ones(2)),
        "lift": Lift(3, 7, "erf", 1.5, 2**61, patch=3),
        "kernel-filter": KernelFilter(
            RNG.standard_normal((4, 3)),
            RNG.standard_normal((4, 2)),
            np.ones(2),
            np.full(2, 2.0),
            ("relu", "erf"),
            (1.0, 0.3),
            (0.0, 0.2),
        ),
        "linear-readout": LinearReadout(RNG.standard_normal((3, 2)), np.ones(2)),
        "kernel-readout": KernelReadout(
            RNG.standard_normal((4, 3)),
            RNG.standard_normal((4, 1)),
            np.ones(1),
            ("cos",),
            (2.0,),
            (0.5,),
        ),
        "residual": Residual(
            (
                Lift(3, 5, "relu", 1.0, 4, bias=0.3),
                Filter(RNG.standard_normal((5, 2)), np.ones(2), np.full(2, 2.0)),
            ),
            0.5,
            2.0,
        ),
    }[kind]


@pytest.mark.parametrize("kind", LAYERS)
def test_every_kind_is_rebuilt_from_its_parts(kind):
    layer = a_layer(kind)
    arrays, settings = layer_parts(layer)
    assert settings["kind"] == kind
    again = layer_from_parts(arrays, settings)
    assert type(again) is type(layer)
    other_arrays, other_settings = layer_parts(again)
    assert other_settings == settings
    for name, value in arrays.items():
        np.testing.assert_array_equal(other_arrays[name], value)


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"kind": "pickle"}, "pickle"),
        ({}, "None"),
        ({"kind": "pool"}, "size"),
        ({"kind": "pool", "size": 2, "code": "x"}, "code"),
        ({"kind": "filter"}, "directions"),
    ],
)
def test_parts_that_are_no_layer_are_refused(settings, match):
    with pytest.raises(InvalidData, match=match):
        layer_from_parts({}, settings)


def test_layers_are_their_formulas():
    X = RNG.standard_normal((5, 3))
    standard = a_layer("standardise")
    np.testing.assert_allclose(standard.apply(X), (X - [0, 1, 2]) / [1, 2, 3])
    readout = a_layer("linear-readout")
    np.testing.assert_allclose(readout.apply(X), X @ readout.coefficients + 1)
    kernel = a_layer("kernel-readout")
    # cos features: E cos(u) cos(v) by the characteristic function; a bias is an additional input.
    a, b = (np.column_stack([one, np.full(len(one), 0.5**0.5)]) for one in (X, kernel.samples))
    a, b = a / np.sqrt(2), b / np.sqrt(2)
    plus = np.sum((a[:, None] + b[None]) ** 2, axis=2)
    minus = np.sum((a[:, None] - b[None]) ** 2, axis=2)
    expected = (np.exp(-plus / 2) + np.exp(-minus / 2)) / 2 @ kernel.coefficients + 1
    np.testing.assert_allclose(kernel.apply(X), expected, atol=1e-12)
    kept = a_layer("kernel-filter")
    chain = KernelChain(kept.activations, kept.squared_scales, kept.squared_biases)
    np.testing.assert_allclose(
        kept.apply(X), 2 * (chain(X, kept.landmarks) @ kept.coefficients - 1), atol=1e-12
    )
    residual = a_layer("residual")
    lift, filtered = residual.layers
    inputs = np.column_stack([X, np.full(5, 0.3)])
    weights = RandomLift(4, 5, "relu", 1.0, 4).weights
    z = np.maximum(inputs @ weights, 0) / np.sqrt(5)
    np.testing.assert_allclose(lift.apply(X), z)
    kept_coordinates = 2 * (z @ filtered.directions - 1)
    np.testing.assert_allclose(residual.apply(X), np.hstack([0.5 * kept_coordinates, 2 * X]))
    np.testing.assert_allclose(residual.kept(X), kept_coordinates)
    images = X.reshape(5, 3, 1, 1)
    np.testing.assert_array_equal(Flatten().apply(images), X)
    np.testing.assert_array_equal(AsImages((3, 1, 1)).apply(X), images)


def test_filters_of_images_act_on_every_pixel():
    images = RNG.standard_normal((2, 3, 4, 5))
    layer = a_layer("filter")
    found = layer.apply(images)
    assert found.shape == (2, 3, 4, 2)
    np.testing.assert_allclose(found[1, 2, 3], images[1, 2, 3] @ layer.directions)


@pytest.mark.parametrize("kind", ["kernel-filter", "linear-readout", "kernel-readout", "lift"])
def test_a_row_is_mapped_as_in_a_table(kind):
    # Predictions use stored statistics only, never those of the predicted rows.
    layer = Lift(3, 7, "erf", 1.5, 4) if kind == "lift" else a_layer(kind)
    X = RNG.standard_normal((6, 3))
    whole = layer.apply(X)
    np.testing.assert_allclose(layer.apply(X[4:5]), whole[4:5], atol=1e-12)


def test_long_tables_are_cut_and_put_together_again(monkeypatch):
    from solvable.networks import layers as lofi_layers

    X = RNG.standard_normal((11, 3))
    network = Network((a_layer("standardise"), Lift(3, 8, "relu", 1.0, 0)), None)
    readout = LinearReadout(RNG.standard_normal((8, 1)), np.zeros(1))
    whole = Network(network.layers, readout).outputs(X)
    monkeypatch.setattr(lofi_layers, "KERNEL_ROWS", 4)
    np.testing.assert_allclose(Network(network.layers, readout).outputs(X), whole)
    with pytest.raises(InvalidData, match="no readout"):
        network.outputs(X)
