"""An answer as one HTML file that needs no network."""

from __future__ import annotations

import re
from importlib.metadata import version
from pathlib import Path
from typing import Any

from solvable.answers.sections import (
    Answer,
    Folded,
    Heading,
    Items,
    Part,
    Picture,
    figures_of,
)
from solvable.pages.environment import GENERATOR, drawings, page_environment, picture
from solvable.plots.figure import Figure
from solvable.plots.files import check_names, write_atomically
from solvable.plots.recording_backend import record
from solvable.plots.tables import Cell, Table


def write_page(answer: Answer, path: str | Path) -> Path:
    """Write the page in one atomic step."""
    write_atomically(path, page_html(answer).encode())
    return Path(path)


def page_html(answer: Answer) -> str:
    """Return the page; every text is escaped."""
    from plotly.offline import get_plotlyjs

    figures = figures_of(answer)
    check_names(figures)
    environment = page_environment("solvable.answers")
    environment.filters |= {"tied": tied, "kind": _kind, "notes": _notes, "picture": picture}
    return environment.get_template("answer.html.jinja").render(
        answer=answer,
        index={figure.name: index for index, figure in enumerate(figures)},
        generator=f"{GENERATOR} {version('solvable')}",
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
        Table: "table",
        Figure: "figure",
    }
    if isinstance(part, str | Cell):
        return "sentence"
    return kinds[type(part)]
