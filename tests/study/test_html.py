"""The text of the report: its content is complete, and hostile texts neither run nor load anything."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterator
from dataclasses import fields, replace
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from solvable.answers import derivations
from solvable.errors import InvalidParameter
from solvable.frame.drawn import Fault
from solvable.frame.statistics import ALLOWANCE
from solvable.plots.recording_backend import record
from solvable.study.content import ParameterRow, ReportContent
from solvable.study.html import is_report, render_report
from solvable.systems.base import Figure, Marker, Point, Reference, Series, Verdict

VOID = {"meta", "img", "br", "hr", "link", "input"}
HOSTILE = '</script><script>alert(1)</script><img src=x onerror="alert(2)"> {{ 7 * 7 }} & \' "'


class Page(HTMLParser):
    """Parser of a page into elements, attributes and texts; fails on unclosed elements."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.text = ""
        self._open: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop()[0] == tag

    def handle_data(self, data: str) -> None:
        tag, attributes = self._open[-1] if self._open else ("", {})
        if tag == "script":
            self.scripts.append((attributes, data))
        elif tag != "style":
            self.text += data

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]

    def words(self) -> str:
        return " ".join(self.text.split())


@pytest.fixture(scope="module")
def page(report: Path) -> Page:
    return Page(report.read_text(encoding="utf-8"))


def read(content: ReportContent, directory: Path) -> Page:
    return Page(render_report(content, directory / "report.html").read_text(encoding="utf-8"))


def test_nothing_is_fetched(page: Page) -> None:
    for tag, attributes in page.elements:
        for name in ("src", "href", "data", "action", "poster", "srcset"):
            value = attributes.get(name)
            if value is None:
                continue
            # Links to papers may be followed; everything that a browser loads is in the file.
            papers = ("https://arxiv.org/abs/", "https://doi.org/") if tag == "a" else ()
            inside = ("data:image/svg+xml", "#", "figures/")
            assert value.startswith((*inside, *papers)), (tag, name, value)
    assert not page.named("link")
    assert not page.named("iframe")
    policy = next(one for one in page.named("meta") if "http-equiv" in one)
    assert "default-src 'none'" in str(policy["content"])


def test_plotly_is_there_once(report: Path) -> None:
    html = report.read_text(encoding="utf-8")
    assert html.count("plotly.js v") == 1
    assert len(html) < 7e6


def test_the_page_reads_in_order(page: Page) -> None:
    headings = [attributes["id"] for attributes in page.named("h2")]
    assert headings == ["verdicts", "failures", "figures", "run", "numbers", "references"]
    assert len(page.named("h1")) == 1


def test_verdicts_are_complete(page: Page) -> None:
    said = page.words()
    assert "✓ 1 holds ✗ 1 fails ? 1 not testable here" in said
    assert "Fails: error-exponent." in said
    for part in ("0.0131 ± 0.0042", "± 0.05", "Largest deviation at n = 12,000.", "−0.410 ± 0.012"):
        assert part in said
    assert "1 not testable here, and why" in said
    assert "add --set dimension=30" in said
    statuses = [one["data-status"] for one in page.named("tr") if "data-status" in one]
    assert statuses == ["holds", "fails", "not testable"]


def test_the_allowance_for_scatter_is_stated_once(content: ReportContent, tmp_path: Path) -> None:
    reasons = (f"5 %: rounding. {ALLOWANCE}", f"0.1: finite size. {ALLOWANCE}")
    first = content.verdicts[0]
    verdicts = [replace(first, claim=f"c{k}", reason=one) for k, one in enumerate(reasons)]
    said = read(replace(content, verdicts=verdicts), tmp_path).words()
    assert said.count(ALLOWANCE) == 1
    assert "Tolerance: 5 %: rounding." in said
    assert "Tolerance: 0.1: finite size." in said


