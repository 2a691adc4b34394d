"""Sample sizes of emergence from fitted eigenvalues: exact cases and simulated filters.

Equations 21 and 22 of docs/derivations/lofi.md.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvable.errors import InvalidData, InvalidParameter
from solvable.models.lofi.emergence import residual_dimension
from solvable.spectra.anisotropic import direction_profile
from solvable.spectra.label_law import LabelLaw
from solvable.theory import predicted_emergence


def test_residual_dimension_by_hand():
    found = residual_dimension(np.array([1.0, 4.0, 2.0, 0.0]))
    np.testing.assert_allclose(found[:3], [7 / 4, 3 / 2, 1])
    assert np.isnan(found[3])


@given(st.integers(2, 200))
@settings(max_examples=20, deadline=None)
def test_residual_dimension_of_an_isotropic_kernel_counts_what_is_left(size):
    np.testing.assert_allclose(residual_dimension(np.ones(size)), np.arange(size, 0, -1))


@pytest.mark.parametrize("strength", [0.15, 0.3, 0.6])
def test_isotropic_spike_is_inverted_exactly(strength):
    # The outlier of a semicircle of variance d / n: z = mu + d / (n mu); threshold mu² = d / n.
    n, d = 40_000, 400
    value = strength + d / (n * strength)
    found = predicted_emergence(
        eigenvalues=np.array([-value]), variances=np.ones(1), covariance_spectrum=np.ones(d),
        n_samples=n,
    )  # fmt: skip
    assert found.strengths[0] == pytest.approx(-strength, rel=1e-8)
    assert found.emergence_samples[0] == pytest.approx(d / strength**2, rel=1e-8)
    assert found.noise_levels[0] == pytest.approx(2 * np.sqrt(d / n), rel=1e-6)
    assert found.plain_emergence_samples[0] == pytest.approx(d / value**2, rel=1e-12)
    assert found.residual_dimensions[0] == d


def test_an_eigenvalue_inside_the_noise_holds_no_estimate():
    found = predicted_emergence(
        eigenvalues=np.array([0.19]), variances=np.ones(1), covariance_spectrum=np.ones(100),
        n_samples=10_000,
    )  # fmt: skip
    assert np.isnan(found.strengths[0])
    assert np.isnan(found.emergence_samples[0])
    assert np.isfinite(found.plain_emergence_samples[0])


def test_estimates_from_simulated_filters_are_right_on_the_average():
    # y = sign(s² - median) has mu = 0.857 s_e, hence n_c = trace / (0.857² s_e) for a weak one.
    d, n, estimates = 200, 1_600, []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((n, d))
        y = np.where(X[:, 0] ** 2 > 0.454936, 1.0, -1.0)
        values = np.linalg.eigvalsh((X * y[:, None]).T @ X / n)
        found = predicted_emergence(
            eigenvalues=values[-1:], variances=np.ones(1), covariance_spectrum=np.ones(d),
            n_samples=n,
        )  # fmt: skip
        estimates.append([found.emergence_samples[0], found.plain_emergence_samples[0]])
    mean, error = np.mean(estimates, axis=0), np.std(estimates, axis=0, ddof=1) / np.sqrt(12)
    # Tolerance 15 %: the theory omits terms of order sqrt(d / n).
    assert mean[0] == pytest.approx(d / 0.857348**2, abs=4 * error[0] + 0.15 * d / 0.735)
    # The estimate with the eigenvalue itself as strength is biased low.
    assert mean[1] < 0.85 * d / 0.735


def spectrum_with_strong(count, strong, weak):
    return np.concatenate([np.full(count, strong), np.ones(weak)])


def test_strong_directions_delay_and_their_removal_does_not():
    kept = {"eigenvalues": np.array([0.9]), "variances": np.ones(1), "n_samples": 60_000}
    with_strong = predicted_emergence(covariance_spectrum=spectrum_with_strong(20, 10, 300), **kept)
    without = predicted_emergence(covariance_spectrum=np.ones(300), **kept)
    assert with_strong.emergence_samples[0] > 5 * without.emergence_samples[0]
    # After removal of the twenty strong directions the covariance is isotropic.
    after = predicted_emergence(
        eigenvalues=np.append(np.full(20, 1.5), 0.9),
        variances=np.append(np.full(20, 10.0), 1.0),
        covariance_spectrum=spectrum_with_strong(20, 10, 300),
        n_samples=60_000,
    )
    assert after.emergence_samples[-1] == pytest.approx(without.emergence_samples[0], rel=1e-9)
    assert after.residual_traces[-1] == pytest.approx(300)


def test_emergence_out_of_strong_noise_is_where_simulations_have_it():
    # A feature of variance 4, ten directions of variance 8, and 150 of variance 1
    spectrum = np.concatenate([np.full(10, 8.0), np.full(1, 4.0), np.ones(150)])
    mu = 4 * 0.857348
    law = predicted_emergence(
        eigenvalues=np.array([mu * 1.0001]), variances=np.array([4.0]),
        covariance_spectrum=spectrum, n_samples=1e9,
    )  # fmt: skip
    predicted = law.emergence_samples[0]

    def ahead(n):
        """Share of samples whose leading eigenvector is the feature."""
        wins = []
        for seed in range(16):
            rng = np.random.default_rng(seed)
            s = rng.standard_normal((int(n), spectrum.size))
            y = np.where(s[:, 10] ** 2 > 0.454936, 1.0, -1.0)
            X = s * np.sqrt(spectrum)
            values, vectors = np.linalg.eigh((X * y[:, None]).T @ X / n)
            leading = vectors[:, np.argmax(np.abs(values))]
            wins.append(leading[10] ** 2 > 0.5)
        return np.mean(wins)

    assert ahead(predicted / 3) < 0.5 < ahead(3 * predicted)


def test_emergence_is_the_onset_of_the_outlier_of_the_exact_spectrum():
    # Twenty directions of variance 10 among 320: their noise requires 24 times the samples that the
    # feature's own noise requires.
    others = spectrum_with_strong(20, 10.0, 299)
    found = predicted_emergence(
        eigenvalues=np.array([0.857348]), variances=np.ones(1),
        covariance_spectrum=np.append(others, 1.0), n_samples=1e9,
    )  # fmt: skip
    onset = found.emergence_samples[0]
    assert onset == pytest.approx(24 * found.plain_emergence_samples[0], rel=0.02)
    law = LabelLaw.balanced(0.857348)
    below, above = (
        direction_profile(law, variances=others, direction_variance=1, n_samples=factor * onset)
        for factor in (0.9, 1.1)
    )
    assert not below.outliers
    assert len(above.outliers) == 1
    assert above.outliers[0].rank < 0.5


def test_a_strong_irrelevant_direction_is_within_its_own_noise():
    # One direction of variance 100, others of variance 1: its noise is an irrelevant outlier.
    n, values = 4_000, []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((n, 101))
        X[:, 0] *= 10
        y = rng.choice([-1.0, 1.0], n)
        eigenvalues = np.linalg.eigvalsh((X * y[:, None]).T @ X / n)
        values.append(np.abs(eigenvalues).max())
    found = predicted_emergence(
        eigenvalues=np.array([1.0]), variances=np.array([100.0]),
        covariance_spectrum=spectrum_with_strong(1, 100.0, 100), n_samples=n,
    )  # fmt: skip
    # Compare with the root mean square; the noise level of one row is at most 100 sqrt(2 / n).
    assert found.noise_levels[0] == pytest.approx(np.sqrt(np.mean(np.square(values))), rel=0.35)
    assert np.isnan(found.strengths[0])


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("variances", np.zeros(2), InvalidData),
        ("variances", np.ones(3), InvalidData),
        ("eigenvalues", np.array([1.0, np.nan]), InvalidData),
        ("covariance_spectrum", np.array([1.0, -1.0]), InvalidData),
        ("covariance_spectrum", np.zeros(3), InvalidData),
        ("n_samples", 0, InvalidParameter),
        ("label_power", -1.0, InvalidParameter),
    ],
)
def test_unusable_arguments_are_refused(name, value, error):
    arguments = {
        "eigenvalues": np.array([1.0, 0.5]), "variances": np.ones(2), "covariance_spectrum": np.ones(30),
        "n_samples": 100.0, "label_power": 1.0,
    }  # fmt: skip
    with pytest.raises(error):
        predicted_emergence(**(arguments | {name: value}))
