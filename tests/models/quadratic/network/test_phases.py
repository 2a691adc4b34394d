from functools import lru_cache

import numpy as np
import pytest

from solvable.errors import InvalidParameter, NotConverged
from solvable.models.quadratic.network.errors import optimal_regularisation
from solvable.models.quadratic.network.phase_laws import (
    QuadraticPhase,
    full_rank_risk,
    phase_exponents,
    truncated_constant,
    truncated_risk,
)
from solvable.models.quadratic.network.phases import (
    PowerLawPhases,
    interpolation_peak_risk,
    noise_only,
    quadratic_phase,
)
from solvable.models.quadratic.network.theory import solve_quadratic
from solvable.spectra.free_convolution import SpectralLaw
from solvable.spectra.functionals import truncated_moments
from solvable.spectra.measures import power_law
from solvable.spectra.semicircle_tail import semicircle_tail

NOISE = 0.5


@lru_cache(maxsize=32)
def spectrum(dimension, exponent, heads, ratio):
    return power_law(dimension=dimension, exponent=exponent, heads=heads, ratio=ratio)


def exact(dimension, exponent, samples, penalty, noise=NOISE, heads=None, ratio=1.1):
    target = spectrum(dimension, exponent, heads, ratio)
    return solve_quadratic(
        target,
        sample_ratio=samples / dimension,
        label_noise=noise,
        regularisation=penalty,
    ).matrix_error


@pytest.mark.parametrize("a", [0.0, 0.3, 1.0, 1.9])
def test_semicircle_tail_is_that_of_the_spectral_law(a):
    moments = truncated_moments(SpectralLaw([0.0], noise=1.0), a)
    tail = semicircle_tail(a)
    found = (tail.mass, tail.first, tail.second, tail.slope)
    expected = (moments.mass[0], moments.first[0], moments.second[0], moments.slope[0])
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-13)


def test_semicircle_tail_near_its_edge():
    gap = 1e-8
    tail = semicircle_tail(2 - gap)
    assert tail.second == pytest.approx(16 / (105 * np.pi) * gap**3.5, rel=1e-6)
    assert tail.slope == pytest.approx(4 / (15 * np.pi) * gap**2.5, rel=1e-6)
    assert semicircle_tail(2.5).second == 0


@pytest.mark.parametrize("ratio", [0.02, 0.25, 1.0])
@pytest.mark.parametrize("penalty", [0.01, 0.1, 0.35])
def test_noise_alone_is_the_exact_solution_without_a_target(ratio, penalty):
    state = solve_quadratic(
        np.zeros(1), sample_ratio=ratio, label_noise=NOISE, regularisation=penalty
    )
    found = noise_only(sample_ratio=ratio, label_noise=NOISE, regularisation=penalty)
    assert found.matrix_error == pytest.approx(state.matrix_error, rel=1e-7, abs=1e-12)
    assert found.effective_noise == pytest.approx(state.effective_noise, rel=1e-7)
    assert found.threshold == pytest.approx(state.threshold, rel=1e-6)


@pytest.mark.parametrize("ratio", [0.1, 0.25, 0.6, 1e3])
def test_hardly_any_regularisation(ratio):
    found = noise_only(sample_ratio=ratio, label_noise=NOISE, regularisation=1e-12)
    free = found.threshold / found.effective_noise
    tail = semicircle_tail(free)
    assert found.matrix_error == pytest.approx(found.effective_noise**2 * tail.second, rel=1e-12)
    if ratio > 0.25:
        expected = 1e-12 / (4 * ratio - 1)
        assert found.threshold == pytest.approx(expected, rel=1e-6)
    else:
        assert tail.slope == pytest.approx(ratio, abs=1e-4)


