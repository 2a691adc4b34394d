"""Order of checkpoints by the step or epoch in their names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

_NUMBER = re.compile(r"(\d+(?:\.\d+)?)([kKmM](?![A-Za-z]))?")
_FACTOR = {"k": 1e3, "m": 1e6}

# Names of weights before and after training, which often have no number.
_FIRST = re.compile(r"(?:^|[^a-z])(?:init|initial|start|before|random)(?:$|[^a-z])", re.IGNORECASE)
_LAST = re.compile(r"(?:^|[^a-z])(?:final|last|end|after)(?:$|[^a-z])", re.IGNORECASE)

# Words before a number, in the order in which they are preferred.
_UNITS = ("step", "iteration", "iter", "batch", "token", "checkpoint", "epoch")


class Numbered(NamedTuple):
    """Positions of checkpoints along training, and their meaning."""

    numbers: tuple[float, ...]  # one per name
    unit: str  # "step", "epoch", "number in the name"
    unnumbered: tuple[str, ...] = ()  # names placed first or last by a word such as "final"


class _Field(NamedTuple):
    before: str  # text between the number before, or the start, and this number
    value: float


def numbers_of(names: Sequence[str]) -> Numbered | None:
    """Return the number by which names differ; None if there is none that all names have."""
    ends = {
        name: -1 if _FIRST.search(name) else 1
        for name in names
        if _FIRST.search(name) or _LAST.search(name)
    }
    fields = {name: _fields(name) for name in names}
    ordinary = [name for name in names if fields[name] and name not in ends]
    if len(ordinary) + len(ends) < len(names) or not ordinary:
        ordinary, ends = list(names), {}
    common = set.intersection(*({part.before for part in fields[name]} for name in ordinary))
    varying = [
        before
        for before in dict.fromkeys(part.before for part in fields[ordinary[0]])
        if before in common
        and (
            len({_value(fields[name], before) for name in ordinary}) == len(ordinary)
            or len(ordinary) == 1
        )
    ]
    if not varying:
        return None
    chosen = min(varying, key=_preference)
    values = {name: _value(fields[name], chosen) for name in ordinary}
    low, high = min(values.values()), max(values.values())
    gap = (high - low) / max(len(values) - 1, 1) or 1.0
    start = 0.0 if low > 0 else low - gap
    for name, side in ends.items():
        own = [part.value for part in fields[name] if part.before == chosen]
        values[name] = own[0] if own else (start if side < 0 else high + gap)
    unit = next((unit for unit in _UNITS if unit in chosen.lower()), "")
    unit = {"iter": "step", "iteration": "step", "batch": "step", "checkpoint": "step"}.get(
        unit, unit
    )
    without = tuple(name for name in ends if not any(p.before == chosen for p in fields[name]))
    return Numbered(tuple(values[name] for name in names), unit or "number in the name", without)


def _fields(name: str) -> list[_Field]:
    found, end = [], 0
    for match in _NUMBER.finditer(name):
        factor = _FACTOR.get((match.group(2) or "").lower(), 1.0)
        found.append(_Field(name[end : match.start()], float(match.group(1)) * factor))
        end = match.end()
    return found


def _value(parts: list[_Field], before: str) -> float:
    return next(part.value for part in parts if part.before == before)


def _preference(before: str) -> int:
    word = before.lower()
    return next((place for place, unit in enumerate(_UNITS) if unit in word), len(_UNITS))


def natural(name: str) -> list[tuple[int, str]]:
    """Sort key that compares numbers in names as numbers."""
    return [
        (int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", name)
    ]
