"""Label-weighted second moments: closed forms, other derivations, simulated matrices."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from solvable.errors import InvalidData, InvalidParameter
from solvable.spectra.label_emergence import (
    balanced_emergence_ratio,
    emergence_ratio,
)
from solvable.spectra.label_law import LabelLaw
from solvable.spectra.label_weighted import bulk_function, label_weighted_spectrum, spike_function
from solvable.spectra.outliers import resolvent_outliers

STRENGTH = 0.8573481658
"""E[y s²] of y = sign(s² - median), 4 sqrt(m) phi(sqrt(m))."""


def closed_form(strength, ratio):
    """Edge, outlier and squared overlap of balanced labels, in closed form (spectra 26)."""
    bar = np.sqrt((2 + ratio + np.sqrt(ratio**2 + 8 * ratio)) / 2)
    star = (ratio * strength + np.sqrt((ratio * strength) ** 2 + 4)) / 2

    def psi(x):
        return x / ratio + x / (x**2 - 1)

    if star <= bar:
        return psi(bar), psi(bar), 0.0
    step = 1e-6
    slope = (psi(star + step) - psi(star - step)) / (2 * step)

    def phi(x):
        return x * (x * strength + 1) / (x**2 - 1)

    phi_slope = (phi(star + step) - phi(star - step)) / (2 * step)
    return psi(bar), psi(star), slope / (slope - phi_slope)


@pytest.mark.parametrize("ratio", [0.3, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 300.0])
def test_balanced_labels_have_the_closed_form(ratio):
    edge, outlier, overlap = closed_form(STRENGTH, ratio)
    found = label_weighted_spectrum(LabelLaw.balanced(STRENGTH), ratio=ratio)
    assert found.upper.edge == pytest.approx(edge, rel=1e-8)
    assert found.lower.edge == pytest.approx(-edge, rel=1e-8)
    assert found.eigenvalues[0] == pytest.approx(outlier, rel=1e-8)
    # The derivative of the closed form is taken by differences of 1e-6.
    assert found.squared_overlap[0] == pytest.approx(overlap, abs=1e-6)
    assert not found.lower.outlying[0]


def test_thresholds_of_the_square_sign_channel():
    law = LabelLaw.balanced(STRENGTH)
    assert law.weak_recovery_ratio[0] == pytest.approx(1.3605, abs=1e-3)
    assert emergence_ratio(law)[0] == pytest.approx(1.7100, abs=1e-3)
    assert balanced_emergence_ratio(STRENGTH) == pytest.approx(emergence_ratio(law)[0], rel=1e-9)


@given(st.floats(0.02, 1.0), st.booleans())
@settings(max_examples=25, deadline=None)
def test_closed_threshold_meets_the_condition_at_the_edge(strength, negative):
    ratio = balanced_emergence_ratio(-strength if negative else strength)
    bar = np.sqrt((2 + ratio + np.sqrt(ratio**2 + 8 * ratio)) / 2)
    assert ratio * strength**2 == pytest.approx(1 + 1 / bar**2, rel=1e-9)
    law = LabelLaw.balanced(-strength if negative else strength)
    assert not label_weighted_spectrum(law, ratio=ratio * 0.999).recovered[0]
    assert label_weighted_spectrum(law, ratio=ratio * 1.001).recovered[0]


def test_no_strength_never_emerges():
    assert np.isinf(balanced_emergence_ratio(0.0))
    assert np.isinf(emergence_ratio(LabelLaw.balanced(0.0))).all()
    assert np.isinf(LabelLaw.balanced(0.0).weak_recovery_ratio).all()


@pytest.mark.parametrize("strength", [0.2, 0.6, 0.9])
def test_best_map_emerges_at_weak_recovery(strength):
    best = LabelLaw.balanced(strength).optimal()
    assert emergence_ratio(best)[0] == pytest.approx(1 / strength**2, rel=1e-6)
    # Other maps of two values need at least as many samples.
    for low in (-3.0, -1.0, -0.4):
        other = LabelLaw(np.array([low, 1.0]), best.probabilities, best.second_moments)
        assert emergence_ratio(other)[0] >= 1 / strength**2


def three_values():
    weights = np.array([-1.0, 0.3, 2.0])
    chance = np.array([0.5, 0.3, 0.2])
    squares = np.array([[0.6, 1.5], [1.0, 0.9], [2.0, 0.0]])
    return LabelLaw(weights, chance, squares)


@pytest.mark.parametrize("ratio", [0.7, 4.0, 30.0])
def test_edge_is_the_minimum_of_psi(ratio):
    law = three_values()
    found = label_weighted_spectrum(law, ratio=ratio)
    for one, end in ((law, found.upper), (law.mirrored(), found.lower)):
        top = one.weights[-1]
        best = minimize_scalar(
            lambda t, one=one, top=top: bulk_function(one, top * (1 + np.exp(t)), ratio).item(),
            bounds=(-12, 12), method="bounded", options={"xatol": 1e-10},
        )  # fmt: skip
        assert abs(end.edge) == pytest.approx(best.fun, rel=1e-8)
        assert end.critical_parameter == pytest.approx(top * (1 + np.exp(best.x)), rel=1e-3)


def test_outliers_are_where_psi_and_phi_meet():
    law = three_values()
    found = label_weighted_spectrum(law, ratio=40.0)
    for one, end in ((law, found.upper), (law.mirrored(), found.lower)):
        for i in np.flatnonzero(end.outlying):
            at = end.parameters[i]
            psi, phi = bulk_function(one, at, 40.0), spike_function(one, at)[i]
            assert phi == pytest.approx(psi.item(), rel=1e-10)
            assert abs(end.eigenvalues[i]) == pytest.approx(psi.item(), rel=1e-10)
    assert found.upper.outlying.any()
    assert found.lower.outlying.any()


def test_agrees_with_the_resolvent_formula_of_draws():
    rng = np.random.default_rng(0)
    s = rng.standard_normal(20_000)
    T = np.tanh(s**2 - 1)
    T -= T.mean()
    law = LabelLaw.from_draws(T, s[:, None] ** 2)
    ours = label_weighted_spectrum(law, ratio=6.0)
    other = resolvent_outliers(labels=T, squared_features=s[:, None] ** 2, aspect_ratio=6.0)
    assert ours.upper.edge == pytest.approx(other.bulk_edges[1], rel=2e-3)
    assert ours.squared_overlap[0] == pytest.approx(other.sharp_squared_overlap[0], abs=2e-3)


def simulated(T_of, ratio, dimension, seeds):
    rows = []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((round(ratio * dimension), dimension))
        T = T_of(X[:, 0])
        values, vectors = np.linalg.eigh((X * T[:, None]).T @ X / len(X))
        rows.append([values[0], values[-1], vectors[0, 0] ** 2, vectors[0, -1] ** 2])
    return np.array(rows)


@pytest.mark.parametrize("ratio", [1.0, 1.5, 2.0, 4.0])
def test_rounded_transition_matches_simulated_means(ratio):
    rows = simulated(lambda s: np.where(s**2 > 0.454936, 1.0, -1.0), ratio, 150, 40)
    found = label_weighted_spectrum(LabelLaw.balanced(STRENGTH), ratio=ratio, dimension=150)
    error = rows.std(axis=0, ddof=1) / np.sqrt(len(rows))
    # Four standard errors, and 0.02 for the profile's own bias at d = 150.
    assert abs(rows[:, 3].mean() - found.squared_overlap[0]) < 4 * error[3] + 0.02
    # The extreme eigenvalue of a bulk is below the edge by half a fluctuation of d^(-2/3).
    assert abs(rows[:, 1].mean() - found.eigenvalues[0]) < 4 * error[1] + 0.03 * found.upper.edge


def test_raw_unbalanced_labels_shift_the_bulk():
    rows = simulated(lambda s: np.where(s**2 > 2.705543, 1.0, -1.0), 8.0, 150, 12)
    tail = 2 * 1.644854 * np.exp(-2.705543 / 2) / np.sqrt(2 * np.pi)
    high = (0.1 + tail) / 0.1
    law = LabelLaw(
        np.array([-1.0, 1.0]), np.array([0.9, 0.1]), np.array([[(1 - 0.1 * high) / 0.9], [high]])
    )
    found = label_weighted_spectrum(law, ratio=8.0, dimension=150)
    assert found.upper.outlying[0]
    error = rows.std(axis=0, ddof=1) / np.sqrt(len(rows))
    assert rows[:, 1].mean() == pytest.approx(found.eigenvalues[0], abs=4 * error[1] + 0.02)
    assert rows[:, 3].mean() == pytest.approx(found.squared_overlap[0], abs=4 * error[3] + 0.01)
    assert rows[:, 0].mean() == pytest.approx(found.lower.edge, abs=0.03 * abs(found.lower.edge))


def noisy_direction(share):
    """Weights whose size, not their mean, depends on the direction."""
    moments = np.array([[share], [(1 - 0.1 * share) / 0.9], [(1 - 0.1 * share) / 0.9], [share]])
    return LabelLaw(np.array([-3.0, -0.5, 0.5, 3.0]), np.array([0.05, 0.45, 0.45, 0.05]), moments)


def test_a_direction_of_noise_alone_comes_out_at_both_ends():
    law = noisy_direction(4.6)
    assert abs(law.strengths[0]) < 1e-12
    # E[T² s²] above twice E[T²] for the first law, below for the second.
    assert (law.probabilities * law.weights**2) @ law.second_moments[:, 0] > 2 * law.weight_power
    first = emergence_ratio(law)[0]
    near = [label_weighted_spectrum(law, ratio=first * step) for step in (0.98, 1.02)]
    assert [side.outlying[0] for one in near for side in (one.upper, one.lower)] == [
        False, False, True, True,
    ]  # fmt: skip
    far = label_weighted_spectrum(law, ratio=40.0)
    assert far.upper.squared_overlap[0] == pytest.approx(far.lower.squared_overlap[0])
    assert 0 < far.upper.squared_overlap[0] < 0.5
    assert np.isinf(emergence_ratio(noisy_direction(2.0))[0])


def test_both_outliers_of_a_direction_of_noise_are_there():
    rows = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((8 * 150, 150))
        # Random signs, with large weights along the direction.
        T = rng.choice([-1.0, 1.0], len(X)) * np.where(X[:, 0] ** 2 > 2.705543, 3.0, 0.5)
        values, vectors = np.linalg.eigh((X * T[:, None]).T @ X / len(X))
        rows.append([values[0], values[-1], vectors[0, 0] ** 2, vectors[0, -1] ** 2])
    tail = 2 * 1.644854 * np.exp(-2.705543 / 2) / np.sqrt(2 * np.pi)
    found = label_weighted_spectrum(noisy_direction((0.1 + tail) / 0.1), ratio=8.0)
    mean, error = np.mean(rows, axis=0), np.std(rows, axis=0, ddof=1) / np.sqrt(8)
    expected = [
        found.lower.eigenvalues[0], found.upper.eigenvalues[0],
        found.lower.squared_overlap[0], found.upper.squared_overlap[0],
    ]  # fmt: skip
    np.testing.assert_array_less(np.abs(mean - expected), 4 * error + 0.02)


def test_wholly_positive_weights_without_full_rank_end_at_zero():
    law = LabelLaw(np.array([1.0]), np.array([1.0]), np.array([[1.0]]))
    found = label_weighted_spectrum(law, ratio=0.5)
    assert found.lower.edge == pytest.approx(0, abs=1e-12)
    # Marchenko-Pastur: (1 + sqrt(d / n))².
    assert found.upper.edge == pytest.approx((1 + np.sqrt(2)) ** 2, rel=1e-8)


@given(st.floats(0.1, 10.0), st.floats(0.5, 50.0))
@settings(max_examples=20, deadline=None)
def test_scale_and_sign_of_the_labels(factor, ratio):
    law = three_values()
    scaled = LabelLaw(factor * law.weights, law.probabilities, law.second_moments)
    one, other = (label_weighted_spectrum(each, ratio=ratio) for each in (law, scaled))
    np.testing.assert_allclose(other.eigenvalues, factor * one.eigenvalues, rtol=1e-7, atol=1e-12)
    np.testing.assert_allclose(other.squared_overlap, one.squared_overlap, atol=1e-8)
    turned = label_weighted_spectrum(law.mirrored(), ratio=ratio)
    np.testing.assert_allclose(turned.lower.edge, -one.upper.edge, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(turned.squared_overlap, one.squared_overlap, atol=1e-12)


def test_law_of_draws_keeps_distinct_values_and_gathers_many():
    rng = np.random.default_rng(1)
    s = rng.standard_normal(30_000)
    few = LabelLaw.from_draws(np.sign(s), s[:, None] ** 2)
    assert few.weights.size == 2
    many = LabelLaw.from_draws(np.tanh(s), s[:, None] ** 2)
    assert many.weights.size <= 4_000
    assert many.strengths[0] == pytest.approx(np.mean(np.tanh(s) * (s**2 - 1)), abs=1e-6)
    assert many.probabilities.sum() == pytest.approx(1)


@pytest.mark.parametrize(
    "arguments",
    [
        (np.ones(2), np.ones(3), np.ones((2, 1))),
        (np.ones(2), np.ones(2), np.ones(2)),
        (np.ones(2), np.array([1.0, 0.0]), np.ones((2, 1))),
        (np.array([1.0, np.nan]), np.ones(2), np.ones((2, 1))),
        (np.ones(2), np.ones(2), -np.ones((2, 1))),
        (np.zeros(2), np.ones(2), np.ones((2, 1))),
    ],
)
def test_unusable_laws_are_refused(arguments):
    with pytest.raises(InvalidData):
        LabelLaw(*arguments)


def test_unusable_arguments_are_refused():
    law = LabelLaw.balanced(0.5)
    with pytest.raises(InvalidParameter, match="ratio"):
        label_weighted_spectrum(law, ratio=0.0)
    with pytest.raises(InvalidParameter, match="dimension"):
        label_weighted_spectrum(law, ratio=1.0, dimension=1)
    with pytest.raises(InvalidParameter, match="above 1"):
        bulk_function(law, 1.0, ratio=1.0)
    with pytest.raises(InvalidParameter, match="strength"):
        LabelLaw.balanced(1.5)
    with pytest.raises(InvalidParameter, match="strength"):
        balanced_emergence_ratio(-2.0)
    with pytest.raises(InvalidData, match="no variance"):
        LabelLaw.balanced(1.0).optimal()
    with pytest.raises(InvalidData, match="shape"):
        LabelLaw.from_draws(np.ones(3), np.ones(3))


def test_unbounded_weights_need_a_dimension():
    s = np.linspace(-12, 12, 4_001)
    chance = np.exp(-(s**2) / 2) + 1e-300
    law = LabelLaw(s**2 - 1, chance, s[:, None] ** 2)
    for refused in (
        lambda: label_weighted_spectrum(law, ratio=2.0),
        lambda: emergence_ratio(law),
    ):
        with pytest.raises(InvalidParameter, match="not bounded"):
            refused()
    small, large = (emergence_ratio(law, dimension=d)[0] for d in (100, 10_000))
    # A larger sample has a larger largest label, which moves the edge out.
    assert 0.5 < small < large
    bounded = LabelLaw(np.tanh(s**2 - 1), chance, s[:, None] ** 2)
    assert emergence_ratio(bounded)[0] == pytest.approx(
        emergence_ratio(bounded, dimension=1_000)[0], rel=1e-3
    )
