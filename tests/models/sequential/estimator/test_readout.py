"""Bounded readout: accuracy, bounds, and fits of pure noise."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from solvable.arrays import random_stream
from solvable.models.sequential.estimator.readout import fit_spline_readout


def test_learns_a_saturating_function_from_noisy_labels():
    rng = random_stream("readout")
    s = rng.standard_normal(20_000)
    readout = fit_spline_readout(s, np.tanh(2 * s) + 0.3 * rng.standard_normal(s.size))
    fresh = rng.standard_normal(5000)
    # Excess variance of about 12 parameters: 0.09 * 12 / 20000 = 5e-5.
    assert np.mean((readout(fresh) - np.tanh(2 * fresh)) ** 2) < 3e-4


def test_straight_line_costs_nothing():
    rng = random_stream("line")
    s = rng.standard_t(4, 4000)
    labels = 2 * s - 1 + rng.standard_normal(s.size)
    readout = fit_spline_readout(s, labels)
    slope, offset = np.polyfit(s, labels, 1)
    inside = np.linspace(*np.quantile(s, [0.001, 0.999]), 50)
    # Cross-validation may keep a few degrees of freedom. The standard error is about
    # sqrt(7 / 4000) = 0.04 in the middle and several times larger at the ends.
    assert readout.degrees_of_freedom < 6
    np.testing.assert_allclose(readout(inside), slope * inside + offset, atol=0.35)
    middle = np.linspace(-2, 2, 20)
    np.testing.assert_allclose(readout(middle), slope * middle + offset, atol=0.1)


def test_exact_line_is_reproduced():
    s = np.linspace(-1, 1, 100)
    readout = fit_spline_readout(s, 3 * s + 1e6)
    np.testing.assert_allclose(readout(s), 3 * s + 1e6, rtol=1e-9)
    assert readout.degrees_of_freedom == pytest.approx(2, abs=0.01)


@given(st.floats(min_value=1.0, max_value=1e12))
def test_constant_outside_the_training_range(far):
    s = np.linspace(-2, 3, 300)
    readout = fit_spline_readout(s, s**3)
    low, high = readout(np.array([-2.0, 3.0]))
    assert readout(np.array([-2.0 - far, 3.0 + far])).tolist() == [low, high]


@given(st.floats(0.01, 100), st.floats(-50, 50), st.floats(0.01, 100))
def test_units_of_index_and_labels_do_not_matter(scale, shift, label_scale):
    rng = random_stream("units")
    s = rng.standard_normal(500)
    labels = np.cos(s) + 0.1 * rng.standard_normal(500)
    one = fit_spline_readout(s, labels)
    two = fit_spline_readout(scale * s + shift, label_scale * labels)
    probe = np.linspace(-3, 3, 30)
    np.testing.assert_allclose(
        two(scale * probe + shift), label_scale * one(probe), atol=1e-4 * label_scale
    )


@pytest.mark.parametrize(
    "index", [np.zeros(100), np.full(100, 1e9), np.arange(10.0)], ids=["zero", "constant", "few"]
)
def test_nothing_to_fit(index):
    assert fit_spline_readout(index, np.arange(float(index.size))) is None


def test_index_of_few_values():
    """Ties make quantiles coincide."""
    rng = random_stream("ties")
    s = rng.integers(0, 3, 600).astype(float)
    labels = np.array([1.0, -1.0, 4.0])[s.astype(int)] + 0.01 * rng.standard_normal(600)
    readout = fit_spline_readout(s, labels)
    np.testing.assert_allclose(readout(np.array([0.0, 1.0, 2.0])), [1, -1, 4], atol=0.02)


def test_constant_labels():
    readout = fit_spline_readout(np.linspace(0, 1, 50), np.full(50, 7.0))
    np.testing.assert_allclose(readout(np.array([-1.0, 0.3, 2.0])), 7.0)
