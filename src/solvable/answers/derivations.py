"""Sections of the derivation pages in docs/derivations, as HTML for reports."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from solvable.answers.mathematics import mathml

BLOCK = re.compile(r"^\$\$\n(.*?)\n\$\$(?: \(([a-z-]+-\d+)\))?$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"(`+)(?:.+?)\1|\$([^$]+)\$", re.DOTALL)
EQUATION = re.compile(r"\{eq\}`([a-z-]+)-(\d+)`")


@dataclass(frozen=True)
class DerivationSection:
    """A section of a derivation page."""

    page: str
    title: str  # of the page and of the section
    html: str  # each numbered equation has the id "derivation-PAGE-NUMBER"


def derivation_pages() -> Mapping[str, str]:
    """Return the text of each derivation page by its name."""
    # The pages stand next to this file in a wheel, and in docs in a checkout.
    folders = (
        Path(__file__).parent / "derivations",
        Path(__file__).parents[3] / "docs" / "derivations",
    )
    folder = next((folder for folder in folders if folder.is_dir()), None)
    pages = sorted(folder.glob("*.md")) if folder else []
    return {page.stem: page.read_text("utf-8") for page in pages if page.stem != "index"}


@cache
def _sections(text: str) -> tuple[str, tuple[tuple[str, str, frozenset[int]], ...]]:
    """Return the title of a page, and heading, text and equation numbers of each section."""
    head, *parts = re.split(r"^## ", text, flags=re.MULTILINE)
    title = head.strip().partition("\n")[0].lstrip("# ")
    sections = [head.partition("\n")[::2], *(part.partition("\n")[::2] for part in parts)]
    numbered = []
    for heading, body in sections:
        labels = [match[2] for match in BLOCK.finditer(body) if match[2]]
        numbers = frozenset(int(label.rpartition("-")[2]) for label in labels)
        numbered.append((heading.lstrip("# "), body, numbers))
    return title, tuple(numbered)


def numbered_equations(page: str) -> list[str]:
    """Return the labels of the numbered equations of a page's text, in order."""
    return [match[2] for match in BLOCK.finditer(page) if match[2]]


def derivation_sections(equations: Iterable[tuple[str, int]]) -> list[DerivationSection]:
    """Return the sections that contain the given equations, each once; unknown ones are omitted."""
    pages = derivation_pages()
    wanted: dict[str, set[int]] = {}
    for page, number in equations:
        wanted.setdefault(page, set()).add(number)
    chosen = []
    for page in sorted(wanted.keys() & pages.keys()):
        title, sections = _sections(pages[page])
        for heading, body, numbers in sections:
            if numbers & wanted[page]:
                name = title if heading == title else f"{title}: {heading}"
                chosen.append(DerivationSection(page, name, _html(body)))
    return chosen


def _html(text: str) -> str:
    """Convert Markdown with formulas to HTML; relative links and roles become text."""
    from markdown_it import MarkdownIt

    formulas: list[str] = []

    def hold(written: str) -> str:
        formulas.append(written)
        return f"\ue000{len(formulas) - 1}\ue001"

    def block(match: re.Match[str]) -> str:
        number = match[2].rpartition("-")[2] if match[2] else ""
        label = f' id="derivation-{match[2]}"' if match[2] else ""
        shown = f'<span class="eqno">({number})</span>' if number else ""
        written = f'<div class="equation"{label}>{mathml(match[1], "block")}{shown}</div>'
        return f"\n\n{hold(written)}\n\n"

    def inline(match: re.Match[str]) -> str:
        return hold(mathml(match[2], "inline")) if match[2] else match[0]

    text = EQUATION.sub(r"(\2)", text)
    text = INLINE.sub(inline, BLOCK.sub(block, text))
    # after the formulas, in which [...](y) is no link
    text = re.sub(r"\[([^\]]+)\]\((?!https://)[^)]*\)", r"\1", text)
    written = MarkdownIt("commonmark", {"html": False}).enable("table").render(text)

    blocks = re.sub(r"<p>(\ue000\d+\ue001)</p>", r"\1", written)
    return re.sub(r"\ue000(\d+)\ue001", lambda match: formulas[int(match[1])], blocks)
