from __future__ import annotations

import dataclasses
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvable.arrays import random_stream
from solvable.errors import DegenerateReadout, InvalidData, InvalidParameter
from solvable.models.sequential.target import random_signs
from solvable.targets import HierarchicalTarget

CASES = [
    {"dimension": 25, "degree": 1, "features": 4},
    {"dimension": 20, "degree": 2, "features": 5},
    {"dimension": 10, "degree": 3, "features": 4},
    {"dimension": 12, "degree": 2, "features": 5, "inputs": "gaussian"},
]


@pytest.mark.parametrize("case", CASES)
def test_latent_features_are_centred_uncorrelated_and_of_unit_variance(case):
    target = HierarchicalTarget(**case)
    n = 60_000
    X, _ = target.sample(n, 0)
    h = target.latent(X)
    products = h[:, :, None] * h[:, None, :]
    error = products.std(axis=0) / np.sqrt(n)
    # 5 standard errors over at most 25 entries, with measured errors, as cubic features have heavy
    # tails.
    assert (abs(products.mean(axis=0) - np.eye(target.features)) < 5 * error).all()
    assert (abs(h.mean(axis=0)) < 5 * h.std(axis=0) / np.sqrt(n)).all()


@pytest.mark.parametrize("case", CASES)
def test_latent_features_are_products_of_directions_and_explicit_features(case):
    target = HierarchicalTarget(**case)
    X, y = target.sample(300, 1)
    features = X if target.inputs == "gaussian" else target.feature_map.transform(X)
    h = features @ target.directions
    np.testing.assert_allclose(target.latent(X), h, atol=1e-10)
    index = (h**2 - 1) @ target.weights / np.sqrt(2)
    np.testing.assert_allclose(target.index(X), index, atol=1e-10)
    np.testing.assert_allclose(y, index, atol=1e-8)


def test_latent_features_are_quadratic_forms_of_the_symmetric_matrices():
    target = HierarchicalTarget(dimension=9, features=4)
    X, _ = target.sample(50, 0)
    M = target.symmetric_matrices()
    forms = np.einsum("na,iab,nb->ni", X, M, X) - np.trace(M, axis1=1, axis2=2)
    np.testing.assert_allclose(target.latent(X), forms / np.sqrt(2), atol=1e-12)
    products = np.einsum("iab,jab->ij", M, M)
    np.testing.assert_allclose(products, np.eye(4), atol=1e-12)


@pytest.mark.parametrize("case", CASES)
def test_directions_are_orthonormal_and_nested(case):
    target = HierarchicalTarget(**case)
    np.testing.assert_allclose(target.gram, np.eye(target.features), atol=1e-12)
    fewer = dataclasses.replace(target, features=2)
    np.testing.assert_allclose(target.directions[:, :2], fewer.directions, atol=1e-12)


def test_random_first_layer_has_unit_norm_up_to_fluctuations_that_shrink_with_the_dimension():
    deviations = []
    for dimension in (20, 80):
        target = HierarchicalTarget(dimension=dimension, features=100, first_layer="random")
        deviations.append(target.gram.diagonal() - 1)
        D = target.n_features_total
        # Variance 2/D of a squared norm; 100 directions estimate the deviation within 7 %.
        assert deviations[-1].std() == pytest.approx(np.sqrt(2 / D), rel=0.3)
        assert abs(deviations[-1].mean()) < 4 * np.sqrt(2 / D / 100)


@pytest.mark.parametrize("signs", ["random", "alternating", "positive"])
def test_weights_are_a_normalised_power_law_with_the_signs_asked_for(signs):
    target = HierarchicalTarget(dimension=20, features=12, decay=0.7, signs=signs, seed=3)
    weights = target.weights
    assert np.sum(weights**2) == pytest.approx(1.0, abs=1e-12)
    np.testing.assert_allclose(abs(weights) / abs(weights[0]), np.arange(1, 13) ** -0.7, rtol=1e-12)
    expected = {
        "alternating": np.tile([1.0, -1.0], 6),
        "positive": np.ones(12),
        "random": np.sign(weights),
    }
    np.testing.assert_array_equal(np.sign(weights), expected[signs])
    if signs == "random":
        assert 0 < (weights > 0).sum() < 12


