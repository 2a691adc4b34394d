"""Display of a file's diagnoses in a terminal, in a notebook, and as a data frame."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from solvable.answers.sections import (
    Answer,
    Folded,
    Gallery,
    Items,
    Part,
    Picture,
    Section,
    listed_parts,
    terminal_parts,
)
from solvable.answers.small_pictures import small_picture
from solvable.diagnose import words
from solvable.diagnose.attention import words as attention
from solvable.diagnose.attention.words import head_table
from solvable.diagnose.diagnosed import Diagnosed
from solvable.diagnose.diagnosis import Estimate, MatrixDiagnosis
from solvable.diagnose.figures import depth_figures, head_figure, overview, spectrum_figure
from solvable.diagnose.outliers import dead_rows, outlier_text
from solvable.diagnose.tables import columns_of, matrix_table, size_text
from solvable.diagnose.tables import parts as value_and_interval
from solvable.plots import tables as tables_of_plots
from solvable.plots.figure import Figure
from solvable.plots.numbers import MISSING
from solvable.plots.palette import style
from solvable.plots.tables import Cell, Table, window
from solvable.plots.words import counted

KEY = [
    ("density of the values", "#04448a"),
    ("fitted law", "#c12b0f"),
    ("learned features", "#2ea77d"),
    ("edge of the noise", "#6b6b6b"),
]
"""Colours of the pictures of spectra."""


def line(found: Diagnosed) -> str:
    """File name and main result."""
    return f"{found.name}: {words.answer(found)} Read: {words.subject(found)}."


def tables(found: Diagnosed) -> list[Table]:
    """Two tables: one row per matrix, and one row per attention head or layer."""
    shown = [matrix_table(found)[0]] if found.matrices else []
    return [*shown, head_table(found.heads)] if found.heads else shown


def rows(found: Diagnosed) -> list[dict[str, Any]]:
    """Records for a data frame, one per matrix; each estimate with the ends of its interval."""
    return [_row(row) | {"needed_rank": found.needed_rank(row)} for row in found.matrices]


def _row(row: MatrixDiagnosis) -> dict[str, Any]:
    estimates = {
        "noise": row.noise,
        "shrinkage": row.shrinkage,
        "strongest": row.features[0].strength if row.features else None,
        "tail_exponent": row.exponent.spectrum if row.exponent else None,
    }
    numbers: dict[str, float | None] = {}
    for name, estimate in estimates.items():
        numbers |= _ends(name, estimate)
    compared = row.initial
    difference = None if compared is None else compared.difference
    return {
        "matrix": row.name,
        "shape": "x".join(map(str, row.shape)),
        "stable_rank": row.stable_rank,
        "directions_at_least": row.directions,
        "change": None if compared is None else compared.relative_change,
        "rank_of_change": None if compared is None else compared.rank,
        "new_directions_at_least": None if difference is None else difference.directions,
        "outliers": "; ".join(map(outlier_text, row.outliers)),
        "dead_rows": dead_rows(row.outliers),
        "norm": row.norm,
        "largest": row.largest,
        "phase": row.phase,
        "phase_p_value": row.phase_p_value,
        "features": len(row.features) if row.fitted else None,
        **numbers,
        "reason": row.reason,
    }


def _ends(name: str, estimate: Estimate | None) -> dict[str, float | None]:
    ends = (None,) * 3 if estimate is None else (estimate.value, estimate.low, estimate.high)
    return dict(zip((name, f"{name}_lower", f"{name}_upper"), ends, strict=True))


def figures(found: Diagnosed) -> Iterator[Figure]:
    """Yield figures against depth, and one with its name for each fitted matrix and head."""
    yield from depth_figures(found)
    for row in found.fitted:
        yield replace(spectrum_figure(row), name=row.name)
    for head in found.heads:
        if head.fitted:
            yield head_figure(head)


def diagnosis_text(
    found: Diagnosed, files: Mapping[str, str], stream: Any, *, details: bool = False
) -> list[str | Cell | Table]:
    """Return the answer, tables and sentences, fitted to the terminal's width, and the files written."""
    width = window(stream)
    parts: list[Part] = []
    if any(row.norm is not None for row in found.matrices):
        table, dropped = matrix_table(found, width, details=details)
        parts = [table, *(Cell(row, "dim") for row in words.legend(found, details=details))]
        if dropped:
            out = f"Not shown in a terminal of this width: {', '.join(dropped)}."
            parts.append(Cell(out, "dim"))
    shown = terminal_parts(_answer(found, parts), details=details)
    if width is None:
        shown = [part.to_text() if isinstance(part, Table) else part for part in shown]
    return [*shown, "", *(f"{name:<8} {path}" for name, path in files.items())]


def page(found: Diagnosed, command: str) -> Answer:
    """Return the answer for a page, with every matrix, head and spectrum."""
    legend = [
        Cell(f"{row} A click on a heading sorts by it.", "hint") for row in words.legend(found)
    ]
    parts: list[Part] = [_page_table(found), Folded("columns", legend)]
    if found.vectors:
        number = counted(len(found.vectors), "vector")
        none = f"{number} (biases, normalisations) have no spectrum and are not listed."
        parts.append(Cell(none, "hint"))
    cards = [(len(rows), phase.name, rows) for phase, rows in words.counts(found)]
    if found.refused and not found.quick:
        cards.append((len(found.refused), "not fitted", found.refused))
    initial = {"initial weights": found.initial} if found.initial else {}
    return replace(
        _answer(found, parts),
        cards=[
            (str(number), name, words.kinds(rows, found.matrices, 1))
            for number, name, rows in cards
        ],
        commands=[("This command repeats it:", command)] if command else [],
        facts={**initial, "seed": found.seed, "seconds": f"{found.seconds:.0f}", **found.versions},
    )


