"""Text of one answer on the command line."""

from __future__ import annotations

import pytest

from solvable.plots.tables import Cell, Table
from solvable.scale import network_of_flags
from solvable.scale.answer_text import KIND, answer_json, answer_text
from solvable.scale.answers import answer_of


@pytest.fixture(scope="module")
def tied():
    """Two layers of proportional widths, whose patterns tie in exponents."""
    return answer_of(network_of_flags("erf:1,erf:1", "he3"))


def test_the_first_line_states_what_the_answer_is_not(tied):
    first = answer_text(tied, symbolic=False)[0]
    assert first.text == KIND
    assert "lower bound" in KIND
    assert "no number of rows that is enough" in KIND


def test_text_is_composed_of_sentences_and_tables(tied):
    parts = answer_text(tied, symbolic=True)
    tables = [part for part in parts if isinstance(part, Table)]
    assert [table.columns[0].name for table in tables] == ["pattern", "pattern"]
    assert parts[1].text.startswith("Learning He3 takes P ~ d^1 samples")
    assert Cell(f"Layers of the pattern {tied.found.winners[0].name}", "bold") in parts
    assert answer_json(tied, symbolic=True)["table"][0].keys() >= {"name", "energy"}
    assert "table" not in answer_json(tied, symbolic=False)
