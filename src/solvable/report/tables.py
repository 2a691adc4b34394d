"""Tables of verdicts and of metrics as plain text, for the terminal and the HTML report alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from solvable.report.numbers import MISSING, format_number, format_with_error
from solvable.systems.base import Point, Verdict

STATUSES = ("holds", "fails", "not testable")

LONGEST_LIST = 24
"""Entries of a list of numbers that a table of metrics shows; a spectrum has thousands."""


class VerdictRow(NamedTuple):
    """One verdict as text.

    Parameters
    ----------
    claim, statement : str
        Name of the claim, and the claim in one sentence.
    status : str
        ``holds``, ``fails`` or ``not testable``.
    measured : str
        Measured value ± standard error.
    expected, tolerance : str
        What it was compared with, and how closely it had to agree.
    replicates : str
        Number of replicates.
    reason, source : str
        Why the tolerance is what it is, and where the claim comes from.
    """

    claim: str
    statement: str
    status: str
    measured: str
    expected: str
    tolerance: str
    replicates: str
    reason: str
    source: str


class MetricRow(NamedTuple):
    """One metric at one setting of the parameters as text.

    Parameters
    ----------
    setting : tuple of str
        Values of the parameters that vary in the study, in the order of :func:`varying_parameters`.
    metric : str
        Name, with the index from 1 if the metric is a list.
    predicted, measured, replicates : str
        Numbers.
    """

    setting: tuple[str, ...]
    metric: str
    predicted: str
    measured: str
    replicates: str


def verdict_rows(verdicts: Sequence[Verdict]) -> list[VerdictRow]:
    """Verdicts as rows of text, in their order.

    Parameters
    ----------
    verdicts : sequence of Verdict
        Outcomes of the claims.

    Returns
    -------
    list of VerdictRow
        One row per verdict; what is unknown is a dash.

    Examples
    --------
    >>> verdict = Verdict("slope", "It falls.", "holds", -0.51, 0.012, -0.5, 0.05, replicates=3)
    >>> row = verdict_rows([verdict])[0]
    >>> row.measured, row.expected, row.tolerance
    ('−0.510 ± 0.012', '−0.5', '± 0.05')
    """
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
        verdict.status,
        format_with_error(verdict.measured, verdict.standard_error),
        expected,
        tolerance,
        str(verdict.replicates) if verdict.replicates else MISSING,
        verdict.reason,
        verdict.source,
    )


def verdict_summary(verdicts: Sequence[Verdict]) -> dict[str, int]:
    """Count the verdicts of each status.

    Parameters
    ----------
    verdicts : sequence of Verdict
        Outcomes of the claims.

    Returns
    -------
    dict
        ``holds``, ``fails`` and ``not testable``, in this order, with their counts.

    Examples
    --------
    >>> verdict_summary([Verdict("slope", "It falls.", "holds")])
    {'holds': 1, 'fails': 0, 'not testable': 0}
    """
    return {status: sum(one.status == status for one in verdicts) for status in STATUSES}


def varying_parameters(points: Sequence[Point]) -> list[str]:
    """Names of the parameters that differ between points, in the order of the first point.

    Parameters
    ----------
    points : sequence of Point
        Points of a study.

    Returns
    -------
    list of str
        Their names.

    Examples
    --------
    >>> varying_parameters([Point({"n": 1, "d": 5}, [], {}), Point({"n": 2, "d": 5}, [], {})])
    ['n']
    """
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
    """Write the value of a parameter for a reader.

    Parameters
    ----------
    value : object
        Number, string, None, or a list of them.

    Returns
    -------
    str
        Numbers with up to six digits, lists separated by commas.

    Examples
    --------
    >>> format_value(0.1 + 0.2), format_value([1, 2]), format_value("tanh"), format_value(None)
    ('0.3', '1, 2', 'tanh', '–')
    """
    if value is None:
        return MISSING
    if isinstance(value, float):
        return format_number(value, 6)
    if isinstance(value, (list, tuple)):
        return ", ".join(format_value(one) for one in value)
    return str(value)


def metric_rows(points: Sequence[Point]) -> list[MetricRow]:
    """Predicted and measured metrics of every point as rows of text.

    Parameters
    ----------
    points : sequence of Point
        Points of a study.

    Returns
    -------
    list of MetricRow
        One row per number; of a list, the first :data:`LONGEST_LIST` entries and a row that counts the
        rest. Replicates that lack a value are left out of its mean, and of its count.

    Examples
    --------
    >>> point = Point({"n": 10}, [{"error": 0.5}, {"error": 0.7}], {"error": 0.61, "threshold": 3.0})
    >>> for row in metric_rows([point]):
    ...     print(row.metric, row.predicted, row.measured, row.replicates)
    error 0.61 0.60 ± 0.10 2
    threshold 3 – –
    """
    varying = varying_parameters(points)
    rows = []
    for point in points:
        setting = tuple(format_value(point.parameters.get(name)) for name in varying)
        names = dict.fromkeys(point.prediction)
        for one in point.metrics:
            names.update(dict.fromkeys(one))
        # Measured metrics first: what only theory knows is of less interest beside a measurement.
        measured = {name for one in point.metrics for name in one}
        for name in sorted(names, key=lambda name: name not in measured):
            rows += _rows_of(point, name, setting)
    return rows


def _rows_of(point: Point, name: str, setting: tuple[str, ...]) -> list[MetricRow]:
    predicted = point.prediction.get(name)
    found = [one.get(name) for one in point.metrics]
    lists = [one for one in (predicted, *found) if isinstance(one, (list, tuple))]
    if not lists:
        return [_metric_row(setting, name, predicted, found)]
    length = max(len(one) for one in lists)
    rows = [
        _metric_row(
            setting, f"{name}[{i + 1}]", _entry(predicted, i), [_entry(one, i) for one in found]
        )
        for i in range(min(length, LONGEST_LIST))
    ]
    if length > LONGEST_LIST:
        rest = f"{name}[{LONGEST_LIST + 1} to {length}]"
        rows.append(MetricRow(setting, rest, "in the records", "in the records", ""))
    return rows


def _entry(values: Any, index: int) -> float | None:
    """Entry of a list; None beyond its end and for a metric that is no list in this replicate."""
    if not isinstance(values, (list, tuple)) or index >= len(values):
        return None
    entry: float | None = values[index]
    return entry


def _metric_row(
    setting: tuple[str, ...], metric: str, predicted: Any, found: Sequence[Any]
) -> MetricRow:
    values = np.array([one for one in found if one is not None], dtype=float)
    values = values[~np.isnan(values)]
    mean = float(values.mean()) if len(values) else None
    error = float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else None
    return MetricRow(
        setting,
        metric,
        format_number(predicted),
        format_with_error(mean, error),
        str(len(values)) if len(values) else MISSING,
    )
