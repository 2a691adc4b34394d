"""Text of one answer on the command line and on the page."""

from __future__ import annotations

import pytest

from solvable.plots.tables import Cell, Table
from solvable.scale import network_of_flags
from solvable.scale.answer_text import answer_json, answer_text
from solvable.scale.answers import answer_of
from solvable.scale.report import write_answer


@pytest.fixture(scope="module")
def tied():
    """Two layers of proportional widths, whose patterns tie in exponents and differ in prefactors."""
    return answer_of([network_of_flags("erf:1,erf:1", "he3")])


def test_the_pattern_described_is_the_cheapest_of_those_that_tie(tied, tmp_path):
    names = [winner.name for winner in tied.found[0].winners]
    ordered = [row.name for row in tied.tie.patterns if row.name in names]
    assert tied.cheapest.name == ordered[0] != names[0]
    title = f"Layers of the pattern {ordered[0]}"
    assert Cell(title, "bold") in answer_text(tied, symbolic=False, files=None)
    files = write_answer(tied, tmp_path / "out", command="solvable scale", request=["a request"])
    assert title in files.report.read_text("utf-8")


def test_text_is_composed_of_sentences_and_tables(tied):
    parts = answer_text(tied, symbolic=True, files=None)
    tables = [part for part in parts if isinstance(part, Table)]
    assert [table.columns[0].name for table in tables] == ["pattern", "pattern"]
    assert parts[0].text.startswith("Learning He3 takes P ~ d^1 samples")
    assert answer_json(tied, symbolic=True, files=None)["table"][0].keys() >= {"name", "energy"}
    assert "table" not in answer_json(tied, symbolic=False, files=None)