def test_random_signs_are_fair_and_leave_the_directions_alone():
    positive = [
        (HierarchicalTarget(dimension=8, features=10, seed=seed).weights > 0).sum()
        for seed in range(100)
    ]
    # 1000 fair coins: standard error 0.016.
    assert np.mean(positive) / 10 == pytest.approx(0.5, abs=0.06)
    fair = HierarchicalTarget(dimension=8, features=3)
    other = dataclasses.replace(fair, signs="positive")
    np.testing.assert_array_equal(fair.directions, other.directions)


@pytest.mark.parametrize("case", CASES)
def test_label_is_centred_and_its_variance_is_the_formula(case):
    target = HierarchicalTarget(**case, signs="alternating")
    n = 200_000
    latent = target.draw_latent(n, random_stream(5))
    y = target.label(target._index_of(latent))
    error = (y**2).std() / np.sqrt(n)
    assert abs(y.mean()) < 4 * y.std() / np.sqrt(n)
    # 4 standard errors, plus 2 % at degree 3, where the variance is a Monte Carlo estimate.
    slack = 0.03 * target.index_variance if target.degree == 3 else 0.0
    assert abs(y.var() - target.label_variance) < 4 * error + slack


def test_index_variance_falls_to_one_like_the_inverse_dimension():
    dimensions = np.array([20, 40, 80, 160])
    excess = [
        np.mean(
            [
                HierarchicalTarget(d, features=4, signs="alternating", seed=s).index_variance - 1
                for s in range(3)
            ]
        )
        for d in dimensions
    ]
    slope = np.polyfit(np.log(dimensions), np.log(excess), 1)[0]
    # O(1/d²) terms bend the line by a few per cent at d = 20.
    assert slope == pytest.approx(-1.0, abs=0.1)


@pytest.mark.parametrize(("dimension", "committed"), [(20, 1.51), (40, 1.22)])
def test_index_variance_is_the_committed_number_for_alternating_signs(dimension, committed):
    def variances(signs):
        return np.array(
            [
                HierarchicalTarget(dimension, features=6, signs=signs, seed=s).index_variance
                for s in range(8)
            ]
        )

    alternating = variances("alternating")
    # The published number is of one teacher: 3 standard deviations between teachers.
    assert abs(alternating.mean() - committed) < 3 * alternating.std(ddof=1)
    # The sum of the weights, which depends on the signs, enters 4 ||S||².
    assert variances("positive").min() > committed + 0.3


def test_label_variance_of_a_nonlinear_readout_is_within_its_stated_error():
    target = HierarchicalTarget(dimension=15, features=3, readout="tanh")
    _, variance, error = target.label_moments()
    _, y = target.sample(100_000, 11)
    other = ((y - y.mean()) ** 2).std() / np.sqrt(len(y))
    assert target.label_variance == variance
    assert abs(y.var() - variance) < 4 * np.hypot(error, other)


def test_population_spike_is_sqrt_two_lambda_nu_in_gaussian_mode():
    target = HierarchicalTarget(dimension=20, features=4, inputs="gaussian", signs="alternating")
    h = target.draw_latent(400_000, random_stream(2))
    y = target.label(target._index_of(h))
    products = y[:, None] * (h**2 - 1)
    error = products.std(axis=0) / np.sqrt(len(y))
    expected = np.sqrt(2) * target.weights
    assert (abs(products.mean(axis=0) - expected) < 4 * error).all()


def test_population_spike_of_a_tanh_readout_carries_its_slope():
    # 80 equal weights: the index is Gaussian up to an excess kurtosis 12/80.
    target = HierarchicalTarget(
        dimension=20, features=80, decay=0.0, inputs="gaussian", readout="tanh"
    )
    h = target.draw_latent(60_000, random_stream(2))
    y = target.label(target._index_of(h))
    spikes = (y[:, None] * (h**2 - 1)).mean(axis=0) / (np.sqrt(2) * target.weights)
    # Standard error of the mean of 80 spikes: 0.012; the excess kurtosis moves it by under 0.02.
    assert spikes.mean() == pytest.approx(target.readout_function.slope, abs=0.05)


