"""Display of a series of checkpoints: sentences, a table, a page's figures, a data frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from solvable.answers.sections import Answer, Part, Section, listed_parts, terminal_parts
from solvable.diagnose.checkpoints.figures import colours_of
from solvable.diagnose.checkpoints.figures import figures as figures
from solvable.diagnose.checkpoints.history import SAME, STILL, DiagnosedCheckpoints, History
from solvable.diagnose.tables import Column, fitted_table
from solvable.diagnose.view import line_gallery
from solvable.plots.numbers import MISSING, format_number
from solvable.plots.palette import style
from solvable.plots.tables import Cell, Table, window
from solvable.plots.words import counted, listed


def answer(found: DiagnosedCheckpoints) -> str:
    """Main result: matrices that stopped changing, and new directions."""
    total = counted(len(found.histories), "matrix", "matrices")
    texts = []
    stopped = found.stopped
    if stopped:
        names = f": {_with_steps(found, stopped)}" if len(stopped) <= 3 else ""
        texts.append(f"{len(stopped)} of {total} stopped changing{names}.")
    else:
        texts.append(
            f"All {total} still change at the end."
            if len(found.histories) > 1
            else "The matrix still changes at the end."
        )
    learned = [row for row in found.histories if _gained(row) > 0]
    if learned:
        most = max(learned, key=_gained)
        texts.append(
            f"{counted(len(learned), 'matrix', 'matrices')} gained directions; {most.name} gained the "
            f"most ({range_text(most, 'directions')})."
        )
    return " ".join(texts)


def span(found: DiagnosedCheckpoints) -> str:
    """Number of checkpoints and their range, such as "11 checkpoints, step 0 to step 2000"."""
    number = counted(len(found.labels), "checkpoint")
    return f"{number}, {found.at(0)} to {found.at(len(found.labels) - 1)}"


def _with_steps(found: DiagnosedCheckpoints, rows: Sequence[History]) -> str:
    return listed([f"{row.name} from {found.at(row.stopped.place)}" for row in rows if row.stopped])


def _gained(row: History) -> int:
    values = [value for value in row.values("directions") if value is not None]
    return int(values[-1] - values[0]) if values else 0


def row_values(row: History, quantity: str) -> list[float]:
    """Return the known values of a quantity, in order."""
    return [value for value in row.values(quantity) if value is not None]


def range_text(row: History, quantity: str) -> str:
    """First and last value of a quantity, such as "0 to 10"; a dash for a value that is missing."""
    values = row.values(quantity)
    present = [place for place, one in enumerate(row.measurements) if one is not None]
    ends = [format_number(values[place], 3) for place in (present[0], present[-1])]
    return ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"


def stopped_text(found: DiagnosedCheckpoints, row: History) -> str:
    """When a matrix stopped changing: "step 800", "no", or that it only fluctuates."""
    if row.stopped is None:
        return "no" if row_values(row, "last")[1:] else MISSING
    text = found.at(row.stopped.place)
    return f"{text}, fluctuates" if row.stopped.fluctuates else text


def settled_text(found: DiagnosedCheckpoints, row: History) -> str:
    """When the directions of a matrix settled."""
    if row.settled is not None:
        return found.at(row.settled.place)
    last = row.measurements[-1]
    return "no" if last is not None and last.directions else MISSING


def meanings() -> list[str]:
    """Return the criteria, one sentence each."""
    return [
        "stopped: from this checkpoint on the Frobenius distance to the last weights is below "
        f"{100 * STILL:.0f} % of their norm (or the spacing of stored numbers, if that is larger), "
        "or, if it says fluctuates, does not grow with the separation.",
        "settled: from this checkpoint on the number of directions stays within one (or a tenth) of the "
        f"last one, and their squared overlap with the last ones is at least {SAME:g}.",
        "at least: directions above random signs, a lower bound.",
    ]


def columns(found: DiagnosedCheckpoints) -> tuple[Column, ...]:
    """Columns of the table; in a narrow window those of the highest rank are dropped first."""
    return (
        Column("at least", partial(range_text, quantity="directions")),
        Column("norm", partial(range_text, quantity="norm"), 2),
        Column("stable rank", partial(range_text, quantity="stable_rank"), 5),
        Column("settled", partial(settled_text, found), 1),
        Column("stopped", partial(stopped_text, found)),
    )


def checkpoints_text(
    found: DiagnosedCheckpoints, files: Mapping[str, str], stream: Any
) -> list[str | Cell | Table]:
    """Return the answer, the order and a table, fitted to the terminal's width."""
    width = window(stream)
    table, dropped = fitted_table(found.histories, columns(found), width)
    remarks = [f"Not shown in a terminal of this width: {', '.join(dropped)}."] if dropped else []
    shown = terminal_parts(_answer(found, table, remarks))
    if width is None:
        shown = [part.to_text() if isinstance(part, Table) else part for part in shown]
    return [*shown, "", *(f"{name:<8} {path}" for name, path in files.items())]


