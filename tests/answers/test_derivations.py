"""Sections of derivation pages in reports: equations are numbered and no link is broken."""

from __future__ import annotations

import pytest

from solvable.answers import derivations
from solvable.answers.derivations import derivation_sections, numbered_equations
from solvable.answers.mathematics import mathml, unknown_commands
from solvable.frame.references import source_parts

PAGE = """# Sensing

Text before the first section.

## The error

With $t>0$ and `a $ b`, see {eq}`sensing-2` and [the system](../systems/matrix-sensing.md):

$$
E(t) = t - x^2
$$ (sensing-1)

Source: derived here. <script>alert(1)</script>

## Another section

$$
a = b
$$ (sensing-2)

$$
c = d
$$
"""


@pytest.fixture
def pages(monkeypatch):
    monkeypatch.setattr(derivations, "derivation_pages", lambda: {"sensing": PAGE})


def test_a_section_holds_its_equations_under_their_numbers(pages):
    (section,) = derivation_sections([("sensing", 1), ("sensing", 1), ("sensing", 9), ("no", 1)])
    assert section.title == "Sensing: The error"
    assert '<div class="equation" id="derivation-sensing-1"><math' in section.html
    assert '<span class="eqno">(1)</span>' in section.html
    assert "<p><div" not in section.html
    assert "Another section" not in section.html


def test_a_section_has_no_role_relative_link_or_markup_of_the_text(pages):
    (section,) = derivation_sections([("sensing", 1)])
    assert "see (2) and the system:" in section.html
    assert "<code>a $ b</code>" in section.html
    assert "<script>" not in section.html


def test_each_section_is_shown_once_in_the_order_of_the_page(pages):
    titles = [section.title for section in derivation_sections([("sensing", 2), ("sensing", 1)])]
    assert titles == ["Sensing: The error", "Sensing: Another section"]
    assert numbered_equations(PAGE) == ["sensing-1", "sensing-2"]


def test_unknown_commands_are_found():
    assert unknown_commands(mathml(r"\frac12 + \arg x", "inline")) == []
    assert unknown_commands(mathml(r"\nosuchcommand x", "inline"))


def test_a_source_is_split_into_places():
    work, page, key, words = source_parts(
        "arXiv:2503.14121, Theorem 2; derivations/sensing (3), (4); baik2005phase, Theorem 1.1; by hand"
    )
    assert (work.work, work.place, work.precise) == ("arXiv:2503.14121", "Theorem 2", True)
    assert (page.page, page.equations, page.precise) == ("sensing", (3, 4), True)
    assert (key.work, key.precise) == ("baik2005phase", True)
    assert (words.text, words.precise) == ("by hand", False)
    (vague,) = source_parts("arXiv:2503.14121, somewhere")
    assert not vague.precise
