"""Seconds of `solvable explore` in Chromium: to the first page, and from a moved slider to the line.

The page server runs as a command in its own process. Each system gets the time until its address is
printed, until its first line is drawn, and the times of moved sliders; a request that computes
nothing gives the part of the browser and of the server. On a busy machine compare CPU seconds of the
server, which are printed as well.

    python benchmarks/explore_page.py [SYSTEM...]
    python benchmarks/explore_page.py --answers [SYSTEM...]

The second form measures the CPU seconds of the answers to the same moves in this process, without a
browser, and those of a matrix product as a reference.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from solvable.explore.page import positions

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from tests.support.devtools import Browser  # noqa: E402

SLIDERS = {
    "sequential-recovery": ("dimension", (96, 104, 112, 120, 128, 136, 144, 152)),
    "quadratic-network": ("noise", (10, 20, 30, 40, 50, 60, 70, 80)),
    "matrix-sensing": ("noise", (10, 20, 30, 40, 50, 60, 70, 80)),
    "single-index": ("noise", (2, 4, 6, 8, 10, 12, 14, 16)),
}
"""Moved slider of each system, and its positions."""

MOVE = """
(function () {
  const one = document.getElementById(%s);
  const set = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set;
  set.call(one, String(%d));
  one.dispatchEvent(new Event("input", {bubbles: true}));
})()
"""
"""Moves a slider as a drag does."""

EMPTY = """
(async function () {
  const start = performance.now();
  const config = JSON.parse(document.getElementById("_dash-config").textContent);
  const answer = await fetch(config.requests_pathname_prefix + "_dash-layout");
  await answer.text();
  return performance.now() - start;
})()
"""
"""Times a request that computes no line."""

SHOWN = "document.querySelector('#slot-0 .js-line') && document.body.dataset.drawn"
CALM = "document.getElementById('busy').textContent === '' && " + SHOWN


def cpu_seconds(process: int) -> float:
    """Return the CPU seconds of a process so far."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(system: str, browser: Browser, folder: str) -> dict[str, float]:
    """Return the times of one system in seconds."""
    words = [sys.executable, "-m", "solvable", "explore", system, "--no-browser"]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    start = time.perf_counter()
    server = subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=folder,
        env=environment,
    )  # fmt: skip
    try:
        assert server.stdout is not None
        address = server.stdout.readline().strip()
        printed = time.perf_counter() - start
        browser.size(1280)
        browser.open(address)
        browser.wait(SHOWN)
        first = time.perf_counter() - start
        first_cpu = cpu_seconds(server.pid)
        browser.wait(CALM, 120)
        empty = statistics.median(browser.run(EMPTY) for _ in range(9)) / 1000
        name, positions = SLIDERS[system]
        times, cpu = [], []
        for position in positions:
            time.sleep(1.0)
            browser.wait(CALM, 120)
            browser.run("window.exploreTimes.length = 0")
            before = cpu_seconds(server.pid)
            browser.run(MOVE % (json.dumps(f"position-{name}"), position))
            browser.wait("window.exploreTimes.length", 120)
            cpu.append(cpu_seconds(server.pid) - before)
            times.append(browser.run("window.exploreTimes[0]") / 1000)
    finally:
        server.terminate()
        server.wait(timeout=30)
    return {
        "address": printed,
        "first_page": first,
        "first_page_cpu": first_cpu,
        "empty": empty,
        "move": statistics.median(times),
        "longest_move": max(times),
        "move_cpu": statistics.median(cpu),
    }


def answers(system: str) -> dict[str, float]:
    """Return the CPU seconds of the answers to moves, and of a product of matrices of size 700."""
    from solvable.explore.answers import Desk
    from solvable.explore.page import panel_names
    from solvable.frame import registry

    loaded = registry.load(system)
    desk = Desk(loaded)
    name, places = SLIDERS[system]
    control = next(control for control in desk.controls if control.name == name)
    values = {control.name: control.default for control in desk.controls}
    panel = next(iter(panel_names(loaded)))
    matrix = np.random.default_rng(0).standard_normal((700, 700), dtype=np.float32)
    spent, products = [], []
    for number, place in enumerate((places[0] - 1, *places)):  # the first one imports modules
        moved = values | {name: control.at(place / positions(control))}
        asked = {"page": "", "n": number, "stage": 0, "values": moved, "panel": panel, "width": 800}
        start = time.process_time()
        desk.answer(asked)
        spent.append(time.process_time() - start)
        start = time.process_time()
        matrix @ matrix
        products.append(time.process_time() - start)
    return {"answer_cpu": statistics.median(spent[1:]), "product_cpu": statistics.median(products)}


def main() -> None:
    """Measure the systems named as arguments, or the four of the table."""
    if sys.argv[1:2] == ["--answers"]:
        for system in sys.argv[2:] or SLIDERS:
            with threadpool_limits(limits=1):
                found = answers(system)
            words = ", ".join(f"{name} {seconds:.4f}" for name, seconds in found.items())
            print(f"{system}: {words}", flush=True)
        return
    with tempfile.TemporaryDirectory() as folder:
        browser = Browser(Path(folder) / "profile", watched=False)
        try:
            for system in sys.argv[1:] or SLIDERS:
                found = measure(system, browser, folder)
                words = ", ".join(f"{name} {seconds:.3f}" for name, seconds in found.items())
                print(f"{system}: {words}", flush=True)
        finally:
            browser.close()


if __name__ == "__main__":
    main()
