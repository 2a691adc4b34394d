"""The exported page in a real browser, opened from disk without network, moved by key strokes."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import Field
from tests.support.devtools import Browser

from solvable.explore.export import write_export
from solvable.systems.base import Axis, Panel, Parameters, System, Trace

HOSTILE = '</script><script>window.harm = 1</script><img src=x onerror="window.harm = 2">'


class Power(Parameters):
    """Parameters of a power law."""

    samples: int = Field(100, ge=1, le=10_000)
    """Number of samples. </p><script>window.harm = 3</script>"""
    exponent: float = Field(1.0, ge=0, le=4)
    """Exponent."""
    kind: Literal["plain", "<b>bold</b>"] = "plain"
    """Kind."""


def measure(parameters: Power, rng: np.random.Generator) -> dict[str, Any]:
    """Return the error without noise."""
    return predict(parameters)


def predict(parameters: Power) -> dict[str, Any]:
    """Predict a power law."""
    scale = 1.0 if parameters.kind == "plain" else 2.0
    return {"error": scale * parameters.samples**-parameters.exponent, "threshold": 50.0}


system = System(
    name="power",
    title=f"A power law {HOSTILE}",
    version="1",
    parameters=Power,
    measure=measure,
    predict=predict,
    axis=Axis("samples", f"samples n, a long title of an axis {HOSTILE[:20]}"),
    panels=[
        Panel(
            "error", f"Error {HOSTILE}", "error", [Trace("error", HOSTILE)],
            markers={"threshold": HOSTILE}, y_scale="log",
        )
    ],
)  # fmt: skip

DRAWN = "Array.from(document.querySelector('.drawing').data[0].%s)"
SHOWN = "document.body?.dataset.shown === '%d'"


def press(page: Browser, slider: int, *keys: tuple[str, int]) -> None:
    """Send key strokes to a slider."""
    page.run(f"document.getElementById('slider-{slider}').focus()")
    for key in keys:
        page.key(*key)


LEFT, RIGHT, HOME, END = ("ArrowLeft", 37), ("ArrowRight", 39), ("Home", 36), ("End", 35)


def test_a_moved_slider_shows_the_lines_of_its_setting(tmp_path: Path, browser: Browser) -> None:
    path = tmp_path / "page.html"
    along = {"exponent": [0.5, 1.0, 2.0], "kind": ["plain", "<b>bold</b>"]}
    write_export(system, path, along=along)
    browser.size(1280)
    browser.open(path.as_uri())
    browser.wait(SHOWN % 2)
    before = np.array(browser.run(DRAWN % "y"))
    press(browser, 0, RIGHT)
    browser.wait(SHOWN % 4)
    x, y = (np.array(browser.run(DRAWN % name)) for name in "xy")
    np.testing.assert_allclose(y, np.round(x) ** -2.0, rtol=0.02)
    assert np.all(y < before)
    assert browser.run("document.querySelector('#value-0').value") == "2.0"
    command = browser.run("document.querySelector('#command').textContent")
    assert command == "solvable theory power --set exponent=2.0"
    press(browser, 1, END)
    browser.wait(SHOWN % 5)
    label = browser.run("document.querySelector('.drawing').getAttribute('aria-label')")
    assert label.endswith("exponent 2.0, kind <b>bold</b>.")
    # many moves in a row end at the last one
    press(browser, 0, *[LEFT, RIGHT] * 10, HOME)
    browser.wait(SHOWN % 1)
    assert browser.run("location.hash") == "#0,1"
    # the address holds the setting
    browser.open("about:blank")
    browser.open(f"{path.as_uri()}#2,0")
    browser.wait(SHOWN % 4)
    assert browser.run("window.harm === undefined")
    assert browser.run("document.querySelectorAll('img[src=x]').length") == 0
    addresses = ("about:blank", "data:", path.as_uri())
    assert [one for one in browser.requested() if not one.startswith(addresses)] == []
    assert browser.complaints() == []


def test_narrow_and_dark_windows_show_the_whole_page(tmp_path: Path, browser: Browser) -> None:
    path = tmp_path / "page.html"
    write_export(system, path, along={"exponent": 3})
    browser.size(400, 800, dark=True)
    browser.open(path.as_uri())
    browser.wait("document.body?.dataset.shown")
    assert browser.run("document.documentElement.scrollWidth") <= 400
    colour = browser.run("getComputedStyle(document.body).backgroundColor")
    assert colour == "rgb(20, 24, 29)"
    title = browser.run(
        "(({left, right}) => [left, right])"
        "(document.querySelector('.xtitle').getBoundingClientRect())"
    )
    assert title[0] >= 0
    assert title[1] <= 400