def page(found: DiagnosedCheckpoints, command: str) -> Answer:
    """Return the answer for a page, with figures and the whole names of matrices."""
    table = Table("matrix", *(column.head for column in columns(found)))
    for row in found.histories:
        name = Cell(row.name, more=" x ".join(map(str, row.shape)))
        table.add(name, *(column.cell(row) for column in columns(found)))
    total = counted(len(found.histories), "matrix", "matrices")
    settled = sum(row.settled is not None for row in found.histories)
    return replace(
        _answer(found, table, ()),
        cards=[
            (str(len(found.stopped)), "stopped changing", f"of {total}"),
            (str(settled), "directions settled", "they and their number stay"),
        ],
        commands=[("This command repeats it:", command)] if command else [],
        facts={"seed": found.seed, "seconds": f"{found.seconds:.0f}", **found.versions},
    )


def _answer(found: DiagnosedCheckpoints, table: Table, remarks: Sequence[str]) -> Answer:
    """Return the answer around a table of matrices."""
    colours = colours_of(found.histories)
    count = 1 + max(colours.indices.values(), default=0)
    key = {
        colours.labels[name]: style(index, count).colour
        for name, index in colours.indices.items()
        if colours.labels[name]
    }
    meaning = f"{colours.meaning} The pointer on a line shows the name of its matrix.".strip()
    pictures = line_gallery(list(figures(found, named=True)), key=[*key.items()])
    rows: list[Part] = [table, *(Cell(text, "dim") for text in (*meanings(), *remarks))]
    sections = [
        Section("Every matrix, first to last checkpoint", rows, "rows"),
        Section(
            "How did the matrices change?",
            [Cell(meaning, "hint"), pictures],
            "lines",
            on_page=True,
        ),
        Section("How were the files read?", listed_parts(found.notes)),
    ]
    return Answer(
        f"{found.name}: the weights along training",
        [
            Cell(f"{found.name}: {answer(found)}", "bold"),
            Cell(f"Read: {span(found)}. {found.order} No data were used.", "dim"),
        ],
        [section for section in sections if section.parts],
    )


def line(found: DiagnosedCheckpoints) -> str:
    """Name and main result."""
    return f"{found.name}, {span(found)}: {answer(found)}"


def tables(found: DiagnosedCheckpoints) -> list[Table]:
    """One table with a row per matrix."""
    return [fitted_table(found.histories, columns(found), None)[0]]


def rows(found: DiagnosedCheckpoints) -> list[dict[str, Any]]:
    """Records for a data frame, one per matrix and checkpoint."""
    records = []
    for row in found.histories:
        pairs = zip(row.measurements, row.changes, strict=True)
        for place, (numbers, change) in enumerate(pairs):
            if numbers is None:
                continue
            records.append(
                {
                    "matrix": row.name,
                    "checkpoint": found.labels[place],
                    "step": found.steps[place],
                    "shape": "x".join(map(str, row.shape)),
                    "directions_at_least": numbers.directions,
                    "norm": numbers.norm,
                    "largest": numbers.largest,
                    "stable_rank": numbers.stable_rank,
                    "dead_rows": numbers.dead_rows,
                    "change": change.previous,
                    "distance_to_last": change.last,
                    "overlap_with_last": change.overlap,
                    "stopped": row.stopped is not None and place >= row.stopped.place,
                    "reason": numbers.reason,
                }
            )
    return records
