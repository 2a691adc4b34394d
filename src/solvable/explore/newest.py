"""Computation of only the newest of many requests."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from solvable.explore.interruption import Interruptible, Unwanted

T = TypeVar("T")

PATIENCE = 1.0
"""Seconds for which a computation goes on although a newer request has arrived."""

MOST_PAGES = 200
"""Largest number of open pages whose newest request is remembered."""


class Newest:
    """Lets two requests compute at a time, and of those that wait only the newest of each page.

    Two, so that pages do not wait for each other. A newer request ends an older one of its page.
    """

    def __init__(self) -> None:
        self._numbers: OrderedDict[str, int] = OrderedDict()
        self._lock = threading.Lock()
        self._places = threading.Semaphore(2)
        self._running: dict[Interruptible, tuple[str, int]] = {}

    @contextmanager
    def turn(self, page: str, number: int) -> Iterator[Callable[[], bool]]:
        """Wait for a place; yield whether the page has asked for nothing newer yet."""
        with self._lock:
            self._numbers[page] = max(number, self._numbers.get(page, 0))
            self._numbers.move_to_end(page)
            while len(self._numbers) > MOST_PAGES:
                self._numbers.popitem(last=False)
            outdated = [
                running
                for running, (other, count) in self._running.items()
                if other == page and count < number
            ]
        for running in outdated:
            running.end()
        with self._places:
            yield lambda: self._numbers.get(page, number) <= number

    def compute(
        self, page: str, number: int, function: Callable[[], T], patience: float = PATIENCE
    ) -> T:
        """Call a function of the turn of a page; raise `Unwanted` once a newer request arrives."""
        running = Interruptible(patience)
        with self._lock:
            if self._numbers.get(page, number) > number:
                raise Unwanted
            self._running[running] = (page, number)
        try:
            return running.run(function)
        finally:
            with self._lock:
                del self._running[running]
