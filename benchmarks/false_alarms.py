"""Measure how often a claim fails although its theory is right, in simulated studies.

    python benchmarks/false_alarms.py RUN_DIRECTORY... --studies 1000 > benchmarks/false_alarms.csv
    python benchmarks/false_alarms.py --table benchmarks/false_alarms.csv

The second form prints the table of docs/verdicts.md.

Each run directory contains a study with several replicates. The simulation takes its means as true
values and its scatter as the true scatter. A simulated replicate of metric i is
x_i + sum_r z_r (x_ir - x_i) / sqrt(n - 1): x_ir are the n measured replicates, x_i is their mean, and
the normal numbers z_r are common to all metrics, which keeps the correlations of the metrics. The
expected value of each claim is its measured value on all replicates; tolerance and allowance are its
own. Prints the share of simulated studies in which each claim fails, and in which it is testable.
"""

from __future__ import annotations

import argparse
import csv
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from solvable.frame.agreement import Agreement, Comparison, compare
from solvable.frame.claims import Finding, NotTestable
from solvable.frame.points import Point
from solvable.frame.points_claim import PointsClaim
from solvable.study import load

NOTHING = 1e-12
"""Stated tolerance so small that statistical errors alone decide the verdict."""


Scatter = dict[str, tuple[np.ndarray, np.ndarray]]
"""Mean of each metric of a point over replicates, and deviation of each replicate from it."""


def scatter_of(point: Point) -> tuple[Scatter, dict[str, Any]]:
    """Return metrics with scatter, and constant values: texts, and None if a replicate lacks it."""
    scatter, constant = {}, {}
    for name in point.metrics[0]:
        rows = [m.get(name) for m in point.metrics]
        if any(isinstance(row, str) for row in rows):
            constant[name] = rows[0]
        elif any(row is None for row in rows) or len({np.shape(row) for row in rows}) > 1:
            constant[name] = None
        else:
            values = np.array(rows, dtype=float)
            scatter[name] = (values.mean(axis=0), values - values.mean(axis=0))
    return scatter, constant


def simulated(
    point: Point, world: tuple[Scatter, dict[str, Any]], replicates: int, rng: np.random.Generator
) -> Point:
    """Return the point with simulated replicates of the same mean and scatter."""
    scatter, constant = world
    metrics = [dict(constant) for _ in range(replicates)]
    z = rng.standard_normal((replicates, point.replicates)) / np.sqrt(point.replicates - 1)
    for name, (mean, deviations) in scatter.items():
        for m, draw in zip(metrics, mean + np.tensordot(z, deviations, axes=1), strict=True):
            known = np.isfinite(draw)
            m[name] = np.where(known, draw, None).tolist() if draw.ndim else float(draw)
    return replace(point, metrics=metrics)


def places(comparison: Comparison) -> dict[Any, float]:
    """Return the measured value of every cell, by point and entry."""
    return {
        (str(cell.point.parameters), cell.entry): value
        for cell, value in zip(comparison.cells, comparison.measured, strict=True)
    }


def outcomes(claim: Any, points: list[Point], truth: Any) -> tuple[str, bool]:
    """Return the outcome on simulated points, and True if the claim fails without stated tolerance.

    The expected values are the true ones.
    """
    if isinstance(claim, Agreement):
        comparison = compare(claim, points)
        if not isinstance(comparison, Comparison):
            return "not testable", False
        expected = np.array([truth.get(place, np.nan) for place in places(comparison)], dtype=float)
        # A cell that no mean of the study measures has no true value: expect the simulated one.
        expected = np.where(np.isfinite(expected), expected, comparison.measured)
        comparison = replace(comparison, expected=expected)
        nothing = np.full_like(comparison.within, NOTHING)
        alone = replace(comparison, within=nothing).finding(None)
        return word(comparison.finding(None)), word(alone) == "fails"
    alone = replace(claim, within=NOTHING, relative=False).check_against(points, truth)
    return word(claim.check_against(points, truth)), word(alone) == "fails"


def word(finding: Finding | NotTestable) -> str:
    """Return the status of a verdict with this finding."""
    if isinstance(finding, NotTestable):
        return "not testable"
    return "holds" if finding.holds else "fails"


def truth_of(claim: Any, points: list[Point]) -> Any:
    """Return the values that a claim measures on all replicates: the true ones of the simulation."""
    if isinstance(claim, Agreement):
        comparison = compare(claim, points)
        return places(comparison) if isinstance(comparison, Comparison) else None
    return claim.measured(points) or None


def rows_of(directory: str, studies: int, replicates: int) -> Iterator[str]:
    """Yield a line of the CSV file for each claim of a study that can be simulated."""
    study = load(directory)
    points = [
        p
        for p in study.system.settled([p for p in study.points if not p.refused])
        if p.replicates > 1
    ]
    worlds = [scatter_of(point) for point in points]
    claims = [c for c in study.system.claims if isinstance(c, Agreement | PointsClaim)]
    truths = [truth_of(claim, points) for claim in claims]
    counts: list[Counter[str]] = [Counter() for _ in claims]
    for seed in range(studies):
        rng = np.random.default_rng(seed)
        drawn = [
            simulated(point, world, replicates, rng)
            for point, world in zip(points, worlds, strict=True)
        ]
        for claim, truth, count in zip(claims, truths, counts, strict=True):
            if truth is None:
                continue
            try:
                outcome, alone = outcomes(claim, drawn, truth)
            except (ValueError, IndexError, ZeroDivisionError):
                outcome, alone = "not testable", False
            count[outcome] += 1
            count["alone"] += alone
    for claim, count in zip(claims, counts, strict=True):
        if not count:
            continue
        shares = [count[key] / studies for key in ("fails", "alone", "not testable")]
        yield ",".join(
            (
                study.system.name,
                claim.name,
                str(min(p.replicates for p in points)),
                str(studies),
                *(f"{share:.4g}" for share in (*shares[:2], 1 - shares[2])),
            )
        )


def table(file: str) -> str:
    """Return a Markdown table: the ten claims that failed most often, and a line for all others."""
    with Path(file).open() as stream:
        rows = list(csv.DictReader(stream))
    rows.sort(key=lambda row: (-float(row["failed"]), row["system"], row["claim"]))
    worst, rest = rows[:10], [float(row["failed"]) for row in rows[10:]]
    lines = ["| system | claim | replicates | fails | testable |", "|---|---|---|---|---|"]
    lines += [
        f"| {row['system']} | {row['claim']} | {row['replicates']} | {float(row['failed']):.1%} "
        f"| {float(row['testable']):.0%} |"
        for row in worst
    ]
    lines.append(
        f"| all others | {len(rest)} claims | | at most {max(rest):.1%}, mean {np.mean(rest):.2%} | |"
    )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directories", nargs="*")
    parser.add_argument(
        "--table", help="print the table of docs/verdicts.md from this CSV file; measure nothing"
    )
    parser.add_argument("--studies", type=int, default=1000)
    parser.add_argument("--replicates", type=int, default=2)
    arguments = parser.parse_args()
    if arguments.table:
        print(table(arguments.table))
        return
    print("system,claim,replicates,studies,failed,failed_by_statistics_alone,testable")
    for directory in arguments.directories:
        for line in rows_of(directory, arguments.studies, arguments.replicates):
            print(line, flush=True)


if __name__ == "__main__":
    main()
