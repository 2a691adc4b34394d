"""Estimate, while unpacking compressed delimited text, the memory that reading it will need."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

import numpy as np

from solvable.errors import InvalidData
from solvable.numpy_files import check_unpacked, unpacked_limit

MOST_GAPS = 20  # largest number of columns of missing values in the matrix
BLOCK = 1 << 20  # number of bytes unpacked at a time

DELIMITERS = (",", ";", "\t", "|", " ")
"""Delimiters of cells; a space also matches a sequence of blanks."""


class TextSize:
    """Counts of lines and cells in a text, and the largest memory needed to read it as a table."""

    def __init__(self) -> None:
        self.text = 0
        self.lines = 1
        self.ends = dict.fromkeys(DELIMITERS, 0)  # number of cells that end in each delimiter

    def add(self, block: bytes) -> None:
        """Add the lines and cells of one more block of text to the counts."""
        self.text += len(block)
        self.lines += block.count(b"\n") + block.count(b"\r")
        for delimiter in DELIMITERS:
            self.ends[delimiter] += _count(block, delimiter)

    @property
    def cells(self) -> int:
        """Upper bound of the table's number of cells, for any delimiter."""
        return self.lines + max(self.ends.values())

    @property
    def needed(self) -> float:
        """Largest number of bytes that reading keeps in memory at a time."""
        # Measured (tests/data/test_csv_memory.py): up to three copies of the text while it is unpacked
        # and decoded; 8 bytes per cell in its column and 8 in the matrix, which has further columns of
        # missing values; the target per row; the first
        # rows and the blocks of Arrow per column; and blocks of the matrix.
        held = 3.5 * self.text + 18.0 * self.cells + 30.0 * self.lines
        held += 8.0 * min(self.cells, MOST_GAPS * self.lines)
        held += 15e3 * self.cells / self.lines
        return held + min(4e7, 5.0 * held)


def _count(block: bytes, delimiter: str) -> int:
    if delimiter != " ":
        return block.count(delimiter.encode())
    blank = np.frombuffer(block, "u1") == ord(" ")
    return int(np.count_nonzero(blank[1:] > blank[:-1])) + int(blank[:1].sum())


def unpack(path: Path) -> tuple[bytes, float]:
    """Unpack a gzipped text that fits into memory; return it and the memory left for distinct texts."""
    size, most = TextSize(), unpacked_limit()
    blocks = []
    try:
        with gzip.open(path) as stream:
            while block := stream.read(BLOCK):
                size.add(block)
                check_unpacked(
                    size.needed, f"{path}, as a table of at least {size.cells} cells,", most
                )
                blocks.append(block)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InvalidData(f"{path} is damaged: {error}. Download or compress it again.") from error
    return b"".join(blocks), most - size.needed
