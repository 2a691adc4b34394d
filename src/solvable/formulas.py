"""Formulas of one variable z, parsed by Python and evaluated from a fixed list of functions."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import factorial
from typing import Any

import numpy as np

from solvable.errors import InvalidParameter, quoted
from solvable.hermite import GAUSSIAN_RANGE, hermite_polynomials

Function = Callable[[np.ndarray], np.ndarray]

LONGEST_FORMULA = 500
"""Largest number of characters of a formula."""

CONSTANTS = {"pi": np.pi, "e": np.e}

HIGHEST_DEGREE = 20
"""Largest degree K of heK; quadrature of the square is inaccurate above."""


@dataclass(frozen=True)
class Formula:
    """A parsed formula: its function, and the points where the function or its slope may jump."""

    text: str
    function: Function  # elementwise on float64 arrays
    breakpoints: tuple[float, ...]  # ascending, within the range of Gaussian quadrature


def parse_formula(text: str) -> Formula:
    """Parse a formula in z; a bare name such as ``relu`` means relu(z)."""
    plain = text.strip()
    if not plain or len(plain) > LONGEST_FORMULA:
        raise InvalidParameter(
            f"a formula of {len(plain)} characters was given; allowed: 1 to {LONGEST_FORMULA}, such "
            "as 'tanh(2*z) + z**2'."
        )
    try:
        tree = ast.parse(plain, mode="eval")
        reader = _Reader(plain)
        function = reader.read(tree.body)
    except InvalidParameter:
        raise
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise InvalidParameter(
            f"the formula {quoted(plain)} does not parse: {getattr(error, 'msg', error)}; allowed: "
            f"{_GRAMMAR}"
        ) from None
    return Formula(plain, _silent(function), _breakpoints(reader))


def _silent(function: Function) -> Function:
    """Evaluate without warnings: -exp(1e3) is minus infinity, and max(z, -exp(1e3)) is z."""

    def evaluate(z: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            return function(z)

    return evaluate


_GRAMMAR = (
    "z, numbers, pi, e, + - * / **, and abs, cos, erf, exp, gelu, heK, log, max, min, relu, sigmoid, "
    "sign, silu, sin, softplus, sqrt, step, tan, tanh, as in 'cos(z) - 0.5*abs(z)'."
)


def _functions() -> dict[str, Callable[..., np.ndarray]]:
    return {
        "abs": np.abs,
        "cos": np.cos,
        "erf": partial(_special, "erf"),
        "exp": np.exp,
        "gelu": lambda t: t * _special("ndtr", t),
        "log": np.log,
        "max": np.maximum,
        "min": np.minimum,
        "relu": lambda t: np.maximum(t, 0.0),
        "sigmoid": partial(_special, "expit"),
        "sign": np.sign,
        "silu": lambda t: t * _special("expit", t),
        "sin": np.sin,
        "softplus": lambda t: np.logaddexp(t, 0.0),
        "sqrt": np.sqrt,
        "step": lambda t: np.heaviside(t, 0.5),
        "tan": np.tan,
        "tanh": np.tanh,
    }


def _special(name: str, t: np.ndarray) -> np.ndarray:
    """Return a function of SciPy, which is imported when needed."""
    from scipy import special

    return np.asarray(getattr(special, name)(t))


_OPERATORS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.divide,
    ast.Pow: np.power,
}


class _Reader:
    """Evaluates the syntax tree of a formula: arithmetic and a fixed list of functions."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.functions = _functions()
        # functions of z at whose roots the formula or its slope may jump
        self.switches: list[Function] = []
        # functions of z at whose roots a logarithm is infinite
        self.poles: list[Function] = []

    def read(self, node: ast.expr) -> Function:
        if isinstance(node, ast.Constant):
            return self._number(node.value)
        if isinstance(node, ast.Name):
            return self._name(node.id)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
            inner = self.read(node.operand)
            return inner if isinstance(node.op, ast.UAdd) else (lambda z: -inner(z))
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
            operator = _OPERATORS[type(node.op)]
            left, right = self.read(node.left), self.read(node.right)
            return lambda z: operator(left(z), right(z))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
            return self._call(node.func.id, node.args)
        hint = (
            " Powers are written **." if isinstance(getattr(node, "op", None), ast.BitXor) else ""
        )
        raise self._error(f"{quoted(ast.unparse(node))} is not arithmetic", hint)

    def _error(self, what: str, hint: str = "") -> InvalidParameter:
        return InvalidParameter(
            f"the formula {quoted(self.text)} is not understood: {what}; allowed: {_GRAMMAR}{hint}"
        )

    def _number(self, value: object) -> Function:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise self._error(f"{quoted(value)} is not a real number")
        try:
            number = np.float64(value)
        except OverflowError:
            raise self._error(f"{quoted(value)} is too large; numbers end at 1e308") from None
        return lambda z: np.full(np.shape(z), number)

    def _name(self, name: str) -> Function:
        if name == "z":
            return lambda z: z
        if name in CONSTANTS:
            return self._number(CONSTANTS[name])
        if name in ("min", "max"):
            raise self._error(f"{name!r} takes two or more arguments")
        return self._applied(name, lambda z: z)

    def _call(self, name: str, arguments: list[ast.expr]) -> Function:
        inner = [self.read(argument) for argument in arguments]
        if name in ("min", "max"):
            if len(inner) < 2:
                raise self._error(f"{name!r} takes two or more arguments")
            joined = inner[0]
            for other in inner[1:]:
                joined = self._extreme(name, joined, other)
            return joined
        if len(inner) != 1:
            raise self._error(f"{name!r} takes one argument, got {len(inner)}")
        return self._applied(name, inner[0])

    def _extreme(self, name: str, left: Function, right: Function) -> Function:
        self.switches.append(lambda z: left(z) - right(z))
        function = self.functions[name]
        return lambda z: function(left(z), right(z))

    def _applied(self, name: str, inner: Function) -> Function:
        degree = re.fullmatch(r"he([0-9]{1,2})", name.lower())
        if degree:
            return self._hermite(int(degree[1]), inner)
        if name not in self.functions:
            raise self._error(f"{name!r} is unknown")
        if name in ("abs", "relu", "sign", "step", "sqrt"):
            self.switches.append(inner)
        if name == "log":
            self.poles.append(inner)
        function = self.functions[name]
        return lambda z: function(inner(z))

    def _hermite(self, degree: int, inner: Function) -> Function:
        if degree > HIGHEST_DEGREE:
            raise self._error(f"he{degree} has a degree above {HIGHEST_DEGREE}")
        scale = np.sqrt(float(factorial(degree)))
        return lambda z: scale * _hermite_at(inner(z), degree)


