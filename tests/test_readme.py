"""The README: short, with every system, and with links that exist."""

from __future__ import annotations

import re
from pathlib import Path

from solvable.frame.registry import available, load

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text("utf-8")


def test_readme_is_short():
    assert len(README.split()) <= 1000


def test_table_has_every_system_with_a_paper_of_its_references():
    rows = dict(
        re.findall(r"^\| \[`([a-z-]+)`\]\(.*?\) \| .*?\[(\d{4}\.\d{4,5})\]", README, re.MULTILINE)
    )
    assert sorted(rows) == sorted(listing.name for listing in available())
    for name, paper in rows.items():
        assert any(paper in entry.bibtex for entry in load(name).references), name


def test_links_lead_to_files():
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]
    missing = []
    for page in pages:
        for target in re.findall(r"\]\((?!https?:|#|mailto:)([^)\s#]+)", page.read_text("utf-8")):
            made = target.startswith("gallery/")  # when the pages are built
            if not made and not (page.parent / target).exists():
                missing.append(f"{page.name}: {target}")
    assert not missing


def test_pages_that_code_names_exist():
    missing = []
    for folder in ("src", "tests", "benchmarks", "examples"):
        for path in (ROOT / folder).rglob("*.py"):
            for page in re.findall(r"\bdocs/[\w/.-]+\.md\b", path.read_text("utf-8")):
                if "your-system" not in page and not (ROOT / page).exists():
                    missing.append(f"{path.relative_to(ROOT)}: {page}")
    assert not missing
