"""Tables of verdicts and of metrics as plain text, for the terminal and the HTML report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple, Protocol

import numpy as np

from solvable.frame.claims import OUTCOMES, WEAK, Verdict
from solvable.frame.points import Point
from solvable.frame.power import PowerRow
from solvable.plots.numbers import MISSING, format_number, format_with_error
from solvable.plots.tables import Column, Table, verdict_cell
from solvable.plots.words import counted

LONGEST_LIST = 24
"""Largest number of entries of a list in a table of metrics; a spectrum has thousands."""


class VerdictRow(NamedTuple):
    """One verdict as text."""

    claim: str
    statement: str
    status: str
    measured: str  # value ± standard error
    expected: str
    tolerance: str
    notices: str  # smallest error of the prediction with which the claim would have failed
    replicates: str
    reason: str  # reason of the tolerance, or why the claim is not testable
    source: str  # place in a paper, or equation of a derivation page


class MetricCell(NamedTuple):
    """Mean over replicates ± its standard error, and the prediction; words with their counts."""

    measured: str
    predicted: str


class MetricTable(NamedTuple):
    """Table of one list metric, or of all numbers and words, at every point of a study."""

    name: str  # name of the list; empty for numbers and words
    columns: tuple[str, ...]  # indices in the list from 1, or names of metrics
    settings: list[dict[str, str]]  # varied parameters of each point
    replicates: list[str]
    cells: list[list[MetricCell]]  # for each point, one per column


def verdict_fields(verdict: Verdict) -> dict[str, Any]:
    """Return the fields of a verdict, and whether it holds weakly."""
    return asdict(verdict) | {"weak": verdict.weak}


def verdict_rows(verdicts: Sequence[Verdict]) -> list[VerdictRow]:
    """Verdicts as rows of text, in their order."""
    return [_verdict_row(verdict) for verdict in verdicts]


def _verdict_row(verdict: Verdict) -> VerdictRow:
    expected, tolerance = format_number(verdict.expected), format_number(verdict.tolerance, 3)
    if expected != MISSING and verdict.kind != "equal":
        expected = f"{verdict.kind} {expected}"
    if tolerance != MISSING:
        sign = {"equal": "±", "at least": "−", "at most": "+"}[verdict.kind]
        tolerance = f"{sign} {tolerance}"
    return VerdictRow(
        verdict.claim,
        verdict.statement,
        verdict.outcome,
        _measured(verdict),
        expected,
        tolerance,
        MISSING if verdict.notices is None else f"{100 * verdict.notices:.2g} %",
        str(verdict.replicates) if verdict.replicates else MISSING,
        verdict.reason,
        verdict.source,
    )


def _measured(verdict: Verdict) -> str:
    """Write the measured value with its error, to at most a thousandth of the tolerance."""
    value, error, tolerance = verdict.measured, verdict.standard_error, verdict.tolerance
    if value is None or not error or not tolerance or error >= tolerance / 1000:
        return format_with_error(value, error)
    return format_with_error(round(value, 3 - int(np.floor(np.log10(tolerance)))), 0.0)


def verdict_table(
    verdicts: Sequence[Verdict], *, details: bool = True, room: int | None = None
) -> Table:
    """Return the table of verdicts with the power of each claim; details are its replicates.

    Without details, a table wider than `room` characters leaves out the power.
    """
    table = _verdict_table(verdicts, 5 if details else 4)
    narrow = not details and room is not None and table.width > room
    return _verdict_table(verdicts, 3) if narrow else table


def _verdict_table(verdicts: Sequence[Verdict], columns: int) -> Table:
    """Return the table with the first of its columns of numbers."""
    names = ["measured", "predicted", "tolerance", "would notice", "replicates"][:columns]
    table = Table("verdict", "claim", *(Column(name, right=True) for name in names))
    for row in verdict_rows(verdicts):
        numbers = (row.measured, row.expected, row.tolerance, row.notices, row.replicates)
        table.add(verdict_cell(row.status), row.claim, *numbers[: len(names)])
    return table


def power_table(rows: Sequence[PowerRow]) -> Table:
    """Return the table of the smallest relative errors of predictions with which claims fail."""
    numbers = (Column(name, right=True) for name in ("fails at +x", "fails at −x"))
    table = Table("verdict", "claim", *numbers, Column("chance learner", wrap=False))
    for row in rows:
        ends = (row.fails_from_above, row.fails_from_below)
        unknown = row.status in ("not testable", "error") and not row.powerless
        never = MISSING if unknown else "never"
        shown = [never if x is None else format_number(x, 2) for x in ends]
        weak = row.status == "holds" and row.notices is not None and row.notices > WEAK
        table.add(
            verdict_cell("holds weakly" if weak else row.status), row.claim, *shown, row.chance
        )
    return table


def counts_line(verdicts: Sequence[Verdict]) -> str:
    """Return how many claims hold, fail, raised, and need other settings or replicates."""
    counts = verdict_summary(verdicts)
    weakly = counts["holds weakly"]
    holding = counts["holds"] + weakly
    open_ = [verdict for verdict in verdicts if verdict.status == "not testable"]
    noisy = sum("more replicate" in verdict.reason for verdict in open_)
    first = f"{counted(holding, 'claim')} {'holds' if holding == 1 else 'hold'}"
    first += f" ({weakly} weakly), " if weakly else ", "
    first += f"{counts['fails']} {'fails' if counts['fails'] == 1 else 'fail'}"
    rest = [f"{counts['error']} raised an error"] if counts["error"] else []
    if len(open_) > noisy:
        needs = "needs" if len(open_) - noisy == 1 else "need"
        rest.append(f"{len(open_) - noisy} {needs} other settings")
    if noisy:
        rest.append(f"{noisy} {'needs' if noisy == 1 else 'need'} more replicates")
    return "; ".join([first, *([", ".join(rest)] if rest else [])]) + "."


class RawRow(NamedTuple):
    """A measured number next to its prediction, where no claim judges it."""

    metric: str  # with the entry of a list from 1
    setting: str
    measured: float
    standard_error: float | None  # None with one replicate
    predicted: float

    @property
    def distance(self) -> float | None:
        """Deviation in standard errors."""
        if not self.standard_error:
            return None
        return (self.measured - self.predicted) / self.standard_error


def raw_rows(points: Sequence[Point]) -> list[RawRow]:
    """Return every number that is both measured and predicted, by metric and then by point."""
    rows = []
    varied = varying_parameters(points)
    names = dict.fromkeys(name for point in points for name in point.prediction)
    for name in names:
        for point in points:
            pair = [point.metrics[0].get(name), point.prediction.get(name)] if point.metrics else []
            if not pair or any(value is None or isinstance(value, str) for value in pair):
                continue
            measured, expected = point.mean(name), point.predicted(name)
            if measured.shape != expected.shape or measured.size > LONGEST_LIST:
                continue
            errors = point.standard_error(name)
            where = ", ".join(f"{key}={format_value(point.parameters[key])}" for key in varied)
            for index in np.ndindex(measured.shape):
                if np.isfinite(measured[index]) and np.isfinite(expected[index]):
                    error = float(errors[index]) if np.isfinite(errors[index]) else None
                    label = f"{name}[{index[0] + 1}]" if index else name
                    numbers = (float(measured[index]), error, float(expected[index]))
                    rows.append(RawRow(label, where, *numbers))
    return rows


def raw_table(rows: Sequence[RawRow]) -> Table:
    """Return the table of numbers that no claim judges, with deviations in standard errors."""
    numbers = (Column(name, right=True) for name in ("measured", "predicted", "standard errors"))
    table = Table("metric", "at", *numbers)
    for row in rows:
        distance = MISSING if row.distance is None else f"{row.distance:+.1f}"
        measured = format_with_error(row.measured, row.standard_error)
        table.add(row.metric, row.setting, measured, format_number(row.predicted), distance)
    return table


def verdict_summary(verdicts: Sequence[Verdict]) -> dict[str, int]:
    """Count the verdicts of each outcome."""
    return {word: sum(verdict.outcome == word for verdict in verdicts) for word in OUTCOMES}


class WithParameters(Protocol):
    """Point of a study, or a row about one."""

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Values by name."""


