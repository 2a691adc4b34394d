"""Results of a study: records, points, verdicts, and the CSV of the records."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from solvable.frame import registry
from solvable.frame.drawn import Drawn, Fault
from solvable.frame.points import Point, raised_prediction
from solvable.frame.system import System
from solvable.frame.theory_lines import FEWEST_SECONDS
from solvable.plots.csv_text import csv_text
from solvable.plots.displayed import Shown
from solvable.plots.figure import Figure
from solvable.plots.frames import flat_rows
from solvable.plots.tables import Column, Table
from solvable.study.database import reported
from solvable.study.labelled import LabelledPoint, dataset
from solvable.study.snapshot import Snapshot, read, read_arrays
from solvable.study.tables import verdict_summary, verdict_table
from solvable.study.verdict_list import PowerRows, Verdicts


@dataclass(frozen=True)
class Failure:
    """A task or a prediction that raised."""

    parameters: Mapping[str, Any]
    replicate: int | None  # None if the prediction failed
    error: str  # one line


@dataclass(frozen=True, repr=False)
class StudyResult(Shown, view=__name__):
    """Results of a study so far: records, points, verdicts, figures.

    A notebook shows it as its table of verdicts; ``to_dataframe()`` has a row per record, as
    ``records.csv``.

    Parameters
    ----------
    directory : Path
        Run directory.
    system : System
        System of the study, with the claims that are judged.
    snapshot : Snapshot
        Content of the store.
    interrupted : bool
        Whether the run was stopped by Ctrl-C before it was complete.
    fresh : frozenset of str
        Tasks that this call has measured. All others may lack metrics that the claims need by now.
    """

    directory: Path
    system: System
    snapshot: Snapshot
    interrupted: bool = False
    fresh: frozenset[str] = frozenset()

    @property
    def planned(self) -> int:
        """Number of tasks of the study."""
        return self.snapshot.planned

    @property
    def missing(self) -> int:
        """Number of tasks without a result: not yet run, or failed."""
        return self.planned - len(self.snapshot.tasks)

    @property
    def complete(self) -> bool:
        """True if every task and every prediction has a result."""
        predicted = all(prediction is not None for _, _, prediction in self.snapshot.points)
        return self.missing == 0 and predicted

    @cached_property
    def failures(self) -> list[Failure]:
        """Tasks and predictions that raised, with their errors."""
        return [
            Failure(self._parameters[point], replicate, error)
            for point, replicate, error in self.snapshot.failures
        ]

    @cached_property
    def _parameters(self) -> dict[str, dict[str, Any]]:
        return {identity: parameters for identity, parameters, _ in self.snapshot.points}

    @cached_property
    def records(self) -> list[dict[str, Any]]:
        """One mapping per finished task, by point, then replicate.

        Keys: ``task``, ``system``, ``version``, ``parameters``, ``replicate``, ``metrics``,
        ``prediction`` (None until computed; only the reason if it raised), ``library``, ``numpy``,
        ``dtype``, ``seconds``, ``cpu_seconds``, ``peak_memory`` (bytes).
        """
        predictions = {identity: metrics for identity, _, metrics in self._predicted}
        return [
            {
                "task": row["identity"],
                "system": self.snapshot.meta["system"],
                "version": self.snapshot.meta["version"],
                "parameters": self._parameters[row["point"]],
                "replicate": row["replicate"],
                "metrics": row["metrics"],
                "prediction": predictions[row["point"]],
                **{name: row[name] for name in _PROVENANCE},
            }
            for row in self.snapshot.tasks
        ]

    @cached_property
    def _predicted(self) -> list[tuple[str, dict[str, Any], dict[str, Any] | None]]:
        """Return the points of the store; a prediction that raised is replaced by its reason."""
        raised = {
            point: line for point, replicate, line in self.snapshot.failures if replicate is None
        }
        return [
            (
                identity,
                parameters,
                raised_prediction(raised[identity])
                if prediction is None and identity in raised
                else prediction,
            )
            for identity, parameters, prediction in self.snapshot.points
        ]

    @cached_property
    def points(self) -> list[Point]:
        """Points in canonical order that have at least one replicate and were predicted.

        A prediction that raised or was refused contains only its reason.
        """
        metrics: dict[str, list[Any]] = {}
        former = set()
        for row in self.snapshot.tasks:
            metrics.setdefault(row["point"], []).append(row["metrics"])
            if row["identity"] not in self.fresh:
                former.add(row["point"])
        return [
            Point(parameters, metrics[identity], prediction, former=identity in former)
            for identity, parameters, prediction in self._predicted
            if identity in metrics and prediction is not None
        ]

    @cached_property
    def verdicts(self) -> Verdicts:
        """One verdict per claim of the system on the finished points: a list, and a table."""
        return Verdicts(self.system.verdicts(self.points))

    @cached_property
    def power(self) -> PowerRows:
        """Return the smallest error of a prediction with which each claim fails on these points."""
        return PowerRows(self.system.power(self.points))

    @cached_property
    def _drawn(self) -> Drawn:
        """Figures and faults, made once; theory lines take up to a sixth of the measurements' time."""
        if not self.points:
            return Drawn([], [])
        measured = sum(record["cpu_seconds"] or 0.0 for record in self.records)
        return self.system.drawn(self.points, max(measured / 6, FEWEST_SECONDS))

    @property
    def drawn(self) -> Sequence[Figure]:
        """Figures as data; a panel that raised is empty, with the exception as its caption."""
        return self._drawn.figures

    @property
    def faults(self) -> Sequence[Fault]:
        """Panels and theory lines that raised, with their exceptions; draws the figures."""
        return self._drawn.faults

    def to_xarray(self) -> Any:
        """Return all measured and predicted numbers as an ``xarray.Dataset`` with lists as dimensions.

        Dimensions are the varied parameters (or ``point``, if the points are no full grid),
        ``replicate`` for measurements, and ``NAME_entry`` for the entries of the list NAME. Missing
        values and the ends of shorter lists are NaN. Predictions are named ``predicted.NAME``.
        xarray must be installed.
        """
        replicates = 1 + max((row["replicate"] for row in self.snapshot.tasks), default=-1)
        measured: dict[str, list[tuple[int, Mapping[str, Any]]]] = {}
        for row in self.snapshot.tasks:
            measured.setdefault(row["point"], []).append((row["replicate"], row["metrics"]))
        points = [
            LabelledPoint(parameters, prediction or {}, tuple(measured.get(identity, ())))
            for identity, parameters, prediction in self._predicted
        ]
        meta = self.snapshot.meta
        return dataset(points, replicates, system=meta["system"], version=str(meta["version"]))

    def teacher(self, task: str) -> dict[str, np.ndarray]:
        """Return the stored arrays that define the target of a task; see :meth:`System.teacher`."""
        return read_arrays(self.directory, task)

    def write_records(self) -> Path:
        """Write ``records.csv`` into the run directory: one row per record, lists as ``name[i]``."""
        table = flat_rows(rows(self), arrays=True)
        path = self.directory / "records.csv"
        part = path.with_name(".records.csv.part")
        with reported(path):
            with part.open("w", newline="", encoding="utf-8") as file:
                header = list(table[0]) if table else []
                file.write(csv_text(header, (row.values() for row in table)))
            os.replace(part, path)
        return path


