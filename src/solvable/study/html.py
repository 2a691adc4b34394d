"""The report of a study as one HTML file that needs no network."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from solvable.paths import printable
from solvable.plots.figure import Figure
from solvable.plots.files import Pictures, check_names, draw_all, pictures, write_atomically
from solvable.plots.plotly_backend import draw_plotly
from solvable.plots.recording_backend import record
from solvable.study.content import ReportContent
from solvable.study.tables import (
    format_value,
    long_metrics,
    metric_tables,
    verdict_rows,
    verdict_summary,
)

if TYPE_CHECKING:
    from jinja2 import Environment

GENERATOR = "solvable report"
"""What the ``generator`` of a report begins with; :func:`is_report` looks for it."""


def is_report(path: str | Path) -> bool:
    """Whether a file is a report that :func:`render_report` wrote, so that it may be replaced.

    Parameters
    ----------
    path : str or Path
        File to look at; only its beginning is read.

    Returns
    -------
    bool
        False also for what is missing, is no file, or cannot be read.

    Examples
    --------
    >>> is_report("no-such-file.html")
    False
    """
    mark = f'<meta name="generator" content="{GENERATOR}'.encode()
    try:
        with Path(path).open("rb") as stream:
            return mark in stream.read(2048)
    except OSError:
        return False


def render_report(
    content: ReportContent, path: str | Path, *, drawn: Sequence[Pictures] | None = None
) -> Path:
    """Write the report of a study as one self-contained HTML file.

    The file holds the figures twice, interactive and as pictures: the pictures stand in where
    scripts are switched off, and are what is printed. Every text is taken literally, so a title or
    an error message cannot bring in markup or scripts.

    Parameters
    ----------
    content : ReportContent
        What the report says; :func:`solvable.study.report_content` gathers it.
    path : str or Path
        File to write; an existing one is replaced in one step. Ask :func:`is_report` first if it may
        be another's.
    drawn : sequence of Pictures, optional
        The figures as :func:`solvable.plots.files.draw_all` made them already.

    Returns
    -------
    Path
        The file: 4.8 MB of plotly.js and about 0.1 MB a figure. The same content gives the same
        bytes. About one second of CPU time and 0.3 a figure.

    Raises
    ------
    InvalidParameter
        If a figure cannot be drawn, or its name cannot be a file name or occurs twice.
    StorageFailed
        If the file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from solvable.study.content import ReportContent
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     written = render_report(ReportContent("Title", "system"), Path(directory) / "report.html")
    ...     is_report(written)
    True
    """
    path = Path(path)
    check_names(content.figures)
    write_atomically(path, _html(content, drawn or draw_all(content.figures)).encode())
    return path


def page_environment(package: str) -> Environment:
    """Templates of ``package`` first, then those of ``solvable.study``; everything is escaped."""
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    packages = dict.fromkeys((package, "solvable.study"))
    return Environment(
        loader=ChoiceLoader([PackageLoader(name) for name in packages]),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _shown(value: Any) -> Any:
    """Texts of the user without control characters; markup of ours as it is."""
    return printable(value) if type(value) is str else value


def _html(content: ReportContent, drawn: Sequence[Pictures]) -> str:
    from plotly.offline import get_plotlyjs

    environment = page_environment("solvable.study")
    environment.filters["setting"] = _setting
    verdicts = verdict_rows(content.verdicts)
    return environment.get_template("report.html.jinja").render(
        content=content,
        generator=f"{GENERATOR} {version('solvable')}",
        paragraphs=_paragraphs(content.summary),
        counts=verdict_summary(content.verdicts),
        tested=[row for row in verdicts if row.status != "not testable"],
        untestable=[row for row in verdicts if row.status == "not testable"],
        failed=[row for row in verdicts if row.status == "fails"],
        raised=[row for row in verdicts if row.status == "error"],
        metrics=metric_tables(content.points),
        long_metrics=long_metrics(content.points),
        pictures=[_address(made) for made in drawn],
        notes=[
            [call["text"] for call in record(figure).named("note")] for figure in content.figures
        ],
        drawings=drawings(content.figures),
        plotly=get_plotlyjs() if content.figures else "",
    )


def _paragraphs(text: str) -> list[str]:
    """Paragraphs of a docstring without the marks that a reader of plain text stumbles over."""
    # A role such as :math:`x`, or :class:`~a.B <target>`, is its text.
    plain = re.sub(r":[a-z:]+:`([^`<]*?)(?:\s*<[^`>]*>)?`", r"\1", text).replace("``", "")
    return [" ".join(part.split()) for part in re.split(r"\n\s*\n", plain) if part.strip()]


def _setting(parameters: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {format_value(value)}" for name, value in parameters.items())


def drawings(figures: Sequence[Figure]) -> str:
    """Plotly's traces and layouts as JSON that can stand inside a script element."""
    drawn: list[Any] = [
        json.loads(draw_plotly(figure, texts=False).to_json()) for figure in figures
    ]
    text = json.dumps(drawn, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def picture(figure: Figure) -> str:
    """Address of a picture of the figure that holds the picture itself."""
    return _address(pictures(figure))


def _address(made: Pictures) -> str:
    return f"data:image/svg+xml;base64,{b64encode(made.inline).decode()}"