def test_peak_law_and_its_slope():
    errors = [
        noise_only(sample_ratio=0.25, label_noise=NOISE, regularisation=penalty).matrix_error
        for penalty in (1e-3, 1e-4, 1e-5)
    ]
    # (quadratic 24)
    assert errors[1] == pytest.approx(40.64, abs=0.005)
    laws = [
        interpolation_peak_risk(regularisation=penalty, label_noise=NOISE)
        for penalty in (1e-3, 1e-4, 1e-5)
    ]
    np.testing.assert_allclose(np.divide(errors, laws), [0.985, 0.9967, 0.9993], atol=6e-4)
    assert np.log10(errors[2] / errors[1]) == pytest.approx(2 / 3, abs=5e-3)


def test_overfitting_law_is_reached_slowly():
    ratios = np.array([1e-2, 1e-3, 1e-4, 1e-8])
    # (Delta / 4 alpha) (16 / 105 pi) (2 - a)^(7/2) with 2 - a = (15 pi alpha / 4)^(2/5)  (quadratic 23)
    laws = NOISE / (4 * ratios) * 16 / (105 * np.pi) * (15 * np.pi * ratios / 4) ** 1.4
    found = [
        noise_only(sample_ratio=ratio, label_noise=NOISE).matrix_error / law
        for ratio, law in zip(ratios, laws, strict=True)
    ]
    np.testing.assert_allclose(found[:3], [1.361, 1.117, 1.044], atol=1e-3)
    # Corrections have the relative order alpha^(2/5).
    excess = np.array(found) - 1
    np.testing.assert_allclose(excess[1:] / excess[:-1], [0.32, 0.38, 0.0251], rtol=0.05)


@pytest.mark.parametrize(
    ("phase", "dimension", "exponent", "samples", "penalty", "within"),
    [
        ("Ia", 10**4, 1.0, 0.1, 1e-5, 1e-3),
        ("Ib", 10**4, 1.0, 10.0, 1.0, 1e-9),
        ("II", 10**4, 1.0, 1e4, 10.0, 0.01),
        ("II", 10**6, 0.75, 1e5, 20.0, 0.02),
        ("III", 100, 1.0, 1e6, 1e3, 1e-5),
        ("IV", 10**6, 1.0, 100.0, 1e-7, 0.03),
        ("IV", 10**6, 0.75, 100.0, 1e-7, 0.03),
        ("V", 10**6, 1.0, 1e5, 1e-7, 0.01),
        ("peak", 10**5, 1.5, 2.5e4, 1e-3, 0.05),
        ("VIa", 10**5, 1.5, 1e6, 1e-4, 5e-3),
        ("VIb", 200, 1.0, 2e5, 1e-6, 1e-4),
    ],
)
def test_law_of_each_phase_is_the_exact_error_deep_inside(
    phase, dimension, exponent, samples, penalty, within
):
    point = quadratic_phase(
        dimension=dimension,
        exponent=exponent,
        effective_samples=samples,
        regularisation=penalty,
        label_noise=NOISE,
    )
    assert point.phase == phase
    found = exact(dimension, exponent, samples, penalty)
    assert point.matrix_error == pytest.approx(found, rel=within)


@pytest.mark.parametrize(
    ("phase", "dimension", "exponent", "samples", "penalty", "axis", "within"),
    [
        ("II", 10**4, 1.0, 1e4, 8.0, "penalty", 0.015),
        ("II", 10**4, 1.0, 1e4, 8.0, "samples", 0.015),
        ("III", 100, 1.0, 1e6, 1e3, "penalty", 0.05),
        ("IV", 10**6, 1.0, 170.0, 1e-7, "samples", 0.03),
        ("VIa", 10**5, 1.5, 1e6, 1e-4, "samples", 0.03),
        ("VIb", 200, 1.0, 2e5, 1e-6, "samples", 2e-3),
    ],
)
def test_local_slopes_are_the_exponents(phase, dimension, exponent, samples, penalty, axis, within):
    step = 1.5
    points = [
        (
            samples * (factor if axis == "samples" else 1),
            penalty * (factor if axis != "samples" else 1),
        )
        for factor in (1 / step, step)
    ]
    errors = [exact(dimension, exponent, *point) for point in points]
    found = np.log(errors[1] / errors[0]) / (2 * np.log(step))
    exponents = phase_exponents(QuadraticPhase(phase), exponent=exponent)
    assert found == pytest.approx(exponents[0 if axis == "samples" else 1], abs=within)


