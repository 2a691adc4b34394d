"""Reading of CSV files with usual and unusual notation."""

from __future__ import annotations

import csv
import gzip
import io
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from solvable.data import csv_columns
from solvable.data.cells import is_missing, is_number, parse_cells
from solvable.data.csv_table import read_csv
from solvable.data.table import Table
from solvable.errors import InvalidData


def read(tmp_path: Path, content: str | bytes, *expected: str) -> tuple[Table, tuple[str, ...]]:
    path = tmp_path / "table.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_csv(path, expected)


PLAIN = [[1.0, 2.5], [-3.0, 4e-3]]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|", " "])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_delimiters_and_line_ends(tmp_path: Path, delimiter: str, end: str) -> None:
    rows = [["a", "b"], ["1", "2.5"], ["-3", "4e-3"]]
    table, notes = read(tmp_path, end.join(delimiter.join(row) for row in rows) + end)
    assert table.order == ("a", "b")
    np.testing.assert_array_equal(table.numeric, PLAIN)
    assert notes == ()


def test_runs_of_blanks_are_one_delimiter(tmp_path: Path) -> None:
    table, _ = read(tmp_path, "  a  b \n  1   2.5 \n -3 4e-3\n\n")
    assert table.order == ("a", "b")
    np.testing.assert_array_equal(table.numeric, PLAIN)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_encodings(tmp_path: Path, encoding: str) -> None:
    table, notes = read(tmp_path, "größe,naïve\n1,ü\n".encode(encoding))
    assert table.order == ("größe", "naïve")
    assert table.column("naïve").tolist() == ["ü"]
    assert notes == ()


def test_other_encodings_are_told(tmp_path: Path) -> None:
    table, notes = read(tmp_path, "größe,b\n1,€\n".encode("cp1252"))
    assert table.order == ("größe", "b")
    assert table.column("b").tolist() == ["€"]
    assert "Windows-1252" in notes[0]


def test_gzip(tmp_path: Path) -> None:
    table, _ = read(tmp_path, gzip.compress(b"a,b\n1,2.5\n-3,4e-3\n"))
    np.testing.assert_array_equal(table.numeric, PLAIN)


@pytest.mark.parametrize("cell", ["", "NA", "na", "NaN", "nan", "?", "null", "None", " N/A "])
def test_missing(tmp_path: Path, cell: str) -> None:
    table, _ = read(tmp_path, f"a,b,c\n1,{cell},x\n{cell},2,{cell}\n")
    np.testing.assert_array_equal(table.numeric, [[1, np.nan], [np.nan, 2]])
    assert table.column("c").tolist() == ["x", None]


def test_quotes(tmp_path: Path) -> None:
    text = '"a, b","say ""no"""\n"1","two\nlines"\n2,"x, y"\n'
    table, _ = read(tmp_path, text)
    assert table.order == ("a, b", 'say "no"')
    assert table.column('say "no"').tolist() == ["two\nlines", "x, y"]
    np.testing.assert_array_equal(table.column("a, b"), [1, 2])


def test_all_quoted_numbers(tmp_path: Path) -> None:
    table, _ = read(tmp_path, '"a","b"\n"1","2.5"\n"-3","4e-3"\n')
    np.testing.assert_array_equal(table.numeric, PLAIN)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("5.1,3.5,setosa\n4.9,3.0,setosa\n", ("x0", "x1", "x2")),
        ("1,2\n3,4\n", ("x0", "x1")),
        ("name,colour\nAda,red\n", ("name", "colour")),
        ("id,2019,2020,y\n1,2,3,4\n", ("id", "2019", "2020", "y")),
        ("?,1\n2,3\n", ("x0", "x1")),
        (",a\n0,5\n1,6\n", ("unnamed 0", "a")),
    ],
)
def test_header_is_found(tmp_path: Path, text: str, names: tuple[str, ...]) -> None:
    table, notes = read(tmp_path, text)
    assert table.order == names
    assert any("no header" in note for note in notes) == (names[0] == "x0")


