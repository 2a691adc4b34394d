"""Writing to the terminal: results on standard output, notes on standard error."""

from __future__ import annotations

import json
import math
import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from solvable.paths import printable
from solvable.plots.tables import Cell, console_for

if TYPE_CHECKING:
    from rich.console import RenderableType


def write(*parts: RenderableType | Cell) -> None:
    """Write to standard output: literal text, cells as prose, tables."""
    from rich.text import Text

    console = console_for(sys.stdout)
    with console.capture() as captured:
        for part in parts:
            if isinstance(part, Cell):
                # prose, whose lines break between words
                console.print(Text(printable(part.text), style=part.style))
            elif isinstance(part, str):
                console.print(Text(printable(part)), soft_wrap=True)
            else:
                console.print(part)
    # not written by rich, which would end the process when a pipe is closed
    lines = (line.rstrip() for line in captured.get().splitlines())
    sys.stdout.write("".join(f"{line}\n" for line in lines))


def write_prose(*sentences: str, style: str = "") -> None:
    """Write sentences, each on new lines that break between words."""
    write(*(Cell(sentence, style) for sentence in sentences))


def write_title(title: str, settings: str = "") -> None:
    """Write a heading, and below it settings, if any."""
    write_prose(title, style="bold")
    if settings:
        write_prose(settings, style="dim")


@contextmanager
def status_line(message: str, *, shown: bool) -> Iterator[None]:
    """Show a line during work of a few seconds, if standard error is a terminal."""
    if not (shown and sys.stderr.isatty()):
        yield
        return
    with console_for(sys.stderr).status(message):
        yield


def repeated(command: str, *files: object, **options: object) -> str:
    """Return the command line that repeats a run, without options that are None, False, 0 or empty."""
    words = ["solvable", command, *map(str, files)]
    for name, value in options.items():
        flag = f"--{name.replace('_', '-')}"
        # a list of pairs is an option that is given several times
        for one in value if isinstance(value, list) else [value]:
            given = one if isinstance(one, tuple) else [] if one is True else [one]
            words += [flag, *map(str, given)] if one else []
    return shlex.join(words)


def write_json(value: Any) -> None:
    """Write a value as JSON, indented on a terminal, on one line in a pipe; NaN is an error."""
    indent = 2 if sys.stdout.isatty() else None
    sys.stdout.write(json.dumps(value, indent=indent, allow_nan=False) + "\n")


def plain(row: Mapping[str, Any]) -> dict[str, Any]:
    """Replace numbers that JSON lacks, which are not finite, by None."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in row.items()
    }


def note(message: str) -> None:
    """Write one line to standard error."""
    print(printable(message), file=sys.stderr, flush=True)
