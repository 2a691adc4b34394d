"""A page server on this machine alone, whose address holds a random token."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import socket
import threading
from collections.abc import Iterable
from typing import Any

from solvable.errors import InvalidParameter

HOST = "127.0.0.1"

RENDERER = "var renderer = new DashRenderer();"
"""Only script within the page; it starts Dash."""


def listen(port: int | None) -> socket.socket:
    """Return a listening socket; the system chooses a free port if none is given."""
    if port is not None and not 1 <= port <= 65535:
        raise InvalidParameter(f"--port is {port}; allowed: whole numbers from 1 to 65535.")
    opened = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        opened.bind((HOST, port or 0))
        opened.listen(128)
    except OSError as error:
        opened.close()
        raise InvalidParameter(
            f"--port is {port}, which cannot be used ({error.strerror}). Choose another one, or "
            "leave --port out for a free one."
        ) from None
    return opened


def new_token() -> str:
    """Return a random word of 192 bits."""
    return secrets.token_urlsafe(24)


class Guard:
    """Web application that refuses requests without the token or for another host, and sets headers."""

    def __init__(self, app: Any, token: str, port: int) -> None:
        self.app = app
        self.token = token.encode()
        self.hosts = {f"{name}:{port}" for name in (HOST, "localhost")}
        digest = base64.b64encode(hashlib.sha256(RENDERER.encode()).digest()).decode()
        policy = [
            "default-src 'self'",
            f"script-src 'self' 'sha256-{digest}'",
            "style-src 'self' 'unsafe-inline'",
            "img-src 'self' data: blob:",
            "object-src 'none'",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        ]
        # They keep the token in this browser, and scripts to our own.
        self.headers = [
            ("Content-Security-Policy", "; ".join(policy)),
            ("Referrer-Policy", "no-referrer"),
            ("X-Content-Type-Options", "nosniff"),
            ("Cross-Origin-Resource-Policy", "same-origin"),
        ]

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        """Answer a request, or refuse it with 403 before anything of it is used."""

        def start(status: str, headers: list[tuple[str, str]], *rest: Any) -> Any:
            return start_response(status, [*headers, *self.headers], *rest)

        if self._allowed(environ):
            answered: Iterable[bytes] = self.app(environ, start)
            return answered
        start("403 Forbidden", [("Content-Type", "text/plain; charset=utf-8")])
        return [
            b"403: this address lacks the token that the program printed, or names another "
            b"host. Open the whole address that it printed.\n"
        ]

    def _allowed(self, environ: dict[str, Any]) -> bool:
        """Return True with the token and our own host."""
        # A page of another site that points its name here (DNS rebinding) sends its own name.
        right_host = environ.get("HTTP_HOST") in self.hosts
        origin = environ.get("HTTP_ORIGIN")
        right_origin = origin is None or origin.removeprefix("http://") in self.hosts
        given = environ["PATH_INFO"].encode("latin-1").split(b"/")[1:2]
        known = hmac.compare_digest(b"".join(given), self.token)
        return known and right_host and right_origin


class PageServer:
    """A web server in threads of this process."""

    def __init__(self, app: Any, opened: socket.socket) -> None:
        from werkzeug.serving import WSGIRequestHandler, make_server

        class Quiet(WSGIRequestHandler):
            """Handler that logs nothing: addresses hold the token."""

            protocol_version = "HTTP/1.1"

            def log(self, type: str, message: str, *args: Any) -> None:
                """Write nothing."""

        self.server = make_server(
            HOST,
            opened.getsockname()[1],
            app,
            threaded=True,
            request_handler=Quiet,
            fd=opened.fileno(),
        )
        self.server.daemon_threads = True
        self.server.block_on_close = False
        self._opened = opened
        self._thread = threading.Thread(
            target=self.server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True
        )

    def start(self) -> None:
        """Answer requests in a thread."""
        self._thread.start()

    def close(self) -> None:
        """Stop answering, and free the port."""
        self.server.shutdown()
        self._thread.join()
        self.server.server_close()
        self._opened.close()
