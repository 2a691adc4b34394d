"""Lanczos quadrature against full diagonalisation, exact sums, and the Marchenko-Pastur law."""

import numpy as np
import pytest

from solvable.arrays import random_stream
from solvable.errors import InvalidData, InvalidParameter
from solvable.spectra.density import weighted_density
from solvable.spectra.lanczos import lanczos_quadrature


def covariance(columns: int, rows: int) -> np.ndarray:
    """Sample covariance of Gaussian rows."""
    G = random_stream("covariance", columns, rows).standard_normal((rows, columns))
    return G.T @ G / rows


def test_as_many_steps_as_directions_give_eigenvalues_and_weights():
    rng = random_stream("exact quadrature")
    A = rng.standard_normal((40, 40))
    values, vectors = np.linalg.eigh(A + A.T)
    starts = rng.standard_normal((40, 3))
    found = lanczos_quadrature(lambda U: (A + A.T) @ U, starts, steps=99)
    squares = (vectors.T @ starts) ** 2
    np.testing.assert_allclose(found.nodes, np.tile(values, (3, 1)), atol=1e-10)
    np.testing.assert_allclose(found.weights, (squares / squares.sum(axis=0)).T, atol=1e-10)


def test_few_steps_are_exact_for_polynomials():
    rng = random_stream("polynomials")
    diagonal = rng.standard_normal(300)
    start = rng.standard_normal((300, 1))
    found = lanczos_quadrature(lambda U: diagonal[:, None] * U, start, steps=5)
    share = start[:, 0] ** 2 / np.sum(start**2)
    for power in range(10):  # degree at most 2 * 5 - 1
        assert found.weights[0] @ found.nodes[0] ** power == pytest.approx(share @ diagonal**power)
    assert found.weights[0] @ found.nodes[0] ** 10 != pytest.approx(share @ diagonal**10, rel=1e-6)


def test_distribution_is_that_of_a_full_diagonalisation():
    C = covariance(600, 1_800)
    values = np.linalg.eigvalsh(C)
    starts = random_stream("starts").standard_normal((600, 16))
    found = lanczos_quadrature(lambda U: C @ U, starts, steps=50)
    places = np.linspace(values[0], values[-1], 200)
    rows = found.cumulative(places)
    error = rows.std(axis=0, ddof=1) / 4
    difference = np.abs(rows.mean(axis=0) - np.searchsorted(values, places) / 600)
    # 0.003: less than two eigenvalues, for the interpolation between nodes
    assert (difference < 4 * error + 0.003).all()
    # standard deviation sqrt(2 F (1 - F) / (D k)) at the median
    assert error.max() == pytest.approx(np.sqrt(2 * 0.25 / (600 * 16)), rel=0.5)
    levels = (np.arange(600) + 0.5) / 600
    assert np.abs(found.quantiles(levels) - values).max() < 0.05
    # The outermost nodes converge to the extreme eigenvalues.
    assert [found.nodes.min(), found.nodes.max()] == pytest.approx(
        [values[0], values[-1]], abs=1e-3
    )


def test_distribution_is_the_marchenko_pastur_law():
    C = covariance(1_000, 4_000)
    starts = random_stream("law").standard_normal((1_000, 16))
    found = lanczos_quadrature(lambda U: C @ U, starts, steps=40)
    law = weighted_density(weights=np.ones(1), aspect_ratio=4.0, centre=False, points=2_000)
    steps = np.diff(law.x) * (law.density[1:] + law.density[:-1]) / 2
    rows = found.cumulative(law.x)
    error = rows.std(axis=0, ddof=1) / 4
    difference = np.abs(rows.mean(axis=0) - np.append(0, np.cumsum(steps)))
    # Eigenvalue counts are rigid, up to a few log(D) / D.
    assert (difference < 4 * error + 3 * np.log(1_000) / 1_000).all()


def test_directions_outside_do_not_appear():
    diagonal = np.append(5.0, np.linspace(-1, 1, 299))
    starts = random_stream("outside").standard_normal((300, 2))
    outside = np.eye(300)[:, :1]
    found = lanczos_quadrature(lambda U: diagonal[:, None] * U, starts, steps=60, outside=outside)
    assert found.nodes.max() == pytest.approx(1, abs=0.01)
    np.testing.assert_allclose(found.weights.sum(axis=1), 1)
    assert found.cumulative(np.array([0.0])).mean() == pytest.approx(0.5, abs=0.15)


def test_a_multiple_of_the_identity_has_one_node():
    found = lanczos_quadrature(lambda U: 3 * U, np.ones((20, 1)), steps=10)
    assert found.nodes[found.held] == pytest.approx([3.0])
    np.testing.assert_allclose(found.cumulative(np.array([2.9, 3.1])), [[0, 1]])


@pytest.mark.parametrize(
    ("starts", "outside", "words"),
    [
        (np.ones(5), None, r"shape \(5,\)"),
        (np.ones((5, 2)), np.ones((4, 1)), r"outside \(4, 1\)"),
        (np.zeros((5, 1)), None, "zero or not finite"),
        (np.full((5, 1), np.nan), None, "zero or not finite"),
    ],
)
def test_wrong_starts_are_refused(starts, outside, words):
    with pytest.raises(InvalidData, match=words):
        lanczos_quadrature(lambda U: U, starts, outside=outside)


def test_one_step_is_refused():
    with pytest.raises(InvalidParameter, match="steps"):
        lanczos_quadrature(lambda U: U, np.ones((5, 1)), steps=1)
