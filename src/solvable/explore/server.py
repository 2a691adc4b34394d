"""A page server on this machine alone, whose address holds a random token."""

from __future__ import annotations

import hmac
import secrets
import socket
import threading
from typing import Any

from solvable.errors import InvalidParameter

HOST = "127.0.0.1"


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
    """Refuses requests without the token or for another host, and sets safe headers."""

    def __init__(self, token: str, port: int, scripts: list[str]) -> None:
        self.token = token.encode()
        self.hosts = {f"{name}:{port}" for name in (HOST, "localhost")}
        self.policy = "; ".join(
            [
                "default-src 'self'",
                "script-src 'self' " + " ".join(scripts),
                "style-src 'self' 'unsafe-inline'",
                "img-src 'self' data: blob:",
                "object-src 'none'",
                "base-uri 'none'",
                "form-action 'none'",
                "frame-ancestors 'none'",
            ]
        )

    def before(self) -> Any:
        """Refuse a request with 403, before anything of it is used."""
        from flask import Response, request

        # A page of another site that points its name here (DNS rebinding) sends its own name.
        origin = request.headers.get("Origin")
        right_host = request.host in self.hosts
        right_origin = origin is None or origin.removeprefix("http://") in self.hosts
        given = request.path.split("/")[1].encode()
        if not (hmac.compare_digest(given, self.token) and right_host and right_origin):
            return Response(
                "403: this address lacks the token that the program printed, or names another "
                "host. Open the whole address that it printed.\n",
                status=403,
                mimetype="text/plain",
            )
        return None

    def after(self, response: Any) -> Any:
        """Add headers that keep the token in this browser and scripts to our own."""
        response.headers["Content-Security-Policy"] = self.policy
        response.headers["Referrer-Policy"] = "no-referrer"
        response.headers["X-Content-Type-Options"] = "nosniff"
        response.headers["Cross-Origin-Resource-Policy"] = "same-origin"
        return response


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
