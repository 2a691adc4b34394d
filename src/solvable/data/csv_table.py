"""Read CSV files: detect encoding, delimiter and header, and report unusual properties."""

from __future__ import annotations

import codecs
import csv
import io
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np

from solvable.data.cells import WORDS, is_missing, is_number
from solvable.data.csv_columns import BLOCK, Column, has_odd_quotes, read_columns
from solvable.data.csv_comments import without_comments
from solvable.data.csv_memory import DELIMITERS, unpack
from solvable.data.table import (
    LIMIT,
    Table,
    from_columns,
    refuse_duplicates,
    without_totals,
    without_units,
)
from solvable.errors import InvalidData
from solvable.plots.words import counted

HEAD_LINES = 50  # number of first rows from which delimiter and header are detected


def read_csv(path: Path, expected: Sequence[str] = ()) -> tuple[Table, tuple[str, ...]]:
    """Read a table from delimited text, plain or gzipped."""
    # expected: known column names, such as the target; a first row with a known name is a header.
    content, notes, room = _decode(path)
    content, comments = without_comments(content, _find_delimiter)
    notes += comments
    delimiter = _find_delimiter(content)
    first_rows = list(islice(_rows(content, delimiter), HEAD_LINES))
    if not first_rows:
        raise InvalidData(
            f"{path} is empty; allowed: a header and at least one row. Check the file."
        )
    head = [cells for _, cells in first_rows]
    header = _has_header([[_pointed(cell, delimiter) for cell in row] for row in head], expected)
    cells = head[0] if header else [f"x{i}" for i in range(len(head[0]))]
    names = [cell.strip() or f"unnamed {place}" for place, cell in enumerate(cells)]
    if header and len(head) == 1:
        raise InvalidData(
            f"{path} has a header and no rows ({len(names)} columns); allowed: at least one row. Check "
            "the file."
        )
    if not header:
        notes.append(
            f"the file has no header: its {len(names)} columns are named x0 to x{len(names) - 1}"
        )
    refuse_duplicates(names)
    lines = first_rows[0][0] * header
    columns = _read_columns(path, content, delimiter, head, lines, room)
    del content
    parsed: dict[str, np.ndarray] = {}
    worded = []
    for name, column in zip(names, columns, strict=True):
        found = column.parsed(decimal_comma=delimiter != ",")
        worded += [name] * (WORDS in found.note)
        parsed[name] = found.values
        if found.limits is not None:
            parsed[f"{name}{LIMIT}"] = found.limits
        if found.note:
            notes.append(f"column {name!r}: {found.note}")
    parsed, totals = without_totals(parsed)
    parsed, units = without_units(parsed, worded)
    return from_columns(parsed), (*notes, *totals, *units)


def _decode(path: Path) -> tuple[bytes, list[str], float]:
    """Return the file as UTF-8, a sentence if the encoding was guessed, and the memory for texts."""
    with path.open("rb") as stream:
        packed = stream.read(2) == b"\x1f\x8b"
    content, room = unpack(path) if packed else (path.read_bytes(), math.inf)
    content, notes = _as_utf8(path, content)
    return content, notes, room


def _as_utf8(path: Path, content: bytes) -> tuple[bytes, list[str]]:
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        try:
            return _recoded(content, "utf-16"), []
        except UnicodeError as error:
            raise InvalidData(f"{path} is not valid UTF-16 ({error}). Save as UTF-8.") from error
    if b"\0" in content:
        raise InvalidData(
            f"{path} contains zero bytes and is not delimited text; allowed: CSV, NPZ, NPY, Parquet or a "
            "folder of these. Check the file's ending."
        )
    if content.startswith(codecs.BOM_UTF8):
        content = content[len(codecs.BOM_UTF8) :]
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for start in range(0, len(content) + 1, BLOCK):
            decoder.decode(content[start : start + BLOCK], start + BLOCK > len(content))
    except UnicodeDecodeError:
        note = "the file is not UTF-8 and was read as Windows-1252"
        return _recoded(content, "cp1252", "replace"), [note]
    return content, []


def _recoded(content: bytes, encoding: str, errors: str = "strict") -> bytes:
    """Convert a text to UTF-8, block by block to save memory."""
    decoder = codecs.getincrementaldecoder(encoding)(errors)
    written = io.BytesIO()
    for start in range(0, len(content) + 1, BLOCK):
        last = start + BLOCK > len(content)
        written.write(decoder.decode(content[start : start + BLOCK], last).encode())
    return written.getvalue()


