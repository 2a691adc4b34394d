"""CSV text that spreadsheets show without executing formulas in it."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any


def csv_text(header: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """Return a header and one line per row; missing values are empty."""
    lines: list[str] = []
    # with this line end, the csv module quotes cells that contain a carriage return or newline
    writer = csv.writer(SimpleNamespace(write=lines.append), lineterminator="\r\n")
    writer.writerow([harmless(name) for name in header])
    for row in rows:
        writer.writerow([harmless(value) if isinstance(value, str) else value for value in row])
    return "".join(f"{line[:-2]}\n" for line in lines)


def harmless(text: str) -> str:
    """Put a single quote before text that spreadsheets would run as a formula (OWASP)."""
    if not text.startswith(("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")):
        return text
    try:
        number = float(text)
    except ValueError:
        return f"'{text}"
    # -1 and +2.5 stay numbers; spreadsheets do not read -inf and -nan as numbers
    return text if math.isfinite(number) and text == text.strip() else f"'{text}"
