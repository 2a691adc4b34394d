"""The population operator of cubic features, against the exact matrix by Gauss-Hermite quadrature."""

import numpy as np
import pytest

from solvable.moment_spectrum.cubic_forms import (
    CubicForms,
    double_traces,
    single_traces,
    tensors_of,
)
from solvable.moment_spectrum.cubic_population import (
    CubicOperator,
    compressed,
    coupling_directions,
    fourth_chaos,
    isotropic_fourth,
    paired_fourth,
    second_chaos,
)
from solvable.operators import HermiteFeatures, MomentOperator


def grid(d: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and chances of a Gauss rule, exact to degree 13 in each coordinate."""
    nodes, chances = np.polynomial.hermite_e.hermegauss(7)
    X = np.stack(np.meshgrid(*[nodes] * d, indexing="ij"), axis=-1).reshape(-1, d)
    chance = np.prod(np.stack(np.meshgrid(*[chances / chances.sum()] * d, indexing="ij")), axis=0)
    return X, chance.ravel()


def exact_operator(A: np.ndarray, weights: np.ndarray, d: int, correction: str) -> np.ndarray:
    X, chance = grid(d)
    features = HermiteFeatures(3, d)
    index = (features.project(X, A) ** 2 - 1) @ weights / np.sqrt(2)
    T = index * chance * len(X)
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


def test_parts_of_the_sixth_chaos_along_the_norm() -> None:
    d, features = 3, HermiteFeatures(3, 3)
    X, chance = grid(d)
    H = np.array([[1.0, 0.3, 0.0], [0.3, 0.5, 0.0], [0.0, 0.0, -1.5]])
    s = np.sum(X**2, axis=1)
    # Means with T = I_6(S) / 720 have tau_6 = S.
    cube = s**3 - 3 * (d + 4) * s**2 + 3 * (d + 2) * (d + 4) * s - d * (d + 2) * (d + 4)
    square = s**2 - 2 * (d + 6) * s + (d + 4) * (d + 6)
    form = np.einsum("na,ab,nb->n", X, H, X)
    nothing = np.zeros((0, d, d, d)), np.zeros(0)
    for T, operator in (
        (cube, CubicOperator(*nothing, isotropic=1.0)),
        (form * square, CubicOperator(*nothing, paired=H)),
    ):
        weights = T / 720 * chance * len(X)
        exact = MomentOperator(X, weights, features, correction="wick").dense()
        np.testing.assert_allclose(operator(np.eye(10)), exact, atol=1e-9)
    A = np.linalg.qr(np.random.default_rng(1).standard_normal((10, 2)))[0]
    sample = CubicForms(A, np.zeros((3, *A.shape)))(X)
    Z = double_traces(tensors_of(A))
    product = (sample.sixth * (form * square * chance)[:, None]).sum(axis=0) / 6 * 36
    np.testing.assert_allclose(product, 720 * np.tensordot(Z, H, axes=2), rtol=1e-3, atol=0.1)
