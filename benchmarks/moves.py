"""Count moves between package folders while one command runs in this process.

    python benchmarks/moves.py learn digits
    python benchmarks/moves.py scale --layers erf:1 --target he3

Each call from code of `solvable/cli` to a function of the library is recorded with the folder
`solvable/X` of the function. A move is a call into another folder than the previous call. Calls from
`cli/terminal.py`, which prints, are not counted; neither are calls from other folders, threads and
processes. The command runs in a temporary directory without its output, and its exit status is returned.
"""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import chdir, redirect_stdout
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import solvable
from solvable.cli import main as run

SOURCE = Path(solvable.__file__).parent


@cache
def place(code: CodeType) -> tuple[str, ...]:
    """Return folder and file of a named function of the library; empty texts for other functions."""
    path = Path(code.co_filename)
    inside = path.is_relative_to(SOURCE) and not code.co_name.startswith("<")
    parts = path.relative_to(SOURCE).parts if inside else ()
    return parts if len(parts) > 1 else ()


def main() -> int:
    visited: list[str] = []

    def watch(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_back and (callee := place(frame.f_code)):
            caller = place(frame.f_back.f_code)
            if caller[:1] == ("cli",) and caller[1] != "terminal.py":
                visited.append(callee[0])

    words = [str(Path(word).absolute()) if Path(word).exists() else word for word in sys.argv[1:]]
    with (
        tempfile.TemporaryDirectory() as folder,
        chdir(folder),
        open(os.devnull, "w") as nowhere,
        redirect_stdout(nowhere),
    ):
        sys.setprofile(watch)
        status = run(words)
        sys.setprofile(None)
    moves = sum(before != after for before, after in pairwise(visited))
    print(f"{moves} moves between folders: {' > '.join(visited)}")
    return status


if __name__ == "__main__":
    raise SystemExit(main())
