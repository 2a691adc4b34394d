"""Bayes-optimal error: matrices, thresholds, order against the trained network, bad input."""

import numpy as np
import pytest

from solvable.errors import InvalidParameter
from solvable.models.quadratic.network.errors import optimal_regularisation
from solvable.models.quadratic.network.solutions import bayes_optimal
from solvable.spectra.measures import discrete, power_law
from solvable.spectra.product_measure import marchenko_pastur
from solvable.spectra.thresholds import bayes_perfect_recovery_threshold


def test_best_denoiser_of_matrices_has_this_error():
    # The oracle has the eigenvectors v of S + delta Z, and v^T S v for each.
    state = bayes_optimal(marchenko_pastur(0.5), sample_ratio=0.3, label_noise=0.25)
    rng = np.random.default_rng(0)
    d, errors = 300, []
    for _ in range(3):
        w = rng.standard_normal((d, d // 2))
        target = w @ w.T / np.sqrt(d * (d // 2))
        z = rng.standard_normal((d, d))
        _, vectors = np.linalg.eigh(target + state.effective_noise * (z + z.T) / np.sqrt(2 * d))
        kept = np.einsum("ij,ij->j", vectors, target @ vectors)
        errors.append((np.sum(target**2) - np.sum(kept**2)) / d)
    # The oracle fits one number for each of d directions, which lowers its error by O(1/d).
    assert np.mean(errors) == pytest.approx(state.matrix_error, rel=0.02)
    assert state.matrix_error + 0.125 == pytest.approx(0.6 * state.effective_noise**2, rel=1e-9)


@pytest.mark.parametrize(
    ("target", "ratio", "label_noise"),
    [
        (marchenko_pastur(0.2), 0.4, 0.5),
        (power_law(dimension=50, exponent=1.0), 0.1, 0.05),
        (power_law(dimension=50, exponent=1.0), 2.0, 0.5),
    ],
)
def test_below_every_trained_network(target, ratio, label_noise):
    best = bayes_optimal(target, sample_ratio=ratio, label_noise=label_noise)
    trained = optimal_regularisation(target, sample_ratio=ratio, label_noise=label_noise)
    assert best.matrix_error < trained.matrix_error
    noise = 2 * best.matrix_error + label_noise
    assert noise == pytest.approx(4 * ratio * best.effective_noise**2, rel=1e-8)


def test_perfect_from_the_number_of_parameters_on():
    for fraction in (0.3,):
        threshold = bayes_perfect_recovery_threshold(fraction)
        target = marchenko_pastur(fraction)
        errors = [
            bayes_optimal(target, sample_ratio=share * threshold, label_noise=0.0).matrix_error
            for share in (0.9, 0.98, 0.999)
        ]
        assert errors[0] > 2 * errors[1] > 8 * errors[2] > 0
        with pytest.raises(InvalidParameter, match="exactly"):
            bayes_optimal(target, sample_ratio=1.03 * threshold, label_noise=0.0)
    assert bayes_perfect_recovery_threshold(3.0) == pytest.approx(0.5)


def test_atoms_with_many_samples():
    # Two well separated atoms: the error is that of the free parameters, delta² (1 - sum w²).
    weights = np.array([0.3, 0.7])
    state = bayes_optimal(discrete(np.array([0.0, 5.0]), weights), sample_ratio=50, label_noise=0.5)
    free = 1 - np.sum(weights**2)
    assert state.matrix_error / state.effective_noise**2 == pytest.approx(free, rel=1e-3)


def test_nothing_to_learn():
    # A multiple of the identity has no free parameter to learn.
    state = bayes_optimal(np.array([2.0, 2.0]), sample_ratio=0.5, label_noise=0.4)
    assert state.matrix_error == pytest.approx(0, abs=1e-10)
    assert state.effective_noise == pytest.approx(np.sqrt(0.2))
    with pytest.raises(InvalidParameter, match="exactly"):
        bayes_optimal(np.array([2.0, 2.0]), sample_ratio=0.5, label_noise=0.0)


def test_bad_input():
    with pytest.raises(InvalidParameter, match="sample_ratio"):
        bayes_optimal(np.ones(2), sample_ratio=-1.0, label_noise=0.1)
    with pytest.raises(InvalidParameter, match="rank_fraction"):
        bayes_perfect_recovery_threshold(0.0)
