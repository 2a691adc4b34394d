"""A headless Chromium that loads a page, or is driven through the DevTools protocol."""

from __future__ import annotations

import base64
import itertools
import json
import shutil
import subprocess
import time
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import Any

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
)

OFFLINE = (
    # Every host name is unknown and no address can be reached.
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--proxy-server=127.0.0.1:9",
    "--enable-logging=stderr",
    "--log-level=0",
)

DRIVEN = (
    "--hide-scrollbars",
    # This machine alone can be reached.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
    "--remote-debugging-port=0",
    "--remote-allow-origins=*",
)


def loaded(page: Path, profile: Path, width: int = 1200) -> tuple[str, list[str]]:
    """Load a page without a network; return its DOM and the lines of the console."""
    command = [str(BROWSER), *FLAGS, *OFFLINE, f"--user-data-dir={profile}"]
    command += [f"--window-size={width},1000", "--virtual-time-budget=12000"]
    done = subprocess.run(
        [*command, "--dump-dom", page.as_uri()], capture_output=True, timeout=90, check=True
    )
    lines = done.stderr.decode(errors="replace").splitlines()
    return done.stdout.decode(), [line for line in lines if "CONSOLE" in line]


class Browser:
    """One tab of a headless browser.

    Without `watched` it records no requests and complaints. A watched tab takes twice as long to load
    Plotly's script, as the browser then keeps the places of errors.
    """

    def __init__(self, profile: Path, *, watched: bool = True) -> None:
        self.process = subprocess.Popen(
            [str(BROWSER), *FLAGS, *DRIVEN, f"--user-data-dir={profile}", "about:blank"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        port = self._port(profile / "DevToolsActivePort")
        import websocket

        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list", timeout=20) as answer:
            tabs = json.load(answer)
        address = next(tab["webSocketDebuggerUrl"] for tab in tabs if tab["type"] == "page")
        self.socket = websocket.create_connection(address, timeout=60, max_size=None)
        self.numbers = itertools.count(1)
        self.events: list[dict[str, Any]] = []
        for domain in ("Page", "Runtime", "Network", "Log") if watched else ("Page",):
            self.call(f"{domain}.enable")

    @staticmethod
    def _port(path: Path) -> int:
        end = time.monotonic() + 40
        while time.monotonic() < end:
            with suppress(OSError, ValueError, IndexError):
                return int(path.read_text().splitlines()[0])
            time.sleep(0.05)
        raise TimeoutError("the browser did not start")

    def call(self, method: str, **parameters: Any) -> Any:
        number = next(self.numbers)
        self.socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self.socket.recv())
            if message.get("id") == number:
                assert "error" not in message, message
                return message["result"]
            self.events.append(message)

    def run(self, script: str) -> Any:
        """Evaluate a script, and wait for it if it is a promise."""
        found = self.call(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True,
            userGesture=True,
        )  # fmt: skip
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def wait(self, script: str, seconds: float = 40) -> Any:
        """Wait until a script is true, and return its value."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if value := self.run(script):
                return value
            time.sleep(0.03)
        text = self.run("document.body && document.body.innerText")
        raise TimeoutError(f"{script} stayed false on: {text!r}")

    def open(self, address: str) -> None:
        self.call("Page.navigate", url=address)

    def click(self, selector: str) -> None:
        """Press and release the mouse at the centre of an element."""
        at = self.run(
            "(function () { const one = document.querySelector(" + json.dumps(selector) + ");"
            "one.scrollIntoView({block: 'center', behavior: 'instant'});"
            "const box = one.getBoundingClientRect();"
            "return [box.left + box.width / 2, box.top + box.height / 2]; })()"
        )
        self.press(*at)

    def press(self, x: float, y: float) -> None:
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def key(self, name: str, code: int) -> None:
        for kind in ("keyDown", "keyUp"):
            self.call(
                "Input.dispatchKeyEvent", type=kind, key=name, code=name,
                windowsVirtualKeyCode=code,
            )  # fmt: skip

    def size(self, width: int, height: int = 900, dark: bool = False) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height,
            deviceScaleFactor=1, mobile=False,
        )  # fmt: skip
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def picture(self, path: Path, whole: bool = False) -> None:
        found = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(found["data"]))

    def complaints(self) -> list[str]:
        """Return errors in the console."""
        found = []
        for event in self.events:
            parameters = event.get("params", {})
            if event["method"] == "Runtime.exceptionThrown":
                found.append(json.dumps(parameters)[:500])
            if event["method"] == "Log.entryAdded" and parameters["entry"]["level"] == "error":
                found.append(parameters["entry"]["text"] + str(parameters["entry"].get("url")))
        return found

    def requested(self) -> list[str]:
        """Return the addresses that were requested."""
        return [
            event["params"]["request"]["url"]
            for event in self.events
            if event["method"] == "Network.requestWillBeSent"
        ]

    def close(self) -> None:
        self.socket.close()
        self.process.terminate()
        self.process.wait(timeout=20)
