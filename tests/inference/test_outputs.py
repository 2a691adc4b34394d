"""Outputs: information against draws and closed forms, entropy, labels, likelihoods, bad input."""

import numpy as np
import pytest
from scipy.special import expit, log_ndtr, ndtr

from solvable.errors import InvalidData, InvalidParameter
from solvable.inference import Output
from solvable.inference.curve import InformationTable

GAUSSIAN = Output.from_likelihood(
    lambda y, z: np.exp(-((y - z) ** 2) / 0.6) / np.sqrt(0.6 * np.pi), interval=(-8, 8)
)
OUTPUTS = [
    Output("sign"),
    Output("sign", flips=0.1),
    Output("door", width=0.6),
    Output("door", width=0.6, flips=0.05),
    Output("logistic", slope=2),
    Output("logistic", slope=25),
    Output("probit", noise=0.2),
    Output("identity", noise=0.3),
    Output("relu"),
    Output("relu", noise=0.1),
    Output("abs"),
    Output("max(-1, min(1, z))"),
    Output("z**3 - z"),
    Output("tanh", noise=0.05),
    Output("sign(z)", noise=0.2),
    GAUSSIAN,
]


@pytest.mark.parametrize("V", [0.25, 0.03])
@pytest.mark.parametrize(
    "output", OUTPUTS, ids=lambda value: None if callable(value) else str(value)
)
def test_information_agrees_with_draws(output, V):
    rho, n = 0.5, 8_000
    rng = np.random.default_rng(5)
    omega = np.sqrt(rho - V) * rng.standard_normal(n)
    y = output.draw(omega + np.sqrt(V) * rng.standard_normal(n), rng)
    g, slope = output.channel(rho).scores(y)(omega / np.sqrt(rho), V / rho)
    squares = g**2 / rho
    error = 4.5 * squares.std() / np.sqrt(n)
    assert output.information(V, rho) == pytest.approx(squares.mean(), abs=error)
    # E[g²] = -E[dg / d omega]
    assert -slope / rho / n == pytest.approx(output.information(V, rho), rel=0.15)


def test_relu_is_half_a_sign_and_half_the_index():
    for V in (0.7, 0.1, 1e-3, 1e-8):
        half = (1 / V + Output("sign").information(V, 1.0)) / 2
        assert Output("relu").information(V, 1.0) == pytest.approx(half, rel=1e-9)


def test_magnitude_has_a_closed_form():
    # E = 1/V - E[z² / cosh²(z omega / V)] / V²
    z, omega = np.meshgrid(np.linspace(-7, 7, 701), np.linspace(-7, 7, 701))
    for V in (0.6, 0.05):
        q = 1 - V
        mean = q * z + np.sqrt(q * V) * omega
        weight = np.exp(-(z**2 + omega**2) / 2)
        hidden = (
            weight * z**2 / np.cosh(np.clip(z * mean / V, -300, 300)) ** 2
        ).sum() / weight.sum()
        for name in ("abs", "square"):
            found = Output(name).information(V, 1.0)
            assert found == pytest.approx(1 / V - hidden / V**2, rel=1e-6)


def test_a_sign_at_small_variance_has_information_like_its_root():
    # c = int phi² / (Phi (1 - Phi)) / sqrt(2 pi)
    x = np.linspace(-12, 12, 20_001)
    integrand = np.exp(-(x**2) - np.log(2 * np.pi) - log_ndtr(x) - log_ndtr(-x))
    c = np.trapezoid(integrand, x) / np.sqrt(2 * np.pi)
    for V in (1e-6, 1e-10):
        assert np.sqrt(V) * Output("sign").information(V, 1.0) == pytest.approx(c, rel=1e-3)


def test_a_narrow_door_keeps_its_digits():
    # the information grows like V^(-1/2), never infinitely
    values = [np.sqrt(V) * Output("door").information(V, 1.0) for V in (1e-6, 1e-8, 1e-10)]
    assert values == pytest.approx([values[-1]] * 3, rel=2e-3)


