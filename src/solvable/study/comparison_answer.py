"""Page of a comparison: verdicts side by side, curves, differences and settings."""

from __future__ import annotations

from collections.abc import Sequence

from solvable.answers.sections import Answer, Folded, Heading, Items, Part, Section
from solvable.plots.figure import Figure
from solvable.plots.tables import Cell, Table, verdict_cell
from solvable.plots.words import counted
from solvable.study.compare import Comparison, line, settings_of
from solvable.study.comparison_tables import MOST_ROWS, difference_tables
from solvable.study.tables import VerdictRow, verdict_rows

DIFFERS = (
    'Mean minus that of the first run, with an interval of 95 %. "Differs" is corrected for all compared '
    "means together (Holm, 5 %). All numbers are in comparison.csv."
)


def answer(found: Comparison, figures: Sequence[Figure] = (), notes: Sequence[str] = ()) -> Answer:
    """Return the answer; `notes` say which figures are missing, and why."""
    titles = dict.fromkeys(result.system.title for result in found.results)
    curves: list[Part] = [*figures, *([Items(notes)] if notes else [])]
    sections = [
        Section("Verdicts", _verdicts(found), "verdicts"),
        Section("Curves", curves, "figures"),
        Section("Differences from the first run", _differences(found), "differences"),
        Section("Settings", [_settings(found)], "settings"),
    ]
    return Answer(
        f"Comparison of {', '.join(titles)}",
        [f"{line(found)}. All runs are compared with the first."],
        [section for section in sections if section.parts],
        made_by="solvable comparison",
    )


def _verdicts(found: Comparison) -> list[Part]:
    verdicts = [{row.claim: row for row in verdict_rows(run.verdicts)} for run in found.results]
    table = Table("claim", *found.labels)
    for claim in found.claims:
        rows = [run.get(claim) for run in verdicts]
        statement = next(row.statement for row in rows if row is not None)
        table.add(Cell(claim, more=statement), *map(_outcome, rows))
    broken = [f"{claim} holds in the first run, and not in {run}." for claim, run in found.broken]
    return [*(Cell(sentence, "yellow") for sentence in broken), table]


def _outcome(row: VerdictRow | None) -> Cell:
    if row is None:
        return Cell("no such claim", "dim")
    why = f"measured {row.measured}, predicted {row.expected}, tolerance {row.tolerance}"
    return verdict_cell(row.status)._replace(
        more=row.reason if row.status in ("not testable", "error") else why
    )


def _differences(found: Comparison) -> list[Part]:
    if not found.differences:
        return ["The runs share no setting, so that no means are compared."]
    marked = [row for row in found.differences if row.differs]
    others = [row for row in found.differences if not row.differs]
    parts: list[Part] = [Cell(DIFFERS, "hint")]
    if marked:
        parts.append(Heading(f"{counted(len(marked), 'mean')} differ{'s' * (len(marked) == 1)}"))
        parts += difference_tables(marked[:MOST_ROWS], details=True)
    else:
        parts.append("No mean differs.")
    if others:
        title = f"{len(others)} without a difference found"
        title += f" (the first {MOST_ROWS})" * (len(others) > MOST_ROWS)
        parts.append(Folded(title, difference_tables(others[:MOST_ROWS], details=True)))
    return parts


def _settings(found: Comparison) -> Table:
    """Return what defines each run; settings that differ come first."""
    own = [settings_of(run) for run in found.results]
    names = list(dict.fromkeys(name for one in own for name in one))
    rows = [
        (name, [one.get(name, f"{name}=default").removeprefix(f"{name}=") for one in own])
        for name in names
    ]
    table = Table("setting", *found.labels)
    table.add("directory", *(str(run.directory) for run in found.results))
    done = (f"{run.planned - run.missing} of {run.planned}" for run in found.results)
    table.add("finished tasks", *done)
    for name, values in sorted(rows, key=lambda row: len(set(row[1])) == 1):
        table.add(name, *values)
    return table
