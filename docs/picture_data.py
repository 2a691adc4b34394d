"""Pictures that carry their data: SVG files with series, markers and labels as JSON.

A stored picture is compared with a drawing of the present program by its data, within rounding. A digest
ties the data to the drawn shapes of the same file.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape, unescape
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from solvable.plots.figure import Figure
from solvable.plots.files import write_atomically
from solvable.plots.paper import draw_paper
from solvable.plots.print_settings import settings

PAGE = 4.8
"""Width of figures of pages in inches: on 360 pixels, their smallest text is 7 pixels high."""

SHOWN = 600
"""Width in pixels at which a page shows them where it has the room."""

ROUNDING = 1e-6
"""Relative deviation of numbers that are equal; data are stored with eight digits."""

BLOCK = re.compile(r'<metadata id="figure-data" data-digest="(\w+)">(.*?)</metadata>\n', re.DOTALL)


class Picture(NamedTuple):
    """Data of a figure, and the figure: plain data, a matplotlib figure or an SVG."""

    data: dict[str, Any]
    drawn: Any
    width: float | None = None  # inches, for a figure of a paper; None for a figure of a page


class StoredPicture(NamedTuple):
    """Data of a stored picture, its SVG without the data, and whether the digest fits both."""

    data: dict[str, Any]
    svg: str
    intact: bool


def plain(value: Any) -> Any:
    """Return a value as JSON has it: lists, words, and numbers of eight digits; None for NaN."""
    if value is None or isinstance(value, str | bool | np.bool_):
        return bool(value) if isinstance(value, np.bool_) else value
    if isinstance(value, Mapping):
        return {key: plain(entry) for key, entry in value.items()}
    if isinstance(value, Sequence | np.ndarray):
        return [plain(entry) for entry in value]
    number = float(value)
    if not np.isfinite(number):
        return None
    return int(number) if number == round(number) else float(f"{number:.8g}")


def of_figure(figure: Figure) -> Picture:
    """Return the picture of a figure as plain data."""
    data = {
        name: getattr(figure, name)
        for name in ("title", "x_label", "y_label", "x_scale", "y_scale", "y_range", "caption")
    }
    parts = {name: [vars(part) for part in getattr(figure, name)] for name in
             ("series", "markers", "regions")}  # fmt: skip
    return Picture(plain({**data, **parts}), figure)


def of_matplotlib(figure: Any) -> Picture:
    """Return the picture of a matplotlib figure: titles, labels, lines and bars of its axes."""
    axes = []
    for place in figure.axes:
        lines = [
            {"label": line.get_label(), "x": line.get_xdata(), "y": line.get_ydata(),
             "style": f"{line.get_linestyle()} {line.get_marker()}"}
            for line in place.get_lines()
        ]  # fmt: skip
        bars = [vertices.get_data() for vertices in place.patches if hasattr(vertices, "get_data")]
        axes.append({
            "title": place.get_title(), "x_label": place.get_xlabel(),
            "y_label": place.get_ylabel(), "x_scale": place.get_xscale(),
            "y_scale": place.get_yscale(), "series": lines,
            "bars": [{"y": bar.values, "x": bar.edges} for bar in bars],
            "images": [image.get_array() for image in place.images],
        })  # fmt: skip
    return Picture(plain({"axes": axes}), figure)


def svg_of(picture: Picture) -> str:
    """Draw a picture as SVG, without its data."""
    drawn = picture.drawn
    if isinstance(drawn, bytes):
        return drawn.decode()
    page = drawn
    if isinstance(drawn, Figure):
        page = draw_paper(drawn, picture.width or PAGE, titled=picture.width is None)
    stream = io.StringIO()
    with settings():
        page.savefig(stream, format="svg", facecolor="white", metadata={"Date": None})
    return stream.getvalue() if picture.width else _enlarged(stream.getvalue())


def _enlarged(svg: str) -> str:
    """Show an SVG at the width of a page; its view box keeps the proportions."""
    *_, width, height = map(float, re.findall(r'viewBox="([^"]*)"', svg)[0].split())
    size = f'width="{SHOWN}" height="{SHOWN * height / width:.6g}" viewBox='
    return re.sub(r'width="[^"]*" height="[^"]*" viewBox=', size, svg, count=1)


def write_picture(path: Path, picture: Picture) -> None:
    """Write a picture as SVG with its data."""
    svg, text = svg_of(picture), json.dumps(picture.data, separators=(",", ":"), ensure_ascii=False)
    content, digest = escape(text, quote=False), _digest(svg, text)
    block = f'<metadata id="figure-data" data-digest="{digest}">{content}</metadata>\n'
    head, end, rest = svg.rpartition("</svg>")
    write_atomically(path, (head + block + end + rest).encode())


def read_picture(path: Path) -> StoredPicture:
    """Read a stored picture."""
    whole = path.read_text("utf-8")
    found = BLOCK.search(whole)
    if found is None:
        return StoredPicture({}, whole, intact=False)
    svg, text = whole.replace(found[0], ""), unescape(found[2])
    return StoredPicture(json.loads(text), svg, intact=_digest(svg, text) == found[1])


def _digest(svg: str, text: str) -> str:
    return hashlib.sha256(f"{svg}\n{text}".encode()).hexdigest()


def differences(
    stored: StoredPicture, picture: Picture, *, accuracy: float = ROUNDING, structure: bool = True
) -> list[str]:
    """Return where a stored picture differs from a new drawing by more than the accuracy.

    `structure` draws the picture too and compares the numbers of its shapes and all its texts.
    """
    found = [] if stored.intact else ["the file is not the drawing of its data"]
    found += _differing("", stored.data, picture.data, accuracy)
    if structure and not found:
        found += [
            f"{name}: {old} in the file, {new} drawn"
            for (name, old), new in zip(
                shapes(stored.svg).items(), shapes(svg_of(picture)).values(), strict=True
            )
            if old != new
        ]
    return found


def shapes(svg: str) -> dict[str, Any]:
    """Return the numbers of shapes of an SVG, and its texts, which precede their outlines as comments."""
    texts = [line.strip() for line in re.findall(r"<!-- (.*?) -->", svg)]
    return {"paths": svg.count("<path"), "symbols": svg.count("<use"), "texts": texts}


def _differing(place: str, old: Any, new: Any, accuracy: float) -> Iterator[str]:
    if isinstance(old, dict) and isinstance(new, dict):
        for name in {**old, **new}:
            if name not in old or name not in new:
                yield f"{place}{name}: only in the {'file' if name in old else 'new drawing'}"
            else:
                yield from _differing(f"{place}{name} ", old[name], new[name], accuracy)
    elif isinstance(old, list) and isinstance(new, list):
        if len(old) != len(new):
            yield f"{place}has {len(old)} entries in the file, {len(new)} drawn"
        elif all(_is_number(entry) for entry in (*old, *new)):
            a, b = (np.array(values, dtype=float) for values in (old, new))
            # A line near zero is as accurate as its largest value allows.
            span = np.nanmax(np.abs(a), initial=0.0, where=np.isfinite(a))
            if not np.allclose(a, b, rtol=accuracy, atol=1e-3 * accuracy * span, equal_nan=True):
                change = np.abs(a - b)
                change[np.isnan(a) != np.isnan(b)] = np.inf
                yield f"{place}differs by up to {np.nanmax(change):.3g}"
        else:
            for number, (one, other) in enumerate(zip(old, new, strict=True)):
                yield from _differing(f"{place}{number} ", one, other, accuracy)
    elif _is_number(old) and _is_number(new):
        yield from _differing(place, [old], [new], accuracy)
    elif old != new:
        yield f"{place}is {str(old)[:60]!r} in the file, {str(new)[:60]!r} drawn"


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))
