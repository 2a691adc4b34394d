"""State evolution in one direction: second moments, Monte Carlo, limits, known values."""

import numpy as np
import pytest

from solvable.errors import InvalidParameter
from solvable.links import make_link
from solvable.message_passing import AdditiveChannel
from solvable.message_passing.channels import additive_output
from solvable.message_passing.evolution import StateEvolution, label_information, state_evolution
from solvable.message_passing.outputs import GaussianOutput, output_message
from solvable.message_passing.posterior import posterior_given


def evolution_of(formula, noise, **options):
    channel = AdditiveChannel((make_link(formula, **options),), (1.0,), noise)
    return StateEvolution(additive_output(channel))


@pytest.mark.parametrize("overlap", [0.15, 0.8, 0.985])
@pytest.mark.parametrize(
    ("formula", "noise"),
    [("abs", 0.0), ("abs", 0.2), ("cos(2*z)", 0.0), ("he4", 0.5), ("relu", 0.05)],
)
def test_information_agrees_with_draws(formula, noise, overlap):
    output = evolution_of(formula, noise).output
    rng = np.random.default_rng(7)
    n, V = 30_000, 1 - overlap
    omega = np.sqrt(overlap) * rng.standard_normal((n, 1))
    y = output.sample(omega + np.sqrt(V) * rng.standard_normal((n, 1)), rng)
    g = output_message(posterior_given(output, y)(omega, np.array([[V]])), omega, np.array([[V]]))
    squares = g.values[:, 0] ** 2
    found = label_information(output, overlap)
    assert found == pytest.approx(squares.mean(), abs=4 * squares.std() / np.sqrt(n))
    # Bayes identity E[g²] = -E[dg / domega]
    assert found == pytest.approx(-g.slope[0, 0] / n, rel=0.06)


@pytest.mark.parametrize(
    ("formula", "noise"),
    [("abs", 0.0), ("abs", 0.1), ("cos(2*z)", 0.05), ("he4", 0.25), ("he6", 1.0)],
)
def test_the_threshold_is_that_of_second_moments(formula, noise):
    found = evolution_of(formula, noise)
    moments = AdditiveChannel((make_link(formula),), (1.0,), noise).moments
    assert found.first_information == 0
    assert found.threshold_ratio == pytest.approx(moments.weak_recovery_ratio[0], rel=2e-4)


@pytest.mark.parametrize(("formula", "noise"), [("relu", 0.1), ("tanh", 0.4), ("sign(z)", 0.3)])
def test_a_label_with_the_sign_has_no_threshold(formula, noise):
    found = evolution_of(formula, noise)
    moments = AdditiveChannel((make_link(formula),), (1.0,), noise).moments
    assert found.first_information == pytest.approx(moments.linear_information[0], rel=1e-3)
    assert found.threshold_ratio == found.information_threshold_ratio == 0
    # q = alpha E(0) to first order in alpha
    q = found.overlap(1e-3)
    assert q == pytest.approx(1e-3 * found.first_information, rel=0.01)


def test_known_values_of_phase_retrieval():
    found = evolution_of("abs", 0.0, standardised=False)
    assert found.overlap(0.45) == 0
    assert found.overlap(1.0) == pytest.approx(0.476, abs=1e-3)
    assert found.overlap(1.1) == pytest.approx(0.691, abs=1e-3)
    assert found.overlap(1.12) < 0.8
    assert found.overlap(1.13) == pytest.approx(1)
    assert found.information_threshold_ratio == pytest.approx(0.5, abs=1e-6)
    # without noise one sample per dimension determines the signal
    assert found.best_overlap(1.001) == pytest.approx(1)
    assert found.best_overlap(0.9) == pytest.approx(found.overlap(0.9), rel=1e-6)


def test_linear_labels_have_a_closed_form():
    noise = 0.7
    found = StateEvolution(GaussianOutput(lambda z: z[..., 0], noise))
    for ratio in (0.2, 1.0, 5.0):
        # q / (1 - q) = alpha / (noise + 1 - q)
        b = noise + 1 + ratio
        exact = (b - np.sqrt(b**2 - 4 * ratio)) / 2
        assert found.overlap(ratio) == pytest.approx(exact, rel=1e-5)
        assert found.best_overlap(ratio) == pytest.approx(exact, rel=1e-5)


@pytest.mark.parametrize("ratio", [200.0, 1e3, 1e4])
def test_with_noise_many_samples_leave_the_error_of_a_known_derivative(ratio):
    # For q near 1 a label has the information E[sigma'(z)²] / Delta = 4, and 1 - q = 1 / (4 alpha).
    evolution = state_evolution(AdditiveChannel((make_link("he2"),), (1.0,), 0.5))
    for overlap in (evolution.best_overlap(ratio), evolution.overlap(ratio)):
        assert ratio * (1 - overlap) == pytest.approx(0.25, rel=0.02)


