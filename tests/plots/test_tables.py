"""Tables as text and as HTML: both show all cells, and never interpret their text."""

from __future__ import annotations

import io
from xml.etree import ElementTree

import pytest
from rich.console import Console

from solvable.plots.tables import Cell, Column, Table, verdict_cell, window


def example() -> Table:
    table = Table("verdict", "claim", Column("measured", right=True), title="Claims [all]")
    table.add(verdict_cell("holds"), "rank", "0.5 ± 0.1")
    table.add(verdict_cell("fails"), "<b>error</b> [red]x[/red]", Cell("12", "bold"), style="dim")
    return table


def shown(table: Table, width: int) -> list[str]:
    stream = io.StringIO()
    Console(file=stream, width=width, color_system=None).print(table)
    return [line.rstrip() for line in stream.getvalue().splitlines()]


def test_columns_stand_side_by_side_and_markup_is_text():
    assert shown(example(), 60) == [
        "Claims [all]",
        "verdict  claim                       measured",
        "holds    rank                       0.5 ± 0.1",
        "fails    <b>error</b> [red]x[/red]         12",
    ]
    assert example().to_text().splitlines() == shown(example(), 60)
    assert example().width == len("fails    <b>error</b> [red]x[/red]  0.5 ± 0.1")


def test_narrow_windows_break_words_and_cut_numbers():
    lines = shown(Table.of("text", Column("n", right=True), rows=[["a" * 12, "12345"]]), 12)
    assert "".join(line.split()[0] for line in lines[1:]) == "a" * 12
    assert lines[1].endswith("12345")
    assert shown(Table.of(Column("n", right=True), rows=[["123456"]]), 4)[-1] == "123…"


def test_an_indented_table_begins_one_blank_later():
    table = Table("a", "b", indented=True)
    table.add("1", "2")
    assert shown(table, 20) == [" a  b", " 1  2"]
    assert table.width == 6


def test_html_holds_the_same_texts_and_no_markup_of_theirs():
    root = ElementTree.fromstring(example().to_html())
    assert [cell.text for cell in root.iter("th")] == ["verdict", "claim", "measured"]
    rows = [[cell.text for cell in row] for row in root.find("tbody")]
    assert rows == [
        ["holds", "rank", "0.5 ± 0.1"],
        ["fails", "<b>error</b> [red]x[/red]", "12"],
    ]
    assert root.find("caption").text == "Claims [all]"
    styles = [row.get("style") for row in root.find("tbody")]
    assert styles == [None, "opacity:0.65"]
    assert "color:#c62828" in root.find("tbody")[1][0].get("style")


def test_a_row_may_lack_cells_at_its_end_but_have_none_too_many():
    assert shown(Table.of("a", "b", rows=[["1"]]), 20) == ["a  b", "1"]
    with pytest.raises(ValueError, match="3 cells for 2 columns"):
        Table("a", "b").add("1", "2", "3")


def test_a_pipe_has_no_window(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    assert window(io.StringIO()) is None
    monkeypatch.setenv("COLUMNS", "77")
    assert window(io.StringIO()) == 77


def test_a_title_wider_than_its_table_is_on_one_line():
    table = Table.of("n", "1", rows=[("10", "0.5")], title="threshold_samples")
    assert table.to_text().splitlines() == ["threshold_samples", "n   1", "10  0.5"]
