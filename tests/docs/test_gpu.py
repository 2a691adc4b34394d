"""Statements of the pages about GPUs agree with the code."""

import re
from pathlib import Path

import pytest

from solvable.frame import registry

DOCS = Path(__file__).parents[2] / "docs"
PARAGRAPH = (DOCS / "install.md").read_text().partition("\n## GPU\n")[2].partition("\n## ")[0]
NAMES = [
    listing.name for listing in registry.available() if listing.package.startswith("solvable ")
]
PAGES = ("cli", "index", "not-here", "python", "retrieve")


def test_the_paragraph_names_the_systems_whose_learners_take_tensors():
    systems = {name for name in NAMES if registry.load(name).tensors}
    named = {name for name in NAMES if f"`{name}`" in PARAGRAPH}
    assert named == systems != set()
    assert "--device cuda" in PARAGRAPH


@pytest.mark.parametrize("name", PAGES)
def test_other_pages_link_to_it_and_deny_nothing(name):
    text = (DOCS / f"{name}.md").read_text()
    assert "install.md#gpu" in text
    sentences = re.split(r"(?<=[.!?])\s|\n\n|\n\|", text)
    about = [sentence for sentence in sentences if re.search(r"\b(GPUs?|CUDA)\b", sentence)]
    denied = [s for s in about if re.search(r"\b([Nn]o command|do not use|only estimators)\b", s)]
    assert about
    assert denied == []
