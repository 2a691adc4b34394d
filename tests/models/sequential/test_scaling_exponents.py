"""Exponents against the slopes of the exact sums, mixing against simulated eigenvectors."""

from __future__ import annotations

import numpy as np
import pytest

from solvable.errors import InvalidParameter
from solvable.models.sequential.power_law_sums import (
    error_exponent,
    normalised_mse_asymptote,
    normalised_mse_sum,
    threshold_exponent,
    total_to_tail_ratio,
    unrecovered_tail,
    weight_scale,
)
from solvable.spectra import threshold_ratio


@pytest.mark.parametrize("decay", [0.75, 1.0, 1.5, 2.0])
def test_the_asymptote_is_the_limit_of_the_sum(decay: float) -> None:
    features = 2_000_000
    # Ends where m = 10^2 to 10^3.5 features are out: far from the first and from the last one.
    recovered = np.geomspace(1e2, 10**3.5, 7)
    ratios = recovered ** (2 * decay) / (2 * weight_scale(decay=decay, features=features) ** 2)
    arguments = {"decay": decay, "features": features, "aspect_ratio": ratios}
    whole = normalised_mse_sum(**arguments)
    # To first order in 1 / m the sum is above the integral by 7 / m of the bracket: 8 from 4 lambda^2
    # in the coupling, -1 from the end of the sum (Euler-Maclaurin). The tail beyond the last feature,
    # a share (m / p)^(2 decay - 1) of the whole tail, is not in the sum.
    bracket = 1 / (2 * decay - 1) + 2 - 1 / (2 * decay + 1)
    beyond = (recovered / features) ** (2 * decay - 1) / (2 * decay - 1)
    expected = 1 + (7 / recovered - beyond) / bracket
    found = whole / normalised_mse_asymptote(**arguments)
    np.testing.assert_allclose(found, expected, rtol=0, atol=0.004)
    tail = unrecovered_tail(**arguments)
    assert whole[-1] / tail[-1] == pytest.approx(total_to_tail_ratio(decay), rel=0.03)


def test_the_bracket_is_an_integral_over_features() -> None:
    """Tail plus noise of the recovered: the sum over features as an integral over i / m."""
    from scipy.integrate import quad

    for decay in (0.6, 1.0, 3.0):
        tail = 1 / (2 * decay - 1)

        def noise(x: float, power: float = 2 * decay) -> float:
            """Weight x^-power times 1 - c^4 of the feature i = x m, whose c^2 is 1 - x^power."""
            # expm1 and log1p: 1 - (1 - u)^2 loses all digits for small u.
            return -(x**-power) * np.expm1(2 * np.log1p(-(x**power)))

        inner = quad(noise, 1e-12, 1)[0]
        assert (tail + inner) / tail == pytest.approx(total_to_tail_ratio(decay), rel=1e-8)


@pytest.mark.parametrize("decay", [0.75, 1.0, 2.0])
def test_the_error_falls_with_its_exponent(decay: float) -> None:
    ratios = np.array([1e6, 1e8])
    values = normalised_mse_asymptote(decay=decay, aspect_ratio=ratios)
    slope = np.log(values[1] / values[0]) / np.log(ratios[1] / ratios[0])
    assert slope == pytest.approx(error_exponent(decay), abs=1e-12)


def test_the_learned_energy_of_slow_decay_grows_with_its_exponent() -> None:
    decay, features = 0.25, 2_000_000
    scale = weight_scale(decay=decay, features=features)
    # Between the first threshold and the last one.
    ratios = np.geomspace(2, features ** (2 * decay), 60) / (2 * scale**2)
    learned = 1 - normalised_mse_sum(decay=decay, features=features, aspect_ratio=ratios)
    slopes = np.diff(np.log(learned)) / np.diff(np.log(ratios))
    middle = slopes[(ratios[1:] > 100 * ratios[0]) & (ratios[1:] < ratios[-1])]
    np.testing.assert_allclose(middle, error_exponent(decay), atol=0.03)


def test_thresholds_grow_with_their_exponents() -> None:
    decay, epsilon, q = 0.4, 0.5, 2
    dimensions = 10.0 ** np.array([12, 14])
    logs = []
    for d in dimensions:
        features = round(d**epsilon)
        scale = weight_scale(decay=decay, features=features)
        ranks = np.array([1.0, d ** (epsilon / 2), d**epsilon])
        ratio = threshold_ratio(heights=np.sqrt(2) * scale * ranks**-decay, noise=1.0)
        logs.append(np.log(ratio * d**q / 2))
    slopes = (logs[1] - logs[0]) / np.log(dimensions[1] / dimensions[0])
    expected = [
        threshold_exponent(degree=q, decay=decay, epsilon=epsilon, rank_exponent=r)
        for r in (0.0, epsilon / 2, epsilon)
    ]
    # Z^-2 approaches its power law p^(1 - 2 decay) / (1 - 2 decay) only slowly.
    np.testing.assert_allclose(slopes, expected, atol=0.03)


def test_known_thresholds() -> None:
    assert threshold_exponent(degree=2, decay=0.0, epsilon=0.5) == pytest.approx(2.5)
    for decay in (0.0, 0.3, 0.5, 1.0, 2.0):
        last = threshold_exponent(degree=3, decay=decay, epsilon=0.4, rank_exponent=0.4)
        assert last == pytest.approx(3 + 0.4 * max(1, 2 * decay))


@pytest.mark.parametrize("decay", [0.5, 0.2, 0.0, -1.0, np.nan, np.inf])
def test_decay_too_slow_for_an_asymptote(decay: float) -> None:
    with pytest.raises(InvalidParameter, match="allowed: above 1/2"):
        normalised_mse_asymptote(decay=decay, aspect_ratio=10.0)
    with pytest.raises(InvalidParameter, match="allowed: above 1/2"):
        total_to_tail_ratio(decay)


@pytest.mark.parametrize("decay", [0.5, 0.0, -1.0, np.nan, np.inf])
def test_decay_without_an_exponent(decay: float) -> None:
    with pytest.raises(InvalidParameter, match="decay is"):
        error_exponent(decay)


@pytest.mark.parametrize(
    "changed", [{"degree": 0}, {"decay": -1.0}, {"rank_exponent": 0.6}, {"rank_exponent": -0.1}]
)
def test_bad_thresholds_are_refused(changed: dict[str, float]) -> None:
    with pytest.raises(InvalidParameter):
        threshold_exponent(**{"degree": 2, "decay": 1.0, "epsilon": 0.5} | changed)
