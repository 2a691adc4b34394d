"""Readouts: couplings of weak features and errors, against Monte Carlo and quadrature."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from solvable.errors import DegenerateReadout, InvalidParameter
from solvable.hermite import hermite_coefficients
from solvable.models.sequential.errors import readout_error
from solvable.models.sequential.theory import check_coefficients, limit_couplings
from solvable.theory import predict_sequential

READOUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "identity": lambda z: z,
    "tanh": np.tanh,
    "skewed": lambda z: np.tanh(z + 0.7),
}


def coefficients_of(readout: Callable[[np.ndarray], np.ndarray], order: int = 24) -> np.ndarray:
    return np.asarray(hermite_coefficients(readout, order))


@pytest.mark.parametrize("name", READOUTS)
def test_the_error_of_the_best_function_of_a_correlated_index(name: str) -> None:
    """E[Var(g(z) | z')] for jointly Gaussian z, z', by quadrature of the conditional mean."""
    readout = READOUTS[name]
    g = check_coefficients(coefficients_of(readout, 60))
    nodes, chances = np.polynomial.hermite_e.hermegauss(80)
    chances = chances / chances.sum()
    for correlation in (0.0, 0.3, 0.8, 0.97):
        rest = np.sqrt(1 - correlation**2)
        conditional = readout(correlation * nodes[:, None] + rest * nodes) @ chances
        whole = chances @ readout(nodes) ** 2 - (chances @ readout(nodes)) ** 2
        kept = chances @ conditional**2 - (chances @ conditional) ** 2
        found = readout_error(explained=np.array(correlation**2), coefficients=g)
        assert found == pytest.approx(1 - kept / whole, abs=2e-4)


def test_the_error_at_its_ends_and_between() -> None:
    g = check_coefficients(coefficients_of(np.tanh))
    explained = np.linspace(0, 1, 12).reshape(3, 4)
    error = readout_error(explained=explained, coefficients=g)
    assert error.shape == (3, 4)
    assert (error[0, 0], error[-1, -1]) == pytest.approx((1, 0), abs=1e-12)
    assert (np.diff(error.ravel()) < 0).all()
    # Higher orders are lost first: never below the line of the identity.
    assert (error >= 1 - explained - 1e-12).all()


def test_the_identity_has_the_exact_coupling() -> None:
    weights = np.array([0.9, -0.3, 0.05])
    found = limit_couplings(weights=weights, coefficients=np.ones(1))
    np.testing.assert_allclose(found, 1 + 4 * weights**2, rtol=1e-10)


@pytest.mark.parametrize("name", READOUTS)
def test_couplings_of_weak_features_by_monte_carlo(name: str) -> None:
    readout, draws = READOUTS[name], 1_000_000
    g0 = coefficients_of(readout, 40)
    weights = np.array([0.15, -0.15, 0.05])
    rng = np.random.default_rng(6)
    h2 = rng.standard_normal((draws, weights.size)) ** 2
    # The rest of the index, many features weaker still, is Gaussian.
    rest = np.sqrt(1 - weights @ weights) * rng.standard_normal(draws)
    label = readout((h2 - 1) @ weights / np.sqrt(2) + rest) - g0[0]
    products = label[:, None] ** 2 * h2 / np.mean(label**2)
    error = products.std(axis=0) / np.sqrt(draws)
    found = limit_couplings(weights=weights, coefficients=check_coefficients(g0))
    # The expansion leaves out terms of third order in the weights.
    allowed = 4 * error + 8 * np.abs(weights) ** 3
    assert (np.abs(products.mean(axis=0) - found) < allowed).all()


def test_a_readout_costs_its_share_of_the_linear_coefficient() -> None:
    """Thresholds behind tanh are E[g^2] / nu_1^2 = 1.075 times those of the identity."""
    g0 = coefficients_of(np.tanh)
    weights = np.full(50, 0.02**0.5)
    plain, behind = (
        predict_sequential(
            weights=weights,
            n_features_total=5_000,
            samples=1e5,
            coefficients=one,
            method="closed form",
        )
        for one in (None, g0)
    )
    cost = np.sum(g0[1:] ** 2) / g0[1] ** 2
    assert cost == pytest.approx(1.075, abs=0.003)
    np.testing.assert_allclose(behind.threshold_samples / plain.threshold_samples, cost)
    np.testing.assert_allclose(plain.threshold_samples, 5_000 / (2 * weights**2))


@pytest.mark.parametrize("bad", [np.ones(1), np.ones((2, 2)), np.array([0.0, np.nan])])
def test_bad_coefficients_are_refused(bad: np.ndarray) -> None:
    with pytest.raises(InvalidParameter, match="coefficients have shape"):
        check_coefficients(bad)


def test_a_readout_without_linear_part_is_refused() -> None:
    with pytest.raises(DegenerateReadout, match="no linear trace"):
        check_coefficients(coefficients_of(np.cos))
