"""First gradient steps of two hidden layers against closed forms; equation 39 of docs/derivations."""

import numpy as np
import pytest

from solvable.arrays import random_stream
from solvable.errors import InvalidParameter
from solvable.networks.early_layers import (
    _TwoHiddenLayers,
    layer_alignment,
    limit_of_first_layers,
)


def gaussian_sample(n=150, d=12):
    rng = random_stream(0, "early layers test")
    X = rng.standard_normal((n, d))
    return X, X[:, 0] + X[:, 1] * X[:, 2] + 0.3 * rng.standard_normal(n)


def test_gradients_are_those_of_the_loss_up_to_a_factor_per_layer():
    rng = random_stream(1, "early layers test")
    X, y = gaussian_sample(20, 3)
    network = _TwoHiddenLayers("tanh", rng.choice([-1.0, 1.0], 4), 0.4)
    weights = rng.standard_normal((3, 4)), rng.standard_normal((4, 4))

    def loss(W1, W2):
        outputs = np.tanh(0.4 * np.tanh(X @ W1) @ W2) @ network.signs
        return -np.mean(y * outputs)

    found = network.gradient(weights, X, y)
    # the gradient of the first layer leaves out the factor `scale` of z and has 1 / sqrt(p) instead
    factors = 0.4 * np.sqrt(4), 1.0
    for layer in (0, 1):
        slopes = np.empty_like(weights[layer])
        for index in np.ndindex(*slopes.shape):
            step = np.zeros_like(slopes)
            step[index] = 1e-6
            moved = [
                [w + sign * step if k == layer else w for k, w in enumerate(weights)]
                for sign in (1, -1)
            ]
            slopes[index] = (loss(*moved[0]) - loss(*moved[1])) / 2e-6
        np.testing.assert_allclose(factors[layer] * found[layer], slopes, atol=1e-8)


def test_both_layers_of_a_linear_network_learn_the_first_moment_alone():
    X, y = gaussian_sample()
    found = layer_alignment(X, y, width=30, activation="identity", n_directions=1)
    np.testing.assert_allclose(found.filter_overlap, 1.0, atol=1e-10)
    assert np.all(found.relative_change > 0)


def test_the_first_step_approaches_that_of_infinitely_wide_layers():
    X, y = gaussian_sample()
    limit = limit_of_first_layers(X, y, n_directions=3)
    gaps = []
    for width in (40, 800):
        found = [layer_alignment(X, y, width=width, n_directions=3, seed=s) for s in range(4)]
        mean = np.mean([[a.filter_overlap[:, 0], a.principal_overlap[:, 0]] for a in found], axis=0)
        gaps.append(np.abs(mean.T - limit).max())
    # overlaps of a layer fluctuate as 1 / sqrt(p): 0.02 for the mean of four networks
    assert gaps[1] < 0.06
    assert gaps[1] < gaps[0] / 2


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ({"width": 0}, "width is 0"),
        ({"n_directions": 13}, "from 1 to 12"),
        ({"steps": (2, 2)}, "increasing sequence"),
        ({"step_size": 0.0}, "step_size is 0"),
    ],
)
def test_bad_settings(setting, words):
    with pytest.raises(InvalidParameter, match=words):
        layer_alignment(*gaussian_sample(30), **{"width": 20, **setting})
