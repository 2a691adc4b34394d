"""How often a claim fails although its theory is right: simulated studies with two replicates.

    python benchmarks/false_alarms.py RUN_DIRECTORY... --studies 1000

Each run directory holds a study with several replicates. Its means stand for the truth, and its
scatter for that of the world: a simulated replicate is the mean of a point plus the deviations of
its replicates in a random direction, x_i + sum_r z_r (x_ir - x_i) / sqrt(n - 1) with z_r normal, so
that all metrics of a replicate move together as measured ones do. Every claim is judged with what
it measures on all replicates as its expected value, by its own tolerance and allowance. Prints the share
of simulated studies in which each claim fails, next to the share in which it is testable.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from solvable.frame.agreement import Agreement, Comparison, compare
from solvable.frame.claims import Finding
from solvable.frame.estimates import PointsClaim
from solvable.frame.points import Point
from solvable.study import load


def simulated(point: Point, replicates: int, rng: np.random.Generator) -> Point:
    """A point with new replicates of the same mean and scatter."""
    metrics = [dict(point.metrics[0]) for _ in range(replicates)]
    z = rng.standard_normal((replicates, point.replicates))
    for name in point.metrics[0]:
        rows = [m.get(name) for m in point.metrics]
        if any(isinstance(row, str) for row in rows):
            continue
        if any(row is None for row in rows) or len({np.shape(row) for row in rows}) > 1:
            for m in metrics:
                m[name] = None
            continue
        values = np.array(rows, dtype=float)
        mean = values.mean(axis=0)
        draws = mean + np.tensordot(z, values - mean, axes=1) / np.sqrt(len(values) - 1)
        for m, draw in zip(metrics, draws, strict=True):
            m[name] = (
                [float(v) if np.isfinite(v) else None for v in draw] if draw.ndim else float(draw)
            )
    return replace(point, metrics=metrics)


def places(comparison: Comparison) -> dict[Any, float]:
    """Measured value of every cell, by point and entry."""
    return {
        (str(cell.point.parameters), cell.entry): value
        for cell, value in zip(comparison.cells, comparison.measured, strict=True)
    }


def judged(claim: Any, points: list[Point], truth: Any) -> str:
    """Outcome of a claim on simulated points, with the truth as what is expected."""
    if isinstance(claim, Agreement):
        comparison = compare(claim, points)
        if not isinstance(comparison, Comparison):
            return "not testable"
        expected = np.array([truth.get(place, np.nan) for place in places(comparison)], dtype=float)
        # A cell that is measured in no mean has no truth.
        expected = np.where(np.isfinite(expected), expected, comparison.measured)
        finding = replace(comparison, expected=expected).finding(None)
    else:
        finding = claim.check_against(points, truth)
    if not isinstance(finding, Finding):
        return "not testable"
    return "holds" if finding.holds else "fails"


def truth_of(claim: Any, points: list[Point]) -> Any:
    """What a claim measures on all replicates, which the simulated ones scatter around."""
    if isinstance(claim, Agreement):
        comparison = compare(claim, points)
        return places(comparison) if isinstance(comparison, Comparison) else None
    return claim.measured(points) or None


def rows_of(directory: str, studies: int, replicates: int) -> Iterator[str]:
    """A line for each claim of a study that can be simulated."""
    study = load(directory)
    points = [
        p
        for p in study.system.settled([p for p in study.points if not p.refused])
        if p.replicates > 1
    ]
    claims = [c for c in study.system.claims if isinstance(c, Agreement | PointsClaim)]
    for number, claim in enumerate(claims):
        truth = truth_of(claim, points)
        if truth is None:
            continue
        counts: Counter[str] = Counter()
        for seed in range(studies):
            rng = np.random.default_rng([number, seed])
            drawn = [simulated(point, replicates, rng) for point in points]
            try:
                counts[judged(claim, drawn, truth)] += 1
            except (ValueError, IndexError, ZeroDivisionError):
                counts["not testable"] += 1
        share = counts["fails"] / studies
        testable = 1 - counts["not testable"] / studies
        yield f"{study.system.name},{claim.name},{studies},{share:.4f},{testable:.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directories", nargs="+")
    parser.add_argument("--studies", type=int, default=1000)
    parser.add_argument("--replicates", type=int, default=2)
    arguments = parser.parse_args()
    print("system,claim,studies,failed,testable")
    for directory in arguments.directories:
        for line in rows_of(directory, arguments.studies, arguments.replicates):
            print(line, flush=True)


if __name__ == "__main__":
    main()
