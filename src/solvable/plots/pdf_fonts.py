"""Fonts of PDF files: embedded in their outlines (no Type 3), cut once for all figures."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

COMMON = "".join(map(chr, range(0x20, 0x7F))) + "±²³·×αβγδεκλμνπρστωΔΛΣ–—‘’“”…⁰¹⁴⁵⁶⁷⁸⁹⁻←→−√∞≈≤≥"
"""Characters that the shared fonts hold."""

_shared: dict[tuple[str, int], tuple[bytes, dict[int, int]]] = {}


@contextmanager
def shared_fonts() -> Iterator[None]:
    """While a PDF is written: fonts with these characters, which are cut once in this process.

    matplotlib reads and cuts the whole font, thousands of glyphs, for every file. Texts with other
    characters take that way here too.
    """
    from matplotlib.backends import _backend_pdf_ps

    fonts: Any = _backend_pdf_ps
    # Versions before 3.11 go another way; nothing changes there but the time.
    results = getattr(fonts, "SubsetResults", None)
    if results is None:
        yield
        return
    cut, as_file = fonts.get_glyphs_subset, fonts.font_as_file

    def cut_once(path: Any, glyphs: set[int]) -> AbstractContextManager[Any]:
        from matplotlib.font_manager import get_font

        key = str(path), getattr(path, "face_index", 0)
        if key not in _shared:
            font = get_font(path)
            with cut(path, {font.get_char_index(ord(letter)) for letter in COMMON}) as found:
                _shared[key] = as_file(found.font).getvalue(), dict(found.glyph_index_map)
        if set(glyphs) <= _shared[key][1].keys():
            return nullcontext(results(*_shared[key]))
        return cut(path, glyphs)

    fonts.get_glyphs_subset = cut_once
    fonts.font_as_file = lambda font: io.BytesIO(font) if isinstance(font, bytes) else as_file(font)
    try:
        yield
    finally:
        fonts.get_glyphs_subset, fonts.font_as_file = cut, as_file
