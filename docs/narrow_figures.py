"""Sphinx extension: figures for phones and thumbnails.

Figures that carry their data are drawn again at the width of a phone. A screenshot NAME.png has a
narrow one next to it, NAME-narrow.png.
"""

from __future__ import annotations

import re
from functools import cache, partial
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
IMAGE = re.compile(r'<img\b[^>]*\bsrc="((?:\.\./)*_images/)([^"/]+\.(?:svg|png))"[^>]*>')
THUMBNAILS = "systems/index"  # its figures are small on every screen


def figure_of(data: dict[str, Any], name: str = "figure") -> Figure | None:
    """Return the figure whose data a stored picture carries; None for a page of matplotlib axes."""
    if "series" not in data:
        return None
    kept = {
        key: value for key, value in data.items() if key not in {"series", "markers", "regions"}
    }
    return Figure(
        name=name,
        series=[
            Series(**{key: _numbers(value) for key, value in part.items()})
            for part in data["series"]
        ],
        markers=[Marker(**part) for part in data["markers"]],
        regions=[
            Region(**{**part, "polygons": [np.array(edge) for edge in part["polygons"]]})
            for part in data["regions"]
        ],
        **{**kept, "y_range": tuple(kept["y_range"]) if kept["y_range"] else None},
    )  # fmt: skip


def _numbers(value: Any) -> Any:
    """Return a list with NaN for the gaps, which JSON has as null."""
    return (
        [np.nan if entry is None else entry for entry in value]
        if isinstance(value, list)
        else value
    )


def narrow(path: Path) -> bytes | None:
    """Return the narrow version of a picture; None where there is none."""
    if path.suffix == ".png":
        return path.with_stem(f"{path.stem}-narrow").read_bytes()
    figure = figure_of(read_picture(path).data, path.stem)
    return None if figure is None else saved(draw_paper(figure, WIDTH), "svg")


@cache
def _has_narrow(path: Path) -> bool:
    if path.suffix == ".png":
        return path.with_stem(f"{path.stem}-narrow").exists()
    return path.suffix == ".svg" and "series" in read_picture(path).data


def _sources(app: Sphinx) -> dict[str, Path]:
    """Pictures with a narrow version, by the name of their file in the built pages."""
    paths = {name: Path(app.srcdir) / uri for uri, name in app.builder.images.items()}
    return {
        name: path
        for name, path in paths.items()
        if path.parent.name == "figures" and _has_narrow(path)
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
            picture = narrow(path)
            if picture is not None:
                write_atomically(place, picture)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the hooks."""
    app.connect("html-page-context", offer_narrow)
    app.connect("build-finished", write_narrow)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
