"""Valid paths, texts safe to print, and cells that a spreadsheet does not run as formulas."""

from __future__ import annotations

import csv
import io
import os
import signal
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solvable.errors import InvalidData, InvalidParameter, StorageFailed
from solvable.paths import check_path, place_inside, printable, whole_directory
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


def _content(directory):
    return {
        path.relative_to(directory).as_posix(): path.read_text()
        for path in directory.rglob("*")
        if path.is_file()
    }


def _write(draft, text):
    (draft / "result.json").write_text(text)
    (draft / "figures").mkdir()
    (draft / "figures" / "a.svg").write_text(text)


def test_a_new_directory_appears_whole(tmp_path):
    target = tmp_path / "runs" / "one"
    with whole_directory(target) as draft:
        _write(draft, "new")
        assert not target.exists()
    assert _content(tmp_path) == {"runs/one/result.json": "new", "runs/one/figures/a.svg": "new"}


def test_files_of_a_directory_that_exists_are_replaced_and_others_stay(tmp_path, monkeypatch):
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures" / "a.svg").write_text("old")
    monkeypatch.chdir(tmp_path)
    with whole_directory(".") as draft:
        _write(draft, "new")
        assert (tmp_path / "figures" / "a.svg").read_text() == "old"
    held = {"notes.txt": "mine", "result.json": "new", "figures/a.svg": "new"}
    assert _content(tmp_path) == held


def _interrupted(target, error):
    with whole_directory(target) as draft:
        _write(draft, "new")
        raise error(draft)


@pytest.mark.parametrize("there", [False, True])
def test_after_an_error_nothing_has_changed(tmp_path, there):
    target = tmp_path / "one"
    if there:
        target.mkdir()
        (target / "result.json").write_text("old")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(KeyboardInterrupt):
        _interrupted(target, KeyboardInterrupt)
    assert sorted(tmp_path.rglob("*")) == before
    assert _content(tmp_path) == ({"one/result.json": "old"} if there else {})


def test_a_directory_is_not_made_for_no_file(tmp_path):
    with whole_directory(tmp_path / "one"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_messages_name_the_path_that_was_asked_for(tmp_path):
    target = tmp_path / "one"
    with pytest.raises(StorageFailed) as raised:
        _interrupted(target, lambda draft: StorageFailed(f"{draft / 'a.html'} is not written."))
    assert str(raised.value) == f"{target / 'a.html'} is not written."
    with pytest.raises(StorageFailed, match=r"one cannot be written \(No space left"):
        _interrupted(target, lambda draft: OSError(28, "No space left on device"))
    assert list(tmp_path.iterdir()) == []


def test_where_nothing_can_be_written_the_message_says_so(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageFailed, match="Not a directory"):
        _interrupted(tmp_path / "file" / "one", AssertionError)


def test_a_killed_process_leaves_nothing_at_the_path(tmp_path):
    program = (
        "import os, signal, sys\n"
        "from solvable.paths import whole_directory\n"
        "with whole_directory(sys.argv[1]) as draft:\n"
        "    (draft / 'result.json').write_text('part')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    target = tmp_path / "one"
    run = subprocess.run([sys.executable, "-c", program, target], env=os.environ, check=False)
    assert run.returncode == -signal.SIGKILL
    assert not target.exists()
    (left,) = tmp_path.glob(".solvable-*.part")
    # Drafts of running processes and of other hosts stay.
    parts = left.name.split("-")
    others = [
        "-".join([*parts[:2], str(os.getppid()), *parts[3:]]),
        left.name.replace(".part", "x.part"),
    ]
    for name in others:
        (tmp_path / name).mkdir()
    with whole_directory(target) as draft:
        assert draft.name.split("-")[1] == parts[1]  # the same target
        with whole_directory(tmp_path / "two"):
            assert draft.is_dir()
        _write(draft, "new")
    assert not left.exists()
    assert all((tmp_path / name).is_dir() for name in others)
    assert set(_content(target)) == {"result.json", "figures/a.svg"}


@pytest.mark.parametrize(
    "name", ["../a", "/a", "d/../../a", "..\\a", "\\a", "C:\\a", "", "a\0", "out/a"]
)
def test_a_name_that_leaves_its_folder_is_refused(tmp_path, name):
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "out").symlink_to(tmp_path)
    (tmp_path / "a").write_text("mine")
    with pytest.raises(InvalidData, match=r"is outside the folder|is no place in"):
        place_inside(folder, name)
    for held in ("a", "d/a", "new/..a", "a..b"):
        assert place_inside(folder, held) == folder / held


def test_nothing_is_written_through_a_link_out_of_the_directory(tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "a.svg").write_text("mine")
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "figures").symlink_to(tmp_path / "other")
    with (
        pytest.raises(StorageFailed, match="is outside the folder"),
        whole_directory(tmp_path / "one") as draft,
    ):
        _write(draft, "new")
    assert (tmp_path / "other" / "a.svg").read_text() == "mine"


def test_a_file_that_cannot_be_read_is_not_a_full_disk(tmp_path):
    with pytest.raises(FileNotFoundError), whole_directory(tmp_path / "one"):
        (tmp_path.parent / "gone" / "file").read_bytes()
    assert list(tmp_path.iterdir()) == []
