"""Gaussian means of committees: Monte Carlo, quadrature and limits."""

import numpy as np
import pytest
from scipy.special import erf

from solvable.errors import InvalidParameter
from solvable.inference.committee import _orthant, activation_of

FUNCTIONS = {
    "erf": (lambda u: erf(u / np.sqrt(2)), lambda u: np.sqrt(2 / np.pi) * np.exp(-(u**2) / 2)),
    "relu": (lambda u: np.maximum(u, 0), lambda u: (u > 0) * 1.0),
    "quadratic": (lambda u: u**2, lambda u: 2 * u),
    "linear": (lambda u: u, np.ones_like),
    "tanh": (np.tanh, lambda u: 1 - np.tanh(u) ** 2),
}
A = np.array([1.0, 0.7, -1.0, -0.5])


def covariance(seed=0, units=4):
    rows = np.random.default_rng(seed).standard_normal((units, 6))
    return rows @ rows.T / 6


@pytest.mark.parametrize("name", FUNCTIONS)
def test_means_agree_with_draws(name):
    C, K, noise = covariance(), 2, 0.3
    act, (g, slope) = activation_of(name, 4), FUNCTIONS[name]
    rng = np.random.default_rng(1)
    u = rng.standard_normal((200_000, 4)) @ np.linalg.cholesky(C).T
    delta, s = g(u) @ A, slope(u[:, :K])
    draws = {
        "error": (act.error(C, A), delta**2 / 2),
        "pull": (act.pull(C, A, K), s[:, :, None] * u[:, None, :] * delta[:, None, None]),
        "spread": (
            act.spread(C, A, K, noise), s[:, :, None] * s[:, None, :] * (delta**2 + noise)[:, None, None],
        ),
        "outer": (act.outer(C, A, K), g(u[:, :K]) * delta[:, None]),
    }  # fmt: skip
    for mean, samples in draws.values():
        error = samples.std(axis=0) / np.sqrt(len(samples))
        np.testing.assert_array_less(np.abs(mean - samples.mean(axis=0)), 4 * error)


@pytest.mark.parametrize(("closed", "formula"), [("erf", "erf(z/sqrt(2))"), ("quadratic", "z**2")])
def test_closed_integrals_agree_with_quadrature(closed, formula):
    C = 0.3 * covariance(2)
    for method, extra in (("error", ()), ("pull", (2,)), ("spread", (2, 0.1)), ("outer", (2,))):
        one, two = (
            getattr(activation_of(name, 4), method)(C, A, *extra) for name in (closed, formula)
        )
        np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_equal_committees_have_no_error_and_no_force(name):
    rows = np.random.default_rng(3).standard_normal((2, 6))
    B, a, act = rows @ rows.T / 6, np.array([1, 1, -1, -1.0]), activation_of(name, 4)
    C = np.block([[B, B], [B, B]])
    for found in (act.error(C, a), act.pull(C, a, 2), act.spread(C, a, 2, 0.0), act.outer(C, a, 2)):
        np.testing.assert_allclose(found, 0, atol=1e-6)


def test_orthants_of_up_to_four_units():
    # equal correlations of 1/2: 1 / (s + 1); independent: 2^-s; two equal pairs: those of two units
    for size in range(5):
        half = (np.eye(size) + 1) / 2
        found = _orthant(np.stack([half, np.eye(size)]))
        np.testing.assert_allclose(found, [1 / (size + 1), 0.5**size], rtol=1e-9)
    pair = np.kron([[1.0, 0.3], [0.3, 1.0]], np.ones((2, 2)))[None]
    assert _orthant(pair)[0] == pytest.approx(0.25 + np.arcsin(0.3) / (2 * np.pi), rel=1e-3)


def test_symmetric_overlaps_stay_symmetric():
    # a grid that broke the symmetry would start an escape from the plateau
    C = np.block([[0.3 * np.eye(2) + 0.1, np.full((2, 2), 0.2)], [np.full((2, 2), 0.2), np.eye(2)]])
    for name in ("tanh", "relu", "erf"):
        pull = activation_of(name, 4).pull(C, np.array([1, 1, -1, -1.0]), 2)
        np.testing.assert_allclose(pull, pull[::-1][:, [1, 0, 3, 2]], atol=1e-14)
        np.testing.assert_allclose(pull[:, 2], pull[:, 3], atol=1e-14)


@pytest.mark.parametrize(
    ("name", "units", "message"),
    [
        ("max(z, 0.1*z)", 4, "kinks"),
        ("tanh", 6, "6 units together; allowed: at most 5"),
        ("no_such", 4, "no_such"),
    ],
)
def test_activations_that_are_not_covered(name, units, message):
    with pytest.raises(InvalidParameter, match=message):
        activation_of(name, units)