def test_sources_lead_to_papers_and_derivations(
    content: ReportContent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "# Sensing\n\n## The error\n\n$$\nE = t\n$$ (sensing-1)\n"
    monkeypatch.setattr(derivations, "derivation_pages", lambda: {"sensing": text})
    parts = (
        "arXiv:2503.14121, Theorem 2",
        "doi:10.1214/1, Theorem 1",
        "someone2026, Lemma 3",
        "derivations/sensing (1)",
        "derivations/sensing (7)",
        "own notes",
    )
    verdict = replace(content.verdicts[0], source="; ".join(parts))
    page = read(replace(content, verdicts=[verdict]), tmp_path)
    links = [attributes["href"] for attributes in page.named("a")]
    for address in (
        "https://arxiv.org/abs/2503.14121",
        "https://doi.org/10.1214/1",
        "#reference-someone2026",
        "#derivation-sensing-1",
    ):
        assert address in links
    assert "#derivation-sensing-7" not in links
    targets = [attributes.get("id") for _, attributes in page.elements]
    assert {link[1:] for link in links if link.startswith("#")} <= set(targets)
    assert all(part in page.words() for part in parts)
    assert "derivations" in [attributes["id"] for attributes in page.named("h2")]


def test_what_was_run_can_be_repeated(page: Page) -> None:
    said = page.words()
    for part in (
        "solvable run sequential-recovery --set samples=1500,4000",
        "samples varies",
        "Number of samples. (≥ 2)",
        "1500, 4000",
        "seed 0",
        "solvable 0.1.0",
    ):
        assert part in said


def test_the_summary_has_no_marks_of_docstrings(page: Page) -> None:
    assert "A quadratic form of h." in page.text
    assert "Features appear one after another." in page.text


def test_failures_numbers_and_references_are_listed(page: Page) -> None:
    said = page.words()
    assert "1 task raised an error" in said
    assert "replicate 2 at dimension = 60, samples = 1500: NotConverged: stopped early" in said
    assert "squared_overlap" in said
    assert "spectrum (40 values)" in said
    assert "@article{someone2026," in said


def test_a_failed_prediction_is_distinguished_from_a_failed_replicate(tmp_path: Path) -> None:
    failure = SimpleNamespace(parameters={"n": 1}, replicate=None, error="boom")
    said = read(ReportContent("T", "s", failures=[failure]), tmp_path).words()
    assert "prediction at n = 1: boom" in said


def test_every_figure_has_drawing_picture_caption_and_files(
    page: Page, content: ReportContent
) -> None:
    drawings = [one for one in page.named("div") if one.get("class") == "drawing"]
    assert [one["data-index"] for one in drawings] == ["0", "1", "2"]
    assert len(page.named("figure")) == len(page.named("figcaption")) == len(content.figures)
    for figure, picture in zip(content.figures, page.named("img"), strict=True):
        assert str(picture["alt"]).startswith(figure.title)
        encoded = str(picture["src"]).removeprefix("data:image/svg+xml;base64,")
        assert base64.b64decode(encoded).startswith(b"<?xml")
    links = [one["href"] for one in page.named("a")]
    for name in ("overlap", "overlap-11", "spectrum"):
        assert f"figures/{name}.svg" in links
        assert f"figures/{name}.pdf" in links


def test_remarks_on_a_figure_stand_in_its_caption(page: Page, content: ReportContent) -> None:
    note = record(content.figures[1]).named("note")[0]["text"]
    assert "feature 11" in note
    assert note in page.words()


def test_the_drawings_are_what_plotly_needs(page: Page, content: ReportContent) -> None:
    data = next(text for attributes, text in page.scripts if attributes.get("id") == "drawings")
    drawings = json.loads(data)
    assert len(drawings) == len(content.figures)
    for figure, drawing in zip(content.figures, drawings, strict=True):
        asked = record(figure)
        drawn = sum(len(asked.named(kind)) for kind in ("line", "points", "histogram"))
        entries = len(asked.named("legend")[0]["entries"])
        assert len(drawing["data"]) == drawn + entries
        assert drawing["layout"]["xaxis"]["title"]["text"] == figure.x_label


def test_tables_and_figures_can_be_read_aloud(page: Page) -> None:
    assert page.named("html")[0]["lang"] == "en"
    assert all(attributes.get("scope") in ("col", "row") for attributes in page.named("th"))
    labels = {attributes["id"] for _, attributes in page.elements if attributes.get("id")}
    for tag, attributes in page.elements:
        assert attributes.get("aria-labelledby", "verdicts") in labels, tag
        if attributes.get("role") in ("img", "region"):
            assert attributes.get("aria-label") or attributes.get("aria-labelledby")
    ids = [attributes["id"] for _, attributes in page.elements if attributes.get("id")]
    assert len(ids) == len(set(ids))


def hostile_content() -> ReportContent:
    figure = Figure(
        "f", HOSTILE, HOSTILE, HOSTILE, [Series(HOSTILE, [1], [1])], HOSTILE, [Marker(1, HOSTILE)]
    )
    return ReportContent(
        title=HOSTILE,
        system=HOSTILE,
        summary=HOSTILE,
        parameters=[ParameterRow(HOSTILE, HOSTILE, HOSTILE, True, HOSTILE)],
        command=HOSTILE,
        figures=[figure],
        verdicts=[
            Verdict(HOSTILE, HOSTILE, "fails", reason=HOSTILE, source=HOSTILE),
            Verdict("u" + HOSTILE, HOSTILE, "not testable", reason=HOSTILE, source=HOSTILE),
            Verdict("e" + HOSTILE, HOSTILE, "error", reason=HOSTILE, source=HOSTILE),
        ],
        points=[
            Point({HOSTILE: HOSTILE}, [{HOSTILE: 1.0}], {}),
            Point({HOSTILE: 1}, [{HOSTILE: [1.0]}], {HOSTILE: [0.0] * 99}),
        ],
        references=[Reference(HOSTILE, HOSTILE)],
        facts={HOSTILE: HOSTILE},
        failures=[SimpleNamespace(parameters={HOSTILE: 1}, replicate=1, error=HOSTILE)],
        faults=[Fault(HOSTILE, HOSTILE, HOSTILE)],
    )


def test_the_hostile_content_fills_every_field() -> None:
    filled = hostile_content()
    empty = [one.name for one in fields(filled) if not getattr(filled, one.name)]
    assert not empty


def test_hostile_texts_stay_texts(tmp_path: Path) -> None:
    hostile, tame = read(hostile_content(), tmp_path), []

    def scripts(page: Page) -> Iterator[str]:
        return (text for attributes, text in page.scripts if attributes.get("id") != "drawings")

    plain = replace(hostile_content(), title="T", figures=[Figure("f", "t", "x", "y", [])])
    tame = list(scripts(read(plain, tmp_path)))
    # Hostile and plain texts give the same scripts.
    assert list(scripts(hostile)) == tame
    assert "onerror" not in {name for _, attributes in hostile.elements for name in attributes}
    assert HOSTILE.split()[0] in hostile.text
    assert "{{ 7 * 7 }}" in hostile.text
    assert len(hostile.named("img")) == 1


def test_the_same_content_gives_the_same_bytes(
    content: ReportContent, report: Path, tmp_path: Path
) -> None:
    assert render_report(content, tmp_path / "b.html").read_bytes() == report.read_bytes()


def test_the_least_report(tmp_path: Path) -> None:
    path = render_report(ReportContent("Title", "system"), tmp_path / "new" / "report.html")
    page = Page(path.read_text(encoding="utf-8"))
    assert "This system makes no claims." in page.text
    assert [one["id"] for one in page.named("h2")] == ["verdicts", "run"]
    # A report without figures does not include plotly.
    assert path.stat().st_size < 20_000


def test_figures_that_were_not_written_are_not_linked(
    content: ReportContent, tmp_path: Path
) -> None:
    alone = replace(content, figures=content.figures[2:], figures_directory=None)
    links = read(alone, tmp_path).named("a")
    assert links
    assert not [one for one in links if not str(one["href"]).startswith("#")]


def test_a_figure_with_a_bad_name_is_refused_before_the_file_is_touched(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text("mine", encoding="utf-8")
    bad: Any = ReportContent("T", "s", figures=[Figure("a b", "T", "x", "y", [])])
    with pytest.raises(InvalidParameter):
        render_report(bad, path)
    assert path.read_text(encoding="utf-8") == "mine"


def test_own_reports_are_distinguished_from_foreign_files(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    assert not is_report(path)
    path.write_text("<html><title>solvable report</title></html>", encoding="utf-8")
    assert not is_report(path)
    path.write_bytes(os.urandom(5000))
    assert not is_report(path)
    path.write_bytes(b"")
    assert not is_report(path)
    assert not is_report(tmp_path)
    assert is_report(render_report(ReportContent("Title", "system"), path))


def test_a_text_cannot_pose_as_a_report(tmp_path: Path) -> None:
    """The mark of a report comes before all text from the system."""
    mark = '<meta name="generator" content="solvable report">'
    path = render_report(ReportContent(mark * 100, "system"), tmp_path / "report.html")
    assert path.read_bytes().count(mark.encode()) == 0
    assert is_report(path)
