"""Rows as CSV that a spreadsheet shows and does not execute."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any


def csv_text(header: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """A header, then a line per row; numbers stay numbers, what is missing is empty."""
    lines: list[str] = []
    # With this end of a line the module quotes cells that hold either of its characters.
    writer = csv.writer(SimpleNamespace(write=lines.append), lineterminator="\r\n")
    writer.writerow([harmless(name) for name in header])
    for row in rows:
        writer.writerow([harmless(value) if isinstance(value, str) else value for value in row])
    return "".join(f"{line[:-2]}\n" for line in lines)


def harmless(text: str) -> str:
    """Text that spreadsheets would run as a formula, after a single quote, as OWASP advises."""
    if not text.startswith(("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")):
        return text
    try:
        number = float(text)
    except ValueError:
        return f"'{text}"
    # -1 and +2.5 are numbers, as labels of classes may be; -inf and -nan are none in a spreadsheet.
    return text if math.isfinite(number) and text == text.strip() else f"'{text}"
