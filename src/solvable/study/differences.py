"""Differences of metrics between two runs at the settings that both measured, with intervals.

A parameter that has one value in each run is no part of a setting: runs at two noise levels are compared
at each number of samples.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from solvable.study.parameters import canonical_json
from solvable.study.results import StudyResult

LEVEL = 0.95
"""Probability that an interval covers the true difference."""


@dataclass(frozen=True)
class Difference:
    """Mean of a metric in one run minus its mean in the first run, at one setting of both."""

    run: str  # label of the run
    parameters: Mapping[str, Any]
    metric: str
    first: float
    other: float
    difference: float
    low: float  # ends of the interval of 95 %; infinite with too few replicates
    high: float
    p_value: float  # of no difference; NaN if it cannot be tested
    pairing: Literal["paired", "unpaired", "same records"]
    replicates: int  # pairs, or replicates of the run with fewer
    differs: bool = False  # after Holm's correction over all differences of the comparison


def differences(first: StudyResult, other: StudyResult, label: str) -> list[Difference]:
    """Return the differences of all numbers, unpaired unless tasks share their random numbers."""
    replaced = _replaced(first, other)
    ours, theirs = _by_setting(first, replaced), _by_setting(other, replaced)
    rows = []
    for key in (key for key in ours if key in theirs):
        parameters, one = ours[key]
        _, two = theirs[key]
        # a task's stream is derived from its identity: equal identities are the same random numbers
        shared = sorted(one.keys() & two.keys())
        for name in _numbers(one.values(), two.values()):
            a, b = (_column(tasks.values(), name) for tasks in (one, two))
            a_pairs, b_pairs = (
                _column([tasks[task] for task in shared], name) for tasks in (one, two)
            )
            pairs = np.isfinite(a_pairs) & np.isfinite(b_pairs)
            found: tuple[float, float, float]
            pairing: Literal["paired", "unpaired", "same records"]
            if pairs.any():
                a, b, pairing = a_pairs[pairs], b_pairs[pairs], "paired"
                found = paired_interval(b - a)
                if not (b - a).any():
                    pairing = "same records"
            else:
                a, b, pairing = a[np.isfinite(a)], b[np.isfinite(b)], "unpaired"
                if not (a.size and b.size):
                    continue
                found = welch_interval(a, b)
            low, high, p_value = found
            means = float(a.mean()), float(b.mean())
            rows.append(
                Difference(
                    label, parameters, name, *means, means[1] - means[0], low, high, p_value,
                    pairing, min(a.size, b.size),
                )
            )  # fmt: skip
    return rows


def paired_interval(change: np.ndarray) -> tuple[float, float, float]:
    """Return Student's interval of the mean of paired changes, and the p-value of zero."""
    if not change.any():  # the same records: equal numbers, not a measurement of zero
        return 0.0, 0.0, float("nan")
    if change.size < 2:
        return -np.inf, np.inf, float("nan")
    error = change.std(ddof=1) / np.sqrt(change.size)
    return _student(float(change.mean()), float(error), change.size - 1.0)


def welch_interval(first: np.ndarray, other: np.ndarray) -> tuple[float, float, float]:
    """Return Welch's interval of a difference of means, and the p-value of zero."""
    if min(first.size, other.size) < 2:
        return -np.inf, np.inf, float("nan")
    parts = np.array([first.var(ddof=1) / first.size, other.var(ddof=1) / other.size])
    change = float(other.mean() - first.mean())
    if not parts.any():
        return change, change, float("nan")
    # (sum v)² / sum(v² / k) degrees of freedom (Welch and Satterthwaite)
    degrees = parts.sum() ** 2 / np.sum(parts**2 / (np.array([first.size, other.size]) - 1))
    return _student(change, float(np.sqrt(parts.sum())), float(degrees))


def _student(change: float, error: float, degrees: float) -> tuple[float, float, float]:
    from scipy.special import stdtr, stdtrit

    if error == 0:
        return change, change, float("nan")
    reach = float(-stdtrit(degrees, (1 - LEVEL) / 2)) * error
    return change - reach, change + reach, float(2 * stdtr(degrees, -abs(change) / error))


def holm(p_values: Sequence[float]) -> list[bool]:
    """Return which hypotheses Holm's procedure rejects at 5 % together; NaN is never rejected."""
    values = np.array(p_values, dtype=float)
    rejected = [False] * values.size
    tested = [int(place) for place in np.argsort(values) if np.isfinite(values[place])]
    for rank, place in enumerate(tested):
        if values[place] > (1 - LEVEL) / (len(tested) - rank):
            break
        rejected[place] = True
    return rejected


Tasks = Mapping[str, Mapping[str, Any]]


def _replaced(first: StudyResult, other: StudyResult) -> set[str]:
    """Return the parameters that have one value in each run, and not the same one in both."""
    if first.system.name != other.system.name:
        return set()
    values: list[dict[str, set[str]]] = []
    for run in (first, other):
        own: dict[str, set[str]] = {}
        for point in run.points:
            for name, value in point.parameters.items():
                own.setdefault(name, set()).add(canonical_json({name: value}))
        values.append(own)
    ours, theirs = values
    return {
        name
        for name in ours.keys() & theirs.keys()
        if len(ours[name]) == len(theirs[name]) == 1 and ours[name] != theirs[name]
    }


def _by_setting(
    result: StudyResult, left_out: Set[str]
) -> dict[str, tuple[Mapping[str, Any], Tasks]]:
    """Return other parameters and metrics by identity of the task, for each setting."""
    found: dict[str, tuple[Mapping[str, Any], dict[str, Mapping[str, Any]]]] = {}
    for record in result.records:
        own = {name: x for name, x in record["parameters"].items() if name not in left_out}
        found.setdefault(canonical_json(own), (own, {}))[1][record["task"]] = record["metrics"]
    return dict(found)


def _numbers(*groups: Any) -> list[str]:
    """Return the metrics that are numbers in both runs; lists are not compared."""
    names = []
    for group in groups:
        found: dict[str, bool] = {}
        for metrics in group:
            for name, value in metrics.items():
                number = value is None or isinstance(value, (int, float))
                found[name] = found.get(name, True) and number
        names.append([name for name, number in found.items() if number])
    return [name for name in names[0] if name in names[1]]


def _column(rows: Any, name: str) -> np.ndarray:
    values = [row.get(name) for row in rows]
    return np.array([np.nan if value is None else value for value in values], dtype=float)
