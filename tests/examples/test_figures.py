"""Table of figures of README and docs: every picture has the command that draws it."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from solvable.frame import registry

ROOT = Path(__file__).parents[2]
TABLE = runpy.run_path(str(ROOT / "docs" / "figures.py"))
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def shown():
    """Names of the pictures that pages show."""
    text = "\n".join(page.read_text("utf-8") for page in PAGES)
    return set(re.findall(r"!\[[^\]]*\]\([^)]*figures/([\w-]+\.svg)\)", text))


def test_every_picture_of_a_page_has_its_command():
    known = TABLE["DRAWN"].keys() | TABLE["ELSEWHERE"].keys()
    assert shown() == known
    assert {path.name for path in (ROOT / "docs" / "figures").iterdir()} == known


@pytest.mark.parametrize("name", TABLE["DRAWN"])
def test_the_picture_has_the_title_of_its_figure(name):
    asked = TABLE["DRAWN"][name]
    assert asked.preset in registry.load(asked.system).presets
    # matplotlib writes each text as a comment before its glyphs.
    text = (ROOT / "docs" / "figures" / name).read_text("utf-8")
    titles = [line.strip() for line in re.findall(r"<!-- (.*?) -->", text)]
    assert any(title.startswith(asked.title) for title in titles), titles


def test_an_unknown_figure_is_refused():
    with pytest.raises(SystemExit, match=r"not drawn by this script: other\.svg"):
        TABLE["main"](["other.svg"])