_PROVENANCE = ("library", "numpy", "dtype", "seconds", "cpu_seconds", "peak_memory")


def rows(found: StudyResult) -> list[dict[str, Any]]:
    """Return one row per record: identity, parameters, metrics, predictions, provenance."""
    groups: list[dict[str, None]] = [{}, {}, {}, {}, {}]
    ragged = []
    for record in found.records:
        parameters, metrics = record["parameters"], record["metrics"]
        parts: list[Mapping[str, Any]] = [
            {name: record[name] for name in ("system", "version", "task", "replicate")},
            parameters,
            {f"measured.{n}" if n in parameters else n: value for n, value in metrics.items()},
            {f"predicted.{n}": value for n, value in (record["prediction"] or {}).items()},
            {name: record[name] for name in _PROVENANCE},
        ]
        for group, part in zip(groups, parts, strict=True):
            group.update(dict.fromkeys(part))
        ragged.append({name: value for part in parts for name, value in part.items()})
    names = dict.fromkeys(name for group in groups for name in group)
    lists = {
        name for row in ragged for name, value in row.items() if isinstance(value, list | tuple)
    }
    # an empty list adds no column
    return [
        {name: row.get(name, [] if name in lists else None) for name in names} for row in ragged
    ]


def line(found: StudyResult) -> str:
    """Return the system, the finished share of the study, and the counts of verdicts."""
    done = f"{found.planned - found.missing} of {found.planned} tasks"
    counts = verdict_summary(found.verdicts)
    words = ("hold", "hold weakly", "fail", "not testable", "raised an error")
    claims = [
        f"{count} {word}" for word, count in zip(words, counts.values(), strict=True) if count
    ]
    stopped = ["interrupted"] if found.interrupted else []
    return (
        f"{found.system.name}: {', '.join([done, *stopped])}; claims: {', '.join(claims) or 'none'}"
    )


def tables(found: StudyResult) -> list[Table]:
    """Return the table of verdicts, then the exceptions of claims that raised."""
    shown = [verdict_table(found.verdicts)] if found.verdicts else []
    raised = [(row.claim, row.reason) for row in found.verdicts if row.status == "error"]
    errors = Table.of("claim", Column("error", wrap=True), rows=raised)
    return [*shown, errors] if raised else shown


def figures(found: StudyResult) -> Sequence[Figure]:
    """Return the figures of the system: theory and measurement on the same axes."""
    return found.drawn


def load(directory: str | Path, system: System | None = None) -> StudyResult:
    """Load the study of a run directory, finished or not, as ``solvable verify`` does.

    Parameters
    ----------
    directory : path
        Run directory.
    system : System, optional
        The system, if no installed package provides it.

    Returns
    -------
    StudyResult
        Records, points, and verdicts on the claims of the installed system.

    Raises
    ------
    StorageFailed, StudyTooNew
        If there is no store, it is damaged, or a newer version wrote it.
    UnknownSystem
        If no installed package provides the system.

    Examples
    --------
    >>> import solvable
    >>> settings = {"dimension": 10, "samples": 40, "preset": None, "workers": 1}
    >>> found = solvable.run("quadratic-network", **settings)
    >>> solvable.load(found.directory).records == found.records
    True
    """
    snapshot = read(directory)
    if system is None:
        system = registry.load(snapshot.meta["system"])
    return StudyResult(Path(directory), system, snapshot)