@pytest.mark.parametrize(
    ("output", "chance"),
    [
        (Output("sign", flips=0.1), lambda x, s: 0.1 + 0.8 * ndtr(x / s)),
        (Output("door", width=0.6), lambda x, s: ndtr((0.6 - x) / s) - ndtr((-0.6 - x) / s)),
        (Output("probit", noise=0.2), lambda x, s: ndtr(x / np.sqrt(s**2 + 0.2))),
        (Output("logistic", slope=2), None),
    ],
    ids=lambda value: None if callable(value) else str(value),
)
def test_information_is_the_slope_of_the_entropy(output, chance):
    """dH/dV = E/2, with the entropy of the label computed from its probabilities."""
    table = InformationTable(output.channel(1.0))
    zeta, xi = np.linspace(-8, 8, 401), np.linspace(-8, 8, 321)
    inner, outer = np.exp(-(xi**2) / 2), np.exp(-(zeta**2) / 2)
    for V in (0.9, 0.4):
        omega, s = np.sqrt(1 - V) * zeta, np.sqrt(V)
        if chance is None:
            plus = expit(2 * (omega[:, None] + s * xi)) @ inner / inner.sum()
        else:
            plus = chance(omega, s)
        plus = np.clip(plus, 1e-14, 1 - 1e-14)
        entropy = -(plus * np.log(plus) + (1 - plus) * np.log1p(-plus))
        exact = outer @ entropy / outer.sum()
        assert float(table.entropy_at(-np.log(V))) == pytest.approx(exact, abs=1e-7)


def test_a_density_as_likelihood_is_the_channel_with_noise():
    for V in (0.8, 0.1, 1e-3):
        assert GAUSSIAN.information(V, 1.0) == pytest.approx(1 / (V + 0.3), rel=1e-6)


@pytest.mark.parametrize(
    "output", OUTPUTS, ids=lambda value: None if callable(value) else str(value)
)
def test_labels_and_draws_agree(output):
    z, rng = np.full(10_000, 0.35), np.random.default_rng(6)
    values, chances = output.labels(z[:1])
    assert chances.sum() == pytest.approx(1, abs=1e-6)
    y = output.draw(z, rng)
    mean = float((values * chances).sum())
    assert mean == pytest.approx(y.mean(), abs=4.5 * y.std() / 100 + 1e-9)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Output("sing"), "sing"),
        (lambda: Output(np.tanh), "Output.from_likelihood"),
        (lambda: Output("sign", flips=0.5), "allowed: a probability from 0 to below 0.5"),
        (lambda: Output("relu", flips=0.1), "allowed: for sign and door"),
        (lambda: Output("relu", slope=2), "allowed: for logistic"),
        (lambda: Output("sign", width=2), "allowed: for door"),
        (lambda: Output("sign", noise=0.1), "Use flips, 'probit'"),
        (lambda: Output("relu", noise=-0.1), "noise"),
        (lambda: Output("door", width=0), "allowed: above 0"),
        (lambda: Output("relu").information(2.0, 1.0), "allowed: above 0, up to it"),
        (lambda: Output.from_likelihood(lambda y, z: y + 0 * z), "give either `labels`"),
        (
            lambda: Output.from_likelihood(lambda y, z: 0.4 + 0 * (y + z), labels=[0, 1]),
            "add up to",
        ),
        (
            lambda: Output.from_likelihood(lambda y, z: np.nan * (y + z), labels=[0, 1]),
            "returned NaN",
        ),
    ],
)
def test_bad_input_is_refused_in_one_line(make, message):
    with pytest.raises(InvalidParameter, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_labels_that_the_output_cannot_give_are_refused():
    for output, label in ((Output("sign"), 0.5), (Output("relu"), -1.0)):
        with pytest.raises(InvalidData, match="allowed: labels of the"):
            output.scores(np.array([label]), np.zeros(1), 0.5)
