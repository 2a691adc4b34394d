"""Label-weighted moments against explicit sums, in any chunks, and by every route."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import subspace_angles

from solvable.errors import InvalidData, MemoryLimitExceeded
from solvable.operators import LabelMoments, MomentSignals, dense_by_modulus
from solvable.operators import signals as module
from solvable.operators.signals import ClassSignals, SampleSignals, centred_products, side_by_side

N, P = 90, 7
INDICATORS = np.eye(3) - np.array([0.2, 0.3, 0.5])[:, None]


@pytest.fixture(scope="module")
def samples():
    rng = np.random.default_rng(0)
    Z = 0.4 + rng.standard_normal((N, P)) * np.linspace(1, 2, P)
    codes = rng.permutation(np.repeat([0, 1, 2], [18, 27, 45]))
    Z.setflags(write=False)
    return Z, codes, rng.standard_normal(N)


def operators(Z, weights):
    """Explicit sum, sample by sample."""
    return np.array([sum(w * np.outer(z, z) for w, z in zip(ws, Z, strict=True)) for ws in weights])


def routes(samples, kind):
    Z, codes, real = samples
    if kind == "real":
        moments = LabelMoments(P, 2, classes=False).add(Z, real)
        weights = real[:, None]
        return weights, [
            MomentSignals(moments, np.array([[0.0, 1.0]])),
            SampleSignals(Z, weights),
        ]
    if kind == "two":
        codes = (codes == 2).astype(int)
        coefficients = np.array([[-1.0, 1.0]])
    else:
        coefficients = INDICATORS
    weights = coefficients.T[codes]
    moments = LabelMoments(P, codes.max() + 1).add(Z, codes)
    found = [MomentSignals(moments, coefficients), SampleSignals(Z, weights)]
    return weights, [*found, ClassSignals(Z, codes, 3)] if kind == "three" else found


@pytest.mark.parametrize("kind", ["real", "two", "three"])
def test_all_routes_are_the_sums_written_out(samples, kind):
    Z = samples[0]
    weights, found = routes(samples, kind)
    n_signals = weights.shape[1]
    C = operators(Z, weights.T) / N
    centred = operators(Z, (weights - weights.mean(axis=0)).T) / N
    rng = np.random.default_rng(1)
    Q, blocks = rng.standard_normal((P, 4)), rng.standard_normal((n_signals, P, 4))
    for signals in found:
        assert (signals.n_features, signals.n_signals) == (P, n_signals)
        np.testing.assert_allclose(signals.products(Q), C @ Q, atol=1e-12)
        # For different blocks the result is the sum; with one signal it is the product itself.
        np.testing.assert_allclose(
            signals.products(blocks)[0], np.einsum("spq,sqk->pk", C, blocks), atol=1e-12
        )
        for signal in range(n_signals):
            np.testing.assert_allclose(signals.centred(signal)(Q), centred[signal] @ Q, atol=1e-12)
        np.testing.assert_allclose(signals.first_moments(), Z.T @ weights / N, atol=1e-13)
        sigma = Z.T @ Z / N
        np.testing.assert_allclose(signals.variances(Q), np.diag(Q.T @ sigma @ Q))
        np.testing.assert_allclose(signals.mean(), Z.mean(axis=0))
        assert signals.total_variance() == pytest.approx(np.trace(sigma))


@pytest.mark.parametrize("kind", ["two", "three"])
def test_operators_that_are_too_large_to_form_are_the_same(samples, kind, monkeypatch):
    Q = np.random.default_rng(2).standard_normal((P, 3))
    formed = [one.centred(0)(Q) for one in routes(samples, kind)[1]]
    monkeypatch.setattr(module, "FORMED_SIZE", P - 1)
    for one, expected in zip(routes(samples, kind)[1], formed, strict=True):
        np.testing.assert_allclose(one.centred(0)(Q), expected, atol=1e-12)


def test_dense_operator_is_the_product(samples):
    signals = routes(samples, "three")[1][0]
    for signal in range(3):
        np.testing.assert_allclose(
            signals.dense(signal), signals.products(np.eye(P))[signal], atol=1e-13
        )


def test_a_class_without_samples_has_no_share(samples):
    Z, codes, _ = samples
    signals = ClassSignals(Z, codes, 4)
    np.testing.assert_array_equal(signals.products(np.eye(P))[3], np.zeros((P, P)))


@settings(max_examples=25, deadline=None)
@given(cuts=st.lists(st.integers(1, N - 1), max_size=N), kind=st.sampled_from(["real", "classes"]))
def test_chunks_do_not_matter(samples, cuts, kind):
    # Equal to 1e-10 for any chunks, also of one row
    Z, codes, real = samples
    labels, groups = (real, 2) if kind == "real" else (codes, 3)
    classes = kind == "classes"
    whole = LabelMoments(P, groups, classes=classes).add(Z, labels)
    parts = LabelMoments(P, groups, classes=classes)
    for rows in np.split(np.arange(N), sorted(set(cuts))):
        parts.add(Z[rows], labels[rows])
    assert parts.rows == whole.rows == N
    np.testing.assert_allclose(parts.totals, whole.totals, atol=1e-10)
    np.testing.assert_allclose(parts.first, whole.first, atol=1e-10)
    for group in range(groups):
        np.testing.assert_allclose(parts.second(group), whole.second(group), atol=1e-10)


@pytest.mark.parametrize("chunks", [1, 7, N])
def test_shards_summed_in_any_order_have_the_same_subspace(samples, chunks):
    # Sums over 4 shards in any order, compared by principal angles
    Z, codes, _ = samples
    codes = (codes == 2).astype(int)
    whole = LabelMoments(P, 2)
    for rows in np.array_split(np.arange(N), chunks):
        whole.add(Z[rows], codes[rows])
    shards = [
        LabelMoments(P, 2).add(Z[rows], codes[rows]) for rows in np.array_split(np.arange(N), 4)
    ]
    left = shards[3].merge(shards[1].merge(shards[0])).merge(shards[2])
    found = [
        dense_by_modulus(MomentSignals(one, np.array([[-1.0, 1.0]])).dense(0), 4)
        for one in (whole, left)
    ]
    moduli = np.abs(found[0].values)
    np.testing.assert_allclose(found[1].values, found[0].values, atol=1e-10)
    for k in range(1, 4):
        if moduli[k - 1] > 1.01 * moduli[k]:
            angles = subspace_angles(found[0].vectors[:, :k], found[1].vectors[:, :k])
            assert np.cos(angles).min() > 1 - 1e-8


@pytest.mark.parametrize("classes", [True, False])
def test_stored_sums_are_read_back_bit_by_bit_and_go_on(samples, classes):
    Z, codes, real = samples
    groups, labels = (3, codes) if classes else (2, real)
    half = LabelMoments(P, groups, classes=classes).add(Z[:40], labels[:40])
    stored = {key: np.array(value) for key, value in half.to_arrays().items()}
    again = LabelMoments.from_arrays(stored)
    assert (again.rows, again.classes, again.n_groups) == (40, classes, groups)
    for group in range(groups):
        np.testing.assert_array_equal(again.second(group), half.second(group))
    half.add(Z[40:], labels[40:])
    again.add(Z[40:], labels[40:])
    for group in range(groups):
        np.testing.assert_array_equal(again.second(group), half.second(group))
    np.testing.assert_array_equal(again.first, half.first)


def test_float32_features_are_added_up_in_float64(samples):
    Z, codes, real = samples
    single = Z.astype(np.float32)
    for classes, labels, groups in ((True, codes, 3), (False, real, 2)):
        exact = LabelMoments(P, groups, classes=classes).add(Z, labels)
        found = LabelMoments(P, groups, classes=classes)
        for _ in range(3):
            found.add(single, labels)
        for group in range(groups):
            np.testing.assert_allclose(
                found.second(group), 3 * exact.second(group), atol=3e-4, rtol=1e-5
            )
            assert found.second(group).dtype == np.float64


@settings(max_examples=20, deadline=None)
@given(scale=st.floats(0.01, 100.0), seed=st.integers(0, 1000))
def test_sign_and_scale_of_the_label_move_eigenvalues_only(scale, seed):
    # Sign and scale symmetry of equation 1 of docs/derivations/lofi.md
    rng = np.random.default_rng(seed)
    Z, y = rng.standard_normal((40, 6)), rng.standard_normal(40)

    def pairs(labels):
        moments = LabelMoments(6, 2, classes=False).add(Z, labels)
        return dense_by_modulus(MomentSignals(moments, np.array([[0.0, 1.0]])).dense(0), 6)

    base, flipped, scaled = pairs(y), pairs(-y), pairs(scale * y)
    np.testing.assert_allclose(flipped.values, -base.values, atol=1e-12)
    np.testing.assert_allclose(scaled.values, scale * base.values, rtol=1e-9, atol=1e-12)
    moduli = np.abs(base.values)
    for k in range(1, 6):
        if moduli[k - 1] > 1.01 * moduli[k]:
            projectors = [one.vectors[:, :k] @ one.vectors[:, :k].T for one in (base, flipped)]
            np.testing.assert_allclose(*projectors, atol=1e-10)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 1000))
def test_rows_in_any_order_have_the_same_sums(samples, seed):
    Z, codes, _ = samples
    order = np.random.default_rng(seed).permutation(N)
    one, other = (LabelMoments(P, 3).add(Z[rows], codes[rows]) for rows in (slice(None), order))
    for group in range(3):
        np.testing.assert_allclose(one.second(group), other.second(group), atol=1e-11)


def test_sums_that_do_not_belong_together_are_refused(samples):
    Z, codes, _ = samples
    with pytest.raises(InvalidData, match="cannot be added"):
        LabelMoments(P, 2).merge(LabelMoments(P, 3))
    with pytest.raises(InvalidData, match=r"\(m, 6\)"):
        LabelMoments(6, 3).add(Z, codes)
    with pytest.raises(InvalidData, match=r"\(m,\)"):
        LabelMoments(P, 3).add(Z, codes[:-1])
    stored = LabelMoments(P, 3).add(Z, codes).to_arrays()
    with pytest.raises(InvalidData, match="lack first"):
        LabelMoments.from_arrays({key: stored[key] for key in stored if key != "first"})
    with pytest.raises(InvalidData, match="shapes"):
        LabelMoments.from_arrays({**stored, "second": stored["second"][:2]})


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_features_that_are_not_finite_are_refused(samples, bad):
    Z = samples[0].copy()
    Z[3, 2] = bad
    with pytest.raises(InvalidData, match="NaN or infinite"):
        LabelMoments(P, 3).add(Z, samples[1])


def test_sums_that_do_not_fit_are_refused_before_they_are_made():
    with pytest.raises(MemoryLimitExceeded, match="smaller width"):
        LabelMoments(10_000_000, 2)


@pytest.mark.parametrize("size", [(900, 30), (50, 700)])
def test_labels_side_by_side_have_the_operators_of_each(size):
    rng = np.random.default_rng(11)
    Z, weights = rng.standard_normal(size), rng.standard_normal((size[0], 3)) + 0.5
    Q = rng.standard_normal((size[1], 6))
    found = side_by_side(Z, weights)(Q)  # two columns per label, label by label
    each = [SampleSignals(Z, weights).centred(signal) for signal in range(3)]
    expected = np.hstack([each[k](Q[:, 2 * k : 2 * k + 2]) for k in range(3)])
    np.testing.assert_allclose(found, expected, atol=1e-5 * np.abs(expected).max())
    drawn = [SampleSignals(Z, w[:, None], formed=False) for w in weights.T]
    ((together, number),) = centred_products(drawn, 0)
    assert number == 3
    np.testing.assert_array_equal(together(Q), found)
    assert [count for _, count in centred_products([SampleSignals(Z, weights)] * 2, 1)] == [1, 1]
