from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from solvable.errors import InvalidParameter, StorageFailed
from solvable.plots.files import write_atomically, write_figures
from solvable.systems.base import Figure, Series


def test_every_figure_becomes_a_valid_svg_and_pdf(
    tmp_path: Path, overlap_figure: Callable[..., Figure], spectrum_figure: Figure
) -> None:
    paths = write_figures([overlap_figure(3), spectrum_figure], tmp_path / "figures")
    assert [path.name for path in paths] == [
        "overlap.svg",
        "overlap.pdf",
        "spectrum.svg",
        "spectrum.pdf",
    ]
    assert sorted(path.name for path in paths) == sorted(os.listdir(tmp_path / "figures"))
    for path in paths:
        content = path.read_bytes()
        if path.suffix == ".svg":
            root = ElementTree.fromstring(content)
            assert root.tag == "{http://www.w3.org/2000/svg}svg"
            assert float(root.attrib["width"].removesuffix("pt")) > 300
            # Nothing is fetched, and glyphs are paths: no font of the reader's machine is needed.
            assert b"<image" not in content
            assert b"font-family" not in content
        else:
            assert content.startswith(b"%PDF-")
            assert content.rstrip().endswith(b"%%EOF")
            # Type 3 fonts are refused by journals.
            assert b"/Type3" not in content


def test_the_same_figure_gives_the_same_bytes_in_another_process(
    tmp_path: Path, spectrum_figure: Figure
) -> None:
    figure = Figure("f", "T", "x", "y", [Series("a", [1, 2], [1, 2], "points", [0.1, 0.2])])
    script = (
        "from solvable.plots import write_figures\n"
        "from solvable.systems.base import Figure, Series\n"
        f"write_figures([{figure!r}], {str(tmp_path / 'other')!r})\n"
    )
    environment = os.environ | {"PYTHONHASHSEED": "77", "SOURCE_DATE_EPOCH": "1"}
    subprocess.run([sys.executable, "-c", script], check=True, env=environment)
    # What was drawn before must not matter either.
    write_figures([spectrum_figure, figure], tmp_path / "here")
    for name in ("f.svg", "f.pdf"):
        assert (tmp_path / "here" / name).read_bytes() == (tmp_path / "other" / name).read_bytes()


@pytest.mark.parametrize(
    "name", ["", "../escape", "a/b", ".hidden", "a b", "a\\b", "con?", "x" * 101, "a\n"]
)
def test_a_name_that_is_no_plain_file_name_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidParameter, match="allowed: letters, digits"):
        write_figures([Figure(name, "T", "x", "y", [])], tmp_path)
    assert not list(tmp_path.iterdir())


def test_two_figures_of_one_name_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    pair = [Figure("error", "T", "x", "y", []), Figure("Error", "T", "x", "y", [])]
    with pytest.raises(InvalidParameter, match="each name once"):
        write_figures(pair, tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "a.txt"
    write_atomically(path, b"old")
    write_atomically(path, b"new")
    assert path.read_bytes() == b"new"
    assert os.listdir(path.parent) == ["a.txt"]


def test_others_may_read_what_the_umask_lets_them(tmp_path: Path) -> None:
    old = os.umask(0o022)
    try:
        write_atomically(tmp_path / "a.txt", b"")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "a.txt").stat().st_mode) == 0o644


def test_a_full_disk_leaves_the_old_file_and_no_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.txt"
    write_atomically(path, b"old")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageFailed, match="No space left on device") as caught:
        write_atomically(path, b"new")
    assert str(path) in str(caught.value)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_a_directory_in_the_way_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "a.txt").mkdir()
    with pytest.raises(StorageFailed, match=r"a\.txt could not be written"):
        write_atomically(tmp_path / "a.txt", b"")
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StorageFailed, match="nothing that was there has changed"):
        write_atomically(tmp_path / "file" / "b.txt", b"")
