"""Theory of quadratic networks against published solutions and closed forms.

Equation numbers are those of docs/derivations/quadratic.md.
"""

import numpy as np
import pytest
from scipy.optimize import brentq

from solvable.models.quadratic.network.errors import decompose_error
from solvable.models.quadratic.network.solutions import bayes_optimal
from solvable.models.quadratic.network.theory import quadratic_curve, solve_quadratic
from solvable.spectra.denoiser import feature_errors
from solvable.spectra.free_convolution import SpectralLaw
from solvable.spectra.functionals import truncated_moments
from solvable.spectra.measures import power_law
from solvable.spectra.product_measure import marchenko_pastur
from solvable.spectra.thresholds import interpolation_threshold, perfect_recovery_threshold


def power_law_state(dimension, exponent, samples, label_noise, regularisation):
    return solve_quadratic(
        power_law(dimension=dimension, exponent=exponent),
        sample_ratio=samples / dimension**2,
        label_noise=label_noise,
        regularisation=regularisation,
    )


@pytest.mark.parametrize("noise", [1.0, 2.0])
def test_free_convolution(noise):
    # mu_delta of (quadratic 2): the resolvent g of a Marchenko-Pastur target solves a cubic equation.
    law, root, t = SpectralLaw(marchenko_pastur(0.2), noise=noise), np.sqrt(0.2), noise**2
    (low, high), *others = law.edges
    assert not others
    for x in np.linspace(low, high, 52)[1:-1]:
        cubic = np.roots([t / root, -(x / root + t), x - root + 1 / root, -1.0])
        assert float(law.density(x)) == pytest.approx(np.abs(cubic.imag).max() / np.pi, abs=1e-9)
    assert law.weights.sum() == pytest.approx(1, abs=1e-8)
    assert law.integrate(law.x) == pytest.approx(root, abs=1e-8)
    assert law.integrate(law.x**2) == pytest.approx(1.2 + t, abs=1e-8)
    thresholds, step = np.array([0.0, 0.5, 2.0]), 1e-4
    up, down = (
        truncated_moments(SpectralLaw(marchenko_pastur(0.2), noise=noise + s), thresholds).second
        for s in (step, -step)
    )
    found = truncated_moments(law, thresholds).noise_derivative
    np.testing.assert_allclose(found, (up - down) / (2 * step), atol=1e-6)


def test_single_atom():
    # Pure noise, (quadratic 22): J(delta, 0) = delta² / 2 and A(delta, 0) = 1/4.
    for noise in (0.5, 3.0):
        moments = truncated_moments(SpectralLaw([0.0], noise=noise), 0.0)
        assert moments.second[0] == pytest.approx(noise**2 / 2, abs=1e-10)
        assert moments.slope[0] == pytest.approx(0.25, abs=1e-10)


# Sample ratio, R, B² and rank/d of (quadratic 4, 5), kappa* = 0.2, Delta = 0.5, lambda = 0.02, as in
# arXiv:2505.17958. The values at ratio 1 are backed by the next two tests.
CURVE = [
    (0.05, 1.1154, 0.00006, 0.164),
    (0.1, 0.8663, 0.00010, 0.254),
    (0.2, 0.6853, 0.00035, 0.404),
    (0.3, 1.0326, 0.00674, 0.525),
    (0.5, 0.3469, 0.09118, 0.567),
    (1.0, 0.11244, 0.33649, 0.582),
]


def test_curve_of_the_paper():
    ratios, errors, residuals, ranks = np.array(CURVE).T
    states = quadratic_curve(
        marchenko_pastur(0.2), sample_ratios=ratios, label_noise=0.5, regularisation=0.02
    )
    np.testing.assert_allclose([state.matrix_error for state in states], errors, atol=2e-4)
    trains = [state.train_error * state.sample_ratio for state in states]
    np.testing.assert_allclose(trains, residuals, atol=1e-5)
    np.testing.assert_allclose([state.rank_fraction for state in states], ranks, atol=6e-4)