def test_a_known_column_makes_the_first_row_a_header(tmp_path: Path) -> None:
    # In a table with years as names and values, only `expected` identifies the header.
    assert read(tmp_path, "2019,2020\n1,2\n", "2020")[0].order == ("2019", "2020")
    assert read(tmp_path, "2019,2020\n1,2\n")[0].order == ("x0", "x1")


def test_decimal_commas_are_read_and_told(tmp_path: Path) -> None:
    table, notes = read(tmp_path, "a;b;c\n1,5;x;2\n-0,25;y;\n")
    np.testing.assert_array_equal(table.numeric, [[1.5, 2], [-0.25, np.nan]])
    assert notes == ("column 'a': decimal commas were read as points",)


def test_decimal_commas_without_header(tmp_path: Path) -> None:
    table, _ = read(tmp_path, "1,5;2,5\n3,5;4\n")
    np.testing.assert_array_equal(table.numeric, [[1.5, 2.5], [3.5, 4]])


def test_separators_of_thousands_are_left_out_and_told(tmp_path: Path) -> None:
    table, notes = read(tmp_path, 'a,b\n"1,200",x\n"-12,345,678.5",y\n900,\n')
    np.testing.assert_array_equal(table.column("a"), [1200, -12345678.5, 900])
    assert notes == ("column 'a': separators of thousands were left out",)
    # 1,25 cannot have a separator of thousands, so the comma of its column is decimal.
    table, notes = read(tmp_path, 'a,b\n"1,25",1\n"2,500",2\n')
    np.testing.assert_array_equal(table.column("a"), [1.25, 2.5])
    assert notes == ("column 'a': decimal commas were read as points",)


def test_truth_values_are_numbers(tmp_path: Path) -> None:
    table, _ = read(tmp_path, "a,b\nTrue,1\nfalse,2\n,3\n")
    np.testing.assert_array_equal(table.column("a"), [1, 0, np.nan])


def test_a_semicolon_inside_text_is_no_delimiter(tmp_path: Path) -> None:
    table, _ = read(tmp_path, "film,genre\n1,war;love\n2,war;crime\n")
    assert table.order == ("film", "genre")


def test_thousands_of_columns(tmp_path: Path) -> None:
    values = np.arange(3 * 4000.0).reshape(3, 4000) / 7
    names = [f"g{i}" for i in range(4000)]
    lines = [",".join(names), *(",".join(map(repr, row)) for row in values.tolist())]
    table, _ = read(tmp_path, "\n".join(lines))
    np.testing.assert_array_equal(table.numeric, values)
    holed = [",".join(names), *("," + ",".join(map(repr, row[1:])) for row in values.tolist())]
    np.testing.assert_array_equal(read(tmp_path, "\n".join(holed))[0].numeric[:, 1:], values[:, 1:])


def test_long_cells(tmp_path: Path) -> None:
    limit = csv.field_size_limit()
    table, _ = read(tmp_path, "a,b\n1," + "x" * 300_000 + "\n")
    assert len(table.column("b")[0]) == 300_000
    assert csv.field_size_limit() == limit


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty"),
        ("\n \n\n", "is empty"),
        ("a,b\n", "a header and no rows"),
        ("a,b,c\n1,2,3\n4,5\n6,7,8,9\n", r"2 rows .* line 3 has 2 cells, the first row 3"),
        ("a,a,b\n1,2,3\n", "column name 'a' occurs 2 times"),
        ('a,b\n1,"two\n3,4\n', "unexpected end of data"),
        (b"PK\x03\x04\x00\x00\x00", "zero bytes"),
        (b"\x1f\x8b\x08\x00cut", "damaged"),
        (b"\xff\xfea", "UTF-16"),
    ],
)
def test_bad_files(tmp_path: Path, content: str | bytes, message: str) -> None:
    with pytest.raises(InvalidData, match=message):
        read(tmp_path, content)


