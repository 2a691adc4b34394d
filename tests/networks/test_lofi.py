"""Layer-wise filtered estimators: exact limits, equal routes, invariances, conventions."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import subspace_angles
from sklearn.kernel_ridge import KernelRidge
from sklearn.utils.estimator_checks import parametrize_with_checks

from solvable.errors import NoFeatureFound
from solvable.learners import (
    Block,
    NeuralLoFiClassifier,
    NeuralLoFiRegressor,
    NeuralLoFiTransformer,
    network_blocks,
)
from solvable.networks.base import DEFAULT_WIDTH, KERNEL_SAMPLES, default_blocks, scaling_from
from solvable.networks.layers import KernelChain

SMALL = [Block(None, 30), Block(3, 20, whitening="std")]


@parametrize_with_checks(
    [
        NeuralLoFiClassifier(random_state=0),
        NeuralLoFiTransformer(random_state=0),
        NeuralLoFiClassifier(SMALL, random_state=0),
        NeuralLoFiRegressor(SMALL, random_state=0),
    ]
)
@pytest.mark.filterwarnings("ignore::solvable.errors.NoFeatureFound")
@pytest.mark.filterwarnings("ignore:reduce is .* and the features have rank:UserWarning")
def test_conventions_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = 1.0 + rng.standard_normal((240, 6)) * np.linspace(1, 3, 6)
    index = (X[:, 0] - 1) * (X[:, 1] - 1) + 0.5 * (X[:, 2] - 1)
    X.setflags(write=False)
    return X, index, np.where(index > 0, "up", "down")


def coordinates(features, blocks, X, y, **settings_):
    """Filtered coordinates of the estimator, and those of a dense filter of given features."""
    model = NeuralLoFiTransformer(blocks, scaling="none", random_state=0, **settings_).fit(X, y)
    signs = np.where(y == "up", 1.0, -1.0)
    values, vectors = np.linalg.eigh((features.T * signs) @ features / len(X))
    k = model.transform(X).shape[1]
    order = np.argsort(-np.abs(values))[:k]
    return model, values[order], features @ vectors[:, order]


def assert_same_up_to_signs(found, expected, tolerance=1e-8):
    signs = np.sign(np.sum(found * expected, axis=0))
    np.testing.assert_allclose(found * signs, expected, atol=tolerance * np.abs(expected).max())


def test_infinite_lift_of_the_identity_filters_the_samples(table):
    X, _, y = table
    features = X / np.sqrt(np.mean(np.sum(X**2, axis=1)))
    blocks = [Block(None, math.inf, "identity"), Block(4, None)]
    model, values, expected = coordinates(features, blocks, X, y)
    np.testing.assert_allclose(model.filters_[0].eigenvalues, values, atol=1e-9)
    assert_same_up_to_signs(model.transform(X), expected)


def test_infinite_lift_of_the_square_filters_all_products(table):
    # E (w.a)² (w.b)² = |a|² |b|² + 2 (a.b)²: features |x|² and sqrt(2) x x^T.
    X, _, y = table
    scaled = X / np.sqrt(np.mean(np.sum(X**2, axis=1)))
    products = np.sqrt(2) * np.einsum("ni,nj->nij", scaled, scaled).reshape(len(X), -1)
    features = np.hstack([np.sum(scaled**2, axis=1, keepdims=True), products])
    blocks = [Block(None, math.inf, "square"), Block(5, None)]
    model, values, expected = coordinates(features, blocks, X, y)
    np.testing.assert_allclose(model.filters_[0].eigenvalues, values, atol=1e-9)
    assert_same_up_to_signs(model.transform(X), expected, 1e-6)
    # New rows use the kernel with the landmarks only.
    new = NeuralLoFiTransformer(blocks, scaling="none", random_state=0).fit(X[:200], y[:200])
    np.testing.assert_allclose(new.transform(X)[:200], new.transform(X[:200]), atol=1e-12)


def test_fewer_samples_than_features_are_the_same_filter(table):
    # Compare the Gram-matrix route (n < P) with the dense one on the features of the model.
    X, _, y = table
    for width in (100, 400):
        blocks = [Block(None, width, "tanh"), Block(4, None)]
        lifted = NeuralLoFiTransformer(blocks[:1], scaling="none", random_state=0).fit(X, y)
        features = lifted.transform(X)
        model, values, expected = coordinates(features, blocks, X, y)
        np.testing.assert_allclose(model.filters_[0].eigenvalues, values, atol=1e-9)
        assert_same_up_to_signs(model.transform(X), expected, 1e-6)
        directions = model.network_.layers[-1].directions
        np.testing.assert_allclose(directions.T @ directions, np.eye(4), atol=1e-8)


@pytest.mark.parametrize("n", [80, 240])
def test_readout_of_explicit_features_is_the_same_by_both_routes(table, n):
    X, index, _ = table
    model = NeuralLoFiRegressor([Block(None, 100)], regularisation=0.01, random_state=0)
    model.fit(X[:n], index[:n])
    Z = model.transform(X)
    power = np.mean(np.sum((Z[:n] - Z[:n].mean(axis=0)) ** 2, axis=1))
    centred = Z - Z[:n].mean(axis=0)
    dual = KernelRidge(alpha=0.01 * power).fit(centred[:n], index[:n] - index[:n].mean())
    np.testing.assert_allclose(
        model.predict(X), dual.predict(centred) + index[:n].mean(), atol=1e-7 * np.ptp(index)
    )


def test_network_without_filters_is_kernel_ridge_with_its_kernel(table):
    X, index, _ = table
    model = NeuralLoFiRegressor(
        network_blocks(2), scaling="none", regularisation=0.02, random_state=0
    ).fit(X[:200], index[:200])
    chain = KernelChain(("relu", "relu"), model.network_.readout.squared_scales, (0.0, 0.0))
    K = chain(X, X[:200])
    mean = K[:200].mean(axis=0)
    centred = K - mean - K.mean(axis=1, keepdims=True) + mean.mean()
    square = centred[:200]
    alpha = 0.02 * np.mean(np.diag(square))
    y = index[:200]
    expected = centred @ np.linalg.solve(square + alpha * np.eye(200), y - y.mean()) + y.mean()
    np.testing.assert_allclose(model.predict(X), expected, atol=1e-6 * np.ptp(index))


def test_wide_networks_approach_the_infinite_one(table):
    X, _, y = table

    def directions(width):
        blocks = [Block(None, width), Block(3, None)]
        model = NeuralLoFiTransformer(blocks, random_state=0).fit(X, y)
        return model.transform(X), model.filters_[0].eigenvalues

    limit, strengths = directions(math.inf)
    angles, gaps = [], []
    for width in (200, 2_000, 20_000):
        found, values = directions(width)
        angles.append(np.sin(subspace_angles(found, limit)).max())
        gaps.append(np.abs(values - strengths).max() / abs(strengths[0]))
    # P^(-1/2): a factor of ten in width is at least a factor of 1.7 in error.
    assert angles[2] < angles[0] / 3
    assert gaps[2] < gaps[0] / 3
    assert angles[2] < 0.15


@pytest.mark.parametrize("width", [50, math.inf])
@pytest.mark.parametrize("whitening", ["std", "rms", "centred"])
def test_whitened_coordinates_have_unit_power(table, width, whitening):
    X, _, y = table
    blocks = [Block(None, width), Block(4, None, whitening=whitening)]
    model = NeuralLoFiTransformer(blocks, random_state=0).fit(X[:160], y[:160])
    kept = model.transform(X[:160])
    if whitening == "rms":
        np.testing.assert_allclose(np.mean(kept**2, axis=0), 1)
    else:
        np.testing.assert_allclose(kept.std(axis=0), 1)
    means = np.abs(kept.mean(axis=0))
    assert (means < 1e-9).all() if whitening == "centred" else (means > 1e-3).any()
    # New rows use the stored statistics, independent of other rows.
    np.testing.assert_allclose(model.transform(X[200:201]), model.transform(X[160:])[40:41])


def test_scalings(table):
    X, _, y = table

    def scaled(scaling):
        model = NeuralLoFiTransformer([Block(6, None)], scaling=scaling).fit(X, y)
        return model.network_.layers[0]

    columns, whole = scaled("columns").apply(X), scaled("global").apply(X)
    np.testing.assert_allclose(columns.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(columns.std(axis=0), 1)
    np.testing.assert_allclose(whole, (X - X.mean()) / X.std())
    assert scaled("none").kind == "filter"


def test_whitened_columns_have_the_shrunk_correlations_of_scikit_learn(table):
    from sklearn.covariance import oas

    X, _, y = table
    X = X @ np.random.default_rng(0).standard_normal((X.shape[1], X.shape[1]))
    whiten = (
        NeuralLoFiTransformer([Block(6, None)], scaling="whitened").fit(X, y).network_.layers[0]
    )
    standard = (X - X.mean(axis=0)) / X.std(axis=0)
    covariance = oas(standard)[0]
    np.testing.assert_allclose(
        np.linalg.inv(whiten.matrix @ whiten.matrix.T),
        covariance * np.outer(X.std(axis=0), X.std(axis=0)),
    )
    np.testing.assert_allclose(whiten.apply(X).mean(axis=0), 0, atol=1e-10)


def test_white_columns_are_hardly_turned():
    # Whitening by unshrunk sample correlations would stretch directions by up to a factor of six.
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((80, 40)), rng.integers(2, size=80)
    apply = NeuralLoFiTransformer([Block(6, None)], scaling="whitened").fit(X, y).network_.layers[0]
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    moved = np.linalg.norm(apply.apply(X) - Z) / np.linalg.norm(Z)
    assert moved < 0.1


def test_a_direction_of_correlated_columns_is_found_where_it_is():
    # Without whitening the second moment of w . x has its direction along C w.
    rng = np.random.default_rng(0)
    d, n = 30, 3000
    root = np.linalg.cholesky(0.8 ** np.abs(np.subtract.outer(np.arange(d), np.arange(d))))
    X = rng.standard_normal((n, d)) @ root.T
    w = np.where(np.arange(d) == 7, 1.0, 0.0) - 0.7 * np.where(np.arange(d) == 8, 1.0, 0.0)
    coordinate = X @ w
    y = (coordinate / coordinate.std()) ** 2

    def squared_correlation(scaling):
        model = NeuralLoFiTransformer([Block(1, None)], scaling=scaling).fit(X, y)
        return np.corrcoef(model.transform(X)[:, 0], coordinate)[0, 1] ** 2

    assert squared_correlation("whitened") > 0.9
    assert squared_correlation("columns") < 0.5


@pytest.mark.parametrize("scaling", ["columns", "whitened", "global", "none"])
def test_constant_columns_do_no_harm(table, scaling):
    X, _, y = table
    extended = np.hstack([X, np.full((len(X), 1), 0.1)])
    model = NeuralLoFiClassifier(SMALL, scaling=scaling, random_state=0).fit(extended, y)
    assert np.isfinite(model.decision_function(extended)).all()


@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 1000))
def test_order_of_the_rows_does_not_matter(table, seed):
    X, index, _ = table
    order = np.random.default_rng(seed).permutation(len(X))
    blocks = [Block(None, math.inf), Block(4, 40, first_moment=True)]
    outputs = [
        NeuralLoFiRegressor(blocks, random_state=0).fit(X[rows], index[rows]).predict(X)
        for rows in (slice(None), order)
    ]
    np.testing.assert_allclose(*outputs, atol=1e-6 * np.ptp(index))


@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 1000), size=st.floats(0.01, 100.0))
def test_rotations_of_the_columns_do_not_matter_to_kernels(table, seed, size):
    X, _, y = table
    rotation = np.linalg.qr(np.random.default_rng(seed).standard_normal((6, 6)))[0]
    blocks = [Block(None, math.inf), Block(4, math.inf)]
    outputs = [
        NeuralLoFiClassifier(blocks, scaling="none", random_state=0)
        .fit(one, y)
        .decision_function(one)
        for one in (X, size * X @ rotation)
    ]
    np.testing.assert_allclose(*outputs, atol=1e-5)


@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 1000))
def test_units_of_the_columns_do_not_matter_when_they_are_standardised(table, seed):
    X, _, y = table
    rng = np.random.default_rng(seed)
    other = X * np.exp(3 * rng.standard_normal(6)) + 10 * rng.standard_normal(6)
    outputs = [
        NeuralLoFiClassifier(SMALL, random_state=0).fit(one, y).decision_function(one)
        for one in (X, other)
    ]
    np.testing.assert_allclose(*outputs, atol=1e-6)


def test_exchanged_classes_exchange_signs_alone(table):
    # Sign symmetry of equation 1, lofi, for the estimator
    X, _, y = table
    blocks = [Block(None, math.inf), Block(4, math.inf, first_moment=True)]
    models = [
        NeuralLoFiClassifier(blocks, random_state=0).fit(X, labels)
        for labels in (y == "up", y == "down")
    ]
    np.testing.assert_allclose(
        models[0].filters_[0].eigenvalues, -models[1].filters_[0].eigenvalues, atol=1e-12
    )
    np.testing.assert_allclose(
        models[0].decision_function(X), -models[1].decision_function(X), atol=1e-6
    )


@settings(max_examples=8, deadline=None)
@given(scale=st.floats(1e-6, 1e6), shift=st.floats(-100, 100))
def test_units_of_real_labels_do_not_matter(table, scale, shift):
    X, index, _ = table
    base = NeuralLoFiRegressor(SMALL, random_state=0).fit(X, index).predict(X)
    moved = NeuralLoFiRegressor(SMALL, random_state=0).fit(X, scale * (index + shift)).predict(X)
    np.testing.assert_allclose(moved / scale - shift, base, atol=1e-5 * np.ptp(index))


def test_single_precision_is_the_same_up_to_its_digits(table):
    X, _, y = table
    outputs = [
        NeuralLoFiClassifier(SMALL, random_state=0).fit(one, y).decision_function(one)
        for one in (X, X.astype(np.float32))
    ]
    np.testing.assert_allclose(*outputs, atol=5e-3)


def test_seeds(table):
    X, _, y = table
    features = [
        NeuralLoFiTransformer(SMALL, random_state=seed).fit(X, y).transform(X) for seed in (0, 0, 1)
    ]
    np.testing.assert_array_equal(features[0], features[1])
    assert not np.allclose(features[0], features[2])


def test_final_filter_ends_the_network(table):
    X, _, y = table
    model = NeuralLoFiClassifier([Block(None, 40)], final_reduce=3, random_state=0).fit(X, y)
    same = NeuralLoFiClassifier([Block(None, 40), Block(3, None)], random_state=0).fit(X, y)
    assert model.transform(X).shape == (240, 3)
    np.testing.assert_allclose(model.decision_function(X), same.decision_function(X), atol=1e-9)
    assert list(model.filters_[0].eigenvalues) == pytest.approx(list(same.filters_[0].eigenvalues))


def test_names_of_the_features(table):
    X, _, y = table
    model = NeuralLoFiTransformer([Block(None, 40), Block(3, None)], random_state=0).fit(X, y)
    assert list(model.get_feature_names_out()) == [f"neurallofitransformer{i}" for i in range(3)]


@pytest.mark.parametrize("multiclass", ["sum-of-squares", "alternating"])
@pytest.mark.parametrize("width", [60, math.inf])
def test_many_classes(multiclass, width):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((900, 5))
    y = np.array(["a", "b", "c"])[np.argmax(np.abs(X[:, :3]), axis=1)]
    blocks = [Block(None, 3 * width), Block(8, width)]
    model = NeuralLoFiClassifier(blocks, multiclass=multiclass, random_state=0)
    model.fit(X[:600], y[:600])
    assert model.decision_function(X).shape == (900, 3)
    # Chance is 1/3; the standard error of 300 rows is 0.025.
    assert model.score(X[600:], y[600:]) > 0.75
    assert (model.filters_[0].eigenvalues[0] > 0) or multiclass == "alternating"


def test_unbalanced_labels_are_centred_on_request(table):
    X, index, _ = table
    y = index > np.quantile(index, 0.9)
    means = []
    for centre in (False, True):
        blocks = [Block(None, math.inf), Block(2, None)]
        model = NeuralLoFiTransformer(blocks, centre_labels=centre, random_state=0).fit(X, y)
        means.append(model.filters_[0].eigenvalues[0])
    # Raw labels of mean -0.8 add -0.8 times the second moment of the features, whose first
    # eigenvalue is that of the mean of a ReLU, near 1 / 2 pi.
    assert means[0] == pytest.approx(-0.8 / (2 * np.pi), rel=0.1)
    assert abs(means[1]) < abs(means[0]) / 2


def test_default_network_depends_on_the_number_of_samples():
    assert [block.width for block in default_blocks(KERNEL_SAMPLES)] == [math.inf] * 2
    for n in (KERNEL_SAMPLES + 1, None):
        assert [block.width for block in default_blocks(n)] == [DEFAULT_WIDTH] * 2
    assert [block.reduce for block in default_blocks(10)] == [None, "auto"]


def test_meaningless_labels_give_a_warning():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((300, 10)), rng.standard_normal(300)
    with pytest.warns(NoFeatureFound, match="filter 1: no direction"):
        model = NeuralLoFiRegressor(random_state=0).fit(X, y)
    assert model.filters_[0].n_significant == 0
    assert model.transform(X).shape == (300, 1)


def test_a_constant_column_keeps_its_scale():
    first = scaling_from(np.array([1.0, 2.0]), np.array([4.0, 0.0]), "columns")
    np.testing.assert_allclose(first.scale, [2.0, 1.0])
    assert scaling_from(np.zeros(2), np.ones(2), "none") is None
