"""Convolutional blocks against loops over pixels."""

import math

import numpy as np
import pytest

from solvable.errors import InvalidParameter
from solvable.learners import Block, NeuralLoFiClassifier, NeuralLoFiTransformer

SHAPE = (6, 5, 2)


@pytest.fixture(scope="module")
def images():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, *SHAPE))
    y = np.mean(X[..., 0] * X[..., 1], axis=(1, 2)) > 0
    X.setflags(write=False)
    return X, y


def rows(images):
    return images.reshape(len(images), -1)


def neighbourhood(image, i, j, size):
    margin = size // 2
    padded = np.pad(image, ((margin, margin), (margin, margin), (0, 0)))
    return padded[i : i + size, j : j + size].ravel()


def fit(blocks, X, y, **settings_):
    model = NeuralLoFiTransformer(
        blocks, scaling="none", image_shape=SHAPE, random_state=0, **settings_
    )
    return model.fit(rows(X), y)


def test_convolutional_lift_is_a_lift_of_every_patch(images):
    X, y = images
    model = fit([Block(None, 7, patch=3)], X, y)
    lift = model.network_.layers[1]
    found = model.transform(rows(X)).reshape(80, 6, 5, 7)
    patches = np.array(
        [neighbourhood(one, i, j, 3) for one in X for i in range(6) for j in range(5)]
    )
    assert lift.scale**2 == pytest.approx(np.mean(np.sum(patches**2, axis=1)))
    expected = np.maximum(patches @ lift.features.weights, 0) / np.sqrt(7)
    np.testing.assert_allclose(found.reshape(-1, 7), expected, atol=1e-12)


@pytest.mark.parametrize("first_moment", [False, True])
def test_convolutional_filter_gives_every_pixel_the_label_of_its_image(images, first_moment):
    X, y = images
    features = fit([Block(None, 7, patch=3)], X, y).transform(rows(X)).reshape(80, 30, 7)
    blocks = [Block(None, 7, patch=3), Block(3, None, first_moment=first_moment)]
    model = fit(blocks, X, y)
    signs = np.where(y, 1.0, -1.0)
    C = np.einsum("n,npa,npb->ab", signs, features, features) / (80 * 30)
    if first_moment:
        u = np.einsum("n,npa->a", signs, features)
        outside = np.eye(7) - np.outer(u, u) / (u @ u)
        C = outside @ C @ outside
    values, vectors = np.linalg.eigh(C)
    order = np.argsort(-np.abs(values))[:3]
    report = model.filters_[0]
    np.testing.assert_allclose(report.eigenvalues, values[order], atol=1e-12)
    assert report.n_samples == 80 * 30
    directions = model.network_.layers[2].directions[:, int(first_moment) :]
    np.testing.assert_allclose(np.abs(vectors[:, order].T @ directions), np.eye(3), atol=1e-9)


def test_pooling_follows_the_filter(images):
    X, y = images
    plain = fit([Block(None, 7, patch=3), Block(3, None)], X, y)
    pooled = fit([Block(None, 7, patch=3), Block(3, None, pooling=2)], X, y)
    kept = plain.transform(rows(X)).reshape(80, 6, 5, 3)
    expected = kept[:, :, :4].reshape(80, 3, 2, 2, 2, 3).mean(axis=(2, 4))
    np.testing.assert_allclose(pooled.transform(rows(X)), expected.reshape(80, -1), atol=1e-12)


def test_patches_of_one_pixel_share_weights_among_pixels(images):
    X, y = images
    model = fit([Block(None, 5, patch=1)], X, y)
    found = model.transform(rows(X)).reshape(-1, 5)
    lift = model.network_.layers[1]
    np.testing.assert_allclose(found, lift.features.transform(X.reshape(-1, 2)), atol=1e-12)


def test_filters_do_not_see_where_a_pattern_is():
    # A pattern at a random place in the image, shifted by whole pixels inside a margin of zeros
    rng = np.random.default_rng(1)
    X = np.zeros((60, 12, 12, 1))
    X[:, 3:7, 3:7] = rng.standard_normal((60, 4, 4, 1))
    y = X[:, 3, 3, 0] * X[:, 4, 3, 0] > 0
    moved = np.roll(X, (2, 2), axis=(1, 2))
    found = []
    for one in (X, moved):
        blocks = [Block(None, 9, patch=3), Block(4, None)]
        model = NeuralLoFiTransformer(
            blocks, scaling="none", image_shape=(12, 12, 1), random_state=0
        )
        found.append(model.fit(rows(one), y).filters_[0].eigenvalues)
    np.testing.assert_allclose(found[0], found[1], atol=1e-12)


def test_a_network_of_images_ends_in_a_dense_kernel(images):
    X, y = images
    blocks = [
        Block(None, 20, patch=3),
        Block(4, 20, patch=3, first_moment=True, pooling=2),
        Block(4, math.inf),
    ]
    model = NeuralLoFiClassifier(blocks, image_shape=SHAPE, random_state=0).fit(rows(X), y)
    assert [layer.kind for layer in model.network_.layers] == [
        "standardise",
        "as-images",
        "lift",
        "filter",
        "pool",
        "lift",
        "filter",
        "flatten",
    ]
    np.testing.assert_allclose(
        model.decision_function(rows(X[:1])), model.decision_function(rows(X))[:1]
    )


@pytest.mark.parametrize(
    ("shape", "match"),
    [(None, "image_shape is None"), ((6, 5, 3), "90 pixels"), ((6, 5), "3 integers")],
)
def test_shapes_that_do_not_fit_are_refused(images, shape, match):
    X, y = images
    model = NeuralLoFiTransformer([Block(None, 5, patch=3)], image_shape=shape)
    with pytest.raises(InvalidParameter, match=match):
        model.fit(rows(X), y)


def test_pooling_beyond_the_image_is_refused(images):
    X, y = images
    with pytest.raises(InvalidParameter, match="1 to 5"):
        fit([Block(None, 5, patch=3), Block(3, None, pooling=6)], X, y)
