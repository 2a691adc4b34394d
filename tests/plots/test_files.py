from __future__ import annotations

import io
import os
import re
import stat
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest
from fontTools.ttLib import TTFont
from matplotlib import get_data_path

from solvable.errors import InvalidParameter, StorageFailed
from solvable.plots.files import draw_all, pictures, write_atomically, write_figures
from solvable.plots.matplotlib_backend import CAPTION
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
            # The SVG loads nothing; glyphs are paths, so no installed font is needed.
            assert b"<image" not in content
            assert b"font-family" not in content
        else:
            assert content.startswith(b"%PDF-")
            assert content.rstrip().endswith(b"%%EOF")
            # Journals refuse Type 3 fonts.
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
    # Figures drawn earlier in the process must not change the bytes.
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
    with pytest.raises(StorageFailed, match="existing files are unchanged"):
        write_atomically(tmp_path / "file" / "b.txt", b"")


def outlines(pdf: bytes) -> dict[str, set[bytes]]:
    """Return the glyphs that the fonts of a PDF contain, by name of the font."""
    found: dict[str, set[bytes]] = {}
    for head, body in re.findall(rb"<<(.*?)>>\s*stream\r?\n(.*?)\r?\nendstream", pdf, re.DOTALL):
        if b"/Length1" in head:
            font = TTFont(io.BytesIO(zlib.decompress(body)))
            name = str(font["name"].getDebugName(4))
            found[name] = found.get(name, set()) | set(glyphs(font, font.getGlyphOrder()))
    return found


def glyphs(font: TTFont, names: list[str]) -> list[bytes]:
    """Return the outlines of the named glyphs, without blank ones."""
    table = font["glyf"]
    chosen = [table[name] for name in names]
    return [bytes(glyph.compile(table)) for glyph in chosen if glyph.numberOfContours > 0]


# The Cyrillic letter of the second text is not in the subset of common letters.
@pytest.mark.parametrize("text", ["λ → ∞ at n/d²", "Ж of γ"])
def test_fonts_of_a_pdf_hold_the_outlines_of_its_texts(text: str) -> None:
    """Glyphs in a PDF equal those of the font file, from the cached subset or from the whole font."""
    drawn = pictures(Figure("f", "Title", text, "y", [Series("a", [1, 2], [1, 2])]))
    held = outlines(drawn.pdf)["DejaVu Sans"]
    font = TTFont(get_data_path() + "/fonts/ttf/DejaVuSans.ttf")
    simple = [font.getBestCmap()[ord(letter)] for letter in text if letter != " "]
    assert set(glyphs(font, simple)) <= held


def test_a_picture_inside_a_page_leaves_out_what_the_page_says() -> None:
    """The inline picture is the same drawing in a smaller view box, without title and remarks."""
    figure = Figure("f", "A title", "x", "y", [Series("a", [0.0, 1], [0.0, 1])], y_scale="log")
    drawn = pictures(figure)
    whole, part = ElementTree.fromstring(drawn.svg), ElementTree.fromstring(drawn.inline)
    x, y, width, height = (float(word) for word in part.attrib["viewBox"].split())
    assert x >= -0.01
    assert y > 5
    assert 250 < height < float(whole.attrib["height"].removesuffix("pt")) - y
    assert width <= float(whole.attrib["width"].removesuffix("pt"))
    hidden = drawn.inline.count(b'<g display="none"')
    assert hidden == drawn.svg.count(f'<g id="{CAPTION}"'.encode()) >= 2
    assert b"A title" in drawn.svg  # the title is in an XML comment


def test_figures_drawn_in_processes_are_the_same(overlap_figure: Callable[..., Figure]) -> None:
    figures = [overlap_figure(2), overlap_figure(4)]
    assert draw_all(figures, 2) == draw_all(figures)
