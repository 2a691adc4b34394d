"""Later layers on latent draws, against closed forms and simulation."""

import numpy as np
import pytest

from solvable.arrays import random_stream
from solvable.models.compositional.latent_layers import inner_layer, later_overlaps, transported
from solvable.models.compositional.target import CompositionalTarget
from solvable.models.compositional.upper_layers import rotate_layer
from solvable.moment_spectrum.latent_draws import LatentDraws, fit_last_layer
from solvable.operators import HermiteFeatures


@pytest.mark.parametrize("rotate", [False, True])
def test_transported_forms_are_moments_of_a_simulation(rotate):
    stream = random_stream("transport", int(rotate))
    N = stream.standard_normal((2, 3, 3))
    N = (N + N.transpose(0, 2, 1)) / 2
    N /= np.linalg.norm(N, axis=(1, 2))[:, None, None]
    C = np.diag([1.0, 0.7, 0.3])
    if rotate:
        C = np.linalg.qr(stream.standard_normal((3, 3)))[0] @ C
    h, z = stream.standard_normal((2, 300_000, 3))
    root = np.linalg.cholesky(np.eye(3) - C @ C.T + 1e-12 * np.eye(3))
    learned = h @ C.T + z @ root.T
    forms = (np.einsum("na,jab,nb->nj", h, N, h) - np.trace(N, axis1=1, axis2=2)) / np.sqrt(2)
    found = HermiteFeatures(2, 3).transform(learned).T @ forms / len(h)
    # Products of two quadratic forms: standard deviation up to 3 over sqrt(300,000).
    np.testing.assert_allclose(found, transported(N, C), atol=0.03)


def test_a_perfect_first_layer_transports_everything():
    rotation = np.linalg.qr(random_stream("rotation").standard_normal((4, 4)))[0]
    target = CompositionalTarget(dimension=12, features=(4, 3), seed=0)
    moved = transported(target.hidden_layers[0], rotation)
    np.testing.assert_allclose(moved.T @ moved, np.eye(3), atol=1e-12)


def inner_draws(layers, overlap, draws=60_000):
    stream = random_stream("inner", len(layers))
    u, z = stream.standard_normal((2, draws, layers.shape[1]))
    w = np.einsum("na,jab,nb->nj", u, layers, u) - np.trace(layers, axis1=1, axis2=2)
    w /= np.sqrt(2)
    y = np.sum(w**2 - 1, axis=1)
    return LatentDraws(y / y.std(), u, z).learned(np.asarray(overlap)), y / y.std()


def test_the_second_step_finds_a_wide_form_and_no_more_than_its_ceiling():
    signs = np.resize([1.0, -1.0], 8)
    layers = np.diag(signs)[None] / np.sqrt(8)
    for overlap in (1.0, 0.7):
        features, y = inner_draws(layers, np.full(8, overlap))
        alignment = np.sqrt(overlap) * np.eye(8)
        found = inner_layer(
            features=features,
            norms=np.ones(len(y)),
            weights=np.tanh(y),
            width=1,
        )
        overlap_found = later_overlaps([layers], [found.directions], alignment)[0]
        ceiling = float(np.sum(transported(layers, alignment) ** 2))
        assert ceiling == pytest.approx(overlap**2)
        assert 0.9 * ceiling < overlap_found <= ceiling + 1e-12
        # The correlation of learned and true feature on the draws is the overlap.
        assert found.features.shape == (len(y), 1)
        assert found.features.var() == pytest.approx(1, abs=0.1)


def test_a_blind_first_layer_leaves_nothing_to_the_second():
    layers = np.diag([1.0, -1.0])[None] / np.sqrt(2)
    features, y = inner_draws(layers, np.zeros(2))
    found = inner_layer(
        features=features,
        norms=np.ones(len(y)),
        weights=y,
        width=1,
    )
    assert later_overlaps([layers], [found.directions], np.zeros((2, 2))) == pytest.approx(0)


def test_true_directions_overlap_completely_at_every_depth():
    """The true forms of three later layers, in rotated bases, and one wrong form in the second."""
    target = CompositionalTarget(dimension=12, features=(4, 3, 2, 1), seed=2)
    stream = random_stream("chain")
    rotations = [np.linalg.qr(stream.standard_normal((p, p)))[0] for p in (4, 3, 2)]
    directions = [
        transported(forms, rotation) @ np.asarray(following)
        for forms, rotation, following in zip(
            target.hidden_layers, rotations, [rotations[1].T, rotations[2].T, [[1.0]]], strict=True
        )
    ]
    found = later_overlaps(target.hidden_layers, directions, rotations[0])
    np.testing.assert_allclose(found, 1, atol=1e-12)
    # A feature that is lost in the second representation lowers the overlaps above it.
    directions[0] = directions[0] @ np.diag([1.0, 1.0, 0.0])
    lost = later_overlaps(target.hidden_layers, directions, rotations[0])
    assert lost[:3].sum() == pytest.approx(2)
    assert (lost[3:] < 1 - 1e-3).all()


@pytest.mark.parametrize("kind", ["dense", "diagonal"])
def test_the_fit_on_true_features_returns_the_target(kind):
    target = CompositionalTarget(dimension=15, features=4, second_layer=kind, decay=0.5, seed=4)
    X, y = target.sample(20_000, random_stream("fit"))
    fit = fit_last_layer(target.latent(X), y, readout=False)
    _, scale = target.label_standardisation
    np.testing.assert_allclose(fit.matrix, target.matrix / scale, atol=1e-8)
    assert fit.normalised_mse < 1e-12
    values = np.linalg.eigvalsh(fit.matrix * scale)
    layer = rotate_layer(target.matrix)
    np.testing.assert_allclose(values, np.sort(layer.weights * layer.scale), atol=1e-8)
