"""Exponents of links and large-noise thresholds against closed forms and known values."""

from __future__ import annotations

from math import exp, inf, pi, sqrt

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq

from solvable.links import Link, make_link
from solvable.message_passing.channels import AdditiveChannel
from solvable.models.multi_index.equal_directions import large_noise_information_ratio
from solvable.models.multi_index.exponents import exponents_of, large_noise_ratio
from solvable.models.multi_index.target import power_law_channel

# Name: parity, information exponent, generative exponent, beta, c_beta to three or four digits
# (multi-index 3 and 4; arXiv:2603.17896, Definition 2.1)
TABLE = {
    "he2": ("even", 2, 2, 1, 1.4142),
    "z**2": ("even", 2, 2, 1, 1.4142),
    "abs": ("even", 2, 2, 1, 1.3236),
    "abs(z)**3": ("even", 2, 2, 1, 1.3566),
    "cos": ("even", 2, 2, 1, -1.3570),
    "cos(2*z)": ("even", 2, 2, 1, -0.7799),
    "exp(-z**2/2)": ("even", 2, 2, 1, -1.2712),
    "z**2*exp(-z**2/2)": ("even", 2, 2, 1, 0.6807),
    "step(abs(z) - 1)": ("even", 2, 2, 1, 1.0398),
    "he2 + he4": ("even", 2, 2, 1, 0.3922),
    "he4": ("even", 4, 2, 2, 8),
    "he6": ("even", 6, 2, 2, 12),
    "he8": ("even", 8, 2, 2, 16),
    "he4 + he6": ("even", 4, 2, 2, 13.81),
    "cosmix": ("even", 4, 2, 2, 1.7449),
    "cosmix3": ("even", 4, 2, 3, -1.1391),
    "cosmix4": ("even", 4, 2, 4, 0.5446),
    "z": ("odd", 1, 1, 2, 2),
    "he3": ("odd", 3, 1, 2, 6),
    "he5": ("odd", 5, 1, 2, 10),
    "z**3": ("odd", 1, 1, 2, 6),
    "tanh": ("odd", 1, 1, 2, 0.922),
    "erf": ("odd", 1, 1, 2, 0.817),
    "sin": ("odd", 1, 1, 2, 0.626),
    "sigmoid": ("odd", 1, 1, 2, 1.438),
    "relu": ("none", 1, 1, 1, 0.683),
    "gelu": ("none", 1, 1, 1, 0.720),
    "silu": ("none", 1, 1, 1, 0.627),
    "softplus": ("none", 1, 1, 1, 0.397),
    "sign": ("odd", 1, 1, inf, None),
    "step": ("odd", 1, 1, inf, None),
}


@pytest.mark.parametrize("name", TABLE)
def test_exponents_of_common_links(name):
    found = exponents_of(make_link(name))
    parity, information, generative, beta, c = TABLE[name]
    assert (found.parity, found.information, found.generative) == (parity, information, generative)
    assert found.noise_sensitivity == beta
    if c is None:
        assert found.coefficient is None
    else:
        # The tolerance is half a unit of the last digit in the table.
        assert found.coefficient == pytest.approx(
            c, abs=5.1e-4 if beta == 2 or c > 0 else 1e-4, rel=4e-4
        )


@pytest.mark.parametrize("degree", [3, 4, 5, 6, 7, 8, 9, 10, 12])
def test_hermite_polynomials_have_closed_forms(degree):
    # c_2 = 2 k for He_k / sqrt(k!)
    found = exponents_of(make_link(f"he{degree}"))
    assert found.noise_sensitivity == pytest.approx(2)
    assert found.coefficient == pytest.approx(2 * degree, rel=1e-6)


@pytest.mark.parametrize("omega", [0.3, 1.0, 1.7, 2.6])
def test_cosines_have_closed_forms(omega):
    # E[cos(w z)(z² - 1)] = -w² exp(-w² / 2); variance (1 + exp(-2 w²)) / 2 - exp(-w²)
    expected = -(omega**2) * exp(-(omega**2) / 2)
    expected /= sqrt((1 + exp(-2 * omega**2)) / 2 - exp(-(omega**2)))
    found = exponents_of(make_link(f"cos({omega}*z)"))
    assert found.coefficient == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("name", ["relu", "gelu", "abs(z)**3", "max(z, 0.4)**2", "log(abs(z))"])
def test_moments_agree_with_adaptive_quadrature(name):
    link = make_link(name)
    points = sorted({0.0, 1.0, -1.0, 3.0, -3.0, 0.4, 9.0, -9.0, *link.breakpoints})

    def integrand(z):
        return float(link(np.array([z]))[0] * (z**2 - 1) * exp(-(z**2) / 2) / sqrt(2 * pi))

    expected = sum(
        quad(integrand, low, high, epsabs=1e-12)[0]
        for low, high in zip([-14, *points], [*points, 14], strict=True)
    )
    assert exponents_of(link).coefficient == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    "name", ["he2", "cosmix", "he4", "tanh", "relu", "sign", "he3", "sin(2*z)**2"]
)
@pytest.mark.parametrize(("factor", "shift"), [(2, 3), (-0.7, 40)])
def test_shift_and_scale_change_nothing(name, factor, shift):
    plain = exponents_of(make_link(name))
    moved = exponents_of(
        make_link(f"{factor}*({'z' if name == 'identity' else _of_z(name)}) + {shift}")
    )
    for field in ("information", "generative", "noise_sensitivity", "parity"):
        assert getattr(moved, field) == getattr(plain, field)
    if plain.coefficient is not None:
        sign = np.sign(factor) ** plain.noise_sensitivity
        assert moved.coefficient == pytest.approx(sign * plain.coefficient, rel=1e-9)


