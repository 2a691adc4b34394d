"""Answers of tools: what a terminal shows of the parts, and the page."""

from __future__ import annotations

import html
import re

from solvable.answers.page import page_html
from solvable.answers.sections import (
    Answer,
    Folded,
    Heading,
    Items,
    Picture,
    Section,
    figures_of,
    terminal_parts,
)
from solvable.plots.figure import Figure, Series
from solvable.plots.tables import Cell, Column, Table

HOSTILE = "<script>document.title='taken'</script>"


def table():
    columns = (
        "name",
        Column("error", right=True),
        Column("range", shown="page"),
        Column("more", shown="details"),
    )
    made = Table(*columns)
    made.add(
        Cell("kernel", more="a meaning"),
        "3 %",
        Cell("", range=(10.0, 40.0, 20.0)),
        "0.1",
        style="bold",
    )
    return made


def answer():
    curve = Figure("curve", "A curve", "n", "error", (Series("measured", [1, 2], [0.5, 0.4]),))
    return Answer(
        "A title",
        [Cell("Use the kernel.", "bold"), Cell("too few rows.", "yellow"), Items(["read as text"])],
        [
            Section("How good?", ["One sentence.", table(), Cell("how it was done", "hint")]),
            Section("Curve", [Folded("numbers", [Heading("by row"), table()]), curve], "curve"),
            Section("Network", [HOSTILE], on_page=True),
        ],
        [("3 %", "wrong", "1 to 5 %")],
        [("This repeats it:", "solvable learn x")],
        {"seed": 0},
    )


def texts(parts):
    return [part.text if isinstance(part, Cell) else part for part in parts]


def test_a_terminal_shows_lead_and_sections_without_what_belongs_to_a_page():
    parts = terminal_parts(answer())
    *lead, heading, sentence, gap, printed = texts(parts)
    assert lead == ["Use the kernel.", "! too few rows.", "- read as text", ""]
    assert (heading, sentence, gap) == ("How good?", "One sentence.", "")
    assert [column.name for column in printed.columns] == ["name", "error"]
    assert [cell.text for cell in printed.rows[0][0]] == ["kernel", "3 %"]
    # a section of which nothing is shown has no heading
    assert "Curve" not in texts(parts)


def test_details_open_what_is_folded_and_add_columns():
    shown = texts(terminal_parts(answer(), details=True))
    tables = [part for part in shown if isinstance(part, Table)]
    assert [column.name for column in tables[0].columns] == ["name", "error", "more"]
    assert len(tables) == 2
    assert shown[shown.index("how it was done") - 1] == ""  # a blank line after a table
    assert shown[shown.index("Curve") + 1 :][:2] == ["by row", ""]


def test_a_page_has_all_parts_and_escapes_texts():
    text = page_html(answer())
    assert HOSTILE not in text
    body = html.unescape(re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL))
    for part in (
        "A title",
        "Warning: too few rows.",
        "a meaning",
        "read as text",
        "how it was done",
    ):
        assert part in body
    for part in (
        "left:10.00%;width:30.00%",
        "<summary>numbers</summary>",
        "solvable learn x",
        "1 to",
    ):
        assert part in body
    assert '<figure id="figure-curve"' in text
    assert [figure.name for figure in figures_of(answer())] == ["curve"]


def test_pictures_are_markup_or_images_and_no_figure_needs_no_script():
    drawn = [
        Picture("one", lambda: "<svg></svg>"),
        Picture("two", lambda: "data:image/png;base64,"),
    ]
    text = page_html(Answer("A title", [], [Section("Pictures", drawn)]))
    assert "<svg></svg>" in text
    assert 'src="data:image/png;base64,"' in text
    assert text.count("<script>") == 1  # the one that sorts tables
