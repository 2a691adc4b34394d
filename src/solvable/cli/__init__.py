"""The command line: one file per command, each a thin layer over the library."""

from __future__ import annotations

from solvable.cli.app import main

__all__ = ["main"]