def test_slope_of_the_best_rate_between_100_and_300_samples():
    # arXiv:2509.24882, Result 1: exponent -1 + 1/(2 gamma) of phase IV  (quadratic 25)
    errors = [exact(10**6, 1.0, samples, 1e-7) for samples in (100.0, 300.0)]
    assert np.log(errors[1] / errors[0]) / np.log(3) == pytest.approx(-0.5, abs=0.03)


@pytest.mark.slow
def test_every_direction_costs_twice_when_all_are_learned():
    # The error over the law of VIa (quadratic 22) approaches 2, the law of VIb (quadratic 27).
    found = [exact(1000, 1.0, n, 1e-6) * 8 * n / (NOISE * 1000) for n in (3e3, 1e5, 1e6)]
    np.testing.assert_allclose(found, [1.325, 1.873, 2.001], atol=1e-3)
    assert found[2] == pytest.approx(2, rel=2e-3)
    assert full_rank_risk(sample_ratio=1e3, label_noise=NOISE) == pytest.approx(
        NOISE / 4e3, rel=2e-3
    )


@pytest.mark.slow
def test_shifted_tail_to_published_digits():
    found = exact(300, 1.0, 1e7, 10 * np.sqrt(300))
    shift = 10 * np.sqrt(300) * 300 / 4e7
    assert found == pytest.approx(5.4375e-6, rel=1e-3)
    assert found == pytest.approx(shift**2 + NOISE * 300 / 4e7, rel=1e-3)
    law = full_rank_risk(sample_ratio=1e7 / 300, label_noise=NOISE, regularisation=10 * 300**0.5)
    assert found == pytest.approx(law, rel=1e-6)


@pytest.mark.slow
def test_without_noise_the_target_below_the_cut_is_the_noise():
    errors = [exact(10**7, 1.0, n, 1e-9, noise=0.0, heads=60) for n in (100.0, 300.0)]
    slope = np.log(errors[1] / errors[0]) / np.log(3)
    expected = phase_exponents(QuadraticPhase.BENIGN, exponent=1.0, noiseless=True)[0]
    assert slope == pytest.approx(expected, abs=0.05)
    law = truncated_risk(
        exponent=1.0, normalisation=6 / np.pi**2, effective_samples=300.0, label_noise=0.0
    )
    assert law == pytest.approx(errors[1], rel=0.06)
    point = quadratic_phase(
        dimension=10**5,
        exponent=1.0,
        effective_samples=100.0,
        regularisation=0.0,
        label_noise=0.0,
    )
    assert point.phase == "IV"


def test_constant_of_the_best_rate_sums_the_errors_of_the_features():
    rank = (np.arange(10**6) + 0.5) / 1e4
    strength = rank**-0.8
    errors = np.where(
        strength > 1,
        (1 / strength - 2) ** 2 + 2 / strength * (strength + 1 / strength - 2),
        strength**2,
    )
    missing = rank[-1] ** (1 - 1.6) / 0.6
    assert truncated_constant(0.8) == pytest.approx(errors.sum() / 1e4 + missing, rel=1e-4)


def test_boundaries_are_where_mechanisms_change():
    phases = PowerLawPhases(dimension=1000, exponent=1.0, label_noise=NOISE)
    n = phases.full_rank_samples
    assert np.sqrt(NOISE * 1000 / (4 * n)) == pytest.approx(phases.strength(1000), rel=1e-12)
    state = solve_quadratic(
        phases.target,
        sample_ratio=0.04,
        label_noise=NOISE,
        regularisation=phases.cut_regularisation(40.0),
    )
    assert state.threshold / state.effective_noise == pytest.approx(2, abs=0.01)
    assert phases.cut_regularisation(40.0) > 4 * np.sqrt(NOISE * 0.04)
    collapse = phases.collapse_regularisation(40.0)
    ranks = [
        solve_quadratic(
            phases.target, sample_ratio=0.04, label_noise=NOISE, regularisation=collapse * step
        ).rank_fraction
        for step in (0.9, 1.2)
    ]
    assert ranks[0] > 5e-4
    assert ranks[1] == 0


