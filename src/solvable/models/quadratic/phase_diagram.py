"""Phase diagrams of quadratic and diagonal networks: settings in the colours of their phases."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from solvable.frame.estimates import Slope
from solvable.frame.panels import suffix_of
from solvable.frame.points import Point
from solvable.plots.figure import Figure, Series

WINDOW = 0.12
"""Largest distance of the predicted slope at this dimension from the exponent of a phase."""


def exponent_claim(
    phase: str, statement: str, source: str, *, where: Mapping[str, Any] | None = None, **row: Any
) -> Slope:
    """Return the claim that the error follows the power law of a phase, where the theory does."""

    def follows(point: Point) -> bool:
        exponent = point.predicted("phase_exponent")
        return bool(abs(point.predicted("local_exponent") - exponent) <= WINDOW)

    conditions = {"scaling_phase": phase, **(where or {}), "a slope near the exponent": follows}
    return Slope(
        f"exponent-{phase}", statement, source, where=conditions, within=0.15, power=0.3,
        because="The slope at this dimension differs by up to 0.12 from the exponent.",
        missing=f"no curve has three sample sizes in phase {phase}, a factor of 2 apart, where the "
        "predicted slope is within 0.12 of the exponent; run with --preset phases", **row,
    )  # fmt: skip


def near_law(point: Point, error: str) -> bool:
    """Return True if the measured error is within 30 % of the leading law of the phase."""
    law = point.prediction.get(f"scaling_law_{error}")
    if law is None or not point.metrics:
        return False
    ratio = float(point.mean(error)) / float(point.predicted(f"scaling_law_{error}"))
    return bool(abs(np.log(ratio)) <= np.log(1.3))


def settings_by_phase(
    points: Sequence[Point], phases: Sequence[str], place: Callable[[Point], Any], error: str
) -> list[Series]:
    """Points of each phase at their places; hollow where the error does not follow the law."""
    series: list[Series] = []
    for colour, phase in enumerate(phases):
        chosen = [point for point in points if point.prediction["scaling_phase"] == phase]
        if chosen:
            x, y = (
                [float(value) for value in row] for row in zip(*map(place, chosen), strict=True)
            )
            hollow = [not near_law(point, error) for point in chosen]
            series.append(Series(f"phase {phase}", x, y, "points", None, colour, hollow))
    return series


def diagram(over: str, words: str, series: Sequence[Series], *, x: str, y: str) -> Figure:
    """Phase diagram over two quantities, both on logarithmic axes."""
    return Figure(
        f"phase-diagram{suffix_of(words)}",
        f"Phases over {over}{f' ({words})' if words else ''}",
        x,
        y,
        series,
        "Points: measured settings in the colours of their phases; a full point has an error within 30 % "
        "of the leading law of its phase, a hollow point lies in a crossover. Lines: borders between "
        "phases.",
        x_scale="log",
        y_scale="log",
    )
