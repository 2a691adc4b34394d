"""Seconds from a moved slider to the figures of `solvable explore`, for every system.

Each slider moves to three values in one warm process on one BLAS thread; the lines of every panel are
drawn as data. The page draws only one panel, so its lines take less. A move that takes more than 30
seconds of CPU time is ended, and after two minutes of CPU time the remaining moves of a system are left
out; their rows have no seconds. Rows of systems that are not measured stay in the table.

    python benchmarks/explore.py [SYSTEM...]

measures these systems, by default all, and writes explore.csv and its table in README.md; --table
writes the table alone.
"""

from __future__ import annotations

import csv
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from threadpoolctl import threadpool_limits

from solvable.explore.controls import Control, controls
from solvable.explore.lines import theory_figures
from solvable.frame import registry
from solvable.frame.system import System

FILE = Path(__file__).with_name("explore.csv")

PAGE = Path(__file__).with_name("README.md")

MARKS = "<!-- explore -->\n", "\n<!-- end of explore -->"
"""Texts around the table in the page."""

SECONDS = 0.08
"""Budget of the first line, as on the page."""

LONGEST_MOVE, LONGEST = 30.0, 120.0
"""CPU seconds after which a move is ended, and after which no further move of a system starts."""

COLUMNS = ("system", "slider", "value", "cpu_seconds", "seconds", "predictions", "figures")

Row = tuple[Any, ...]


def places(control: Control) -> list[Any]:
    """Return three values across a slider."""
    return list(dict.fromkeys(control.at(share) for share in (0.25, 0.55, 0.8)))


def moves(system: System) -> Iterator[Row]:
    """Yield a row per move of a slider, and rows without seconds for moves that are ended or left out."""
    sliders = [control for control in controls(system) if control.kind == "slider"]
    # One move of each slider comes first, so that a slow system has some of every slider.
    planned = [
        (control.name, values[k])
        for k in range(3)
        for control in sliders
        if k < len(values := places(control))
    ]
    theory_figures(system, {}, seconds=SECONDS)  # imports
    end = time.process_time() + LONGEST
    for name, value in planned:
        empty = (system.name, name, value, "", "", "", "")
        yield empty if time.process_time() > end else move(system, name, value) or empty


class TooLong(BaseException):
    """Ends a move; no error, so that no system catches it."""


def move(system: System, name: str, value: Any) -> Row | None:
    """Return the row of one move; None if it takes too long."""
    # This clock counts CPU time: other programs on a busy machine do not count.
    signal.signal(signal.SIGPROF, end)
    signal.setitimer(signal.ITIMER_PROF, LONGEST_MOVE)
    cpu, wall = time.process_time(), time.perf_counter()
    try:
        lines = theory_figures(system, {name: value}, seconds=SECONDS)
    except TooLong:
        return None
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    cells = (round(cpu, 3), round(wall, 3), lines.predictions, len(lines.figures))
    return (system.name, name, value, *cells)


def end(*_: object) -> None:
    """End the move that is computed."""
    raise TooLong


def read() -> list[Row]:
    """Return the rows of the table."""
    with FILE.open(newline="") as file:
        return [tuple(row) for row in csv.reader(file)][1:]


def write(rows: Sequence[Row]) -> None:
    """Write the table, with systems in alphabetical order and their moves by slider."""
    with FILE.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(sorted(rows, key=lambda row: (row[0], row[1], float(row[2]))))


def table() -> str:
    """Return a Markdown table with a row per system, the fastest first."""
    systems: dict[str, list[Row]] = {}
    for row in read():
        systems.setdefault(row[0], []).append(row)
    found = []
    for name, rows in systems.items():
        seconds = [float(row[3]) for row in rows if row[3] != "" and int(row[6])]
        slow = sum(row[3] == "" for row in rows)
        below = f"{sum(s < 0.3 for s in seconds) / (len(seconds) + slow):.0%}"
        cells = (
            f"{len(seconds)} | {median(seconds):.2f} | {max(seconds):.2f} | {below} | {slow or ''}"
        )
        found.append((median(seconds), f"| {name} | {cells} |"))
    head = "| system | moves | median (s) | largest (s) | below 0.3 s | ended or left out |"
    return "\n".join([head, "|---|---|---|---|---|---|", *(line for _, line in sorted(found))])


def write_table() -> None:
    """Write the table into the page."""
    before, _, rest = PAGE.read_text().partition(MARKS[0])
    after = rest.partition(MARKS[1])[2]
    PAGE.write_text(before + MARKS[0] + table() + MARKS[1] + after)


def main() -> None:
    """Measure the systems named as arguments, or all; rows are written after each move."""
    names = [listing.name for listing in registry.available()]
    if sys.argv[1:] == ["--table"]:
        names = []
    for name in names and (sys.argv[1:] or names):
        kept = [row for row in read() if row[0] != name]
        rows: list[Row] = []
        with threadpool_limits(limits=1):
            for row in moves(registry.load(name)):
                rows.append(row)
                write([*kept, *rows])
        seconds = [row[3] for row in rows if row[3] != ""]
        words = [f"{name}: median {median(seconds):.2f} s, largest {max(seconds):.2f} s"]
        if left := [f"{row[1]} {row[2]}" for row in rows if row[3] == ""]:
            words.append(f"ended after {LONGEST_MOVE:g} s or left out: {', '.join(left)}")
        print("; ".join(words), flush=True)
    write_table()


if __name__ == "__main__":
    main()
