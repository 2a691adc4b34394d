"""TOML and JSON files of users: sizes are checked before parsing, errors take one line."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any, NoReturn

from solvable.errors import InvalidData
from solvable.paths import printable

LARGEST = 64_000
"""Largest size of a TOML file in bytes."""

LARGEST_JSON = 1_000_000
"""Largest size of a JSON file in bytes; parsing time is proportional to it."""

LONGEST_LINE = 4_000
"""Largest number of characters of a line of a TOML file."""

_PART = r"""(?:"[^"\n]*"|'[^'\n]*'|[A-Za-z0-9_-]++)"""
_DEEP_KEY = re.compile(rf"(?<![A-Za-z0-9_.'\"-])(?:{_PART}[ \t]*+\.[ \t]*+){{32}}")


def parse_toml(
    text: str,
    name: str,
    *,
    largest: int = LARGEST,
    longest_line: int = LONGEST_LINE,
) -> dict[str, Any]:
    """Parse TOML within limits of size.

    Python's parser stores every prefix of a dotted key ``a.a.a...``: one key of 90 kB takes gigabytes.

    Notes
    -----
    Backed by ``tests/test_documents.py``.
    """
    if len(text) > largest:
        raise InvalidData(
            f"{name} has {len(text):,} characters; allowed: {largest:,} at most in TOML. Remove "
            "what is not needed, or write JSON."
        )
    for number, line in enumerate(text.split("\n"), 1):
        if len(line) > longest_line:
            raise InvalidData(
                f"{name}, line {number}, has {len(line):,} characters; allowed: {longest_line:,} at "
                "most. Break the line."
            )
        if _DEEP_KEY.search(line):
            raise InvalidData(
                f"{name}, line {number}, has a key of more than 32 parts with dots between; "
                "allowed: tables that are nested less deeply."
            )
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        _refuse(name, "TOML", error)


def parse_json(text: str, name: str, *, largest: int = LARGEST_JSON) -> Any:
    """Parse JSON within limits of size; errors take one line.

    Notes
    -----
    Backed by ``tests/test_documents.py``.
    """
    if len(text) > largest:
        raise InvalidData(
            f"{name} has {len(text):,} characters; allowed: {largest:,} at most. Remove what is not "
            "needed."
        )
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        _refuse(name, "JSON", error)


def read_document(path: Path) -> Any:
    """Read a small file that ends in .toml or .json.

    Notes
    -----
    Backed by ``tests/test_documents.py``.
    """
    name = printable(str(path))
    ending = path.suffix.lower()
    if ending not in (".toml", ".json"):
        raise InvalidData(f"{name} ends in {ending!r}; allowed: .toml, .json.")
    parse, largest = (parse_toml, LARGEST) if ending == ".toml" else (parse_json, LARGEST_JSON)
    try:
        # read one byte more than allowed, as devices have no size
        with path.open("rb") as file:
            held = file.read(largest + 1)
    except OSError as error:
        raise InvalidData(f"{name}: {error.strerror}. Name a .toml or .json file.") from None
    if len(held) > largest:
        raise InvalidData(
            f"{name} has more than {largest:,} bytes; allowed: {largest:,} at most in "
            f"{ending[1:].upper()}. {'Write JSON, or remove' if ending == '.toml' else 'Remove'} "
            "what is not needed."
        )
    try:
        text = held.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        _refuse(name, ending[1:].upper(), error)
    return parse(text, name)


def _refuse(name: str, kind: str, error: Exception) -> NoReturn:
    why = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)[:150]
    raise InvalidData(f"{name} is not valid {kind}: {why.rstrip('.')}. Correct it.") from None
