"""Equations of lines in a phase diagram, written in exponents and in powers of d."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from fractions import Fraction

from solvable.scale.exponents.linear_forms import LinearForm


def solved(line: LinearForm, axes: Sequence[str]) -> tuple[str, LinearForm]:
    """Solve the equation of a line for the first axis that it contains."""
    slopes = dict(line.coefficients)
    symbol = next(axis for axis in axes if slopes.get(axis))
    return symbol, LinearForm.symbol(symbol) - line / slopes[symbol]


def equation(line: LinearForm, axes: Sequence[str]) -> str:
    """Write the line on which a form is zero, solved for its first axis, as in n1 = (n2+1)/2."""
    symbol, form = solved(line, axes)
    return f"{symbol} = {form}"


def power_equation(line: LinearForm, axes: Sequence[str]) -> str:
    """Write the same line in powers of d, as in N_1 = sqrt(N_2 d)."""
    symbol, form = solved(line, axes)
    return f"{power(symbol)} = {power_text(form)}"


def power(symbol: str) -> str:
    """Write the size with a given exponent: N_1 for n1; d^kappa if the symbol has no letter."""
    # The single letters d and m are taken: d is the base, and m a degree.
    letter = re.fullmatch(r"([a-ce-ln-z])_?(\d*)", symbol)
    if not letter:
        return f"d^{symbol}"
    return letter[1].upper() + (f"_{letter[2]}" if letter[2] else "")


def power_text(form: LinearForm) -> str:
    """Write d to a linear form as a product of powers: (N_1 N_2 d)^(1/3), sqrt(N_1³ / d²)."""
    sizes = {power(symbol): slope for symbol, slope in form.coefficients}
    alone = LinearForm.of(form.constant)
    for symbol in sorted(form.symbols):
        if power(symbol) == f"d^{symbol}":
            alone = alone + LinearForm.symbol(symbol) * sizes.pop(f"d^{symbol}")
    factor = f"d^({alone})" if alone.symbols else ""
    if alone.constant and not factor:
        sizes["d"] = alone.constant
    return " ".join(part for part in (factor, _product(sizes)) if part) or "1"


def _product(sizes: Mapping[str, Fraction]) -> str:
    """Write sizes with their powers under one root."""
    below = math.lcm(*(number.denominator for number in sizes.values()))
    if len(sizes) == 1:
        name, number = next(iter(sizes.items()))
        if number not in (1, Fraction(1, 2)):
            return f"{name}^{number}" if below == 1 and number > 0 else f"{name}^({number})"
    above = [_raised(name, int(number * below)) for name, number in sizes.items() if number > 0]
    under = [_raised(name, int(-number * below)) for name, number in sizes.items() if number < 0]
    product = " ".join(above) or ("1" if under else "")
    if under:
        product += f" / {under[0] if len(under) == 1 else '(' + ' '.join(under) + ')'}"
    if below == 1:
        return product
    return f"sqrt({product})" if below == 2 else f"({product})^(1/{below})"


def _raised(name: str, count: int) -> str:
    return name if count == 1 else f"{name}^{count}"
