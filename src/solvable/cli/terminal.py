"""Writing to the terminal: results on standard output, notes and progress on standard error."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from solvable.plots.tables import console_for

if TYPE_CHECKING:
    from rich.console import RenderableType

    from solvable.study.run import Progress


def write(*parts: RenderableType) -> None:
    """Write text or tables to standard output.

    Parameters
    ----------
    *parts : str or rich renderable
        Text is written as it is, without markup.
    """
    from rich.text import Text

    console = console_for(sys.stdout)
    with console.capture() as captured:
        for part in parts:
            console.print(
                Text(part) if isinstance(part, str) else part, soft_wrap=isinstance(part, str)
            )
    # Written here and not by rich, which would end the process itself when a pipe is closed.
    lines = (line.rstrip() for line in captured.get().splitlines())
    sys.stdout.write("".join(f"{line}\n" for line in lines))


def write_title(title: str, settings: Mapping[str, Sequence[Any]] | None = None) -> None:
    """Write a heading, and below it the settings that it is about, if any.

    Parameters
    ----------
    title : str
        One line.
    settings : mapping, optional
        Values by parameter name.
    """
    from rich.text import Text

    from solvable.cli.settings import format_settings

    write(Text(title, style="bold"))
    if settings:
        write(Text(format_settings(settings), style="dim"))


@contextmanager
def status_line(message: str, *, shown: bool) -> Iterator[None]:
    """Show a line while something takes a few seconds, if somebody sits at the terminal.

    Parameters
    ----------
    message : str
        What is done.
    shown : bool
        False shows nothing.
    """
    if not (shown and sys.stderr.isatty()):
        yield
        return
    with console_for(sys.stderr).status(message):
        yield


def write_json(value: Any) -> None:
    """Write a value as JSON, indented for a person, on one line for a program.

    Parameters
    ----------
    value : object
        What ``json`` can write; NaN is an error because JSON has none.
    """
    indent = 2 if sys.stdout.isatty() else None
    sys.stdout.write(json.dumps(value, indent=indent, allow_nan=False) + "\n")


def note(message: str) -> None:
    """Write one line to standard error.

    Parameters
    ----------
    message : str
        Not a result: results go to standard output.
    """
    print(message, file=sys.stderr, flush=True)


def format_duration(seconds: float) -> str:
    """Write a duration for a reader.

    Parameters
    ----------
    seconds : float
        Not negative.

    Returns
    -------
    str
        Such as ``8 s``, ``2 min 05 s`` or ``3 h 20 min``.

    Examples
    --------
    >>> format_duration(8.2), format_duration(125), format_duration(12_000)
    ('8 s', '2 min 05 s', '3 h 20 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


@contextmanager
def progress_bar(shown: bool) -> Iterator[Progress]:
    """Show tasks done and time left while a study runs, if somebody sits at the terminal.

    Parameters
    ----------
    shown : bool
        False shows nothing; so does a standard error that is no terminal.

    Yields
    ------
    callable
        ``progress(done, total, seconds_left)`` for :func:`solvable.study.run_study`.
    """
    if not (shown and sys.stderr.isatty()):
        yield lambda done, total, seconds_left: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn

    bar = _bar(
        SpinnerColumn(),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("tasks · {task.fields[left]}"),
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
        """Counts the time left down between two tasks."""

        def get_renderables(self) -> Iterator[Any]:
            for task in self.tasks:
                if task.total is not None:
                    task.fields["left"] = time_left(task.fields["deadline"], time.monotonic())
            yield from super().get_renderables()

    return Countdown(
        *columns, console=console_for(sys.stderr), transient=True, refresh_per_second=4
    )


def time_left(deadline: float | None, now: float) -> str:
    """Say how long it is until a deadline.

    Parameters
    ----------
    deadline, now : float or None
        Seconds on one clock; None if there is no estimate yet.

    Returns
    -------
    str
        Text for the progress bar.

    Examples
    --------
    >>> time_left(70.0, 5.0), time_left(None, 5.0), time_left(4.0, 5.0)
    ('1 min 05 s left', 'estimating time left', 'almost done')
    """
    if deadline is None:
        return "estimating time left"
    if deadline - now < 0.5:
        return "almost done"
    return f"{format_duration(deadline - now)} left"
