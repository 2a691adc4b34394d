"""Checked parameters of a system, and their canonical JSON text."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, get_args

from pydantic import ValidationError
from pydantic.fields import FieldInfo

from solvable.errors import InvalidParameter, SolvableError, quoted, shortened, unknown_choice
from solvable.frame.parameters import Parameters
from solvable.frame.system import System


def canonical_json(value: Any) -> str:
    """Return JSON text that is equal for equal parameters: sorted keys, no spaces, no negative zero."""
    return json.dumps(
        without_negative_zero(value), sort_keys=True, separators=(",", ":"), allow_nan=False
    )


def without_negative_zero(value: Any) -> Any:
    """Return a copy of a JSON value with every -0.0 replaced by 0.0, which is an equal setting."""
    if isinstance(value, float):
        return value + 0.0
    if isinstance(value, Mapping):
        return {key: without_negative_zero(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [without_negative_zero(item) for item in value]
    return value


def validate_parameters(system: System, values: Mapping[str, Any]) -> Parameters:
    """Check the parameters of a system; text such as ``"60"`` is read as the field's type."""
    fields = system.parameters.model_fields
    for name in values:
        if name not in fields:
            raise InvalidParameter(unknown_choice(f"a parameter of {system.name}", name, fields))
    try:
        return system.parameters.model_validate(dict(values))
    except ValidationError as error:
        details = error.errors()
        for detail in details:
            cause = detail.get("ctx", {}).get("error")
            if isinstance(cause, SolvableError):
                raise cause from None
        # a union reports one error for each of its types
        first: dict[Any, Any] = {}
        for detail in details:
            first.setdefault(detail["loc"][:1], detail)
        refusals = (_refusal(system, detail) for detail in first.values())
        raise InvalidParameter(" ".join(refusals)) from None


def format_settings(settings: Mapping[str, Sequence[Any]]) -> str:
    """Write values as arguments of ``--set``: ``dimension=60 decay=0.5,1.0``."""
    return " ".join(
        f"{name}={','.join(_text(value) for value in values)}" for name, values in settings.items()
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


def _refusal(system: System, detail: Any) -> str:
    """Return the message for an error of pydantic: the parameter, its value, and what is allowed."""
    message = str(detail["msg"]).removeprefix("Value error, ").rstrip(".")
    if not detail["loc"]:
        return f"{message}."
    field = str(detail["loc"][0])
    name, value = shortened(".".join(map(str, detail["loc"]))), detail["input"]
    info = system.parameters.model_fields[field]
    if detail["type"] == "missing":
        return f"{name} has no default; set it with {name}=VALUE."
    if detail["type"] == "literal_error" and len(detail["loc"]) == 1:
        return unknown_choice(name, value, map(str, get_args(info.annotation)))
    if detail["type"] == "value_error":
        return (
            f"{name} is {quoted(value)}{'; ' if message.startswith('allowed') else ': '}{message}."
        )
    allowed = _allowed(info) if len(detail["loc"]) == 1 else ""
    allowed = allowed or message.removeprefix("Input should be ")
    kind = str(detail["type"]).split("_")[0]
    hint = {"greater": f" Raise {name}.", "less": f" Lower {name}."}.get(kind, "")
    return f"{name} is {_plain(value)}; allowed: {allowed}.{hint}"


def _allowed(info: FieldInfo) -> str:
    """Return the allowed values of a number or a switch in words; empty for other types."""
    if info.annotation is bool:
        return "true, false"
    if info.annotation not in (int, float):
        return ""
    words = {"ge": "from", "gt": "above", "le": "up to", "lt": "below"}
    bounds = [
        f"{word} {_number(getattr(rule, sign))}"
        for sign, word in words.items()
        for rule in info.metadata
        if getattr(rule, sign, None) is not None
    ]
    return " ".join(["whole numbers" if info.annotation is int else "numbers", *bounds])


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) and abs(value) < 10**7 else f"{value:g}"


def _plain(value: Any) -> str:
    """Write a value as it was typed; quotes only where it is not a number."""
    with suppress(TypeError, ValueError, OverflowError):
        float(value)
        return shortened(str(value))
    return quoted(value)