def _of_z(name):
    return "cos(z) - exp(1.5)/4*cos(2*z)" if name == "cosmix" else name


def test_a_band_without_second_moments_has_generative_exponent_four():
    # E[(z² - 1) 1(a < |z| < b)] = 2 (a phi(a) - b phi(b)) = 0
    a = 0.5
    b = brentq(lambda x: x * exp(-(x**2) / 2) - a * exp(-(a**2) / 2), 1, 4)
    found = exponents_of(make_link(f"step(abs(z) - {a}) - step(abs(z) - {b!r})"))
    assert (found.information, found.generative) == (4, 4)
    assert found.noise_sensitivity == inf
    assert found.coefficient is None


def test_a_staircase_has_noise_sensitivity_exponent_three():
    # Values v = 2, 0, 1, 3 on bands of |z| with m = E[(z² - 1) 1(band)] = s (-3, -1, 3, 1): the sums of
    # v m and v² m vanish, and that of v³ m is s (-24 + 3 + 27) = 6 s.
    def mass(x):
        return 2 * x * exp(-(x**2) / 2) / sqrt(2 * pi)

    s = 0.1
    a = brentq(lambda x: mass(x) - 3 * s, 0, 1)
    b = brentq(lambda x: mass(x) - 4 * s, 1, 9)
    c = brentq(lambda x: mass(x) - s, 1, 9)
    formula = f"2 - 2*step(abs(z)-{a!r}) + step(abs(z)-{b!r}) + 2*step(abs(z)-{c!r})"
    found = exponents_of(make_link(formula))
    assert (found.generative, found.noise_sensitivity) == (2, 3)
    deviation = make_link(formula).scale
    assert abs(found.coefficient) == pytest.approx(6 * s / deviation**3, rel=1e-6)


def test_exponents_beyond_quadrature_have_a_reason():
    fast = exponents_of(make_link("sin(30*z)"))
    # c_2 = omega² exp(-omega² / 2) / 2 with omega = 60 is not 0, but far below rounding.
    assert (fast.information, fast.generative, fast.noise_sensitivity) == (None, None, None)
    assert "degree 20" in fast.undetermined
    # exp(z² / 4.2) minus its part of degree 2: its square has the tail exp(-z² / 42).
    z, chance = make_link("abs").nodes()
    wide = np.exp(z**2 / 4.2)
    part = float((chance @ (wide * (z**2 - 1))) / 2)
    heavy = exponents_of(Link("wide", lambda z: np.exp(z**2 / 4.2) - part * z**2))
    assert (heavy.generative, heavy.noise_sensitivity, heavy.moments) == (2, None, (0.0,))
    assert "quadrature cannot compute E[sigma^2 (z² - 1)]" in heavy.undetermined


def test_a_moment_that_is_nearly_zero_leaves_the_next_to_decide():
    found = exponents_of(make_link("cos(z) - 1.12*cos(2*z)"))
    assert found.noise_sensitivity == pytest.approx(1)
    assert found.coefficient == pytest.approx(-4.199e-4, rel=1e-3)
    assert found.decisive_power(100.0) == pytest.approx(2)
    assert found.decisive_power(1e8) == pytest.approx(1)


def slopes(ratios, lambdas):
    return np.diff(np.log(ratios)) / np.diff(np.log(lambdas))


@pytest.mark.parametrize(
    ("name", "lambdas", "expected", "within"),
    [
        ("he2", [1e-2, 1e-3, 1e-4], [0.970, 0.997, 1.000], 1e-3),
        ("abs", [1e-2, 1e-3, 1e-4], [0.999, 1.000, 1.000], 1e-3),
        ("cosmix", [1e-1, 1e-2, 1e-3], [0.919, 0.984, 0.998], 1e-3),
        ("he4", [1e-2, 1e-3, 1e-4, 1e-5], [0.207, 0.371, 0.970, 0.997], 6e-3),
    ],
)
def test_thresholds_grow_with_noise_as_the_exponent_predicts(name, lambdas, expected, within):
    # Exact threshold over beta! / c_beta² lambda^-beta   (multi-index 14)
    link = make_link(name)
    found = exponents_of(link)
    exact = [
        float(AdditiveChannel((link,), (1.0,), 1 / snr).moments.weak_recovery_ratio[0])
        for snr in lambdas
    ]
    power = found.noise_sensitivity
    leading = [large_noise_ratio(power, found.coefficient, 1 / snr) for snr in lambdas]
    ratios = np.array(exact) / np.array(leading)
    assert ratios == pytest.approx(expected, abs=within)
    assert ratios[-1] == pytest.approx(1, abs=0.02)
    if name == "cosmix":
        # The slopes approach -2.
        assert slopes(exact, lambdas) == pytest.approx([-2.03, -2.006], abs=0.006)


def test_hierarchical_thresholds_follow_the_exponent():
    # Exponent 2 gamma beta = 3 in the limit   (multi-index 22); 2.974 over features 4 to 12
    k = np.arange(1, 13)
    channel = power_law_channel("cosmix", features=12, decay=0.75, noise=0.5)
    found = channel.moments.weak_recovery_ratio
    slope = np.polyfit(np.log(k[3:]), np.log(found[3:]), 1)[0]
    assert slope == pytest.approx(2.974, abs=0.01 * 2.974)


@pytest.mark.parametrize(
    ("name", "expected"), [("he4", 1.976), ("he6", 2.637), ("cosmix", 2.433), ("he2", 0.5)]
)
def test_information_at_large_noise(name, expected):
    # Constants of (multi-index 15) to three digits; for He_2 it is 1 / c_1², so there is no gap.
    assert large_noise_information_ratio(make_link(name), 1.0) == pytest.approx(expected, rel=3e-4)
