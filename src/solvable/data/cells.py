"""Cells of text: which are missing, which are numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import numpy as np

MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?"})
"""Texts that stand for a missing value, in small letters and without blanks around them."""

USUAL_MISSING = frozenset({"", "NA", "?"})
"""Those that most files use; a reader of numbers knows "nan" by itself."""

_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d*)?", re.ASCII)
_TRUTH = {"true": 1.0, "false": 0.0}


def is_missing(cell: str) -> bool:
    """Whether a cell stands for a missing value."""
    return cell.strip().casefold() in MISSING


def is_number(cell: str) -> bool:
    """Whether a cell is a number in the usual notation, an infinity included."""
    cell = cell.strip()
    return not is_missing(cell) and _numbers([cell]) is not None


def first_odd_cell(cells: Iterable[str | None]) -> tuple[int, str] | None:
    """First cell that is neither a number nor missing, if numbers are the rule."""
    present = [(row, cell) for row, cell in enumerate(cells) if cell is not None]
    odd = [(row, cell) for row, cell in present if not is_number(cell)]
    return odd[0] if odd and 2 * len(odd) < len(present) else None


def parse_cells(cells: Sequence[str], decimal_comma: bool = False) -> tuple[np.ndarray, str]:
    """Column of numbers if every cell is one or is missing; text otherwise."""
    # Where the delimiter is no comma, 1,5 may stand for 1.5; otherwise 1,500 for 1500.
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
    """Numbers of the cells, or None as soon as one is not a number."""
    values = np.empty(len(cells))
    for row, cell in enumerate(cells):
        if cell is None:
            values[row] = np.nan
            continue
        try:
            values[row] = float(cell)
        except ValueError:
            return None
        # Python's float takes 1_000 and digits of other scripts, which no other reader does.
        if "_" in cell or not cell.isascii():
            return None
    return values


def _quick_numbers(cells: Sequence[str]) -> np.ndarray | None:
    """Numbers by one call of NumPy, for the usual notations; None if there is another."""
    # Python's float takes 1_000 and digits of other scripts, which no other reader does.
    if any("_" in cell or not cell.isascii() for cell in cells):
        return None
    try:
        return np.array(["nan" if cell in USUAL_MISSING else cell for cell in cells], dtype=float)
    except ValueError:
        return None