def test_ragged_rows_in_a_file_of_numbers_name_their_line(tmp_path: Path) -> None:
    lines = ["a,b"] + ["1,2"] * 200 + ["3"] + ["1,2"] * 5
    with pytest.raises(InvalidData, match=r"1 row of another length .* line 202 has 1 cells"):
        read(tmp_path, "\n".join(lines))


def test_texts_far_down_make_the_column_text_unless_they_are_few(tmp_path: Path) -> None:
    lines = ["a,b"] + [f"{i},2" for i in range(200)]
    table, notes = read(tmp_path, "\n".join([*lines, "x,3"]))
    assert table.numeric_names == ("a", "b")
    assert np.isnan(table.column("a")[-1])
    assert notes == (
        "column 'a': cells that are no numbers of this column count as missing in 1 rows: 'x'",
    )
    table, _ = read(tmp_path, "\n".join(lines + ["x,3"] * 30))
    assert table.numeric_names == ("b",)
    assert table.column("a")[-1] == "x"


EVERYDAY = {
    "german": (["1.234,56", "0,5", "-12.000,25"], [1234.56, 0.5, -12000.25]),
    "swiss": (["1'234.5", "12", "1'000'000"], [1234.5, 12, 1e6]),
    "blanks": (["1 234", "56 789.5", "3"], [1234, 56789.5, 3]),
    "dollars": (["$ 1,234", "-$5.50", "$7"], [1234, -5.5, 7]),
    "euros": (["1.234.567,5 \u20ac", "\u20ac2,25", "\u22123,0 \u20ac"], [1234567.5, 2.25, -3]),
    "percent": (["12.3%", "4 %", "-0.5%"], [12.3, 4, -0.5]),
    "gaps": (["1", "n.d.", *["2"] * 30], [1, np.nan, *[2] * 30]),
}


@pytest.mark.parametrize("name", EVERYDAY)
def test_numbers_as_people_write_them(tmp_path: Path, name: str) -> None:
    cells, values = EVERYDAY[name]
    quoted = [f'"{cell}",{place}' for place, cell in enumerate(cells)]
    table, notes = read(tmp_path, "\n".join(["a,b", *quoted]))
    np.testing.assert_allclose(table.column("a"), values)
    assert notes


def test_limits_of_detection_are_numbers_with_a_mark(tmp_path: Path) -> None:
    cells = ["<0.1", "0.5", "2", "> 9", "1.5"]
    table, notes = read(tmp_path, "\n".join(["a,b", *(f"{cell},1" for cell in cells)]))
    np.testing.assert_array_equal(table.column("a"), [0.1, 0.5, 2, 9, 1.5])
    np.testing.assert_array_equal(table.column("a: limit"), [-1, 0, 0, 1, 0])
    assert "of cells such as <0.1 the number was read" in notes[0]
    # Classes stay texts.
    classes, _ = read(tmp_path, "a,b\n<30,1\n>30,2\nNO,3\n<30,4\n")
    assert classes.column("a")[0] == "<30"


@pytest.mark.parametrize(
    "cells",
    [["12 kg", "3 kg", "4"], ["1-2", "3-4"], ["12%", "3", "4"], ["A1", "B2"], ["1,2,3", "4"]],
)
def test_what_is_no_number_stays_text(tmp_path: Path, cells: list[str]) -> None:
    table, _ = read(tmp_path, "\n".join(["a,b", *(f'"{cell}",1' for cell in cells)]))
    assert table.column("a").dtype == object


def test_a_last_row_of_totals_is_left_out(tmp_path: Path) -> None:
    rows = [f"name {k},{k},{k / 2}" for k in range(40)]
    table, notes = read(tmp_path, "\n".join(["name,a,b", *rows, "Total,780,390"]))
    assert table.n_rows == 40
    assert notes == ("the last row is left out: 'name' is 'Total' there",)
    # In the column of numbers, the word is a gap, and the row has no target.
    numbers = [f"{k},{k / 2}" for k in range(40)]
    table, notes = read(tmp_path, "\n".join(["a,b", *numbers, "Total,"]))
    assert table.numeric_names == ("a", "b")
    assert np.isnan(table.numeric[-1]).all()


