"""Shapes of the two families, fits by variable projection, and grids of parameters."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize, nnls

from solvable.arrays import random_stream
from solvable.forecast.families import RANKS, ROUNDING_FEATURES, Cascade, PowerLaw
from solvable.forecast.fitting import Grid, adapted_grid, fit, projected, whitener
from solvable.spectra.near_semicircle import spiked_overlap

SIZES = np.geomspace(50, 6400, 8)


@pytest.mark.parametrize(("decay", "features"), [(1.0, 8), (0.4, 4), (1.5, 24)])
def test_the_cascade_is_the_sum_over_spiked_overlaps(decay, features):
    ranks = np.arange(1, features + 1)
    squares = ranks ** (-2 * decay) / np.sum(ranks ** (-2 * decay))
    overlap = spiked_overlap(
        heights=np.sqrt(squares / squares[0]),
        noise=1.0,
        aspect_ratio=SIZES / 30.0,
        couplings=1 + 4 * squares,
        n_features=ROUNDING_FEATURES,
    )
    found = Cascade().shapes(np.array([[decay, 30.0, features]]), SIZES)[0]
    # The rounded threshold is interpolated on a grid with steps of 2 %.
    np.testing.assert_allclose(found, 1 - overlap**2 @ squares, atol=2e-4)


def test_far_above_its_thresholds_the_cascade_is_the_error_of_the_theory():
    decay, features, n_total = 0.75, 12, 400
    ratio = np.array([64.0, 256.0, 1024.0])
    squares = np.arange(1, features + 1) ** (-2 * decay)
    squares /= squares.sum()
    first = n_total / (2 * squares[0])
    found = Cascade().shapes(np.array([[decay, first, features]]), ratio * n_total)[0]
    # 1 - sum_i lambda_i² c_i⁴, c_i² = (nu_i - 1)_+ / (nu_i + 4 lambda_i²), nu_i = 2 lambda_i² n / D
    nu = 2 * squares * ratio[:, None]
    expected = 1 - (np.maximum(nu - 1, 0) / (nu + 4 * squares)) ** 2 @ squares
    # This theory has sharp thresholds, and those of the cascade are rounded.
    np.testing.assert_allclose(found, expected, rtol=0.03)


@pytest.mark.parametrize("features", [32, 64, 128, 256])
def test_features_that_share_a_node_lose_nothing(features):
    from solvable.forecast import families

    parameters = np.array([[0.6, 20.0, features]])
    grouped = Cascade().shapes(parameters, SIZES)
    _, counts = families._nodes(features)
    assert counts.sum() == features
    squares = np.arange(1, features + 1) ** -1.2
    overlap = spiked_overlap(
        heights=np.sqrt(squares), noise=1.0, aspect_ratio=SIZES / 20,
        couplings=1 + 4 * squares / squares.sum(), n_features=ROUNDING_FEATURES,
    )  # fmt: skip
    exact = 1 - overlap**2 @ squares / squares.sum()
    np.testing.assert_allclose(grouped[0], exact, atol=2e-3)


@given(
    decay=st.floats(0.1, 2.5),
    first=st.floats(1, 1e4),
    features=st.sampled_from(RANKS),
    factor=st.floats(0.1, 100),
)
@settings(max_examples=50, deadline=None)
def test_the_cascade_falls_and_has_no_scale_of_its_own(decay, first, features, factor):
    parameters = np.array([[decay, first, features]])
    shape = Cascade().shapes(parameters, SIZES)[0]
    assert (np.diff(shape) <= 1e-12).all()
    assert ((shape >= 0) & (shape <= 1 + 1e-12)).all()
    scaled = Cascade().shapes(parameters * [1, factor, 1], SIZES * factor)[0]
    np.testing.assert_allclose(scaled, shape, atol=1e-9)


def test_the_tail_of_an_endless_cascade_is_the_exponent_of_the_theory():
    n = np.array([2e3, 4e3])
    shapes = Cascade().shapes(np.array([[1.0, 10.0, 256]]), n)[0]
    slope = np.diff(np.log(shapes)) / np.log(2)
    # Exponent -1 + 1 / (2 gamma) = -0.5 (arXiv:2605.14567, Theorem 3.2), with corrections at finite n
    assert slope[0] == pytest.approx(-0.55, abs=0.06)


@given(
    seed=st.integers(0, 10_000),
    correlated=st.booleans(),
)
@example(seed=190, correlated=True)
@settings(max_examples=40, deadline=None)
def test_offset_and_amplitude_are_those_of_non_negative_least_squares(seed, correlated):
    rng = random_stream("nnls", seed)
    shapes = PowerLaw(500.0).shapes(rng.uniform(0.05, 2, (5, 1)), SIZES)
    factor = rng.standard_normal((8, 8)) * (0.3 if correlated else 0) + np.diag(
        rng.uniform(0.5, 2, 8)
    )
    white = whitener(factor @ factor.T + 1e-3 * np.eye(8))
    data = rng.standard_normal((3, 8)) + rng.uniform(-1, 1)
    offset, amplitude, misfit = projected(shapes, data, white)
    for row in range(3):
        for k in range(5):
            columns = white @ np.stack([np.ones(8), shapes[k]], axis=1)
            _, residual = nnls(columns, white @ data[row])
            assert misfit[row, k] == pytest.approx(residual**2, rel=1e-7, abs=1e-9)
            assert offset[row, k] >= 0
            assert amplitude[row, k] >= 0


def test_a_shape_that_is_constant_counts_as_offset():
    offset, amplitude, misfit = projected(np.ones((1, 4)), np.full((1, 4), 3.0), np.eye(4))
    assert (offset[0, 0], amplitude[0, 0], misfit[0, 0]) == pytest.approx((3.0, 0.0, 0.0))


def test_an_offset_does_not_bias_the_exponent():
    # A straight line through the logarithms would give an exponent of 0.168 instead of 0.6.
    n = np.geomspace(100, 1e5, 12)
    errors = 0.05 + 2 * n**-0.6
    exponents = []
    for seed in range(20):
        noisy = errors * (1 + 0.02 * random_stream("rule", seed).standard_normal(n.size))
        grid, best = adapted_grid(
            PowerLaw(3000.0), n, noisy, whitener(np.diag((0.02 * errors) ** 2))
        )
        exponents.append(grid.parameters[best.rows[0], 0])
    assert np.mean(exponents) == pytest.approx(0.6, abs=4 * 0.02 / np.sqrt(20) + 0.01)
    assert np.std(exponents) < 0.05


@pytest.mark.parametrize("noise", [1e-3, 0.03])
def test_grids_reach_the_maximum_that_a_continuous_search_finds(noise):
    rng = random_stream("continuous", str(noise))
    truth = 0.1 + 0.9 * Cascade().shapes(np.array([[0.8, 60.0, 8]]), SIZES)[0]
    data = truth * (1 + noise * rng.standard_normal(8))
    white = whitener(np.diag((noise * truth) ** 2))
    _, best = adapted_grid(Cascade(), SIZES, data, white)

    def misfit(place, features):
        parameters = np.array([[np.clip(place[0], 0.02, 3), np.exp(place[1]), features]])
        return projected(Cascade().shapes(parameters, SIZES), data[None], white)[2][0, 0]

    least = min(
        minimize(misfit, (0.8, np.log(60)), (features,), method="Nelder-Mead").fun
        for features in (4, 6, 8, 12, 16)
    )
    assert best.misfit[0] <= least + 0.3


def test_rows_are_fitted_in_blocks_alike(monkeypatch):
    from solvable.forecast import fitting

    parameters = PowerLaw(500.0).coarse(SIZES)
    grid = Grid(PowerLaw(500.0), parameters, PowerLaw(500.0).shapes(parameters, SIZES))
    data = random_stream("blocks").uniform(0.1, 1, (50, 8))
    whole = fit(grid, data, np.eye(8))
    monkeypatch.setattr(fitting, "BLOCK", 500)
    parts = fit(grid, data, np.eye(8))
    np.testing.assert_array_equal(parts.rows, whole.rows)
    np.testing.assert_allclose(parts.misfit, whole.misfit, rtol=1e-9)
