"""Options of several commands, and the parser of ``--set name=value``."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

from cyclopts import Parameter, Token, convert

from solvable.errors import InvalidParameter, quoted, shortened
from solvable.paths import check_path, error_line, printable

if TYPE_CHECKING:
    from solvable.frame.system import System

Settings = Annotated[list[str] | None, Parameter(name="--set", consume_multiple=True, negative=())]
"""Values of parameters as ``name=value`` words."""

Flag = Annotated[bool, Parameter(negative=(), show_default=False)]
"""A switch that is off by default."""


def read_option(kind: Any, tokens: Any) -> Any:
    """Convert the value of an option; integers are not rounded, and paths are checked."""
    if kind is int:
        (token,) = tokens
        return _whole_number(token)
    if kind is Path:
        (token,) = tokens
        return check_path(token.value, token.keyword or "the path")
    return convert(kind, tokens)


def _whole_number(token: Token) -> int:
    # cyclopts rounds 1.5 to 2; 1e5 and 30.0 are integers
    text = _without_exponent(token.value)
    if not re.fullmatch(r"[+-]?\d{1,100}(\.0*)?", text):
        raise InvalidParameter(
            f"{token.keyword or 'the value'} is {token.value[:40]!r}; allowed: whole numbers."
        )
    return int(text.partition(".")[0])


def parse_settings(words: Sequence[str] | None) -> dict[str, list[Any]]:
    """Split ``name=value`` words at commas into the values of a grid, as text.

    A list as a value is written as in JSON: ``widths=[10,5],[20,5]``.
    """
    settings: dict[str, list[Any]] = {}
    if words is not None and not words:
        raise InvalidParameter("--set is empty; write --set name=value, for example dimension=60.")
    for word in words or ():
        name, equals, text = word.partition("=")
        name = name.strip()
        if not equals or not name:
            raise InvalidParameter(
                f"--set takes name=value or name=value,value; seen: {quoted(word)}. The name of "
                "the system comes before --set."
            )
        if name in settings:
            shown = shortened(name)
            raise InvalidParameter(
                f"--set gives {shown} twice; write {shown}=A,B to run a grid of both values."
            )
        settings[name] = [_value(name, part) for part in _parts(text)]
    return settings


def read_settings(system: System, words: Sequence[str] | None) -> dict[str, list[Any]]:
    """Read ``--set`` words; ``samples=1e5`` becomes an integer for an integer parameter."""
    settings = parse_settings(words)
    for name in _whole_parameters(system) & settings.keys():
        settings[name] = [_without_exponent(value) for value in settings[name]]
    return settings


def read_points(system: System, path: Path) -> list[dict[str, Any]]:
    """Read settings from a CSV file with a column per parameter, or from a ``study.toml``."""
    shown, largest = printable(str(path)), 10_000_000
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            text = file.read(largest + 1)
        if len(text) > largest:
            raise InvalidParameter(
                f"--points {shown} has more than {largest:,} characters; allowed: {largest:,}. Split it."
            )
        header, *lines = [row for row in csv.reader(text.splitlines()) if any(row)] or [[]]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InvalidParameter(
            f"--points {shown} cannot be read ({error_line(error)}); allowed: a CSV file in UTF-8, or a "
            "study.toml."
        ) from None
    if path.suffix == ".toml":
        return _stored_points(shown, text)
    names = [name.strip() for name in header]
    if not lines or len(set(names)) < len(names) or "" in names:
        raise InvalidParameter(
            f"--points {shown}: allowed: a first row with distinct names of parameters, and a row per "
            f"setting; seen: {quoted(','.join(header))} and {len(lines)} rows."
        )
    whole = _whole_parameters(system)
    rows = []
    for number, cells in enumerate(lines, 2):
        if len(cells) != len(names) or not all(cell.strip() for cell in cells):
            raise InvalidParameter(
                f"--points {shown}, row {number}: {len(cells)} cells, some of them empty or missing; "
                f"allowed: a value for each of {', '.join(names)}."
            )
        row = {name: _value(name, cell.strip()) for name, cell in zip(names, cells, strict=True)}
        rows.append({name: _without_exponent(v) if name in whole else v for name, v in row.items()})
    return rows


def _stored_points(shown: str, text: str) -> list[dict[str, Any]]:
    """Return the points of a ``study.toml``; raise if it has none."""
    from solvable.study.toml import parse_study

    points = parse_study(text).points
    if not points:
        raise InvalidParameter(
            f"--points {shown} has no entry `points`: its study is a grid; allowed: the study.toml of a "
            "run with --points, or a CSV file."
        )
    return points


def _parts(text: str) -> list[str]:
    """Split at commas outside brackets and parentheses."""
    parts, depth = [""], 0
    for character in text:
        depth += (character in "[(") - (character in "])")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]


def _value(name: str, text: str) -> Any:
    shown = shortened(name)
    if not text:
        raise InvalidParameter(f"--set {shown}= lacks a value; write {shown}=A or {shown}=A,B.")
    if not text.startswith("["):
        return text
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise InvalidParameter(
            f"--set {shown}={shortened(text)} is not a list ({error.msg}); write it as in JSON, [10,5]."
        ) from None


def _whole_parameters(system: System) -> set[str]:
    """Return the names of the parameters that are whole numbers."""
    fields = system.parameters.model_fields.items()
    return {name for name, field in fields if _is_whole(field.annotation)}


def _is_whole(annotation: Any) -> bool:
    kinds = get_args(annotation) or (annotation,)
    return int in kinds and not {float, str} & set(kinds)


def _without_exponent(value: Any) -> Any:
    """Convert text such as ``1e5`` to an integer, which pydantic refuses."""
    scientific = r"[+-]?\d+(\.\d*)?[eE][+]?\d{1,3}"
    if isinstance(value, str) and re.fullmatch(scientific, value) and float(value).is_integer():
        return str(int(float(value)))
    return value
