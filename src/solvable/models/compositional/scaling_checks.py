"""Checks of sample sizes: their growth with the dimension, and their order over the layers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from solvable.frame.checking import groups, spread, worst
from solvable.frame.claims import Finding, NotTestable
from solvable.frame.points import Point
from solvable.models.compositional.checks import where


def crossing(group: Sequence[Point], name: str = "subspace_overlap", level: float = 0.5) -> float:
    """Sample size at which the mean of a scalar metric passes a level; NaN if it does not."""
    samples = np.array([point.parameters["samples"] for point in group], dtype=float)
    values = np.array([np.max(point.mean(name)) for point in group])
    above = np.flatnonzero(values >= level)
    if above.size == 0 or above[0] == 0:
        return float("nan")
    k = int(above[0])
    part = (level - values[k - 1]) / (values[k] - values[k - 1])
    return float(samples[k - 1] * (samples[k] / samples[k - 1]) ** part)


def crossing_place(points: Sequence[Point]) -> Finding | NotTestable:
    """Worst ratio of the measured to the predicted sample size of half the overlap."""
    findings = []
    for group in groups(points):
        found = crossing(group)
        expected = group[0].prediction["crossing_samples"]
        if np.isnan(found) or expected is None:
            continue
        findings.append(
            Finding(
                float(np.log(found / float(np.asarray(expected)))),
                0.0,
                0.2,
                None,
                group[0].replicates,
                detail=f"Natural logarithm of the ratio; n = {found:,.0f}, {where(group[0])}.",
            )
        )
    if not findings:
        return NotTestable(
            "in no curve does the subspace overlap pass one half between two sample sizes; widen "
            "samples around crossing_samples from `solvable theory`"
        )
    return worst(findings)


def _by_dimension(points: Sequence[Point]) -> list[list[tuple[int, float, float, Point]]]:
    """Dimension, measured and predicted crossing of every curve, grouped by all else."""
    found: dict[tuple[object, ...], list[tuple[int, float, float, Point]]] = {}
    for group in groups(points):
        setting, expected = group[0].parameters, group[0].prediction["crossing_samples"]
        measured = crossing(group)
        if np.isnan(measured) or expected is None:
            continue
        skipped = ("dimension", "samples", "kernel_samples")
        key = tuple(value for name, value in setting.items() if name not in skipped)
        row = (setting["dimension"], measured, float(np.asarray(expected)), group[0])
        found.setdefault(key, []).append(row)
    return [sorted(rows, key=lambda one: one[0]) for rows in found.values()]


def _slope(x: Sequence[float], y: Sequence[float]) -> float:
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def recovery_scaling(points: Sequence[Point]) -> Finding | NotTestable:
    """Slope of the crossing against the dimension, beside that of the prediction."""
    findings = []
    for rows in _by_dimension(points):
        if len(rows) < 3 or rows[-1][0] < 2 * rows[0][0]:
            continue
        sizes = [row[0] for row in rows]
        findings.append(
            Finding(
                _slope(sizes, [row[1] for row in rows]),
                _slope(sizes, [row[2] for row in rows]),
                0.4,
                None,
                rows[0][3].replicates,
                detail=f"d = {sizes[0]} to {sizes[-1]}, "
                f"{rows[0][3].parameters['second_layer']} last layer.",
            )
        )
    if not findings:
        return NotTestable(
            "fewer than three dimensions, over a factor of two, have a crossing; set dimension to "
            "several values, or run with --preset scaling"
        )
    return worst(findings)


def below_kernel(points: Sequence[Point]) -> Finding | NotTestable:
    """Growth with the dimension of the crossing relative to what a kernel needs."""
    findings = []
    for rows in _by_dimension(points):
        if len(rows) < 2 or rows[-1][0] < 2 * rows[0][0]:
            continue
        sizes = [row[0] for row in rows]
        shares = [
            row[1] / float(np.asarray(row[3].prediction["kernel_threshold_samples"]))
            for row in rows
        ]
        findings.append(
            Finding(
                _slope(sizes, shares),
                -1.0,
                0.0,
                None,
                rows[0][3].replicates,
                "at most",
                f"The share falls from {shares[0]:.2g} at d = {sizes[0]} to {shares[-1]:.2g} at "
                f"d = {sizes[-1]}, {rows[0][3].parameters['second_layer']} last layer.",
            )
        )
    if not findings:
        return NotTestable(
            "fewer than two dimensions, over a factor of two, have a crossing; set dimension to "
            "several values, or run with --preset scaling"
        )
    return worst(findings)


def _four(points: Sequence[Point]) -> list[Point]:
    return [point for point in points if point.parameters["layers"] == 4]


def inner_ceiling(points: Sequence[Point]) -> Finding | NotTestable:
    """Largest overlap of the second representation above what the first one lets through."""
    findings = []
    for point in _four(points):
        ceiling = point.predicted("inner_overlap_ceiling")
        measured = point.mean("inner_squared_overlap")
        errors = spread(point, "inner_squared_overlap")
        for k in range(ceiling.size):
            findings.append(
                Finding(
                    float(measured[k]),
                    float(ceiling[k]),
                    float(0.05 + 3 * errors[k]),
                    float(errors[k]),
                    point.replicates,
                    "at most",
                    f"Feature {k + 1} of the second representation, {where(point)}.",
                )
            )
    if not findings:
        return NotTestable("no target has four layers; run with --preset four-layers")
    return worst(findings)


def first_before_second(points: Sequence[Point]) -> Finding | NotTestable:
    """Smallest ratio of the crossings of one half in the second and in the first representation."""
    findings = []
    for group in groups(_four(points)):
        first = crossing(group, "squared_overlap")
        second = crossing(group, "inner_squared_overlap")
        if np.isnan(first) or np.isnan(second):
            continue
        findings.append(
            Finding(
                second / first,
                1.0,
                0.0,
                None,
                group[0].replicates,
                "at least",
                f"First representation at n = {first:,.0f}, second at n = {second:,.0f}.",
            )
        )
    if not findings:
        return NotTestable(
            "no target of four layers crosses one half in both representations between two sample "
            "sizes; run with --preset four-layers"
        )
    return worst(findings)