NUMBERS = st.floats(allow_nan=True, allow_infinity=True, width=64)
WORDS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Z"]), min_size=1).map(
    lambda text: "w" + text
)


@settings(max_examples=60, deadline=None)
@given(
    numbers=st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=8),
    words=st.lists(st.one_of(st.none(), WORDS), min_size=8, max_size=8),
    delimiter=st.sampled_from([",", ";", "\t"]),
)
def test_round_trip(
    tmp_path_factory: pytest.TempPathFactory,
    numbers: list[tuple[float, float]],
    words: list[str | None],
    delimiter: str,
) -> None:
    words = words[: len(numbers)]
    buffer = io.StringIO()
    writer = csv.writer(buffer, delimiter=delimiter)
    writer.writerow(["first", "second", "word"])
    for (a, b), word in zip(numbers, words, strict=True):
        writer.writerow([repr(a), "" if np.isnan(b) else repr(b), word])
    path = tmp_path_factory.getbasetemp() / "round.csv"
    path.write_text(buffer.getvalue(), encoding="utf-8")
    table, _ = read_csv(path, ["word"])
    np.testing.assert_array_equal(
        np.column_stack([table.column("first"), table.column("second")]), np.array(numbers)
    )
    read_words = table.column("word")
    if any(words):
        assert read_words.tolist() == words
    else:
        assert np.isnan(read_words.astype(float)).all()


@given(st.text(max_size=6))
@example("0\x1f")
def test_a_cell_is_a_number_only_if_python_and_numpy_agree(cell: str) -> None:
    column = parse_cells([cell]).values
    assert is_number(cell) <= (column.dtype != object)
    if is_number(cell):
        # Blanks are stripped before float(), which accepts fewer kinds of blanks than strip().
        assert column[0] == float(cell.strip())
        np.testing.assert_array_equal(column, np.loadtxt([cell.strip()], ndmin=1))
    if is_missing(cell):
        assert column.dtype != object
        assert np.isnan(column).all()


@pytest.mark.parametrize("cell", ["1_000", "0x10", "٣", "٣,000", "1e", "--1", "12 m", "1 2"])
def test_not_numbers(cell: str) -> None:
    assert not is_number(cell)
    assert parse_cells([cell, "1"])[0].dtype == object


PIECES = st.sampled_from(
    [
        "1",
        "-2.5",
        " 3 ",
        "+4e2",
        "NA",
        "",
        " ",
        "x",
        "größe",
        'say "no"',
        "a, b",
        "c;d",
        "two\nlines",
    ]
)


@settings(max_examples=80, deadline=None)
@given(
    rows=st.lists(st.lists(PIECES, min_size=3, max_size=3), min_size=1, max_size=30),
    delimiter=st.sampled_from([",", ";", "\t", "|"]),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
    block=st.sampled_from([40, 77, 1 << 18]),
)
def test_cells_are_those_of_pythons_reader_wherever_blocks_end(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[list[str]],
    delimiter: str,
    quoting: int,
    end: str,
    block: int,
) -> None:
    if end == "\r":  # Python does not quote a line feed in files whose lines end otherwise
        quoting = csv.QUOTE_ALL
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, delimiter=delimiter, quoting=quoting, lineterminator=end)  # type: ignore[arg-type]
    writer.writerows([["first", "second", "third"], *rows])
    path = tmp_path_factory.getbasetemp() / "blocks.csv"
    path.write_text(buffer.getvalue(), encoding="utf-8", newline="")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_columns, "BLOCK", block)
        patch.setattr(csv_columns, "BLOCK_ROWS", 1)
        table, _ = read_csv(path, ["first"])
    for name, cells in zip(("first", "second", "third"), zip(*rows, strict=True), strict=True):
        expected = parse_cells(cells, decimal_comma=delimiter != ",").values
        np.testing.assert_array_equal(table.column(name), expected)


