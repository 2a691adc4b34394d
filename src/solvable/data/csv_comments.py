"""Find comment lines, which begin with #, in delimited text."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable

from solvable.data.cells import is_number
from solvable.plots.words import counted

_COMMENT = re.compile(rb"^[ \t]*#[^\r\n]*", re.MULTILINE)


def without_comments(
    content: bytes, find_delimiter: Callable[[bytes], str]
) -> tuple[bytes, list[str]]:
    """Blank the comment lines, which keeps line numbers; return a sentence if there are any."""
    # A line with # below the first row is a comment only if it has another number of cells.
    if b"#" not in content:
        return content, []
    leading = []
    start = 0
    for match in re.finditer(rb"([^\r\n]*)(?:\r\n?|\n|\Z)", content):
        line = match[1].strip()
        if line.startswith(b"#"):
            leading.append(match.span(1))
        elif line:
            start = match.start()
            break
        elif match.end() == len(content):
            return b"", []  # All lines begin with #.
    below = content[start:]
    delimiter = find_delimiter(below)
    first = _cells(re.split(rb"[\r\n]", below, maxsplit=1)[0], delimiter)
    parts = [content[:start]]
    comments = len(leading)
    if leading:
        head = bytearray(content[:start])
        named = _is_header(content[slice(*leading[-1])], first, delimiter)
        for begin, end in leading[: len(leading) - named]:
            head[begin:end] = b" " * (end - begin)
        if named:  # "# a,b" above rows of two numbers names the columns.
            place = head.index(b"#", leading[-1][0])
            head[place : place + 1] = b" "
        parts, comments = [bytes(head)], comments - named
    position = quotes = 0
    for match in _COMMENT.finditer(below) if len(first) > 1 else ():
        quotes += below.count(b'"', position, match.start())
        parts.append(below[position : match.start()])
        inside = quotes % 2 == 1  # The line belongs to a cell in quotes.
        kept = inside or len(_cells(match[0], delimiter)) == len(first)
        quotes += match[0].count(b'"') if kept else 0
        parts.append(match[0] if kept else b"")
        comments += not kept
        position = match.end()
    parts.append(below[position:])
    notes = [f"skipped {counted(comments, 'comment line')} (beginning with #)"] if comments else []
    return b"".join(parts), notes


def _cells(line: bytes, delimiter: str) -> list[str]:
    text = line.decode("utf-8", "replace").strip()
    try:
        return next(csv.reader([text], delimiter=delimiter, skipinitialspace=True), [])
    except csv.Error:
        return [text]


def _is_header(line: bytes, first: list[str], delimiter: str) -> bool:
    """Return True if a comment above the first row names the columns."""
    cells = _cells(line.strip().lstrip(b"#"), delimiter)
    return (
        len(cells) == len(first) > 1
        and any(map(is_number, first))
        and not any(map(is_number, cells))
        and all(cell.strip() for cell in cells)
    )
