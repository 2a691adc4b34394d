"""Computation of only the newest of many requests."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager

MOST_PAGES = 200
"""Largest number of open pages whose newest request is remembered."""


class Newest:
    """Lets two requests compute at a time, and of those that wait only the newest of each page.

    Two, so that a new setting does not wait for a slow older one.
    """

    def __init__(self) -> None:
        self._numbers: OrderedDict[str, int] = OrderedDict()
        self._lock = threading.Lock()
        self._places = threading.Semaphore(2)

    @contextmanager
    def turn(self, page: str, number: int) -> Iterator[Callable[[], bool]]:
        """Wait for a place; yield whether the page has asked for nothing newer yet."""
        with self._lock:
            self._numbers[page] = max(number, self._numbers.get(page, 0))
            self._numbers.move_to_end(page)
            while len(self._numbers) > MOST_PAGES:
                self._numbers.popitem(last=False)
        with self._places:
            yield lambda: self._numbers.get(page, number) <= number