def test_each_neighbour_lies_across_its_boundary():
    phases = PowerLawPhases(dimension=10**5, exponent=1.0, label_noise=NOISE)
    n = phases.overfitting_samples
    for samples, penalty, expected in [
        (0.9 * phases.plateau_samples, 0.0, "Ia"),
        (1.1 * phases.plateau_samples, 0.0, "IV"),
        (1.1 * n, 0.0, "V"),
        (0.9 * n, 0.0, "IV"),
        (24_999.0, 0.0, "V"),
        (25_001.0, 0.0, "VIa"),
        (25_000.0, 1e-3, "peak"),
        (1.1 * phases.full_rank_samples, 0.0, "VIb"),
        (100.0, 1.1 * phases.cut_regularisation(100.0), "II"),
        (100.0, 0.9 * phases.cut_regularisation(100.0), "IV"),
        (100.0, 1.1 * phases.collapse_regularisation(100.0), "Ib"),
    ]:
        assert phases.phase(samples, penalty) == expected
    samples = 100 * phases.full_rank_samples
    assert phases.phase(samples, 1.1 * phases.shift_regularisation(samples)) == "III"
    assert phases.phase(samples, 1.1 * phases.all_kept_regularisation(samples)) == "II"


def test_overfitting_starts_at_the_published_power_of_d():
    starts = [PowerLawPhases(d, 1.0, NOISE).overfitting_samples for d in (10**4, 10**5, 10**6)]
    slopes = np.diff(np.log10(starts))
    # 4 gamma / (14 gamma - 5) = 4 / 9 is approached slowly, with corrections alpha^(2/5).
    assert abs(slopes[1] - 4 / 9) < abs(slopes[0] - 4 / 9) < 0.1


def test_optimum_is_below_the_cut_line_by_the_derived_law():
    ratios = []
    for dimension in (10**4, 10**6):
        phases = PowerLawPhases(dimension, 1.0, NOISE)
        best = optimal_regularisation(
            spectrum(dimension, 1.0, 60, 1.15), sample_ratio=1000 / dimension, label_noise=NOISE
        )
        ratios.append(phases.optimal_regularisation(1000.0) / best.regularisation)
        assert best.regularisation < phases.cut_regularisation(1000.0)
    assert ratios == pytest.approx([1.0, 1.0], abs=0.05)
    assert abs(ratios[1] - 1) < abs(ratios[0] - 1)
    assert phases.optimal_regularisation(1e30) == 0


def test_without_learning_no_error():
    assert noise_only(sample_ratio=0.2, label_noise=NOISE, regularisation=9.0).matrix_error == 0


def test_parameters_out_of_range_are_refused():
    with pytest.raises(InvalidParameter, match="above 1/2"):
        PowerLawPhases(100, 0.5, NOISE)
    with pytest.raises(InvalidParameter, match="dimension is 1"):
        PowerLawPhases(1, 1.0, NOISE)
    with pytest.raises(InvalidParameter, match="label_noise is -1"):
        PowerLawPhases(100, 1.0, -1.0)
    with pytest.raises(InvalidParameter, match="regularisation is nan"):
        PowerLawPhases(100, 1.0, NOISE).phase(10.0, np.nan)
    with pytest.raises(InvalidParameter, match="above 1/2"):
        full_rank_risk(sample_ratio=0.5, label_noise=NOISE)
    with pytest.raises(NotConverged, match="interpolation peak"):
        noise_only(sample_ratio=0.25, label_noise=NOISE)
