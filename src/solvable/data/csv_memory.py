"""The memory that reading delimited text takes, counted while it is unpacked."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

import numpy as np

from solvable.errors import InvalidData
from solvable.numpy_files import check_unpacked, unpacked_limit

BLOCK = 1 << 20  # bytes that are unpacked and counted together

DELIMITERS = (",", ";", "\t", "|", " ")
"""Delimiters of cells; the space stands for any run of blanks."""


class TextSize:
    """Counts over the blocks of a text, and the most memory that reading it as a table takes."""

    def __init__(self) -> None:
        self.text = 0
        self.lines = 1
        self.ends = dict.fromkeys(DELIMITERS, 0)  # cells that end in each

    def add(self, block: bytes) -> None:
        """Count one more block."""
        self.text += len(block)
        self.lines += block.count(b"\n") + block.count(b"\r")
        for delimiter in DELIMITERS:
            self.ends[delimiter] += _count(block, delimiter)

    @property
    def cells(self) -> int:
        """Cells of the table, whichever delimiter it has, or a few more."""
        return self.lines + max(self.ends.values())

    @property
    def needed(self) -> float:
        """Most bytes that are held at a time."""
        # Measured (tests/data/test_csv_memory.py): the text up to three times, as it is unpacked and
        # decoded; each cell as a number of its column and again in the matrix, 8 bytes each; each row
        # in the target; each column in the rows that are looked at first and in blocks of Arrow; and
        # blocks of the matrix, whatever its size.
        held = 3.5 * self.text + 18.0 * self.cells + 30.0 * self.lines
        held += 15e3 * self.cells / self.lines
        return held + min(4e7, 5.0 * held)


def _count(block: bytes, delimiter: str) -> int:
    if delimiter != " ":
        return block.count(delimiter.encode())
    blank = np.frombuffer(block, "u1") == ord(" ")
    return int(np.count_nonzero(blank[1:] > blank[:-1])) + int(blank[:1].sum())


def unpack(path: Path) -> tuple[bytes, float]:
    """Text of a gzipped file, and the memory that its texts may take; refused where it is too long."""
    size, most = TextSize(), unpacked_limit()
    blocks = []
    try:
        with gzip.open(path) as stream:
            while block := stream.read(BLOCK):
                size.add(block)
                check_unpacked(
                    size.needed, f"{path}, as a table of {size.cells} cells or more,", most
                )
                blocks.append(block)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InvalidData(f"{path} is damaged: {error}. Fetch or compress it anew.") from error
    return b"".join(blocks), most - size.needed