@pytest.mark.parametrize("block", range(20, 60))
def test_a_line_break_in_a_cell_is_one_wherever_blocks_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    monkeypatch.setattr(csv_columns, "BLOCK", block)
    monkeypatch.setattr(csv_columns, "BLOCK_ROWS", 1)
    table, _ = read(tmp_path, "n,word\r\n" + '1,"x\r\ny"\r\n22,z\r\n' * 20)
    assert set(table.column("word")) == {"x\ny", "z"}


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ('a, "b"\n1, "x, y"\n', "x, y"),  # blanks before quotes
        ('a,b\n1,5" pipe\n', '5" pipe'),  # a quote that does not enclose a cell
        ('a,b\n1,"5"" pipe"\n', '5" pipe'),
        ("a b\n1 'x'\n", "'x'"),
        ('a  b\n1  "x y"\n', "x y"),  # runs of blanks
    ],
)
def test_odd_quotes(tmp_path: Path, text: str, word: str) -> None:
    table, _ = read(tmp_path, text)
    assert table.column("b").tolist() == [word]
    np.testing.assert_array_equal(table.column("a"), [1])


@pytest.mark.parametrize("row", ['1,"x"y', '1,"x" ', '1,"x" "y"'])
def test_text_after_a_closing_quote_is_refused(tmp_path: Path, row: str) -> None:
    with pytest.raises(InvalidData, match=r"line 3 of the file cannot be read"):
        read(tmp_path, f"a,b\n1,z\n{row}\n2,z\n")


def test_one_column_with_blank_lines(tmp_path: Path) -> None:
    table, _ = read(tmp_path, 'a\n1\n\n  \nNA\n""\n3\n')
    np.testing.assert_array_equal(table.column("a"), [1, np.nan, 3])


@pytest.mark.slow
def test_a_large_table_takes_four_times_its_size(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    values = rng.standard_normal((150_000, 12)).tolist()
    words = np.array(["red", "green", "blue"])[rng.integers(3, size=len(values))]
    path = tmp_path / "large.csv"
    rows = (",".join(map(repr, row)) + f",{word}" for row, word in zip(values, words, strict=True))
    path.write_text("\n".join([",".join(f"c{i}" for i in range(12)) + ",word", *rows]))
    code = f"""
import resource, pyarrow.csv
from pathlib import Path
from solvable.data.csv_table import read_csv
def peak(): return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
before = peak()
table, _ = read_csv(Path({str(path)!r}))
print((peak() - before) / Path({str(path)!r}).stat().st_size, table.texts["word"][-1])
"""
    times, word = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert word == words[-1]
    assert float(times) < 4


@pytest.mark.parametrize(
    ("content", "names", "comments"),
    [
        ("# from 2024\n#\n\na,b\n1,x\n2,y\n", ("a", "b"), 2),
        ("a,b\n# units: m, s, kg\n1,x\n2,y\n# end\n", ("a", "b"), 2),
        ("# by hand\n# a,b\n1,5\n2,6\n", ("a", "b"), 1),
        ("#a;b\r\n1;5\r\n2;6\r\n", ("a", "b"), 0),
        ('a,b\n"1\n# no comment",x\n2,y\n', ("a", "b"), 0),
        ("tag,b\n#one,1\n#two,2\n", ("tag", "b"), 0),
        ("# 3 rows\n1,5\n2,6\n", ("x0", "x1"), 1),
    ],
)
def test_comment_lines(tmp_path: Path, content: str, names: tuple[str, ...], comments: int) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(content.encode())
    table, notes = read_csv(path)
    assert (table.order, table.n_rows) == (names, 2)
    told = [note for note in notes if "comment" in note]
    lines = "line" if comments == 1 else "lines"
    expected = f"skipped {comments} comment {lines} (beginning with #)"
    assert told == [expected] * (comments > 0)


def test_errors_below_comments_name_the_line_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("# one\n# two\na,b\n1,x\n2\n")
    with pytest.raises(InvalidData, match="line 5 has 1 cells"):
        read_csv(path)
    path.write_text("# one\n# two\n")
    with pytest.raises(InvalidData, match="is empty"):
        read_csv(path)
