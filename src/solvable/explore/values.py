"""Values of controls: read from an address, and turned into settings of a system."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qsl

from solvable.errors import InvalidParameter, quoted, unknown_choice
from solvable.explore.controls import Control
from solvable.frame.system import System
from solvable.study.parameters import validate_parameters

RESERVED = ("panel", "points")
"""Words of the address that are no parameters."""


def settings_of(named: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of controls; an empty control leaves its parameter at the default."""
    settings = {}
    for name, value in named.items():
        if value is None or value == "":
            continue
        if isinstance(value, str) and value.lstrip().startswith("["):
            try:
                value = json.loads(value)
            except json.JSONDecodeError as error:
                raise InvalidParameter(
                    f"{name} is {quoted(value)}, not a list ({error.msg}); write it as in JSON, "
                    "[10,5]."
                ) from None
        settings[name] = value
    return settings


def presets_of(system: System) -> dict[str, dict[str, Any]]:
    """Return one setting of each preset by name, as far as the system allows it, and the defaults.

    Of several values of a parameter it has the default if that is one of them, else the middle one.
    """
    settings: dict[str, dict[str, Any]] = {}
    for name, preset in system.presets.items():
        chosen = {
            parameter: values[0] if len(values) == 1 else _one_of(system, parameter, values)
            for parameter, values in preset.grid.items()
            if values
        }
        with suppress(InvalidParameter):
            settings[name] = validate_parameters(system, chosen).model_dump(mode="json")
    return settings | {"defaults": {}}


def _one_of(system: System, parameter: str, values: Sequence[Any]) -> Any:
    default = system.parameters.model_fields[parameter].default
    return default if default in values else values[len(values) // 2]


def shown_value(control: Control, value: Any) -> Any:
    """Return a parameter's value as its control shows it."""
    if control.kind != "text":
        return value
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


def from_address(
    system: System, controls: Sequence[Control], query: str, start: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, str], list[str]]:
    """Return the values of all controls, the reserved words, and what could not be read."""
    values = {c.name: shown_value(c, start.get(c.name, c.default)) for c in controls}
    known = {control.name: control for control in controls}
    words: dict[str, str] = {}
    faults: list[str] = []
    try:
        pairs = parse_qsl(query.removeprefix("?"), keep_blank_values=True, max_num_fields=200)
    except ValueError:
        return values, words, ["The address has more than 200 fields; it was not read."]
    for name, text in pairs:
        if name in RESERVED:
            words[name] = text
        elif name not in known:
            faults.append(unknown_choice(f"the name of a parameter of {system.name}", name, known))
        else:
            try:
                values[name] = _read(system, known[name], text)
            except InvalidParameter as error:
                faults.append(str(error))
    return values, words, faults


def _read(system: System, control: Control, text: str) -> Any:
    """Return the value of a control; the system checks it at its other defaults."""
    if control.kind == "text" and not text:
        return ""
    if control.kind == "choice":
        for value in control.values:
            if str(value).lower() == text.lower():
                return value
        raise InvalidParameter(unknown_choice(control.name, text, map(str, control.values)))
    (value,) = settings_of({control.name: text}).values() if text else (control.default,)
    if control.kind == "text":
        return text
    try:
        number = float(value)
    except (TypeError, ValueError):
        validate_parameters(system, {control.name: value})  # raises with what is allowed
        raise InvalidParameter(f"{control.name} is {quoted(text)}; allowed: a number.") from None
    return int(number) if control.integer and number.is_integer() else number


def whole(value: Any, least: int, most: int = 2**53) -> int:
    """Return a number from a page as a whole number in a range; the least one for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return least
    return min(most, max(least, int(value)))
