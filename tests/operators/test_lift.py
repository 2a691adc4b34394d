"""Random lifts against their kernels; patches and pooling against loops and SciPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.signal import correlate2d

from solvable.errors import InvalidData, InvalidParameter
from solvable.operators import RandomLift, dual_kernel, patches
from solvable.operators.activations import ACTIVATIONS
from solvable.operators.lift import average_pool


@pytest.fixture(scope="module")
def samples():
    X = np.random.default_rng(5).standard_normal((120, 20))
    scale = float(np.sqrt(np.mean(np.sum(X**2, axis=1))))
    gram = X @ X.T / scale**2
    X.setflags(write=False)
    return X, scale, gram


@pytest.mark.parametrize("width", [1_000, 10_000, 30_000])
def test_gram_of_relu_features_converges_at_the_root_of_the_width(samples, width):
    # Equation 2 of docs/derivations/lofi.md: largest entry error times sqrt(P), with its bounds
    X, scale, gram = samples
    kernel = dual_kernel("relu", gram, np.diag(gram), np.diag(gram))
    assert np.mean(np.diag(kernel)) == pytest.approx(0.5, abs=1e-12)
    Z = RandomLift(20, width, "relu", scale, seed=1).transform(X)
    assert 2.5 <= np.max(np.abs(Z @ Z.T - kernel)) * np.sqrt(width) <= 5.5


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_mean_gram_of_every_activation_is_its_kernel(samples, name):
    X, scale, gram = samples
    X, gram = X[:8], gram[:8, :8]
    kernel = dual_kernel(name, gram, np.diag(gram), np.diag(gram))
    draws = []
    for seed in range(40):
        Z = RandomLift(20, 500, name, scale, seed=seed).transform(X)
        draws.append(Z @ Z.T)
    deviation = np.mean(draws, axis=0) - kernel
    # Tolerance for rounding of the angle, for entries that do not vary between draws
    error = np.std(draws, axis=0, ddof=1) / np.sqrt(len(draws)) + 1e-7
    # 36 distinct entries of correlated draws: |t| above 4.5 with 40 draws is not expected.
    assert np.max(np.abs(deviation) / error) < 4.5


def test_lift_is_its_formula():
    lift = RandomLift(3, 5, "tanh", scale=2.0, seed=9)
    h = np.random.default_rng(0).standard_normal((4, 3))
    np.testing.assert_allclose(lift.transform(h), np.tanh(h @ lift.weights) / np.sqrt(5))
    np.testing.assert_allclose(
        RandomLift(3, 5, "tanh", scale=1.0, seed=9).weights, 2.0 * lift.weights
    )


def test_weights_are_standard_gaussian_and_depend_on_the_seed_alone():
    weights = RandomLift(200, 500, seed=3).weights
    np.testing.assert_array_equal(weights, RandomLift(200, 500, seed=3).weights)
    assert not np.array_equal(weights, RandomLift(200, 500, seed=4).weights)
    # 1e5 draws: standard errors 0.0032, 0.0045 and 0.0155.
    assert abs(weights.mean()) < 0.015
    assert abs(weights.var() - 1) < 0.02
    assert abs(np.mean(weights**4) - 3) < 0.12


@settings(max_examples=30, deadline=None)
@given(rows=st.integers(1, 9), name=st.sampled_from(ACTIVATIONS))
def test_rows_are_lifted_one_by_one_in_their_own_type(rows, name):
    h = np.random.default_rng(rows).standard_normal((rows, 4)).astype(np.float32)
    kept = h.copy()
    lift = RandomLift(4, 6, name, seed=2)
    whole = lift.transform(h)
    assert whole.dtype == np.float32
    parts = np.concatenate([lift.transform(row[None]) for row in h])
    # Sums in single precision may have another order: a few units of 1.2e-7 of the largest value.
    np.testing.assert_allclose(whole, parts, rtol=2e-6, atol=1e-5)
    np.testing.assert_array_equal(h, kept)


@pytest.mark.parametrize(
    "settings_", [{"width": 0}, {"n_inputs": 0}, {"scale": 0.0}, {"scale": np.inf}]
)
def test_settings_out_of_range_are_refused(settings_):
    with pytest.raises(InvalidParameter, match="allowed"):
        RandomLift(**{"n_inputs": 2, "width": 2, **settings_})


def test_inputs_of_another_shape_are_refused():
    with pytest.raises(InvalidData, match=r"\(n, 3\)"):
        RandomLift(3, 2).transform(np.ones((4, 2)))


@pytest.mark.parametrize("size", [1, 3, 5])
def test_patches_are_those_of_a_loop(size):
    images = np.random.default_rng(1).standard_normal((2, 6, 7, 3))
    found = patches(images, size)
    assert found.shape == (2, 6, 7, size * size * 3)
    margin = size // 2
    for n, i, j in np.ndindex(2, 6, 7):
        expected = np.zeros((size, size, 3))
        for a, b in np.ndindex(size, size):
            row, column = i + a - margin, j + b - margin
            if 0 <= row < 6 and 0 <= column < 7:
                expected[a, b] = images[n, row, column]
        np.testing.assert_array_equal(found[n, i, j], expected.ravel())


def test_patches_times_weights_are_the_correlation():
    rng = np.random.default_rng(2)
    images, kernel = rng.standard_normal((3, 9, 8, 2)), rng.standard_normal((5, 5, 2))
    found = patches(images, 5) @ kernel.ravel()
    for image, one in zip(images, found, strict=True):
        expected = sum(
            correlate2d(image[..., c], kernel[..., c], mode="same", boundary="fill")
            for c in range(2)
        )
        np.testing.assert_allclose(one, expected, atol=1e-12)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_pooling_is_the_mean_of_each_square(size):
    images = np.random.default_rng(3).standard_normal((2, 7, 6, 3))
    found = average_pool(images, size)
    assert found.shape == (2, 7 // size, 6 // size, 3)
    for i, j in np.ndindex(7 // size, 6 // size):
        square = images[:, i * size : (i + 1) * size, j * size : (j + 1) * size]
        np.testing.assert_allclose(found[:, i, j], square.mean(axis=(1, 2)))


def test_sizes_out_of_range_are_refused():
    images = np.ones((1, 4, 5, 1))
    for size in (0, 2):
        with pytest.raises(InvalidParameter, match="odd"):
            patches(images, size)
    for size in (0, 5):
        with pytest.raises(InvalidParameter, match="1 to 4"):
            average_pool(images, size)
