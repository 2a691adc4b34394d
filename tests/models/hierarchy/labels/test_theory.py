"""Errors of the cascade: exact features, mean-field ridge regression, limits, simulations."""

from itertools import product

import numpy as np
import pytest
from scipy.stats import norm

from solvable.errors import InvalidParameter
from solvable.models.hierarchy.labels.learner import LabelCascadeClassifier, kernel
from solvable.models.hierarchy.labels.target import LabelHierarchy
from solvable.models.hierarchy.labels.theory import (
    RidgeFit,
    fit_ridge,
    label_cascade,
    products_of,
    required_samples,
    sign_error,
)


def signs_of(inputs, X):
    """Products of the inputs in the bits of each integer."""
    used = np.asarray(inputs)[:, None] >> np.arange(X.shape[1]) & 1
    return np.prod(np.where(used[None] == 1, X[:, None], 1.0), axis=2)


def test_products_are_the_eigenfunctions_of_the_kernel():
    # All 64 inputs of dimension 6: an expansion of the kernel in orthonormal functions is exact.
    X = np.array(list(product([-1.0, 1.0], repeat=6)))
    known = np.array([1, 2, 4, 8, 16, 32, 3, 12, 15, 12])
    products = products_of(known, np.ones(10), np.ones(10))
    functions = signs_of(products.inputs, X)
    weights = np.bincount(products.group, products.weights)
    U = signs_of(known, X)
    np.testing.assert_allclose(kernel(U, U), functions * weights @ functions.T, atol=1e-10)


def dense_fit(products, ridge, k):
    """Return the quantities of a ridge fit, from the covariance matrix of all products."""
    c = products.training
    C = np.where(products.group[:, None] == products.group, np.outer(c, c), 0.0)
    np.fill_diagonal(C, products.weights)
    shares = C @ np.linalg.inv(C + k * np.eye(len(C)))
    samples = np.trace(shares) + ridge / k
    used = np.trace(shares @ shares) / samples
    rows = []
    for group in range(products.inputs.size):
        target = np.where(products.group == group, c, 0.0)
        v = np.linalg.solve(C + k * np.eye(len(C)), target)
        fresh = np.where(products.group == group, products.fresh, 0.0)
        rows.append(
            (
                v @ np.sqrt(products.weights),
                v @ target,
                v @ fresh,
                1 - 2 * v @ target + v @ C @ v,
            )
        )
    return samples, used / (1 - used), np.array(rows).T


@pytest.mark.parametrize("flips", [0.0, 0.1])
@pytest.mark.parametrize("k", [1e-4, 0.3, 20.0])
def test_closed_form_of_a_fit_is_that_of_the_whole_covariance_matrix(flips, k):
    target = LabelHierarchy(dimension=6, depth=2, labels=5, seed=1)
    known = np.concatenate(target.inputs_of)
    agreement = np.append(np.ones(6), 1 - 2 * flips * np.linspace(0.2, 1, 10))
    products = products_of(known, agreement, agreement**0.5)
    fit = RidgeFit(products, 0.7, k)
    samples, noise_ratio, (amplitude, mean, fresh, bias) = dense_fit(products, 0.7, k)
    np.testing.assert_allclose(fit.samples, samples)
    np.testing.assert_allclose(fit.noise_ratio, noise_ratio, rtol=1e-6)
    np.testing.assert_allclose(fit.amplitude, amplitude)
    np.testing.assert_allclose(fit.mean, mean)
    np.testing.assert_allclose(fit.fresh_mean, fresh)
    np.testing.assert_allclose(fit.bias, bias, atol=1e-12)


@pytest.mark.parametrize("samples", [30.0, 200.0, 3000.0])
def test_the_effective_ridge_solves_its_equation(samples):
    known = np.concatenate(LabelHierarchy().inputs_of[:2])
    fit = fit_ridge(products_of(known, np.ones(36), np.ones(36)), samples, 2.0)
    assert fit.samples == pytest.approx(samples, rel=1e-8)
    assert fit.residual_ratio == pytest.approx(2.0 / (samples * fit.k))


def test_error_without_ridge():
    # D functions of weight 1 and n < D: the share is L = n / D, and the error Phi(-sqrt(L / (1 - L))).
    target = LabelHierarchy(dimension=40, depth=1, labels=4)
    block = label_cascade(target, samples=300, blocks=1, ridge=1e-6)[0]
    for samples, error in ((300, block.error), (150, block.out_of_fold_error)):
        share = samples / (40 * 41 / 2)
        np.testing.assert_allclose(error, norm.cdf(-np.sqrt(share / (1 - share))), rtol=0.01)
    assert block.functions == 40 * 41 // 2 + 1


@pytest.mark.parametrize(("threshold", "folds"), [(0.15, 2), (0.05, 5)])
def test_required_samples_without_ridge(threshold, folds):
    # n (1 - 1/k) = D t² / (1 + t²) with Phi(-t) = threshold
    target = LabelHierarchy(dimension=40, depth=1, labels=4)
    t = norm.isf(threshold)
    (size,) = required_samples(target, blocks=1, folds=folds, threshold=threshold, ridge=1e-6)
    expected = folds / (folds - 1) * 820 * t**2 / (1 + t**2)
    assert size == pytest.approx(expected, rel=5e-3)


