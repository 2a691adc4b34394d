"""The command line: one file per command, each a thin layer over the library."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
from collections import namedtuple
from collections.abc import Sequence
from typing import Any

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; expected errors print one line on standard error.

    Parameters
    ----------
    arguments : sequence of str, optional
        Command-line arguments; default those of this process.

    Returns
    -------
    int
        0 success, 1 a claim or a task failed, 2 bad input, 130 Ctrl-C or SIGTERM, 141 broken pipe.
    """
    if arguments is None:
        return _as_process()
    from solvable.cli.app import main as run

    return run(arguments)


def _as_process() -> int:
    """Run the command of this process; one line and status 130 for signals, from the first moment on."""
    # Nothing is lost while the modules load, which takes a third of a second.
    on_signals(lambda number, frame: _interrupted())
    # Registered first, so called last: Python restores the default actions while it ends.
    atexit.register(on_signals, signal.SIG_IGN)
    _open_closed_streams()
    # set by `solvable explore` for its runs
    if os.environ.pop("SOLVABLE_ENDS_WITH_INPUT", "") == "1":
        threading.Thread(target=_watch_input, daemon=True).start()
    from solvable.cli.app import main as run

    status = run()
    on_signals(lambda number, frame: os._exit(status))
    if status == 130:
        # Python ends by SIGINT if an interrupt left a text that it evaluates, as dataclasses do, even if
        # it was handled later. Evaluating another text, as a named tuple does, clears this.
        namedtuple("Cleared", ())
    return status


def on_signals(action: Any) -> None:
    """Set the action for SIGINT and SIGTERM; ignored signals stay ignored, as in the background."""
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, action)


def _watch_input() -> None:
    """Interrupt this process when the process at the other end of its standard input has ended."""
    while os.read(0, 1024):
        pass
    os.kill(os.getpid(), signal.SIGINT)


def _interrupted() -> None:
    os.write(2, b"solvable: interrupted.\n")
    os._exit(130)


def _open_closed_streams() -> None:
    """Open /dev/null for standard streams that were closed, so that no other file takes their numbers."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115
