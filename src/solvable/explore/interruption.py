"""Computations that another thread can end."""

from __future__ import annotations

import ctypes
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")


class Unwanted(BaseException):
    """Ends a computation whose result nobody waits for; no error, so nothing catches it."""


class Interruptible:
    """One computation, which raises `Unwanted` in its thread once another thread ends it.

    A prediction can take minutes, and its code does not ask whether it is still wanted. The exception
    arrives between two operations of Python, as Ctrl-C does in the main thread, but not during the
    first seconds of `patience` and not during an import, which could leave half of a package behind.
    """

    def __init__(self, patience: float = 0.0) -> None:
        self._until = time.monotonic() + patience
        self._lock = threading.Lock()
        self._thread: int | None = None
        self._ended = False

    def run(self, function: Callable[[], T]) -> T:
        """Return the value of a function, or raise `Unwanted`."""
        with self._lock:
            if self._ended:
                raise Unwanted
            self._thread = threading.get_ident()
        try:
            return function()
        finally:
            self._close()

    def end(self) -> None:
        """Raise `Unwanted` in the thread of the computation, once, if it is not complete."""
        with self._lock:
            if not self._ended and self._thread is not None:
                wait = self._until - time.monotonic()
                if wait > 0 or _is_importing(self._thread):
                    later = threading.Timer(max(wait, 0.05), self.end)
                    later.daemon = True
                    later.start()
                    return
                _raise_in(self._thread, Unwanted)
            self._ended = True

    def _close(self) -> None:
        """Let nothing be raised in this thread from now on."""
        # The exception can arrive in these lines as well, but only once.
        for _ in range(2):
            with suppress(Unwanted), self._lock:
                if self._ended and self._thread is not None:
                    _raise_in(self._thread, None)
                self._thread = None


def _is_importing(thread: int) -> bool:
    """Return True while a thread imports a module."""
    frame = sys._current_frames().get(thread)
    while frame is not None:
        if "importlib._bootstrap" in frame.f_code.co_filename:
            return True
        frame = frame.f_back
    return False


def _raise_in(thread: int, exception: type[BaseException] | None) -> None:
    """Raise an exception in a thread, or take back one that has not arrived yet."""
    raised = None if exception is None else ctypes.py_object(exception)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), raised)