def _answer(found: Diagnosed, matrices: list[Part]) -> Answer:
    """Return the answer around a table of matrices."""
    learned: list[Part] = [words.headline(found), Items(words.meanings(found))]
    sections = [
        Section("Every matrix", matrices, "rows"),
        Section("Against depth", _depths(found), "depth"),
        Section("What did the matrices learn?", [] if found.quick else learned, "learned"),
        Section(attention.QUESTION, _heads(found), "heads"),
        *(Section(title, listed_parts(rows)) for title, rows in words.sections(found)),
        Section("Every spectrum under its fitted law", _spectra(found), "spectra"),
        Section("The seven phases", _phases(found), "phases", on_page=True),
    ]
    return Answer(
        f"{found.name}: what the weights learned",
        [
            Cell(f"{found.name}: {words.answer(found)}", "bold"),
            Cell(f"Read: {words.subject(found)}. No data were used.", "dim"),
            *(Cell(alarm, "yellow") for alarm in words.alarms(found)),
        ],
        [section for section in sections if section.parts],
    )


def _page_table(found: Diagnosed) -> Table:
    """Return the table of a page: whole names, intervals below the values, and links to spectra."""
    columns = [
        column
        for column in columns_of(found)
        if column.head != "size" and {*map(column.cell, found.matrices)} != {MISSING}
    ]
    heads = [tables_of_plots.Column(column.head, right=not column.left) for column in columns]
    table = Table("matrix", *heads)
    for number, row in enumerate(found.matrices):
        why = row.reason if not row.fitted and (not found.quick or row.norm is None) else ""
        more = ": ".join(filter(None, [size_text(row), why]))
        cells = [
            Cell(value, more=interval)
            for value, interval in (value_and_interval(column.cell(row)) for column in columns)
        ]
        link = f"matrix-{number}" if row.fitted and not found.quick else ""
        dim = "dim" if not row.fitted and not found.quick else ""
        table.add(Cell(row.name, more=more, link=link), *cells, style=dim)
    return table


def _depths(found: Diagnosed) -> list[Part]:
    figures = list(depth_figures(found))
    return [line_gallery(figures, whole=True)] if figures else []


def line_gallery(
    figures: Sequence[Figure], *, whole: bool = False, key: Sequence[tuple[str, str]] | None = None
) -> Gallery:
    """Return small pictures of lines, with the colours of the first one's labels."""
    if key is None:
        series = figures[0].series
        key = [(one.label, style(one.colour or 0, len(series)).colour) for one in series]
    return Gallery(
        [
            Picture(
                figure.title,
                partial(small_picture, figure, label=figure.title, whole=whole, upright=True),
                f"{figure.y_label} against {figure.x_label}. {figure.caption}",
            )
            for figure in figures
        ],
        key,
    )


def _heads(found: Diagnosed) -> list[Part]:
    """Return the sentences about heads, pictures of the most notable ones, and their table."""
    sentences = attention.sentences(found)
    parts: list[Part] = [*listed_parts(sentences)]
    if any(row.fitted for row in found.heads):
        whole = overview(found.heads)
        pictures = [
            Picture("", partial(small_picture, whole, label=whole.title, whole=True), whole.caption)
        ]
        for row in attention.outstanding(found.heads)[:11]:
            label = f"Singular values of {row.name}: {row.phase}"
            drawn = partial(small_picture, head_figure(row), label=label)
            pictures.append(Picture(row.name, drawn, f"{row.phase}. {row.reason}"))
        parts.append(Gallery(pictures))
    if sentences and found.heads:
        parts += [head_table(found.heads), Cell(attention.legend(), "dim")]
        if len(found.heads) > attention.SINGLE:
            parts.append(Folded("every head", [head_table(found.heads, single=True)]))
    return parts


def _spectra(found: Diagnosed) -> list[Part]:
    if found.quick or not found.fitted:
        return []
    pictures = []
    for number, row in enumerate(found.matrices):
        if row.fitted:
            figure, label = spectrum_figure(row), f"Spectrum of {row.name}: {row.phase}"
            pictures.append(
                Picture(
                    row.name,
                    partial(small_picture, figure, label=label),
                    f"{row.phase}, {size_text(row)}",
                    f"matrix-{number}",
                    [*words.remarks(row), figure.caption],
                )
            )
    return [Gallery(pictures, KEY)]


def _phases(found: Diagnosed) -> list[Part]:
    """Return the meaning of each phase, and what to do."""
    if found.quick:
        return []
    return [
        Items(
            [
                f"{phase.name}: {words.sentence(phase.looks)} Means: {words.sentence(phase.means)} "
                f"What to do: {words.sentence(phase.advice)}"
                for phase in words.PHASES
            ]
        )
    ]
