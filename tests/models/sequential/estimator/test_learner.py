"""Layer-wise learner: scikit-learn interface, invariances, recovery, depth, rejections."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from solvable.arrays import random_stream
from solvable.errors import NoFeatureFound
from solvable.learners import LayerwiseSpectralRegressor

RECOVERED = 0.8
"""Squared overlap above which a direction counts as recovered."""


def gaussian_problem(n=3000, d=40, heights=(0.8, -0.6), seed=0):
    """Gaussian features (degree 1) with a diagonal quadratic label; the directions are axes."""
    rng = random_stream("gaussian problem", n, d, seed)
    X = rng.standard_normal((n, d))
    return X, (X[:, : len(heights)] ** 2 - 1) @ np.array(heights) / np.sqrt(2)


def learner(**parameters):
    chosen = {"degree": 1, "random_state": 0, **parameters}
    return LayerwiseSpectralRegressor(**chosen)


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"degree": 1},
        {"degree": 3, "n_directions": 1, "selection": "forced"},
        {"n_directions": 1, "selection": "modulus", "solver": "power-iteration"},
        {"n_directions": (2, 1), "selection": "forced", "linear_terms": True},
        {"second_layer": "shrinkage", "readout": "none", "correction": "none"},
    ],
    ids=str,
)
def test_scikit_learn_contract(parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(
            LayerwiseSpectralRegressor(**parameters), on_skip=None, on_fail="raise"
        )
    assert sum(one["status"] == "passed" for one in results) > 40
    assert not [one for one in results if one["status"] == "xfail"]


def test_finds_both_signs_and_predicts():
    X, y = gaussian_problem()
    fitted = learner().fit(X, y)
    assert fitted.eigenvalues_.size == 2
    assert fitted.eigenvalues_[0] > fitted.bulk_edges_[1]
    assert fitted.eigenvalues_[1] < fitted.bulk_edges_[0]
    overlaps = fitted.directions_[:2] ** 2
    assert overlaps[0, 0] > RECOVERED
    assert overlaps[1, 1] > RECOVERED
    np.testing.assert_allclose(fitted.directions_.T @ fitted.directions_, np.eye(2), atol=1e-10)
    fresh, labels = gaussian_problem(seed=1)
    # 1 - sum lambda² c⁴ with c² of about 0.95 is 0.1.
    assert fitted.score(fresh, labels) > 0.8
    assert fitted.n_features_in_ == 40
    assert fitted.route_ == "dense"
    assert fitted.get_feature_names_out().tolist() == [
        "layerwisespectralregressor0",
        "layerwisespectralregressor1",
    ]
    np.testing.assert_allclose(fitted.transform(fresh), fresh @ fitted.directions_, atol=1e-12)


def test_finds_a_quadratic_feature():
    from solvable.operators import HermiteFeatures

    features = HermiteFeatures(2, 24)
    rng = random_stream("quadratic feature")
    direction = rng.standard_normal((features.n_features, 1))
    direction /= np.linalg.norm(direction)
    X = rng.standard_normal((60 * features.n_features, 24))
    y = features.project(X, direction)[:, 0] ** 2
    fitted = learner(degree=2, n_directions=1).fit(X, y)
    assert (direction[:, 0] @ fitted.directions_[:, 0]) ** 2 > RECOVERED
    assert fitted.eigenvalues_[0] > fitted.bulk_edges_[1]
    np.testing.assert_allclose(
        fitted.transform(X[:50]), features.transform(X[:50]) @ fitted.directions_, atol=1e-8
    )


def test_finds_a_cubic_feature():
    """x1 x2 x3 among 56 cubic features; in so small a dimension without correction."""
    from solvable.operators import HermiteFeatures

    features = HermiteFeatures(3, 6)
    X = random_stream("cubic feature").standard_normal((20_000, 6))
    h = X[:, 0] * X[:, 1] * X[:, 2]
    fitted = learner(degree=3, n_directions=1, correction="none", selection="forced").fit(X, h**2)
    np.testing.assert_allclose(
        fitted.transform(X[:50]), features.transform(X[:50]) @ fitted.directions_, atol=1e-8
    )
    # Chance is 1/56. In this dimension x1 x2 x3 mixes with features such as x1 x2 x4.
    assert np.corrcoef(fitted.transform(X)[:, 0], h)[0, 1] ** 2 > 0.3
    # The edges include the lower chaoses, which are wider than the noise.
    assert fitted.bulk_edges_[1] > fitted.noise_edges_[1] + 0.1


def test_forced_returns_exactly_what_was_asked_for():
    X, y = gaussian_problem()
    fitted = learner(n_directions=5, selection="forced").fit(X, y)
    assert fitted.directions_.shape == (40, 5)
    assert fitted.layers_[0].outliers.tolist() == [True, True, False, False, False]
    assert [one.rank for one in fitted.rejected_] == [3, 4, 5]
    assert all(one.returned and one.reason == "below threshold" for one in fitted.rejected_)
    assert len(fitted.transform(X[:3])[0]) == 5


def test_forced_directions_inside_the_bulk_converge_too():
    X, y = gaussian_problem(n=4000, d=150)
    fitted = learner(n_directions=4, selection="forced", solver="lanczos").fit(X, y)
    dense = learner(n_directions=4, selection="forced", solver="dense").fit(X, y)
    assert fitted.layers_[0].converged.all()
    np.testing.assert_allclose(fitted.eigenvalues_, dense.eigenvalues_, atol=1e-3)
    assert fitted.n_products_ > 0
    assert dense.n_products_ == 0


def test_at_most_the_number_asked_for():
    X, y = gaussian_problem(heights=(0.7, -0.6, 0.4))
    fitted = learner(n_directions=2).fit(X, y)
    assert fitted.directions_.shape == (40, 2)
    assert fitted.rejected_ == ()
    more = learner(n_directions=6).fit(X, y)
    assert more.eigenvalues_.size + len(more.rejected_) == 6


def test_more_features_than_the_first_candidates():
    """The number of candidates doubles while all on one side are features."""
    heights = np.full(20, 1 / np.sqrt(20))
    X, y = gaussian_problem(n=40_000, d=60, heights=heights)
    fitted = learner().fit(X, y)
    assert fitted.eigenvalues_.size == 20
    assert np.sum(fitted.directions_[:20] ** 2) > 20 * RECOVERED


def test_solver_that_did_not_converge_is_a_reason():
    X, y = gaussian_problem(n=4000, d=150)
    with pytest.warns(NoFeatureFound, match="residual"):
        fitted = learner(n_directions=2, solver="lanczos", max_products=6).fit(X, y)
    assert fitted.rejected_[0].reason == "solver not converged"
    assert "6 products" in fitted.rejected_[0].message
    assert fitted.n_products_ == 6
    forced = learner(n_directions=2, solver="lanczos", max_products=6, selection="forced").fit(X, y)
    assert forced.directions_.shape == (150, 2)
    assert not forced.layers_[0].converged.all()
    assert forced.rejected_[0].returned


def test_weak_feature_inside_the_population_bulk():
    """d = 20, a strong feature and one of 1/8 its height, inside the bulk even if corrected."""
    from solvable.operators import HermiteFeatures

    features = HermiteFeatures(2, 20)
    rng = random_stream("inside the bulk")
    A, _ = np.linalg.qr(rng.standard_normal((features.n_features, 2)))
    X = rng.standard_normal((150_000, 20))
    y = (features.project(X, A) ** 2 - 1) @ np.array([1.0, 0.125])
    fitted = learner(degree=2, n_directions=4, shuffle=False).fit(X, y)
    assert (A[:, 0] @ fitted.directions_[:, 0]) ** 2 > 0.95
    reasons = {one.reason for one in fitted.rejected_}
    assert "inside population bulk" in reasons
    lower, upper = fitted.bulk_edges_
    assert lower < fitted.noise_edges_[0] < fitted.noise_edges_[1] < upper
    for one in fitted.rejected_:
        assert lower <= one.eigenvalue <= upper


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 2**31), st.sampled_from([1, 2]))
def test_rotated_inputs_give_rotated_features(seed, degree):
    X, y = gaussian_problem(n=2000, d=14, heights=(0.9, -0.5))
    rotation, _ = np.linalg.qr(random_stream(seed).standard_normal((14, 14)))
    options = {"degree": degree, "n_directions": 3, "selection": "forced", "tolerance": 1e-8}
    one, two = learner(**options).fit(X, y), learner(**options).fit(X @ rotation, y)
    np.testing.assert_allclose(one.eigenvalues_, two.eigenvalues_, rtol=1e-8)
    # The starting vector of the quadrature is not rotated.
    np.testing.assert_allclose(one.noise_edges_, two.noise_edges_, rtol=1e-8)
    np.testing.assert_allclose(one.predict(X), two.predict(X @ rotation), rtol=1e-5, atol=1e-6)


@settings(max_examples=10, deadline=None)
@given(st.floats(1e-3, 1e3), st.floats(-1e3, 1e3), st.booleans())
def test_labels_in_other_units(scale, offset, flip):
    X, y = gaussian_problem(n=1500, d=20)
    factor = -scale if flip else scale
    one, two = learner().fit(X, y), learner().fit(X, factor * y + offset)
    order = np.argsort(one.eigenvalues_)
    flipped = np.argsort(np.sign(factor) * two.eigenvalues_)
    np.testing.assert_allclose(
        one.eigenvalues_[order], np.sign(factor) * two.eigenvalues_[flipped], rtol=1e-6
    )
    np.testing.assert_allclose(
        two.predict(X), factor * one.predict(X) + offset, rtol=1e-5, atol=1e-4 * scale
    )


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**31))
def test_order_of_rows_with_one_role_does_not_matter(seed):
    X, y = gaussian_problem(n=1600, d=20)
    order = random_stream(seed).permutation(1200)
    order = np.concatenate([order, 1200 + random_stream(seed, "fresh").permutation(400)])
    options = {"shuffle": False, "held_back": 400}
    one, two = learner(**options).fit(X, y), learner(**options).fit(X[order], y[order])
    np.testing.assert_allclose(one.eigenvalues_, two.eigenvalues_, rtol=1e-9)
    np.testing.assert_allclose(one.bulk_edges_, two.bulk_edges_, rtol=1e-9)
    np.testing.assert_allclose(one.predict(X), two.predict(X), rtol=1e-6, atol=1e-8)


def test_the_seed_fixes_everything():
    X, y = gaussian_problem(n=1000, d=20)
    one, two = learner(random_state=3).fit(X, y), learner(random_state=3).fit(X, y)
    np.testing.assert_array_equal(one.predict(X), two.predict(X))
    other = learner(random_state=4).fit(X, y)
    assert not np.array_equal(one.predict(X), other.predict(X))
    for state in (np.random.RandomState(0), np.random.default_rng(0), None, np.int64(3)):
        assert learner(random_state=state).fit(X, y).eigenvalues_.size >= 1


def test_types_and_routes_agree():
    X, y = gaussian_problem(n=1200, d=30)
    reference = learner(solver="dense").fit(X, y)
    single = learner(solver="dense").fit(X.astype(np.float32), y.astype(np.float32))
    np.testing.assert_allclose(single.eigenvalues_, reference.eigenvalues_, atol=1e-4)
    assert single.predict(X.astype(np.float32)).dtype == np.float64
    lanczos = learner(solver="lanczos", tolerance=1e-7).fit(X, y)
    np.testing.assert_allclose(lanczos.predict(X), reference.predict(X), atol=1e-4)
    few, labels = gaussian_problem(n=80, d=90, heights=(1.0,))
    options = {"n_directions": 2, "selection": "forced"}
    gram = learner(solver="gram", **options).fit(few, labels)
    dense = learner(solver="dense", **options).fit(few, labels)
    assert gram.route_ == "gram"
    np.testing.assert_allclose(gram.eigenvalues_, dense.eigenvalues_, atol=1e-9)


def test_pipeline_grid_search_pickle_and_clone():
    X, y = gaussian_problem(n=900, d=10)
    X = 3 * X + 1
    pipeline = make_pipeline(StandardScaler(), learner(linear_terms=True))
    grid = {
        "layerwisespectralregressor__n_directions": [1, 2],
        "layerwisespectralregressor__label_map": ["tanh", "clip"],
    }
    search = GridSearchCV(pipeline, grid, cv=3).fit(X, y)
    assert search.best_params_["layerwisespectralregressor__n_directions"] == 2
    assert search.best_score_ > 0.7
    best = search.best_estimator_
    again = pickle.loads(pickle.dumps(best))
    np.testing.assert_array_equal(again.predict(X), best.predict(X))
    assert clone(learner(degree=3)).get_params()["degree"] == 3


def test_readout_undoes_a_saturating_label():
    X, y = gaussian_problem(n=8000, d=30)
    fresh, clean = gaussian_problem(n=4000, d=30, seed=1)
    labels, truth = np.tanh(2 * y), np.tanh(2 * clean)
    bounded = learner().fit(X, labels)
    linear = learner(readout="none").fit(X, labels)
    assert linear.readout_ is None
    assert bounded.score(fresh, truth) > linear.score(fresh, truth) + 0.03
    assert np.abs(bounded.predict(1e3 * fresh)).max() < 1.2


def test_linear_and_cross_terms():
    rng = random_stream("terms")
    X = rng.standard_normal((6000, 20))
    # Recovered features are mixtures unless the matrix is diagonal.
    y = X[:, 0] ** 2 - X[:, 1] ** 2 + 0.8 * X[:, 0]
    plain = learner(readout="none", cross_terms=False).fit(X, y)
    with_slope = learner(readout="none", linear_terms=True).fit(X, y)
    assert np.count_nonzero(plain.second_layer_.linear) == 0
    assert with_slope.score(X, y) > plain.score(X, y) + 0.08
    product = learner(readout="none", n_directions=2).fit(X, X[:, 0] * X[:, 1])
    assert product.score(X, X[:, 0] * X[:, 1]) > RECOVERED


def deep_problem(n, seed, d=30, width=6):
    """Draw a two-layer target: quadratic forms of the first inputs, then the square of one form.

    Degree 1 in the first layer, so that its features are Gaussian and the axes are the truth.
    """
    rng = random_stream("deep", n, seed)
    X = rng.standard_normal((n, d))
    form = np.diag([1.0, -1.0, 1.0, -1.0, 1.0, -1.0][:width]) / np.sqrt(width)
    h = X[:, :width]
    second = (np.einsum("ni,ij,nj->n", h, form, h) - np.trace(form)) / np.sqrt(2)
    return X, second**2


def test_two_layers_learn_what_one_cannot():
    X, y = deep_problem(60_000, 0)
    fresh, truth = deep_problem(5000, 1)
    deep = learner(n_directions=(6, 1), selection="forced", held_back=0.1).fit(X, y)
    shallow = learner(n_directions=6, selection="forced", held_back=0.1).fit(X, y)
    assert len(deep.layers_) == 2
    first, second = deep.layers_
    assert first.directions.shape == (30, 6)
    assert second.features.degree == 2
    assert second.directions.shape == (21, 1)
    # The deeper layer has as many rows as are held back.
    assert (first.n_samples, second.n_samples) == (48_000, 6000)
    assert np.sum(first.directions[:6] ** 2) > 6 * RECOVERED
    assert deep.transform(fresh).shape == (5000, 1)
    assert deep.score(fresh, truth) > 0.75
    assert deep.score(fresh, truth) > shallow.score(fresh, truth) + 0.2


def test_deeper_layer_that_finds_nothing():
    rng = random_stream("nothing deeper")
    X = rng.standard_normal((4000, 20))
    y = np.sign(X[:, 0] ** 2 - 1) * (1 + 0.01 * rng.standard_normal(4000))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoFeatureFound)
        fitted = learner(n_directions=("auto", "auto"), held_back=0.02).fit(X, y)
    assert fitted.directions_.shape[1] == 1
    assert len(fitted.layers_) == 2
    assert np.isfinite(fitted.predict(X)).all()


def test_too_few_rows_for_a_layer_of_its_own():
    X, y = gaussian_problem(n=9, d=4)
    fitted = learner(n_directions=(2, 1), selection="forced").fit(X, y)
    # Seven spectral rows are too few to give the second layer separate rows.
    assert [layer.n_samples for layer in fitted.layers_] == [5, 2]
    assert np.isfinite(fitted.predict(X)).all()
    small, labels = gaussian_problem(n=4, d=3)
    fitted = learner(n_directions=(2, 1), selection="forced").fit(small, labels)
    assert [layer.n_samples for layer in fitted.layers_] == [3, 3]


@pytest.mark.parametrize(
    ("correction", "degree", "expected"),
    [
        ("auto", 1, "none"),
        ("auto", 2, "wick"),
        ("auto", 3, "none"),
        ("wick", 1, "none"),
        ("wick", 3, "wick"),
        ("none", 2, "none"),
    ],
)
def test_which_layers_are_corrected(correction, degree, expected):
    from solvable.models.sequential.estimator.learner import correction_for

    assert correction_for(correction, degree, []) == expected


@pytest.mark.parametrize(("width", "expected"), [(19, "none"), (20, "wick")])
def test_deeper_layers_of_few_inputs_are_not_corrected(width, expected):
    from types import SimpleNamespace

    from solvable.models.sequential.estimator.learner import correction_for

    below = [SimpleNamespace(eigenvalues=np.ones(width))]
    assert correction_for("wick", 2, below) == correction_for("auto", 2, below) == expected


@pytest.mark.parametrize(
    ("dimension", "features", "decay", "label_map", "ratio"),
    [(20, 3, 0.5, "clip", 150), (28, 5, 0.2, "tanh", 90), (30, 3, 1.0, "tanh", 120)],
)
def test_features_of_one_sign_without_correction(dimension, features, decay, label_map, ratio):
    from solvable.operators import MomentOperator, apply_label_map
    from solvable.targets import HierarchicalTarget

    target = HierarchicalTarget(
        dimension, features=features, decay=decay, signs="positive", seed=dimension
    )
    X, y = target.sample(ratio * target.n_features_total, random_stream("one sign", dimension))
    fitted = learner(
        degree=2, n_directions=features, selection="forced", label_map=label_map,
        correction="none", second_layer="in-sample", readout="none", held_back=0, shuffle=False,
    ).fit(X, y)  # fmt: skip
    operator = MomentOperator(X, apply_label_map(y, label_map), target.feature_map)
    vectors = np.linalg.eigh(operator.dense())[1]
    best = np.sort(np.sum((target.directions.T @ vectors) ** 2, axis=0))[-features:].sum()
    found = np.sum((target.directions.T @ fitted.directions_) ** 2)
    assert found > best - 0.02 * features


def test_deeper_layer_is_not_led_by_the_norm_that_its_inputs_share():
    """d = 26, four quadratic features and one form of them, where the norm dominates the moment."""
    from solvable.models.compositional.target import CompositionalTarget

    found, known = [], []
    for seed in range(4):
        target = CompositionalTarget(26, features=(4, 1), seed=seed)
        X, y = target.sample(70_000, random_stream("second layer", seed))
        fitted = learner(degree=2, n_directions=(4, 1), selection="forced", held_back=20_000)
        h = fitted.fit(X, y).transform(X)[:, 0]
        found.append(np.corrcoef(h, target.latent(X)[:, 0])[0, 1] ** 2)
        mixing = fitted.layers_[0].directions.T @ target.directions
        known.append(np.sum((mixing @ target.hidden_layers[0][0] @ mixing.T) ** 2))
    # The overlap is at most the share of the inner form in the learned features.
    assert np.mean(known) > 0.5
    assert np.mean(found) > 0.7 * np.mean(known)


@pytest.mark.parametrize(("degree", "dimension", "slope"), [(2, 40, 7), (3, 20, 10)])
def test_correction_costs_a_share_of_the_height(degree, dimension, slope):
    """The correction removes about slope / d of the height of a feature."""
    from solvable.operators import HermiteFeatures, MomentOperator, apply_label_map

    rng = random_stream("share", degree)
    features = HermiteFeatures(degree, dimension)
    A = rng.standard_normal((features.n_features, 1))
    A /= np.linalg.norm(A)
    X = rng.standard_normal((40_000, dimension))
    weights = apply_label_map(features.project(X, A)[:, 0] ** 2, "tanh")
    plain, corrected = (
        float((A.T @ MomentOperator(X, weights, features, correction=name).matmat(A))[0, 0])
        for name in ("none", "wick")
    )
    assert corrected / plain == pytest.approx(1 - slope / dimension, abs=0.08)