def test_samples_depend_neither_on_their_number_nor_on_the_chunks():
    target = HierarchicalTarget(dimension=7, features=3)
    X, y = target.sample(10_000, random_stream(8))
    fewer, labels = target.sample(4_100, random_stream(8))
    np.testing.assert_array_equal(X[:4_100], fewer)
    np.testing.assert_allclose(y[:4_100], labels, atol=1e-12)
    np.testing.assert_allclose(target.latent(X)[5_000:], target.latent(X[5_000:]), atol=1e-12)
    np.testing.assert_array_equal(target.sample(5, 3)[0], target.sample(5, 3)[0])
    assert (target.sample(5, 3)[0] != target.sample(5, 4)[0]).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_source_regenerates_the_samples_its_labels_belong_to(dtype):
    target = HierarchicalTarget(dimension=7, features=3, readout="tanh")
    source, y = target.source(9_000, seed=2, dtype=dtype)
    X = np.concatenate([block for _, block in source.chunks(1_000)])
    assert X.shape == (9_000, 7)
    assert X.dtype == source.dtype == dtype
    np.testing.assert_allclose(y, target.label(target.index(X)), atol=1e-5)
    shorter, labels = target.source(4_500, seed=2, dtype=dtype)
    np.testing.assert_allclose(labels, y[:4_500], atol=1e-5)
    assert y.dtype == labels.dtype == np.float64
    pickle.loads(pickle.dumps(shorter))


def test_float32_inputs_are_drawn_as_float32_and_give_the_same_latent_features():
    target = HierarchicalTarget(dimension=30, features=5)
    X, y = target.sample(2_000, 0, dtype=np.float32)
    np.testing.assert_array_equal(
        X, random_stream(0, "samples").standard_normal((2_000, 30), dtype=np.float32)
    )
    exact = target.latent(X.astype(np.float64))
    # Sums of 900 products in single precision.
    np.testing.assert_allclose(target.latent(X), exact, atol=2e-4)
    assert y.dtype == np.float64


def test_a_callable_readout_is_applied_to_the_index_and_centred():
    target = HierarchicalTarget(
        dimension=15, degree=1, features=15, decay=0.0, readout=lambda z: np.exp(z / 2)
    )
    X, y = target.sample(100, 0)
    expected = np.exp(target.index(X) / 2) - np.exp(1 / 8)
    np.testing.assert_allclose(y, expected, atol=1e-9)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"features": 56}, "more than the D = 55"),
        ({"features": 0}, "features is 0"),
        ({"features": 2.5}, "an integer"),
        ({"features": True}, "an integer"),
        ({"dimension": 1}, "at least 2"),
        ({"degree": 4}, "from 1 to 3"),
        ({"decay": -0.1}, "at least 0"),
        ({"decay": float("nan")}, "finite"),
        ({"inputs": "gauss"}, "Did you mean 'gaussian'"),
        ({"signs": "alternate"}, "Did you mean 'alternating'"),
        ({"first_layer": "orthogonal"}, "Did you mean 'orthonormal'"),
        ({"readout": "tan"}, "Did you mean 'tanh'"),
        ({"readout": 3}, "Or pass a callable"),
        ({"seed": -1}, "seed is -1"),
    ],
)
def test_bad_parameters_are_refused_on_construction(change, words):
    with pytest.raises(InvalidParameter, match=words):
        HierarchicalTarget(**{"dimension": 10, "features": 3, **change})


@given(
    dimension=st.integers(-3, 6),
    degree=st.integers(-1, 5),
    features=st.integers(-2, 70),
    decay=st.floats(allow_nan=True, allow_infinity=True),
)
@settings(max_examples=60, deadline=None)
def test_every_target_is_valid_or_refused(dimension, degree, features, decay):
    try:
        target = HierarchicalTarget(dimension, degree, features, decay)
    except InvalidParameter:
        return
    assert 1 <= target.features <= target.n_features_total
    weights = target.weights
    assert np.sum(weights**2) == pytest.approx(1.0)
    assert (np.diff(abs(weights)) <= 1e-15).all()


def test_bad_requests_are_refused():
    target = HierarchicalTarget(dimension=10, features=3)
    with pytest.raises(InvalidParameter, match="n is 0"):
        target.sample(0, 0)
    with pytest.raises(InvalidParameter, match="float32, float64"):
        target.sample(3, 0, dtype=np.int32)
    with pytest.raises(InvalidData, match="allowed: 10, one per input"):
        target.latent(np.zeros((3, 9)))
    with pytest.raises(InvalidData, match="two-dimensional"):
        target.latent(np.zeros(10))
    with pytest.raises(InvalidParameter, match="degree=2 only"):
        HierarchicalTarget(dimension=5, degree=3, features=2).symmetric_matrices()
    with pytest.raises(dataclasses.FrozenInstanceError):
        target.dimension = 3  # type: ignore[misc]
    with pytest.raises(ValueError, match="read-only"):
        target.directions[0, 0] = 1.0


