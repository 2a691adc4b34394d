"""Tables of comparisons: verdicts side by side, and differences between runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, TypeAlias

from solvable.frame.claims import Verdict
from solvable.plots.numbers import MISSING, format_number, format_with_error
from solvable.plots.tables import Cell, Column, Table, verdict_cell
from solvable.study.differences import Difference
from solvable.study.tables import format_value, varying_parameters, verdict_fields

Verdicts: TypeAlias = Mapping[str, Mapping[str, Any]]
"""Verdicts by claim, as mappings of their fields."""

MOST_ROWS = 40
"""Largest number of differences in the terminal."""


def by_claim(verdicts: Iterable[Verdict]) -> dict[str, dict[str, Any]]:
    """Return verdicts as mappings, by claim."""
    return {row.claim: verdict_fields(row) for row in verdicts}


def verdict_tables(labels: Sequence[str], verdicts: Sequence[Verdicts]) -> list[Table]:
    """Return the verdicts side by side, a few columns in each table."""
    wide = 4
    claims = dict.fromkeys(claim for column in verdicts for claim in column)
    made = []
    for start in range(0, len(labels), wide):
        heads = [Column(label, wrap=True) for label in labels[start : start + wide]]
        table = Table("claim", *heads, title="" if start else "Verdicts")
        for claim in claims:
            shown = verdicts[start : start + wide]
            table.add(claim, *(_outcome(column.get(claim)) for column in shown))
        made.append(table)
    return made


def _outcome(verdict: Mapping[str, Any] | None) -> Cell:
    if verdict is None:
        return Cell(MISSING)
    outcome = "holds weakly" if verdict.get("weak") else str(verdict["status"])
    cell = verdict_cell(outcome)
    if verdict.get("measured") is None:
        return cell
    sign = "predicted" if verdict.get("kind", "equal") == "equal" else verdict["kind"]
    measured = format_with_error(verdict["measured"], verdict.get("standard_error"))
    expected = format_number(verdict.get("expected"))
    return Cell(f"{outcome}\n{measured}\n{sign} {expected}", cell.style)


def flat_parameters(rows: Iterable[Any]) -> list[dict[str, Any]]:
    """Return the fields of each row, with its parameters as ``parameter.NAME``."""
    return [
        {name: value for name, value in asdict(row).items() if name != "parameters"}
        | {f"parameter.{name}": value for name, value in row.parameters.items()}
        for row in rows
    ]


def difference_tables(differences: Sequence[Difference], *, details: bool) -> list[Table]:
    """Return the differences of each run, those marked as different first."""
    rows = sorted(differences, key=lambda row: not row.differs)
    shown = rows if details else rows[:MOST_ROWS]
    varied = varying_parameters(rows)
    title = "Differences from the first run, with intervals of 95 %"
    if len(shown) < len(rows):
        title += f" ({len(shown)} of {len(rows)}; --details shows all)"
    tables: list[Table] = []
    for run in dict.fromkeys(row.run for row in shown):
        own = [row for row in shown if row.run == run]
        tables.append(_table(own, varied, f"{title}\n{run}" if not tables else run))
    return tables


def _table(rows: Sequence[Difference], varied: Sequence[str], title: str) -> Table:
    """Return the differences of one run from the first; entries equal in all rows go into the title."""
    pairings, counts = {row.pairing for row in rows}, {row.replicates for row in rows}
    words = [f"{rows[0].replicates} replicates"] if len(counts) == 1 else []
    words += [rows[0].pairing] if len(pairings) == 1 else []
    more = [Column("replicates", right=True)] if len(counts) > 1 else []
    more += [Column("pairing")] if len(pairings) > 1 else []
    numbers = [Column(name, right=True) for name in ("difference", "from", "to")]
    title = ": ".join(filter(None, [title, ", ".join(words)]))
    table = Table("differs", "setting", "metric", *numbers, *more, title=title)
    before = ""
    for row in rows:
        # one parameter per line: a list of all would be broken anywhere
        setting = "\n".join(f"{n}={format_value(row.parameters.get(n))}" for n in varied)
        cells = [format_number(value, 3) for value in (row.difference, row.low, row.high)]
        cells += [str(row.replicates)] if len(counts) > 1 else []
        cells += [row.pairing] if len(pairings) > 1 else []
        yes = Cell("yes", "bold") if row.differs else Cell("none found", "dim")
        table.add(yes, "" if setting == before else setting, row.metric, *cells)
        before = setting
    return table