def test_a_fixed_point_is_one_of_the_plain_iteration():
    found = evolution_of("abs", 0.1)
    for ratio in (0.8, 1.3, 2.5):
        q = 1e-3
        for _ in range(300):
            precision = ratio * label_information(found.output, q)
            before, q = q, precision / (1 + precision)
            if abs(q - before) < 1e-9 * q:
                break
        assert found.overlap(ratio) == pytest.approx(q, rel=1e-4)


@pytest.mark.parametrize(
    ("formula", "constant"), [("he4", 1.976), ("cosmix", 2.433), ("he2", 0.5), ("abs", 0.5708)]
)
def test_constants_at_much_noise(formula, constant):
    # alpha_IT / noise -> inf_q (-q - log(1 - q)) / kappa(q)
    noise = 3e4
    link = make_link(formula)
    q = 1 - np.exp(-np.geomspace(1e-4, 7, 20_000))
    exact = np.min((-q - np.log1p(-q)) / link.correlation(q))
    assert exact == pytest.approx(constant, rel=1e-3)
    found = evolution_of(formula, noise)
    assert found.information_threshold_ratio / noise == pytest.approx(exact, rel=2e-3)


def test_a_gap_opens_between_information_and_algorithms():
    found = evolution_of("cosmix", 20.0)
    alpha = found.information_threshold_ratio
    assert alpha < 0.4 * found.threshold_ratio
    assert found.best_overlap(0.99 * alpha) == 0
    q, _, rival = found._ratios
    assert found.best_overlap(1.01 * alpha) == pytest.approx(q[np.argmin(rival)], abs=0.02)
    # message passing reaches this overlap only from an informed start and with enough samples
    assert found.overlap(1.01 * alpha) == 0
    assert found.overlap(1.01 * alpha, start=0.8) == pytest.approx(found.best_overlap(1.01 * alpha))
    assert found.overlap(1.01 * alpha, start=0.05) < 1e-3
    assert found.overlap(0.8 * alpha, start=0.9) < 1e-3
    assert found.overlap(1.05 * found.threshold_ratio) > 0.97


def test_information_is_the_gain_in_entropy():
    """2 I(q) = 2 (E[log p(y | omega)] - E[log p(y)]), by draws."""
    found = evolution_of("abs", 0.3)
    rng = np.random.default_rng(4)
    q, n = 0.7, 60_000
    omega = np.sqrt(q) * rng.standard_normal((n, 1))
    y = found.output.sample(omega + np.sqrt(1 - q) * rng.standard_normal((n, 1)), rng)
    given = posterior_given(found.output, y)
    gain = given(omega, np.array([[1 - q]])).log_evidence
    gain = gain - given(np.zeros((n, 1)), np.eye(1)).log_evidence
    t, _, information = found._curve
    expected = np.interp(-np.log(1 - q), t, information)
    assert gain.mean() == pytest.approx(expected, abs=4 * gain.std() / np.sqrt(n))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: label_information(evolution_of("abs", 0.1).output, 1.0), "below 1"),
        (lambda: evolution_of("abs", 1e-9).threshold_ratio, "Raise the noise"),
        (lambda: evolution_of("relu", 0.0).threshold_ratio, "constant"),
        (lambda: evolution_of("abs", 0.1).overlap(0.0), "sample_ratio"),
    ],
)
def test_bad_input_is_refused(make, words):
    with pytest.raises(InvalidParameter, match=words):
        make()


def test_a_label_without_second_order_information_is_never_found():
    # label: abs(z) in ten classes with signs such that E[z² - 1 | y] averages to 0
    from scipy.optimize import brentq
    from scipy.special import ndtr

    def excess(b):
        # E[(z² - 1) s] with s = 1 between 0.5 and b, -1 elsewhere: z² - 1 integrates to -z phi
        def part(z):
            return -z * np.exp(-(z**2) / 2)

        return part(b) - part(0.5)

    b = brentq(excess, 1.2, 4.0)
    assert ndtr(b) < 1
    found = evolution_of(f"sign(abs(z)-0.5)*sign({b!r}-abs(z))", 0.2)
    assert found.threshold_ratio == np.inf
    assert found.overlap(50.0) == 0
    assert 0 < found.information_threshold_ratio < 50


@pytest.mark.parametrize(("link", "noise"), [("cosmix", 1e4), ("he4", 10**3.5)])
def test_thresholds_at_large_noise_are_not_lost_to_rounding(link, noise):
    channel = AdditiveChannel((make_link(link),), (1.0,), noise)
    evolution = state_evolution(channel)
    # alpha = 2 noise² / c_2² for a noise sensitivity exponent of 2, above the information-theoretic
    # threshold, which is proportional to the noise
    c_2 = {"cosmix": 1.7449381, "he4": 8.0}[link]
    leading = 2 * noise**2 / c_2**2
    within = 2e-3 if link == "cosmix" else 0.7  # He4 is far from its asymptotic law there
    assert evolution.threshold_ratio == pytest.approx(leading, rel=within)
    assert 0 < evolution.information_threshold_ratio < evolution.threshold_ratio
