"""Decaying strengths with noise and a threshold: noise, threshold and decay are recovered."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from solvable.diagnose.bulk_fit import fit_symmetric
from solvable.diagnose.strengths import fit_decaying
from solvable.errors import InvalidData


def thresholded(rng, d, strengths, shift):
    Z = rng.standard_normal((d, d))
    M = (Z + Z.T) / np.sqrt(2 * d) + np.diag(strengths)
    return np.clip(np.linalg.eigvalsh(M) - shift, 0, None)


@pytest.mark.parametrize(("amplitude", "decay", "shift"), [(20, 1.0, 0.5), (30, 1.3, 0.8)])
def test_noise_threshold_and_decay_are_found(amplitude, decay, shift):
    rng, d, draws = np.random.default_rng(0), 250, 12
    strengths = amplitude * np.arange(1, d + 1) ** -decay
    inside, noises, shifts, plain_shifts = np.zeros(4), [], [], []
    for _ in range(draws):
        plain = fit_symmetric(thresholded(rng, d, strengths, shift))
        fit, found = fit_decaying(plain)
        noises.append(fit.noise)
        shifts.append(fit.shrinkage)
        plain_shifts.append(plain.shrinkage)
        low, high = fit.spikes.intervals()[0]
        inside += [
            abs(fit.noise - 1) < 1.96 * fit.noise_error,
            abs(fit.shrinkage - shift) < 1.96 * fit.shrinkage_error,
            found.low < decay < found.high,
            low < amplitude < high,
        ]
    # 95 % nominal: of 12 at least 9 with probability 0.998.
    assert (inside >= 9).all()
    # The plain fit subtracts the mean of the weak strengths from the threshold.
    weak = strengths[plain.n_outliers :].sum() / d
    assert np.mean(plain_shifts) == pytest.approx(shift - weak, abs=0.03)
    assert np.mean(shifts) == pytest.approx(shift, abs=0.3 * weak)
    # The error of neglecting higher cumulants is within the standard error of the fit.
    assert np.mean(noises) == pytest.approx(1.0, abs=fit.noise_error)


def test_without_weak_strengths_little_changes():
    rng, d = np.random.default_rng(1), 250
    strengths = np.zeros(d)
    strengths[:8] = 300 * np.arange(1, 9) ** -2.0
    plain = fit_symmetric(thresholded(rng, d, strengths, 0.5))
    fit, _ = fit_decaying(plain)
    # The continued power law, at most the cut each, bounds the correction.
    weak = np.minimum(300 * np.arange(9, d + 1) ** -2.0, 1.5 * plain.noise)
    assert plain.shrinkage <= fit.shrinkage <= plain.shrinkage + 1.3 * weak.sum() / d
    assert 0.95 * plain.noise < fit.noise <= plain.noise


def test_what_has_no_decay_is_refused():
    rng = np.random.default_rng(2)
    few = fit_symmetric(thresholded(rng, 200, np.r_[5.0, np.zeros(199)], 0.5))
    with pytest.raises(InvalidData, match="strengths"):
        fit_decaying(few)
    with pytest.raises(InvalidData, match="semidefinite"):
        fit_decaying(replace(few, semidefinite=False))
