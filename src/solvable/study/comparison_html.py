"""The report of a comparison as one HTML file that needs no network."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from solvable.pages.environment import drawings, page_environment, picture_address
from solvable.plots.figure import Figure
from solvable.plots.files import Pictures, write_atomically
from solvable.plots.numbers import format_number
from solvable.plots.recording_backend import record
from solvable.study.compare import Comparison, line, settings_of
from solvable.study.differences import Difference
from solvable.study.tables import format_value, verdict_rows

GENERATOR = "solvable comparison"
"""Beginning of the ``generator`` entry; it differs from that of a run, which never replaces it."""

MOST_ROWS = 300
"""Largest number of differences in the report; all are in the CSV file."""


class Row(NamedTuple):
    """A difference as text."""

    run: str
    setting: str
    metric: str
    difference: str
    interval: str
    replicates: int
    pairing: str


def render_comparison(
    found: Comparison,
    path: Path,
    figures: Sequence[Figure],
    drawn: Sequence[Pictures],
    notes: Sequence[str] = (),
) -> Path:
    """Write the report of a comparison; every text is escaped."""
    write_atomically(path, _html(found, figures, drawn, notes).encode())
    return path


def _html(
    found: Comparison,
    figures: Sequence[Figure],
    drawn: Sequence[Pictures],
    notes: Sequence[str],
) -> str:
    from plotly.offline import get_plotlyjs

    verdicts = [{row.claim: row for row in verdict_rows(run.verdicts)} for run in found.results]
    statements = {row.claim: row.statement for run in verdicts for row in run.values()}
    marked = [row for row in found.differences if row.differs]
    others = [row for row in found.differences if not row.differs]
    own = [settings_of(run) for run in found.results]
    names = list(dict.fromkeys(name for one in own for name in one))
    shown = [
        (name, [one.get(name, f"{name}=default").removeprefix(f"{name}=") for one in own])
        for name in names
    ]
    return (
        page_environment("solvable.study")
        .get_template("comparison.html.jinja")
        .render(
            generator=f"{GENERATOR} {version('solvable')}",
            title="Comparison of "
            + ", ".join(dict.fromkeys(r.system.title for r in found.results)),
            line=line(found),
            found=found,
            runs=list(zip(found.labels, found.results, strict=True)),
            claims=[
                (name, statements[name], [run.get(name) for run in verdicts])
                for name in found.claims
            ],
            settings=sorted(shown, key=lambda row: len(set(row[1])) == 1),
            marked=_rows(marked[:MOST_ROWS]),
            others=_rows(others[:MOST_ROWS]),
            counts=(len(marked), len(others)),
            figures=figures,
            notes=notes,
            remarks=[[call["text"] for call in record(one).named("note")] for one in figures],
            pictures=[picture_address(made) for made in drawn],
            drawings=drawings(figures),
            plotly=get_plotlyjs() if figures else "",
        )
    )


def _rows(differences: Sequence[Difference]) -> list[Row]:
    def number(value: Any) -> str:
        return format_number(value, 3)

    return [
        Row(
            row.run,
            ", ".join(f"{name} = {format_value(value)}" for name, value in row.parameters.items()),
            row.metric,
            number(row.difference),
            f"{number(row.low)} to {number(row.high)}",
            row.replicates,
            row.pairing,
        )
        for row in differences
    ]
