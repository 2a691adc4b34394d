"""Fonts of PDF files: embedded TrueType subsets, made once for all figures."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

COMMON = "".join(map(chr, range(0x20, 0x7F))) + "±²³·×αβγδεκλμνπρστωΔΛΣ–—‘’“”…⁰¹⁴⁵⁶⁷⁸⁹⁻←→−√∞≈≤≥"
"""Characters of the shared fonts."""

_shared: dict[tuple[str, int], tuple[bytes, dict[int, int]]] = {}


@contextmanager
def shared_fonts() -> Iterator[None]:
    """Context that replaces font subsetting by shared subsets, made once per process.

    matplotlib subsets the whole font of thousands of glyphs for every file. Texts with other characters
    still use matplotlib's way.
    """
    from matplotlib.backends import _backend_pdf_ps

    fonts: Any = _backend_pdf_ps
    # versions before 3.11 use other functions: they stay slower, with equal output
    results = getattr(fonts, "SubsetResults", None)
    if results is None:
        yield
        return
    cut, as_file = fonts.get_glyphs_subset, fonts.font_as_file

    def cut_once(path: Any, glyphs: set[int]) -> AbstractContextManager[Any]:
        key = str(path), getattr(path, "face_index", 0)
        if key not in _shared:
            _shared[key] = _common_part(path)
        if set(glyphs) <= _shared[key][1].keys():
            return nullcontext(results(*_shared[key]))
        return cut(path, glyphs)

    fonts.get_glyphs_subset = cut_once
    fonts.font_as_file = lambda font: io.BytesIO(font) if isinstance(font, bytes) else as_file(font)
    try:
        yield
    finally:
        fonts.get_glyphs_subset, fonts.font_as_file = cut, as_file


def _common_part(path: Any) -> tuple[bytes, dict[int, int]]:
    """Return a font of the common characters, and the map from glyphs of the whole font."""
    from fontTools import subset
    from matplotlib.font_manager import get_font

    options = subset.Options(recommended_glyphs=True, font_number=getattr(path, "face_index", 0))
    # A PDF page positions its glyphs itself. Tables for ligatures and accents, which no viewer uses,
    # take three quarters of the time and add unused glyphs.
    options.drop_tables += ["FFTM", "GDEF", "GPOS", "GSUB"]
    whole, subsetter, stream = get_font(path), subset.Subsetter(options), io.BytesIO()
    subsetter.populate(gids={whole.get_char_index(ord(letter)) for letter in COMMON})
    with subset.load_font(path, options) as font:
        subsetter.subset(font)
        font.save(stream, reorderTables=False)
    return stream.getvalue(), dict(subsetter.glyph_index_map)
