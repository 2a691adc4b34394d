"""Parts of the error: spikes in drawn matrices, and the exact error of a law."""

import numpy as np
import pytest

from solvable.spectra.error_parts import error_parts, outlier_error
from solvable.spectra.measures import power_law


@pytest.mark.parametrize("scale", [0.7, 1.0, 1.3])
def test_a_scaled_spike_in_matrices(scale):
    rng = np.random.default_rng(4)
    d, spike, threshold, errors = 200, 2.0, 2.1, []
    for _ in range(60):
        z = rng.standard_normal((d, d))
        matrix = (z + z.T) / np.sqrt(2 * d)
        matrix[0, 0] += spike
        values, vectors = np.linalg.eigh(matrix)
        learned = scale * np.maximum(values - threshold, 0)
        error = (vectors * learned) @ vectors.T
        error[0, 0] -= spike
        errors.append(np.sum(error**2))
    expected = float(outlier_error(spike, effective_noise=1.0, threshold=threshold, scale=scale))
    error = 3 * np.std(errors, ddof=1) / np.sqrt(len(errors))
    assert np.mean(errors) == pytest.approx(expected, abs=error + 2 / d)


def test_parts_add_up_and_mismatch_vanishes_at_scale_one():
    target = power_law(dimension=300, exponent=1.0)
    numbers = {"effective_noise": 0.5, "threshold": 0.9}
    plain, scaled = (error_parts(target, **numbers, scale=scale) for scale in (1.0, 1.2))
    assert plain.mismatch == pytest.approx(0.0, abs=1e-12)
    assert scaled.approximation == pytest.approx(plain.approximation)
    assert scaled.overfitting == pytest.approx(1.44 * plain.overfitting)
    assert plain.total == pytest.approx(
        plain.overfitting + plain.underfitting + plain.approximation
    )
    # features that are learned at a scale of 1.2 shrink less
    assert scaled.mismatch < 0
