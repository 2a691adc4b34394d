"""Rows of numbers and lists as flat columns of a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
from math import isnan
from typing import Any

from solvable.errors import InvalidParameter


def imported(name: str, use: str) -> Any:
    """Import an optional package, or raise with the command that installs it."""
    try:
        return import_module(name)
    except ImportError as error:
        raise InvalidParameter(
            f"{use} needs {name}, which cannot be imported ({error}). Install it: pip install {name}"
        ) from error


def entries(name: str, value: Any) -> dict[str, Any]:
    """Return a value under its name, or the entries of a list as ``name[i]``."""
    if isinstance(value, list | tuple):
        return {f"{name}[{i}]": entry for i, entry in enumerate(value)}
    return {name: value}


def flat_rows(rows: Iterable[Mapping[str, Any]], *, arrays: bool) -> list[dict[str, Any]]:
    """Return rows of equal columns: entries of lists as ``name[i]``, or no columns of lists.

    The longest list among the rows sets the number of its columns. A column that is a list in some
    rows and a number in others has only the numbers without `arrays`.
    """
    rows = list(rows)
    columns: dict[str, dict[str, None]] = {}
    flat = []
    for row in rows:
        cells: dict[str, Any] = {}
        for name, value in row.items():
            own = entries(name, value)
            kept = own if arrays or not isinstance(value, list | tuple) else {}
            columns.setdefault(name, {}).update(dict.fromkeys(kept))
            cells.update(kept)
        flat.append(cells)
    if not arrays:
        lists = {n for row in rows for n, value in row.items() if isinstance(value, list | tuple)}
        for name in lists:
            if all(_is_missing(cells.get(name)) for cells in flat):
                columns[name] = {}
    names = dict.fromkeys(column for group in columns.values() for column in group)
    return [{name: cells.get(name) for name in names} for cells in flat]


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and isnan(value))
