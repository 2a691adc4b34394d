"""Exact linear forms in symbols: exponents of the dimension, such as ``n1/2 + 1``."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import Any

from solvable.errors import InvalidParameter

LARGEST = 10**6
"""Largest numerator and denominator accepted in exponents."""


@dataclass(frozen=True, order=True)
class LinearForm:
    """Exact exponent c + sum_s a_s s, linear in symbols s."""

    constant: Fraction = Fraction(0)  # c
    coefficients: tuple[
        tuple[str, Fraction], ...
    ] = ()  # pairs (s, a_s), ascending by symbol s; every coefficient a_s is non-zero

    @classmethod
    def of(cls, constant: Fraction | int = 0, terms: Mapping[str, Any] | None = None) -> LinearForm:
        """Build a form from a constant and a mapping of symbols to coefficients."""
        held = sorted((name, Fraction(value)) for name, value in (terms or {}).items() if value)
        return cls(Fraction(constant), tuple(held))

    @classmethod
    def symbol(cls, name: str) -> LinearForm:
        """Build the form that is a single symbol."""
        return cls.of(0, {name: 1})

    @classmethod
    def parse(cls, text: object, name: str = "an exponent") -> LinearForm:
        """Read ``"7/3"``, ``"n1/2 + 1"`` or a number; raise an error if it is not linear."""
        if isinstance(text, LinearForm):
            return text
        if isinstance(text, bool) or not isinstance(text, (str, int, float, Fraction)):
            raise InvalidParameter(f"{name} is {text!r:.60}; allowed: {_ALLOWED}")
        plain = str(text).strip()
        try:
            if not plain or len(plain) > 200:
                raise ValueError
            with warnings.catch_warnings():
                # Text such as "1if 2" raises an error below, so that Python's own warning is suppressed.
                warnings.simplefilter("ignore")
                found = _read(ast.parse(plain, mode="eval").body)
            held = [found.constant, *(value for _, value in found.coefficients)]
            if any(max(abs(value.numerator), value.denominator) > LARGEST for value in held):
                raise ValueError
            return found
        except (SyntaxError, ValueError, RecursionError, MemoryError, ZeroDivisionError):
            raise InvalidParameter(f"{name} is {plain[:60]!r}; allowed: {_ALLOWED}") from None

    def __call__(self, point: Mapping[str, Fraction]) -> Fraction:
        """Compute the value at a point that gives every symbol a number."""
        return self.constant + sum(
            (value * point[name] for name, value in self.coefficients), _ZERO
        )

    def at(self, point: Mapping[str, Fraction]) -> LinearForm:
        """Substitute values for the symbols of ``point``."""
        rest = {name: value for name, value in self.coefficients if name not in point}
        given = (value * point[name] for name, value in self.coefficients if name in point)
        return LinearForm.of(self.constant + sum(given, _ZERO), rest)

    @property
    def symbols(self) -> frozenset[str]:
        """Names of the symbols of the form."""
        return frozenset(name for name, _ in self.coefficients)

    @property
    def number(self) -> Fraction | None:
        """Value of the form if it contains no symbols, else None."""
        return None if self.coefficients else self.constant

    def __add__(self, other: LinearForm | Fraction | int) -> LinearForm:
        right = other if isinstance(other, LinearForm) else LinearForm.of(other)
        terms = dict(self.coefficients)
        for name, value in right.coefficients:
            terms[name] = terms.get(name, _ZERO) + value
        return LinearForm.of(self.constant + right.constant, terms)

    __radd__ = __add__

    def __mul__(self, factor: Fraction | int) -> LinearForm:
        scaled = {name: value * Fraction(factor) for name, value in self.coefficients}
        return LinearForm.of(self.constant * Fraction(factor), scaled)

    __rmul__ = __mul__

    def __neg__(self) -> LinearForm:
        return self * -1

    def __sub__(self, other: LinearForm | Fraction | int) -> LinearForm:
        return self + (-other)

    def __truediv__(self, divisor: Fraction | int) -> LinearForm:
        return self * (Fraction(1) / Fraction(divisor))

    def __str__(self) -> str:
        """Write the form as text over one denominator: ``(n1+2*n2+1)/3``."""
        values = [value for _, value in self.coefficients] + [self.constant]
        below = 1
        for value in values:
            below = lcm(below, value.denominator)
        parts = [(value * below, name) for name, value in self.coefficients]
        parts += [(self.constant * below, "")] if self.constant or not parts else []
        # A positive term comes first if there is one: n-1, 1-n.
        parts.sort(key=lambda part: part[0] < 0)
        text = "".join(
            _term(int(value), name, first=not i) for i, (value, name) in enumerate(parts)
        )
        if below == 1:
            return text
        return f"({text})/{below}" if len(parts) > 1 else f"{text}/{below}"


_ZERO = Fraction(0)
_ALLOWED = "a rational number such as '7/3', or a sum of symbols such as 'n1/2 + 1'."


def _term(value: int, name: str, *, first: bool) -> str:
    sign = ("-" if value < 0 else "") if first else ("-" if value < 0 else "+")
    size = abs(value)
    body = str(size) if not name else name if size == 1 else f"{size}*{name}"
    return sign + body


def _read(node: ast.expr) -> LinearForm:
    if isinstance(node, ast.Constant) and not isinstance(node.value, bool):
        if isinstance(node.value, (int, float)) and abs(node.value) <= LARGEST:
            # Decimals are read exactly: 0.1 is one tenth.
            value = Fraction(str(node.value))
            if value.denominator <= LARGEST:
                return LinearForm(value)
        raise ValueError
    if isinstance(node, ast.Name):
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", node.id) or node.id in ("inf", "nan"):
            raise ValueError
        return LinearForm.symbol(node.id)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
        return _read(node.operand) * (-1 if isinstance(node.op, ast.USub) else 1)
    if isinstance(node, ast.BinOp):
        left, right = _read(node.left), _read(node.right)
        if isinstance(node.op, ast.Add):
            return left + right
        if isinstance(node.op, ast.Sub):
            return left - right
        if isinstance(node.op, ast.Mult) and None not in (left.number, right.number):
            return left * right.constant
        if isinstance(node.op, ast.Mult) and left.number is not None:
            return right * left.number
        if isinstance(node.op, ast.Mult) and right.number is not None:
            return left * right.number
        if isinstance(node.op, ast.Div) and right.number is not None:
            return left / right.number
    raise ValueError


MOST_SIMPLE = 6
"""Largest denominator with which a fraction stays exact in rounded texts."""


def about(text: str) -> str:
    """Round the exponents in a text to two digits, except simple fractions."""
    text = _FRACTION.sub(lambda match: _rounded(Fraction(int(match[1]), int(match[2]))), text)
    text = re.sub(r"\^\(([0-9.]+)\)", r"^\1", text)
    return re.sub(r"\bd\^0(?!\.?[0-9])", "O(1)", text)


def about_all(value: Any) -> Any:
    """Apply :func:`about` to all texts in a JSON value."""
    if isinstance(value, str):
        return about(value)
    if isinstance(value, dict):
        return {name: about_all(held) for name, held in value.items()}
    return [about_all(held) for held in value] if isinstance(value, list) else value


_FRACTION = re.compile(r"(?<![\w./])(-?[0-9]+)/([0-9]+)(?![\w/])")


def _rounded(value: Fraction) -> str:
    if value.denominator <= MOST_SIMPLE:
        return str(value)
    text = f"{float(value):.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def maximum(forms: Iterable[LinearForm]) -> str:
    """Write the largest of several forms: ``max((n+1)/2, 1)``, or a single form alone."""
    texts = [str(form) for form in forms]
    return texts[0] if len(texts) == 1 else f"max({', '.join(texts)})"


def bracketed(value: LinearForm | Fraction | str) -> str:
    """Write an exponent after ^, in brackets if it is a sum or a fraction."""
    text = str(value)
    simple = text.startswith("max(") or not any(sign in text for sign in "+-*/")
    return text if simple else f"({text})"


def power(base: str, form: LinearForm | Fraction) -> str:
    """Write a power such as ``d^(n1/2+1)``; the exponent 0 gives 1."""
    return {"0": "1", "1": base}.get(str(form), f"{base}^{bracketed(form)}")


def without_dominated(forms: Iterable[LinearForm]) -> tuple[LinearForm, ...]:
    """Drop forms that never attain the maximum at non-negative sizes; sort the steepest form first."""
    kept: list[LinearForm] = []
    for form in sorted(set(forms), key=lambda form: (-len(form.coefficients), form)):
        if any(never_below(other, form) for other in kept):
            continue
        kept = [other for other in kept if not never_below(form, other)] + [form]
    return tuple(
        sorted(kept, key=lambda form: [-value for _, value in form.coefficients] or [_ZERO])
    )


def never_below(upper: LinearForm, lower: LinearForm) -> bool:
    """Return True if one form is at least another at all non-negative sizes."""
    excess = upper - lower
    return excess.constant >= 0 and all(value >= 0 for _, value in excess.coefficients)
