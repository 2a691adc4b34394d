"""The process that computes the lines of a page: both of its ends.

A prediction can take minutes, and its code does not check whether its result is still wanted.
The server therefore computes nothing itself, and kills the process if a newer request arrives.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from queue import Empty, SimpleQueue
from typing import Any

from solvable.errors import SolvableError, StudyError
from solvable.explore.answers import Desk
from solvable.frame.system import System
from solvable.paths import error_line

PATIENCE = 1.0
"""Seconds for which a computation goes on although a newer request has arrived.

Without them a slider that keeps moving would never show a line.
"""

COMMAND = "from solvable.explore.worker import serve; serve()"


class Worker:
    """The server's end: one request at a time, and of those that wait only the newest."""

    def __init__(self, system: System, start: Mapping[str, Any]) -> None:
        try:
            packed = _packed(system)
        except Exception as error:  # a system may hold anything
            raise StudyError(
                f"the system {system.name!r} cannot be sent to another process "
                f"({error_line(error)}). Define it in a module, and keep plain data on it."
            ) from error
        self._system = packed
        self._start: dict[str, Any] | None = dict(start)
        self._ordering, self._computing = threading.Lock(), threading.Lock()
        self._newest = 0
        self._closed = False
        self.computed = 0  # number of requests that were sent to the process, for tests
        self._spawn()

    def _spawn(self) -> None:
        """Start a process; its first message is sent once it is ready."""
        self._process = subprocess.Popen(
            [sys.executable, "-c", COMMAND],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            start_new_session=True,  # Ctrl-C ends the server, which ends this process
        )
        self._answers: SimpleQueue[Any] = SimpleQueue()
        self._ready = False
        threading.Thread(
            target=_receive, args=(self._process.stdout, self._answers), daemon=True
        ).start()
        self._send((sys.path, self._system, self._start))
        self._start = None  # only the first process prepares it

    def ask(self, request: Mapping[str, Any]) -> str | None:
        """Return the answer to a request; None if a newer one has arrived meanwhile."""
        with self._ordering:
            self._newest += 1
            number = self._newest
        with self._computing:
            if number < self._newest or self._closed:
                return None
            if self._process.poll() is not None:
                self._end()
                self._spawn()
            if not self._ready:
                self._ready = (ready := self._answers.get()) is not None
                if ready is None:
                    self._answers.put(None)  # the process has ended, as the answer will state
            self.computed += 1
            self._send(dict(request))
            return self._answer(number)

    def _answer(self, number: int) -> str | None:
        """Wait for the answer to a request, and end the process if it is no longer wanted."""
        newer_since = None
        while True:
            try:
                found: str | None = self._answers.get(timeout=0.02)
            except Empty:
                if self._newest == number:
                    continue
                if newer_since is None:
                    newer_since = time.monotonic()
                    self._send(None)  # a line that is being refined ends with the next prediction
                elif time.monotonic() - newer_since > PATIENCE:
                    self._end()
                    self._spawn()
                    return None
            else:
                if found is None and not self._closed:
                    self._end()  # its output ends before it can be seen to have ended
                    raise StudyError(
                        "the process that computes lines has ended (out of memory, or a crash in "
                        "compiled code?). Move a slider to start another."
                    )
                return found

    def _send(self, message: Any) -> None:
        assert self._process.stdin is not None
        with suppress(OSError):  # a process that has ended answers with the end of its output
            pickle.dump(message, self._process.stdin)
            self._process.stdin.flush()

    def _end(self) -> None:
        self._process.kill()
        self._process.wait()
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()

    def close(self) -> None:
        """End the process."""
        self._closed = True
        self._end()


def _receive(stream: Any, answers: SimpleQueue[Any]) -> None:
    """Queue what a process answers, and None at its end."""
    with stream, suppress(EOFError, OSError, pickle.UnpicklingError):
        while True:
            answers.put(pickle.load(stream))
    answers.put(None)


def serve() -> None:
    """Answer requests on standard input until it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a system prints is no answer
    requests: SimpleQueue[Any] = SimpleQueue()
    newer = threading.Event()
    threading.Thread(target=_read, args=(requests, newer), daemon=True).start()
    path, packed, start = requests.get()
    sys.path[:] = path

    def send(answer: str) -> None:
        pickle.dump(answer, output)
        output.flush()

    desk: Desk | None = None
    reason = ""
    try:
        desk = Desk(_unpacked(packed))
    except Exception as error:  # a system may raise any exception
        reason = str(error) if isinstance(error, SolvableError) else error_line(error)
    send("ready")
    if desk is not None and start is not None:
        with suppress(Exception):  # the page shows it
            desk.prepare(start)
    while True:
        asked = requests.get()
        newer.clear()
        if desk is None:
            send(Desk.refused(asked, f"this system cannot be loaded in another process: {reason}"))
        else:
            send(desk.answer(asked, newer.is_set))


def _packed(system: System) -> bytes:
    if system._module != "__main__":
        return pickle.dumps(system)
    # Functions of a script or a notebook travel by value, as no other process can import them.
    return bytes(import_module("cloudpickle").dumps((type(system), vars(system))))


def _unpacked(packed: bytes) -> System:
    found = pickle.loads(packed)
    if isinstance(found, System):
        return found
    kind, parts = found
    system: System = object.__new__(kind)
    vars(system).update(parts)
    return system


def _read(requests: SimpleQueue[Any], newer: threading.Event) -> None:
    """Queue requests, note that a newer one waits (None), and end the process with its server."""
    with suppress(EOFError):
        while True:
            message = pickle.load(sys.stdin.buffer)
            if message is None:
                newer.set()
            else:
                requests.put(message)
    os._exit(0)
