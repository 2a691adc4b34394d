"""Bracketed roots: against SciPy's, few evaluations, flat and steep functions, bad brackets."""

import numpy as np
import pytest
from scipy.optimize import bisect

from solvable.errors import NotConverged
from solvable.spectra.roots import bracketed_root

FUNCTIONS = [
    (lambda x: x**3 - 2 * x - 5, 2.0, 3.0),
    (lambda x: np.exp(-x) - 0.3, 0.0, 30.0),
    (lambda x: np.tanh(200 * (x - 0.37)), -3.0, 3.0),
    (lambda x: (x - 1) ** 3, -1.0, 4.0),
    (lambda x: np.cbrt(x - 0.2), -1.0, 4.0),
    (lambda x: 1 / x - 1e6, 1e-9, 1.0),
]


@pytest.mark.parametrize(("function", "low", "high"), FUNCTIONS)
@pytest.mark.parametrize("turned", [False, True])
def test_roots_are_those_of_scipy(function, low, high, turned):
    calls = []

    def counted(x):
        calls.append(x)
        return function(x)

    ends = (high, low) if turned else (low, high)
    root = bracketed_root(counted, *ends, absolute=1e-13)
    expected = bisect(function, low, high, xtol=1e-13)
    # The triple root has an error of the cube root of rounding; elsewhere the tolerances add up.
    flat = function(low) == -8
    assert root == pytest.approx(expected, abs=1e-5 if flat else 3e-13, rel=1e-14)
    assert min(ends) <= min(calls) <= max(calls) <= max(ends)
    # At most slightly more than bisection, which needs log2 of width over tolerance.
    assert len(calls) <= 2 + 2 * np.log2((high - low) / 1e-13)


def test_smooth_functions_take_few_evaluations():
    calls = []

    def function(x):
        calls.append(x)
        return float(np.exp(x) - 3)

    ends = (function(0.0), function(2.0))
    calls.clear()
    root = bracketed_root(function, 0.0, 2.0, absolute=1e-13, ends=ends)
    assert root == pytest.approx(np.log(3), rel=1e-13)
    assert len(calls) <= 9
    assert not {0.0, 2.0} & set(calls)


def test_ends_that_are_roots():
    assert bracketed_root(lambda x: x, 0.0, 1.0) == 0.0
    assert bracketed_root(lambda x: x - 1, 0.0, 1.0) == pytest.approx(1.0)


def test_tiny_roots_keep_their_digits():
    root = bracketed_root(lambda x: x / 3e-200 - 1, 1e-300, 1e-100)
    assert root == pytest.approx(3e-200, rel=1e-14)


@pytest.mark.parametrize("function", [lambda x: x + 5, lambda x: float("nan"), lambda x: -1.0])
def test_a_bracket_without_a_root_is_refused(function):
    with pytest.raises(NotConverged, match="different sign"):
        bracketed_root(function, 0.0, 1.0)


def test_a_hole_in_the_function_is_refused():
    with pytest.raises(NotConverged, match="not a number"):
        bracketed_root(lambda x: x - 0.7 if abs(x - 0.5) > 0.1 else np.nan, 0.0, 1.0)
