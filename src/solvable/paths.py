"""Checks of paths and texts from users, and atomic writing of directories."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PureWindowsPath
from uuid import uuid4

from solvable.errors import InvalidData, InvalidParameter, StorageFailed, quoted

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


def place_inside(folder: Path, name: str) -> Path:
    """Return the place of a relative name in a folder; raise if it is outside, also by a link."""
    # Absolute names, drives and ".." are refused in the writing of both systems.
    parts = name.replace("\\", "/").split("/")
    drive = PureWindowsPath(name).drive
    place = folder / name
    try:
        whole, root = place.resolve(), folder.resolve()
    except (OSError, ValueError, RuntimeError) as error:  # a zero byte, a circle of links
        raise InvalidData(
            f"{name[:80]!r} is no place in {folder} ({error_line(error)})."
        ) from error
    allowed = [root]
    if root.parent.name == "snapshots":
        # The cache of a model hub holds links from snapshots/REVISION to blobs next to it.
        allowed.append(root.parent.parent / "blobs")
    lexical = bool(name) and not drive and parts[0] != "" and ".." not in parts
    if not lexical or not any(one in (whole, *whole.parents) for one in allowed):
        linked = f" (a link to {printable(str(whole))[:200]})" if lexical else ""
        raise InvalidData(
            f"{printable(name)[:80]!r}{linked} is outside the folder {folder}; allowed: files in it. "
            "Copy the file there if you trust it."
        )
    return place


@contextmanager
def whole_directory(directory: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a draft directory whose content appears at the path only when it is complete.

    For a new path, the draft stands next to the path, and one rename moves it there. For an existing
    directory, the draft stands inside, and its files replace those of equal names, in the order of
    writing; other files stay. After an error the draft is removed. A killed process leaves the draft
    under a hidden name, with the target, process and host; the next writer in the same place removes it.

    Notes
    -----
    Backed by ``tests/test_paths.py``.
    """
    target = Path(directory)
    # inside an existing directory, which may be a mount, a link or the working directory, so
    # that a rename cannot replace it
    parent = target if target.is_dir() else target.parent
    _remove_orphans(parent)
    draft = parent / _draft_name(target)
    _open_drafts.add(draft.name)
    try:
        draft.mkdir(parents=True)
        yield draft
        _move(draft, target)
    except OSError as error:
        if isinstance(error.filename, str) and not _is_below(Path(error.filename), draft.parent):
            raise  # another file, which was read meanwhile
        raise StorageFailed(
            f"{target} cannot be written ({error.strerror or error}). Free space, or choose a "
            "directory that can be written to."
        ) from error
    except InvalidData as error:  # a link in the target leads outside
        raise StorageFailed(f"{target} cannot be written: {error}") from error
    except StorageFailed as error:
        # replace the name of the draft in messages
        raise StorageFailed(str(error).replace(str(draft), str(target))) from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)
        _open_drafts.discard(draft.name)


_open_drafts: set[str] = set()  # names of the drafts of this process

_DRAFT = re.compile(r"\.solvable-[0-9a-f]{12}-([0-9]+)-[0-9a-f]{8}-(.+)\.part")


def _host() -> str:
    from platform import node

    return re.sub(r"[^A-Za-z0-9.-]", "", node())[:60] or "host"


def _draft_name(target: Path) -> str:
    """Return the hidden name of a draft: its target, and the process and the host that own it."""
    from hashlib import sha256

    request = sha256(str(target.absolute()).encode("utf-8", "surrogatepass")).hexdigest()
    return f".solvable-{request[:12]}-{os.getpid()}-{uuid4().hex[:8]}-{_host()}.part"


def _remove_orphans(folder: Path) -> None:
    """Remove drafts in a folder whose process on this host has ended, such as by `kill -9`."""
    with suppress(OSError):
        for path in folder.glob(".solvable-*.part"):
            found = _DRAFT.fullmatch(path.name)
            if found is None or found[2] != _host() or path.name in _open_drafts:
                continue
            if int(found[1]) == os.getpid() or not _is_running(int(found[1])):
                shutil.rmtree(path, ignore_errors=True)


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True  # a process of another user
    return True


def _is_below(path: Path, folder: Path) -> bool:
    whole = path.absolute()
    return folder.absolute() in (whole, *whole.parents)


def _move(draft: Path, target: Path) -> None:
    """Move a directory to a path, or its files into an existing directory."""
    if not any(draft.iterdir()):
        return
    if not target.exists():
        draft.rename(target)
        return
    files = [path for path in draft.rglob("*") if path.is_file()]
    for path in sorted(files, key=lambda path: path.stat().st_mtime_ns):
        name = path.relative_to(draft)
        place = place_inside(target, name.parent.as_posix()) / name.name
        place.parent.mkdir(parents=True, exist_ok=True)
        path.replace(place)
