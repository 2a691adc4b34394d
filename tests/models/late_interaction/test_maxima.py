"""Moments of the largest of normal numbers, and the covariance of maxima."""

from __future__ import annotations

import numpy as np
import pytest

from solvable.arrays import random_stream
from solvable.errors import InvalidParameter
from solvable.models.late_interaction.maxima import max_covariance, max_moments


def test_closed_forms_of_few_numbers() -> None:
    """Moments of the largest of two and three numbers in closed form."""
    two, three = max_moments(2), max_moments(3)
    assert two.mean == pytest.approx(1 / np.sqrt(np.pi), abs=1e-9)
    assert two.variance == pytest.approx(1 - 1 / np.pi, abs=1e-9)
    assert two.second_mean == pytest.approx(-two.mean, abs=1e-9)
    assert three.mean == pytest.approx(3 / (2 * np.sqrt(np.pi)), abs=1e-9)
    assert three.second_mean == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize(
    ("tokens", "information"),
    [(2, 0.7403), (4, 0.5257), (8, 0.3583), (16, 0.2349), (32, 0.1488), (64, 0.0914)],
)
def test_information_of_the_largest_number(tokens: int, information: float) -> None:
    """Simulated variance of E[h_j | max], and six tabulated values."""
    moments = max_moments(tokens)
    assert moments.information == pytest.approx(information, abs=1e-4)
    # No function explains less than the best linear one.
    assert moments.information > 1 / (tokens * moments.variance)
    h = random_stream(tokens, "information").standard_normal((100_000, tokens))
    largest = h.max(axis=1)
    edges = np.quantile(largest, np.linspace(0, 1, 201))
    cell = np.clip(np.searchsorted(edges, largest) - 1, 0, 199)
    means = np.array([np.bincount(cell, column) / np.bincount(cell) for column in h.T])
    # A mean over 500 numbers adds their variance over 500.
    found = tokens * (means**2).mean() - tokens * h.var() / 500
    assert found == pytest.approx(information, abs=0.02)


def test_two_columns_in_closed_form() -> None:
    """With two columns the place of the maximum is the sign of a difference."""
    rho = np.linspace(-0.999, 0.999, 21)
    cov = max_covariance(2)
    np.testing.assert_allclose(cov.same_column(rho), 1 - np.arccos(rho) / np.pi, atol=1e-9)
    # max(a, b) = (a + b) / 2 + |a - b| / 2, and the covariance of |u|, |v| is known.
    absolute = 2 / np.pi * (np.sqrt(1 - rho**2) + rho * np.arcsin(rho)) - 2 / np.pi
    np.testing.assert_allclose(cov.covariance(rho), rho / 2 + absolute / 2, atol=1e-9)


@pytest.mark.parametrize("tokens", [5, 40])
@pytest.mark.parametrize("rho", [-1.0, -0.6, 0.4, 0.95])
def test_simulated_maxima(tokens: int, rho: float) -> None:
    """Covariance and agreement of simulated rows."""
    draws = 60_000
    first, rest = random_stream(tokens, "rows").standard_normal((2, draws, tokens))
    other = rho * first + np.sqrt(1 - rho**2) * rest
    a, b = first.max(axis=1), other.max(axis=1)
    products = (a - a.mean()) * (b - b.mean())
    cov = max_covariance(tokens)
    error = products.std() / np.sqrt(draws)
    assert float(cov.covariance(rho)) == pytest.approx(products.mean(), abs=4 * error)
    same = np.mean(first.argmax(axis=1) == other.argmax(axis=1))
    deviation = np.sqrt((same * (1 - same) + 1 / draws) / draws)
    assert float(cov.same_column(rho)) == pytest.approx(same, abs=4 * deviation)


@pytest.mark.parametrize("tokens", [2, 8, 64, 256, 1024])
def test_ends_of_the_covariance(tokens: int) -> None:
    """c(0) = 0, c(1) = Var max, p(0) = 1/L, p(1) = 1."""
    cov = max_covariance(tokens)
    assert float(cov.covariance(0.0)) == pytest.approx(0, abs=1e-12)
    assert float(cov.covariance(1.0)) == pytest.approx(max_moments(tokens).variance, abs=3e-5)
    assert float(cov.same_column(0.0)) == pytest.approx(1 / tokens, rel=1e-5)
    assert float(cov.same_column(1.0)) == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize("tokens", [1, 1025])
def test_numbers_out_of_range(tokens: int) -> None:
    """Lengths for which the quadratures are not accurate are refused."""
    with pytest.raises(InvalidParameter, match="tokens"):
        max_moments(tokens)
    with pytest.raises(InvalidParameter, match="tokens"):
        max_covariance(tokens)
