"""The report of a study as one HTML file that needs no network."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from solvable.answers.derivations import DerivationSection, derivation_sections
from solvable.answers.environment import GENERATOR, drawings, page_environment, picture_address
from solvable.frame.claims import Verdict
from solvable.frame.references import SourcePart, source_parts
from solvable.frame.statistics import ALLOWANCE
from solvable.plots.files import Pictures, check_names, draw_all, write_atomically
from solvable.plots.recording_backend import record
from solvable.study.content import ReportContent
from solvable.study.tables import (
    format_value,
    long_metrics,
    metric_tables,
    verdict_rows,
    verdict_summary,
)


def is_report(path: str | Path) -> bool:
    """Return True if :func:`render_report` wrote the file, so that it may be replaced."""
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

    The file contains each figure twice: interactive, and as a picture for printing and for browsers
    without scripts. Every text is escaped, so a title or an error message cannot add markup or
    scripts.
    """
    path = Path(path)
    check_names(content.figures)
    write_atomically(path, _html(content, drawn or draw_all(content.figures)).encode())
    return path


def _html(content: ReportContent, drawn: Sequence[Pictures]) -> str:
    from plotly.offline import get_plotlyjs

    environment = page_environment("solvable.study")
    environment.filters["setting"] = _setting
    derivations = _derivations(content.verdicts)
    environment.globals["links"] = partial(_linked, derivations=derivations)
    verdicts = verdict_rows(content.verdicts)
    return environment.get_template("report.html.jinja").render(
        content=content,
        generator=f"{GENERATOR} {version('solvable')}",
        paragraphs=_paragraphs(content.summary),
        counts=verdict_summary(content.verdicts),
        tested=[row for row in verdicts if row.status != "not testable"],
        allowance=ALLOWANCE,
        scatter=any(ALLOWANCE in row.reason for row in verdicts if row.status != "not testable"),
        untestable=[row for row in verdicts if row.status == "not testable"],
        failed=[row for row in verdicts if row.status == "fails"],
        raised=[row for row in verdicts if row.status == "error"],
        metrics=metric_tables(content.points),
        long_metrics=long_metrics(content.points),
        derivations=derivations,
        pictures=[picture_address(made) for made in drawn],
        notes=[
            [call["text"] for call in record(figure).named("note")] for figure in content.figures
        ],
        drawings=drawings(content.figures),
        plotly=get_plotlyjs() if content.figures else "",
    )


def _linked(source: str, derivations: Sequence[DerivationSection]) -> list[tuple[str, str]]:
    """Return text and link of each part of a claim's source; the link of plain text is empty."""
    return [(part.text, _link(part, derivations)) for part in source_parts(source)]


def _link(part: SourcePart, derivations: Sequence[DerivationSection]) -> str:
    """Return the link to a paper, to an equation in the report, or to a reference."""
    if part.equations:
        label = f"derivation-{part.page}-{part.equations[0]}"
        return f"#{label}" if any(f'id="{label}"' in one.html for one in derivations) else ""
    return part.address or (f"#reference-{part.work}" if part.work else "")


def _derivations(verdicts: Sequence[Verdict]) -> list[DerivationSection]:
    """Return the sections of the derivation pages that the claims cite."""
    parts = [part for verdict in verdicts for part in source_parts(verdict.source)]
    return derivation_sections((part.page, number) for part in parts for number in part.equations)


def _paragraphs(text: str) -> list[str]:
    """Return the paragraphs of a docstring without RST markup."""
    # a role such as :math:`x`, or :class:`~a.B <target>`, becomes its text
    plain = re.sub(r":[a-z:]+:`([^`<]*?)(?:\s*<[^`>]*>)?`", r"\1", text).replace("``", "")
    return [" ".join(part.split()) for part in re.split(r"\n\s*\n", plain) if part.strip()]


def _setting(parameters: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {format_value(value)}" for name, value in parameters.items())
