"""One filter against dense eigendecompositions, by every solver."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import subspace_angles

from solvable.errors import InvalidParameter
from solvable.networks.filters import FilterSettings, fit_filter
from solvable.operators.signals import ClassSignals, SampleSignals

N, P = 300, 30


def no_nulls():
    raise AssertionError("nulls are asked for by 'auto' alone")


def fit(signals, settings, **changes):
    keywords = {
        "n_samples": N,
        "label_power": 1.0,
        "nulls": no_nulls,
        "rng": np.random.default_rng(0),
    }
    return fit_filter(signals, settings, **{**keywords, **changes})


@pytest.fixture(scope="module")
def features():
    rng = np.random.default_rng(0)
    Z = (0.5 + rng.standard_normal((N, P))) @ np.diag(np.linspace(2, 0.5, P))
    y = np.sign(Z[:, 0] * Z[:, 1] - 0.3 * Z[:, 2] ** 2 + 0.5)
    codes = np.digitize(Z[:, 0] - Z[:, 3] ** 2, [-1.5, 0.3])
    return Z, y, codes


def signed(Z, y):
    return SampleSignals(Z, y[:, None].astype(float))


def ranked(matrix, k):
    values, vectors = np.linalg.eigh(matrix)
    order = np.argsort(-np.abs(values))[:k]
    return values[order], vectors[:, order]


def largest_angle(one, other):
    return float(np.max(subspace_angles(one, other)))


@pytest.mark.parametrize("solver", ["auto", "dense", "lanczos", "krylov"])
@pytest.mark.parametrize("first_moment", [False, True])
def test_every_solver_finds_the_strongest_of_either_sign(features, solver, first_moment):
    Z, y, _ = features
    V, report = fit(signed(Z, y), FilterSettings(5, first_moment, solver=solver))
    C, u = (Z.T * y) @ Z / N, Z.T @ y / N
    if first_moment:
        v0 = u / np.linalg.norm(u)
        assert abs(v0 @ V[:, 0]) == pytest.approx(1)
        outside = np.eye(P) - np.outer(v0, v0)
        C = outside @ C @ outside
    values, vectors = ranked(C, 5)
    assert (values > 0).any()
    assert (values < 0).any()
    assert report.n_linear == int(first_moment)
    assert V.shape == (P, 5 + first_moment)
    np.testing.assert_allclose(V.T @ V, np.eye(V.shape[1]), atol=1e-9)
    np.testing.assert_allclose(report.eigenvalues, values, atol=1e-6)
    assert largest_angle(V[:, report.n_linear :], vectors) < 1e-4
    assert report.solver == ("dense" if solver == "auto" else solver)


def test_a_first_moment_of_zero_leaves_its_place(features):
    Z = np.concatenate([features[0], -features[0]])
    y = np.concatenate([features[1], features[1]])
    V, report = fit(signed(Z, y), FilterSettings(4, first_moment=True))
    assert report.n_linear == 0
    assert V.shape == (P, 5)
    np.testing.assert_allclose(report.eigenvalues, ranked((Z.T * y) @ Z / len(Z), 5)[0], atol=1e-9)


def test_reported_dimensions_and_samples_are_their_formulas(features):
    Z, y, _ = features
    V, report = fit(signed(Z, y), FilterSettings(6, first_moment=True), label_power=0.7)
    left = Z - Z @ V[:, :1] @ V[:, :1].T
    for j in range(6):
        v = V[:, 1 + j]
        power, total = np.mean((Z @ v) ** 2), np.mean(np.sum(left**2, axis=1))
        assert report.variances[j] == pytest.approx(power)
        assert report.residual_dimensions[j] == pytest.approx(total / power)
        expected = 0.7 * power * total / report.eigenvalues[j] ** 2
        assert report.emergence_samples[j] == pytest.approx(expected)
        left -= np.outer(left @ v, v)
    assert report.n_samples == N
    assert report.n_significant is None


def test_sum_of_squares_of_classes(features):
    Z, _, codes = features
    V, report = fit(ClassSignals(Z, codes, 3), FilterSettings(4))
    parts = [(Z.T * ((codes == c) - np.mean(codes == c))) @ Z / N for c in range(3)]
    values, vectors = ranked(sum(C @ C for C in parts), 4)
    np.testing.assert_allclose(report.eigenvalues**2, values, rtol=1e-9)
    assert largest_angle(V, vectors) < 1e-6


def test_alternation_ends_at_a_stationary_direction(features):
    Z, _, codes = features
    signals = ClassSignals(Z, codes, 3)
    V, report = fit(signals, FilterSettings(2, multiclass="alternating"))
    v = V[:, 0]
    r = np.array([v @ C @ v for C in signals.products(np.eye(P))])
    a = r / np.linalg.norm(r)
    values, vectors = ranked(np.einsum("s,spq->pq", a, signals.products(np.eye(P))), 1)
    # v is the leading eigenvector for the direction a that is best for v.
    assert abs(values[0]) == pytest.approx(abs(report.eigenvalues[0]), rel=1e-3)
    assert abs(vectors[:, 0] @ v) > 0.999
    # No single class gives a larger eigenvalue.
    alone = [abs(ranked(C, 1)[0][0]) for C in signals.products(np.eye(P))]
    assert abs(report.eigenvalues[0]) > max(alone)


@pytest.mark.parametrize("multiclass", ["sum-of-squares", "alternating"])
def test_two_classes_as_classes_are_the_signed_filter(features, multiclass):
    Z, y, _ = features
    codes = (y > 0).astype(int)
    V, report = fit(ClassSignals(Z, codes, 2), FilterSettings(4, multiclass=multiclass))
    expected, reference = fit(signed(Z, y - y.mean()), FilterSettings(4))
    assert largest_angle(V, expected) < 1e-6
    # C_1 = -C_0 = C / 2: the sum of squares has C² / 2, the best unit direction C / sqrt(2).
    np.testing.assert_allclose(
        np.abs(report.eigenvalues), np.abs(reference.eigenvalues) / np.sqrt(2), rtol=1e-6
    )


def test_first_moments_of_classes_come_in_front(features):
    Z, _, codes = features
    V, report = fit(ClassSignals(Z, codes, 3), FilterSettings(3, first_moment=True))
    # Three means that sum to zero span two directions.
    assert report.n_linear == 2
    means = np.array([Z[codes == c].mean(axis=0) - Z.mean(axis=0) for c in range(3)]).T
    assert largest_angle(V[:, :2], np.linalg.svd(means)[0][:, :2]) < 1e-6
    assert V.shape == (P, 5)


def test_directions_are_capped_by_the_room(features):
    Z, y, _ = features
    with pytest.warns(UserWarning, match="reduce is 100 and .* rank 30"):
        V, _ = fit(signed(Z, y), FilterSettings(100, first_moment=True))
    assert V.shape == (P, P)
    np.testing.assert_allclose(V.T @ V, np.eye(P), atol=1e-8)


def test_auto_compares_with_nulls_and_keeps_at_least_one(features):
    Z, y, _ = features
    rng = np.random.default_rng(3)
    noise = signed(Z, rng.permutation(y))
    nulls = [signed(Z, rng.permutation(y)) for _ in range(4)]
    V, report = fit(noise, FilterSettings("auto"), nulls=lambda: nulls)
    assert report.n_significant == 0
    assert V.shape == (P, 1)
    found, report = fit(signed(Z, y), FilterSettings("auto"), nulls=lambda: nulls)
    assert found.shape[1] == report.n_significant > 1
    assert report.null_ratios[0, 0] > 2


def test_unknown_ways_are_refused(features):
    settings = replace(FilterSettings(1), multiclass="union")
    with pytest.raises(InvalidParameter, match="union"):
        fit(signed(*features[:2]), settings)


def test_labels_that_weigh_nothing_have_no_strength(features):
    V, report = fit(signed(features[0], np.zeros(N)), FilterSettings(3))
    np.testing.assert_array_equal(report.eigenvalues, 0)
    assert np.isinf(report.emergence_samples).all()
    assert V.shape == (P, 3)
