"""Sums over power-law features against direct sums over all of them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import zeta

from solvable.errors import InvalidParameter
from solvable.models.sequential.power_law_sums import (
    SUM_TERMS,
    normalised_mse_sum,
    power_sum,
    recovered_count,
    unrecovered_tail,
    weight_scale,
)
from solvable.spectra import threshold_ratio
from solvable.spectra.near_semicircle import spiked_overlap
from solvable.theory import predict_sequential


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0, 1.5, 2.0, 4.0])
@pytest.mark.parametrize("terms", [1, SUM_TERMS, SUM_TERMS + 1, 100_000])
def test_long_sums(exponent: float, terms: int) -> None:
    exact = float(np.sum(np.arange(1, terms + 1, dtype=np.longdouble) ** -exponent))
    assert power_sum(exponent, terms) == pytest.approx(exact, rel=1e-12)


def test_two_million_terms_against_the_zeta_function() -> None:
    terms = 2_000_000
    exact = zeta(1.5, 1) - zeta(1.5, terms + 1)
    assert power_sum(1.5, terms) == pytest.approx(exact, rel=1e-12)


@settings(max_examples=40, deadline=None)
@given(decay=st.floats(0.0, 3.0), features=st.integers(1, 20_000), log_ratio=st.floats(-1.0, 8.0))
def test_the_sums_over_all_features(decay: float, features: int, log_ratio: float) -> None:
    ratio = 10.0**log_ratio
    weights = np.arange(1, features + 1, dtype=float) ** -decay
    weights /= np.linalg.norm(weights)
    assert weight_scale(decay=decay, features=features) == pytest.approx(weights[0], rel=1e-10)
    heights = np.sqrt(2) * weights
    overlap = spiked_overlap(
        heights=heights, noise=1.0, couplings=1 + 4 * weights**2, aspect_ratio=ratio
    )
    found = normalised_mse_sum(decay=decay, features=features, aspect_ratio=ratio)
    np.testing.assert_allclose(found, 1 - weights**2 @ overlap**2, atol=1e-10)
    arguments = {"decay": decay, "features": features, "aspect_ratio": ratio}
    thresholds = threshold_ratio(heights=heights, noise=1.0)
    # A feature whose threshold agrees with the ratio to rounding may count or not.
    clear = np.abs(thresholds / ratio - 1) > 1e-9
    if clear.all():
        out = thresholds < ratio
        assert recovered_count(**arguments) == out.sum()
        np.testing.assert_allclose(
            unrecovered_tail(**arguments), np.sum(weights[~out] ** 2), atol=1e-10
        )


def test_the_front_door_gives_the_same_error() -> None:
    D, features = 4_000, 40
    ratios = np.array([2.0, 30.0, 500.0])
    found = predict_sequential(
        weights=np.arange(1.0, features + 1) ** -0.7,
        n_features_total=D,
        samples=ratios * D,
        method="closed form",
        rounding=False,
    )
    arguments = {"decay": 0.7, "features": features, "aspect_ratio": ratios}
    np.testing.assert_allclose(found.normalised_mse, normalised_mse_sum(**arguments), rtol=1e-12)
    np.testing.assert_allclose(
        found.normalised_mse_tail_only, unrecovered_tail(**arguments), rtol=1e-10, atol=1e-12
    )
    np.testing.assert_array_equal(found.recovered.sum(axis=1), recovered_count(**arguments))


def test_the_error_of_simulated_gaussian_spikes() -> None:
    """The whole method on true indices: eigenvectors of a moment matrix, then least squares."""
    D, features, ratio, decay = 150, 3, 150.0, 0.5
    n = int(ratio * D)
    rng = np.random.default_rng(2)
    weights = np.arange(1.0, features + 1) ** -decay
    weights /= np.linalg.norm(weights)
    weights[1] *= -1
    errors = []
    for _ in range(4):
        F = rng.standard_normal((n, D))
        y = (F[:, :features] ** 2 - 1) @ weights / np.sqrt(2)
        matrix = (F.T * y) @ F / n - y.mean() * np.eye(D)
        values, vectors = np.linalg.eigh(matrix)
        found = vectors[:, np.argsort(-np.abs(values))[:features]]
        fresh = rng.standard_normal((40_000, D))
        index = (fresh @ found) ** 2 - 1
        label = (fresh[:, :features] ** 2 - 1) @ weights / np.sqrt(2)
        residual = label - index @ np.linalg.lstsq(index, label, rcond=None)[0]
        errors.append(residual.var() / label.var())
    predicted = normalised_mse_sum(decay=decay, features=features, aspect_ratio=ratio)
    # Standard error from four seeds is about 2 %; the closed form itself is good to D / n.
    assert np.mean(errors) == pytest.approx(float(predicted), rel=0.08)


@pytest.mark.parametrize("function", [normalised_mse_sum, unrecovered_tail, recovered_count])
@pytest.mark.parametrize(
    "changed",
    [
        {"decay": -0.1},
        {"decay": np.nan},
        {"features": 0},
        {"aspect_ratio": 0.0},
        {"aspect_ratio": np.array([1.0, np.inf])},
    ],
)
def test_bad_input_is_refused(function: Callable[..., object], changed: dict[str, object]) -> None:
    arguments = {"decay": 1.0, "features": 4, "aspect_ratio": 2.0} | changed
    with pytest.raises(InvalidParameter):
        function(**arguments)
