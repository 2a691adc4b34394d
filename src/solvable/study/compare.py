"""Several runs side by side: settings, verdicts, and differences of metrics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from solvable.errors import InvalidParameter, quoted
from solvable.frame.claims import Verdict
from solvable.paths import printable
from solvable.plots.displayed import Shown
from solvable.plots.figure import Figure
from solvable.plots.tables import Table
from solvable.plots.words import counted
from solvable.study.comparison_figures import overlaid
from solvable.study.comparison_tables import (
    by_claim,
    difference_tables,
    flat_parameters,
    verdict_tables,
)
from solvable.study.differences import Difference, differences, holm
from solvable.study.parameters import format_settings
from solvable.study.results import StudyResult, load
from solvable.study.toml import parse_study


@dataclass(frozen=True, repr=False)
class Comparison(Shown, view=__name__):
    """Runs of one or several systems next to each other; made by :func:`solvable.compare`.

    Parameters
    ----------
    labels : tuple of str
        Short names of the runs.
    results : tuple of StudyResult
        The runs.
    differences : tuple of Difference
        Differences from the first run, at every setting and metric that two runs share.

    Examples
    --------
    >>> import solvable
    >>> settings = {"dimension": 10, "samples": 40, "preset": None, "workers": 1, "seeds": 2}
    >>> runs = [solvable.run("quadratic-network", seed=seed, **settings) for seed in (0, 1)]
    >>> solvable.compare(*runs).labels
    ('seed=0', 'seed=1')
    """

    labels: tuple[str, ...]
    results: tuple[StudyResult, ...]
    differences: tuple[Difference, ...]

    @property
    def claims(self) -> list[str]:
        """Names of all claims, in the order of the runs."""
        return list(dict.fromkeys(row.claim for run in self.results for row in run.verdicts))

    def verdict(self, claim: str, place: int) -> Verdict | None:
        """Return the verdict on a claim in the run of this index, from 0; None if it has none."""
        rows = (row for row in self.results[place].verdicts if row.claim == claim)
        return next(rows, None)

    @property
    def broken(self) -> list[tuple[str, str]]:
        """Claims that hold in the first run and fail or raise in another, with its label."""
        return [
            (claim, self.labels[place])
            for claim in self.claims
            for place in range(1, len(self.results))
            if (before := self.verdict(claim, 0)) is not None
            and before.status == "holds"
            and (after := self.verdict(claim, place)) is not None
            and after.status in ("fails", "error")
        ]


def compare_runs(runs: Sequence[str | Path | StudyResult]) -> Comparison:
    """Compare each run with the first one; raise if two runs have nothing in common."""
    if len(runs) < 2:
        raise InvalidParameter(
            f"{counted(len(runs), 'run')} given to compare; allowed: two or more. Give the directories "
            "of runs; `solvable verify RUN` judges one run by the installed theory."
        )
    results = tuple(run if isinstance(run, StudyResult) else load(run) for run in runs)
    for run in results[1:]:
        _check_common(results[0], run)
    labels = _labels(results)
    rows = [
        row
        for label, run in zip(labels[1:], results[1:], strict=True)
        for row in differences(results[0], run, label)
    ]
    flags = holm([row.p_value for row in rows])
    rows = [replace(row, differs=flag) for row, flag in zip(rows, flags, strict=True)]
    return Comparison(labels, results, tuple(rows))


def _check_common(first: StudyResult, run: StudyResult) -> None:
    if first.system.name == run.system.name:
        return
    claims, others = ({claim.name for claim in r.system.claims} for r in (first, run))
    if not claims & others:
        raise InvalidParameter(
            f"{quoted(str(run.directory))} is a run of {run.system.name}, which has no claim in common "
            f"with {first.system.name} of {quoted(str(first.directory))}; allowed: runs of one system, "
            "or of systems with claims of equal names."
        )


def settings_of(result: StudyResult) -> dict[str, str]:
    """Return what defines a run, as text by name."""
    meta = result.snapshot.meta
    asked = parse_study(meta["study"])
    grid = {name: format_settings({name: values}) for name, values in asked.grid.items()}
    return {
        "system": f"system={meta['system']}",
        "version": f"version={meta['version']}",
        **grid,
        **({"points": f"points={len(asked.points)} settings"} if asked.points else {}),
        "replicates": f"replicates={asked.replicates}",
        "seed": f"seed={asked.seed}",
    }


def _own_metrics(results: Sequence[StudyResult]) -> list[list[str]]:
    """Return for each run the names of the metrics that some other run lacks."""
    names = [
        dict.fromkeys(name for row in result.snapshot.tasks for name in row["metrics"])
        for result in results
    ]
    common = set.intersection(*(set(one) for one in names))
    return [[name for name in one if name not in common] for one in names]


def _differing(results: Sequence[StudyResult]) -> list[dict[str, str]]:
    """Return for each run the settings that are not the same in all runs."""
    settings = [settings_of(result) for result in results]
    names = list(dict.fromkeys(name for one in settings for name in one))
    varied = [name for name in names if len({one.get(name) for one in settings}) > 1]
    return [{name: one.get(name, f"{name}=default") for name in varied} for one in settings]


def _labels(results: Sequence[StudyResult]) -> tuple[str, ...]:
    """Name each run by what differs; a number is added to names that would be equal."""
    longest = 40
    texts = []
    for one in _differing(results):
        text = printable(" ".join(one.values())).replace("\n", " ") or "same study"
        texts.append(text if len(text) <= longest else f"{text[: longest - 3]}...")
    return tuple(
        f"{text} ({place})" if texts.count(text) > 1 else text
        for place, text in enumerate(texts, start=1)
    )


def line(found: Comparison) -> str:
    """Return the numbers of runs, claims and differences in one line."""
    marked = sum(row.differs for row in found.differences)
    words = f"{len(found.results)} runs, {len(found.claims)} claims"
    return f"{words}; {marked} of {len(found.differences)} compared means differ"


def tables(found: Comparison, *, details: bool = False) -> list[Table]:
    """Return the tables of runs, of verdicts, and of differences."""
    runs = Table("run", "differs in", "tasks", "directory", title="Runs")
    columns = (found.labels, found.results, _differing(found.results), _own_metrics(found.results))
    for label, result, own, metrics in zip(*columns, strict=True):
        tasks = f"{result.planned - result.missing} of {result.planned}"
        words = [
            " ".join(own.values()),
            *([f"also measures {', '.join(metrics)}"] if metrics else []),
        ]
        runs.add(
            label, "; ".join(filter(None, words)) or "no setting", tasks, str(result.directory)
        )
    verdicts = [by_claim(result.verdicts) for result in found.results]
    shown = [runs, *verdict_tables(found.labels, verdicts)]
    if found.differences:
        shown += difference_tables(found.differences, details=details)
    return shown


def rows(found: Comparison) -> list[dict[str, Any]]:
    """Return one row per difference."""
    return flat_parameters(found.differences)


def figures(found: Comparison) -> list[Figure]:
    """Return the curves of all runs on one axis, for each figure that two runs have."""
    return overlaid(found.labels, found.results)
