"""Controls of a page, one for each parameter of a system."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args, get_origin

from pydantic.fields import FieldInfo

from solvable.explore.span import preset_values
from solvable.frame.system import System

Kind = Literal["slider", "choice", "text"]

DECADES = 1.3
"""A slider whose positive range is wider than this many powers of ten is logarithmic."""


@dataclass(frozen=True)
class Control:
    """How a parameter is set on a page.

    A slider runs from `low` to `high`; values up to `least` and `most` are allowed as well, for
    example in a field next to the slider. A logarithmic slider from zero has `first` as its next
    value. A choice has `values`.
    """

    name: str
    kind: Kind
    description: str
    default: Any
    low: float = 0.0
    high: float = 0.0
    first: float = 0.0  # smallest positive value of a logarithmic slider
    scale: Literal["log", "linear"] = "linear"
    integer: bool = False
    step: float | None = None  # of a linear slider
    least: float | None = None
    most: float | None = None
    values: tuple[Any, ...] = ()
    axis: bool = False  # the parameter along which panels are drawn

    def at(self, share: float) -> float:
        """Return the value at a place of the slider, 0 to 1, as explore.js computes it."""
        if self.scale == "log":
            value = self.first * (self.high / self.first) ** share if share or self.low else 0.0
        else:
            value = self.low + share * (self.high - self.low)
        return (
            round(value) if self.integer else float(f"{value:.{3 if self.scale == 'log' else 6}g}")
        )


def controls(system: System) -> list[Control]:
    """Return a control for each parameter, in the order of the fields."""
    fields = system.parameters.model_fields
    return [_control(system, name, field) for name, field in fields.items()]


def _control(system: System, name: str, field: FieldInfo) -> Control:
    kind = field.annotation
    description = " ".join((field.description or "").split())
    default = None if field.is_required() else field.get_default(call_default_factory=True)
    along = system.axis is not None and system.axis.parameter == name
    if kind is bool:
        return Control(name, "choice", description, default, values=(False, True), axis=along)
    if get_origin(kind) is Literal:
        return Control(name, "choice", description, default, values=get_args(kind), axis=along)
    if kind not in (int, float):
        # Words such as names of links, and lists: values of the presets are suggestions.
        values = tuple(dict.fromkeys([default, *preset_values(system, name)]))
        return Control(name, "text", description, default, values=values, axis=along)
    return _slider(system, name, field, description, default, along=along)


def _slider(
    system: System, name: str, field: FieldInfo, description: str, default: Any, *, along: bool
) -> Control:
    """Return a slider around the default and the values of the presets, within the constraints."""
    least, most = _bounds(field)
    whole = field.annotation is int
    known = [float(value) for value in [default, *preset_values(system, name)] if value is not None]
    low, high = _range(known or [1.0], least, most, along=along, whole=whole)
    if whole:
        low, high = math.floor(low), math.ceil(high)
    positive = min([value for value in known if value > 0], default=high)
    log = low >= 0 and math.log10(high / (low or positive)) > DECADES
    # Below the smallest positive value of the presets there is one more decade down to zero.
    first = low or (max(1.0, positive / 10) if whole else positive / 10)
    step = None if log else 1.0 if whole else _round_step(high - low)
    return Control(
        name,
        "slider",
        description,
        default,
        low=low,
        high=high,
        first=first if log else 0.0,
        scale="log" if log else "linear",
        integer=whole,
        step=step,
        least=least,
        most=most,
        axis=along,
    )


def _bounds(field: FieldInfo) -> tuple[float | None, float | None]:
    """Return the smallest and largest allowed values; an excluded bound is the next float."""
    least: float | None = None
    most: float | None = None
    for rule in field.metadata:
        if (value := getattr(rule, "ge", None)) is not None:
            least = float(value)
        if (value := getattr(rule, "gt", None)) is not None:
            least = math.nextafter(float(value), math.inf)
        if (value := getattr(rule, "le", None)) is not None:
            most = float(value)
        if (value := getattr(rule, "lt", None)) is not None:
            most = math.nextafter(float(value), -math.inf)
    return least, most


def _range(
    known: Sequence[float], least: float | None, most: float | None, *, along: bool, whole: bool
) -> tuple[float, float]:
    """Return the range of a slider: that of the known values, wider if these are close together."""
    low, high = min(known), max(known)
    floor = -math.inf if least is None else least
    top = math.inf if most is None else most
    if high <= 0:
        high = min(top, 20.0 if whole else 1.0)
    elif not along and high < 10 * low:
        wide = 4.0 if low == high else 2.0
        low, high = low / wide, min(top, high * wide)
    elif low == 0 and len(set(known)) == 2:
        high = min(top, 2 * high)
    # A range that ends near an allowed bound reaches it; zero counts as near for numbers about one.
    if floor > -math.inf and (low <= floor * 4 or (floor == 0 and low <= 0.5 and high < 10)):
        low = floor
    low = max(floor, low)
    return (low, high) if high > low else (low, min(top, low + 1))


def _round_step(width: float) -> float:
    """Return a step of one, two or five times a power of ten, about 1/200 of the range."""
    step = width / 200
    power = 10.0 ** math.floor(math.log10(step))
    return next(m * power for m in (1, 2, 5, 10) if m * power >= step * 0.999)
