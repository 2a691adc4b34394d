"""Sphinx extension: figures that carry their data are drawn again for phones and for thumbnails."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from docutils import nodes
from picture_data import read_picture
from sphinx.application import Sphinx

from solvable.plots.figure import Figure, Marker, Region, Series
from solvable.plots.files import saved, write_atomically
from solvable.plots.paper import draw_paper

WIDTH = 3.4  # inches: letters of 7 points are readable on a screen of 400 px
IMAGE = re.compile(r'<img\b[^>]*\bsrc="((?:\.\./)*_images/)([^"/]+\.svg)"[^>]*>')
THUMBNAILS = "systems/index"  # its figures are small on every screen


def figure_of(data: dict[str, Any], name: str = "figure") -> Figure | None:
    """Return the figure whose data a stored picture carries; None for a page of matplotlib axes."""
    if "series" not in data:
        return None
    kept = {key: value for key, value in data.items() if key not in {"series", "markers", "regions"}}
    return Figure(
        name=name,
        series=[Series(**{key: _numbers(value) for key, value in part.items()}) for part in data["series"]],
        markers=[Marker(**part) for part in data["markers"]],
        regions=[
            Region(**{**part, "polygons": [np.array(edge) for edge in part["polygons"]]})
            for part in data["regions"]
        ],
        **{**kept, "y_range": tuple(kept["y_range"]) if kept["y_range"] else None},
    )  # fmt: skip


def _numbers(value: Any) -> Any:
    """Return a list with NaN for the gaps, which JSON has as null."""
    return [np.nan if entry is None else entry for entry in value] if isinstance(value, list) else value


def drawn_narrow(path: Path) -> bytes | None:
    """Draw a stored picture at the width of a phone; None where it carries no series."""
    figure = figure_of(read_picture(path).data, path.stem)
    return None if figure is None else saved(draw_paper(figure, WIDTH), "svg")


def _sources(app: Sphinx) -> dict[str, Path]:
    """Stored pictures with series, by the name of their file in the built pages."""
    return {
        name: path
        for uri, name in app.builder.images.items()
        if uri.startswith("figures/") and uri.endswith(".svg")
        for path in [Path(app.srcdir) / uri]
        if '"series":[' in path.read_text("utf-8") and '{"axes":' not in path.read_text("utf-8")
    }


def offer_narrow(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Let the browser choose the narrow figure on a narrow screen."""
    if "_images/" in (body := context.get("body") or ""):
        media = "" if page == THUMBNAILS else ' media="(max-width: 40rem)"'
        context["body"] = IMAGE.sub(partial(_picture, _sources(app), media), body)


def _picture(sources: dict[str, Path], media: str, image: re.Match[str]) -> str:
    folder, name = image[1], image[2]
    if name not in sources:
        return image[0]
    return f'<picture><source srcset="{folder}narrow/{name}"{media}>{image[0]}</picture>'


def write_narrow(app: Sphinx, error: Exception | None) -> None:
    """Draw the narrow figures of the built pages whose pictures have changed."""
    if error is not None or app.builder.format != "html":
        return
    for name, path in _sources(app).items():
        place = Path(app.outdir) / "_images" / "narrow" / name
        if not place.exists() or place.stat().st_mtime < path.stat().st_mtime:
            picture = drawn_narrow(path)
            if picture is not None:
                write_atomically(place, picture)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the hooks."""
    app.connect("html-page-context", offer_narrow)
    app.connect("build-finished", write_narrow)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
