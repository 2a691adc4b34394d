"""Fonts of PDF files: embedded whole in their outlines (no Type 3), and quickly."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

KEPT = (
    *range(0x20, 0x250),  # Latin
    *range(0x370, 0x400),  # Greek
    *range(0x2010, 0x2040),  # dashes, quotes
    *range(0x2070, 0x20A0),  # superscripts and subscripts
    *range(0x2190, 0x2300),  # arrows and mathematical operators
)
"""Characters of the smaller fonts, from which those of one file are taken."""

_smaller: dict[tuple[str, int], bytes] = {}


@contextmanager
def smaller_fonts(texts: Iterable[str]) -> Iterator[None]:
    """While texts are embedded: fonts that were cut to common characters once in this process.

    matplotlib reads and cuts the whole font, thousands of glyphs and the tables of their layout,
    for every file. Texts with other characters take that way here too.
    """
    # fontTools is matplotlib's own way to fonts; where another version goes another way, nothing
    # changes but the time.
    from fontTools import subset

    if not set("".join(texts)) <= {chr(code) for code in KEPT} | set("\n"):
        yield
        return
    load = subset.load_font

    def load_smaller(path: Any, options: Any, *arguments: Any, **named: Any) -> Any:
        key = str(path), options.font_number
        if key not in _smaller:
            _smaller[key] = _cut(load, path, options.font_number)
        return load(io.BytesIO(_smaller[key]), options, *arguments, **named)

    subset.load_font = load_smaller
    try:
        yield
    finally:
        subset.load_font = load


def _cut(load: Callable[..., Any], path: Any, number: int) -> bytes:
    """A font whose other glyphs are empty; those that are left keep their numbers."""
    from fontTools import subset

    options = subset.Options(retain_gids=True, notdef_outline=True, layout_features=[])
    options.drop_tables += ["FFTM", "GSUB", "GPOS", "GDEF", "kern"]
    options.font_number = number
    stream = io.BytesIO()
    with load(path, options) as font:
        subsetter = subset.Subsetter(options)
        subsetter.populate(unicodes=KEPT)
        subsetter.subset(font)
        font.save(stream, reorderTables=False)
    return stream.getvalue()
