"""The population operator of cubic features, against the exact matrix by Gauss-Hermite quadrature."""

import numpy as np
import pytest

from solvable.models.sequential.cubic_forms import single_traces, tensors_of
from solvable.models.sequential.cubic_population import (
    CubicOperator,
    compressed,
    coupling_directions,
    fourth_chaos,
    isotropic_fourth,
    paired_fourth,
    second_chaos,
)
from solvable.operators import HermiteFeatures, MomentOperator


def exact_operator(A: np.ndarray, weights: np.ndarray, d: int, correction: str) -> np.ndarray:
    # The index times two features is of degree 12: seven nodes a coordinate are exact.
    nodes, chances = np.polynomial.hermite_e.hermegauss(7)
    X = np.stack(np.meshgrid(*[nodes] * d, indexing="ij"), axis=-1).reshape(-1, d)
    chance = np.prod(np.stack(np.meshgrid(*[chances / chances.sum()] * d, indexing="ij")), axis=0)
    features = HermiteFeatures(3, d)
    index = (features.project(X, A) ** 2 - 1) @ weights / np.sqrt(2)
    T = index * chance.ravel() * len(X)
    return MomentOperator(X, T, features, correction=correction).dense()  # type: ignore[arg-type]


@pytest.mark.parametrize("correction", ["none", "wick"])
@pytest.mark.parametrize(("d", "weights"), [(2, [1.0]), (3, [0.8, -0.6]), (4, [0.7, 0.5, 0.4])])
def test_operator_of_the_index(d: int, weights: list[float], correction: str) -> None:
    features, lam = HermiteFeatures(3, d), np.array(weights)
    rng = np.random.default_rng(d)
    A = np.linalg.qr(rng.standard_normal((features.n_features, lam.size)))[0]
    tensors, c = tensors_of(A), np.sqrt(2) * lam
    lower = (fourth_chaos(tensors, c), second_chaos(tensors, c))
    operator = CubicOperator(tensors, c, *(lower if correction == "none" else ()))
    matrix = operator(np.eye(features.n_features)) + (A * c) @ A.T
    np.testing.assert_allclose(matrix, exact_operator(A, lam, d, correction), atol=1e-9)
    if correction == "none":
        outside = matrix @ A - A @ (A.T @ matrix @ A)
        np.testing.assert_allclose(coupling_directions(A, lam).sum(axis=0), outside, atol=1e-10)


def test_harmonic_parts_of_a_fourth_chaos() -> None:
    d = 4
    A = np.linalg.qr(np.random.default_rng(0).standard_normal((20, 2)))[0]
    c = np.array([0.9, -0.4])
    tau = fourth_chaos(tensors_of(A), c)
    traced = 18 * np.tensordot(c, single_traces(tensors_of(A)), axes=1)
    np.testing.assert_allclose(traced, np.einsum("aade->de", tau), atol=1e-12)
    H = np.diag([1.0, 2.0, -4.0, 1.0])
    pair = paired_fourth(H)
    assert np.allclose(pair, pair.transpose(3, 1, 0, 2))
    np.testing.assert_allclose(np.einsum("aade->de", pair), (d + 4) / 6 * H, atol=1e-12)
    square = isotropic_fourth(d)
    np.testing.assert_allclose(np.einsum("aade->de", square), (d + 2) / 3 * np.eye(d), atol=1e-12)


def test_a_krylov_space_holds_the_resolvent() -> None:
    D = 680  # d = 15
    rng = np.random.default_rng(3)
    A = np.linalg.qr(rng.standard_normal((D, 3)))[0]
    tensors, c = tensors_of(A), np.array([0.5, -0.4, 0.3])
    operator = CubicOperator(
        tensors, c, 0.7 * fourth_chaos(tensors, c), 0.5 * second_chaos(tensors, c)
    )
    small = compressed(operator, A, rng)
    assert len(small.matrix) < D
    spectrum = small.spectrum(np.diag(c))
    whole = operator(np.eye(D)) + (A * c) @ A.T
    values, vectors = np.linalg.eigh((whole + whole.T) / 2)
    for z in (0.9 + 0.1j, 0.1 + 0.2j, -0.5 + 0.1j):
        exact = ((vectors.T @ A).T ** 2) @ (1 / (z - values))
        np.testing.assert_allclose(spectrum.profiles @ (1 / (z - spectrum.atoms)), exact, rtol=1e-3)
        mean = spectrum.shares @ (1 / (z - spectrum.atoms))
        assert abs(mean - np.mean(1 / (z - values))) < 0.1 * abs(np.mean(1 / (z - values)))
    grouped = spectrum.grouped(20, 60)
    assert grouped.shares.sum() == pytest.approx(1)
    assert grouped.atoms.size <= 100
    np.testing.assert_allclose(grouped.profiles.sum(axis=1), 1)
    atoms, profiles = spectrum.equal_atoms(1_000)
    assert atoms.size >= 900
    np.testing.assert_allclose(profiles.sum(axis=1), 1)
