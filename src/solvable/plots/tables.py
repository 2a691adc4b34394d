"""Tables of results, for a terminal or a page."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

PIPE_WIDTH = 120
"""Columns of a table that nobody's window limits."""


def console_for(stream: Any) -> Console:
    """Make a console that draws in the width of the terminal, or in a fixed one into a pipe.

    Parameters
    ----------
    stream : file
        Standard output or standard error.

    Returns
    -------
    rich.console.Console
        Without colours if the stream is no terminal or NO_COLOR is set.
    """
    from rich.console import Console

    narrow = stream.isatty() or "COLUMNS" in os.environ
    return Console(file=stream, width=None if narrow else PIPE_WIDTH, highlight=False)
