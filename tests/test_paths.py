"""Paths that can be used, texts that can be shown, cells that a spreadsheet does not run."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solvable.errors import InvalidParameter
from solvable.paths import check_path, printable
from solvable.plots.csv_text import csv_text, harmless
from solvable.plots.figure import Figure, Series
from solvable.plots.files import pictures
from solvable.plots.tables import Table


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("", "is empty"),
        ("a\0", "zero byte"),
        ("d/" + 256 * "n", "256 bytes; allowed: names up to 255"),
        (128 * "é" + ".csv", "260 bytes"),
        (50 * ("d" * 99 + "/"), "5000 bytes; allowed: paths up to 4096"),
    ],
)
def test_what_no_file_system_holds_is_refused(path, said):
    with pytest.raises(InvalidParameter, match=said):
        check_path(path, "--where")


def test_the_longest_name_is_used(tmp_path):
    path = check_path(tmp_path / (255 * "n"))
    path.write_text("held")
    assert path.read_text() == "held"


@given(st.text(st.characters(min_codepoint=0, exclude_categories=())))
def test_what_is_shown_can_be_written_and_moves_nothing(text):
    shown = printable(text)
    shown.encode()
    assert not {"\x1b", "\x07", "\x9b", "\r", "\u202e"} & set(shown)
    assert printable(shown) == shown
    if text.isprintable():
        assert shown == text


def test_tables_and_figures_drop_the_escapes_of_names():
    name = "w\x1b]0;title\x07\x9b31m\u202e"
    table = Table(name, title=name)
    table.add(name)
    figure = Figure("f", name, name, name, [Series(name, [1.0, 2.0], [1.0, 2.0])], caption=name)
    texts = [table.to_text(), table.to_html(), pictures(figure).svg.decode()]
    for text in texts:
        assert "w]0;title31m" in text or "<svg" in text
        assert text == printable(text)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("=HYPERLINK(1)", "'=HYPERLINK(1)"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("+1+cmd", "'+1+cmd"),
        ("-2-3", "'-2-3"),
        ("\t=1", "'\t=1"),
        ("-inf", "'-inf"),
        ("-1", "-1"),
        ("+2.5e3", "+2.5e3"),
        ("plain = text", "plain = text"),
        ("", ""),
    ],
)
def test_formulas_are_text_and_numbers_are_numbers(text, written):
    assert harmless(text) == written


@given(
    st.lists(
        st.lists(
            st.one_of(st.floats(allow_nan=False), st.integers(), st.text()), min_size=2, max_size=2
        )
    )
)
def test_csv_comes_back_but_for_the_quote(rows):
    text = csv_text(["=head", "b"], rows)
    header, *back = csv.reader(io.StringIO(text, newline=""))
    assert header == ["'=head", "b"]
    for row, cells in zip(rows, back, strict=True):
        for value, cell in zip(row, cells, strict=True):
            assert cell in (str(value), f"'{value}")
            if not isinstance(value, str):
                assert cell == str(value)
            assert not cell.startswith(("=", "@", "\t", "\r"))
