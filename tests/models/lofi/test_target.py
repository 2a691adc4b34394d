"""Gaussian channels: samples against their laws, and invalid input."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvable.errors import InvalidData, InvalidParameter
from solvable.models.lofi.subspace_channel import SubspaceChannel
from solvable.models.lofi.target import CHANNELS, GaussianChannel, label_weights

DRAWS = 200_000


def agrees(found, expected, errors, slack=0.0):
    np.testing.assert_array_less(np.abs(np.asarray(found) - expected), 5 * errors + slack + 1e-12)


def test_strengths_of_named_channels_have_closed_forms():
    m, tail = 0.454936423119572, 2.705543454095404
    density = np.exp(-m / 2) / np.sqrt(2 * np.pi)
    assert GaussianChannel(10).law().strengths[0] == pytest.approx(4 * np.sqrt(m) * density)
    high = np.exp(-tail / 2) / np.sqrt(2 * np.pi)
    unbalanced = GaussianChannel(10, "tail-sign").law()
    assert unbalanced.strengths[0] == pytest.approx(4 * np.sqrt(tail) * high)
    assert unbalanced.mean_weight == pytest.approx(-0.8)
    # E (s² - 1)² = 2; E |s| (s² - 1) = sqrt(2 / pi); E cos(2 s) (s² - 1) = -4 exp(-2).
    expected = {"square": 2.0, "absolute": np.sqrt(2 / np.pi), "cosine": -4 * np.exp(-2), "sign": 0}
    for name, value in expected.items():
        strength = GaussianChannel(10, name).law().strengths[0]
        assert strength == pytest.approx(value, abs=2e-3 * max(1, abs(value))), name


@pytest.mark.parametrize("channel", sorted(CHANNELS))
@pytest.mark.parametrize("noise", [0.0, 0.3])
@pytest.mark.parametrize("label_map", ["raw", "tanh"])
def test_law_agrees_with_samples(channel, noise, label_map):
    target = GaussianChannel(3, channel, noise, seed=4)
    X, y = target.sample(DRAWS, 1)
    T, s2 = label_weights(y, label_map), (X @ target.direction) ** 2
    law = target.law(label_map)
    assert law.probabilities.sum() == pytest.approx(1)
    for measured, expected in (
        (T, law.mean_weight),
        (T**2, law.weight_power),
        (T * (s2 - 1), law.strengths[0]),
        (T**2 * s2, (law.probabilities * law.weights**2) @ law.second_moments[:, 0]),
    ):
        # Merging the weights of a continuous law changes moments by at most a few parts in a thousand.
        slack = 3e-3 * max(1.0, abs(expected))
        agrees(measured.mean(), expected, measured.std() / np.sqrt(DRAWS), slack)


def test_flips_scale_the_strength():
    clean, noisy = (GaussianChannel(5, noise=p).law().strengths[0] for p in (0.0, 0.2))
    assert noisy == pytest.approx(0.6 * clean)
    assert abs(GaussianChannel(5, noise=0.5).law().strengths[0]) < 1e-12


def test_a_callable_channel_is_the_named_one():
    law = GaussianChannel(5, lambda s: np.cos(2 * s)).law()
    np.testing.assert_allclose(law.strengths, GaussianChannel(5, "cosine").law().strengths)


def test_strong_directions_are_irrelevant():
    target = GaussianChannel(30, nuisance=5, nuisance_variance=9.0, seed=2)
    assert not target.direction[:5].any()
    assert np.linalg.norm(target.direction) == pytest.approx(1)
    X, y = target.sample(50_000, 0)
    assert X[:, :5].var() == pytest.approx(9, rel=0.03)
    assert X[:, 5:].var() == pytest.approx(1, rel=0.03)
    moments = (y[:, None] * X[:, :5] ** 2).mean(axis=0)
    assert np.abs(moments).max() < 5 * 9 * np.sqrt(3 / 50_000)
    assert target.variances.sum() == 5 * 9 + 25


@given(st.integers(0, 2**31), st.integers(1, 50))
@settings(max_examples=10, deadline=None)
def test_samples_depend_on_their_stream_alone(seed, n):
    for target in (GaussianChannel(9, seed=3), SubspaceChannel(9, seed=3)):
        first, again = target.sample(n, seed), target.sample(n, seed)
        np.testing.assert_array_equal(first[0], again[0])
        np.testing.assert_array_equal(first[1], again[1])
        assert set(np.unique(first[1])) <= {-1.0, 1.0}


@pytest.mark.parametrize("coefficients", [(1.0, -1.0, 0.75, -0.75), (1.0, 2.0, -0.3)])
def test_subspace_law_agrees_with_samples(coefficients):
    target = SubspaceChannel(6, coefficients, seed=1)
    np.testing.assert_allclose(
        target.directions.T @ target.directions, np.eye(len(coefficients)), atol=1e-12
    )
    X, y = target.sample(DRAWS, 0)
    s2 = (X @ target.directions) ** 2
    law = target.law()
    draws = y[:, None] * (s2 - 1)
    agrees(draws.mean(axis=0), law.strengths, draws.std(axis=0) / np.sqrt(DRAWS))
    agrees(y.mean(), law.mean_weight, y.std() / np.sqrt(DRAWS))
    # Conditional second moments average to one.
    np.testing.assert_allclose(law.probabilities @ law.second_moments, 1, atol=1e-7)


def test_default_form_has_the_eigenvalues_of_the_quadratic_target():
    # x1² - x2² + 1.5 x3 x4 in the rotated pair (x3 +- x4) / sqrt 2.
    rng = np.random.default_rng(0)
    x = rng.standard_normal((1_000, 4))
    rotated = np.column_stack([x[:, 0], x[:, 1], x[:, 2] + x[:, 3], x[:, 2] - x[:, 3]])
    rotated[:, 2:] /= np.sqrt(2)
    form = rotated**2 @ SubspaceChannel(60).coefficients
    np.testing.assert_allclose(form, x[:, 0] ** 2 - x[:, 1] ** 2 + 1.5 * x[:, 2] * x[:, 3])


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"dimension": 1}, "dimension"),
        ({"dimension": 5, "nuisance": 5}, "below the dimension"),
        ({"dimension": 5, "channel": "cube"}, "cube"),
        ({"dimension": 5, "noise": 0.7}, "0 to 0.5"),
        ({"dimension": 5, "channel": "square", "noise": np.inf}, "finite"),
        ({"dimension": 5, "nuisance_variance": 0.0}, "above 0"),
    ],
)
def test_unusable_channels_are_refused(values, words):
    with pytest.raises(InvalidParameter, match=words):
        GaussianChannel(**values)


@pytest.mark.parametrize("coefficients", [(1.0, 2.0), (1.0, 0.0, -1.0), (1.0, np.nan, -1.0), ()])
def test_unusable_forms_are_refused(coefficients):
    with pytest.raises(InvalidParameter, match="each sign"):
        SubspaceChannel(10, coefficients)


def test_a_form_that_does_not_fit_is_refused():
    with pytest.raises(InvalidParameter, match="fewer than the dimension"):
        SubspaceChannel(3, (1.0, -1.0, 1.0))


def test_unusable_maps_and_functions_are_refused():
    with pytest.raises(InvalidParameter, match="label_map"):
        GaussianChannel(5).law("cube")
    with pytest.raises(InvalidParameter, match="elementwise"):
        GaussianChannel(5, lambda s: s[:2]).law()
    with pytest.raises(InvalidParameter, match="elementwise"):
        GaussianChannel(5, lambda s: np.full(s.shape, np.nan)).sample(3, 0)
    with pytest.raises(InvalidData, match="labels equal"):
        GaussianChannel(5, np.zeros_like).law()
    with pytest.raises(InvalidParameter, match="n is 0"):
        GaussianChannel(5).sample(0, 0)
