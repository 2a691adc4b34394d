"""Differences between runs as tables of a terminal, one for each run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from solvable.plots.numbers import format_number
from solvable.plots.tables import Cell, Column, Table
from solvable.study.differences import Difference
from solvable.study.tables import format_value

MOST_ROWS = 40
"""Largest number of differences in the terminal."""


def difference_tables(differences: Sequence[Difference], *, details: bool) -> list[Table]:
    """Return the differences of each run, those marked as different first."""
    rows = sorted(differences, key=lambda row: not row.differs)
    shown = rows if details else rows[:MOST_ROWS]
    varied = _varied([row.parameters for row in rows])
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
        yes = Cell("yes", "bold") if row.differs else Cell("not shown", "dim")
        table.add(yes, "" if setting == before else setting, row.metric, *cells)
        before = setting
    return table


def _varied(settings: Sequence[Mapping[str, Any]]) -> list[str]:
    names = dict.fromkeys(name for setting in settings for name in setting)
    return [name for name in names if len({str(one.get(name)) for one in settings}) > 1]
