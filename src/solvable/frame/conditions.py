"""Conditions on the points that a claim covers: values of parameters and predictions, as data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Condition:
    """A condition on one number or word, with the words that follow its name in a sentence."""

    words: str
    holds: Callable[[Any], bool]


def at_least(limit: float) -> Condition:
    """Numbers from a limit on."""
    return Condition(f"of at least {limit:g}", lambda value: value >= limit)


def at_most(limit: float) -> Condition:
    """Numbers up to a limit."""
    return Condition(f"of at most {limit:g}", lambda value: value <= limit)


def above(limit: float) -> Condition:
    """Numbers above a limit."""
    return Condition(f"above {limit:g}", lambda value: value > limit)


def below(limit: float) -> Condition:
    """Numbers below a limit."""
    return Condition(f"below {limit:g}", lambda value: value < limit)


def between(low: float, high: float) -> Condition:
    """Numbers from one limit to another, with both limits."""
    return Condition(f"from {low:g} to {high:g}", lambda value: low <= value <= high)


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
    if callable(wanted):
        return bool(wanted(place))
    if name == "expected":
        value = place.expected
    elif hasattr(place.setting, name):
        value = getattr(place.setting, name)
    elif isinstance(wanted, Condition):
        value = place.predicted(name)
    else:  # a word, such as the name of a phase
        value = getattr(place, "point", place).prediction.get(name)
    return bool(wanted.holds(value) if isinstance(wanted, Condition) else value == wanted)


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
