"""Check built documentation in headless Chromium: `python tests/support/site_check.py BUILD [PAGE ...]`.

On every page: no horizontal scroll and no cut content at 400 px, the title first, a contrast of 4.5 in
light and dark, and an alternative text of every image. The offline search must lead each word of
`tests/docs/searches.toml` to a page listed there.
"""

from __future__ import annotations

import argparse
import json
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SEARCHES = HERE.parent / "docs" / "searches.toml"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--window-size=1400,1000",
    # Only the server below can be reached.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)


def browser() -> str | None:
    """Path of an installed Chromium; None without one."""
    return next((path for path in map(shutil.which, BROWSERS) if path), None)


class Handler(SimpleHTTPRequestHandler):
    """Serve the pages, the driver and the work; collect findings."""

    def __init__(self, *request: Any, work: bytes, answers: queue.Queue[Any], **options: Any):
        self.work, self.answers = work, answers
        super().__init__(*request, **options)

    def do_GET(self) -> None:
        """Send a page, or one of the two addresses of the check."""
        if self.path == "/-check-":
            self._send(b"<!doctype html><body><script src='/-driver-'></script>", "text/html")
        elif self.path == "/-driver-":
            script = (HERE / "site_check.js").read_bytes()
            self._send(b"const WORK = " + self.work + b";\n" + script, "text/javascript")
        else:
            super().do_GET()

    def do_POST(self) -> None:
        """Take the findings of one page or search."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.answers.put(json.loads(body))
        self._send(b"", "text/plain")

    def _send(self, body: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *parts: Any) -> None:
        """Print nothing."""


Answers = dict[str, list[str]]


def inspect(
    build: Path, pages: list[str], words: list[str], patience: float = 600, attempts: int = 3
) -> tuple[Answers, Answers]:
    """Findings by page, and pages found by word, best first.

    A browser that ends or gives no answer for `patience` seconds is started again on what is left.
    """
    program = browser()
    if program is None:
        raise SystemExit(f"no browser is installed; one of {', '.join(BROWSERS)} is needed")
    found: Answers = {}
    hits: Answers = {}
    for _ in range(attempts):
        left = (
            [page for page in pages if page not in found],
            [word for word in words if word not in hits],
        )
        if any(left):
            _drive(program, build, *left, (found, hits), patience)
    missing = [*(set(pages) - found.keys()), *(set(words) - hits.keys())]
    if missing:
        raise SystemExit(f"no answer in {attempts} attempts; left: {missing[:5]}")
    return found, hits


def _drive(
    program: str,
    build: Path,
    pages: list[str],
    words: list[str],
    into: tuple[Answers, Answers],
    patience: float,
) -> None:
    """Start a browser on the work, and collect its answers until all are there or it falls silent."""
    answers: queue.Queue[Any] = queue.Queue()
    work = json.dumps({"pages": pages, "words": words}).encode()
    handler = partial(Handler, work=work, answers=answers, directory=str(build))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        address = f"http://127.0.0.1:{server.server_port}/-check-"
        command = [
            program,
            *FLAGS,
            f"--user-data-dir={profile}",
            "--remote-debugging-port=0",  # keeps a headless browser open
            address,
        ]
        quiet = subprocess.DEVNULL
        with subprocess.Popen(command, stdout=quiet, stderr=quiet) as process:
            try:
                for answer in _answers(answers, process, len(pages) + len(words), patience):
                    if "page" in answer:
                        into[0][answer["page"]] = answer["findings"]
                    else:
                        into[1][answer["word"]] = answer["hits"]
            finally:
                process.terminate()
                server.shutdown()
                server.server_close()


def _answers(
    answers: queue.Queue[Any], process: subprocess.Popen[bytes], count: int, patience: float
) -> Iterator[dict[str, Any]]:
    """Yield so many answers; fewer if the browser ends or is silent for too long."""
    end = time.monotonic() + patience
    while count and time.monotonic() < end:
        try:
            yield answers.get(timeout=1)
        except queue.Empty:
            if process.poll() is not None:
                return
        else:
            count, end = count - 1, time.monotonic() + patience


def searches() -> dict[str, list[str]]:
    """Pages that answer a search, by the words that people type."""
    lists = tomllib.loads(SEARCHES.read_text("utf-8"))
    return lists["pages"] | lists["first"]


def lost_searches(hits: Answers) -> list[str]:
    """Searches whose first results lack the pages that answer them."""
    lists = tomllib.loads(SEARCHES.read_text("utf-8"))
    lines = []
    for word, found in hits.items():
        expected, most = searches()[word], 1 if word in lists["first"] else 3
        if not set(found[:most]) & set(expected):
            seen = ", ".join(found[:3]) or "nothing"
            lines.append(f"search '{word}': {seen}; expected {expected} in the first {most}")
    return lines


def main(arguments: list[str]) -> int:
    """Print all findings; 1 if there are any."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", type=Path)
    parser.add_argument("pages", nargs="*", help="default: all pages, and searches")
    options = parser.parse_args(arguments)
    every = [path.relative_to(options.build).as_posix() for path in options.build.rglob("*.html")]
    pages = options.pages or sorted(page for page in every if not page.startswith("_static/"))
    words = [] if options.pages else list(searches())
    found, hits = inspect(options.build, pages, words)
    lines = [f"{page}: {finding}" for page in pages for finding in found[page]]
    lines += lost_searches(hits)
    print("\n".join(lines))
    print(f"{len(pages)} pages and {len(words)} searches: {len(lines)} findings")
    return bool(lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
