"""Reading and writing of ``study.toml``."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from solvable.documents import parse_toml
from solvable.errors import InvalidData, InvalidParameter


class StudyFile(BaseModel):
    """Content of a ``study.toml``."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    system: str
    version: str | None = None
    preset: str | None = None
    replicates: int = 1
    seed: int = 0
    grid: dict[str, Any] = {}
    points: list[dict[str, Any]] = []


def format_study(
    header: Mapping[str, Any],
    grid: Mapping[str, Sequence[Any]],
    points: Sequence[Mapping[str, Any]] = (),
) -> str:
    """Write a study as TOML; header entries that are None, and no points, are omitted."""
    lines = [f"{key} = {_value(key, item)}" for key, item in header.items() if item is not None]
    if points:
        rows = (", ".join(f"{_key(k)} = {_value(k, v)}" for k, v in row.items()) for row in points)
        lines += ["points = [", *(f"  {{ {row} }}," for row in rows), "]"]
    lines += ["", "[grid]"]
    lines += [f"{_key(name)} = {_value(name, list(values))}" for name, values in grid.items()]
    return "\n".join(lines) + "\n"


def _text(value: str) -> str:
    # TOML's basic strings are JSON's, but must escape DEL, and cannot contain surrogates.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _text(name)


def _value(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_value(name, item) for item in value) + "]"
    raise InvalidParameter(
        f"{name} takes the value {value!r}, which study.toml cannot hold; allowed in a grid: "
        "numbers, text, booleans and lists of these. Leave the parameter out to use its default."
    )


def parse_study(text: str) -> StudyFile:
    """Read a study from TOML; the grid is not yet checked against the system."""
    try:
        # a line holds all values of one parameter, which may be a long list
        longest = 10_000_000
        found = parse_toml(text, "study.toml", largest=longest, longest_line=longest)
        return StudyFile.model_validate(found)
    except InvalidData as error:
        raise InvalidParameter(str(error)) from None
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(map(str, first["loc"]))
        allowed = ", ".join(StudyFile.model_fields)
        raise InvalidParameter(
            f"study.toml, entry {name!r}: {first['msg']}; allowed entries: {allowed}."
        ) from None
