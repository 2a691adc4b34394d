"""Parse cells of text as missing values, numbers or text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?"})
"""Texts that denote a missing value, in lower case and without surrounding blanks."""

USUAL_MISSING = frozenset({"", "NA", "?"})
"""Most frequent texts that denote a missing value; "nan" is left to the number parsers."""

_GROUP = (
    "[ '\u2019\u00a0\u202f{}]"  # blanks and apostrophes between thousands, and a point or comma
)
_THOUSANDS = re.compile(rf"[+-]?\d{{1,3}}({_GROUP.format(',')}\d{{3}})+(\.\d*)?", re.ASCII)
_DECIMAL_COMMA = re.compile(
    rf"[+-]?(\d*|\d{{1,3}}({_GROUP.format('.')}\d{{3}})+),\d+(e[+-]?\d+)?", re.ASCII | re.IGNORECASE
)
_POINTS = re.compile(r"[+-]?\d{1,3}(\.\d{3}){2,}", re.ASCII)  # 1.234.567
_SIGNS = re.compile(
    r"(?P<limit>[<>\u2264\u2265]=?)?\s*(?P<minus>[-+\u2212]?)\s*[$\u20ac\u00a3\u00a5]?\s*"
    r"(?P<core>[^-+\s$\u20ac\u00a3\u00a5%].*?)\s*[$\u20ac\u00a3\u00a5]?\s*(?P<percent>%?)"
)
MOSTLY = 0.9  # share of cells that are numbers, above which the others are gaps
WORDS = "cells that are no numbers"  # begins the sentence about words in a column of numbers
FEWEST = 20  # present cells for such a judgement
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


class Parsed(NamedTuple):
    """Column of cells as numbers, or as texts."""

    values: np.ndarray  # numbers with NaN for missing ones, or texts with None
    note: str = ""  # sentence about an unusual notation
    limits: np.ndarray | None = None  # -1 for cells such as "<5", 1 for ">5", else 0


def parse_cells(
    cells: Sequence[str], decimal_comma: bool = False, counts: np.ndarray | None = None
) -> Parsed:
    """Parse a column as numbers if all cells, or nearly all, are numbers or missing; else as text.

    ``counts`` is the number of rows of each cell, if cells are given once.
    """
    # "1,5" may mean 1.5 if the delimiter is not a comma; otherwise "1,500" may mean 1500.
    quick = _quick_numbers(cells)
    if quick is not None:
        return Parsed(quick)
    stripped = [cell.strip() for cell in cells]
    present = [None if cell.casefold() in MISSING else cell for cell in stripped]
    numbers = _numbers(present)
    if numbers is not None:
        return Parsed(numbers)
    if all(cell is None or cell.casefold() in _TRUTH for cell in present):
        truth = [np.nan if cell is None else _TRUTH[cell.casefold()] for cell in present]
        return Parsed(np.array(truth, dtype=np.float64))
    rows = np.ones(len(cells)) if counts is None else np.asarray(counts, dtype=float)
    found = _everyday(present, decimal_comma, rows)
    return found or Parsed(np.array([known_text(cell) for cell in stripped], dtype=object))


def known_text(cell: str) -> str | None:
    """Return a cell of a column of texts, where "none" is a value; None if it is missing."""
    # Python writes a missing value as None; people write none where there is nothing of a kind.
    return cell if cell == "none" or cell.casefold() not in MISSING else None


def _everyday(
    present: Sequence[str | None], decimal_comma: bool, rows: np.ndarray
) -> Parsed | None:
    """Parse numbers as people write them; None if too few cells are numbers."""
    longest, first = (
        40,
        200,
    )  # no number is longer; the first cells show that most columns are texts
    short = [None if cell is None or len(cell) > longest else cell for cell in present]
    some = [cell for cell in present if cell is not None][:first]
    if sum(any(sign.isdigit() for sign in cell) for cell in some) < 0.5 * len(some):
        return None
    matches = [None if cell is None else _SIGNS.fullmatch(cell) for cell in short]
    cores = ["" if match is None else match["core"] for match in matches]
    comma = _means_decimal(cores, decimal_comma)
    values = np.full(len(present), np.nan)
    limits = np.zeros(len(present))
    signs: set[str] = set()
    percent = np.zeros(len(present), dtype=bool)
    for place, (match, core) in enumerate(zip(matches, cores, strict=True)):
        plain = _plain(core, comma)
        number = _numbers([plain]) if match is not None and plain else None
        if match is None or number is None:
            continue
        values[place] = -number[0] if match["minus"] in ("-", "\u2212") else number[0]
        limits[place] = {"<": -1, "\u2264": -1, ">": 1, "\u2265": 1}.get(
            (match["limit"] or " ")[0], 0
        )
        percent[place] = bool(match["percent"])
        if plain != core:
            signs.add(
                "decimal commas were read as points"
                if comma
                else "separators of thousands were left out"
            )
        if match["percent"]:
            signs.add("signs of percent were left out")
        if any(sign in (present[place] or "") for sign in "$\u20ac\u00a3\u00a5"):
            signs.add("signs of currency were left out")
    given = np.array([cell is not None for cell in present])
    if percent.any():  # a number without the sign would have another unit
        values[~percent] = np.nan
    read = ~np.isnan(values)
    total, share = rows[given].sum(), rows[read].sum()
    # Classes such as "<30" and ">30" are texts.
    if not total or 2 * rows[read & (limits != 0)].sum() > total:
        return None
    words = [
        cell
        for cell, is_read in zip(present, read, strict=True)
        if cell is not None and not is_read
    ]
    if words and (total < FEWEST or share < MOSTLY * total):
        return None
    notes = sorted(signs)
    if words:
        listed = ", ".join(repr(word[:20]) for word in words[:5]) + ", ..." * (len(words) > 5)
        notes.append(
            f"{WORDS} of this column count as missing in {total - share:.0f} rows: {listed}"
        )
    censored = (limits != 0) & read
    if censored.any():
        notes.append(
            "of cells such as <0.1 the number was read; a column of limits marks them (-1 for <, 1 for >)"
        )
    return Parsed(values, "; ".join(notes), np.where(read, limits, 0.0) if censored.any() else None)


def _means_decimal(cores: Sequence[str], decimal_comma: bool) -> bool:
    """Return True if commas are decimal: every comma can be, and not every one separates thousands."""
    with_comma = [core for core in cores if "," in core]
    if decimal_comma:
        return not any(_THOUSANDS.fullmatch(core) and "." in core for core in with_comma)
    return (
        bool(with_comma)
        and all(_DECIMAL_COMMA.fullmatch(core) for core in with_comma)
        and not all(_THOUSANDS.fullmatch(core) for core in with_comma)
    )


def _plain(core: str, comma: bool) -> str:
    """Write a number in the usual notation, if it is one in the notation of its column."""
    if comma and (_DECIMAL_COMMA.fullmatch(core) or _POINTS.fullmatch(core)):
        return re.sub("[ '\u2019\u00a0\u202f.]", "", core).replace(",", ".")
    if _THOUSANDS.fullmatch(core) and not (comma and "," in core):
        return re.sub("[ '\u2019\u00a0\u202f,]", "", core)
    return core


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