def _hermite_at(t: np.ndarray, degree: int) -> np.ndarray:
    values = np.asarray(t, dtype=np.float64)
    return np.asarray(hermite_polynomials(values, degree)[degree])


def _breakpoints(reader: _Reader) -> tuple[float, ...]:
    """Return the edges of panels on which the formula is smooth, or nearly smooth at a logarithm."""
    poles = _roots(reader.poles)
    # panels that shrink by factors of ten resolve a logarithm
    beside = [root + sign * 10.0**-k for root in poles for sign in (-1, 1) for k in range(1, 9)]
    return tuple(sorted({*_roots(reader.switches), *poles, *beside}))


def _roots(switches: list[Function]) -> tuple[float, ...]:
    """Return the points where switch functions change sign or are zero."""
    # zero is a node, as most kinks are there; roots closer than 0.007 may be missed
    grid = np.linspace(-GAUSSIAN_RANGE, GAUSSIAN_RANGE, 4001)
    found: set[float] = set()
    for switch in switches:
        with np.errstate(all="ignore"):
            values = np.broadcast_to(np.asarray(switch(grid), dtype=np.float64), grid.shape)
            zeros = grid[values == 0]
            # a switch that is zero on an interval has kinks at its ends
            found |= {float(z) for z in (zeros if zeros.size < 50 else zeros[[0, -1]])}
            signs = np.sign(values)
            for place in np.flatnonzero(signs[:-1] * signs[1:] < 0):
                found.add(_bisected(switch, grid[place], grid[place + 1], signs[place]))
    return tuple(sorted(round(root, 14) + 0.0 for root in found))


def _bisected(switch: Function, low: float, high: float, sign: float) -> float:
    """Return the sign changes of a switch function, to rounding."""
    for _ in range(50):
        middle = (low + high) / 2
        same = float(np.sign(switch(np.array([middle]))[0])) == sign
        low, high = (middle, high) if same else (low, middle)
    return float(high)
