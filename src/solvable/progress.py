"""Progress of long work: a bar on a terminal or in a notebook, a line a minute in a pipe."""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from datetime import datetime, timedelta
from html import escape
from typing import Any

from solvable.errors import InvalidParameter, quoted
from solvable.plots.numbers import format_duration
from solvable.plots.tables import console_for

Progress = Callable[[int, int, float | None], None]
"""Function that receives the finished tasks, all tasks, and the estimated seconds left."""


def reporter(
    progress: Progress | bool | None, unit: str = "tasks"
) -> AbstractContextManager[Progress | None]:
    """Return the progress function that a caller asked for.

    True shows a bar in a notebook and on a terminal, and a line a minute elsewhere.
    """
    if progress is None or progress is False:
        return nullcontext(None)
    if progress is True:
        notebook = _kernel_display()
        if notebook is not None:
            return _notebook_bar(notebook, unit)
        return progress_bar(shown=True, unit=unit, lines=True)
    if callable(progress):
        return nullcontext(progress)
    raise InvalidParameter(
        f"progress is {quoted(progress)}; allowed: True, False, None, or a function that is called "
        "with the finished tasks, all tasks, and the seconds left or None."
    )


@contextmanager
def progress_bar(shown: bool, unit: str = "tasks", lines: bool = False) -> Iterator[Progress]:
    """Show finished work, its pace and the time left on standard error.

    A terminal shows a bar. A pipe or file receives nothing, or with ``lines`` a line at the start, each
    minute, and at the end.
    """
    if shown and sys.stderr.isatty():
        with _terminal_bar(unit) as show:
            yield show
    elif shown and lines:
        with _written_lines(unit) as show:
            yield show
    else:
        yield lambda done, total, seconds_left: None


