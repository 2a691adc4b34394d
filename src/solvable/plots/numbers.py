"""Numbers as text, with digits that fit their error."""

from __future__ import annotations

import math
import sys
from decimal import ROUND_HALF_EVEN, Decimal

MISSING = "–"
"""Text of a missing number."""

_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_PLAIN_ABOVE, _PLAIN_BELOW = 6, -4
"""Range of decimal exponents of numbers that are written without a power of ten."""


def _exponent(value: float, digits: int) -> int:
    """Return the decimal exponent of the first digit after rounding to these digits."""
    return int(f"{value:.{digits - 1}e}".partition("e")[2])


def superscript(exponent: int) -> str:
    """Return a whole number as a superscript."""
    return str(exponent).translate(_SUPERSCRIPTS)


def _fixed(value: float | Decimal, last: int) -> str:
    """Round at the decimal place ``10**last``, and write without a power of ten or "-0"."""
    place = Decimal(1).scaleb(last)
    rounded = (Decimal(value) / place).to_integral_value(ROUND_HALF_EVEN) * place
    text = format(rounded if rounded else abs(rounded), f".{max(-last, 0)}f")
    return text.replace("-", "−")


def _scaled(value: float, power: int) -> Decimal:
    return Decimal(value).scaleb(-power)


def _not_finite(value: float) -> str:
    if math.isnan(value):
        return MISSING
    return "∞" if value > 0 else "−∞"


def format_number(value: float | str | None, digits: int = 4) -> str:
    """Write a number with a fixed count of significant digits.

    Parameters
    ----------
    value : float, str or None
        None and NaN give a dash; words, such as the name of a phase, stay as they are.
    digits : int
        Significant digits; trailing zeros are dropped.

    Returns
    -------
    str
        Plain between 0.0001 and a million, with a power of ten outside.

    Examples
    --------
    >>> format_number(0.123456), format_number(410950), format_number(1.5e-7), format_number(None)
    ('0.1235', '410950', '1.5 × 10⁻⁷', '–')
    """
    if isinstance(value, str):
        return value
    if value is None or not math.isfinite(value):
        return MISSING if value is None else _not_finite(value)
    if value == 0:
        return "0"
    if float(value).is_integer() and abs(value) < 10**_PLAIN_ABOVE:
        return f"{int(value)}".replace("-", "−")
    first = _exponent(value, digits)
    if _PLAIN_BELOW <= first < _PLAIN_ABOVE:
        text = _fixed(value, min(first - digits + 1, 0))
        return text.rstrip("0").rstrip(".") if "." in text else text
    text = _fixed(_scaled(value, first), 1 - digits)
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return f"{text} × 10{superscript(first)}"


def format_with_error(value: float | None, error: float | None) -> str:
    """Write a value with its standard error, both rounded at the error's second digit.

    Parameters
    ----------
    value : float or None
        None and NaN give a dash.
    error : float or None
        Standard error, not negative; 0 if it is below the rounding of the value. If it is unknown,
        four digits of the value are shown without it.

    Returns
    -------
    str
        ``value ± error``.

    Examples
    --------
    >>> format_with_error(0.93127, 0.0123), format_with_error(410950.0, 1234.0)
    ('0.931 ± 0.012', '411000 ± 1200')
    >>> format_with_error(1.2345e8, 2.1e6), format_with_error(0.5, None)
    ('(1.234 ± 0.021) × 10⁸', '0.5')
    >>> format_with_error(1 - 1.2e-11, 3.4e-12)
    '0.9999999999880 ± 0.0000000000034'
    """
    if value is None or not math.isfinite(value) or error is None or math.isnan(error):
        return format_number(value)
    error = abs(error)
    if error <= sys.float_info.epsilon * abs(value) or math.isinf(error):  # 0, or rounding
        return f"{format_number(value)} ± {'∞' if math.isinf(error) else '0'}"
    last = _exponent(error, 2) - 1
    first = max(_exponent(value, 4) if value else last, last + 1)
    digits = 15  # significant decimal digits of a double
    if first - last > digits:
        return f"{format_number(value, digits)} ± {format_number(error, 2)}"
    if _PLAIN_BELOW <= first < _PLAIN_ABOVE and last >= -9:
        return f"{_fixed(value, last)} ± {_fixed(error, last)}"
    mantissa = f"{_fixed(_scaled(value, first), last - first)} ± "
    mantissa += _fixed(_scaled(error, first), last - first)
    if first == 0:
        return mantissa
    return f"({mantissa}) × 10{superscript(first)}"


def format_duration(seconds: float) -> str:
    """Write a duration: ``8 s``, ``2 min 05 s`` or ``3 h 20 min``."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
