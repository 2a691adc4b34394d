"""Tables of pages, and the comparison of a printed number with a computed one."""

from __future__ import annotations

import re
from pathlib import Path

SYSTEMS = Path(__file__).parents[2] / "docs/systems"
GROUPED = re.compile(r"(?<![\d.])(\d{1,3})((?:[ ,]\d{3})+)(?![\d.])")
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")


def tables(page: str) -> list[list[list[str]]]:
    """Return the cells of all tables of a system's page, the head first."""
    found: list[list[list[str]]] = [[]]
    for line in (SYSTEMS / f"{page}.md").read_text("utf-8").splitlines():
        if line.startswith("|"):
            found[-1].append([cell.strip() for cell in line.strip("|").split("|")])
        elif found[-1]:
            found.append([])
    return [[rows[0], *rows[2:]] for rows in found if rows]


def table(page: str, head: str) -> list[list[str]]:
    """Return the cells of the table whose head begins with these cells."""
    start = head.split(" | ")
    (found,) = (rows for rows in tables(page) if rows[0][: len(start)] == start)
    return found


def printed(cell: str) -> list[str]:
    """Return the numbers of a cell behind its last slash, as texts."""
    text = cell.rpartition("/")[2].replace("−", "-")
    return NUMBER.findall(GROUPED.sub(lambda m: m[1] + re.sub(r"[ ,]", "", m[2]), text))


def rounds_to(value: float, text: str) -> bool:
    """Return True if a value is within 0.55 of the last digit of a printed number, zeros left out."""
    mantissa, _, power = text.partition("e")
    whole, _, fraction = mantissa.partition(".")
    zeros = 0 if fraction or whole == "0" else len(whole) - len(whole.rstrip("0"))
    decimals = len(fraction) - zeros - int(power or 0)
    return abs(value - float(text)) <= 0.55 * 10.0**-decimals
