"""An answer as one HTML file that needs no network."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from solvable.answers.environment import drawings, page_environment, picture, picture_address
from solvable.answers.sections import (
    Answer,
    Folded,
    Gallery,
    Heading,
    Items,
    Part,
    Picture,
    figures_of,
)
from solvable.plots.figure import Figure
from solvable.plots.files import Pictures, check_names, write_atomically
from solvable.plots.recording_backend import record
from solvable.plots.tables import Cell, Table


def write_page(
    answer: Answer, path: str | Path, *, drawn: Mapping[str, Pictures] | None = None
) -> Path:
    """Write the page in one atomic step; `drawn` has pictures of figures by name, with their files."""
    write_atomically(path, page_html(answer, drawn or {}).encode())
    return Path(path)


def page_html(answer: Answer, drawn: Mapping[str, Pictures] | None = None) -> str:
    """Return the page; every text is escaped."""
    from plotly.offline import get_plotlyjs

    figures = figures_of(answer)
    check_names(figures)
    environment = page_environment("solvable.answers")
    environment.filters |= {"tied": tied, "kind": _kind, "notes": _notes, "picture": picture}
    return environment.get_template("answer.html.jinja").render(
        answer=answer,
        index={figure.name: index for index, figure in enumerate(figures)},
        drawn={name: picture_address(made) for name, made in (drawn or {}).items()},
        generator=f"{answer.made_by} {version('solvable')}",
        drawings=drawings(figures) if figures else "",
        plotly=get_plotlyjs() if figures else "",
    )


def tied(text: str) -> str:
    """Put a no-break space between a number and its unit, and between a column name and its number."""
    return re.sub(r"(?<=') (?=\d)| (?=%)", "\N{NO-BREAK SPACE}", text)


def _notes(figure: Figure) -> list[Any]:
    return [call["text"] for call in record(figure).named("note")]


def _kind(part: Part) -> str:
    """Return the kind of a part, by which the template draws it."""
    kinds = {
        Folded: "folded",
        Items: "items",
        Heading: "heading",
        Picture: "picture",
        Gallery: "gallery",
        Table: "table",
        Figure: "figure",
    }
    if isinstance(part, str | Cell):
        return "sentence"
    return kinds[type(part)]
