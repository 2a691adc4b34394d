"""One stored run judged by two versions of the library."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from solvable.errors import InvalidParameter, shortened
from solvable.frame.points import NO_PREDICTION, Point
from solvable.paths import printable
from solvable.plots.displayed import Shown
from solvable.plots.figure import Figure
from solvable.plots.numbers import format_number
from solvable.plots.tables import Column, Table
from solvable.study.comparison_tables import flat_parameters, verdict_tables
from solvable.study.other_version import interpreter, judged_by
from solvable.study.parameters import canonical_json
from solvable.study.renewed_predictions import changed_names, predict_anew
from solvable.study.results import StudyResult, load
from solvable.study.tables import format_value, varying_parameters, verdict_fields


class Judgement(NamedTuple):
    """Verdicts and predictions of one version of the library on the records of a run."""

    label: str
    verdicts: Sequence[Mapping[str, Any]]  # as `solvable verify --json` prints them
    predictions: Sequence[Mapping[str, Any] | None]  # by point


@dataclass(frozen=True)
class Shift:
    """A predicted number that two versions of the library give differently."""

    parameters: Mapping[str, Any]
    metric: str  # an entry of a list is ``name[i]``, the one that moved most
    before: float | str | None
    after: float | str | None
    relative: float | None  # (after - before) / |before|
    standard_errors: float | None  # in standard errors of the measured mean at this setting

    @property
    def alone(self) -> bool:
        """True if only one of the versions predicts this."""
        return self.before is None or self.after is None


@dataclass(frozen=True, repr=False)
class VersionComparison(Shown, view=__name__):
    """Verdicts and predictions of two versions of the library on one stored run.

    Made by :func:`solvable.compare` from a single run.

    Parameters
    ----------
    result : StudyResult
        The run, with the stored predictions.
    before, after : Judgement
        The stored or the other version, and the installed version: label, verdicts, predictions.
    shifts : tuple of Shift
        Predictions that differ by more than rounding, largest relative change first; those that only
        one version makes are last.
    """

    result: StudyResult
    before: Judgement
    after: Judgement
    shifts: tuple[Shift, ...]

    @property
    def changed(self) -> list[str]:
        """Claims whose verdicts differ."""
        before, after = _by_claim(self.before), _by_claim(self.after)
        return [
            claim
            for claim in before
            if claim in after and before[claim]["status"] != after[claim]["status"]
        ]

    @property
    def broken(self) -> list[str]:
        """Claims that hold in the first version, and fail or raise in the installed one."""
        before, after = _by_claim(self.before), _by_claim(self.after)
        return [
            claim
            for claim in self.changed
            if before[claim]["status"] == "holds" and after[claim]["status"] in ("fails", "error")
        ]


def compare_versions(
    run: str | Path | StudyResult, python: str | Path | None = None
) -> VersionComparison:
    """Judge one run by the installed library, and by its stored predictions or another library."""
    stored = run if isinstance(run, StudyResult) else load(run)
    if not stored.points:
        raise InvalidParameter(
            f"{stored.directory} has no finished task with a prediction; allowed: runs with one. "
            "Run the same command again to resume it."
        )
    program = None if python is None else interpreter(python)  # before the long work
    renewed = predict_anew(stored)
    known = {canonical_json(point.parameters): point for point in (*renewed.points, *stored.points)}
    points = list(known.values())  # a prediction may raise in one version only
    after = _judgement(renewed, points, f"installed {version('solvable')}")
    if program is None:
        libraries = sorted({str(record["library"]) for record in stored.records})
        before = _judgement(stored, points, f"stored by {', '.join(libraries)}")
    else:
        asked = [dict(point.parameters) for point in points]
        answer = judged_by(program, stored.directory, stored.system.name, asked)
        before = Judgement(answer.label, answer.verdicts, answer.predictions)
    return VersionComparison(stored, before, after, tuple(_shifts(points, before, after)))


def _judgement(result: StudyResult, reference: Sequence[Point], label: str) -> Judgement:
    """Return the verdicts of a result, and its predictions at the points of the reference."""
    known = {canonical_json(point.parameters): point.prediction for point in result.points}
    verdicts = [verdict_fields(verdict) for verdict in result.verdicts]
    return Judgement(label, verdicts, [known.get(canonical_json(p.parameters)) for p in reference])


def _by_claim(judgement: Judgement) -> dict[str, Mapping[str, Any]]:
    return {str(row["claim"]): row for row in judgement.verdicts}


def _shifts(points: Sequence[Point], before: Judgement, after: Judgement) -> list[Shift]:
    """Return the changes of predictions, largest relative change first."""
    found = [
        shift
        for point, old, new in zip(points, before.predictions, after.predictions, strict=True)
        for shift in _of_point(point, old or {}, new or {})
    ]
    return sorted(found, key=_rank)


def _rank(shift: Shift) -> tuple[bool, float]:
    """Order by relative change, largest first, and what only one version predicts last."""
    relative = np.inf if shift.relative is None else abs(shift.relative)
    return shift.alone, -relative if relative == relative else -np.inf  # NaN first


def _of_point(point: Point, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Shift]:
    """Return the changes at one setting that exceed rounding."""
    parameters = point.parameters
    for name in changed_names(before, after):
        one, other = before.get(name), after.get(name)
        if any(value is None or isinstance(value, str) for value in (one, other)):
            shown = [v if isinstance(v, str | float | int) else None for v in (one, other)]
            yield Shift(parameters, name, shown[0], shown[1], None, None)
            continue
        old, new = np.atleast_1d(np.array(one, float)), np.atleast_1d(np.array(other, float))
        if old.shape != new.shape:
            yield Shift(parameters, f"{name} (entries)", old.size, new.size, None, None)
        else:
            yield _largest(point, name, old, new)


def _largest(point: Point, name: str, old: np.ndarray, new: np.ndarray) -> Shift:
    """Return the change of the entry that moved most."""
    parameters, measured = point.parameters, point.metrics[0]
    change = np.where(np.isnan(old) != np.isnan(new), np.inf, np.abs(new - old))
    place = int(np.nanargmax(np.where(np.isnan(change), -1.0, change)))
    value = float(old[place])
    relative = (float(new[place]) - value) / abs(value) if value else None
    error = float(np.atleast_1d(point.standard_error(name))[place]) if name in measured else np.nan
    moved = float(new[place] - value) / error if error > 0 else None  # NaN is not
    metric = f"{name}[{place}]" if old.size > 1 else name
    return Shift(parameters, metric, value, float(new[place]), relative, moved)


def line(found: VersionComparison) -> str:
    """Return how many verdicts and predictions differ, in one line."""
    points = len({canonical_json(shift.parameters) for shift in found.shifts})
    of = len(found.after.predictions)
    return (
        f"{found.result.system.name}: {len(found.changed)} of {len(_by_claim(found.after))} verdicts "
        f"and {len(found.shifts)} predictions at {points} of {of} points differ "
        f"between {found.before.label} and {found.after.label}"
    )


def tables(found: VersionComparison, *, details: bool = False) -> list[Table]:
    """Return the verdicts side by side, and the predictions that moved."""
    before, after = _by_claim(found.before), _by_claim(found.after)
    verdicts = verdict_tables((found.before.label, found.after.label), (before, after))
    return [*verdicts, *_moved(found, details), *_alone(found)]


def _moved(found: VersionComparison, details: bool) -> Iterator[Table]:
    """Return the predictions that both versions make and that differ."""
    shifts = [shift for shift in found.shifts if not shift.alone]
    if not shifts:
        return
    shown = shifts if details else shifts[:20]
    names = [Column(name, right=True) for name in (found.before.label, found.after.label)]
    moved = Table(
        Column("setting", wrap=True), "prediction", *names, Column("change", right=True),
        Column("in s.e.", right=True), title="Predictions that differ",
    )  # fmt: skip
    varied = varying_parameters(found.result.points)
    for shift in shown:
        moved.add(
            " ".join(f"{name}={format_value(shift.parameters.get(name))}" for name in varied)
            or "all",
            shift.metric,
            format_number(shift.before),
            format_number(shift.after),
            "" if shift.relative is None else f"{_signed(100 * shift.relative)} %",
            "" if shift.standard_errors is None else _signed(shift.standard_errors),
        )
    if len(shown) < len(shifts):
        moved.add(f"... {len(shifts) - len(shown)} more", "", "", "", "", "")
    yield moved


def _signed(value: float) -> str:
    """Write a change with its sign."""
    text = format_number(value, 2)
    return f"+{text}" if value > 0 else text


def _alone(found: VersionComparison) -> Iterator[Table]:
    """Return what only one version predicts, a row for each name, and why nothing is predicted."""
    both = (found.before, found.after)
    counts = Counter(
        (shift.metric, both[shift.before is None].label) for shift in found.shifts if shift.alone
    )
    if not counts:
        return
    table = Table("prediction", "made only by", Column("points", right=True), title="Added or gone")
    for (metric, label), count in counts.items():
        table.add(metric, label, str(count))
    yield table
    refusals = Counter(
        (one.label, str(row[NO_PREDICTION]))
        for one in both
        for row in one.predictions
        if row and len(row) == 1 and row.get(NO_PREDICTION)
    )
    if refusals:
        table = Table("no prediction by", Column("reason", wrap=True), Column("points", right=True))
        for (label, reason), count in refusals.items():
            table.add(label, printable(shortened(reason)), str(count))
        yield table


def rows(found: VersionComparison) -> list[dict[str, Any]]:
    """Return one row per prediction that differs."""
    return flat_parameters(found.shifts)


def figures(found: VersionComparison) -> list[Figure]:
    """Return no figures: both versions judge the same records."""
    return []
