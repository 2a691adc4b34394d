"""Block Krylov iteration on indefinite operators against dense solves."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import eigh

from solvable.errors import InvalidParameter, NotConverged
from solvable.operators import RandomLift, block_krylov, dense_by_modulus
from solvable.operators.modulus import with_fixed_signs


def indefinite(values, seed=0):
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.standard_normal((len(values), len(values))))[0]
    return (basis * values) @ basis.T, basis


def test_both_signs_are_ranked_by_modulus():
    values = np.concatenate([[-5.0, 4.0, -3.0, 2.0], np.linspace(-1, 1, 196)])
    matrix, basis = indefinite(values)
    for found in (block_krylov(lambda Q: matrix @ Q, 200, 4), dense_by_modulus(matrix, 4)):
        np.testing.assert_allclose(found.values, values[:4], atol=1e-8)
        overlaps = np.abs(np.sum(found.vectors * basis[:, :4], axis=0))
        np.testing.assert_allclose(overlaps, 1, atol=1e-6)
        np.testing.assert_allclose(found.vectors.T @ found.vectors, np.eye(4), atol=1e-12)


def test_residuals_are_those_of_the_pairs():
    matrix, _ = indefinite(np.random.default_rng(1).standard_normal(150))
    found = block_krylov(lambda Q: matrix @ Q, 150, 10, passes=2, tolerance=np.inf)
    expected = np.linalg.norm(matrix @ found.vectors - found.vectors * found.values, axis=0)
    np.testing.assert_allclose(found.residuals, expected, atol=1e-10)
    assert found.residuals.max() > 1e-6
    assert found.passes == 2


def test_passes_are_counted_and_go_on_until_converged():
    matrix, _ = indefinite(np.sign(np.arange(300) % 2 - 0.5) * 0.97 ** np.arange(300))
    calls = []

    def product(Q):
        calls.append(Q.shape)
        return matrix @ Q

    found = block_krylov(product, 300, 10, passes=2)
    assert found.passes == len(calls) > 2
    assert found.residuals.max() <= 1e-6 * abs(found.values[0])
    np.testing.assert_allclose(found.values, dense_by_modulus(matrix, 10).values, atol=1e-6)


def test_no_convergence_is_told_with_what_was_reached():
    matrix, _ = indefinite(np.random.default_rng(2).uniform(-1, 1, 400))
    with pytest.raises(NotConverged, match="2 passes") as caught:
        block_krylov(lambda Q: matrix @ Q, 400, 5, oversampling=0, passes=2, max_passes=2)
    assert caught.value.diagnostics["residuals"].shape == (5,)


@pytest.mark.parametrize("rank", [0, 1, 5])
def test_operators_of_low_rank_are_filled_up_with_zeros(rank):
    values = np.concatenate(
        [np.arange(1, rank + 1) * (-1.0) ** np.arange(rank), np.zeros(60 - rank)]
    )
    matrix, _ = indefinite(values)
    found = block_krylov(lambda Q: matrix @ Q, 60, 12, oversampling=2)
    expected = np.zeros(12)
    expected[:rank] = sorted(values[:rank], key=abs, reverse=True)
    np.testing.assert_allclose(found.values, expected, atol=1e-10)
    np.testing.assert_allclose(found.vectors.T @ found.vectors, np.eye(12), atol=1e-10)


@settings(max_examples=30, deadline=None)
@given(size=st.integers(1, 30), data=st.data())
def test_small_operators_are_solved_exactly(size, data):
    k = data.draw(st.integers(1, size))
    seed = data.draw(st.integers(0, 10_000))
    A = np.random.default_rng(seed).standard_normal((size, size))
    matrix = A + A.T
    expected = sorted(np.linalg.eigvalsh(matrix), key=abs, reverse=True)[:k]
    for found in (block_krylov(lambda Q: matrix @ Q, size, k), dense_by_modulus(matrix, k)):
        np.testing.assert_allclose(np.abs(found.values), np.abs(expected), atol=1e-5 * size)
        assert np.all(found.vectors[np.abs(found.vectors).argmax(axis=0), np.arange(k)] > 0)


def test_the_same_seed_gives_the_same_bits():
    matrix, _ = indefinite(np.random.default_rng(3).standard_normal(120))
    one, other = (block_krylov(lambda Q: matrix @ Q, 120, 6, rng=7) for _ in range(2))
    np.testing.assert_array_equal(one.vectors, other.vectors)


@pytest.mark.parametrize("k", [0, 6])
def test_numbers_out_of_range_are_refused(k):
    with pytest.raises(InvalidParameter, match="1 to 5"):
        block_krylov(lambda Q: Q, 5, k)


def test_signs_are_fixed_without_changing_the_lines():
    V = np.array([[0.1, -0.9, 0.0], [-0.8, 0.2, -1.0]])
    fixed = with_fixed_signs(V)
    np.testing.assert_array_equal(np.abs(fixed), np.abs(V))
    np.testing.assert_array_equal(fixed, with_fixed_signs(-V))
    assert with_fixed_signs(np.empty((4, 0))).shape == (4, 0)


@pytest.mark.slow
def test_four_passes_find_the_subspace_on_mnist():
    # Required squared overlap with the exact subspace: 0.995; measured: 0.9999.
    from solvable.data import load

    data = load("mnist-5k")
    X = (data.X - data.X.mean()) / data.X.std()
    y = np.where(data.y.astype(int) % 2, 1.0, -1.0)
    scale = float(np.sqrt(np.mean(np.sum(X**2, axis=1))))
    Z = RandomLift(X.shape[1], 3000, "relu", scale, seed=0).transform(X.astype(np.float32))
    C = ((Z * y[:, None].astype(np.float32)).T @ Z / len(Z)).astype(np.float64)
    C = (C + C.T) / 2
    lower, upper = (eigh(C, subset_by_index=part, driver="evr") for part in ([0, 59], [2940, 2999]))
    values = np.concatenate([lower[0], upper[0]])
    kept = np.argsort(-np.abs(values))[:40]
    exact = np.hstack([lower[1], upper[1]])[:, kept]

    def overlap(found):
        return np.linalg.norm(exact.T @ found) ** 2 / 40

    krylov = block_krylov(lambda Q: C @ Q, 3000, 40, passes=4, tolerance=np.inf)
    assert krylov.passes == 4
    assert overlap(krylov.vectors) >= 0.995
    # Plain subspace iteration with the same number of passes is worse; six passes give 0.99.
    Q = np.random.default_rng(0).standard_normal((3000, 60))
    found = []
    for _ in range(6):
        Q = np.linalg.qr(C @ Q)[0]
        values, vectors = np.linalg.eigh(Q.T @ C @ Q)
        found.append(overlap(Q @ vectors[:, np.argsort(-np.abs(values))[:40]]))
    assert found[3] < overlap(krylov.vectors)
    assert found[5] >= 0.99
