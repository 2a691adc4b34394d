"""Paths and texts of other origin: which can be used, which can be shown; directories written whole."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from solvable.errors import InvalidParameter, StorageFailed, quoted

LONGEST_NAME, LONGEST_PATH = 255, 4096
"""Bytes of one name and of a whole path at most, as on nearly all file systems."""


def check_path(path: str | os.PathLike[str], what: str = "the path") -> Path:
    """A path that a file system can hold; what cannot be a path raises before anything is done."""
    text = os.fspath(path)
    if not text:
        raise InvalidParameter(f"{what} is empty; allowed: the path of a file or a directory.")
    if "\0" in text:
        raise InvalidParameter(f"{what} {quoted(text)} holds a zero byte; no file has such a name.")
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


LONGEST_LINE = 200
"""Characters of the line that an exception is shown as."""

# Sequences that set colours or titles: their letters stay where only the escape character is removed.
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?)")


def error_line(error: BaseException) -> str:
    """Return the type of an exception and the first line of its message, cut at 200 characters."""
    try:
        text = str(error)
    except Exception:  # a class of the user may fail here too
        text = ""
    lines = [line.strip() for line in printable(_ESCAPES.sub("", text)).splitlines()]
    first = next(filter(None, lines), "no message")
    line = f"{type(error).__name__}: {first}"
    return line if len(line) <= LONGEST_LINE else f"{line[: LONGEST_LINE - 3]}..."


def printable(text: str) -> str:
    """Text without what a terminal or a page would obey instead of showing; line breaks stay."""
    return _OBEYED.sub("", text)


@contextmanager
def whole_directory(directory: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a new directory to write into, whose content appears at the path only when it is whole.

    The new directory stands next to a path that does not exist, and one rename puts it there. It
    stands inside a directory that exists, and its files replace those of the same name, the first
    written first; other files stay. After an error it is removed. A process that is killed leaves
    it under a hidden name that ends in ``.part``, and nothing at the path.

    Notes
    -----
    Backed by ``tests/test_paths.py``.
    """
    target = Path(directory)
    # Inside a directory that exists: it may be a mount, a link, or the working directory, which no
    # rename can replace.
    draft = (target if target.is_dir() else target.parent) / f".solvable-{uuid4().hex[:12]}.part"
    try:
        draft.mkdir(parents=True)
        yield draft
        _move(draft, target)
    except OSError as error:
        raise StorageFailed(
            f"{target} cannot be written ({error.strerror or error}). Free space, or choose a "
            "directory that can be written to."
        ) from error
    except StorageFailed as error:
        # A message about a file of the draft names the file that the user asked for.
        raise StorageFailed(str(error).replace(str(draft), str(target))) from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _move(draft: Path, target: Path) -> None:
    """Put a directory at a path, or its files into the directory that is there."""
    if not any(draft.iterdir()):
        return
    if not target.exists():
        draft.rename(target)
        return
    files = [path for path in draft.rglob("*") if path.is_file()]
    for path in sorted(files, key=lambda path: path.stat().st_mtime_ns):
        place = target / path.relative_to(draft)
        place.parent.mkdir(parents=True, exist_ok=True)
        path.replace(place)
