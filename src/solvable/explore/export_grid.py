"""Grid of settings of an exported page: values of each slider, and limits of size and time."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from solvable.errors import InvalidParameter, quoted, unknown_choice
from solvable.explore.controls import Control, controls
from solvable.frame.system import System

MOST_SLIDERS = 3
MOST_SETTINGS = 500
DEFAULT_COUNT = 7

Along = Mapping[str, int | Sequence[Any]]


@dataclass(frozen=True)
class Slider:
    """A parameter of an exported page, and its values in the order of the slider."""

    control: Control
    values: tuple[Any, ...]


def sliders_of(system: System, along: Along | None, start: Mapping[str, Any]) -> list[Slider]:
    """Return the sliders of a page; by default the first two numbers that the panels do not draw along.

    A count spreads values over the slider of the parameter; values may also be given.
    """
    known = {control.name: control for control in controls(system)}
    chosen: Along = _default(known.values()) if along is None else along
    if len(chosen) > MOST_SLIDERS:
        raise InvalidParameter(
            f"along has {len(chosen)} parameters; allowed: up to {MOST_SLIDERS} sliders on one page. "
            "Leave some out."
        )
    found = []
    for name, wanted in chosen.items():
        if name not in known:
            raise InvalidParameter(unknown_choice("along", name, known))
        values = _values(known[name], wanted, start.get(name, known[name].default))
        found.append(Slider(known[name], values))
    count = math.prod(len(slider.values) for slider in found)
    if count > MOST_SETTINGS:
        shape = " x ".join(str(len(slider.values)) for slider in found)
        raise InvalidParameter(
            f"along has {shape} = {count} settings; allowed: up to {MOST_SETTINGS} on one page. Give "
            "fewer values or sliders."
        )
    return found


def settings_of(sliders: Sequence[Slider]) -> list[dict[str, Any]]:
    """Return all combinations of values, the last slider varying fastest."""
    names = [slider.control.name for slider in sliders]
    rows = itertools.product(*(slider.values for slider in sliders))
    return [dict(zip(names, row, strict=True)) for row in rows]


def _default(known: Any) -> dict[str, int]:
    numbers = [c.name for c in known if c.kind == "slider" and not c.axis and not c.integer]
    whole = [c.name for c in known if c.kind == "slider" and not c.axis and c.integer]
    return dict.fromkeys([*numbers, *whole][:2], DEFAULT_COUNT)


def _values(control: Control, wanted: Any, here: Any) -> tuple[Any, ...]:
    """Return the values of a slider; with a count, the one nearest to `here` is replaced by it."""
    if isinstance(wanted, bool) or not isinstance(wanted, int):
        values: list[Any] = [wanted] if isinstance(wanted, str | bool) else list(wanted)
        if not values:
            raise InvalidParameter(f"along gives no value of {control.name}; give at least one.")
        return tuple(dict.fromkeys(values))
    if wanted < 1:
        raise InvalidParameter(f"along has {wanted} values of {control.name}; allowed: 1 or more.")
    if control.kind != "slider":
        return control.values[:wanted]
    if wanted == 1:
        return (here,)
    if wanted > MOST_SETTINGS:
        raise InvalidParameter(
            f"along has {quoted(wanted)} values of {control.name}; allowed: up to {MOST_SETTINGS}."
        )
    spread = np.geomspace if control.scale == "log" else np.linspace
    places = spread(control.low, control.high, wanted)
    if isinstance(here, int | float) and control.low <= here <= control.high:
        places[int(np.abs(places - here).argmin())] = here
    if control.integer:
        return tuple(dict.fromkeys(round(place) for place in places.tolist()))
    return tuple(float(f"{place:.4g}") if place != here else here for place in places.tolist())
