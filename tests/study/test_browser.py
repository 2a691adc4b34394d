"""The report in a real browser, opened from disk without network."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import pytest
from tests.support.devtools import BROWSER, loaded

from solvable.plots.plotly_backend import draw_plotly
from solvable.study.content import ReportContent
from solvable.study.html import render_report
from solvable.systems.base import Figure, Marker, Series

pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed")

PROBE = """
<script>
window.addEventListener("load", function () {
  var waited = 0;
  (function look() {
    var places = Array.from(document.querySelectorAll(".drawing"));
    if (document.body.dataset.drawn === undefined && waited++ < 400) {
      return setTimeout(look, 25);
    }
    var found = places.map(function (place) {
      var box = place.getBoundingClientRect();
      return {
        error: place.dataset.error || null,
        traces: Number(place.dataset.traces || 0),
        lines: place.querySelectorAll(".scatterlayer .js-line").length,
        symbols: place.querySelectorAll(".scatterlayer .point").length,
        bars: place.querySelectorAll(".errorbar").length,
        rectangles: place.querySelectorAll(".barlayer .point").length,
        markers: place.querySelectorAll(".shapelayer path").length,
        entries: Array.from(place.querySelectorAll(".legendtext")).map((one) => one.textContent),
        width: box.width,
        height: box.height,
        ticks: Array.from(place.querySelectorAll(".xtick text")).map((one) => one.textContent),
        boxes: [".legend", ".xtitle", ".ytitle"].map(function (part) {
          var one = place.querySelector(part);
          var at = one && one.getBoundingClientRect();
          return at && [at.left, at.top, at.right, at.bottom];
        }),
        apart: [".legend", ".xtitle", ".ytitle", ".xtick", ".ytick", ".annotation-text", ".nsewdrag"]
          .flatMap((part) => Array.from(place.querySelectorAll(part)).map(function (one) {
            var at = one.getBoundingClientRect();
            return [part, one.textContent, [at.left, at.top, at.right, at.bottom]];
          })),
        edges: [box.left, box.top, box.right, box.bottom],
        picture: getComputedStyle(place.parentElement.querySelector(".picture")).display,
      };
    });
    var out = document.createElement("pre");
    out.id = "probe";
    out.textContent = JSON.stringify({
      drawn: document.body.dataset.drawn,
      figures: found,
      page: document.documentElement.scrollWidth,
      window: window.innerWidth,
      requests: performance.getEntriesByType("resource")
        .map((one) => one.name).filter((name) => !name.startsWith("data:")),
    });
    document.body.appendChild(out);
  })();
});
</script>
"""


@dataclass(frozen=True)
class Shown:
    """Page as rendered by the browser: measured elements, DOM and console."""

    probe: dict
    dom: str
    console: list[str]


@pytest.fixture(scope="session")
def show(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Shown]:
    def open_page(report: Path, width: int = 1200) -> Shown:
        directory = tmp_path_factory.mktemp("browser")
        page = directory / "page.html"
        text = report.read_text(encoding="utf-8")
        page.write_text(text.replace("</body>", f"{PROBE}</body>"), encoding="utf-8")
        dom, console = loaded(page, directory / "profile", width)
        found = re.search(r'<pre id="probe">(.*?)</pre>', dom, re.DOTALL)
        return Shown(json.loads(html.unescape(found[1])) if found else {}, dom, console)

    return open_page


@pytest.fixture(scope="module")
def shown(report: Path, show: Callable[..., Shown]) -> Shown:
    return show(report)


def test_every_figure_is_drawn_with_its_traces(shown: Shown, content: ReportContent) -> None:
    figures = shown.probe["figures"]
    assert shown.probe["drawn"] == str(len(content.figures)) == str(len(figures))
    for asked, found in zip(content.figures, figures, strict=True):
        assert found["error"] is None
        assert found["traces"] == len(draw_plotly(asked, texts=False).data)
        assert found["width"] > 600
        assert found["height"] > 350
        assert found["picture"] == "none"


def test_what_is_seen_is_what_was_asked(shown: Shown) -> None:
    six, eleven, spectrum = shown.probe["figures"]
    for features, found in ((6, six), (11, eleven)):
        assert found["lines"] >= features
        assert found["symbols"] >= 6 * features
        assert found["bars"] == 6 * features
        assert len(found["entries"]) == features + 2
        assert found["entries"][0] == "feature 1"
    assert spectrum["rectangles"] == 20
    # Two bulk edges and a feature have two shapes each: a line, and the stem of its label.
    assert spectrum["markers"] == 6


def test_nothing_is_asked_of_the_network_and_nothing_is_complained_about(shown: Shown) -> None:
    assert shown.probe["requests"] == []
    assert shown.console == []


def test_a_narrow_page_does_not_scroll_sideways(
    report: Path, show: Callable[..., Shown], content: ReportContent
) -> None:
    # 500 pixels is the narrowest window of a headless browser.
    narrow = show(report, width=500)
    assert narrow.probe["window"] == 500
    assert narrow.probe["page"] <= 500
    assert narrow.probe["drawn"] == str(len(content.figures))
    assert all(300 < found["width"] <= 500 for found in narrow.probe["figures"])
    assert not narrow.console


def overlap(first: list[float] | None, second: list[float] | None) -> bool:
    """Return True if two boxes (left, top, right, bottom) overlap."""
    if first is None or second is None:
        return False
    across = first[0] < second[2] and second[0] < first[2]
    return across and first[1] < second[3] and second[1] < first[3]


@pytest.mark.parametrize("width", [500, 760])
def test_the_legend_does_not_lie_over_titles_of_axes(
    tmp_path: Path, show: Callable[..., Shown], width: int
) -> None:
    figures = [
        Figure(
            f"f{entries}", "Title", "samples n", "error",
            [Series(f"a long name of a series {k}", [0.15, 3], [0.2, 0.5 + k])
             for k in range(entries)],
            x_scale="log", y_scale="log",
        )
        for entries in (2, 5, 8)
    ]  # fmt: skip
    content = ReportContent("Title", "system", figures=figures)
    page = show(render_report(content, tmp_path / "report.html"), width=width)
    assert len(page.probe["figures"]) == 3
    for found in page.probe["figures"]:
        legend, across, up = found["boxes"]
        assert legend is not None
        assert across is not None
        assert not overlap(legend, across), found["boxes"]
        assert not overlap(legend, up), found["boxes"]
        # A logarithmic axis of less than two decades has plain numbers in ascending order.
        numbers = [float(text) for text in found["ticks"]]
        assert len(numbers) >= 3
        assert numbers == sorted(numbers)
        assert numbers[0] < 1 < numbers[-1]


def crowded() -> list[Figure]:
    """Return figures with many series, long titles, marker labels at both ends, and short log axes."""
    long = "a rather long name of a quantity (with its definition / a unit)"
    edges = [Marker(0.2 + 0.02 * k, f"feature {k}", k) for k in range(3)]
    edges += [Marker(2.9 - 0.05 * k, "bulk edge") for k in range(3)]
    sets = [
        (
            2,
            "samples n",
            "error",
            [Marker(2.9, "interpolation"), Marker(0.16, "bleeding-out from here")],
        ),
        (9, long, long, edges),
        (
            14,
            "sample ratio n/d²",
            "x",
            [Marker(0.3, "weak recovery " * 3), Marker(2.8, "end " * 9)],
        ),
    ]
    return [
        Figure(
            f"f{number}-{scale}", long, x_label, y_label,
            [Series(f"series number {k}", [0.15, 3], [0.2, 0.5 + k], colour=k) for k in range(number)],
            markers=markers, x_scale=scale, y_scale=scale,
        )
        for number, x_label, y_label, markers in sets
        for scale in ("linear", "log")
    ]  # fmt: skip


@pytest.mark.parametrize("width", [400, 1280])
def test_nothing_lies_over_anything_else(
    tmp_path: Path, show: Callable[..., Shown], width: int
) -> None:
    report = render_report(ReportContent("T", "s", figures=crowded()), tmp_path / "report.html")
    # headless windows are at least 500 pixels wide
    body = f"<style>body {{ width: {width}px; margin: 0 !important }}</style></head>"
    report.write_text(report.read_text("utf-8").replace("</head>", body, 1), "utf-8")
    for found in show(report, width=max(width, 500)).probe["figures"]:
        assert found["error"] is None
        for first, second in combinations(found["apart"], 2):
            # boxes of texts include some air above and below the letters
            assert not overlap(shrunk(first[2]), shrunk(second[2])), (first, second)
        for part, text, box in found["apart"]:
            assert box[0] > found["edges"][0] - 2, (part, text)
            assert box[2] < found["edges"][2] + 2, (part, text)
        ticks = [
            text.replace("−", "-") for part, text, _ in found["apart"] if part == ".xtick" and text
        ]
        assert [float(text) for text in ticks] == sorted(float(text) for text in ticks)
        assert len(ticks) >= 3


def shrunk(box: list[float]) -> list[float]:
    """Take two pixels off each side of a box."""
    return [box[0] + 2, box[1] + 2, box[2] - 2, box[3] - 2]


def test_pictures_stand_in_where_scripts_are_off(
    report: Path, show: Callable[..., Shown], tmp_path: Path
) -> None:
    text = report.read_text(encoding="utf-8")
    bare = tmp_path / "report.html"
    policy = "script-src 'unsafe-inline'"
    assert text.count(policy) == 1
    bare.write_text(text.replace(policy, "script-src 'none'"), encoding="utf-8")
    page = show(bare)
    assert page.probe == {}
    assert page.dom.count('class="picture"') == 3
    assert len(re.findall(r'<div class="drawing"[^>]* hidden="">', page.dom)) == 3


def test_a_drawing_that_fails_stays_a_picture(
    report: Path, show: Callable[..., Shown], tmp_path: Path
) -> None:
    text = report.read_text(encoding="utf-8")
    broken = tmp_path / "report.html"
    call = "Plotly.newPlot(place"
    assert text.count(call) == 1
    failing = 'place.dataset.index === "1" ? Promise.reject(new Error("no")) : ' + call
    broken.write_text(text.replace(call, failing), encoding="utf-8")
    figures = show(broken).probe["figures"]
    assert [one["error"] for one in figures] == [None, "Error: no", None]
    assert [one["picture"] for one in figures] == ["none", "block", "none"]


def test_hostile_texts_do_not_run(tmp_path: Path, show: Callable[..., Shown]) -> None:
    text = '</script><script>document.title="taken"</script><img src=x onerror="document.title=1">'
    figure = Figure("f", text, text, text, [], text)
    content = ReportContent(text, text, text, figures=[figure], command=text)
    page = show(render_report(content, tmp_path / "report.html"))
    assert page.probe["drawn"] == "1"
    title = re.search(r"<title>(.*?)</title>", page.dom, re.DOTALL)
    assert title is not None
    assert html.unescape(title[1]) == text
    assert not page.console
    assert page.probe["requests"] == []
