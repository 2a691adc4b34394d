"""Lists, counts and percents in sentences."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence


def counted(number: int, noun: str, plural: str = "") -> str:
    """Write a number with its noun."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def listed(names: Sequence[str], most: int = 4) -> str:
    """Write names as a list; with more than `most`, the first few and the number of the others."""
    if len(names) > most:
        return f"{', '.join(names[: most - 1])} and {len(names) - most + 1} more"
    return " and ".join([", ".join(names[:-1])] * (len(names) > 1) + list(names[-1:]))


def quoted_names(names: Iterable[str], most: int = 5) -> str:
    """Quote names for a message; with more than `most`, the first few and the number of the others."""
    names = list(names)
    shown = ", ".join(repr(name[:80]) for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def percent(value: float | None, precision: float | None = None) -> str:
    """Write a share as a percentage, with digits that fit the width of its interval."""
    if value is None:
        return "–"
    # one decimal; two for an interval below half a percent, none from 20 percent
    digits = 1 if precision is None else 2 if precision < 0.005 else 0 if precision >= 0.2 else 1
    text = f"{100 * value:.{digits}f}".replace("-", "−")
    return f"{text} %" if float(text.replace("−", "-")) else f"{text.removeprefix('−')} %"


def percents(value: float | None, lower: float | None, upper: float | None) -> tuple[str, str]:
    """Write a share and its interval with equal digits; dashes without a value."""
    if value is None or lower is None or upper is None:
        return "–", "–"
    if math.isinf(upper):
        return percent(value, value), "no interval"
    precision = upper - lower
    ends = [percent(end, precision).removesuffix(" %") for end in (lower, upper)]
    return percent(value, precision), f"{ends[0]} to {ends[1]} %"
