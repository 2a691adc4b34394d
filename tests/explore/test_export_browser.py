"""The exported page in a real browser, opened from disk without network, moved by key strokes."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from pydantic import Field
from tests.support.browser import BROWSER, DRIVER, MISSING, browser

from solvable.explore.export import write_export
from solvable.systems.base import Axis, Panel, Parameters, System, Trace

pytestmark = pytest.mark.skipif(BROWSER is None or DRIVER is None, reason=MISSING)

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

VALUES = "return Array.from(document.querySelector('.drawing').data[0].y)"
SHOWN = "return document.body.dataset.shown === arguments[0]"


def test_a_moved_slider_shows_the_lines_of_its_setting(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    along = {"exponent": [0.5, 1.0, 2.0], "kind": ["plain", "<b>bold</b>"]}
    write_export(system, path, along=along)
    with browser(1280, 900) as page:
        page.open(path.as_uri())
        page.wait(SHOWN, "2")
        before = np.array(page.script(VALUES))
        page.press("#slider-0", "right")
        page.wait(SHOWN, "4")
        x = np.array(page.script("return Array.from(document.querySelector('.drawing').data[0].x)"))
        np.testing.assert_allclose(page.script(VALUES), np.round(x) ** -2.0, rtol=0.02)
        assert np.all(np.array(page.script(VALUES)) < before)
        assert page.script("return document.querySelector('#value-0').value") == "2.0"
        command = page.script("return document.querySelector('#command').textContent")
        assert command == "solvable theory power --set exponent=2.0"
        page.press("#slider-1", "end")
        page.wait(SHOWN, "5")
        label = page.script("return document.querySelector('.drawing').getAttribute('aria-label')")
        assert label.endswith("exponent 2.0, kind <b>bold</b>.")
        # many moves in a row end at the last one
        page.press("#slider-0", *["left", "right"] * 10, "home")
        page.wait(SHOWN, "1")
        assert page.script("return location.hash") == "#0,1"
        # the address holds the setting
        page.open("about:blank")
        page.open(f"{path.as_uri()}#2,0")
        page.wait(SHOWN, "4")
        assert page.script("return window.harm") is None
        assert page.script("return document.querySelectorAll('img[src=x]').length") == 0
        requests = "return performance.getEntriesByType('resource').map((one) => one.name)"
        assert [name for name in page.script(requests) if not name.startswith("data:")] == []
        assert page.messages() == []


def test_narrow_and_dark_windows_show_the_whole_page(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    write_export(system, path, along={"exponent": 3})
    with browser(400, 800, dark=True) as page:
        page.open(path.as_uri())
        page.wait("return document.body.dataset.shown")
        assert page.script("return document.documentElement.scrollWidth") <= 400
        colour = page.script("return getComputedStyle(document.body).backgroundColor")
        assert colour == "rgb(20, 24, 29)"
        title = page.script(
            "const box = document.querySelector('.xtitle').getBoundingClientRect();"
            "return [box.left, box.right]"
        )
        assert title[0] >= 0
        assert title[1] <= 400
