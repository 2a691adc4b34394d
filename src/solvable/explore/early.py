"""Answers of the server while Dash is still being imported."""

from __future__ import annotations

import importlib.util
import threading
from collections.abc import Iterable, Iterator
from html import escape
from pathlib import Path
from typing import Any

PLOTLY = "plotly.min.js"
"""Name of Plotly's script under the address of the page."""

MARK = "<!-- page -->"
"""Stands in the page of Dash where `start_of_page` ends."""

LONGEST = 120.0
"""Seconds for which a request waits until the page is built."""


def start_of_page(title: str) -> str:
    """Return the first lines of the page.

    Plotly's script takes a browser longer than everything else of the page, so that it starts with it
    while this process imports Dash.
    """
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        f"<title>{escape(title)}</title>"
        f'<script async id="plotly" src="{PLOTLY}"></script>'
    )


class Early:
    """Web application that answers at once with what needs no Dash, and else waits for the page."""

    def __init__(self, token: str, title: str) -> None:
        self._path = f"/{token}/"
        self._start = start_of_page(title).encode()
        self._built = threading.Event()
        self._page: Any = None

    def open(self, page: Any) -> None:
        """Give the built page to requests; None if there will be none."""
        self._page = page
        self._built.set()

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        """Answer one request."""
        path, method = environ["PATH_INFO"], environ["REQUEST_METHOD"]
        if method == "GET" and path == self._path + PLOTLY:
            return _script(start_response)
        if method == "GET" and path == self._path:
            start_response("200 OK", [("Content-Type", "text/html; charset=utf-8")])
            return self._in_two_parts(environ)
        self._built.wait(LONGEST)
        if self._page is None:
            start_response("503 Service Unavailable", [("Content-Type", "text/plain")])
            return [b"503: the page could not be built.\n"]
        answered: Iterable[bytes] = self._page(environ, start_response)
        return answered

    def _in_two_parts(self, environ: dict[str, Any]) -> Iterator[bytes]:
        """Yield the first lines, and the rest once the page is built."""
        yield self._start
        self._built.wait(LONGEST)
        if self._page is not None:
            parts = self._page(environ, lambda *_: None)
            whole = b"".join(parts)
            getattr(parts, "close", lambda: None)()
            yield whole.partition(MARK.encode())[2]


def _script(start_response: Any) -> list[bytes]:
    """Return Plotly's script in one piece: many small pieces would each wait for the import of Dash."""
    found = importlib.util.find_spec("plotly")  # found without an import
    folders = [] if found is None else found.submodule_search_locations or []
    for folder in folders:
        path = Path(folder, "package_data", PLOTLY)
        if path.is_file():
            text = path.read_bytes()
            headers = [
                ("Content-Type", "text/javascript; charset=utf-8"),
                ("Content-Length", str(len(text))),
                ("Cache-Control", "private, max-age=86400"),
            ]
            start_response("200 OK", headers)
            return [text]
    start_response("404 Not Found", [("Content-Type", "text/plain")])
    return [b"404: the package plotly has no script.\n"]
