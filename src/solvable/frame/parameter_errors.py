"""Messages of parameters that are refused: the name, the value, and what is allowed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, get_args

from pydantic import ValidationError
from pydantic.fields import FieldInfo

from solvable.errors import InvalidParameter, SolvableError, quoted, shortened, unknown_choice


def refusal_of(error: ValidationError, fields: Mapping[str, FieldInfo], kind: str) -> SolvableError:
    """Return the exception to raise for an error of pydantic; ``kind`` names an unknown field."""
    details = error.errors()
    for detail in details:
        cause = detail.get("ctx", {}).get("error")
        if isinstance(cause, SolvableError):
            return _named(cause, detail)
    # a union reports one error for each of its types
    first: dict[Any, Any] = {}
    for detail in details:
        first.setdefault(detail["loc"][:1], detail)
    return InvalidParameter(" ".join(_message(fields, kind, detail) for detail in first.values()))


def _named(cause: SolvableError, detail: Any) -> SolvableError:
    """Return the error that a validator raised, with the parameter's name if that is not in it."""
    message, given = str(cause), detail["input"]
    names = [str(detail["loc"][0])] if detail["loc"] else []
    if not names and isinstance(given, Mapping):  # the model refuses a value that it quotes
        names = [n for n, v in given.items() if isinstance(v, str) and quoted(v) in message]
    if not names or any(name in re.findall(r"\w+", message) for name in names):
        return cause
    return InvalidParameter(f"{names[0]}: {message}")


def _message(fields: Mapping[str, FieldInfo], kind: str, detail: Any) -> str:
    message = str(detail["msg"]).removeprefix("Value error, ").rstrip(".")
    if not detail["loc"]:
        return f"{message}."
    field = str(detail["loc"][0])
    name, value = shortened(".".join(map(str, detail["loc"]))), detail["input"]
    if field not in fields:
        return unknown_choice(kind, field, fields)
    info = fields[field]
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
    kind_of_error = str(detail["type"]).split("_")[0]
    hint = {"greater": f" Raise {name}.", "less": f" Lower {name}."}.get(kind_of_error, "")
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
