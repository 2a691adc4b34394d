"""The served page: its guard, and real clicks in headless Chromium."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.support.devtools import Browser

pytest.importorskip("dash", reason="the extra 'explore' is not installed")

import solvable
from solvable.explore.functions import Exploration, explore_system
from solvable.explore.runs import Run

MOVE = """
(function () {
  const one = document.getElementById(%s);
  const set = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set;
  set.call(one, String(%s));
  one.dispatchEvent(new Event("input", {bubbles: true}));
  return one.value;
})()
"""
"""Moves a slider as a drag does."""

HOSTILE = '<img src=x onerror="window.harm=1">'

SHOWN = "document.querySelector('#slot-0 .js-line') && document.body.dataset.drawn"
CALM = (
    "document.getElementById('busy') && !document.getElementById('remark').textContent && "
    "document.getElementById('busy').textContent === '' && " + SHOWN
)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Exploration]:
    output = tmp_path_factory.mktemp("runs")
    with explore_system("matrix-sensing", output=output, dimension=40) as served:
        yield served


def get(page: Exploration, path: str | None = None, **headers: str) -> tuple[int, Any, bytes]:
    parts = urlsplit(page.address)
    connection = http.client.HTTPConnection("127.0.0.1", parts.port, timeout=60)
    connection.request("GET", parts.path if path is None else path, headers=headers)
    answer = connection.getresponse()
    found = answer.status, answer.headers, answer.read()
    connection.close()
    return found


def test_requests_need_the_token_and_our_own_host(page: Exploration) -> None:
    status, headers, body = get(page)
    assert status == 200
    assert headers["Referrer-Policy"] == "no-referrer"
    assert "unsafe-eval" not in headers["Content-Security-Policy"]
    assert b"https://" not in body.replace(b"https://dash-version.plotly.com", b"")
    token = urlsplit(page.address).path.strip("/")
    for path in ("/", "/_dash-layout", f"/{token[:-1]}/", f"/{token}x/", "/%00/"):
        assert get(page, path)[0] == 403, path
    assert get(page, Host="attacker.example")[0] == 403
    assert get(page, Origin="http://attacker.example")[0] == 403
    assert get(page, Host=f"localhost:{urlsplit(page.address).port}")[0] == 200


NO_JSON = ["{", "", "[]", "3", "\x00"]
MALFORMED = [
    *(("draw", body) for body in NO_JSON),
    *(("_dash-update-component", body) for body in NO_JSON),
    *(("_dash-update-component", body) for body in ("{}", '{"output": 3}', '{"inputs": 3}')),
]


@pytest.mark.parametrize(("place", "body"), MALFORMED)
def test_a_malformed_request_is_refused(
    page: Exploration, place: str, body: str, capfd: pytest.CaptureFixture[str]
) -> None:
    parts = urlsplit(page.address)
    connection = http.client.HTTPConnection("127.0.0.1", parts.port, timeout=60)
    connection.request(
        "POST", f"{parts.path}{place}", body, headers={"Content-Type": "application/json"}
    )
    answer = connection.getresponse()
    assert (answer.status, "Traceback" in capfd.readouterr().err) == (400, False)
    assert b"400" in answer.read()
    connection.close()


def test_the_server_listens_on_this_machine_alone(page: Exploration) -> None:
    assert page._server.server.server_address[0] == "127.0.0.1"
    with pytest.raises(OSError, match=r"refused|unreachable|timed out"):
        socket.create_connection(("127.0.0.2", urlsplit(page.address).port), timeout=2)


def test_a_system_may_have_a_hostile_title(monkeypatch: pytest.MonkeyPatch) -> None:
    from solvable.frame import registry

    system = registry.load("matrix-sensing")
    monkeypatch.setattr(system, "title", "</title><script>harm()</script>")
    with explore_system(system) as served:
        assert b"<script>harm" not in get(served)[2]
        assert "harm" in get(served, urlsplit(served.address).path + "_dash-layout")[2].decode()


def test_the_page_follows_clicks_and_its_address(page: Exploration, browser: Browser) -> None:
    browser.size(1280)
    browser.open(page.address)
    browser.wait(CALM)
    # A number typed with keys, a choice by a click, and another panel by a click.
    browser.run("document.getElementById('value-noise').select()")
    browser.call("Input.insertText", text="0.35")
    browser.wait("location.search.includes('noise=0.35')")
    browser.run(MOVE % ('"position-rank_ratio"', "140"))
    moved = browser.wait("new URLSearchParams(location.search).get('rank_ratio')")
    browser.click("label:has(input[type=radio][value='goe'])")
    browser.wait("location.search.includes('sensors=goe')")
    browser.wait("document.getElementById('command').innerText.includes('sensors=goe')")
    command = browser.run("document.getElementById('command').innerText")
    assert f"rank_ratio={moved}" in command
    assert "noise=0.35" in command
    browser.wait(CALM)
    # Reloading, as a browser that reconnects does, gives the same.
    shown = "document.querySelector('#value-%s').value"
    before = [browser.run(shown % name) for name in ("noise", "rank_ratio", "dimension")]
    browser.run("window.before = true")
    browser.open(browser.run("location.href"))
    browser.wait("window.before === undefined && " + SHOWN)
    browser.wait("document.getElementById('command').innerText.includes('sensors=goe')")
    assert [browser.run(shown % name) for name in ("noise", "rank_ratio", "dimension")] == before
    assert browser.run("document.getElementById('command').innerText") == command
    # Nothing was requested elsewhere, and nothing complained.
    outside = [u for u in browser.requested() if not u.startswith((page.address, "data:", "blob:"))]
    assert outside in ([], ["about:blank"])
    assert browser.complaints() == []


def test_a_thousand_moves_compute_the_newest(page: Exploration, browser: Browser) -> None:
    browser.open(page.address)
    browser.wait(CALM)
    before = page.explorer.worker.computed
    browser.run(
        "(async function () { for (let k = 0; k < 1000; k++) {"
        + MOVE % ('"position-noise"', "k % 290")
        + "; if (k % 10 === 0) await new Promise((go) => setTimeout(go, 0)); } })()"
    )
    value = browser.run("document.getElementById('value-noise').value")
    browser.wait(f"document.getElementById('command').innerText.includes('noise={value}')")
    assert page.explorer.worker.computed - before < 150
    browser.wait(f"location.search.includes('noise={value}')")  # written when moves pause


def test_bad_values_and_hostile_addresses_are_explained(
    page: Exploration, browser: Browser
) -> None:
    # A run in a directory with a hostile name is one of the choices.
    directory = Path(f"runs/{HOSTILE}")
    page.explorer.runs.known["evil"] = Run("evil", directory, page.explorer.system)
    hostile = "%3Cimg%20src%3Dx%20onerror%3D%22window.harm%3D1%22%3E"
    browser.open(f"{page.address}?noise={hostile}&points={hostile}&panel={hostile}&{hostile}=1")
    browser.wait("document.getElementById('remark') && document.body.dataset.drawn")
    del page.explorer.runs.known["evil"]
    assert HOSTILE in browser.run("document.getElementById('points').innerText")
    assert browser.run("document.querySelectorAll('img[src=x]').length") == 0
    browser.run("document.getElementById('value-rank_ratio').select()")
    browser.call("Input.insertText", text="-3")
    browser.wait("document.getElementById('problem').innerText.includes('rank_ratio is -3')")
    assert browser.run("window.harm === undefined")


@pytest.mark.parametrize("dark", [False, True])
def test_a_phone_needs_no_sideways_scroll(page: Exploration, browser: Browser, dark: bool) -> None:
    browser.size(400, dark=dark)
    browser.open(page.address)
    browser.wait(SHOWN)
    assert browser.run("document.documentElement.scrollWidth") <= 400
    unlabelled = browser.run(
        "Array.from(document.querySelectorAll('input')).filter((one) => one.labels.length === 0)"
        ".map((one) => one.id)"
    )
    assert unlabelled == []


@pytest.mark.slow
def test_a_run_is_started_stopped_resumed_and_judged(page: Exploration, browser: Browser) -> None:
    browser.size(1280)
    browser.open(f"{page.address}?dimension=20")
    browser.wait(CALM)
    browser.click("#start")
    browser.wait("/[1-9]\\d* of \\d+ tasks/.test(document.getElementById('progress').innerText)")
    browser.click("#cancel")
    browser.wait(
        "/Start it again|finished, in/.test(document.getElementById('progress').innerText)"
    )
    (run,) = page.explorer.runs.known.values()
    kept = len(run.result().snapshot.tasks)
    assert kept >= 1
    browser.click("#start")
    browser.wait("document.getElementById('progress').innerText.includes('finished, in')", 120)
    assert run.directory.joinpath("report.html").exists()
    browser.wait("document.querySelectorAll('#verdicts tbody tr').length", 60)
    browser.wait("document.querySelectorAll('#slot-0 .scatterlayer .point').length > 2")
    assert solvable.load(run.directory).complete
    # Another page finds the run by the name in its address.
    browser.open(browser.run("location.href"))
    browser.wait("document.querySelectorAll('#slot-0 .scatterlayer .point').length > 2")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("system", "parameter"),
    [
        ("sequential-recovery", "dimension"),
        ("quadratic-network", "noise"),
        ("matrix-sensing", "noise"),
        ("single-index", "noise"),
    ],
)
def test_lines_follow_a_slider(system: str, parameter: str, browser: Browser) -> None:
    with explore_system(system) as served:
        browser.size(1280)
        browser.open(served.address)
        browser.wait(SHOWN)
        times = []
        for step in range(8):
            time.sleep(0.3)
            browser.run("window.exploreTimes.length = 0")
            browser.run(
                MOVE
                % (
                    json.dumps(f"position-{parameter}"),
                    (150 if parameter == "dimension" else 30) + 5 * step,
                )
            )
            browser.wait("window.exploreTimes.length")
            times.append(browser.run("window.exploreTimes[0]"))
        # a bound on hanging alone: times depend on what else the machine does
        assert sorted(times)[len(times) // 2] < 6000, [round(one) for one in times]


def test_the_command_prints_the_address_and_ends_on_ctrl_c(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "solvable", "explore", "matrix-sensing", "--no-browser"]
    process = subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(Path(solvable.__file__).parents[1])},
    )  # fmt: skip
    assert process.stdout is not None
    address = process.stdout.readline().strip()
    parts = urlsplit(address)
    connection = http.client.HTTPConnection("127.0.0.1", parts.port, timeout=30)
    connection.request("GET", parts.path)
    assert connection.getresponse().status == 200
    again = subprocess.run(
        [*words, "--port", str(parts.port)], capture_output=True, text=True, check=False,
        env=os.environ | {"PYTHONPATH": str(Path(solvable.__file__).parents[1])},
    )  # fmt: skip
    assert again.returncode == 2
    assert again.stderr.count("\n") == 1
    assert "Address already in use" in again.stderr
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=30)
    assert process.returncode == 0
    assert parts.path.strip("/") not in error
    assert "Traceback" not in error
