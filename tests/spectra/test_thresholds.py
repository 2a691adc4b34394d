"""Interpolation and recovery thresholds against the saddle point on both sides of them."""

import numpy as np
import pytest

from solvable.errors import InvalidParameter
from solvable.models.quadratic.network.theory import quadratic_curve, solve_quadratic
from solvable.spectra.measures import discrete
from solvable.spectra.product_measure import marchenko_pastur
from solvable.spectra.thresholds import (
    flow_recovery_threshold,
    interpolation_threshold,
    perfect_recovery_threshold,
)


@pytest.mark.parametrize(
    ("target", "label_noise"),
    [
        (marchenko_pastur(0.2), 0.5),
        # A search from the wrong side finds a second root of negative error here.
        (marchenko_pastur(0.5), 0.1),
        (np.array([0.0, 0.0, 1.0, 2.0]), 0.3),
    ],
)
def test_labels_are_fitted_exactly_below_and_not_above(target, label_noise):
    peak = interpolation_threshold(target, label_noise=label_noise)
    assert peak.matrix_error > 0
    assert 0.25 < peak.sample_ratio < 0.5
    near = peak.sample_ratio * np.array([0.9, 1 - 1e-10, 1 + 1e-10, 1.1])
    states = quadratic_curve(
        target, sample_ratios=near, label_noise=label_noise, regularisation=0.0
    )
    assert states[0].threshold > states[1].threshold > 0
    assert states[2].threshold == states[3].threshold == 0
    assert states[0].train_error < 1e-12 < states[3].train_error
    assert states[0].degrees_of_freedom == pytest.approx(near[0], rel=1e-9)
    # The peak is a cusp: the error is the square root of the distance in the sample ratio.
    for state in states[1:3]:
        assert state.matrix_error == pytest.approx(peak.matrix_error, rel=1e-3)
        assert state.effective_noise == pytest.approx(peak.effective_noise, rel=1e-3)
    assert states[0].matrix_error < peak.matrix_error > states[3].matrix_error


def test_regularisation_goes_to_zero_continuously():
    for ratio in (0.1, 0.35):
        limit, near = (
            solve_quadratic(
                marchenko_pastur(0.2), sample_ratio=ratio, label_noise=0.5, regularisation=penalty
            )
            for penalty in (0.0, 1e-7)
        )
        assert near.matrix_error == pytest.approx(limit.matrix_error, rel=1e-4)
        assert near.trace == pytest.approx(limit.trace, rel=1e-4)
        assert near.objective == pytest.approx(limit.objective + 1e-7 * limit.trace, abs=1e-10)


@pytest.mark.parametrize("fraction", [0.05, 0.3, 0.8])
def test_recovery_depends_on_the_rank_alone(fraction):
    threshold = perfect_recovery_threshold(fraction)
    for strengths in ((1.0,), (0.5, 1.0, 3.0)):
        weights = np.full(len(strengths), fraction / len(strengths))
        target = discrete(np.append(0, strengths), np.append(1 - fraction, weights))
        below, above = (
            solve_quadratic(
                target, sample_ratio=share * threshold, label_noise=0.0, regularisation=1e-5
            ).matrix_error
            for share in (0.98, 1.02)
        )
        assert below > 1e3 * above > 0


def test_recovery_in_limits():
    assert perfect_recovery_threshold(1.0) == pytest.approx(0.5)
    assert perfect_recovery_threshold(1 - 1e-6) == pytest.approx(0.5, abs=1e-6)
    ratios = [perfect_recovery_threshold(k) / k for k in (1e-2, 1e-4, 1e-6)]
    assert ratios[0] < ratios[1] < ratios[2] < 3
    assert ratios[2] == pytest.approx(3, abs=0.03)


def test_without_noise_or_regularisation_nothing_is_left_beyond_recovery():
    target = marchenko_pastur(0.2)
    below = solve_quadratic(target, sample_ratio=0.25, label_noise=0.0, regularisation=0.0)
    assert below.matrix_error > 0
    assert below.train_error < 1e-12
    with pytest.raises(InvalidParameter, match="recovered"):
        solve_quadratic(target, sample_ratio=0.26, label_noise=0.0, regularisation=0.0)
    with pytest.raises(InvalidParameter, match="recovered"):
        solve_quadratic(np.zeros(2), sample_ratio=0.3, label_noise=0.0, regularisation=0.1)


def test_plain_gradient_flow():
    # At full width the cut is 0: half of the semicircle, of second moment 1/2.
    for fraction in (0.1, 0.5):
        full = fraction - fraction**2 / 2 + (1 - fraction) ** 2 / 4
        assert flow_recovery_threshold(fraction, 1.0) == pytest.approx(full, abs=1e-12)
        assert flow_recovery_threshold(fraction, 7.0) == pytest.approx(full, abs=1e-12)
        # At the width of the target: its number of free parameters.
        own = fraction - fraction**2 / 2
        assert flow_recovery_threshold(fraction, fraction) == pytest.approx(own, abs=1e-12)
        widths = np.linspace(fraction, 1, 9)
        found = [flow_recovery_threshold(fraction, width) for width in widths]
        assert (np.diff(found) >= -1e-12).all()
    assert flow_recovery_threshold(1.0, 1.0) == pytest.approx(0.5)


def test_bad_input():
    with pytest.raises(InvalidParameter, match="label_noise is 0"):
        interpolation_threshold(np.ones(2), label_noise=0.0)
    with pytest.raises(InvalidParameter, match="is zero"):
        interpolation_threshold(np.zeros(2), label_noise=0.5)
    for fraction in (0.0, 1.2, np.nan):
        with pytest.raises(InvalidParameter, match="rank_fraction"):
            perfect_recovery_threshold(fraction)
    with pytest.raises(InvalidParameter, match="width_ratio"):
        flow_recovery_threshold(0.5, 0.4)
