"""Thresholds of activations for first-order methods and for any method, and their sentences."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import entr, ndtr

from solvable.models.multi_index.activation_view import answer, ordered, tables
from solvable.models.multi_index.activations import compare_activations


def row(name, **options):
    return compare_activations([name], **options).rows[0]


def test_with_an_exponent_of_one_no_method_needs_fewer_samples():
    for noise in (0.3, 30.0):
        found = row("he2", noise=noise)
        assert found.information_threshold_ratio == pytest.approx(found.threshold_ratio, rel=1e-4)
        assert any("no method succeeds with fewer" in words for words in found.words)


@pytest.mark.parametrize(
    ("name", "noise", "constant", "within"),
    [
        ("cosmix", 300.0, 2.433, 0.01),
        ("he6", 1e5, 2.637, 0.01),
        ("cosmix", 1e9, 2.433, 1e-3),
        # Rounding gives E[m(y)²] = 3.5e-13 in place of 0 here.
        ("he4", 10**3.5, 1.976, 0.02),
    ],
)
def test_any_method_needs_samples_in_proportion_to_the_noise(name, noise, constant, within):
    # Constants of (multi-index 15)
    found = row(name, noise=noise)
    assert found.information_threshold_ratio == pytest.approx(constant * noise, rel=within)
    assert found.threshold_ratio > 2 * found.information_threshold_ratio


def test_a_nearly_cancelled_moment_decides_at_very_large_noise_alone():
    mixed = "cos(z) - 1.12*cos(2*z)"
    assert "up to a noise of about" in row(mixed, noise=10.0).words[1]
    # (multi-index 14) with c_2 = 1.7462 below the crossover, and with c_1 = -4.2e-4 far above it
    assert row(mixed, noise=1e4).threshold_ratio == pytest.approx(2 / 1.7462**2 * 1e8, rel=0.02)
    assert row(mixed, noise=1e9).threshold_ratio == pytest.approx(1e9 / 4.199e-4**2, rel=0.02)


def test_a_threshold_far_from_the_large_noise_law_is_reported():
    sentence = "At this noise the threshold does not follow the large-noise law yet."
    assert sentence in row("he4", noise=1.0).words
    assert sentence not in row("cosmix", noise=10.0).words


def test_many_directions_beyond_pairs_have_their_leading_order():
    found = row("tanh", directions=100)
    assert any("does not use the sum" in words for words in found.words)
    near = [row("tanh", directions=p).threshold_ratio / p**2 for p in (40, 100)]
    assert near[0] == pytest.approx(near[1], rel=0.02)


def test_features_of_a_power_law_have_a_tuple_of_thresholds():
    found = compare_activations(["cosmix", "sign"], decay=1.0, directions=4)
    cosmix, sign = found.rows
    slopes = np.diff(np.log(cosmix.threshold_ratio)) / np.diff(np.log(np.arange(1, 5)))
    assert slopes[-1] == pytest.approx(4, abs=0.2)
    assert sign.threshold_ratio == (None,) * 4
    # any method needs samples in proportion to the noise k² of a feature, first-order methods to k⁴
    bounds = np.array(cosmix.information_threshold_ratio)
    # features that are not yet found add to the noise of the strong ones
    assert 1.2 < np.polyfit(np.log(np.arange(2, 5)), np.log(bounds[1:]), 1)[0] < 2.2
    assert (bounds[1:] < cosmix.threshold_ratio[1:]).all()
    assert sign.information_threshold_ratio is None
    assert any("(n/d)^-0.25" in words for words in cosmix.words)


def test_a_logarithm_has_a_reason_and_no_warning():
    found = row("log(abs(z))", noise=0.01)
    assert found.threshold_ratio == pytest.approx(0.535, abs=2e-3)
    assert found.information_threshold_ratio is None
    assert any("unlimited computing time is not known" in words for words in found.words)


def test_noise_zero_is_a_number_or_a_reason():
    assert row("abs", noise=0).threshold_ratio == pytest.approx(0.5, rel=1e-4)
    band = row("step(abs(z)-0.5)-step(abs(z)-1.6083105988156554)", noise=0)
    # inf_q (-q - log(1 - q)) / 2 I(q) with the entropies of a label that is 1 in the band
    q = 1 - np.exp(-np.linspace(0.02, 9, 400))[:, None]
    x = np.linspace(-7, 7, 40_001)
    weight = np.exp(-(x**2) / 2) / np.sum(np.exp(-(x**2) / 2))
    ends = [sign * end for sign in (1, -1) for end in (0.5, 1.6083105988156554)]
    a, b, c, d = (ndtr((end - np.sqrt(q) * x) / np.sqrt(1 - q)) for end in ends)
    known = (entr(b - a + c - d) + entr(1 - (b - a + c - d))) @ weight
    p = 2 * (ndtr(ends[1]) - ndtr(ends[0]))
    exact = np.min((-q - np.log1p(-q))[:, 0] / 2 / (entr(p) + entr(1 - p) - known))
    assert band.information_threshold_ratio == pytest.approx(exact, rel=1e-3)


def test_rows_are_ordered_by_what_differs():
    found = compare_activations(["he4", "relu", "gelu", "he2"], noise=1.0)
    assert [row.name for row in ordered(found)] == ["gelu", "relu", "he2", "he4"]
    # E[relu (z² - 1)] = (2 pi)^(-1/2), and Var relu = 1/2 - 1/(2 pi)
    coefficient = (2 * np.pi) ** -0.5 / (0.5 - 0.5 / np.pi) ** 0.5
    assert ordered(found)[1].coefficient == pytest.approx(coefficient, rel=1e-6)
    assert "n/d > 0 with gelu and relu" in answer(found)
    # they have the same thresholds and exponent: only then is c a column
    assert [column.name for column in tables(found, details=False)[0].columns][-1] == "c"
    different = compare_activations(["he4", "he2"], noise=1.0)
    assert [column.name for column in tables(different, details=False)[0].columns][-1] == "β*"
