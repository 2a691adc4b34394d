"""State evolution of links with a Gaussian prior: second moments, draws, limits, known values."""

import numpy as np
import pytest
from posteriors import output_message, posterior_given

from solvable.errors import InvalidParameter
from solvable.inference import Gaussian, Output
from solvable.inference.curve import Curve
from solvable.links import make_link
from solvable.message_passing import AdditiveChannel
from solvable.message_passing.channels import additive_output


def output_of(formula, noise, **options):
    return Output.from_link(make_link(formula, **options), noise=noise)


def evolution_of(formula, noise, **options):
    return Curve(Gaussian(), output_of(formula, noise, **options))


@pytest.mark.parametrize("overlap", [0.15, 0.8, 0.985])
@pytest.mark.parametrize(
    ("formula", "noise"),
    [("abs", 0.0), ("abs", 0.2), ("cos(2*z)", 0.0), ("he4", 0.5), ("relu", 0.05)],
)
def test_information_agrees_with_draws(formula, noise, overlap):
    output = additive_output(AdditiveChannel((make_link(formula),), (1.0,), noise))
    rng = np.random.default_rng(7)
    n, V = 30_000, 1 - overlap
    omega = np.sqrt(overlap) * rng.standard_normal((n, 1))
    y = output.sample(omega + np.sqrt(V) * rng.standard_normal((n, 1)), rng)
    g = output_message(posterior_given(output, y)(omega, np.array([[V]])), omega, np.array([[V]]))
    squares = g.values[:, 0] ** 2
    found = output_of(formula, noise).information(V, 1.0)
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
    assert found.table.first == 0
    assert found.start_ratio == pytest.approx(moments.weak_recovery_ratio[0], rel=2e-4)


@pytest.mark.parametrize(("formula", "noise"), [("relu", 0.1), ("tanh", 0.4), ("sign(z)", 0.3)])
def test_a_label_with_the_sign_has_no_threshold(formula, noise):
    found = evolution_of(formula, noise)
    moments = AdditiveChannel((make_link(formula),), (1.0,), noise).moments
    assert found.table.first == pytest.approx(moments.linear_information[0], rel=1e-3)
    assert found.start_ratio == found.positive_ratio == 0
    # q = alpha E(0) to first order in alpha
    q = found.overlap(1e-3)
    assert q == pytest.approx(1e-3 * found.table.first, rel=0.01)


def test_known_values_of_phase_retrieval():
    found = evolution_of("abs", 0.0, standardised=False)
    assert found.overlap(0.45) == 0
    assert found.overlap(1.0) == pytest.approx(0.476, abs=1e-3)
    assert found.overlap(1.1) == pytest.approx(0.691, abs=1e-3)
    assert found.overlap(1.12) < 0.8
    assert found.overlap(1.13) == pytest.approx(1)
    assert found.positive_ratio == pytest.approx(0.5, abs=1e-6)
    # without noise one sample per dimension determines the signal
    assert found.overlap(1.001, "best") == pytest.approx(1)
    assert found.overlap(0.9, "best") == pytest.approx(found.overlap(0.9), rel=1e-6)


def test_linear_labels_have_a_closed_form():
    noise = 0.7
    found = evolution_of("2 * z", 4 * noise, standardised=False)
    for ratio in (0.2, 1.0, 5.0):
        # q / (1 - q) = alpha / (noise + 1 - q)
        b = noise + 1 + ratio
        exact = (b - np.sqrt(b**2 - 4 * ratio)) / 2
        assert found.overlap(ratio) == pytest.approx(exact, rel=1e-5)
        assert found.overlap(ratio, "best") == pytest.approx(exact, rel=1e-5)


@pytest.mark.parametrize("ratio", [200.0, 1e3, 1e4])
def test_with_noise_many_samples_leave_the_error_of_a_known_derivative(ratio):
    # For q near 1 a label has the information E[sigma'(z)²] / Delta = 4, and 1 - q = 1 / (4 alpha).
    evolution = evolution_of("he2", 0.5)
    for overlap in (evolution.overlap(ratio, "best"), evolution.overlap(ratio)):
        assert ratio * (1 - overlap) == pytest.approx(0.25, rel=0.02)


def test_a_fixed_point_is_one_of_the_plain_iteration():
    found, output = evolution_of("abs", 0.1), output_of("abs", 0.1)
    for ratio in (0.8, 1.3, 2.5):
        q = 1e-3
        for _ in range(300):
            precision = ratio * output.information(1 - q, 1.0)
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
    assert found.positive_ratio / noise == pytest.approx(exact, rel=2e-3)


def test_a_gap_opens_between_information_and_algorithms():
    found = evolution_of("cosmix", 20.0)
    alpha = found.positive_ratio
    assert alpha < 0.4 * found.start_ratio
    assert found.overlap(0.99 * alpha, "best") == 0
    # the potential has two equal minima at the threshold
    assert found.information(found.point(alpha, "truth"), alpha) == pytest.approx(
        found.information(-np.inf, alpha), abs=1e-7
    )
    # message passing reaches this overlap only from an informed start and with enough samples
    assert found.overlap(1.01 * alpha) == 0
    assert found.overlap(1.01 * alpha, 0.8) == pytest.approx(found.overlap(1.01 * alpha, "best"))
    assert found.overlap(1.01 * alpha, 0.05) < 1e-3
    assert found.overlap(0.8 * alpha, 0.9) < 1e-3
    assert found.overlap(1.05 * found.start_ratio) > 0.97


def test_information_is_the_gain_in_entropy():
    """H(1) - H(V) = E[log p(y | omega)] - E[log p(y)], by draws."""
    found = evolution_of("abs", 0.3)
    output = additive_output(AdditiveChannel((make_link("abs"),), (1.0,), 0.3))
    rng = np.random.default_rng(4)
    q, n = 0.7, 60_000
    omega = np.sqrt(q) * rng.standard_normal((n, 1))
    y = output.sample(omega + np.sqrt(1 - q) * rng.standard_normal((n, 1)), rng)
    given = posterior_given(output, y)
    gain = given(omega, np.array([[1 - q]])).log_evidence
    gain = gain - given(np.zeros((n, 1)), np.eye(1)).log_evidence
    entropy = found.table.entropy_at(np.array([0.0, -np.log(1 - q)]))
    expected = entropy[0] - entropy[1]
    assert gain.mean() == pytest.approx(expected, abs=4 * gain.std() / np.sqrt(n))


def test_little_noise_is_refused():
    with pytest.raises(InvalidParameter, match="Raise the noise"):
        evolution_of("abs", 1e-9)


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
    assert found.start_ratio == np.inf
    assert found.overlap(50.0) == 0
    assert 0 < found.positive_ratio < 50


@pytest.mark.parametrize(("link", "noise"), [("cosmix", 1e4), ("he4", 10**3.5)])
def test_thresholds_at_large_noise_are_not_lost_to_rounding(link, noise):
    evolution = evolution_of(link, noise)
    # alpha = 2 noise² / c_2² for a noise sensitivity exponent of 2, above the information-theoretic
    # threshold, which is proportional to the noise
    c_2 = {"cosmix": 1.7449381, "he4": 8.0}[link]
    leading = 2 * noise**2 / c_2**2
    within = 2e-3 if link == "cosmix" else 0.7  # He4 is far from its asymptotic law there
    assert evolution.start_ratio == pytest.approx(leading, rel=within)
    assert 0 < evolution.positive_ratio < evolution.start_ratio
