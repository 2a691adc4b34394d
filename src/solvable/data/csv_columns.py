"""Read the columns of delimited text with Arrow, and detect quotes that Arrow misreads."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from solvable.data.cells import USUAL_MISSING, Parsed, parse_cells
from solvable.errors import InvalidData, MemoryLimitExceeded
from solvable.memory import gigabytes

BLOCK = 1 << 18
"""Number of bytes read at a time; with larger blocks, Arrow keeps a second copy of much text."""

BLOCK_ROWS = 1024
"""Smallest number of rows per block; every block costs 30 microseconds and kilobytes per column."""


class Column:
    """Cells of one column, added in blocks: numbers if all cells are numbers, else codes of texts."""

    def __init__(self, most: int, *, is_text: bool) -> None:
        # The array has one entry per line of the file, so that blocks need not be concatenated.
        self.cells = np.empty(most, dtype=np.int32 if is_text else np.float64)
        self.is_text = is_text
        self.rows = 0
        self.codes: dict[str, int] = {}
        self.held = 0  # number of bytes that the distinct texts occupy

    def add(self, cells: Any) -> bool:
        """Add an Arrow array of texts; return False if a cell that should be a number is not one."""
        values = self._coded(cells) if self.is_text else _as_numbers(cells)
        if values is None:
            return False
        self.cells[self.rows : self.rows + len(values)] = values
        self.rows += len(values)
        return True

    def _coded(self, cells: Any) -> np.ndarray:
        encoded = cells.dictionary_encode(null_encoding="encode")
        texts = [text or "" for text in encoded.dictionary.to_pylist()]
        known = len(self.codes)
        codes = [self.codes.setdefault(text, len(self.codes)) for text in texts]
        new = sum(len(text) for text, code in zip(texts, codes, strict=True) if code >= known)
        self.held += 250 * (len(self.codes) - known) + 3 * new
        return np.array(codes, dtype=np.int32)[np.from_dlpack(encoded.indices)]

    def parsed(self, *, decimal_comma: bool) -> Parsed:
        """Return the numbers or texts of the column, and a sentence about unusual notation."""
        cells = self.cells[: self.rows]
        if not self.is_text:
            return Parsed(cells)
        # Each distinct text is parsed once.
        counts = np.bincount(cells, minlength=len(self.codes))
        texts = parse_cells(list(self.codes), decimal_comma, counts)
        limits = None if texts.limits is None else texts.limits[cells]
        return Parsed(texts.values[cells], texts.note, limits)


def _as_numbers(cells: Any) -> np.ndarray | None:
    """Parse an Arrow array of texts as numbers (NaN if missing); None if a text is not a number."""
    import pyarrow as arrow
    from pyarrow import compute

    try:
        numbers = cells.cast(arrow.float64())
    except arrow.ArrowInvalid:
        try:
            numbers = compute.utf8_trim_whitespace(cells).cast(arrow.float64())
        except arrow.ArrowInvalid:
            return None
    if not numbers.null_count:
        return np.from_dlpack(numbers)
    # Arrow's own conversion of nulls would import pandas.
    values = np.full(len(numbers), np.nan)
    present = np.from_dlpack(numbers.is_valid().cast(arrow.uint8())).astype(bool)
    values[present] = np.from_dlpack(numbers.drop_null())
    return values


def read_columns(
    table: bytes,
    start: int,
    delimiter: str,
    textual: Sequence[bool],
    *,
    where: Path,
    room: float = math.inf,
) -> list[Column] | None:
    """Read the columns of UTF-8 text from a given position; return None if rows differ in length."""
    # room: largest memory for distinct texts; their number is known only after reading.
    # textual: True for columns known to contain text; all other columns are first read as numbers.
    import pyarrow as arrow

    if b'"' in table and b"\r\n" in table:
        # If a block ends inside a line break \r\n of a cell, Arrow 26 loses the \n.
        table = table[start:].replace(b"\r\n", b"\n")
        start = 0
    most = 1 + table.count(b"\n") + table.count(b"\r") - table.count(b"\r\n")
    block_size = min(max(BLOCK, BLOCK_ROWS * len(table) // most), 2**31 - 1)
    try:
        return _filled(table, start, delimiter, textual, most, block_size, where, room)
    except arrow.ArrowInvalid:  # Arrow raises this error if a row is longer than a block.
        whole = min(len(table), 2**31 - 1)
        try:
            return _filled(table, start, delimiter, textual, most, whole, where, room)
        except arrow.ArrowInvalid as error:
            raise InvalidData(f"{where} cannot be read ({error}). Correct these lines.") from error


def _filled(
    table: bytes,
    start: int,
    delimiter: str,
    textual: Sequence[bool],
    most: int,
    block_size: int,
    where: Path,
    room: float,
) -> list[Column] | None:
    columns = [Column(most, is_text=is_text) for is_text in textual]
    wanted = list(range(len(columns)))
    while wanted:
        late = set()
        for block in _blocks(table, start, delimiter, len(columns), wanted, block_size):
            if block is None:
                return None
            for position, cells in zip(wanted, block, strict=True):
                if position not in late and not columns[position].add(cells):
                    late.add(position)
            held = sum(column.held for column in columns)
            if held > room:
                raise MemoryLimitExceeded(
                    f"the different texts of {where} do not fit into half of the free memory; allowed: "
                    f"{gigabytes(room)} of texts. Free memory, split the file, or leave out columns of "
                    "text."
                )
        # A column read as numbers is read again as text if a later block contains text.
        wanted = sorted(late)
        for position in wanted:
            columns[position] = Column(most, is_text=True)
    return columns


def _blocks(
    table: bytes, start: int, delimiter: str, n_columns: int, wanted: Sequence[int], block_size: int
) -> Iterator[list[Any] | None]:
    """Yield the requested columns block by block; yield None at the end if rows differ in length."""
    import pyarrow as arrow
    from pyarrow import compute
    from pyarrow import csv as arrow_csv

    names = [str(position) for position in range(n_columns)]
    # The list has only the usual texts of missing values: each text costs Arrow kilobytes per column.
    missing = USUAL_MISSING - ({""} if n_columns == 1 else set())
    ragged = 0

    def skip(row: Any) -> str:
        nonlocal ragged
        ragged += bool(row.text.replace('"', "").strip())  # Blank lines are ignored.
        return "skip"

    with arrow_csv.open_csv(
        arrow.BufferReader(arrow.py_buffer(table).slice(start)),
        arrow_csv.ReadOptions(use_threads=False, column_names=names, block_size=block_size),
        arrow_csv.ParseOptions(
            delimiter=delimiter, newlines_in_values=b'"' in table, invalid_row_handler=skip
        ),
        arrow_csv.ConvertOptions(
            column_types=dict.fromkeys(names, arrow.string()),
            include_columns=[names[position] for position in wanted],
            null_values=sorted(missing),
            strings_can_be_null=True,
        ),
        memory_pool=arrow.system_memory_pool(),  # other pools keep freed memory
    ) as reader:
        for batch in reader:
            if n_columns == 1:
                text = compute.utf8_trim_whitespace(batch.column(0))
                batch = batch.filter(compute.not_equal(text, "").fill_null(True))
            yield batch.columns
    if ragged:
        yield None


def has_odd_quotes(content: bytes, delimiter: str) -> bool:
    """Return True if the text has quotes other than around cells or doubled inside cells."""
    if b'"' not in content:
        return False
    if content.count(b'"') % 2:
        return True
    usual = np.zeros(256, dtype=bool)
    usual[list(b'"\r\n' + delimiter.encode())] = True
    blank = False
    for start in range(0, len(content), BLOCK):
        part = np.frombuffer(b"\n" + content[max(start - 1, 0) : start + BLOCK + 1] + b"\n", "u1")
        places = np.flatnonzero(part[1:-1] == ord('"')) + 1
        before = part[places - 1]
        if (~usual[before] & ~usual[part[places + 1]]).any():
            return True
        blank |= bool((before == ord(" ")).any())
    pattern = b"(?:\\A|[\r\n" + re.escape(delimiter.encode()) + b']) +"'
    return blank and re.search(pattern, content) is not None
