"""Atomic writing of files, and figures as SVG and PDF."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from solvable.errors import InvalidParameter, StorageFailed
from solvable.paths import error_line
from solvable.plots.figure import Figure
from solvable.plots.matplotlib_backend import CAPTION, draw_matplotlib
from solvable.plots.pdf_fonts import shared_fonts
from solvable.plots.print_settings import settings


def write_atomically(path: str | Path, content: bytes) -> None:
    """Write a file atomically: a reader sees the old content or the new one."""
    path = Path(path)
    # the process id separates two writers
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
            "that can be written to; existing files are unchanged."
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
        # some file systems ignore case
        if figure.name.lower() in seen:
            raise InvalidParameter(
                f"two figures are named {figure.name!r}; allowed: each name once. Rename one of them."
            )
        seen.add(figure.name.lower())


def saved(drawn: Any, kind: str) -> bytes:
    """Return a matplotlib figure as SVG or PDF, without a date, so that bytes are reproducible."""
    with settings():
        bounds = None if getattr(drawn, "exact", False) else _bounds(drawn)[0]
        return _saved(drawn, kind, bounds)


def _saved(drawn: Any, kind: str, bounds: Any) -> bytes:
    dates: dict[str, Any] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
    stream = io.BytesIO()
    with shared_fonts():
        drawn.savefig(
            stream, format=kind, bbox_inches=bounds, facecolor="white", metadata=dates[kind]
        )
    return stream.getvalue()


def _bounds(drawn: Any, captions: Sequence[Any] = ()) -> tuple[Any, Any]:
    """Return the bounding boxes of everything, and of everything but the captions, with a margin."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.transforms import Bbox

    # computed once for all files: `bbox_inches="tight"` would draw the figure again for each
    renderer = FigureCanvasAgg(drawn).get_renderer()
    for caption in captions:
        caption.set_in_layout(False)
    part = drawn.get_tightbbox(renderer)
    inches = drawn.dpi_scale_trans.inverted()
    boxes = [caption.get_window_extent(renderer).transformed(inches) for caption in captions]
    return Bbox.union([part, *boxes]).padded(0.12), part.padded(0.12)


class Pictures(NamedTuple):
    """A drawn figure: SVG and PDF, and an SVG without title and remarks for use in a page."""

    svg: bytes
    pdf: bytes
    inline: bytes


def pictures(figure: Figure) -> Pictures:
    """Draw a figure once for all uses."""
    drawn = draw_matplotlib(figure)
    captions = [text for axes in drawn.axes for text in axes.texts if text.get_gid() == CAPTION]
    with settings():
        whole, part = _bounds(drawn, captions)
        svg, pdf = (_saved(drawn, kind, whole) for kind in ("svg", "pdf"))
    # The view box excludes the captions, which are hidden but kept, because other texts may use
    # their glyphs. SVG counts points from the upper left corner.
    place = part.x0 - whole.x0, whole.y1 - part.y1, part.width, part.height
    x, y, width, height = (f"{72 * value:.6g}" for value in place)
    text = svg.decode().replace(f'<g id="{CAPTION}"', '<g display="none"')
    view = f'width="{width}pt" height="{height}pt" viewBox="{x} {y} {width} {height}"'
    text = re.sub(r'width="[^"]*" height="[^"]*" viewBox="[^"]*"', view, text, count=1)
    return Pictures(svg, pdf, text.encode())


def draw_all(figures: Sequence[Figure], workers: int = 1) -> list[Pictures]:
    """Draw figures in parallel processes."""
    return _each(pictures, figures, workers)


def try_all(figures: Sequence[Figure], workers: int = 1) -> list[Pictures | str]:
    """Draw figures in parallel processes; a figure that raises is replaced by the error line."""
    return _each(_tried, figures, workers)


def _tried(figure: Figure) -> Pictures | str:
    try:
        return pictures(figure)
    except Exception as error:  # an error of matplotlib, such as for a formula in a label
        return error_line(error)


def _each(draw: Callable[[Figure], Any], figures: Sequence[Figure], workers: int) -> list[Any]:
    if workers == 1 or len(figures) < 2:
        return [draw(figure) for figure in figures]
    import joblib

    with joblib.parallel_config(backend="loky", n_jobs=workers, inner_max_num_threads=1):
        # With `max_nbytes` as in `study.dispatch`, joblib reuses the processes that have just run a
        # study.
        jobs = (joblib.delayed(draw)(figure) for figure in figures)
        return list(joblib.Parallel(max_nbytes=None)(jobs))


def write_figures(
    figures: Sequence[Figure], directory: str | Path, *, drawn: Sequence[Pictures] | None = None
) -> list[Path]:
    """Write every figure as ``NAME.svg`` and ``NAME.pdf``.

    The files of two calls with the same figures are equal byte by byte.

    Parameters
    ----------
    figures : sequence of Figure
        Figures with distinct names.
    directory : str or Path
        Directory of the files, by convention ``figures`` of a run directory; created if missing. Files
        with the same names are replaced.
    drawn : sequence of Pictures, optional
        Results of :func:`draw_all`, if the figures are already drawn.

    Returns
    -------
    list of Path
        The files. Drawing takes about 0.4 seconds of CPU time per figure.

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
    for figure, made in zip(figures, drawn or draw_all(figures), strict=True):
        for kind, content in (("svg", made.svg), ("pdf", made.pdf)):
            path = Path(directory) / f"{figure.name}.{kind}"
            write_atomically(path, content)
            paths.append(path)
    return paths
