"""Link functions: parsing of formulas, moments, correlations and refused texts."""

from __future__ import annotations

import pickle
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from solvable.errors import InvalidParameter, SolvableError
from solvable.formulas import parse_formula
from solvable.links import make_link


def expectation(link, function):
    z, chance = link.nodes()
    return float(chance @ function(link(z), z))


@pytest.mark.parametrize(
    ("name", "parity", "first", "second"),
    [
        ("he2", "even", np.sqrt(2), 4.0),
        ("abs", "even", 1.3236, 2.0),
        ("cos(z)", "even", -1.3570, 2.3279),
        ("exp(-z**2/2)", "even", -1.2712, 1.4880),
        ("z**2*exp(-z**2/2)", "even", 0.6807, 0.0489),
        ("step(abs(z) - 1)", "even", 1.0398, 0.8163),
        ("he4", "even", 0.0, 8.0),
        ("he6", "even", 0.0, 12.0),
        ("he4 + he6", "even", 0.0, 13.81),
        ("cosmix", "even", 0.0, 1.7449),
        ("tanh", "odd", 0.0, 0.922),
        ("sigmoid", "odd", 0.0, 1.438),
        ("relu", "none", 0.683, 2.0),
        ("silu", "none", 0.627, 2.20),
        ("sign", "odd", 0.0, 0.0),
    ],
)
def test_standardised_links_have_known_moments(name, parity, first, second):
    link = make_link(name)
    assert expectation(link, lambda s, z: s) == pytest.approx(0, abs=1e-9)
    assert expectation(link, lambda s, z: s**2) == pytest.approx(1, rel=1e-6)
    assert link.parity == parity
    assert expectation(link, lambda s, z: s * (z**2 - 1)) == pytest.approx(first, abs=5e-4)
    assert expectation(link, lambda s, z: s**2 * (z**2 - 1)) == pytest.approx(second, abs=6e-3)


def test_correlation_is_that_of_two_correlated_coordinates():
    rng = np.random.default_rng(0)
    z, other = rng.standard_normal((2, 400_000))
    q = 0.6
    # kappa(q) is the variance of E[sigma(z) | u] for u of correlation sqrt(q) with z. It equals
    # E[sigma(z) sigma(z')] for z' of correlation q with z.
    near = q * z + np.sqrt(1 - q**2) * other
    for name in ("abs", "relu", "cosmix", "sign"):
        link = make_link(name)
        product = link(z) * link(near)
        error = product.std() / np.sqrt(z.size)
        assert product.mean() == pytest.approx(float(link.correlation(q)), abs=4 * error)
        slope = (link.correlation(q + 1e-4) - link.correlation(q - 1e-4)) / 2e-4
        assert float(link.correlation_slope(q)) == pytest.approx(float(slope), rel=1e-5)


def test_breakpoints_are_where_the_formula_bends():
    assert parse_formula("relu(z - 0.3) + abs(2*z + 1)").breakpoints == (-0.5, 0.3)
    assert parse_formula("min(z, 1.25)").breakpoints == (1.25,)
    assert parse_formula("cos(z)**2").breakpoints == ()


@given(st.floats(-3, 3), st.floats(0.1, 3), st.floats(-2, 2))
def test_formulas_agree_with_numpy(shift, scale, power):
    z = np.linspace(-4, 4, 17)
    found = parse_formula(f"({scale!r}*z + {shift!r})**2 - exp({power!r}*z)/pi").function(z)
    assert found == pytest.approx((scale * z + shift) ** 2 - np.exp(power * z) / np.pi)


@given(st.text(alphabet="z0123456789+-*/()., heabsrelu_'[]{}:=!%&|^~<>\n", max_size=40))
def test_no_text_does_anything_but_parse_or_be_refused(text):
    with suppress(InvalidParameter):
        assert np.isfinite(make_link(text)(np.array([0.3]))).all()


@pytest.mark.parametrize(
    "text",
    ["", "3", "z - z", "2z", "z^2", "__import__('os')", "z.real", "(lambda: z)()", "q + z", "log(z)",
     "z**0.5", "exp(z**2)", "1/z", "tan(z)", "cos(200*z)", "relu(z, z)", "min(z)", "he99", "[z]",
     "z if z else 1", "'z'", "True*z", "1e300*z**2",
     "1e-160*z**2", "9**9**9**9*z", "(" * 400 + "z" + ")" * 400, "z" * 600],
)  # fmt: skip
def test_what_is_no_link_is_refused_with_what_is_allowed(text):
    with pytest.raises(SolvableError, match="allowed"):
        make_link(text)


def test_links_travel_to_workers():
    for link in (make_link("cosmix"), make_link("abs(z)", standardised=False)):
        again = pickle.loads(pickle.dumps(link))
        assert again == link
        assert again(np.array([0.3])) == link(np.array([0.3]))


@pytest.mark.torch
@pytest.mark.parametrize("name", [
    "celu", "elu", "hardsigmoid", "hardswish", "hardtanh", "leaky_relu", "logsigmoid", "mish", "relu6",
    "selu", "softsign", "tanhshrink",
])  # fmt: skip
def test_activations_of_torch(name):
    torch = pytest.importorskip("torch")
    z = np.linspace(-9, 9, 1001)
    theirs = getattr(torch.nn.functional, name)(torch.tensor(z)).numpy()
    np.testing.assert_allclose(make_link(name).function(z), theirs, atol=1e-14)
