"""Parse cells of text as missing values, numbers or text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import numpy as np

MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?"})
"""Texts that denote a missing value, in lower case and without surrounding blanks."""

USUAL_MISSING = frozenset({"", "NA", "?"})
"""Most frequent texts that denote a missing value; "nan" is left to the number parsers."""

_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d*)?", re.ASCII)
_TRUTH = {"true": 1.0, "false": 0.0}


def is_missing(cell: str) -> bool:
    """Return True if a cell is a missing value."""
    return cell.strip().casefold() in MISSING


def is_number(cell: str) -> bool:
    """Return True if a cell is a number in the usual notation, or an infinity."""
    cell = cell.strip()
    return not is_missing(cell) and _numbers([cell]) is not None


def first_odd_cell(cells: Iterable[str | None]) -> tuple[int, str] | None:
    """Return the first cell that is neither a number nor missing, if most cells are numbers."""
    present = [(row, cell) for row, cell in enumerate(cells) if cell is not None]
    odd = [(row, cell) for row, cell in present if not is_number(cell)]
    return odd[0] if odd and 2 * len(odd) < len(present) else None


def parse_cells(cells: Sequence[str], decimal_comma: bool = False) -> tuple[np.ndarray, str]:
    """Parse a column as numbers if every cell is a number or missing, and as text otherwise."""
    # "1,5" may mean 1.5 if the delimiter is not a comma; otherwise "1,500" may mean 1500.
    quick = _quick_numbers(cells)
    if quick is not None:
        return quick, ""
    stripped = [cell.strip() for cell in cells]
    present = [None if cell.casefold() in MISSING else cell for cell in stripped]
    numbers = _numbers(present)
    if numbers is not None:
        return numbers, ""
    if all(cell is None or cell.casefold() in _TRUTH for cell in present):
        truth = [np.nan if cell is None else _TRUTH[cell.casefold()] for cell in present]
        return np.array(truth, dtype=np.float64), ""
    pattern, written, note = (
        (_DECIMAL_COMMA, ".", "decimal commas were read as points")
        if decimal_comma
        else (_THOUSANDS, "", "commas between thousands were left out")
    )
    plain = [
        cell.replace(",", written) if cell is not None and pattern.fullmatch(cell) else cell
        for cell in present
    ]
    numbers = _numbers(plain)
    if numbers is not None:
        return numbers, note
    return np.array(present, dtype=object), ""


def _numbers(cells: Sequence[str | None]) -> np.ndarray | None:
    """Parse the cells as numbers; return None if a cell is not a number."""
    values = np.empty(len(cells))
    for row, cell in enumerate(cells):
        if cell is None:
            values[row] = np.nan
            continue
        try:
            values[row] = float(cell)
        except ValueError:
            return None
        # Unlike other programs, Python's float accepts 1_000 and digits of other scripts.
        if "_" in cell or not cell.isascii():
            return None
    return values


def _quick_numbers(cells: Sequence[str]) -> np.ndarray | None:
    """Parse all cells in one call of NumPy; return None if a cell needs the slower parser."""
    # Unlike other programs, Python's float accepts 1_000 and digits of other scripts.
    if any("_" in cell or not cell.isascii() for cell in cells):
        return None
    try:
        return np.array(["nan" if cell in USUAL_MISSING else cell for cell in cells], dtype=float)
    except ValueError:
        return None
