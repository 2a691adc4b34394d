"""Kill a run before each of its SQL statements in turn, resume it and compare its results.

The argument is a directory. Prints the number of statements of a complete run. Each kill hits a forked
child, because a new process would spend its time on imports.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
from itertools import count
from pathlib import Path

from toy_system import Toy

from solvable.study import Study, run_study
from solvable.study.database import DETERMINISTIC_TABLES

STUDY = Study(Toy(), {"size": [1, 5]}, 1)


def content(directory: Path) -> dict[str, list[tuple]]:
    """Return the rows of the tables that a rerun must repeat."""
    connection = sqlite3.connect(directory / "study.sqlite")
    tables = {
        name: sorted(connection.execute(f"SELECT * FROM {name}"), key=repr)
        for name in DETERMINISTIC_TABLES
    }
    connection.close()
    return tables


def run_until(directory: Path, last: int) -> bool:
    """Run in a child process, killed before its statement ``last``; return True if it was killed."""
    child = os.fork()
    if child == 0:
        seen = count(1)

        def trace(statement: str) -> None:
            if next(seen) == last:
                os.kill(os.getpid(), signal.SIGKILL)

        connect = sqlite3.connect

        def traced(*arguments, **options):
            connection = connect(*arguments, **options)
            connection.set_trace_callback(trace)
            return connection

        sqlite3.connect = traced
        run_study(STUDY, directory, workers=1)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        return True
    assert os.waitstatus_to_exitcode(status) == 0
    return False


def main(where: Path) -> None:
    """Kill before statement 1, 2, 3, ... until a run finishes."""
    run_study(STUDY, where / "whole", workers=1)
    expected = content(where / "whole")
    for last in count(1):
        directory = where / str(last)
        killed = run_until(directory, last)
        assert run_study(STUDY, directory, workers=1).complete
        assert content(directory) == expected, last
        if not killed:
            print(last - 1)
            return


if __name__ == "__main__":
    main(Path(sys.argv[1]))
