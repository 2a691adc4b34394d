"""Conditions on the points that a claim covers: values of parameters and predictions, as data."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Condition:
    """A condition on one number or word, with the words that follow its name in a sentence."""

    words: str
    holds: Callable[..., bool]
    """Function of the value, and of the number that limits are multiplied by, if there is one."""
    of: str = ""
    """Name of the number that limits are multiplied by; empty for none."""


def _compared(words: str, compare: Callable[[Any, Any], Any], limit: float, of: str) -> Condition:
    def holds(value: Any, unit: float = 1.0) -> bool:
        return bool(compare(value, limit * unit))

    return Condition(f"{words} {limit:g}{of and f' times {of}'}", holds, of)


def at_least(limit: float, of: str = "") -> Condition:
    """Numbers from a limit on; in units of the setting or prediction `of`, if given."""
    return _compared("of at least", operator.ge, limit, of)


def at_most(limit: float, of: str = "") -> Condition:
    """Numbers up to a limit; in units of the setting or prediction `of`, if given."""
    return _compared("of at most", operator.le, limit, of)


def above(limit: float, of: str = "") -> Condition:
    """Numbers above a limit; in units of the setting or prediction `of`, if given."""
    return _compared("above", operator.gt, limit, of)


def below(limit: float, of: str = "") -> Condition:
    """Numbers below a limit; in units of the setting or prediction `of`, if given."""
    return _compared("below", operator.lt, limit, of)


def between(low: float, high: float) -> Condition:
    """Numbers from one limit to another, with both limits."""
    return Condition(f"from {low:g} to {high:g}", lambda value: low <= value <= high)


def inside(low: float, high: float) -> Condition:
    """Numbers between two limits, without the limits."""
    return Condition(f"between {low:g} and {high:g}", lambda value: low < value < high)


def one_of(*allowed: Any) -> Condition:
    """Any of several values."""
    return Condition(" or ".join(map(str, allowed)), lambda value: value in allowed)


def not_(refused: Any) -> Condition:
    """Every value but one."""
    return Condition(f"other than {refused}", lambda value: value != refused)


Where = (
    Callable[[Any], bool] | Mapping[str, Any] | Sequence[Callable[[Any], bool] | Mapping[str, Any]]
)
"""Points or cells that a claim covers: a function, a mapping from names to values or conditions, or
several of both, which must all hold.

A name is `expected`, an attribute of the setting, or the name of a prediction. A function in a mapping
is a condition that is computed from the point or cell; its name then describes it in a sentence."""


def covers(where: Where | None, place: Any) -> bool:
    """Return True if a claim covers a point or cell; parts are checked in order until one fails."""
    if where is None:
        return True
    if callable(where):
        return bool(where(place))
    if isinstance(where, Mapping):
        return all(_holds(place, name, wanted) for name, wanted in where.items())
    return all(covers(part, place) for part in where)


def _holds(place: Any, name: str, wanted: Any) -> bool:
    if not isinstance(wanted, Condition):
        if callable(wanted):
            return bool(wanted(place))
        if hasattr(place.setting, name):
            return bool(getattr(place.setting, name) == wanted)
        # a word, such as the name of a phase
        return bool(getattr(place, "point", place).prediction.get(name) == wanted)
    numbers = [_number(place, one) for one in (name, wanted.of) if one]
    return bool(wanted.holds(*numbers))


def _number(place: Any, name: str) -> Any:
    """Return the expected value, an attribute of the setting, or a prediction."""
    if name == "expected":
        return place.expected
    return getattr(place.setting, name) if hasattr(place.setting, name) else place.predicted(name)


def advice_of(claim: Any, points: Sequence[Any], first: str = "") -> str:
    """Return why a claim covers no point, if its conditions are data, and then its own advice."""
    if not isinstance(claim.where, Mapping):
        return str(claim.missing)
    parts = [first] if first else []
    parts += [_words(claim, name, wanted, points) for name, wanted in claim.where.items()]
    sentence = f"no point has {', '.join(parts[:-1])}{' and ' if parts[1:] else ''}{parts[-1]}"
    return "; ".join(filter(None, [sentence, claim.missing]))


def _words(claim: Any, name: str, wanted: Any, points: Sequence[Any]) -> str:
    """Describe one condition, such as "dimension of at least 20" or "task=boolean"."""
    if callable(wanted):
        return name
    if name == "expected":
        source = claim.metric if claim.expected is None else claim.expected
        name = f"a predicted {source}" if isinstance(source, str) else "an expected value"
    elif points and not hasattr(points[0].setting, name):
        name = f"a predicted {name}"
    if isinstance(wanted, Condition):
        return f"{name} {wanted.words}"
    return f"{name}={str(wanted).lower() if isinstance(wanted, bool) else wanted}"
