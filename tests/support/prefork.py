"""Run the program in forks of one process that has imported the libraries: a run starts at once."""

from __future__ import annotations

import atexit
import gc
import json
import os
import socket
import subprocess
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from tempfile import TemporaryFile

LIBRARIES = (
    *("numpy", "scipy.linalg", "scipy.optimize", "scipy.sparse.linalg", "scipy.special"),
    *(
        "scipy.integrate",
        "scipy.stats",
        "sklearn.ensemble",
        "joblib",
        "rich.progress",
        "rich.table",
    ),
)
"""Modules of other projects that are imported before the forks."""

PACKAGES = ("cli", "frame", "plots", "study", "data", "forecast", "learn", "diagnose", "scale")
"""Parts of this library that are imported before the forks."""

FILTERS = {"PYTHONWARNINGS": "error"}
"""Filters of warnings, which Python reads when it starts."""


class Prefork:
    """A process whose forks run `python -m solvable WORDS` in a given directory and environment."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        self.socket = ours
        self.process = subprocess.Popen(
            [sys.executable, __file__, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            env=os.environ | FILTERS | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
        )
        theirs.close()

    def run(
        self, words: list[str], cwd: Path, environment: Mapping[str, str], timeout: float
    ) -> subprocess.CompletedProcess[str]:
        """Run the program to its end, and return its status and output."""
        request = json.dumps([words, str(cwd), dict(environment)]).encode()
        with TemporaryFile() as output, TemporaryFile() as errors:
            head = len(request).to_bytes(8)
            socket.send_fds(self.socket, [head], [output.fileno(), errors.fileno()])
            self.socket.sendall(request)
            self.socket.settimeout(timeout)
            status = int.from_bytes(self.socket.recv(4), signed=True)
            texts = []
            for stream in (output, errors):
                stream.seek(0)
                texts.append(stream.read().decode("utf-8").replace("\r\n", "\n"))
        return subprocess.CompletedProcess(words, status, *texts)

    def close(self) -> None:
        """End the process."""
        self.socket.close()
        self.process.wait()


@contextmanager
def prefork() -> Iterator[Prefork]:
    """Start the process, and end it."""
    process = Prefork()
    try:
        yield process
    finally:
        process.close()


def serve(connection: socket.socket) -> None:
    """Answer requests one after another, each by a fork, until the other end closes."""
    with warnings.catch_warnings():
        # Of other projects: old libraries warn about newer ones that they import.
        warnings.simplefilter("ignore")
        for name in LIBRARIES:
            import_module(name)
        for package in PACKAGES:
            folder = import_module(f"solvable.{package}")
            for module in iter_modules(folder.__path__, f"solvable.{package}."):
                import_module(module.name)
    gc.collect()
    gc.freeze()
    while True:
        head, descriptors, _, _ = socket.recv_fds(connection, 8, 2)
        if not head:
            return
        request = b""
        while len(request) < int.from_bytes(head):
            request += connection.recv(1 << 16)
        child = os.fork()
        if not child:
            connection.close()
            run_here(*json.loads(request), *descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        connection.sendall(status.to_bytes(4, signed=True))


def run_here(
    words: list[str], cwd: str, environment: dict[str, str], output: int, errors: int
) -> None:
    """Run the program in this process, which ends with its status."""
    status = 1
    try:
        os.dup2(output, 1)
        os.dup2(errors, 2)
        os.chdir(cwd)
        os.environ.clear()
        os.environ.update(environment)
        # As at the start of Python: the first path is the folder of this script.
        paths = [path for path in environment.get("PYTHONPATH", "").split(os.pathsep) if path]
        sys.path[:] = [cwd, *paths, *(path for path in sys.path[1:] if path not in paths)]
        sys.argv = [str(Path(cwd) / "solvable"), *words]
        from solvable.cli import main

        status = main()
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as end:
        serve(end)