def test_levels_are_accepted_from_the_required_samples_on():
    target = LabelHierarchy(dimension=16, depth=3, labels=10, seed=2)
    settings = {"folds": 2, "threshold": 0.15, "ridge": 1.0}
    sizes = required_samples(target, blocks=3, **settings)
    assert sorted(sizes) == list(sizes)
    for level, size in enumerate(sizes):
        above = label_cascade(target, samples=int(1.02 * size), blocks=3, **settings)[-1]
        assert above.accepted[: 10 * (level + 1)].all()
        below = label_cascade(target, samples=int(0.98 * size), blocks=3, **settings)[-1]
        assert not below.accepted[: 10 * (level + 1)].all()


def test_levels_beyond_the_blocks_are_never_accepted():
    sizes = required_samples(LabelHierarchy(), blocks=2, folds=2, threshold=0.15, ridge=1.0)
    assert sizes[1] is not None
    assert sizes[2:] == (None, None)
    alone = required_samples(LabelHierarchy(), blocks=4, folds=1, threshold=0.15, ridge=1.0)
    assert alone == (None,) * 4


def test_labels_that_are_no_products_of_known_signs_have_error_one_half():
    target = LabelHierarchy(dimension=30, depth=3, labels=12)
    block = label_cascade(target, samples=5000, blocks=1)[0]
    degree = np.array([int(x).bit_count() for x in np.concatenate(target.inputs_of[1:])])
    np.testing.assert_allclose(block.error[degree > 2], 0.5)
    assert block.error[degree <= 2].max() < 1e-6
    np.testing.assert_array_equal(block.accepted, degree <= 2)


def test_a_label_accepted_at_chance_level_adds_nothing():
    """With four standard errors subtracted, labels of error 1/2 are accepted from few samples."""
    target = LabelHierarchy(dimension=18, depth=3, labels=10)
    degree = np.array([int(x).bit_count() for x in np.concatenate(target.inputs_of[1:])])
    for block in label_cascade(target, samples=60, blocks=3, threshold=0.25, deviation=-4):
        np.testing.assert_allclose(block.error[degree > 2], 0.5)
        assert block.error[degree <= 2].max() < 0.5
        assert block.accepted.all()


@pytest.mark.parametrize("flips", [0.0, 0.08])
@pytest.mark.parametrize("samples", [150, 300, 450])
def test_error_of_a_fit_on_flipped_signs(samples, flips):
    """Compare with ridge regression on features that are flipped independently."""
    target = LabelHierarchy(dimension=14, depth=2, labels=10)
    agreement = np.append(np.ones(14), np.full(10, 1 - 2 * flips))
    products = products_of(np.concatenate(target.inputs_of[:2]), agreement, agreement)
    place, linked = products.places(target.inputs_of[2])
    assert linked.all()
    expected = sign_error(fit_ridge(products, samples, 1.0), place, linked, fresh=True)
    measured = []
    for seed in range(25):
        rng = np.random.default_rng([samples, seed])
        X, Y = target.sample(samples + 1000, rng)
        flipped = np.where(rng.random((len(X), 10)) < flips, -1, 1)
        U, y = np.column_stack([X, Y[:, :10] * flipped]), Y[:, 10:]
        gram = kernel(U[:samples], U[:samples]) + np.eye(samples)
        scores = kernel(U[samples:], U[:samples]) @ np.linalg.solve(gram, y[:samples])
        measured.append(np.mean(scores * y[samples:] <= 0, axis=0))
    mean, error = np.mean(measured, axis=0), np.std(measured, axis=0, ddof=1) / 5
    # Flips are not Gaussian, and products that share a factor are flipped together: 12 %.
    assert (np.abs(mean - expected) <= 4 * error + 0.01 + 0.12 * (flips > 0) * expected).all()


@pytest.mark.parametrize("samples", [100, 250, 600])
def test_in_sample_error(samples):
    target = LabelHierarchy(dimension=15, depth=3, labels=8)
    block = label_cascade(target, samples=samples, blocks=1, folds=1, ridge=3.0)[0]
    errors = []
    for seed in range(12):
        X, Y = target.sample(samples, np.random.default_rng([samples, seed]))
        cascade = LabelCascadeClassifier(blocks=1, folds=1, ridge=3.0).fit(X, Y)
        errors.append(cascade.out_of_fold_error_)
    mean, error = np.mean(errors, axis=0), np.std(errors, axis=0, ddof=1) / np.sqrt(12)
    allowed = 4.5 * np.maximum(error, error.mean()) + 0.01
    assert (np.abs(mean - block.out_of_fold_error) <= allowed).all()


def test_a_deviation_moves_the_acceptance():
    target = LabelHierarchy()
    size = required_samples(target, blocks=4, folds=2, threshold=0.15, ridge=1.0)[0]
    accepted = [
        label_cascade(target, samples=round(size), blocks=1, deviation=x)[0].accepted.sum()
        for x in (-1.0, 1.0)
    ]
    assert accepted[0] > accepted[1]


@pytest.mark.parametrize(
    "wrong",
    [
        {"samples": 1},
        {"blocks": 0},
        {"folds": 0},
        {"folds": 101},
        {"ridge": 0.0},
        {"threshold": 0.7},
        {"deviation": float("nan")},
        {"deviation": "a"},
        {"target": "a"},
    ],
)
def test_invalid_numbers(wrong):
    with pytest.raises(InvalidParameter, match="allowed"):
        label_cascade(**{"target": LabelHierarchy(), "samples": 100, "blocks": 1, **wrong})


def test_blocks_after_one_without_an_accepted_label_repeat_it():
    blocks = label_cascade(LabelHierarchy(), samples=600, blocks=6)
    assert len(blocks) == 6
    assert [block.accepted.sum() for block in blocks] == [22] * 6
    np.testing.assert_allclose(blocks[5].error, blocks[1].error)
