"""Checks of paths and texts from users, and atomic writing of directories."""

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
"""Largest number of bytes of a name and of a path, as on nearly all file systems."""


def check_path(path: str | os.PathLike[str], what: str = "the path") -> Path:
    """Return a valid path; raise for a text that cannot be a path."""
    text = os.fspath(path)
    if not text:
        raise InvalidParameter(f"{what} is empty; allowed: the path of a file or a directory.")
    if "\0" in text:
        raise InvalidParameter(
            f"{what} {quoted(text)} contains a zero byte, which no file name may contain."
        )
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
    # control characters except tab and line feed; marks that change the text direction;
    # lone surrogates, which no file can contain
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


LONGEST_LINE = 200
"""Largest number of characters of the line that shows an exception."""

# escape sequences for colours and titles, removed as a whole
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?)")


def error_line(error: BaseException) -> str:
    """Return the type of an exception and the first line of its message, cut at 200 characters."""
    try:
        text = str(error)
    except Exception:  # the class of a user's exception may raise here
        text = ""
    lines = [line.strip() for line in printable(_ESCAPES.sub("", text)).splitlines()]
    first = next(filter(None, lines), "no message")
    line = f"{type(error).__name__}: {first}"
    return line if len(line) <= LONGEST_LINE else f"{line[: LONGEST_LINE - 3]}..."


def printable(text: str) -> str:
    """Remove characters that a terminal or page would interpret; line breaks stay."""
    return _OBEYED.sub("", text)


@contextmanager
def whole_directory(directory: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a draft directory whose content appears at the path only when it is complete.

    For a new path, the draft stands next to the path, and one rename moves it there. For an existing
    directory, the draft stands inside, and its files replace those of equal names, in the order of
    writing; other files stay. After an error the draft is removed. A killed process leaves the draft
    under a hidden name that ends in ``.part``.

    Notes
    -----
    Backed by ``tests/test_paths.py``.
    """
    target = Path(directory)
    # inside an existing directory, which may be a mount, a link or the working directory, so
    # that a rename cannot replace it
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
        # replace the name of the draft in messages
        raise StorageFailed(str(error).replace(str(draft), str(target))) from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _move(draft: Path, target: Path) -> None:
    """Move a directory to a path, or its files into an existing directory."""
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