def test_last_point_of_the_curve_against_matrices():
    # At sample ratio 1 a value of 0.1163 circulates. One large drawn matrix, without any spectral law,
    # solves (quadratic 4) with 0.1124: A = <S-hat, Z> / (2 delta d).
    rng = np.random.default_rng(3)
    d = 600
    w = rng.standard_normal((d, d // 5))
    target = w @ w.T / np.sqrt(d * (d // 5))
    z = rng.standard_normal((d, d))
    z = (z + z.T) / np.sqrt(2 * d)

    def learned(noise, threshold):
        values, vectors = np.linalg.eigh(target + noise * z)
        estimate = (vectors * np.maximum(values - threshold, 0)) @ vectors.T
        error = np.sum((estimate - target) ** 2) / d
        return error, np.sum(estimate * z) / (2 * noise * d)

    state = solve_quadratic(
        marchenko_pastur(0.2), sample_ratio=1.0, label_noise=0.5, regularisation=0.02
    )
    error, freedom = learned(state.effective_noise, state.threshold)
    # Linear statistics of one draw have errors of order 1 / d, with a factor of at most 2 here.
    assert error == pytest.approx(0.11244, abs=0.11244 * 2 / d * 3)
    assert freedom == pytest.approx(state.degrees_of_freedom, abs=2 / d)
    noise = np.sqrt((0.1163 + 0.25) / 2)
    threshold = 0.02 / (4 * (1 - freedom))
    assert learned(noise, threshold)[0] < 0.1163 * 0.985


@pytest.mark.slow
def test_last_point_of_the_curve_against_large_networks():
    # The error of samples exceeds the limit by about 3 / d. At d = 300 three networks, each with a
    # scatter of 1 %, distinguish 0.1124 (plus 1 %) from 0.1163.
    from solvable.arrays import ArraySource
    from solvable.models.quadratic.network.amp import solve_amp
    from solvable.models.quadratic.network.sensing import SampleSensing

    d, errors = 300, []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        factor = rng.standard_normal((d, d // 5)) / np.sqrt(np.sqrt(d * (d // 5)))
        sensing = SampleSensing(ArraySource(rng.standard_normal((d * d, d))))
        labels = sensing.forward(factor) + np.sqrt(0.5) * rng.standard_normal(d * d)
        found = solve_amp(sensing, labels, 0.02, tolerance=1e-5).matrix
        errors.append(np.sum((found - factor @ factor.T) ** 2) / d)
    error = 0.01 * 0.1124 / np.sqrt(3)
    assert np.mean(errors) == pytest.approx(0.1124 * (1 + 3 / d), abs=3 * error)
    assert np.mean(errors) < 0.1163 - 2 * error


def test_another_solver():
    # Values of the solver of arXiv:2601.10483, with S = W W^T / p and penalty 4 alpha lambda.
    target = marchenko_pastur(0.2, scale=1 / np.sqrt(0.2))

    def state(ratio):
        return solve_quadratic(
            target, sample_ratio=ratio, label_noise=0.5, regularisation=0.4 * ratio
        )

    ratio = brentq(lambda a: state(a).effective_noise ** 2 - 5, 0.15, 0.2, xtol=1e-8)
    found = state(ratio)
    assert ratio == pytest.approx(0.1768, abs=1e-4)
    assert found.matrix_error == pytest.approx(1.51802, abs=1e-4)
    assert found.threshold == pytest.approx(1.77479, abs=1e-4)


@pytest.mark.parametrize(
    ("target", "ratio", "penalty"),
    [
        (marchenko_pastur(0.2), 0.2, 0.02),
        (marchenko_pastur(1.5), 0.6, 0.3),
        (power_law(dimension=60, exponent=1.0), 0.55, 1.0),
        (power_law(dimension=200, exponent=0.75), 0.1, 0.01),
    ],
)
def test_residual_identity(target, ratio, penalty):
    # (quadratic 4) is solved, and the mean of (quadratic 8) over the features is R.
    state = solve_quadratic(target, sample_ratio=ratio, label_noise=0.5, regularisation=penalty)
    assert abs(state.residual) < 1e-7
    features = target.node_weights @ feature_errors(state.law, state.threshold)
    assert features == pytest.approx(state.matrix_error, rel=1e-4)


@pytest.mark.parametrize(
    ("samples", "theirs", "network"),
    [
        (8000, 0.09048, None),
        (26515, 0.05339, 0.0550),
        (48273, 0.05082, 0.0516),
        (87884, 0.02838, 0.0286),
        (160000, 0.01442, 0.01453),
        (530312, 0.004336, 0.00435),
    ],
)
def test_published_scaling_law(samples, theirs, network):
    # Data of arXiv:2606.28242 at d = 400, gamma = 1.25, Delta = 0.1: their equations, solved with drawn
    # matrices, within 1 %. Their networks are within 2 % above n = 5e4; finite size adds 4 % below.
    state = power_law_state(400, 1.25, samples, 0.1, 0.1 * np.sqrt(samples) / 400)
    assert state.matrix_error == pytest.approx(theirs, rel=0.01)
    if network is not None:
        assert state.matrix_error == pytest.approx(network, rel=0.02 if samples > 5e4 else 0.04)


def test_published_slow_decay():
    # Data of arXiv:2606.28242 at gamma = 0.6.
    state = power_law_state(400, 0.6, 26515, 0.5, 400**-0.15)
    assert state.matrix_error == pytest.approx(0.4209, rel=0.01)
    assert state.matrix_error == pytest.approx(0.4226, rel=0.01)


def test_perfect_recovery():
    # (quadratic 13), and the error of the saddle point on both sides of the threshold.
    values = {0.01: 0.0231, 0.05: 0.0920, 0.1: 0.1576, 0.2: 0.2556, 0.5: 0.4222, 0.8: 0.4892}
    for fraction, ratio in values.items():
        assert perfect_recovery_threshold(fraction) == pytest.approx(ratio, abs=1e-4)
    # One large drawn matrix, as in the test of the last point of the curve, gives 0.0890 at 0.2.
    quoted = [(0.15, 0.3061), (0.2, 0.08886), (0.24, 0.00734)]
    for ratio, error in quoted:
        state = solve_quadratic(
            marchenko_pastur(0.2), sample_ratio=ratio, label_noise=0.0, regularisation=1e-3
        )
        assert state.matrix_error == pytest.approx(error, abs=1e-4)
    beyond = solve_quadratic(
        marchenko_pastur(0.2), sample_ratio=0.28, label_noise=0.0, regularisation=1e-3
    )
    assert beyond.matrix_error < 1e-3


@pytest.mark.parametrize(
    ("width_ratio", "label_noise", "ratio", "error"),
    [
        (0.2, 0.5, 0.2758, 5.71),
        (0.2, 0.1, 0.2946, 1.27),
        (0.05, 0.5, 0.2569, 19.8),
        # Discrete eigenvalues give 0.3460 and 2.16, as the density of this law is infinite at 0.
        (1.0, 0.5, 0.34466, 2.219),
    ],
)
def test_interpolation(width_ratio, label_noise, ratio, error):
    # (quadratic 14)
    peak = interpolation_threshold(marchenko_pastur(width_ratio), label_noise=label_noise)
    assert peak.sample_ratio == pytest.approx(ratio, abs=1e-4)
    assert peak.matrix_error == pytest.approx(error, rel=0.0035)


def test_peak_law():
    # (quadratic 24), without a target at ratio 1/4.
    errors = []
    for penalty in (1e-4, 1e-5):
        state = solve_quadratic(
            np.zeros(1), sample_ratio=0.25, label_noise=0.5, regularisation=penalty
        )
        errors.append(state.matrix_error)
    assert errors[0] == pytest.approx(40.64, abs=0.01)
    assert errors[0] == pytest.approx(
        0.5 * (3 * np.pi / 8) ** (2 / 3) * 0.25 ** (4 / 3) * 1e-4 ** (-2 / 3), rel=0.01
    )
    assert np.log10(errors[0] / errors[1]) == pytest.approx(-0.667, abs=0.005)


def test_constants_of_many_samples():
    # Phase VIb, n/d = 1e6 at d = 1000 with little regularisation: R = Delta d / 4 n_eff (quadratic 27).
    state = power_law_state(1000, 1.0, 1e9, 0.5, 1e-6)
    assert state.matrix_error == pytest.approx(0.5 * 1000 / 4e6, rel=2e-3)
    # Phase III, n/d = 1e7 at d = 300: R = b² + Delta d / 4 n_eff.
    strong = power_law_state(300, 1.0, 3e9, 0.5, 10 * np.sqrt(300))
    assert strong.matrix_error == pytest.approx(5.4375e-6, rel=1e-3)
    assert strong.matrix_error == pytest.approx(strong.threshold**2 + 0.5 * 300 / 4e7, rel=1e-3)


def test_slope_of_benign_overfitting():
    # arXiv:2509.24882, Result 1: exponent -1 + 1/(2 gamma) of phase IV (quadratic 25).
    target = power_law(dimension=10**6, exponent=1.0)
    errors = [
        solve_quadratic(
            target, sample_ratio=ratio / 1e6, label_noise=0.5, regularisation=1e-7
        ).matrix_error
        for ratio in (30, 100, 300)
    ]
    slopes = np.diff(np.log(errors)) / np.diff(np.log([30, 100, 300]))
    assert slopes[1] == pytest.approx(-0.50, abs=0.03)
    np.testing.assert_allclose(slopes, [-0.566, -0.501], atol=0.01)


@pytest.mark.parametrize(
    ("ratio", "error"), [(0.1, 0.771), (0.2, 0.521), (0.3, 0.339), (0.5, 0.167)]
)
def test_bayes_optimal(ratio, error):
    # (quadratic 16) with noise of standard deviation 1/4 inside the activation, for S* = W W^T / p* with
    # kappa* = 1/2: values of the program of arXiv:2408.03733.
    inner = 0.25**2
    state = bayes_optimal(
        marchenko_pastur(0.5), sample_ratio=ratio, label_noise=2 * inner * (2 + inner)
    )
    assert state.matrix_error == pytest.approx(error, abs=6e-4)


@pytest.mark.parametrize(
    ("samples", "penalty", "error", "train", "rank", "leading"),
    [
        (500, 0.01, 0.440, 0.00003, 19.1, (5.15, 2.52, 1.92)),
        (500, 0.5, 0.353, 0.0374, 12.1, (4.52, 1.85, 1.19)),
        (2000, 0.01, 0.295, 0.0890, 38.1, (6.14, 3.18, 2.25)),
        (2000, 1.0, 0.132, 0.2121, 20.9, (5.49, 2.51, 1.56)),
        (7200, 0.01, 0.0594, 0.7710, 46.0, (6.08, 3.06, 2.06)),
        (7200, 1.0, 0.0483, 0.8213, 37.4, (5.93, 2.91, 1.91)),
        (7200, 4.0, 0.0948, 1.1939, 17.1, (5.55, 2.53, 1.53)),
    ],
)
def test_table_of_a_power_law(samples, penalty, error, train, rank, leading):
    # (quadratic 4, 5) by a second program, d = 60, gamma = 1, Delta = 0.5.
    state = power_law_state(60, 1.0, samples, 0.5, penalty)
    assert state.matrix_error == pytest.approx(error, abs=6e-4)
    assert state.train_error * state.sample_ratio == pytest.approx(train, abs=6e-5)
    assert 60 * state.rank_fraction == pytest.approx(rank, abs=0.06)
    # The leading eigenvalues in the table are those of isolated spikes, s + delta² / s - b.
    spikes = state.law.target.nodes[:-4:-1]
    places = spikes + state.effective_noise**2 / spikes - state.threshold
    np.testing.assert_allclose(places, leading, atol=6e-3)
    # Repulsion between the eigenvalues moves them further apart.
    together = state.leading_eigenvalues(3, dimension=60)
    assert (together > places).all()
    np.testing.assert_allclose(together, places, atol=0.13)


@pytest.mark.parametrize(
    ("dimension", "samples", "penalty", "error", "doubled"),
    [
        (400, 40000, 1.5, 0.11922, 0.12046),
        (60, 2000, 1.0, 0.13223, 0.17177),
        (400, 3000, 0.05, 0.50375, 0.53892),
        (400, 40000, 0.01, 0.90651, 1.06422),
        (400, 800000, 0.01, 0.01851, 0.03736),
    ],
)
def test_table_of_the_decomposition(dimension, samples, penalty, error, doubled):
    # (quadratic 10) summed over the features.
    state = power_law_state(dimension, 1.0, samples, 0.5, penalty)
    assert state.matrix_error == pytest.approx(error, abs=6e-6)
    assert decompose_error(state).total == pytest.approx(doubled, abs=6e-6)