def _rows(content: bytes, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield each non-blank row's last line and cells, read by Python's slower, stricter parser."""
    lines: Iterable[str] = io.TextIOWrapper(io.BytesIO(content), encoding="utf-8", newline="")
    if delimiter == " ":
        lines = (line.rstrip() for line in lines)
    previous = csv.field_size_limit(10_000_000)
    reader = csv.reader(lines, delimiter=delimiter, strict=True, skipinitialspace=True)
    try:
        for cells in reader:
            if len(cells) > 1 or (cells and cells[0].strip()):
                yield reader.line_num, cells
    except csv.Error as error:
        raise InvalidData(
            f"line {reader.line_num} of the file cannot be read ({error}); allowed: cells in double "
            "quotes if they hold the delimiter, a quote (written twice) or a line break."
        ) from error
    finally:
        csv.field_size_limit(previous)


def _find_delimiter(content: bytes) -> str:
    """Choose the delimiter that gives most rows of equal length and most cells that are numbers."""
    best, delimiter = (0.0, 0.0, 0), ","
    for candidate in DELIMITERS:
        if candidate == " " and best[2] > 1:
            break
        try:
            head = [cells for _, cells in islice(_rows(content, candidate), HEAD_LINES)]
        except InvalidData:
            continue
        if not head or len(head[0]) < 2:
            continue
        cells = [cell for row in head for cell in row]
        agreement = sum(len(row) == len(head[0]) for row in head) / len(head)
        numbers = sum(is_number(_pointed(cell, candidate)) for cell in cells) / len(cells)
        score = (round(agreement, 1), numbers, len(head[0]))
        if score > best:
            best, delimiter = score, candidate
    return delimiter


def _pointed(cell: str, delimiter: str) -> str:
    """Replace a decimal comma by a point, unless the comma is the delimiter."""
    return cell if delimiter == "," else cell.replace(",", ".")


def _has_header(head: Sequence[Sequence[str]], expected: Sequence[str]) -> bool:
    """Return True if the first row names the columns."""
    first = [cell.strip() for cell in head[0]]
    if set(first) & set(expected):
        return True
    if not any(is_number(cell) for cell in first):
        return True
    for position, cell in enumerate(first):
        below = [row[position] for row in head[1:] if position < len(row)]
        values = [value for value in below if not is_missing(value)]
        if values and all(map(is_number, values)) and not (is_number(cell) or is_missing(cell)):
            return True
    return False


def _read_columns(
    path: Path,
    content: bytes,
    delimiter: str,
    head: Sequence[Sequence[str]],
    lines: int,
    room: float,
) -> list[Column]:
    """Read the columns below a header of `lines` lines; rows must have equal length."""
    rows = head[lines > 0 :]
    textual = [
        not all(is_number(cell) or is_missing(cell) for cell in cells)
        for cells in ([row[i] for row in rows if i < len(row)] for i in range(len(head[0])))
    ]
    table, used = content, delimiter
    if delimiter == " " or has_odd_quotes(content, delimiter):
        # Python's csv module writes the text again, with commas and usual quotes.
        written = io.BytesIO()
        text = io.TextIOWrapper(written, encoding="utf-8", newline="")
        below = islice(_rows(content, delimiter), int(lines > 0), None)
        csv.writer(text, lineterminator="\n").writerows(cells for _, cells in below)
        text.flush()
        table, used, lines = written.getvalue(), ",", 0
    ends = re.finditer(rb"\r\n?|\n", table)
    start = next(islice(ends, lines - 1, None)).end() if lines else 0
    columns = read_columns(table, start, used, textual, where=path, room=room)
    if columns is None:
        raise _ragged(path, content, delimiter, len(textual))
    return columns


def _ragged(path: Path, content: bytes, delimiter: str, n_columns: int) -> InvalidData:
    """Return the error that names the first row whose length differs."""
    lengths = ((line, len(cells)) for line, cells in _rows(content, delimiter))
    odd = (one for one in lengths if one[1] != n_columns)
    line, n_cells = next(odd)
    count = 1 + sum(1 for _ in odd)
    return InvalidData(
        f"{path} has {counted(count, 'row')} of another length than its first row: line {line} has "
        f"{n_cells} cells, the first row {n_columns}; allowed: as many cells in every row. "
        "Correct these lines, or put cells that hold the delimiter into double quotes."
    )
