"""Write files whole or not at all, and figures as SVG and PDF."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from solvable.errors import InvalidParameter, StorageFailed
from solvable.plots.figure import Figure
from solvable.plots.matplotlib_backend import draw_matplotlib, settings


def write_atomically(path: str | Path, content: bytes) -> None:
    """Write a file so that a reader sees the old content or the new, never a part."""
    path = Path(path)
    # The process id keeps two writers apart.
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with part.open("wb") as stream:
                stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise StorageFailed(
            f"{path} could not be written ({error.strerror or error}). Free space or choose a directory "
            "that can be written to; nothing that was there has changed."
        ) from error


def check_names(figures: Sequence[Figure]) -> None:
    """Raise unless the names of the figures differ and can be file names."""
    seen: set[str] = set()
    for figure in figures:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", figure.name):
            raise InvalidParameter(
                f"figure name is {figure.name!r}; allowed: letters, digits, '.', '_' and '-', beginning "
                "with a letter or digit, at most 100. Rename the figure."
            )
        # Some file systems do not tell upper case from lower.
        if figure.name.lower() in seen:
            raise InvalidParameter(
                f"two figures are named {figure.name!r}; allowed: each name once. Rename one of them."
            )
        seen.add(figure.name.lower())


def saved(drawn: Any, kind: str) -> bytes:
    """Bytes of a matplotlib figure as SVG or PDF: the same at each call, as they bear no date."""
    dates: dict[str, Any] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
    stream = io.BytesIO()
    with settings():
        drawn.savefig(
            stream,
            format=kind,
            bbox_inches="tight",
            pad_inches=0.12,
            facecolor="white",
            metadata=dates[kind],
        )
    return stream.getvalue()


def write_figures(figures: Sequence[Figure], directory: str | Path) -> list[Path]:
    """Write every figure as ``NAME.svg`` and ``NAME.pdf``.

    The files of two calls with the same figures are equal byte by byte.

    Parameters
    ----------
    figures : sequence of Figure
        Neutral descriptions with distinct names.
    directory : str or Path
        Where the files go, ``figures`` of a run directory by custom; made if it is missing. Files of the
        same names are replaced.

    Returns
    -------
    list of Path
        The files. About 0.7 seconds of CPU time a figure.

    Raises
    ------
    InvalidParameter
        If a name cannot be a file name or occurs twice, or a figure cannot be drawn.
    StorageFailed
        If a file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     [path.name for path in write_figures([Figure("f", "Title", "x", "y", [])], directory)]
    ['f.svg', 'f.pdf']
    """
    check_names(figures)
    paths = []
    for figure in figures:
        drawn = draw_matplotlib(figure)
        for kind in ("svg", "pdf"):
            path = Path(directory) / f"{figure.name}.{kind}"
            write_atomically(path, saved(drawn, kind))
            paths.append(path)
    return paths
