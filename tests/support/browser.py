"""A headless browser driven by chromedriver over its HTTP protocol, without further packages."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

BROWSER = next(
    (p for p in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if p), None
)
DRIVER = shutil.which("chromedriver")
MISSING = "chromium and chromedriver are needed"

KEYS = {"right": "\ue014", "left": "\ue012", "home": "\ue011", "end": "\ue010"}


class Browser:
    """One page of a headless browser."""

    def __init__(self, address: str) -> None:
        self.address = address

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """Send a command and return its value."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.address + path, data, method=method)
        request.add_header("Content-Type", "application/json")
        # proxies of the environment do not apply to this machine
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=60) as answer:
            return json.load(answer)["value"]

    def open(self, address: str) -> None:
        """Load a page."""
        self.call("POST", "/url", {"url": address})

    def script(self, text: str, *arguments: Any) -> Any:
        """Run JavaScript and return its result."""
        return self.call("POST", "/execute/sync", {"script": text, "args": list(arguments)})

    def press(self, selector: str, *keys: str) -> None:
        """Send real key strokes to an element."""
        found = self.call("POST", "/element", {"using": "css selector", "value": selector})
        element = next(iter(found.values()))
        text = "".join(KEYS.get(key, key) for key in keys)
        self.call("POST", f"/element/{element}/value", {"text": text})

    def wait(self, text: str, *arguments: Any, seconds: float = 20.0) -> Any:
        """Return the first true result of JavaScript; raises TimeoutError."""
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            if found := self.script(text, *arguments):
                return found
            time.sleep(0.03)
        raise TimeoutError(text)

    def messages(self) -> list[str]:
        """Return the errors of the browser's console since the last call."""
        rows = self.call("POST", "/se/log", {"type": "browser"})
        return [row["message"] for row in rows if row["level"] == "SEVERE"]

    def screenshot(self, path: Path) -> None:
        """Write a picture of the window."""
        path.write_bytes(base64.b64decode(self.call("GET", "/screenshot")))


@contextmanager
def browser(width: int = 1280, height: int = 900, *, dark: bool = False) -> Iterator[Browser]:
    """Start a browser that reaches no network; narrow windows are emulated."""
    flags = [
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--disable-background-networking",
        "--host-resolver-rules=MAP * ~NOTFOUND",
        f"--window-size={width},{height}",
    ]
    options: dict[str, Any] = {"binary": BROWSER, "args": flags}
    if dark:
        flags.append("--blink-settings=preferredColorScheme=0")
    if width < 500:
        metrics = {"width": width, "height": height, "pixelRatio": 1.0, "mobile": True}
        options["mobileEmulation"] = {"deviceMetrics": metrics}
    assert DRIVER is not None
    process = subprocess.Popen(
        [DRIVER, "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        assert process.stdout is not None
        line = next(text for text in process.stdout if "started successfully on port" in text)
        root = f"http://127.0.0.1:{int(line.rstrip().rstrip('.').rpartition(' ')[2])}"
        wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
        started = Browser(root).call("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        page = Browser(f"{root}/session/{started['sessionId']}")
        try:
            yield page
        finally:
            with suppress(OSError):
                page.call("DELETE", "")
    finally:
        process.terminate()
        try:
            process.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.stdout.close()
            process.wait()
