"""Writing to the terminal: results on standard output, notes and progress on standard error."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from solvable.paths import printable
from solvable.plots.numbers import format_duration
from solvable.plots.tables import Cell, console_for

if TYPE_CHECKING:
    from rich.console import RenderableType

    from solvable.study.run import Progress


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


def write_json(value: Any) -> None:
    """Write a value as JSON, indented on a terminal, on one line in a pipe; NaN is an error."""
    indent = 2 if sys.stdout.isatty() else None
    sys.stdout.write(json.dumps(value, indent=indent, allow_nan=False) + "\n")


def note(message: str) -> None:
    """Write one line to standard error."""
    print(printable(message), file=sys.stderr, flush=True)


@contextmanager
def progress_bar(shown: bool, unit: str = "tasks") -> Iterator[Progress]:
    """Show finished tasks and time left during a study, if standard error is a terminal."""
    if not (shown and sys.stderr.isatty()):
        yield lambda done, total, seconds_left: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn

    bar = _bar(
        SpinnerColumn(),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(f"{unit} · {{task.fields[left]}}"),
    )
    with bar:
        task = bar.add_task("tasks", total=None, deadline=None, left="starting workers")

        def show(done: int, total: int, seconds_left: float | None) -> None:
            deadline = None if seconds_left is None else time.monotonic() + seconds_left
            bar.update(task, completed=done, total=total, deadline=deadline)

        yield show


def _bar(*columns: Any) -> Any:
    from rich.progress import Progress as Bar

    class Countdown(Bar):
        """Column that counts the time left down between two tasks."""

        def get_renderables(self) -> Iterator[Any]:
            for task in self.tasks:
                if task.total is not None:
                    task.fields["left"] = time_left(task.fields["deadline"], time.monotonic())
            yield from super().get_renderables()

    return Countdown(
        *columns, console=console_for(sys.stderr), transient=True, refresh_per_second=4
    )


def time_left(deadline: float | None, now: float) -> str:
    """Format the time until a deadline; "estimating time left" without an estimate."""
    if deadline is None:
        return "estimating time left"
    if deadline - now < 0.5:
        return "almost done"
    return f"{format_duration(deadline - now)} left"