def test_an_even_readout_is_refused_on_construction():
    with pytest.raises(DegenerateReadout, match="even readout"):
        HierarchicalTarget(dimension=10, features=3, readout=np.cos)


@pytest.mark.parametrize("case", CASES)
def test_a_saved_teacher_is_read_back_exactly(case, tmp_path):
    target = HierarchicalTarget(**case, readout="tanh", seed=5)
    path = target.save(tmp_path / "teacher")
    assert path.suffix == ".npz"
    again = HierarchicalTarget.load(path)
    assert again == target
    for mine, theirs in zip(target.sample(50, 1), again.sample(50, 1), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_loading_uses_the_stored_arrays_and_draws_nothing(tmp_path, monkeypatch):
    target = HierarchicalTarget(dimension=6, features=2)
    path = target.save(tmp_path / "teacher.npz")
    monkeypatch.setattr("solvable.models.sequential.target.draw_directions", None)
    monkeypatch.setattr("solvable.models.sequential.target.random_stream", None)
    again = HierarchicalTarget.load(path)
    np.testing.assert_array_equal(again.directions, target.directions)
    np.testing.assert_array_equal(again.weights, target.weights)


def test_a_callable_readout_is_not_saved(tmp_path):
    target = HierarchicalTarget(dimension=6, features=2, readout=np.arctan)
    with pytest.raises(InvalidParameter, match="without pickle"):
        target.save(tmp_path / "teacher.npz")
    assert not list(tmp_path.iterdir())


def test_signs_feature_by_feature(tmp_path):
    target = HierarchicalTarget(dimension=8, features=3, signs=(1, -1, -1), decay=0.5)
    assert np.sign(target.weights).tolist() == [1, -1, -1]
    again = HierarchicalTarget.load(target.save(tmp_path / "teacher.npz"))
    assert again.signs == (1, -1, -1)
    assert again == target


@pytest.mark.parametrize("given", [[1, -1, -1], (1.0, -1.0, -1.0), np.array([1, -1, -1])])
def test_signs_are_kept_as_a_tuple_of_integers(given, tmp_path):
    target = HierarchicalTarget(dimension=8, features=3, signs=given)
    assert target.signs == (1, -1, -1)
    assert {type(sign) for sign in target.signs} == {int}
    assert hash(target) == hash(dataclasses.replace(target))
    assert HierarchicalTarget.load(target.save(tmp_path / "teacher")) == target


def test_fixed_signs_stay_while_the_directions_are_drawn_again():
    signs = random_signs(5, seed=7)
    targets = [HierarchicalTarget(10, features=5, signs=signs, seed=seed) for seed in range(3)]
    for target in targets:
        np.testing.assert_array_equal(np.sign(target.weights), signs)
    assert not np.allclose(targets[0].directions, targets[1].directions)
    free = HierarchicalTarget(10, features=5, seed=7)
    np.testing.assert_array_equal(free.weights, targets[0].weights)


@given(features=st.integers(1, 40), more=st.integers(0, 40), seed=st.integers(0, 2**31))
@settings(max_examples=40, deadline=None)
def test_first_random_signs_do_not_depend_on_how_many_there_are(features, more, seed):
    signs = random_signs(features + more, seed)
    assert signs[:features] == random_signs(features, seed)
    assert set(signs) <= {-1, 1}


@pytest.mark.parametrize("arguments", [(0, 1), (3, -1), (2.5, 1)])
def test_random_signs_of_nonsense(arguments):
    with pytest.raises(InvalidParameter, match="an integer"):
        random_signs(*arguments)


@pytest.mark.parametrize(
    "signs",
    [(1, 1), (1, 0, 1), "plus", None, 3, ("a", "b", "c"), {1, -1}, ((1, 1, 1),), (1, [1], 1),
     (np.nan, 1, 1)],
)  # fmt: skip
def test_bad_signs(signs):
    with pytest.raises(InvalidParameter, match="signs is"):
        HierarchicalTarget(dimension=8, features=3, signs=signs)