def varying_parameters(points: Sequence[WithParameters]) -> list[str]:
    """Return the names of the parameters that differ between points, ordered as in the first point."""
    names: dict[str, None] = {}
    for point in points:
        names.update(dict.fromkeys(point.parameters))
    first = points[0].parameters if points else {}
    return [
        name
        for name in names
        if any(point.parameters.get(name) != first.get(name) for point in points)
    ]


def format_value(value: Any) -> str:
    """Format a parameter: six digits, lists separated by commas, a dash for None."""
    if value is None:
        return MISSING
    if isinstance(value, float):
        return format_number(value, 6)
    if isinstance(value, (list, tuple)):
        return ", ".join(format_value(entry) for entry in value)
    return str(value)


def metric_tables(points: Sequence[Point]) -> list[MetricTable]:
    """Predicted and measured metrics of every point as tables of text."""
    lengths = _lengths(points)
    varying = varying_parameters(points)
    settings = [
        {name: format_value(point.parameters.get(name)) for name in varying} for point in points
    ]
    replicates = [str(point.replicates) for point in points]
    tables = []
    numbers = [name for name, length in lengths.items() if length is None]
    if numbers:
        cells = [[_cell(point, name, None) for name in numbers] for point in points]
        tables.append(MetricTable("", tuple(numbers), settings, replicates, cells))
    for name, length in lengths.items():
        if length is None or not 0 < length <= LONGEST_LIST:
            continue
        columns = tuple(str(index + 1) for index in range(length))
        cells = [[_cell(point, name, index) for index in range(length)] for point in points]
        tables.append(MetricTable(name, columns, settings, replicates, cells))
    return tables


