"""Errors by feature and the best regularisation: matrices, searches, limits."""

import numpy as np
import pytest

from solvable.errors import InvalidParameter
from solvable.models.quadratic.network.errors import (
    decompose_error,
    optimal_regularisation,
)
from solvable.models.quadratic.network.theory import solve_quadratic
from solvable.spectra.denoiser import feature_errors
from solvable.spectra.error_parts import outlier_error
from solvable.spectra.functionals import tail_rule
from solvable.spectra.measures import power_law
from solvable.spectra.product_measure import marchenko_pastur


def test_spike_in_matrices():
    # One spike of strength 2 in noise 1, cut above the bulk: the spike causes the whole error.
    rng = np.random.default_rng(2)
    d, threshold, errors = 250, 2.1, []
    for _ in range(80):
        z = rng.standard_normal((d, d))
        matrix = (z + z.T) / np.sqrt(2 * d)
        matrix[0, 0] += 2.0
        values, vectors = np.linalg.eigh(matrix)
        estimate = (vectors[:, -1:] * max(values[-1] - threshold, 0)) @ vectors[:, -1:].T
        estimate[0, 0] -= 2.0
        errors.append(np.sum(estimate**2))
    expected = float(outlier_error(2.0, effective_noise=1.0, threshold=threshold))
    assert expected == pytest.approx((0.5 - 2.1) ** 2 + 2 * 0.5 * (2.5 - 2.1))
    error = np.std(errors, ddof=1) / np.sqrt(len(errors))
    assert np.mean(errors) == pytest.approx(expected, abs=3 * error + 2 / d)
    # Without the factor 2 the formula is wrong by many standard errors.
    assert abs(np.mean(errors) - (expected - 0.5 * 0.4)) > 5 * error


def test_spikes_beyond_the_threshold_are_lost_whole():
    np.testing.assert_allclose(
        outlier_error([1.5, 3.0], effective_noise=1.0, threshold=4.0), [2.25, 9]
    )


def test_parts_when_the_bulk_is_cut():
    # Few spikes and a threshold above the bulk: no overfitting, and the sum is nearly exact.
    spikes = np.array([3.0, 2.0, 1.5])
    target = np.concatenate([np.zeros(997), spikes * np.sqrt(1000 / np.sum(spikes**2))])
    state = solve_quadratic(target, sample_ratio=0.02, label_noise=0.5, regularisation=0.5)
    parts = decompose_error(state)
    assert state.threshold > 2 * state.effective_noise
    assert parts.overfitting == pytest.approx(0, abs=1e-12)
    assert parts.features == pytest.approx(0.003)
    assert parts.underfitting == 0
    assert parts.total == pytest.approx(state.matrix_error, rel=0.01)


def test_errors_of_chosen_features():
    target = power_law(dimension=30, exponent=1.0)
    state = solve_quadratic(target, sample_ratio=1.0, label_noise=0.5, regularisation=0.5)
    every = feature_errors(state.law, state.threshold)
    np.testing.assert_allclose(
        feature_errors(state.law, state.threshold, target.nodes[[3, 28]]), every[[3, 28]]
    )
    assert target.node_weights @ every == pytest.approx(state.matrix_error, rel=1e-6)


@pytest.mark.parametrize(
    ("target", "ratio", "label_noise"),
    [
        (marchenko_pastur(0.2), 0.3, 0.5),
        (power_law(dimension=60, exponent=1.0), 500 / 3600, 0.5),
    ],
)
def test_best_regularisation_has_the_mean_shrinkage_of_the_denoiser(target, ratio, label_noise):
    best = optimal_regularisation(target, sample_ratio=ratio, label_noise=label_noise)
    # int_b (b - 2 delta² h(x)) mu(dx) = 0  (quadratic 18)
    _, points, weights = tail_rule(best.law, np.array([best.threshold]))
    shrinkage = float(weights @ (2 * (points.x - points.u))) / float(weights.sum())
    assert shrinkage == pytest.approx(best.threshold, rel=1e-3)
    for factor in (0.97, 1.03):
        other = solve_quadratic(
            target,
            sample_ratio=ratio,
            label_noise=label_noise,
            regularisation=factor * best.regularisation,
        )
        assert other.matrix_error > best.matrix_error


def test_no_regularisation_can_be_best():
    best = optimal_regularisation(marchenko_pastur(1.5), sample_ratio=0.3, label_noise=0.1)
    assert best.regularisation == 0
    a_little = solve_quadratic(
        marchenko_pastur(1.5), sample_ratio=0.3, label_noise=0.1, regularisation=0.01
    )
    assert a_little.matrix_error > best.matrix_error


def test_best_regularisation_needs_noise_and_target():
    for target, label_noise in ((np.ones(2), 0.0), (np.zeros(2), 0.5)):
        with pytest.raises(InvalidParameter, match="above 0"):
            optimal_regularisation(target, sample_ratio=1.0, label_noise=label_noise)