class Pace:
    """State of the work, its pace over the last minutes, and the time left."""

    def __init__(self, unit: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.unit = unit
        self.done = 0
        self.total: int | None = None
        self.deadline: float | None = None
        self._clock = clock
        self._started = clock()
        self._reports: deque[tuple[float, int]] = deque()

    def add(self, done: int, total: int, seconds_left: float | None) -> None:
        """Receive a report, as a :data:`Progress`."""
        now = self._clock()
        if self.total is None:
            self._started = now
        self.done, self.total = done, total
        self.deadline = None if seconds_left is None else now + seconds_left
        window = 300.0  # seconds: workers of a cluster come and go
        self._reports.append((now, done))
        while len(self._reports) > 2 and self._reports[1][0] < now - window:
            self._reports.popleft()

    @property
    def per_minute(self) -> float | None:
        """Finished tasks a minute over the last five minutes; None before the first."""
        if not self._reports:
            return None
        begun, before = self._reports[0]
        spent = self._clock() - begun
        return 60 * (self.done - before) / spent if self.done > before and spent > 0 else None

    def rate(self) -> str:
        """Return the pace in words, or an empty text before the first finished task."""
        pace = self.per_minute
        if pace is None:
            return ""
        return f"{pace:.0f} a minute" if pace >= 10 else f"{pace:.2g} a minute"

    def left(self) -> str:
        """Return the time left, and from one minute on the time of day at which the work ends."""
        now = self._clock()
        text = time_left(self.deadline, now)
        if self.deadline is not None and self.deadline - now >= 60:
            text += f", until {time_of_day(self.deadline - now)}"
        return text

    def line(self) -> str:
        """Return the state in one line."""
        if self.total is None:
            return "starting"
        parts = [f"{self.done} of {self.total} {self.unit}", self.rate()]
        parts += [self.left()] if self.done < self.total else []
        return ", ".join(part for part in parts if part)

    def summary(self) -> str:
        """Return the finished tasks and the time that they took."""
        spent = format_duration(self._clock() - self._started)
        parts = [f"{self.done} of {self.total or 0} {self.unit} after {spent}", self.rate()]
        return ", ".join(part for part in parts if part)


def time_left(deadline: float | None, now: float) -> str:
    """Format the time until a deadline; "estimating time left" without an estimate."""
    if deadline is None:
        return "estimating time left"
    if deadline - now < 0.5:
        return "almost done"
    return f"{format_duration(deadline - now)} left"


def time_of_day(seconds: float, now: datetime | None = None) -> str:
    """Return the local time in so many seconds, with its date unless it is today."""
    now = now or datetime.now()
    end = now + timedelta(seconds=seconds)
    return end.strftime("%H:%M" if end.date() == now.date() else "%Y-%m-%d %H:%M")


@contextmanager
def _terminal_bar(unit: str) -> Iterator[Progress]:
    from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn
    from rich.progress import Progress as Bar

    pace = Pace(unit)

    class Countdown(Bar):
        """Bar whose text counts the time left down between two tasks."""

        def get_renderables(self) -> Iterator[Any]:
            for task in self.tasks:
                if pace.total is not None:
                    parts = [unit, pace.left(), pace.rate()]
                    task.fields["text"] = " · ".join(part for part in parts if part)
            yield from super().get_renderables()

    bar = Countdown(
        SpinnerColumn(),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TextColumn("{task.fields[text]}"),
        console=console_for(sys.stderr),
        transient=True,
        refresh_per_second=4,
    )
    with bar:
        task = bar.add_task("tasks", total=None, text=f"{unit} · starting workers")

        def show(done: int, total: int, seconds_left: float | None) -> None:
            pace.add(done, total, seconds_left)
            bar.update(task, completed=done, total=total)

        yield show


@contextmanager
def _written_lines(unit: str, every: float = 60.0) -> Iterator[Progress]:
    """Write a line at the start, each minute (even if no task ended in it), and at the end."""
    pace = Pace(unit)
    ended = threading.Event()

    def write(text: str) -> None:
        # a log that was closed must not end the work
        with suppress(OSError, ValueError):
            print(f"progress: {text}", file=sys.stderr, flush=True)

    def follow() -> None:
        while not ended.wait(every):
            write(pace.line())

    def show(done: int, total: int, seconds_left: float | None) -> None:
        first = pace.total is None
        pace.add(done, total, seconds_left)
        if first:
            write(pace.line())

    follower = threading.Thread(target=follow, daemon=True, name="solvable-progress")
    follower.start()
    try:
        yield show
    finally:
        ended.set()
        follower.join()
        if pace.total is not None:  # else the work was refused before it began
            write(pace.summary())


def _kernel_display() -> Any:
    """Return the display function of IPython if this process is a notebook's kernel, or None."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if getattr(shell, "kernel", None) is None:
        return None
    from IPython.display import display

    return display


class _NotebookBar:
    """Bar of HTML; its text alone where a notebook shows no HTML."""

    def __init__(self, done: int, total: int, text: str) -> None:
        self._bar = (
            f'<progress value="{done}" max="{max(total, 1)}" aria-label="finished"></progress>'
        )
        self._text = text

    def _repr_html_(self) -> str:
        return f"{self._bar} {escape(self._text)}"

    def __repr__(self) -> str:
        return self._text


@contextmanager
def _notebook_bar(display: Any, unit: str, every: float = 0.25) -> Iterator[Progress]:
    """Show one bar below the cell and update it in place, at most four times a second."""
    pace = Pace(unit)
    handle = display(_NotebookBar(0, 1, f"{unit}: starting workers"), display_id=True)
    shown = -every

    def show(done: int, total: int, seconds_left: float | None) -> None:
        nonlocal shown
        pace.add(done, total, seconds_left)
        if time.monotonic() - shown >= every:
            shown = time.monotonic()
            handle.update(_NotebookBar(done, total, pace.line()))

    try:
        yield show
    finally:
        handle.update(_NotebookBar(pace.done, pace.total or 1, pace.summary()))
