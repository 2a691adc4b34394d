"""The memory of a compressed text is estimated while unpacking, and the estimate is an upper bound."""

from __future__ import annotations

import gzip
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from solvable.data import Preparation, Table
from solvable.data.csv_memory import TextSize
from solvable.errors import MemoryLimitExceeded

RNG = np.random.default_rng(0)
LIMIT = 89_000_000
LENGTH = 6_000_000


def table(delimiter: str, cells: list[str], columns: int) -> Callable[[int], str]:
    """Text of a given number of characters: a header, and cells drawn from a few."""

    def text(length: int) -> str:
        header = delimiter.join(f"c{i}" for i in range(columns)) + "\n"
        drawn = RNG.choice(cells, (200, columns))
        rows = "".join(delimiter.join(row) + "\n" for row in drawn)
        return header + rows * max(1, length // len(rows))

    return text


def different(length: int) -> str:
    return "c0,c1\n" + "".join(f"w{i:06x},q{i:06x}\n" for i in range(length // 16))


def one_line(length: int) -> str:
    return "0," * (length // 2)


numbers = [f"{value:.6f}" for value in RNG.random(100)]
prose = [f"lorem ipsum {i} dolor sit amet, consectetur".replace(",", "") for i in range(20)]
SHAPES: dict[str, tuple[Callable[[int], str], bool]] = {
    # Content of the file, and True if six million characters are read within the limit.
    "usual numbers": (table(",", numbers, 20), True),
    "prose": (table("\t", prose, 3), True),
    "digits": (table(",", ["0", "1"], 50), False),
    "digits between blanks": (table(" ", ["0", "1"], 50), False),
    "two columns": (table(",", ["0", "1"], 2), False),
    "letters": (table(";", ["x", "y"], 50), False),
    "empty cells": (table(",", ["", "", "1", "2"], 50), False),
    "different texts": (different, False),
    "one line": (one_line, False),
    "many columns": (table(",", ["0", "1"], 5_000), False),
}


def in_a_child(path: Path, limit: float) -> tuple[int, str]:
    """Increase of the peak memory of a process that reads the file, and its outcome."""
    code = f"""
import gzip, pathlib
import solvable.numpy_files
from solvable.data import load
from solvable.errors import MemoryLimitExceeded

def highest():
    # Unlike ru_maxrss, it does not begin with that of the process that started this one.
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))

small = pathlib.Path({str(path)!r}).with_name("small.csv.gz")
small.write_bytes(gzip.compress(b"a;b;y\\n" + b"1;x;0\\n2;y;1\\n" * 30))
load(small)
solvable.numpy_files.available_bytes = lambda: {2 * limit}
before = highest()
try:
    load({str(path)!r}, target="c0")
    ended = "read"
except MemoryLimitExceeded as error:
    ended = "refused: " + str(error)
print(highest() - before, ended)
"""
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    peak, ended = answer.stdout.split(" ", 1)
    return int(peak), ended.strip()


@pytest.mark.skipif(sys.platform != "linux", reason="peaks are read from /proc")
@pytest.mark.parametrize("shape", SHAPES)
def test_reading_stays_within_the_limit(tmp_path: Path, shape: str) -> None:
    make, is_read = SHAPES[shape]
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(make(LENGTH).encode(), 1))
    peak, ended = in_a_child(path, LIMIT)
    assert peak < LIMIT
    assert ended.startswith("read" if is_read else "refused: ")
    assert len(ended.splitlines()) == 1


@pytest.mark.skipif(sys.platform != "linux", reason="peaks are read from /proc")
@pytest.mark.parametrize(
    "shape", ["usual numbers", "prose", "digits", "two columns", "empty cells", "many columns"]
)
def test_reading_takes_no_more_than_is_counted(tmp_path: Path, shape: str) -> None:
    # Twice the length: memory that was free before reading, which differs by 2 MB, matters less.
    text = SHAPES[shape][0](2 * LENGTH).encode()
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(text, 1))
    counted = TextSize()
    counted.add(text)
    peak, ended = in_a_child(path, 1e12)
    assert ended == "read"
    assert peak < counted.needed
    # The estimate is of the size of the peak, so files that fit are not refused.
    assert counted.needed < 4 * peak


@pytest.mark.parametrize("size", [1, 7, 64, 10_000])
@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|", " "])
def test_blocks_of_any_size_count_every_cell(delimiter: str, size: int) -> None:
    rows = [[str(i * j) for j in range(i % 9 + 1)] for i in range(120)]
    text = "".join(delimiter.join(row) + "\n" for row in rows).encode()
    counted = TextSize()
    for start in range(0, len(text), size):
        counted.add(text[start : start + size])
    assert counted.text == len(text)
    assert counted.lines == 121
    # Cells end at a delimiter or at the end of the line; the last line is empty.
    assert counted.cells == sum(map(len, rows)) + 1


def test_runs_of_blanks_are_one_delimiter() -> None:
    counted = TextSize()
    counted.add(b"1    2     3\n" * 10)
    assert counted.cells == 31


def test_texts_of_more_columns_than_memory_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    words = np.array([f"w{i % 20}" for i in range(100_000)], dtype=object)
    table = Table(np.empty((100_000, 0)), (), {f"c{i}": words for i in range(5)})
    preparation = Preparation.fit(table)
    monkeypatch.setattr("solvable.data.columns.available_bytes", lambda: 8.9e7)
    with pytest.raises(MemoryLimitExceeded, match=r"100000 rows with 100 columns, .* need 90 MB"):
        preparation.transform(table)
