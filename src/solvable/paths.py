"""Paths and texts of other origin: which paths can be used, and what of a text can be shown."""

from __future__ import annotations

import os
import re
from pathlib import Path

from solvable.errors import InvalidParameter

LONGEST_NAME, LONGEST_PATH = 255, 4096
"""Bytes of one name and of a whole path at most, as on nearly all file systems."""


def check_path(path: str | os.PathLike[str], what: str = "the path") -> Path:
    """A path that a file system can hold; what cannot be a path raises before anything is done."""
    text = os.fspath(path)
    if not text:
        raise InvalidParameter(f"{what} is empty; allowed: the path of a file or a directory.")
    if "\0" in text:
        raise InvalidParameter(f"{what} {text!r} holds a zero byte; no file has such a name.")
    whole = _bytes(text)
    longest = max(_bytes(part) for part in Path(text).parts or (text,))
    if longest > LONGEST_NAME or whole > LONGEST_PATH:
        seen, most = (
            (f"a name of {longest}", f"names up to {LONGEST_NAME}")
            if longest > LONGEST_NAME
            else (f"{whole}", f"paths up to {LONGEST_PATH}")
        )
        raise InvalidParameter(
            f"{what} begins with {text[:40]!r} and has {seen} bytes; allowed: {most} bytes. "
            "Choose a shorter one."
        )
    return Path(path)


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


_OBEYED = re.compile(
    # C0 but for tab and line feed, DEL and C1; the marks that turn the direction of what follows;
    # halves of characters, which no file can hold.
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


def printable(text: str) -> str:
    """Text without what a terminal or a page would obey instead of showing; line breaks stay."""
    return _OBEYED.sub("", text)