def long_metrics(points: Sequence[Point]) -> dict[str, int]:
    """Return the lists with more than :data:`LONGEST_LIST` entries, and their largest lengths."""
    return {
        name: length
        for name, length in _lengths(points).items()
        if length is not None and length > LONGEST_LIST
    }


def _lengths(points: Sequence[Point]) -> dict[str, int | None]:
    """Return the largest length of each metric, None for numbers and words; measured ones first."""
    measured: dict[str, int | None] = {}
    predicted: dict[str, int | None] = {}
    for lengths, metrics in [
        *((measured, replicate) for point in points for replicate in point.metrics),
        *((predicted, point.prediction) for point in points),
    ]:
        for name, value in metrics.items():
            length = lengths.setdefault(name, None)
            if isinstance(value, (list, tuple)):
                lengths[name] = max(length or 0, len(value))
    longest: dict[str, int | None] = {}
    for name in (*measured, *predicted):
        known = [n for n in (measured.get(name), predicted.get(name)) if n is not None]
        longest[name] = max(known, default=None)
    return longest


def _entry(value: Any, index: int | None) -> float | str | None:
    """Return the value, or an entry of a list; None if missing or of the other kind."""
    if not isinstance(value, (list, tuple)):
        return value if index is None else None
    # a shorter list has no such entry
    entry: float | str | None = None
    if index is not None and index < len(value):
        entry = value[index]
    return entry


def _cell(point: Point, name: str, index: int | None) -> MetricCell:
    predicted = format_number(_entry(point.prediction.get(name), index))
    entries = [_entry(replicate.get(name), index) for replicate in point.metrics]
    known = [entry for entry in entries if entry is not None]
    if any(isinstance(entry, str) for entry in known):
        return MetricCell(_tally(known), predicted)
    values = np.array(known, dtype=float)
    values = values[~np.isnan(values)]
    mean = float(values.mean()) if len(values) else None
    # Standard error of the mean, s / sqrt(m) over m replicates.
    error = float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else None
    return MetricCell(format_with_error(mean, error), predicted)


def _tally(entries: Sequence[float | str]) -> str:
    """Return the words of the replicates with counts, the most frequent first."""
    counts = Counter(map(format_number, entries)).most_common()
    if len(counts) == 1:
        return counts[0][0]
    return ", ".join(f"{word} ({count})" for word, count in counts)
